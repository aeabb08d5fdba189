"""What a step takes and gives, and several programs in one Runtime."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, UsageError
from ppcc.torch._channels import Channels
from ppcc.torch._linked import LinkedProgram
from torch import Tensor, nn

from . import spawn
from .models import TOLERANCE, WIDTH, Plain, assert_same_gradients, loss_fn, make_batch, make_stages, own_stages, reference, train_alone
from .where import DEVICE


@pytest.mark.parametrize("rules", ["", "recompute", "offload"])
def test_loss_kwargs_reach_the_loss_as_they_are(rules: str) -> None:
    given: list[Tensor] = []

    def weighted(output: Tensor, target: Tensor, *, weight: Tensor, power: int) -> Tensor:
        given.append(weight)
        return ((output - target).abs() ** power * weight).mean()

    weight = torch.arange(WIDTH, dtype=torch.float64, requires_grad=True)
    (wanted,), (module,) = make_stages(1, Plain), make_stages(1, Plain)
    batch, target = make_batch(4)
    for x, y in zip(batch.chunk(4), target.chunk(4), strict=True):
        (weighted(wanted(x), y, weight=weight, power=3) / 4).backward()
    want, weight.grad = weight.grad, None
    given.clear()
    runtime = Runtime(ppcc.compile("one_f_one_b", P=1, M=4, **({"rules": rules} if rules else {})), {0: module}, loss_fn=weighted)
    result = runtime.step(batch, target=target, loss_kwargs={"weight": weight, "power": 3})
    assert len(given) == 4 and all(one is weight for one in given)
    assert_same_gradients(module, wanted, "stage 0")
    assert want is not None and weight.grad is not None and float((want - weight.grad).abs().max()) <= TOLERANCE
    losses = runtime.eval(batch, target=target, loss_kwargs={"weight": weight, "power": 3}).losses
    assert all(abs(float(losses[number] - loss)) <= TOLERANCE for number, loss in result.losses.items())


class Masked(nn.Module):
    """Takes a mask and a word by name, and hands the mask's rows on with its output: they have no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, rows: Tensor | None = None, *, mask: Tensor, how: str) -> tuple[Tensor, Tensor]:
        assert how == "softly" and (rows is None or not rows.requires_grad)
        kept = mask.mean(-1, keepdim=True).detach()
        return torch.tanh(self.inner(x) * mask + (0 if rows is None else rows)), kept


class Final(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, rows: Tensor) -> Tensor:
        return torch.as_tensor(self.inner(x * rows))


def masked(count: int) -> list[nn.Module]:
    torch.manual_seed(5)
    return [(Final() if stage == count - 1 else Masked()).double() for stage in range(count)]


def run_named(rank: int, texts: list[str]) -> None:
    sent: list[int] = []
    post = Channels.post

    def noted(self: Channels, messages: Any) -> Any:
        sent.extend(len(tensors) for _, _, tensors in messages)
        return post(self, messages)

    Channels.post = noted  # type: ignore[method-assign]
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = program.pipes[0].num_stages
        wanted, modules = masked(count), masked(count)
        batch, target = make_batch(program.num_microbatches)
        mask = torch.rand(batch.shape, dtype=torch.float64, generator=torch.Generator(DEVICE).manual_seed(4))
        cut = [tensor.tensor_split(program.num_microbatches) for tensor in (batch, target, mask)]
        for x, y, m in zip(*cut, strict=True):
            values: Any = (x,)
            for stage in wanted[:-1]:
                values = stage(*values, mask=m, how="softly")
            (loss_fn(wanted[-1](*values), y) / program.num_microbatches).backward()
        sent.clear()
        mine = {stage: modules[stage] for _, stage in program.local_stages(rank)}
        runtime = Runtime(program, mine, loss_fn=loss_fn)
        runtime.step(batch, target=target, mask=mask, how="softly")
        for stage, module in mine.items():
            assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
        # Outputs are two tensors, of which one has a gradient.
        assert set(sent) == {1, 2}


def test_stages_take_arguments_by_name() -> None:
    programs = [ppcc.compile("one_f_one_b", P=2, M=4), ppcc.compile("zero_bubble_v", P=2, M=4, rules="recompute")]
    spawn.run(run_named, 2, [program.json for program in programs])


