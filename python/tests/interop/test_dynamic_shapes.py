"""Microbatches of different lengths on the loader."""

from __future__ import annotations

import ppcc
import pytest
import torch
from ppcc.torch import Runtime, UsageError
from ppcc.torch._messages import first_early_receive
from ppcc.torch._shapes import TensorInfo
from torch import Tensor, nn

from . import spawn
from .models import ROWS, WIDTH, assert_same_gradients, loss_fn, make_stages
from .where import DEVICE

RANKS = 2


class Choosing(nn.Module):
    """Drops rows by what is in them, and tells which: the shape of its output is not known before it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, kept: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if kept is not None:
            x = x * kept.sum()
        kept = (x.detach()[:, 0, 0] > -0.5).nonzero().flatten()
        return torch.tanh(self.inner(x[kept])), kept


class Last(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, kept: Tensor) -> Tensor:
        return torch.as_tensor(self.inner(x))


def unequal(microbatches: int, seed: int) -> list[Tensor]:
    generator = torch.Generator(DEVICE).manual_seed(seed)
    return [
        torch.randn(ROWS, 2 + number % 3, WIDTH, dtype=torch.float64, generator=generator)
        for number in range(microbatches)
    ]


def unpipelined(stages: list[nn.Module], batch: list[Tensor], target: list[Tensor]) -> None:
    for x, y in zip(batch, target, strict=True):
        values: tuple[Tensor, ...] = (x,)
        for stage in stages:
            output = stage(*values)
            values = output if isinstance(output, tuple) else (output,)
        (loss_of(values[0], y) / len(batch)).backward()


def loss_of(output: Tensor, target: Tensor) -> Tensor:
    return loss_fn(output, target[: output.shape[0]])


def choosing(count: int) -> list[nn.Module]:
    torch.manual_seed(5)
    return [(Last() if stage == count - 1 else Choosing()).double() for stage in range(count)]


def run_all(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = max(pipe.num_stages for pipe in program.pipes)
        batch, target = unequal(program.num_microbatches, 1), unequal(program.num_microbatches, 2)
        for make in (make_stages, choosing):
            wanted, modules = make(count), make(count)
            unpipelined(wanted, batch, target)
            mine = {stage: modules[stage] for _, stage in program.local_stages(rank)}
            runtime = Runtime(program, mine, loss_fn=loss_of, variable_shapes=True)
            runtime.step(batch, target=target)
            for stage, module in mine.items():
                assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")


def test_gradients_equal_those_without_a_pipeline() -> None:
    programs = [
        ppcc.compile("one_f_one_b", P=RANKS, M=6, fuse="megatron"),
        ppcc.compile("interleaved_1f1b", P=RANKS, M=6, comm_order="sweep", prefetch=2),
        ppcc.compile("zero_bubble_v", P=RANKS, M=6),
        ppcc.compile("dualpipe", P=RANKS, M=6, rules=["recompute(1, 1)", "release"]),
    ]
    spawn.run(run_all, RANKS, [program.json for program in programs])


def test_shapes_travel_on_the_host() -> None:
    """Gloo carries them, whatever the default device is."""
    with torch.device("meta"):
        infos = [TensorInfo.of(torch.zeros(2, 3))]
        assert TensorInfo.of_header(TensorInfo.empty_header().copy_(TensorInfo.header(infos))) == infos


def alone() -> ppcc.Program:
    return ppcc.compile("gpipe", P=1, M=3)


def test_unequal_microbatches_are_asked_for() -> None:
    stages = {0: make_stages(1)[0]}
    batch, target = unequal(3, 1), unequal(3, 2)
    runtime = Runtime(alone(), stages, loss_fn=loss_fn)
    with pytest.raises(UsageError, match="microbatches of several shapes, which needs variable_shapes"):
        runtime.step(batch, target=target)
    with pytest.raises(UsageError, match="sequence of 2, but must be of 3 tensors"):
        runtime.step(batch[:2], target=target)
    runtime.step([batch[0]] * 3, target=[target[0]] * 3)


def test_streams_need_late_receives() -> None:
    """There the order of the posts is what has been proven."""
    program = ppcc.compile("gpipe", P=RANKS, M=3)
    late = ppcc.compile("gpipe", P=RANKS, M=3, comm_order="late")
    assert first_early_receive(program.actions[1], program.waits[1]) == "1RECV_F1"
    assert first_early_receive(late.actions[1], late.waits[1]) is None
    batched = ppcc.compile("one_f_one_b", P=RANKS, M=3, fuse="megatron")
    assert first_early_receive(batched.actions[0], batched.waits[0]) is not None
