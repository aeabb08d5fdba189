"""Programs in torchtitan, by its option `pipeline_parallel_schedule_csv`, where torchtitan is installed."""

from __future__ import annotations

import importlib.util
import os
import tempfile

import ppcc
import pytest
import torch
from torch import Tensor

from . import spawn
from .models import ROWS, assert_same_gradients, loss_fn, make_batch, make_stages, reference

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torchtitan") is None, reason="NOT RUN because torchtitan is not installed"
)

RANKS, MICROBATCHES = 4, 8


def run_all(rank: int, texts: list[str]) -> None:
    for text in texts:
        run_one(rank, ppcc.Program.from_json(text))


def run_one(rank: int, program: ppcc.Program) -> None:
    from torch.distributed.pipelining import PipelineStage
    from torchtitan.config import ParallelismConfig
    from torchtitan.distributed.pipeline_parallel import _build_pipeline_schedule

    (pipe,) = program.pipes
    wanted, _ = reference(pipe.num_stages, program.microbatches)
    modules = make_stages(pipe.num_stages)
    mine = [
        PipelineStage(modules[stage], stage, pipe.num_stages, torch.device("cpu"))
        for _, stage in program.stages_of(rank)
    ]

    def loss(output: Tensor, target: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        # torchtitan does not scale gradients.
        return loss_fn(output, target) / program.microbatches, {}

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "schedule.csv")
        with open(path, "w") as file:
            file.write(program.to_csv("compute_only"))
        schedule = _build_pipeline_schedule(
            parallelism=ParallelismConfig(
                pipeline_parallel_degree=RANKS,
                pipeline_parallel_schedule_csv=path,
                pipeline_parallel_microbatch_size=ROWS,
            ),
            local_batch_size=ROWS * program.microbatches,
            stages=mine,
            loss_fn=loss,
        )
    batch, target = make_batch(program.microbatches)
    given = [batch] if pipe.rank_of_stage[0] == rank else []
    asked = {"target": target, "losses": []} if pipe.rank_of_stage[-1] == rank else {}
    schedule.step(*given, **asked)
    for _, stage in program.stages_of(rank):
        assert_same_gradients(modules[stage], wanted[stage], f"{program.name}, rank {rank}, stage {stage}")


def test_gradients_equal_those_without_a_pipeline() -> None:
    programs = [
        ppcc.compile("interleaved_1f1b", P=RANKS, M=MICROBATCHES, V=2),
        ppcc.compile("zero_bubble_v", P=RANKS, M=MICROBATCHES),
    ]
    spawn.run(run_all, RANKS, [program.json for program in programs])
