"""What stages are wrapped in, by schedule and by runtime: gradients equal those without a pipeline, or the stage is refused before
anything of it has run.

All of the matrix takes minutes: PPCC_LONG=1 asks for it. Without it each wrapper runs once with B, and once with I and W. One set of
processes runs all of them, one after another; those that need copies of the pipeline have a set of their own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, UsageError, StepError, load_torch_runtime
from ppcc.torch._failures import _abort_gloo as end_group
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel, fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from . import spawn
from .models import TOLERANCE, batch_of_rank, loss_fn, make_pipeline_groups, train_alone

FULL_MATRIX = bool(os.environ.get("PPCC_LONG"))
WIDTH = 6


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.tanh(self.up(self.norm(x))))


class Stage(nn.Module):
    """Two layers. `inside` is called with each, in their place; real forwards are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Layer(), Layer()
        self.inside: Callable[[nn.Module, Tensor], Any] = lambda layer, x: layer(x)
        self.num_forwards = 0

    def forward(self, x: Tensor) -> Tensor:
        self.num_forwards += not isinstance(x, FakeTensor)
        return self.inside(self.second, self.first(x))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Parallelism:
    """What wrappers are given beside a stage."""

    replicas: dist.ProcessGroup

    @property
    def mesh(self) -> DeviceMesh:
        return DeviceMesh.from_group(self.replicas, "cpu")


Wrap = Callable[[Stage, Parallelism], nn.Module]


@dataclass(frozen=True)
class Case:
    wrap: Wrap
    full_reason: str = ""
    """Why it is refused with B; nothing where it works."""
    split_reason: str = ""
    """Why it is refused with I and W."""
    shares: bool = False
    """Gradients are averaged over copies of the pipeline."""
    torch_reason: tuple[str, str] | None = None
    """The same with PyTorch's own runtime, where it is other."""
    alone: Callable[[Stage], object] = lambda stage: None
    """What copies of the pipeline have each, too."""
    runs_module: bool = False
    """Shapes are found by a forward, of zeros."""


def inside(run: Callable[[nn.Module, Tensor], Any]) -> Wrap:
    def wrap(stage: Stage, _: Parallelism) -> Stage:
        stage.inside = run
        return stage

    return wrap


def on(change: Callable[[Stage], object]) -> Wrap:
    def wrap(stage: Stage, _: Parallelism) -> Stage:
        stage.keeps = change(stage)  # type: ignore[assignment]
        return stage

    return wrap


def ddp(module: nn.Module, parallelism: Parallelism, **options: Any) -> nn.Module:
    return DistributedDataParallel(module, process_group=parallelism.replicas, **options)


def part(of: Callable[[nn.Module, Parallelism], nn.Module]) -> Wrap:
    def wrap(stage: Stage, parallelism: Parallelism) -> Stage:
        stage.second = of(stage.second, parallelism)  # type: ignore[assignment]
        return stage

    return wrap


def shard_parts(stage: Stage, parallelism: Parallelism) -> Stage:
    fully_shard(stage.second, mesh=parallelism.mesh)
    return stage


def shard(stage: Stage, parallelism: Parallelism) -> Stage:
    fully_shard(stage.second, mesh=parallelism.mesh)
    fully_shard(stage, mesh=parallelism.mesh)
    return stage


def with_norm(stage: Stage) -> None:
    """Hooks of FSDP's are on its result."""
    norm = stage.last = nn.LayerNorm(WIDTH).double()  # type: ignore[assignment]
    stage.inside = lambda layer, x: norm(layer(x))


def replicated(stage: Stage, parallelism: Parallelism) -> nn.Module:
    from torch.distributed._composable.replicate import replicate

    return replicate(stage, process_group=parallelism.replicas)  # type: ignore[no-any-return]


def optimizer_inside(stage: Stage) -> None:
    from torch.distributed.optim import _apply_optimizer_in_backward

    _apply_optimizer_in_backward(torch.optim.SGD, stage.parameters(), {"lr": 0.1})


class Reenters(torch.autograd.Function):
    """Somebody's own checkpoint."""

    @staticmethod
    def forward(ctx: Any, layer: nn.Module, x: Tensor) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(x)
        with torch.no_grad():
            return layer(x)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.layer(x)
        torch.autograd.backward(y, gradient)
        return None, x.grad


