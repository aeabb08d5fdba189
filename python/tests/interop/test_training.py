"""Training: losses over many steps equal those without a pipeline."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed.checkpoint as dcp
from ppcc.torch import Checkpoint, Runtime, RuntimeMisuse
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from . import spawn
from .models import TOLERANCE, Plain, assert_same_gradients, loss_fn, make_batch, make_stages, reference

STEPS, BLOCKS, ROWS, WIDE = 50, 4, 16, 16
MAX_NORM = 0.5
OVERFLOWS = (3, 11, 30)
"""Steps in which one weight of the first block, on one rank, has a gradient that is no number."""


class Summand(nn.Module):
    """With `mixed` it computes in bfloat16; weights and what is handed on are float32. Else all is float64."""

    def __init__(self, mixed: bool) -> None:
        super().__init__()
        self.mixed = mixed
        self.inner = nn.Linear(WIDE, WIDE, dtype=torch.float32 if mixed else torch.float64)
        self.overflows = False

    def forward(self, x: Tensor) -> Tensor:
        bias = self.inner.bias * 1
        if self.overflows and bias.requires_grad:
            bias.register_hook(lambda gradient: gradient * float("inf"))
        with torch.autocast("cpu", torch.bfloat16, self.mixed):
            return x + torch.tanh(nn.functional.linear(x, self.inner.weight, bias)).to(x.dtype)


def blocks(mixed: bool) -> list[nn.Module]:
    torch.manual_seed(3)
    return [Summand(mixed) for _ in range(BLOCKS)]


def data(step: int, mixed: bool) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(ROWS, WIDE, generator=generator, dtype=torch.float32 if mixed else torch.float64)
    return x, x.roll(1, 1).tanh()


def scaler() -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=6)


def unpipelined(microbatches: int, mixed: bool) -> list[float]:
    """Two batches a step, one step with Adam; the first and the last block have one weight."""
    modules: Any = blocks(mixed)
    modules[-1].inner.weight = modules[0].inner.weight
    weights = list(dict.fromkeys(weight for module in modules for weight in module.parameters()))
    optimizer, scale = torch.optim.Adam(weights, lr=0.01), scaler()
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        modules[0].overflows = step in OVERFLOWS
        total = 0.0
        for part in range(2):
            batch, target = data(2 * step + part, mixed)
            for x, y in zip(batch.chunk(microbatches), target.chunk(microbatches), strict=True):
                for module in modules:
                    x = module(x)
                loss = loss_fn(x, y) / microbatches
                scale.scale(loss).backward()
                total += float(loss.detach())
        scale.unscale_(optimizer)
        nn.utils.clip_grad_norm_(weights, MAX_NORM)
        scale.step(optimizer)
        scale.update()
        losses.append(total)
    return losses


def name_of(per_stage: int) -> Any:
    def name(stage: int, name: str) -> str:
        number, _, rest = name.partition(".")
        return f"blocks.{stage * per_stage + int(number)}.{rest}"

    return name


def run_training(rank: int, text: str, mixed: bool, first: int, last: int, folder: str) -> None:
    """Some of the steps: from the checkpoint in the folder, if there is one, to another one."""
    program = ppcc.Program.from_json(text)
    count = program.pipes[0].num_stages
    per_stage, modules = BLOCKS // count, blocks(mixed)
    mine = {stage: nn.Sequential(*modules[stage * per_stage : (stage + 1) * per_stage]) for _, stage in program.stages_of(rank)}
    weights = list(dict.fromkeys(weight for module in mine.values() for weight in module.parameters()))
    runtime = Runtime(
        program,
        mine,
        loss_fn=loss_fn,
        tied=[{0: "0.inner.weight", -1: f"{per_stage - 1}.inner.weight"}],
        optimizer=torch.optim.Adam(weights, lr=0.01),
        scaler=scaler(),
        max_norm=MAX_NORM,
    )
    state = Checkpoint(runtime, name_of(per_stage))
    if first > 0:
        if rank == 0:
            with torch.no_grad():
                weights[0].zero_()
        dcp.load({"train": state}, checkpoint_id=f"{folder}/at{first}")
    has_step = any(action.kind.letters == "STEP" for action in program.actions[rank])
    losses, skipped = [], []
    for step in range(first, last):
        assert runtime.optimizer is not None
        runtime.optimizer.zero_grad()
        modules[0].overflows = rank == 0 and step in OVERFLOWS  # type: ignore[assignment]
        batch, target = data(2 * step, mixed)
        total = sum(runtime.step(batch, target=target, reduce_grads=False, share_losses=True).losses.values())
        batch, target = data(2 * step + 1, mixed)
        result = runtime.step(batch, target=target, share_losses=True)
        total += sum(result.losses.values())
        if not (result.stepped if has_step else runtime.step_optimizer()):
            skipped.append(step)
        losses.append(float(total) / program.microbatches)
    dcp.save({"train": state}, checkpoint_id=f"{folder}/at{last}")
    assert skipped == [step for step in OVERFLOWS if first <= step < last]
    if rank == 0:
        Path(folder, f"losses{last}").write_text("\n".join(map(str, losses)))


@pytest.mark.parametrize(
    ("name", "microbatches", "rules", "other", "mixed"),
    [
        ("one_f_one_b", 4, ["recompute", "reduce_embedding", "step"], "zero_bubble_v", False),
        ("zb1p", 4, [], "one_f_one_b", True),
        ("dualpipe", 8, ["recompute", "reduce_replicas", "reduce_embedding", "step"], "one_f_one_b", False),
    ],
)
def test_losses_over_fifty_steps_and_a_resume_on_other_ranks(
    name: str, microbatches: int, rules: list[str], other: str, mixed: bool
) -> None:
    wanted = unpipelined(microbatches, mixed)
    assert wanted[-1] < wanted[0] / 2
    half = STEPS // 2
    # In bfloat16 a sum in another order is another number.
    tolerance = 2e-3 if mixed else 1e-9
    with tempfile.TemporaryDirectory() as folder:
        before = ppcc.compile(name, P=4, M=microbatches, rules=rules)
        spawn.run(run_training, 4, before.json, mixed, 0, half, folder)
        found = list(map(float, Path(folder, f"losses{half}").read_text().split()))
        after = ppcc.compile(other, P=2, M=microbatches)
        spawn.run(run_training, 2, after.json, mixed, half, STEPS, folder)
        found += map(float, Path(folder, f"losses{STEPS}").read_text().split())
    for step, (got, want) in enumerate(zip(found, wanted, strict=True)):
        assert abs(got - want) <= tolerance * want, f"{name}, step {step}: {got}, but {want}"


# Beside the pipeline: copies, FSDP, tensor parallelism.


def run_mesh(rank: int, texts: list[str], kind: str) -> None:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", kind))
    here, copy = mesh.get_local_rank("pp"), mesh.get_local_rank(kind)
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = program.pipes[0].num_stages
        times = 1 if kind == "tp" else 2
        wanted, _ = reference(count, times * program.microbatches)
        whole = torch.nn.utils.clip_grad_norm_([weight for stage in wanted for weight in stage.parameters()], MAX_NORM / 100)
        batch, target = (tensor.chunk(times)[copy % times] for tensor in make_batch(times * program.microbatches))
        modules = make_stages(count)
        mine = {stage: modules[stage] for _, stage in program.stages_of(here)}
        for module in mine.values():
            if kind == "fsdp":
                fully_shard(module, mesh=mesh["fsdp"])
            if kind == "tp":
                parallelize_module(module, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        runtime = Runtime(program, mine, loss_fn=loss_fn, mesh=mesh)
        runtime.step(batch, target=target)
        norm = runtime.clip_grad_norm(MAX_NORM / 100)
        assert abs(float(norm - whole)) <= TOLERANCE, f"{kind}, {program.name}: {norm}, but {whole}"
        for stage, module in mine.items():
            for (name, got), want in zip(module.named_parameters(), wanted[stage].parameters(), strict=True):
                gradient = got.grad.full_tensor() if isinstance(got.grad, DTensor) else got.grad
                assert gradient is not None and want.grad is not None
                difference = float((gradient - want.grad).abs().max())
                assert difference <= TOLERANCE, f"{kind}, {program.name}, stage {stage}: {name} is off by {difference}"


@pytest.mark.parametrize("kind", ["dp", "fsdp", "tp"])
def test_a_mesh_has_more_than_the_pipeline(kind: str) -> None:
    programs = [ppcc.compile("one_f_one_b", P=2, M=4), ppcc.compile("zb1p", P=2, M=4)]
    spawn.run(run_mesh, 4, [program.json for program in programs], kind)


# The norm of replicas and tied weights.


def run_norm(rank: int, text: str, norm_type: float) -> None:
    program = ppcc.Program.from_json(text)
    count = program.pipes[0].num_stages
    wanted: Any = make_stages(count, Plain)
    wanted[-1].inner.weight = wanted[0].inner.weight
    batch, target = make_batch(program.microbatches)
    for x, y in zip(batch.chunk(program.microbatches), target.chunk(program.microbatches), strict=True):
        for stage in wanted:
            x = stage(x)
        (loss_fn(x, y) / program.microbatches).backward()
    weights = dict.fromkeys(weight for stage in wanted for weight in stage.parameters())
    whole = torch.nn.utils.clip_grad_norm_(weights, 0.01, norm_type)
    modules = make_stages(count, Plain)
    mine = {stage: modules[stage] for _, stage in program.stages_of(rank)}
    runtime = Runtime(program, mine, loss_fn=loss_fn, tied=[{0: "inner.weight", -1: "inner.weight"}])
    runtime.step(batch, target=target)
    assert abs(float(runtime.clip_grad_norm(0.01, norm_type) - whole)) <= TOLERANCE
    for stage, module in mine.items():
        assert_same_gradients(module, wanted[stage], f"rank {rank}, stage {stage}")


@pytest.mark.parametrize("norm_type", [2.0, float("inf")])
def test_a_weight_counts_once_in_the_norm(norm_type: float) -> None:
    spawn.run(run_norm, 2, ppcc.compile("dualpipe", P=2, M=4).json, norm_type)


# Compiled stages.


def run_compiled(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = program.pipes[0].num_stages
        wanted, _ = reference(count, program.microbatches, Plain)
        modules = make_stages(count, Plain)
        mine = {stage: torch.compile(modules[stage], backend="aot_eager") for _, stage in program.stages_of(rank)}
        batch, target = make_batch(program.microbatches)
        Runtime(program, mine, loss_fn=loss_fn).step(batch, target=target)  # type: ignore[arg-type]
        for stage in mine:
            assert_same_gradients(modules[stage], wanted[stage], f"{program.name}, rank {rank}, stage {stage}")


def test_stages_may_be_compiled() -> None:
    programs = [ppcc.compile("one_f_one_b", P=2, M=4), ppcc.compile("zb1p", P=2, M=4)]
    spawn.run(run_compiled, 2, [program.json for program in programs])


def test_what_an_optimizer_is_for_is_asked_for() -> None:
    with pytest.raises(RuntimeMisuse, match="`scaler` and `max_norm` are for an optimizer"):
        Runtime(ppcc.compile("gpipe", P=1, M=2), {0: Plain()}, loss_fn=loss_fn, max_norm=1.0)
    with pytest.raises(RuntimeMisuse, match="give the Runtime an optimizer"):
        Runtime(ppcc.compile("gpipe", P=1, M=2), {0: Plain()}, loss_fn=loss_fn).step_optimizer()