def alone(microbatches: int, module: nn.Module, loss: Callable[..., Tensor] = loss_fn) -> Runtime:
    return Runtime(ppcc.compile("gpipe", P=1, M=microbatches), {0: module}, loss_fn=loss)


def test_unknown_keywords_are_refused() -> None:
    batch, target = make_batch(4)
    named: Any = {"mask": torch.ones_like(batch), "how": "softly"}
    module = masked(2)[0]

    def first(outputs: Any, target: Tensor) -> Tensor:
        return loss_fn(outputs[0], target)

    alone(4, module, first).step(batch, target=target, **named)
    with pytest.raises(UsageError, match="no stage has a parameter `row`; parameters are how, mask, rows, x"):
        alone(4, module, first).step(batch, target=target, row=batch, **named)
    compiled: Any = torch.compile(module, backend="eager")
    with pytest.raises(UsageError, match="no stage has a parameter `row`"):
        alone(4, compiled, first).step(batch, target=target, row=batch, **named)


def test_targets_have_parts() -> None:
    batch, target = make_batch(4)
    weights = torch.rand(len(batch), 1, 1, dtype=torch.float64)

    def weighted(output: Tensor, target: Any) -> Tensor:
        labels, weights = target if isinstance(target, (tuple, list)) else (target["labels"], target["weights"])
        return ((output - labels) ** 2 * weights).mean()

    results = []
    for microbatches, parts in (
        (4, (target, weights)),
        (4, {"labels": target, "weights": weights}),
        (2, {"labels": target, "weights": weights}),
        (2, list(zip(target.chunk(2), weights.chunk(2), strict=True))),
    ):
        (module,) = make_stages(1, Plain)
        if isinstance(parts, list):
            with pytest.raises(UsageError, match="sequence of 2, but must be of 2 tensors"):
                alone(microbatches, module, weighted).step(batch, target=parts)
            continue
        result = alone(microbatches, module, weighted).step(batch, target=parts)
        assert result.loss is not None
        results.append(result.loss)
    assert all(abs(float(loss - results[0])) <= TOLERANCE for loss in results)
    for parts, reason in (
        ((target, weights), "a tuple of 2, as many as microbatches: pass a list if"),
        ({"labels": target, "classes": torch.ones(2)}, "parts of the target have several sizes along dimension 0"),
    ):
        with pytest.raises(UsageError, match=reason):
            alone(2, module, weighted).step(batch, target=parts)
    with pytest.raises(UsageError, match="the batch is a dict with tensors: pass each tensor as an argument of its own"):
        alone(2, module).step({"x": batch}, target=target)