class Doubles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 3  # Other than autograd would.


@torch.compile(backend="aot_eager")
def compiled_function(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x)  # type: ignore[no-any-return]


def hooked(where: Callable[[Stage], Any], hook: Callable[..., Any]) -> Wrap:
    return on(lambda stage: where(stage)(hook))


def doubled(module: nn.Module, gradients: tuple[Tensor | None, ...], *outputs: Any) -> Any:
    return tuple(None if gradient is None else gradient * 2 for gradient in gradients)


def halved(weight: Tensor) -> None:
    assert weight.grad is not None
    weight.grad.mul_(0.5)


def with_hook(layer: nn.Module, x: Tensor, *, node: str = "") -> Tensor:
    y: Tensor = layer.norm(x)  # type: ignore[operator]
    if y.requires_grad and not node:
        y.register_hook(lambda gradient: gradient * 2)
    if node and y.grad_fn is not None:
        getattr(y.grad_fn, node)(lambda gradients, *_: tuple(None if gradient is None else gradient * 2 for gradient in gradients))
    return layer.down(torch.tanh(layer.up(y)))  # type: ignore[operator, no-any-return]


def with_hook_on_input(layer: nn.Module, x: Tensor) -> Tensor:
    x = torch.tanh(x)
    if x.requires_grad:
        x.register_hook(lambda gradient: gradient * 2)
    return layer(x)  # type: ignore[no-any-return]


def accumulator(stage: Stage) -> Any:
    return torch.autograd.graph.get_gradient_edge(stage.second.up.weight).node


def saved_on_cpu(layer: nn.Module, x: Tensor) -> Tensor:
    with torch.autograd.graph.save_on_cpu():
        return layer(x)  # type: ignore[no-any-return]


BACKWARD = "expects one backward after each forward"
COMPILED = "compiled by torch.compile, whose backward PyTorch's I and W would run twice"
NOT_CALLED = "a hook after the accumulation of its gradient, which PyTorch's I and W do not call"
INSIDE = "runs a backward inside|incompatible with .grad"
TWICE = "from which W starts, so it would run twice"

