"""Overlap groups whose stages exchange tokens with other experts: an exchange of one half runs while the other computes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import Half, Runtime, UsageError, StepError, yield_to_other, interleave
from torch import Tensor, nn

from . import spawn
from .models import WIDTH, loss_fn, make_batch, make_stages, make_pipeline_groups

log: list[str] = []


class Exchange(torch.autograd.Function):
    """Rows go to the expert that they are for, or come back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, group: dist.ProcessGroup, name: str) -> Tensor:
        ctx.group, ctx.name = group, name
        return exchanged(rows, group, f"F {name}")

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return exchanged(gradient, ctx.group, f"B {ctx.name}"), None, None


def exchanged(rows: Tensor, group: dist.ProcessGroup, name: str) -> Tensor:
    result = torch.empty_like(rows)
    work = dist.all_to_all_single(result, rows.contiguous(), group=group, async_op=True)
    log.append(f"{name} begins")
    yield_to_other()
    work.wait()
    log.append(f"{name} has ended")
    return result


class Experts(nn.Module):
    """A mixture of two experts, one a process, each for half of the rows."""

    group: dist.ProcessGroup

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.expert = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        exchange: Any = Exchange.apply
        here = torch.tanh(self.expert(exchange(self.gate(x), self.group, "dispatch")))
        return x + exchange(here, self.group, "combine")  # type: ignore[no-any-return]


class Overlapping(Experts):
    def overlap_f_b(self, forward: Half, backward: Half) -> None:
        log.append("group")
        assert [action.op for action in forward.actions] == ["F"]
        interleave(forward, backward)
        log.append("end")


IN_TURNS = [
    "F dispatch begins",
    "B combine begins",
    "F dispatch has ended",
    "F combine begins",
    "B combine has ended",
    "B dispatch begins",
    "F combine has ended",
    "B dispatch has ended",
]
"""Each exchange stands between its begin and its end beside something that the other half computes."""


def gradients(rank: int, program: ppcc.Program, block: type[Experts]) -> list[Tensor]:
    pipeline, block.group = make_pipeline_groups(rank)
    count = program.pipes[0].num_stages
    copy = rank // 2
    modules = make_stages(2 * count, block)[copy * count : (copy + 1) * count]
    mine = {stage: modules[stage] for _, stage in program.local_stages(rank % 2)}
    batch, target = (tensor.chunk(2)[copy] for tensor in make_batch(2 * program.num_microbatches))
    shapes = dict.fromkeys(range(count), batch.chunk(program.num_microbatches)[0].to("meta"))
    runtime = Runtime(program, mine, loss_fn=loss_fn, group=pipeline, shapes=shapes)
    log.clear()
    runtime.step(batch, target=target)
    return [weight.grad for module in mine.values() for weight in module.parameters() if weight.grad is not None]


def groups_of(program: ppcc.Program, rank: int) -> int:
    """With a forward and a backward."""
    ops = [{action.op for action in group.actions} for group in program.groups(rank)]
    return sum("F" in of and bool(of & {"B", "I"}) for of in ops)


def run_experts(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        wanted = gradients(rank, program, Experts)
        alone = list(log)
        assert all(begin.replace("begins", "has ended") == end for begin, end in zip(alone[::2], alone[1::2], strict=True))
        found = gradients(rank, program, Overlapping)
        assert len(found) > 3 and all(map(torch.equal, wanted, found)), program.name
        groups = [log[at + 1 : log.index("end", at)] for at, word in enumerate(log) if word == "group"]
        assert len(groups) == groups_of(program, rank % 2) > 1
        assert all(group == IN_TURNS for group in groups), (program.name, groups)
        assert sorted(alone) == sorted(word for word in log if word not in ("group", "end"))


def test_exchanges_overlap_the_other_half() -> None:
    programs = [
        ppcc.compile("dualpipe", P=2, M=8),
        ppcc.compile("dualpipe_v", P=2, M=8),
        ppcc.compile("dualpipe", P=2, M=8, rules=["reduce_replicas"]),
    ]
    spawn.run(run_experts, 4, [program.json for program in programs])


ALONE = """
schedule alone() {
  ranks 1; microbatches 2; placement linear;
  on rank r { F(0); overlap { F(0); B(0); } B(0); }
}
"""


def step_alone(block: type[nn.Module]) -> None:
    batch, target = make_batch(2)
    program = ppcc.compile_source(ALONE)
    Runtime(program, {0: make_stages(1, block)[0]}, loss_fn=loss_fn).step(batch, target=target)


class Simple(nn.Module):
    """With a place to give way in each half; may throw in one of them, in its second forward."""

    throws = ""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        yield_to_other()
        self.calls += not isinstance(x, torch._subclasses.FakeTensor)
        if self.throws == "F" and self.calls == 2:
            raise ValueError("out of luck")
        x = self.inner(x)
        if x.requires_grad:
            x.register_hook(self.meet)
        return x

    def meet(self, gradient: Tensor) -> None:
        yield_to_other()
        if self.throws == "B":
            raise ValueError("out of luck")

    def overlap_f_b(self, forward: Half, backward: Half) -> None:
        interleave(forward, backward)


@pytest.mark.parametrize(("op", "action"), [("F", "0F1"), ("B", "0B0")])
def test_a_half_that_throws_ends_both(op: str, action: str) -> None:
    class Throws(Simple):
        throws = op

    step_alone(Simple)
    for _ in range(3):
        with pytest.raises(StepError, match=rf"rank 0, {action} .*ValueError: out of luck"):
            step_alone(Throws)


def test_both_halves_have_to_run_once() -> None:
    class Never(Simple):
        def overlap_f_b(self, forward: Half, backward: Half) -> None:
            forward()

    class Twice(Simple):
        def overlap_f_b(self, forward: Half, backward: Half) -> None:
            forward()
            forward()

    with pytest.raises(UsageError, match=r"0B0 was not run by overlap_f_b\(\)"):
        step_alone(Never)
    with pytest.raises(UsageError, match=r"0F1 was run twice by overlap_f_b\(\)"):
        step_alone(Twice)


def test_halves_inherit_autocast_and_grad_mode() -> None:
    found: list[Any] = []

    def look() -> None:
        casts = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()
        found.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), *casts))

    with torch.no_grad(), torch.autocast("cpu", torch.float16, cache_enabled=False):
        interleave(look, look)
    assert found == [(False, False, True, torch.float16, False)] * 2
    found.clear()
    interleave(look, look)
    assert found[0] == found[1] and found[0][:3] == (True, False, False)


def test_two_threads_interleave_one_after_another() -> None:
    steps: list[str] = []

    def half(name: str) -> Callable[[], None]:
        def run() -> None:
            for _ in range(3):
                steps.append(name)
                time.sleep(0.02)
                yield_to_other()

        return run

    threads = [threading.Thread(target=interleave, args=(half(f"F of {name}"), half(f"B of {name}")), daemon=True) for name in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert [name[-1] for name in steps] in (["x"] * 6 + ["y"] * 6, ["y"] * 6 + ["x"] * 6)
    assert [name[0] for name in steps] == ["F", "B"] * 6
