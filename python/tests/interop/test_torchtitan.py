"""Programs in torchtitan, by its option `pipeline_parallel_schedule_csv`, where torchtitan is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile

from types import SimpleNamespace
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import RuntimeMisuse
from torch import Tensor, nn

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


# The whole way: torchtitan's model, cut by torchtitan, in the order of a program.

STEPS, WORDS, LENGTH = 10, 64, 16


def debug_model() -> tuple[Any, nn.Module]:
    """torchtitan's debug model, with fewer words and plain attention, which runs on CPUs."""
    from torchtitan.models.common.attention import ScaledDotProductAttention
    from torchtitan.models.llama3 import llama3_configs

    config: Any = llama3_configs["debugmodel"]("flex")
    config.vocab_size = config.tok_embeddings.num_embeddings = config.lm_head.out_features = WORDS
    for layer in config.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    model = config.build()
    torch.manual_seed(0)
    with torch.no_grad():
        model.init_states(buffer_device=torch.device("cpu"))
    return config, model


def trained(rank: int, pipelining: Any, microbatches: int, schedule: str = "1F1B") -> list[float]:
    """The losses of each step, on all ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torchtitan.config import ParallelismConfig

    config, model = debug_model()
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("pp",))

    def loss(output: Tensor, target: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten()) / microbatches, {}

    runs, parts, has_first, has_last = pipelining(
        model,
        parallel_dims=SimpleNamespace(pp=2, get_mesh=lambda name: mesh),
        training=SimpleNamespace(local_batch_size=microbatches),
        parallelism=ParallelismConfig(
            pipeline_parallel_degree=2, pipeline_parallel_schedule=schedule, pipeline_parallel_microbatch_size=1
        ),
        compile_config=None,
        ac_config=None,
        dump_folder="",
        device=torch.device("cpu"),
        model_config=config,
        parallelize_fn=lambda part, **_: part,
        loss_fn=loss,
    )
    optimizer = torch.optim.AdamW([weight for part in parts for weight in part.parameters()], lr=1e-3)
    generator = torch.Generator().manual_seed(2)
    found = []
    for _ in range(STEPS):
        words = torch.randint(0, WORDS, (microbatches, LENGTH + 1), generator=generator) % 7
        losses: list[Tensor] = []
        optimizer.zero_grad()
        runs.step(
            *([words[:, :-1]] if has_first else []), **({"target": words[:, 1:], "losses": losses} if has_last else {})
        )
        optimizer.step()
        total = torch.stack(losses).sum() if losses else torch.zeros([])
        dist.all_reduce(total)
        found.append(float(total))
    return found


def run_trained(rank: int, texts: list[str]) -> None:
    from ppcc.torchtitan import pipelining_fn
    from torchtitan.distributed.pipeline_parallel import pipeline_llm

    programs = [ppcc.Program.from_json(text) for text in texts]
    wanted = trained(rank, pipeline_llm, programs[0].microbatches)
    assert wanted[-1] < wanted[0]
    for program in programs:
        found = trained(rank, pipelining_fn(program), program.microbatches)
        for step, (got, want) in enumerate(zip(found, wanted, strict=True)):
            assert abs(got - want) <= 1e-5 * want, f"{program.name}, step {step}: {got}, but 1F1B has {want}"
    with pytest.raises(RuntimeMisuse, match="for 4 microbatches, but local_batch_size 6 in pieces of 1 makes 6"):
        trained(rank, pipelining_fn(programs[0]), 6)
    with pytest.raises(RuntimeMisuse, match="for 4 ranks and 4 stages, but torchtitan has 2 and 4"):
        trained(rank, pipelining_fn(ppcc.compile("one_f_one_b", P=4, M=4)), 4)
    with pytest.raises(RuntimeMisuse, match="torchtitan has one pipe, the program 2"):
        pipelining_fn(ppcc.compile("dualpipe", P=2, M=4))


def test_trains_as_its_own_schedule_does() -> None:
    programs = [
        ppcc.compile("one_f_one_b", P=2, M=4, rules="reduce_grads"),
        ppcc.compile("interleaved_1f1b", P=2, M=4, V=3, comm_order="ready-time"),
        ppcc.compile("zero_bubble_v", P=2, M=4),
    ]
    spawn.run(run_trained, 2, [program.json for program in programs])


def test_the_config_of_the_page() -> None:
    from .test_documentation import DOCS

    found = re.search(r"^```text\n(from torchtitan.*?)^```$", (DOCS / "training-python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(compile(found[1], "training-python.md", "exec"), names)
    config = names["debugmodel_zero_bubble_v"]()
    assert config.parallelism.pipeline_parallel_degree == 4
    assert config.model_spec.pipelining_fn.__module__ == "ppcc.torchtitan"