CASES = {
    "none": Case(lambda stage, _: stage),
    "ddp": Case(ddp, shares=True, torch_reason=("", BACKWARD)),
    "ddp that is told to look for unused weights": Case(
        partial(ddp, find_unused_parameters=True), "find_unused_parameters or static_graph", "find_unused_parameters or static_graph", shares=True, torch_reason=("", BACKWARD)
    ),
    "ddp and compile": Case(lambda stage, given: ddp(torch.compile(stage, backend="aot_eager"), given), shares=True, torch_reason=("", BACKWARD)),  # type: ignore[arg-type]
    "ddp and checkpoint": Case(lambda stage, given: ddp(inside(lambda layer, x: checkpoint(layer, x, use_reentrant=False))(stage, given), given), shares=True, torch_reason=("", BACKWARD)),
    "ddp and reentrant checkpoint": Case(
        lambda stage, given: ddp(inside(lambda layer, x: checkpoint(layer, x, use_reentrant=True))(stage, given), given), "", "for which hooks wait until W", shares=True, torch_reason=(INSIDE, BACKWARD)
    ),
    "ddp and checkpoint of one's own": Case(
        lambda stage, given: ddp(inside(Reenters.apply)(stage, given), given), "", "for which hooks wait until W", shares=True, torch_reason=(INSIDE, BACKWARD)  # type: ignore[arg-type]
    ),
    "ddp of a part": Case(part(ddp), BACKWARD, BACKWARD),
    "replicate": Case(replicated, BACKWARD, BACKWARD),
    "fsdp1": Case(lambda stage, parallelism: FullyShardedDataParallel(stage, parallelism.replicas, device_id=torch.device("cpu")), BACKWARD, BACKWARD),
    "fully_shard": Case(shard, shares=True, runs_module=True),
    "fully_shard that ends in a norm": Case(shard, shares=True, runs_module=True, alone=with_norm),
    "fully_shard of a part": Case(shard_parts, "call fully_shard", "call fully_shard", runs_module=True),
    "optimizer in the backward": Case(on(optimizer_inside), "steps inside of the backward", "steps inside of the backward"),
    "compile": Case(lambda stage, _: torch.compile(stage, backend="aot_eager"), torch_reason=("", COMPILED)),  # type: ignore[arg-type, return-value]
    "compile in place": Case(on(lambda stage: stage.compile(backend="aot_eager")), torch_reason=("", COMPILED)),
    "compile of a part": Case(part(lambda layer, _: torch.compile(layer, backend="aot_eager")), torch_reason=("", COMPILED)),  # type: ignore[arg-type, return-value]
    "compile of a function": Case(inside(compiled_function), torch_reason=("", COMPILED)),
    "checkpoint": Case(inside(lambda layer, x: checkpoint(layer, x, use_reentrant=False))),
    "reentrant checkpoint": Case(inside(lambda layer, x: checkpoint(layer, x, use_reentrant=True)), torch_reason=(INSIDE, INSIDE)),
    "checkpoint wrapper": Case(part(lambda layer, _: checkpoint_wrapper(layer))),
    "checkpoint of one's own": Case(inside(Reenters.apply), torch_reason=(INSIDE, INSIDE)),  # type: ignore[arg-type]
    "save_on_cpu": Case(inside(saved_on_cpu)),
    "function of one's own": Case(inside(lambda layer, x: Doubles.apply(layer(x)))),
    "full backward hook": Case(hooked(lambda s: s.second.up.register_full_backward_hook, doubled)),
    "full backward hook of all": Case(hooked(lambda s: s.register_full_backward_hook, doubled)),
    "full backward pre-hook": Case(hooked(lambda s: s.second.up.register_full_backward_pre_hook, doubled)),
    "old backward hook": Case(hooked(lambda s: s.second.up.register_backward_hook, lambda m, into, out: None), "", "would not call as B does"),
    "hook on a weight": Case(hooked(lambda s: s.second.up.weight.register_hook, lambda gradient: gradient * 2)),
    "hook on several weights": Case(
        on(lambda s: torch.autograd.graph.register_multi_grad_hook([s.second.up.weight, s.second.down.weight], lambda found: None)),
        torch_reason=("", NOT_CALLED),
    ),
    "hook after accumulation": Case(
        hooked(lambda s: s.second.up.weight.register_post_accumulate_grad_hook, halved), torch_reason=("", NOT_CALLED)
    ),
    "hook on the accumulator": Case(on(lambda s: (node := accumulator(s), node.register_hook(lambda into, out: None))), torch_reason=("", NOT_CALLED)),
    "pre-hook on the accumulator": Case(on(lambda s: (node := accumulator(s), node.register_prehook(lambda out: (out[0] * 2,)))), torch_reason=("", NOT_CALLED)),
    "hook on a result": Case(inside(with_hook), torch_reason=("", TWICE)),
    "pre-hook on a node": Case(inside(partial(with_hook, node="register_prehook")), torch_reason=("", TWICE)),
    "hook on a node": Case(inside(partial(with_hook, node="register_hook")), "", "which W would not call", torch_reason=("", TWICE)),
    "hook on an input": Case(inside(with_hook_on_input)),
    "weight norm": Case(on(lambda s: nn.utils.parametrizations.weight_norm(s.second.up))),
    "spectral norm": Case(on(lambda s: nn.utils.parametrizations.spectral_norm(s.second.up))),
    "frozen": Case(on(lambda s: s.second.up.requires_grad_(False))),
    "one weight twice": Case(on(lambda s: setattr(s.second.up, "weight", s.first.down.weight)), torch_reason=("", "a second time")),
}

COPIED = ("ddp", "replicate", "fsdp1", "fully_shard")
"""How the names of those begin that need copies."""

WHOLE = [("one_f_one_b", {"P": 2, "M": 4}), ("gpipe", {"P": 2, "M": 4})]
SPLIT = [("zb1p", {"P": 2, "M": 4}), ("zero_bubble_v", {"P": 2, "M": 4}), ("dualpipe_v", {"P": 2, "M": 4})]


def programs() -> list[ppcc.Program]:
    wanted = [*WHOLE, *SPLIT] if FULL_MATRIX else [WHOLE[0], SPLIT[0]]
    return [ppcc.compile(name, params=values) for name, values in wanted]


