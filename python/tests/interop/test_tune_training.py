"""Orders that are tuned in the first steps of a training loop that others own: Megatron's and torchtitan's."""

from __future__ import annotations

import importlib.util
import inspect
import re
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import ppcc.torch
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import TuneOptions, UsageError
from ppcc.torch._tune_options import TuneKeywords
from torch import Tensor

from . import spawn
from .megatron_models import LENGTH, ROWS, batches, forward_step, gradient, initialize, make_config, make_model, weights
from .where import DEVICE

pytestmark = pytest.mark.skipif(DEVICE.type != "cpu", reason="tune() refuses other devices")

M, RATE = 4, 0.1
megatron = pytest.mark.skipif(importlib.util.find_spec("megatron") is None, reason="NOT RUN because megatron-core is not installed")


class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, seconds: float) -> Tensor:
        ctx.seconds = seconds
        time.sleep(seconds)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        time.sleep(ctx.seconds)
        return grad, None


def sleep_in(chunk: Any, seconds: float) -> None:
    """Each microbatch takes so much longer, in its forward and in its backward."""
    apply: Any = Sleep.apply
    chunk.decoder.layers[0].register_forward_hook(lambda module, inputs, outputs: (apply(outputs[0], seconds), *outputs[1:]))


class Job:
    """What Megatron's training does: chunks, and steps of gradient descent."""

    def __init__(self, rank: int, chunks: int = 1) -> None:
        from megatron.core import parallel_state
        from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
        from ppcc.megatron import build_chunks
        from ppcc.megatron._placement import _run

        parallel_state.set_virtual_pipeline_model_parallel_world_size(chunks if chunks > 1 else None)
        self.config = make_config(2 * 2 * chunks, 2, chunks)
        torch.manual_seed(parallel_state.get_pipeline_model_parallel_rank())
        self.chunks = build_chunks(_run[0], partial(make_model, self.config, False))
        self.model = [DistributedDataParallel(self.config, DistributedDataParallelConfig(), chunk) for chunk in self.chunks]
        self.config.finalize_model_grads_func = finalize_model_grads
        self.config.no_sync_func = [chunk.no_sync for chunk in self.model] if chunks > 1 else self.model[0].no_sync
        self.step = 0

    def train(self, steps: int, count: int = M, forward_only: bool = False) -> list[list[float]]:
        from megatron.core.pipeline_parallel import get_forward_backward_func
        from megatron.core import parallel_state

        copies, copy = parallel_state.get_data_parallel_world_size(), parallel_state.get_data_parallel_rank()
        found = []
        for _ in range(steps):
            for chunk in self.model:
                chunk.zero_grad_buffer()
            mine = batches(self.step, count * copies)[copy::copies]
            losses = get_forward_backward_func()(
                forward_step_func=forward_step,
                data_iterator=[iter(mine) for _ in self.model] if len(self.model) > 1 else iter(mine),
                model=self.model if len(self.model) > 1 else self.model[0],
                num_microbatches=count,
                seq_length=LENGTH,
                micro_batch_size=ROWS,
                forward_only=forward_only,
            )
            found.append([float(entry["loss"]) for entry in losses])
            if not forward_only:
                self.step += 1
                with torch.no_grad():
                    for chunk in self.chunks:
                        for _, weight in weights(chunk):
                            weight -= RATE * gradient(weight)
        return found


