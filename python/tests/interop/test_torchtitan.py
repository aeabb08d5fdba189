"""Programs in torchtitan, by its option `pipeline_parallel_schedule_csv` and in its Trainer, where torchtitan is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import UsageError
from torch import Tensor

from . import spawn, torchtitan_cpu
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
    wanted, _ = reference(pipe.num_stages, program.num_microbatches)
    modules = make_stages(pipe.num_stages)
    mine = [
        PipelineStage(modules[stage], stage, pipe.num_stages, torch.device("cpu"))
        for _, stage in program.local_stages(rank)
    ]

    def loss(output: Tensor, target: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        # torchtitan does not scale gradients.
        return loss_fn(output, target) / program.num_microbatches, {}

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
            local_batch_size=ROWS * program.num_microbatches,
            stages=mine,
            loss_fn=loss,
        )
    batch, target = make_batch(program.num_microbatches)
    given = [batch] if pipe.rank_of_stage[0] == rank else []
    asked = {"target": target, "losses": []} if pipe.rank_of_stage[-1] == rank else {}
    schedule.step(*given, **asked)
    for _, stage in program.local_stages(rank):
        assert_same_gradients(modules[stage], wanted[stage], f"{program.name}, rank {rank}, stage {stage}")


def test_gradients_equal_those_without_a_pipeline() -> None:
    programs = [
        ppcc.compile("interleaved_1f1b", P=RANKS, M=MICROBATCHES, V=2),
        ppcc.compile("zero_bubble_v", P=RANKS, M=MICROBATCHES),
    ]
    spawn.run(run_all, RANKS, [program.json for program in programs])


# The whole way: torchtitan's model in torchtitan's Trainer, in the order of a program.


def run_trained(rank: int, folder: str, texts: list[str]) -> None:
    torchtitan_cpu.prepare(rank)
    from ppcc.torchtitan import configure, tune

    seed = torchtitan_cpu.config(folder, 4).build()
    seed.checkpointer.save(curr_step=0, last_step=True)
    seed.close()
    own = torchtitan_cpu.config(folder, 4, "1F1B")
    own.parallelism.pipeline_parallel_degree, own.parallelism.pipeline_parallel_schedule = 2, "1F1B"
    wanted = torchtitan_cpu.losses(own)
    assert len(wanted) == torchtitan_cpu.STEPS and wanted[-1] < wanted[0]
    for text in texts:
        program = ppcc.Program.from_json(text)
        config = torchtitan_cpu.config(folder, 4, program.name)
        if program.schedule == "gpipe":
            tune(config, program, steps=1, output=f"{folder}/tuned")
        else:
            configure(config, program)
        found = torchtitan_cpu.losses(config)
        for step, (got, want) in enumerate(zip(found, wanted, strict=True)):
            assert abs(got - want) <= 1e-5 * want, f"{program.name}, step {step}: {got}, but 1F1B has {want}"

    with_reductions = torchtitan_cpu.config(folder, 4, "invalid")
    tune(with_reductions, ppcc.Program.from_json(texts[0]))
    with pytest.raises(UsageError, match="tune.. supports only programs of F, B, I and W; this has REDUCE_GRAD"):
        with_reductions.build()
    with pytest.raises(UsageError, match="steps is 0, but must be at least 1"):
        tune(torchtitan_cpu.config(folder, 4, "invalid"), program, steps=0)
    with pytest.raises(UsageError, match="for 4 microbatches, but local_batch_size 6 in pieces of 1 makes 6"):
        configure(torchtitan_cpu.config(folder, 6, "invalid"), program)
    wide = torchtitan_cpu.config(folder, 4, "invalid")
    configure(wide, ppcc.compile("one_f_one_b", P=4, M=4))
    wide.parallelism.pipeline_parallel_degree = 2
    with pytest.raises(UsageError, match="for 4 ranks and 4 stages, but torchtitan has 2 and 4"):
        wide.build()
    for other, reason in [("dualpipe", "torchtitan has one pipe, the program 2"), ("seq1f1b", "slices of one sequence")]:
        with pytest.raises(UsageError, match=reason):
            configure(torchtitan_cpu.config(folder, 4, "invalid"), ppcc.compile(other, P=2, M=4))


def test_its_trainer_learns_as_with_its_own_schedule(tmp_path: Path) -> None:
    programs = [
        ppcc.compile("one_f_one_b", P=2, M=4, rules="reduce_grads"),
        ppcc.compile("interleaved_1f1b", P=2, M=4, V=3, comm_order="ready-time"),
        ppcc.compile("gpipe", P=2, M=4),
        ppcc.compile("zero_bubble_v", P=2, M=4),
    ]
    spawn.run(run_trained, 2, str(tmp_path), [program.json for program in programs])
    report = (tmp_path / "tuned/report.txt").read_text()
    assert re.search("^(synthesized with B|one_f_one_b) ", report, re.MULTILINE) and re.search(r"^cost +[4-8] steps, and [0-9.]+ s", report, re.MULTILINE)
    measured = (tmp_path / "tuned/measured.pp").read_text()
    assert "cost F" in measured and "cost I" in measured and "memory I" in measured and "static" in measured and "latency stage s" in measured
    assert ppcc.Program.load(tmp_path / "tuned/tuned.json").num_microbatches == 4


def test_the_config_of_the_page() -> None:
    from .test_documentation import DOCS

    found = re.search(r"^```text\n(from torchtitan.*?)^```$", (DOCS / "training-python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    tuned = re.search(r"^```text\n(def debugmodel_tuned.*?)^```$", (DOCS / "tuning.md").read_text(), re.MULTILINE | re.DOTALL)
    assert tuned is not None
    names: dict[str, Any] = {}
    exec(compile(found[1] + tuned[1], "training-python.md", "exec"), names)
    for name in ("debugmodel_zero_bubble_v", "debugmodel_tuned"):
        config = names[name]()
        assert config.parallelism.pipeline_parallel_degree == 4
        assert config.training.disable_cuda_graphs
        assert config.model_spec.pipelining_fn.__module__ == "ppcc.torchtitan"