def splits(program: ppcc.Program) -> bool:
    return any(action.op == "I" for actions in program.actions for action in actions)


def make_stages(case: Case, count: int, parallelism: Parallelism, hosted: set[int]) -> list[nn.Module]:
    """The stages, wrapped; those that are averaged over copies on their rank only."""
    torch.manual_seed(7)
    stages = [Stage().double() for _ in range(count)]
    for stage in stages:
        case.alone(stage)
    for number in sorted(hosted):
        torch.manual_seed(number)
        stages[number] = case.wrap(stages[number], parallelism)  # type: ignore[assignment]
    return list(stages)


def gradients(module: nn.Module) -> dict[str, Tensor]:
    found = {}
    for name, weight in module.named_parameters():
        grad = weight.grad.full_tensor() if isinstance(weight.grad, DTensor) else weight.grad
        name = re.sub(r"(^|\.)(module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.)", "", name).removeprefix(".")
        if grad is not None:
            found[name] = grad.clone()
    return found


def expected(case: Case, rank: int, program: ppcc.Program, parallelism: Parallelism) -> list[dict[str, Tensor]]:
    """Of each stage, without a pipeline: with the same hooks, or, where copies share, the mean of what plain copies have."""
    count = program.pipes[0].num_stages
    stages = make_stages(case, count, parallelism, set() if case.shares else set(range(count)))
    batch, target = batch_of_rank(rank, program.num_microbatches)
    train_alone(stages, batch, target, program.num_microbatches)
    found = list(map(gradients, stages))
    for of_stage in found if case.shares else ():
        for name, gradient in sorted(of_stage.items()):
            dist.all_reduce(gradient, group=parallelism.replicas)
            of_stage[name] = gradient / 2
    return found


def of_runtime(rank: int, program: ppcc.Program, mine: dict[int, nn.Module], case: Case, parallelism: Parallelism, pipeline: Any, mode: str) -> None:
    batch, target = batch_of_rank(rank, program.num_microbatches)
    options: dict[str, Any] = {}
    if mode == "given":
        one = batch.tensor_split(program.num_microbatches)[0].to("meta")
        options["shapes"] = dict.fromkeys(range(program.pipes[0].num_stages), one)
    if mode == "dynamic":
        options["variable_shapes"] = True
    if case.shares:
        options["groups"] = {"data_parallel": parallelism.replicas}
    Runtime(program, mine, loss_fn=loss_fn, group=pipeline, **options).step(batch, target=target)


def of_torch(rank: int, program: ppcc.Program, mine: dict[int, nn.Module], case: Case, pipeline: Any) -> None:
    (pipe,) = program.pipes
    stages = [PipelineStage(module, stage, pipe.num_stages, torch.device("cpu"), group=pipeline) for stage, module in mine.items()]
    runtime = load_torch_runtime(program, stages, loss_fn=loss_fn, fsdp=case.runs_module)
    batch, target = batch_of_rank(rank, program.num_microbatches)
    here = rank % 2
    given = [batch] if pipe.rank_of_stage[0] == here else []
    asked = {"target": target, "losses": []} if pipe.rank_of_stage[-1] == here else {}
    runtime.step(*given, **asked)


