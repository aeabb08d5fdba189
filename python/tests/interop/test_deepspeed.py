"""Programs on DeepSpeed's pipeline engines, where DeepSpeed is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from . import spawn
from .models import loss_fn

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None, reason="NOT RUN because DeepSpeed is not installed"
)

RANKS, ROWS, WIDTH, STEPS = 2, 2, 6, 3

V = """
// A V with 1F1B's depth: both chunks of a microbatch, then both backwards, with as many in flight as there are stages.
schedule v(P: int = 2, M: int = 4) {
  ranks P; microbatches M; placement v;
  on rank r {
    let depth = min(P - r, M);
    repeat depth { F(0); }
    repeat M - depth { F(1); B(1); F(0); B(0); }
    repeat depth { F(1); B(1); B(0); }
  }
}
"""
ALL_FIRST = "schedule all_first(P: int = 2, M: int = 4) { ranks P; microbatches M; placement v; on rank r { repeat M { F(0); } repeat M { F(1); B(1); } repeat M { B(0); } } }"
LAST_FIRST = "schedule last_first(M: int = 4) { ranks 2; microbatches M; placement linear; on rank r { for i in 0 .. M { F(mb: M - 1 - i); B(mb: M - 1 - i); } } }"
SLICED = "schedule sliced(M: int = 4) { ranks 2; microbatches M; slices 2; placement linear; on rank r { repeat M { F; } for i in 0 .. M { B(mb: M - 1 - i); } } }"
UNEVEN = "schedule uneven(M: int = 4) { ranks 2; microbatches M; placement linear; on rank r { if r == 0 { repeat M { F; } repeat M { B; } } else { repeat M { F; B; } } } }"


def compiled(name: str, **more: Any) -> ppcc.Program:
    return ppcc.compile(name, **{"P": RANKS, "M": 4, "transport": "rendezvous", **more})


def own(text: str, **more: Any) -> ppcc.Program:
    return ppcc.compile_source(text, **{"M": 4, "transport": "rendezvous", **more})


def prepare(rank: int) -> None:
    os.environ.update(LOCAL_RANK=str(rank), RANK=str(rank), WORLD_SIZE=str(RANKS), DS_ACCELERATOR="cpu")
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
    import deepspeed

    # It would be compiled for minutes.
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # type: ignore[attr-defined]
    deepspeed.init_distributed("gloo")


def layer() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())


def make_module(kind: str) -> Any:
    from deepspeed.pipe import PipelineModule
    from deepspeed.runtime.pipe.dualpipev import DualPipeVModule

    torch.manual_seed(1)
    module = (DualPipeVModule if kind == "v" else PipelineModule)(
        layers=[layer() for _ in range(4)], num_stages=RANKS, loss_fn=loss_fn, partition_method="uniform", seed_layers=False
    )
    with torch.no_grad():
        for index, weight in enumerate(module.parameters()):
            weight.copy_(torch.linspace(-0.5, 0.5, weight.numel()).reshape(weight.shape) * (1 + index % 3))
    return module


def settings(microbatches: int) -> dict[str, Any]:
    return {
        "train_micro_batch_size_per_gpu": ROWS,
        "gradient_accumulation_steps": microbatches,
        "optimizer": {"type": "SGD", "params": {"lr": 0.1}},
        "steps_per_print": 1000,
    }


def make_engine(kind: str, microbatches: int = 4) -> Any:
    import deepspeed

    module = make_module(kind)
    engine, *_ = deepspeed.initialize(
        model=module, model_parameters=list(module.parameters()), config=settings(microbatches)
    )
    return engine


def batch(step: int, microbatches: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(step)
    draw = lambda: torch.randn(ROWS, WIDTH, generator=generator)
    return [(draw(), draw()) for _ in range(microbatches)]


def losses(engine: Any, microbatches: int = 4) -> list[float]:
    return [float(engine.train_batch(iter(batch(step, microbatches)))) for step in range(STEPS)]


def run_engines(rank: int) -> None:
    prepare(rank)
    from ppcc.deepspeed import install

    for kind, programs in [
        ("linear", [compiled("one_f_one_b"), compiled("one_f_one_b", comm_order="ready-time")]),
        ("v", [own(V), own(ALL_FIRST)]),
    ]:
        theirs = losses(make_engine(kind))
        assert len(set(theirs)) == STEPS
        for program in programs:
            engine = make_engine(kind)
            install(engine, program)
            assert losses(engine) == theirs, program.name
    # The order of DeepSpeed's own DualPipeV, which computes whole backwards.
    program = compiled("dualpipe_v")
    engine = make_engine("v")
    from deepspeed.runtime.pipe import schedule

    wanted = [(type(one), one.phase, one.buffer_id) for step in engine._train_schedule() for one in step if isinstance(one, (schedule.ForwardPass, schedule.BackwardPass))]
    install(engine, program, full_backward=True)
    ours = [(type(one), one.phase, one.buffer_id) for step in engine._train_schedule() for one in step if isinstance(one, (schedule.ForwardPass, schedule.BackwardPass))]
    assert ours == wanted
    assert losses(engine) == losses(make_engine("v"))
    run_refusals(make_engine("linear"), make_engine("v"))
    run_page()


def run_page() -> None:
    """The listings of docs/deepspeed.md, with a model of these tests."""
    from .test_documentation import listing

    module, config = make_module("linear"), settings(4)
    names: dict[str, Any] = {
        "model": module, "config": config, "batches": lambda step: iter(batch(step, 4)), "v_engine": make_engine("v")
    }
    exec(compile(listing("deepspeed.md"), "deepspeed.md", "exec"), names)
    assert len(set(names["losses"])) == 3


def run_refusals(linear: Any, v: Any) -> None:
    from ppcc.deepspeed import install
    from ppcc.torch import UsageError

    for engine, program, reason in [
        (linear, compiled("one_f_one_b", P=4), "for 4 ranks, but the engine has 2"),
        (linear, compiled("one_f_one_b", M=6), "for 6 microbatches, but gradient_accumulation_steps is 4"),
        (linear, compiled("interleaved_1f1b", V=2), "one stage on each rank"),
        (linear, compiled("dualpipe"), "one stage on each rank"),
        (v, compiled("one_f_one_b"), "two stages on each rank, in a V"),
        (v, compiled("interleaved_1f1b", V=2), "two stages on each rank, in a V"),
        (linear, own(SLICED), "slices of one sequence, but PipelineEngine would"),
        (linear, compiled("zb_h1"), "both gradients at once, but the program has `.*`: say full_backward"),
        (linear, compiled("one_f_one_b", rules="recompute"), "has no `R`"),
        (linear, compiled("one_f_one_b", comm_order="none", transport=None), "no messages"),
        (v, own(V, fuse="batch"), "which a batch would wait for"),
        (linear, compiled("one_f_one_b", transport="stream"), "transport='rendezvous'"),
        (linear, own(LAST_FIRST), "reads the data in its order"),
        (linear, compiled("gpipe"), "keeps one loss"),
        (linear, own(UNEVEN, comm_order="sweep"), "keeps one gradient"),
    ]:
        try:
            install(engine, program)
        except UsageError as error:
            assert re.search(reason, str(error)), (program.name, str(error))
        else:
            raise AssertionError(f"{program.name} is not refused: {reason}")
    linear.module.wrapped = nn.parallel.DistributedDataParallel(layer())
    with pytest.raises(UsageError, match="`wrapped` of the module of the engine is a DistributedDataParallel.*leave it out"):
        install(linear, compiled("one_f_one_b"))
    del linear.module.wrapped
    with pytest.raises(UsageError, match="rank 0 has the program one_f_one_b.*, but rank 1 has"):
        install(linear, compiled("gpipe" if dist.get_rank() else "one_f_one_b"))


def test_losses_equal_those_of_its_own_schedules() -> None:
    spawn.run(run_engines, RANKS)