class Frozen(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.requires_grad_(False)


def run_frozen(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)
    module = [Frozen, Plain][rank]().double()
    sent: list[int] = []
    post = Channels.post

    def noted(self: Channels, messages: Any) -> Any:
        sent.extend(len(tensors) for is_send, _, tensors in messages if is_send)
        return post(self, messages)

    Channels.post = noted  # type: ignore[method-assign]
    batch, target = make_batch(program.num_microbatches)
    Runtime(program, {rank: module}, loss_fn=loss_fn).step(batch, target=target)
    assert sent == [1 - rank] * program.num_microbatches


def test_outputs_without_gradient_send_none() -> None:
    spawn.run(run_frozen, 2, ppcc.compile("one_f_one_b", P=2, M=4).json)


class Dropping(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(super().forward(x), 0.5, self.training)


def run_evaluated(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = max(pipe.num_stages for pipe in program.pipes)
        modules, wanted = make_stages(count, Dropping), make_stages(count, Dropping)
        batch, target = make_batch(program.num_microbatches)
        outputs, losses = [], []
        with torch.no_grad():
            for x, y in zip(batch.tensor_split(program.num_microbatches), target.tensor_split(program.num_microbatches), strict=True):
                for stage in wanted:
                    x = stage.eval()(x)
                outputs.append(x)
                losses.append(loss_fn(x, y))
        mine = {stage: modules[stage] for _, stage in program.local_stages(rank)}
        runtime = Runtime(program, mine, loss_fn=loss_fn)
        result = runtime.eval(batch, target=target, share_losses=True)
        assert sorted(result.losses) == list(range(program.num_microbatches))
        assert all(abs(float(result.losses[i] - loss)) <= TOLERANCE for i, loss in enumerate(losses))
        assert all(torch.equal(*output, outputs[i]) for i, output in result.outputs.items())
        assert all(module.training for module in mine.values())
        assert all(weight.grad is None for module in mine.values() for weight in module.parameters())
        assert runtime.eval(batch).losses == {}
        assert runtime.step(batch, target=target, share_losses=True).losses.keys() == result.losses.keys()


def test_evaluation_gives_outputs_and_losses() -> None:
    programs = [
        ppcc.compile("one_f_one_b", P=2, M=4, fuse="megatron"),
        ppcc.compile("zero_bubble_v", P=2, M=4),
        ppcc.compile("dualpipe", P=2, M=4, rules=["recompute", "release"]),
    ]
    spawn.run(run_evaluated, 2, [program.json for program in programs])


def run_some_losses(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)
    mine = own_stages(program, rank, Plain)
    runtime = Runtime(program, mine, loss_fn=loss_fn)
    batch, target = make_batch(4)
    whole = runtime.eval(batch, target=target, share_losses=True).losses
    assert runtime.eval(batch, share_losses=True).losses == {}
    # Its last stage has the microbatches of the other pipe.
    some = runtime.eval(batch, target=target if rank == 0 else None, share_losses=True).losses
    assert sorted(some) == [2, 3] and all(map(torch.equal, some.values(), (whole[2], whole[3])))


def test_losses_without_target_are_not_shared() -> None:
    spawn.run(run_some_losses, 2, ppcc.compile("dualpipe", P=2, M=4).json)


TWO_ENDS = """
schedule two_ends(M: int = 2) {
  ranks 1; microbatches M; placement loop(2);
  on rank r { for m in 0 .. M { F(0); F(1); B(1); B(0); } }
}
"""


def test_two_last_stages_have_one_loss() -> None:
    document = json.loads(ppcc.compile_source(TWO_ENDS).json)
    document["version"], document["pipes"][0]["gaps"] = 3, [0]
    modules = make_stages(2, Plain)
    runtime = Runtime(ppcc.Program.from_json(json.dumps(document)), dict(enumerate(modules)), loss_fn=loss_fn)
    batch, target = make_batch(2)
    result = runtime.step(batch, target=target, return_outputs=True)
    for microbatch, (x, y) in enumerate(zip(batch.chunk(2), target.chunk(2), strict=True)):
        assert all(map(torch.equal, result.outputs[microbatch], [module(x) for module in modules]))
        wanted = sum(float(loss_fn(module(x), y).detach()) for module in modules)
        assert abs(float(result.losses[microbatch]) - wanted) <= TOLERANCE


def run_given(rank: int, text: str) -> None:
    """Nothing is asked where shapes are given, and nothing after the first step."""
    program = ppcc.Program.from_json(text)
    asked: list[int] = []
    tell, agree = dist.broadcast_object_list, dist.all_reduce

    def noted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            asked.append(1)
            return call(*args, **named)

        return counted

    dist.broadcast_object_list, dist.all_reduce = noted(tell), noted(agree)  # type: ignore[assignment]
    wanted, _ = reference(2, program.num_microbatches, Plain)
    batch, target = make_batch(program.num_microbatches)
    modules = make_stages(2, Plain)
    for shapes in ({0: torch.empty(2, 3, WIDTH, dtype=torch.float64, device="meta")}, None):
        modules = make_stages(2, Plain)
        runtime = Runtime(program, {rank: modules[rank]}, loss_fn=loss_fn, shapes=shapes)  # type: ignore[arg-type]
        runtime.step(batch, target=target)
        assert_same_gradients(modules[rank], wanted[rank], f"rank {rank}")
        assert len(asked) == (2 if shapes is None else 0)
        runtime.step(batch, target=target)
        assert len(asked) == (2 if shapes is None else 0)
    runtime.reset_shapes()
    runtime.step(batch[:4], target=target[:4])
    with pytest.raises(UsageError, match="`shapes` lack stage 0 of pipe `main`"):
        Runtime(program, {rank: modules[rank]}, loss_fn=loss_fn, shapes={})
    with pytest.raises(UsageError, match=r"microbatches are float64\[2, 3, 6\], but were float64\[1, 3, 6\]: let all"):
        runtime.step(batch, target=target)


def test_shapes_may_be_given() -> None:
    spawn.run(run_given, 2, ppcc.compile("one_f_one_b", P=2, M=4).json)


# Several programs.


def run_linked(rank: int, texts: list[str]) -> None:
    programs = list(map(ppcc.Program.from_json, texts))
    made: list[object] = []
    new_group = dist.new_group
    dist.new_group = lambda *args, **named: made.append(args) or new_group(*args, **named)  # type: ignore[assignment, func-returns-value]
    modules = make_stages(4, Plain)
    mine = {stage: modules[stage] for _, stage in programs[0].local_stages(rank)}
    runtime = Runtime(programs[0], mine, loss_fn=loss_fn, tied=[{0: "inner.weight", 1: "inner.weight"}])
    groups = len(made)
    for program in [*programs, *programs]:
        runtime.set_program(program)
        assert runtime.program is program
        wanted: Any = make_stages(4, Plain)
        wanted[1].inner.weight = wanted[0].inner.weight
        batch, target = make_batch(program.num_microbatches)
        train_alone(wanted, batch, target, program.num_microbatches)
        for module in mine.values():
            module.zero_grad()
        result = runtime.step(batch, target=target)
        assert bool(result.losses) == (rank == program.pipes[0].rank_of_stage[-1])
        if program.has_backward:
            for stage, module in mine.items():
                assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
    assert len(made) == groups and groups > 0
    with pytest.raises(UsageError, match="the program is for 4 ranks, but the Runtime has 2"):
        runtime.set_program(ppcc.compile("one_f_one_b", P=4, M=4))
    with pytest.raises(UsageError, match=f"rank {rank} was given stage|has no module for stage"):
        runtime.set_program(ppcc.compile("one_f_one_b", P=2, M=4))


FORWARD = """
schedule forward_only(P: int = 2, M: int = 4) {
  ranks P; microbatches M; placement v;
  backward when false;
  on rank r { for m in 0 .. M { F(0); } for m in 0 .. M { F(1); } }
}
"""


def test_one_runtime_runs_several_programs() -> None:
    programs = [
        ppcc.compile("zero_bubble_v", P=2, M=4),
        ppcc.compile("zero_bubble_v", P=2, M=6, rules="recompute"),
        ppcc.compile("dualpipe_v", P=2, M=4),
        ppcc.compile_source(FORWARD),
    ]
    spawn.run(run_linked, 2, [program.json for program in programs])


def test_programs_are_linked_once() -> None:
    made: list[object] = []
    init = LinkedProgram.__init__

    def noted(self: LinkedProgram, *args: Any, **named: Any) -> None:
        made.append(self)
        init(self, *args, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LinkedProgram, "__init__", noted)
        first, second = (ppcc.compile("gpipe", P=1, M=count) for count in (2, 4))
        runtime = Runtime(first, {0: make_stages(1)[0]}, loss_fn=loss_fn)
        for program in (second, first, second):
            runtime.set_program(program)
            batch, target = make_batch(program.num_microbatches)
            runtime.step(batch, target=target)
    assert len(made) == 2


def run_linked_again(rank: int, texts: list[str]) -> None:
    first, second = map(ppcc.Program.from_json, texts)
    batch, target = make_batch(4)
    before = threading.active_count()
    runtime = Runtime(first, {rank: make_stages(2, Plain)[rank]}, loss_fn=loss_fn)
    for _ in range(3):
        runtime.set_program(second)
        # One rank has loaded it again.
        first = ppcc.Program.from_json(texts[0]) if rank == 1 else first
        runtime.set_program(first)
        runtime.reset_shapes()
        runtime.step(batch, target=target)
    names = [thread.name for thread in threading.enumerate()]
    assert names.count(f"ppcc-sends-{1 - rank}") <= 1, names
    del runtime
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("ppcc-sends"):
            thread.join(20)
    assert threading.active_count() <= before + 1  # That which listens for failures stays.


def test_equal_programs_are_linked_once() -> None:
    spawn.run(run_linked_again, 2, [ppcc.compile("one_f_one_b", P=2, M=count).json for count in (4, 2)])
