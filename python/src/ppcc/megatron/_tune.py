"""Tunes the order of Megatron's pipeline in the first steps of its training (docs/tuning.md#megatron-lm)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import torch.distributed as dist
from megatron.core import parallel_state
from torch import Tensor, nn

from .. import _compiler
from .._program import Action, Program
from ..torch._errors import UsageError
from ..torch._groups import Groups
from ..torch._layers import static_bytes
from ..torch._measure import MemoryMeter, Observer
from ..torch._stash import key_of
from ..torch._tune_options import TuneKeywords, TuneOptions, with_tune_options
from ..torch._tune_result import TuneResult
from ..torch._tuning import Job, Tuner, Tuning, check_program, raise_first
from ..torch._unsupported_stages import check_graph
from ._forward_backward import ForwardBackward
from ._placement import Programs, install_run, unwrapped
from ._plan import Plan
from ._step import device_of


@with_tune_options
def tune(programs: Programs | None = None, **options: Unpack[TuneKeywords]) -> TunedForwardBackward:
    """Make Megatron run a program, as `install` does, and let its first training steps find a faster order.

    They are steps of the training, whose gradients are right under every order: none is run beside them, and none is lost. All ranks measure at most
    4 + 4 * steps of them, rank 0 chooses, and all ranks change the program between two steps, or none does. Then it prints the report. Each number of
    microbatches is tuned by itself.

    Args:
        programs: The program that runs first, or a function from a number of microbatches to it, as for `install`. It has the placement of all
            others. By default 1F1B, interleaved if ranks have several chunks.
        **options: See `ppcc.torch.TuneOptions`. Of a second number of microbatches the `output` is in a folder inside of it, which has this number as
            its name.

    Returns:
        What runs the steps; its `results` are by number of microbatches.

    Raises:
        UsageError: An argument is out of range. The first step raises it if Megatron's settings or the program cannot be tuned.

    Examples:
        In `pretrain_gpt.py`::

            ppcc.megatron.tune(memory_limit=60 * 2**30, output="tuned")
            pretrain(...)
    """
    programs = _first_program if programs is None else programs
    run = TunedForwardBackward(programs, TuneOptions(**options))
    install_run(programs, run)
    return run


def _first_program(microbatches: int) -> Program:
    ranks, chunks = parallel_state.get_pipeline_model_parallel_world_size(), parallel_state.get_virtual_pipeline_model_parallel_world_size() or 1
    if chunks == 1:
        return _compiler.compile("one_f_one_b", P=ranks, M=microbatches)
    return _compiler.compile("interleaved_1f1b", P=ranks, M=microbatches, V=chunks)


class TunedForwardBackward(ForwardBackward):
    """A `ForwardBackward` that tunes in the steps that Megatron trains. `tune` builds it."""

    def __init__(self, programs: Programs, options: TuneOptions) -> None:
        super().__init__(programs)
        self._options = options
        self._tuners: dict[int, Tuner] = {}

    @property
    def results(self) -> dict[int, TuneResult]:
        """What was measured, predicted and chosen, by the number of microbatches."""
        return {microbatches: tuner.result for microbatches, tuner in self._tuners.items() if tuner.result is not None}

    def _observed(self, plan: Plan, config: Any, chunks: list[nn.Module], group: dist.ProcessGroup, shapes: Any) -> AbstractContextManager[Observer]:
        microbatches = plan.program.num_microbatches
        if microbatches not in self._tuners:
            job = _MegatronJob(self, config, chunks, group, microbatches, shapes)
            _check_supported(job)
            options, output = self._options, self._options.output
            if output is not None and self._tuners:
                options = replace(options, output=Path(output) / str(microbatches))
            self._tuners[microbatches] = Tuner(Tuning(job, options), keeps_training=True)
        return self._tuners[microbatches].step()


@dataclass
class _MegatronJob(Job):
    """Steps with a number of microbatches. All pipelines of the job have the same program, since their gradients are reduced together."""

    run: TunedForwardBackward
    config: Any
    chunks: list[nn.Module]
    group: dist.ProcessGroup
    microbatches: int
    inputs: Any
    meters: list[_Meter] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rank, self.groups = dist.get_rank(), Groups(None, dist.get_world_size())
        self._plans = {self.program._stated_digest: self._plan}

    @property
    def _plan(self) -> Plan:
        return self.run._plans[self.microbatches]

    @property
    def program(self) -> Program:
        return self._plan.program

    def set_program(self, program: Program) -> None:
        digest = program._stated_digest
        with self.groups.raise_on_all_ranks():
            if digest not in self._plans:
                plan = Plan(program, self._plan.rank)
                plan.check(self.config, self.chunks, None)
                plan.check_modules(self.config, self.chunks)
                if plan.has_split_backward and (errors := [meter.split_error for meter in self.meters if meter.split_error]):
                    raise UsageError(errors[0])
                self._plans[digest] = plan
        self.run._link(self._plans[digest], self.config, self.chunks, self.group)
        self.run._plans[self.microbatches] = self._plans[digest]

    @property
    def host_waits(self) -> bool:
        return self.run._channels[self.program._stated_digest].host_waits

    @property
    def modules(self) -> dict[int, nn.Module]:
        return {stage: unwrapped(chunk) for (_, stage), chunk in zip(self._plan.places, self.chunks, strict=True)}

    def static_memory(self, state_per_weight: float) -> dict[int, int]:
        return {stage: static_bytes(chunk, None, state_per_weight) + _main_gradients(chunk) for stage, chunk in self.modules.items()}

    def new_meter(self) -> MemoryMeter:
        self.meters.append(_Meter())
        return self.meters[-1]


def _main_gradients(chunk: nn.Module) -> int:
    """By how much gradients in the buffers of Megatron's DistributedDataParallel are larger than weights, in bytes."""
    return sum(weight.main_grad.nbytes - weight.nbytes for weight in chunk.parameters() if hasattr(weight, "main_grad"))


def _check_supported(job: _MegatronJob) -> None:
    config = job.config
    check_program(job.program, job._plan.rank)
    raise_first(
        {
            "stages on the CPU: elsewhere profile with install(..., profile=True), for ppcc-tune": device_of(job.chunks).type != "cpu",
            "microbatches of one shape, without variable_seq_lengths": config.variable_seq_lengths,
            "forwards that all keep as much, without num_microbatches_with_partial_activation_checkpoints": config.num_microbatches_with_partial_activation_checkpoints is not None,
            "layers whose memory autograd knows, without delay_wgrad_compute": config.delay_wgrad_compute,
            "layers that do not look for main_grad at what autograd has saved, without gradient_accumulation_fusion": config.gradient_accumulation_fusion,
        }
    )


class _Meter(MemoryMeter):
    """Also finds out whether the graphs of chunks can be split into I and W, which no rank may find out within a step."""

    def __init__(self) -> None:
        super().__init__()
        self.split_error = ""
        self._looked_at: set[int] = set()

    @contextmanager
    def runs(self, step: Any, action: Action) -> Iterator[None]:
        with super().runs(step, action):
            yield
        if action.op == "F" and action.stage not in self._looked_at:
            self._looked_at.add(action.stage)
            stash = step._stashes[key_of(action)]
            try:
                check_graph(stash.outputs, stash.received(), f"stage {action.stage}", defers_all=True)
            except UsageError as error:
                self.split_error = self.split_error or str(error)