def run_megatron(rank: int, folder: str) -> None:
    """Two pipelines of two ranks. The second stage takes longer."""
    from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
    from ppcc.megatron import ForwardBackward, install, tune, uninstall, use_cpu
    from ppcc.megatron._plan import Plan

    use_cpu()
    initialize(2)
    init_num_microbatches_calculator(rank, None, 2 * M * ROWS, ROWS, 2)  # As pretrain() does.

    def gpipe(microbatches: int) -> ppcc.Program:
        return ppcc.compile("gpipe", P=2, M=microbatches)

    def tuned(train: int, programs: Any = gpipe, seconds: float = 0.0, **options: Any) -> tuple[Any, Job, list[list[float]]]:
        uninstall()
        run = tune(programs, **options)
        job = Job(rank)
        if seconds:
            sleep_in(job.chunks[0], seconds)
        return run, job, job.train(train)

    install(gpipe)
    wanted = Job(rank).train(20)
    run, job, found = tuned(7, seconds=0.005 if job_is_first(rank) else 0.015, output=folder, cache=folder)
    while M not in run.results:
        evaluated = job.train(1, forward_only=True)
        assert evaluated[0] == [] or len(evaluated[0]) == M
        found += job.train(1)
    assert 8 <= run.results[M].steps == len(found) <= 15
    found += job.train(1)
    assert found == [pytest.approx(step, rel=1e-4) for step in wanted[: len(found)]]
    result, program = run.results[M], run._plans[M].program
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, (str(result), program.digest))
    assert set(every) == {(str(result), ppcc.Program.load(Path(folder) / "tuned.json").digest)}
    orders = {order.name: order for order in result.orders}
    assert {"gpipe", "one_f_one_b", "zb_h1", "synthesized", "synthesized with B"} <= orders.keys()
    assert result.bound >= 4 * M * 15 / 2 and orders[result.order].memory <= result.memory_limit == orders["given"].memory
    weight = sum(one.nbytes for one in job.chunks[0].parameters())
    assert "static" in result.measured and min(order.memory for order in result.orders) > 2 * weight

    # Another number of microbatches is tuned by itself; a job that was tuned before needs no step.
    job.train(1, count=2)
    assert run._plans[2].program.num_microbatches == 2 and 2 not in run.results and run._tuners[2]._tuning.options.output == Path(folder) / "2"
    run, job, _ = tuned(1, cache=folder)
    assert run.results[M].cached and run.results[M].steps == 0 and run._plans[M].program.digest == program.digest

    # A chunk that cannot be split, on a single rank.
    def hooked(module: Any, inputs: Any, outputs: Any) -> None:
        outputs.grad_fn.register_hook(lambda found, entering: None)

    uninstall()
    run, job = tune(steps=1), Job(rank)
    if rank == 3:
        job.chunks[0].decoder.layers[0].input_layernorm.register_forward_hook(hooked)
    found = job.train(7)
    assert len(run.results) == 1 and {order.name for order in run.results[M].orders} >= {"given", "synthesized with B"}
    assert re.fullmatch("orders with I and W were left out: rank 3: stage 1 has a hook on the node .*", run.results[M].remarks[0]), run.results[M]
    assert found == [pytest.approx(step, rel=1e-4) for step in wanted[: len(found)]]

    # A rank that can run no other program than the first.
    check = Plan.check_modules

    def fail(plan: Any, *given: Any) -> None:
        if plan.program.name != "gpipe(P=2, M=4)":
            raise MemoryError("no room")

    if rank == 1:
        Plan.check_modules = fail  # type: ignore[method-assign]
    run, job, found = tuned(6, steps=1)
    assert run._plans[M].program.digest == gpipe(M).digest and "orders with I and W were left out: rank 1: MemoryError: no room" in run.results[M].remarks
    assert found == [pytest.approx(step, rel=1e-4) for step in wanted[: len(found)]]
    Plan.check_modules = check  # type: ignore[method-assign]

    # Nothing fits: training goes on with the first program, and rank 0 says so.
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run, job, found = tuned(6, steps=1, memory_limit=1)
    assert any("training goes on with the given program: no order with " in str(one.message) for one in seen) == (rank == 0)
    assert not run.results and run._plans[M].program.digest == gpipe(M).digest
    assert found == [pytest.approx(step, rel=1e-4) for step in wanted[: len(found)]]

    # Two stages a rank, in a V.
    run, job = None, None
    uninstall()
    run = tune(lambda microbatches: ppcc.compile("zero_bubble_v", P=2, M=microbatches), steps=1)
    assert isinstance(run, ForwardBackward)
    Job(rank, 2).train(8)
    assert {"zero_bubble_v", "v_half", "synthesized"} <= {order.name for order in run.results[M].orders}
    run_megatron_refusals(rank)


def job_is_first(rank: int) -> bool:
    from megatron.core import parallel_state

    return bool(parallel_state.get_pipeline_model_parallel_rank() == 0)


def run_megatron_refusals(rank: int) -> None:
    from ppcc.megatron import tune, uninstall

    def refused(match: str, programs: Any = None, chunks: int = 1, **config: Any) -> None:
        uninstall()
        tune(programs)
        job = Job(rank, chunks)
        vars(job.config).update(config)
        with pytest.raises(UsageError, match="tune.. supports only " + match):
            job.train(1)

    refused("programs of one pipe", lambda microbatches: ppcc.compile("dualpipe", P=2, M=microbatches), chunks=2)
    with mock.patch("ppcc.megatron._tune.device_of", lambda chunks: torch.device("cuda")):
        refused("stages on the CPU: elsewhere profile with install")
    refused("microbatches of one shape", variable_seq_lengths=True)
    refused("forwards that all keep as much", num_microbatches_with_partial_activation_checkpoints=1)
    refused("layers whose memory autograd knows", delay_wgrad_compute=True)
    refused("layers that do not look for main_grad", gradient_accumulation_fusion=True)
    uninstall()
    with pytest.raises(UsageError, match="steps is 0, but must be at least 1"):
        tune(steps=0)


@megatron
def test_megatron_tunes_while_it_trains(tmp_path: Path) -> None:
    spawn.run(run_megatron, 4, str(tmp_path))
    assert (tmp_path / "report.html").read_text().count("<iframe") == 2


def test_other_devices_are_refused() -> None:
    from ppcc.torch._tune_pytorch import _Job as PyTorchJob

    schedule: Any = SimpleNamespace(rank=0)
    with pytest.raises(UsageError, match="tune.. supports only stages on the CPU"):
        PyTorchJob(schedule, [SimpleNamespace(stage_index=0, device=torch.device("cuda"))], ppcc.compile("gpipe", P=1, M=2), fsdp=False)


@megatron
def test_all_runtimes_take_the_same_options() -> None:
    wanted = {name: (one.default, one.annotation) for name, one in inspect.signature(TuneOptions).parameters.items()}
    assert TuneKeywords.__annotations__.keys() == wanted.keys()
    functions: list[Any] = [ppcc.torch.tune, importlib.import_module("ppcc.megatron").tune]
    if importlib.util.find_spec("torchtitan") is not None:
        functions.append(importlib.import_module("ppcc.torchtitan").tune)
    for function in functions:
        shown = inspect.signature(function).parameters
        assert {name: (one.default, one.annotation) for name, one in shown.items() if name in wanted} == wanted