def causes(error: BaseException | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {error}; {causes(error.__cause__)}"


@contextmanager
def explained(label: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{label}: {type(error).__name__}: {error}") from error


def reason_of(case: Case, program: ppcc.Program, mode: str) -> str:
    """Why it is refused; nothing where it works."""
    reasons = case.torch_reason if mode == "torch" and case.torch_reason is not None else (case.full_reason, case.split_reason)
    return reasons[splits(program)]


def run_case(rank: int, name: str, program: ppcc.Program, parallelism: Parallelism, pipeline: Any, mode: str, folder: str) -> None:
    case, label = CASES[name], f"{name}, {program.name}, {mode}, rank {rank}"
    reason = reason_of(case, program, mode)
    hosted = {stage for _, stage in program.local_stages(rank % 2)}
    count = program.pipes[0].num_stages
    modules = make_stages(case, count, parallelism, hosted)
    mine = {stage: modules[stage] for stage in sorted(hosted)}
    run = partial(of_torch, rank, program, mine, case, pipeline) if mode == "torch" else partial(of_runtime, rank, program, mine, case, parallelism, pipeline, mode)
    if reason:
        try:
            run()
        except Exception as error:
            if mode == "torch":
                for group in (pipeline, parallelism.replicas):  # Lest other ranks wait.
                    end_group(group)
            assert re.search(f"{reason}|{PEER_CLOSED}" if mode == "torch" else reason, causes(error)), f"{label}: {causes(error)}"
            if re.search(reason, causes(error)):
                Path(folder, f"{name}, {program.name}").touch()
        else:
            raise AssertionError(f"{label} is not refused")
        num_forwards = sum(part.num_forwards for module in mine.values() for part in module.modules() if isinstance(part, Stage))
        if mode == "inferred" and not case.runs_module:
            assert num_forwards == 0, f"{label}: ran before"
        assert mode == "torch" or not any(map(gradients, mine.values())), f"{label}: has gradients"
        return
    wanted = expected(case, rank, program, parallelism)
    with explained(label):
        run()
    for stage, module in mine.items():
        found = gradients(module)
        assert found.keys() == wanted[stage].keys(), f"{label}, stage {stage}: {sorted(found)} and not {sorted(wanted[stage])}"
        for weight, gradient in found.items():
            deviation = float((gradient - wanted[stage][weight]).abs().max())
            assert deviation <= TOLERANCE, f"{label}, stage {stage}: {weight} is off by {deviation}"


PEER_CLOSED = "Connection (closed|reset) by peer"
"""What PyTorch's runtime says on ranks that wait for one that has refused its stage, and ended its groups."""


def run_matrix(rank: int, names: list[str], texts: list[str], mode: str, folder: str) -> None:
    pipeline, replicas = make_pipeline_groups(rank)
    pairs = [(program, name) for program in map(ppcc.Program.from_json, texts) for name in names]
    for program, name in sorted(pairs, key=lambda pair: bool(reason_of(CASES[pair[1]], pair[0], mode))):
        if mode == "torch" and reason_of(CASES[name], program, mode):
            pipeline, replicas = make_pipeline_groups(rank)  # They end with it.
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()  # It stops compiling what it has compiled often.
        run_case(rank, name, program, Parallelism(replicas), pipeline, mode, folder)


@pytest.mark.parametrize("mode", os.environ.get("PPCC_HOWS", "inferred,given,dynamic,torch" if FULL_MATRIX else "inferred,torch").split(","))
def test_gradients_are_right_or_the_stage_is_refused(mode: str, tmp_path: Path) -> None:
    names = [name for name in CASES if hasattr(FSDPModule, "finalize_backward") or not name.startswith("fully_shard")]
    for ranks, copied in ((2, False), (4, True)):
        own = [name for name in names if name.startswith(COPIED) == copied]
        spawn.run(run_matrix, ranks, own, [program.json for program in programs()], mode, str(tmp_path))
    refused = {f"{name}, {program.name}" for name in names for program in programs() if reason_of(CASES[name], program, mode)}
    assert {path.name for path in tmp_path.iterdir()} == refused
    if len(names) < len(CASES):
        pytest.skip("all but fully_shard: it needs PyTorch 2.15")


# DistributedDataParallel.


def run_ddp(rank: int, texts: list[str]) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    pipeline, replicas = make_pipeline_groups(rank)
    for program in map(ppcc.Program.from_json, texts):
        count, times = max(pipe.num_stages for pipe in program.pipes), 2
        reductions: list[int] = []

        def counted(group, bucket, reductions=reductions):  # type: ignore[no-untyped-def]  # Which DDP would check.
            reductions.append(bucket.index())
            return allreduce_hook(group, bucket)

        case = Case(ddp, shares=True)
        hosted = {stage for _, stage in program.local_stages(rank % 2)}
        modules = make_stages(case, count, Parallelism(replicas), hosted)
        mine: dict[int, Any] = {stage: modules[stage] for stage in sorted(hosted)}
        for module in mine.values():
            module.register_comm_hook(replicas, counted)
        with pytest.raises(UsageError, match="dw_builder is for plain stages: nothing would reduce the gradients"):
            Runtime(program, mine, loss_fn=loss_fn, group=pipeline, dw_builder={min(mine): lambda: lambda: None})
        runtime = Runtime(program, mine, loss_fn=loss_fn, group=pipeline)
        batch, target = batch_of_rank(rank, program.num_microbatches)
        for number in range(times):
            assert not reductions
            runtime.step(batch, target=target, reduce_grads=number == times - 1)
        assert reductions == [0] * len(mine), f"{program.name}: {reductions}"
        wanted = expected(case, rank, program, Parallelism(replicas))
        for stage, module in mine.items():
            for name, gradient in gradients(module).items():
                deviation = float((gradient - times * wanted[stage][name]).abs().max())
                assert deviation <= TOLERANCE, f"{program.name}, stage {stage}: {name} is off by {deviation}"


def test_ddp_reduces_once_when_the_last_gradient_is_added() -> None:
    programs = [
        ppcc.compile("zb1p", P=2, M=4),
        ppcc.compile("dualpipe", P=2, M=4),  # Each stage has replicas in two pipes, too.
        ppcc.compile("interleaved_1f1b", P=2, M=4, rules="reduce_grads"),
    ]
    spawn.run(run_ddp, 4, [program.json for program in programs])


# Tensor parallelism.


class Spread(nn.Module):
    """Takes a tensor, and DTensors of any placements; `out` makes one of its result."""

    def __init__(self, out: Any = None) -> None:
        super().__init__()
        self.up, self.down, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), out

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x, DTensor):
            x = x.redistribute(placements=[Replicate()]).to_local()
        y = self.down(torch.tanh(self.up(x)))
        return y if self.out is None or isinstance(y, DTensor) else DTensor.from_local(y, self.out, [Replicate()], run_check=False)  # type: ignore[no-any-return]


