"""Programs on the loader: gradients, losses and activations."""

from __future__ import annotations

import logging
import re

import ppcc
import pytest
import torch
from ppcc.torch import Runtime

from . import spawn
from .models import TOLERANCE, Block, Plain, assert_same_gradients, loss_fn, make_batch, make_stages, own_stages, reference

NEWCOMER = """
// Breadth first over two chunks, the backward split, W after each pair of I.
schedule mine(P: int = 2, M: int = 4) {
  ranks P;
  microbatches M;
  placement wave(2);
  on rank r {
    repeat M { F(0); }
    repeat M { F(1); }
    repeat M { I(1); }
    repeat M { I(0); W; W; }
  }
}
"""


def has_ranks(info: ppcc.ScheduleInfo) -> bool:
    """Whether a schedule can have several ranks."""
    return "P" in info.parameters


def values(info: ppcc.ScheduleInfo, ranks: int) -> dict[str, ppcc._run.Value]:
    """Parameters for some ranks: enough microbatches for every schedule of the library."""
    given: dict[str, ppcc._run.Value] = {"P": ranks}
    if "M" in info.parameters:
        given["M"] = 2 * ranks + (4 if ranks > 2 else 2)
    return given


# Parameters that are sharded need copies of the pipeline.
ELSEWHERE = ("breadth_first_fsdp",)


def is_sharded(program: ppcc.Program) -> bool:
    return any(action.op == "UNSHARD" for action in program.actions[0])


def programs(ranks: int) -> list[ppcc.Program]:
    infos = [info for info in ppcc.schedules() if has_ranks(info) and info.name not in ELSEWHERE]
    library = [ppcc.compile(info.name, params=values(info, ranks)) for info in infos]
    batched = [
        ppcc.compile("one_f_one_b", P=ranks, M=8, fuse="megatron"),
        ppcc.compile("interleaved_1f1b", P=ranks, M=8, comm_order="sweep", prefetch=1),
    ]
    return [*library, *batched, ppcc.compile_source(NEWCOMER, P=ranks, M=6)]


Case = tuple[str, list[int]]
"""A program as JSON, and the activations that its ranks hold at most, as the compiler says."""


def case(program: ppcc.Program) -> Case:
    return program.json, [rank.peak_activations for rank in program.simulate().ranks]


def run_all(rank: int, cases: list[Case]) -> None:
    for text, activations in cases:
        run_one(rank, ppcc.Program.from_json(text), activations[rank])


def run_one(rank: int, program: ppcc.Program, activations: int) -> None:
    count = max(pipe.num_stages for pipe in program.pipes)
    slices = program.pipes[0].slices
    sequences, length = program.num_microbatches // slices, slices if slices > 1 else 3
    wanted, losses = reference(count, sequences, length=length)
    mine = own_stages(program, rank)
    runtime = Runtime(program, mine, loss_fn=loss_fn)
    batch, target = make_batch(sequences, length=length)
    result = runtime.step(batch, target=target)
    for stage, module in mine.items():
        assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
    for first in (microbatch for microbatch in result.losses if microbatch % slices == 0):
        loss = torch.stack([result.losses[microbatch] for microbatch in range(first, first + slices)]).mean()
        assert abs(float(loss - losses[first // slices])) <= TOLERANCE
    assert result.peak_activations == activations, f"{program.name}, rank {rank}: {result.peak_activations} activations"


TWO_MODELS = """
schedule two_models(M: int = 2) {
  ranks 2;
  pipe one   { placement linear; microbatches 0 .. M; }
  pipe other { stages 2; stage s on rank 1 - s; microbatches M .. 2 * M; }
  on rank r { repeat M { F(one); } repeat M { F(other); } repeat M { B(one); } repeat M { B(other); } }
}
"""


def run_two_models(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)
    half = program.num_microbatches // 2
    modules = {"one": make_stages(2), "other": make_stages(2, Plain)}
    mine = {(pipe.name, stage): modules[pipe.name][stage] for pipe, stage in program.local_stages(rank)}
    batch, target = make_batch(half)
    runtime = Runtime(program, mine, loss_fn=loss_fn)
    runtime.step(batch.repeat(2, 1, 1), target=target.repeat(2, 1, 1))
    for name, block in (("one", Block), ("other", Plain)):
        wanted, _ = reference(2, half, block)
        for stage in range(2):
            if (name, stage) in mine:
                for weight in wanted[stage].parameters():
                    assert weight.grad is not None
                    weight.grad /= 2  # The mean is over the microbatches of both.
                assert_same_gradients(mine[name, stage], wanted[stage], f"{name}, rank {rank}, stage {stage}")


def test_pipes_may_have_stages_of_their_own() -> None:
    spawn.run(run_two_models, 2, ppcc.compile_source(TWO_MODELS).json)


@pytest.mark.parametrize("ranks", [2, 4])
def test_gradients_equal_those_without_a_pipeline(ranks: int) -> None:
    cases = list(map(case, programs(ranks)))
    assert len(cases) > 14
    spawn.run(run_all, ranks, cases)


def test_schedules_of_one_rank_need_no_process_group() -> None:
    alone = [ppcc.compile(info.name, M=4) for info in ppcc.schedules() if not has_ranks(info)]
    run_all(0, [case(program) for program in [*alone, ppcc.compile("one_f_one_b", P=1, M=4)]])


@pytest.mark.parametrize("profile", [False, True])
def test_actions_have_names_in_profiles(profile: bool) -> None:
    runtime = Runtime(ppcc.compile("gpipe", P=1, M=2), {0: make_stages(1, Plain)[0]}, loss_fn=loss_fn, profile=profile)
    batch, target = make_batch(2)
    with torch.profiler.profile() as profiler:
        runtime.step(batch, target=target)
    assert {"0F0", "0F1", "0B0", "0B1"} <= {event.name for event in profiler.events()}


def test_what_a_rank_does_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ppcc")
    runtime = Runtime(ppcc.compile("one_f_one_b", P=1, M=1), {0: make_stages(1, Plain)[0]}, loss_fn=loss_fn)
    batch, target = make_batch(1)
    runtime.step(batch, target=target)
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("ppcc.torch.")]
    assert re.fullmatch(r"rank 0 runs one_f_one_b\(.*\), of digest \w{32}: 2 actions", logged[0])
    assert logged[1:] == ["stage 0 of pipe main returns float64[2, 3, 6]", "0F0", "0B0"]
