"""Programs on d9d's executor, where d9d is installed."""

from __future__ import annotations

import importlib.util
import logging
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from . import spawn
from .models import assert_same_gradients, loss_fn, make_batch, make_stages, reference

pytestmark = pytest.mark.skipif(importlib.util.find_spec("d9d") is None, reason="NOT RUN because d9d is not installed")

RANKS = 4


def programs() -> list[ppcc.Program]:
    return [
        ppcc.compile("one_f_one_b", P=RANKS, M=8),
        ppcc.compile("interleaved_1f1b", P=RANKS, M=8, V=2),
        ppcc.compile("zb1p", P=RANKS, M=8),
        ppcc.compile("zero_bubble_v", P=RANKS, M=8),
        ppcc.compile("dualpipe_v", P=RANKS, M=8),
    ]


class Stage(nn.Module):
    """A stage as d9d wants it: with a second argument for all stages, and with its shapes."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: Tensor, shared: None) -> Tensor:
        result: Tensor = self.inner(inputs)
        return result

    def stage_transfer_spec(self, pipeline_input: Tensor, boundary: object) -> Any:
        from d9d.core.types import TensorSpec

        return TensorSpec(shape=tuple(pipeline_input.shape), dtype=pipeline_input.dtype, layout=pipeline_input.layout)


class Context:
    """What the executor asks of d9d's DistributedContext, which cannot be made without CUDA."""

    logger = logging.getLogger("d9d")

    def mesh_for(self, domain: str) -> Context:
        return self

    def get_group(self, name: str) -> dist.ProcessGroup | None:
        return dist.group.WORLD


def run_all(rank: int, texts: list[str]) -> None:
    from d9d.pipelining.infra.stage.communications import StageReceiver

    # Its receive buffers are always on CUDA; everything else of it runs as it is.
    StageReceiver._allocate_buffer = lambda self, spec: torch.empty(  # type: ignore[method-assign]
        spec.shape, dtype=spec.dtype, requires_grad=self._requires_grad
    )
    for text in texts:
        run_one(rank, ppcc.Program.from_json(text))
    from ppcc.torch import UsageError
    from ppcc.torch.d9d import ProgramBuilder

    with pytest.raises(UsageError, match="rank 0 has the program .*, but rank 1 has"):
        ProgramBuilder(ppcc.compile("zb1p" if rank == 1 else "one_f_one_b", P=RANKS, M=8)).compose(8, RANKS)


def run_one(rank: int, program: ppcc.Program) -> None:
    from d9d.pipelining.api import PipelineStageInfo
    from d9d.pipelining.infra.schedule.component.runtime import PipelineScheduleExecutor
    from d9d.pipelining.infra.stage import PipelineStage
    from ppcc.torch.d9d import ProgramBuilder

    (pipe,) = program.pipes
    wanted, _ = reference(pipe.num_stages, program.num_microbatches)
    modules = make_stages(pipe.num_stages)
    topology = dict(enumerate(pipe.rank_of_stage))
    mine = [
        PipelineStage(PipelineStageInfo(stage, pipe.num_stages), Stage(modules[stage]), dist.group.WORLD, topology)
        for _, stage in program.local_stages(rank)
    ]
    executor = PipelineScheduleExecutor(Context(), mine, ProgramBuilder(program))  # type: ignore[arg-type]
    batch, target = make_batch(program.num_microbatches)
    targets = target.tensor_split(program.num_microbatches)
    executor.step(
        batch.tensor_split(program.num_microbatches),
        (None,) * program.num_microbatches,
        lambda output, microbatch: loss_fn(output, targets[microbatch]) / program.num_microbatches,
    )
    for _, stage in program.local_stages(rank):
        assert_same_gradients(modules[stage], wanted[stage], f"{program.name}, rank {rank}, stage {stage}")


def test_gradients_equal_those_without_a_pipeline() -> None:
    spawn.run(run_all, RANKS, [program.json for program in programs()])


def test_refuses_what_d9d_does_not_have() -> None:
    from ppcc.torch import UsageError
    from ppcc.torch.d9d import ProgramBuilder

    for program, reason in [
        (ppcc.compile("dualpipe", P=4, M=8), "one pipe"),
        (ppcc.compile("one_f_one_b", P=2, M=4, fuse="megatron"), "by itself"),
        (ppcc.compile("one_f_one_b", P=2, M=4, comm_order="none"), "no messages"),
        (ppcc.compile("one_f_one_b", P=2, M=4, rules="recompute"), "d9d has no `R`"),
        (ppcc.compile("seq1f1b", P=2, M=4), "slices of one sequence"),
    ]:
        with pytest.raises(UsageError, match=reason):
            ProgramBuilder(program)
    with pytest.raises(UsageError, match="for 8 microbatches, but the job has 9"):
        ProgramBuilder(programs()[0]).compose(9, 4)