def run_dtensors(rank: int, texts: list[str]) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "tp"))
    batch, target = (torch.randn(8, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))

    def loss(output: Tensor, wanted: Tensor) -> Tensor:
        return loss_fn(output.full_tensor() if isinstance(output, DTensor) else output, wanted)

    def plain(count: int) -> list[nn.Module]:
        torch.manual_seed(3)
        return [Spread().double() for _ in range(count)]

    def step(program: ppcc.Program, gives: Any, **options: Any) -> dict[int, nn.Module]:
        """With stages that give DTensors."""
        modules = plain(program.pipes[0].num_stages)
        mine = {stage: modules[stage] for _, stage in program.local_stages(rank // 2)}
        for module in mine.values():
            if gives is None:  # It has no weights that are DTensors.
                module.out = mesh["tp"]
            else:
                last = RowwiseParallel(output_layouts=gives, use_local_output=False)
                parallelize_module(module, mesh["tp"], {"up": ColwiseParallel(), "down": last})
        Runtime(program, mine, loss_fn=loss, **{"mesh": mesh, **options}).step(batch, target=target)
        return mine

    for program in map(ppcc.Program.from_json, texts):
        stages = plain(program.pipes[0].num_stages)
        train_alone(stages, batch, target, 4)
        for gives in (Shard(0), Shard(1), Replicate(), Partial(), None):
            for number, module in step(program, gives).items():
                found, wanted = gradients(module), gradients(stages[number])
                assert found.keys() == wanted.keys()
                assert all(float((found[name] - wanted[name]).abs().max()) <= TOLERANCE for name in found), (program.name, gives, number)
    reason = r"stage . returned a DTensor, but stages hand over only those over dimensions of the Runtime's `mesh`, without variable_shapes"
    with pytest.raises(UsageError, match=reason):
        step(program, Shard(0), mesh=None, group=mesh.get_group("pp"))
    with pytest.raises((UsageError, StepError), match=reason):  # The last: it ends all groups.
        step(program, Shard(0), variable_shapes=True)


def test_stages_hand_over_dtensors_over_a_mesh() -> None:
    programs = [ppcc.compile(name, P=2, M=4) for name in ("one_f_one_b", "zb1p", "zero_bubble_v")]
    spawn.run(run_dtensors, 4, [*(program.json for program in programs), ppcc.compile("one_f_one_b", P=2, M=4, rules="release").json])
