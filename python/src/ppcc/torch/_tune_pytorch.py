"""Tunes PyTorch's own runtime in steps of training, for torchtitan (docs/tuning.md#torchtitan).

A step of PyTorch's runtime iterates over a list of actions, and waits for works. While it is observed, the list notes when it is asked for the next action, and
works note how long they are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import schedules
from torch.distributed.tensor import DTensor
from torch.utils._pytree import tree_leaves

from .._program import Action, Program
from ._errors import UsageError
from ._groups import Groups
from ._interop import check_torch_split, load_rows, make_runtime, prepare_stage
from ._measure import MemoryMeter, Observer
from ._stash import OffloadedTensors
from ._tune_options import TuneOptions
from ._tune_result import TuneResult
from ._tuning import Job, Tuner, Tuning, check_program, raise_first
from ._unsupported_stages import ForwardRecord


class TunedSchedule(schedules._PipelineScheduleRuntime):
    """PyTorch's runtime, whose first training steps find a faster order."""

    _job: _Job
    _options: TuneOptions
    _tuner: Tuner | None = None

    @staticmethod
    def load(program: Program, stages: Sequence[Any], tuning: TuneOptions, *, fsdp: bool, **options: Any) -> TunedSchedule:
        """As `load_torch_runtime`."""
        found: TunedSchedule = make_runtime(TunedSchedule, program, stages, "compute_comms", fsdp, options)
        found._job, found._options = _Job(found, stages, program, fsdp), tuning
        return found

    @property
    def result(self) -> TuneResult | None:
        """What was measured, predicted and chosen."""
        return None if self._tuner is None else self._tuner.result

    def step(self, *args: Any, **kwargs: Any) -> Any:
        if not self._has_backward:
            return super().step(*args, **kwargs)
        if self._tuner is None:
            self._job.inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
            self._tuner = Tuner(Tuning(self._job, self._options), keeps_training=True)
        with self._tuner.step() as observer, self._job.observed(observer):
            return super().step(*args, **kwargs)


class _Job(Job):
    """Steps of a schedule. All pipelines of the job have the same program, since their gradients are reduced together."""

    def __init__(self, schedule: TunedSchedule, stages: Sequence[Any], program: Program, fsdp: bool) -> None:
        check_program(program, schedule.rank)
        raise_first({"stages on the CPU": any(stage.device.type != "cpu" for stage in stages)})
        self.rank, self.groups = dist.get_rank(), Groups(None, dist.get_world_size())
        self._schedule, self._stages, self._program, self._fsdp = schedule, {stage.stage_index: stage for stage in stages}, program, fsdp
        self._prepared = {program.digest}
        self._meter = _Meter(self._stages)

    @property
    def program(self) -> Program:
        return self._program

    def set_program(self, program: Program) -> None:
        with self.groups.raise_on_all_ranks():
            text = program.to_csv("compute_comms", fsdp=self._fsdp)
            if program.digest not in self._prepared:
                if self._meter.split_error and program._runs("I"):
                    raise UsageError(self._meter.split_error)
                for stage in self._stages.values():
                    prepare_stage(program, stage)
        self._prepared.add(program.digest)
        load_rows(self._schedule, text, "compute_comms")
        self._program = program

    @property
    def modules(self) -> Mapping[int, nn.Module]:
        return {number: stage.submod for number, stage in self._stages.items()}

    def static_memory(self, state_per_weight: float) -> dict[int, int]:
        return {number: _static_bytes(module, state_per_weight) for number, module in self.modules.items()}

    def new_meter(self) -> MemoryMeter:
        return self._meter

    @contextmanager
    def observed(self, observer: Observer) -> Iterator[None]:
        """A context for a step that an observer sees."""
        schedule: Any = self._schedule
        rank, before = schedule.rank, schedule.pipeline_order_with_comms[schedule.rank]
        schedule.pipeline_order_with_comms[rank] = _Rows(before, self._program.actions[rank], observer)
        schedule.fwd_recv_ops, schedule.bwd_recv_ops = _Receives(observer, -1), _Receives(observer, 1)
        if observer is self._meter:
            self._meter.watch_forwards()
        try:
            yield
        finally:
            schedule.pipeline_order_with_comms[rank] = before
            schedule.fwd_recv_ops, schedule.bwd_recv_ops = {}, {}


def _static_bytes(module: nn.Module, state_per_weight: float) -> int:
    """What weights, gradients, optimizer state and buffers take. While a sharded weight is gathered, it and its gradient are there as a whole."""
    total = sum(buffer.nbytes for buffer in module.buffers())
    for weight in module.parameters():
        own = weight.to_local().nbytes if isinstance(weight, DTensor) else 0
        total += own + weight.nbytes + (weight.nbytes + int(state_per_weight * (own or weight.nbytes)) if weight.requires_grad else 0)
    return total


class _Rows(list[Any]):
    """The actions of a rank in PyTorch's form, for one step."""

    _trains = True

    def __init__(self, rows: Sequence[Any], actions: Sequence[Action], observer: Observer) -> None:
        super().__init__(rows)
        self._actions = {str(action): action for action in actions}
        self._observer = observer

    def __iter__(self) -> Iterator[Any]:
        for row in super().__iter__():
            action = self._actions.get(str(row))
            if action is not None and not action.kind.is_message:
                with self._observer.runs(self, action):
                    yield row
                continue
            if action is not None:
                self._observer.posts([action])
            with self._observer.idles() if "WAIT_SEND" in str(row) else nullcontext():
                yield row


class _Receives(dict[tuple[int, int], list[Any]]):
    """The works of receives, by stage and microbatch."""

    def __init__(self, observer: Observer, offset: int) -> None:
        """The sender is so many stages further."""
        super().__init__()
        self._observer, self._offset = observer, offset

    def pop(self, key: tuple[int, int]) -> list[Any]:  # type: ignore[override]
        stage, microbatch = key
        return [_Works(super().pop(key), self._observer, (0, stage + self._offset, stage, microbatch))]


class _Works:
    def __init__(self, works: Sequence[Any], observer: Observer, edge: tuple[int, int, int, int]) -> None:
        self._works, self._observer, self._edge = works, observer, edge

    def wait(self) -> None:
        with self._observer.waits(self._edge):
            for work in self._works:
                work.wait()


class _Meter(MemoryMeter):
    """Also finds out whether PyTorch can split the graphs of stages into I and W, which no rank may find out within a step."""

    def __init__(self, stages: Mapping[int, Any]) -> None:
        super().__init__()
        self._stages = stages
        self.split_error = ""

    @contextmanager
    def runs(self, step: Any, action: Action) -> Iterator[None]:
        yield
        if action.op == "I" and action.stage not in self.kept["I"]:
            kept = [leaf for leaf in tree_leaves(self._stages[action.stage].backward_state[action.microbatch][1:]) if isinstance(leaf, Tensor)]
            self.kept["I"][action.stage] = OffloadedTensors(()).count_bytes(kept)

    def watch_forwards(self) -> None:
        """Measures the next forward of each stage that has not been measured."""
        for number, stage in self._stages.items():
            if number not in self.kept["F"]:
                stage.forward_maybe_with_nosync = self._measured(stage, stage.forward_maybe_with_nosync)

    def _measured(self, stage: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*given: Any, **named: Any) -> Any:
            stage.forward_maybe_with_nosync = run
            memory = OffloadedTensors([*stage.submod.parameters(), *stage.submod.buffers()])  # Which are gathered by now.
            with memory.saving_hooks(), ForwardRecord() as seen:
                result = run(*given, **named)
            outputs = [tensor for tensor in tree_leaves(result) if isinstance(tensor, Tensor)]
            sources = [tensor for tensor in tree_leaves([given, named]) if isinstance(tensor, Tensor)]
            self.kept["F"][stage.stage_index] = memory.count_bytes([*outputs, *(() if stage.is_first else [tensor for tensor in given if isinstance(tensor, Tensor)])])
            try:
                check_torch_split(stage, seen, [tensor for tensor in outputs if tensor.requires_grad], sources)
            except UsageError as error:
                self.split_error = self.split_error or str(error)
            return result

        return measured
