"""Finds the order of actions with the shortest step for the stages of a Runtime, from measured costs (docs/tuning.md).

1. Run some steps of the Runtime's program, and of one with the other kind of backward (B, or I and W) if the stages allow it.
2. Fit costs: medians by kind and stage, the latency of edges, memory.
3. On rank 0, simulate the orders of the library for this placement, and those that synthesis finds. An order is rated by its simulated
   makespan, multiplied by what measured spread adds to it on average.
4. Run the best in turns with the Runtime's own program, and keep the faster.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from html import escape
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from .._compiler import SynthesisResult, compile, compile_source, schedules, synthesize
from .._diagnostics import CompileError
from .._profile import new_profile
from .._program import Program
from .._report import Report
from .._run import Costs
from .._sweep import LIMIT_TOO_SMALL, limited_costs
from .._table import text_table
from .._timeline import iframe
from ._errors import UsageError
from ._measure import MemoryMeter, Observer, TimeRecorder, now
from ._runtime import Runtime
from ._shapes import fork_random
from ._spread import Spread

T = TypeVar("T")
COMPUTES = {"F", "B", "I", "W"}
MIN_GAIN = 0.01
"""An order must be predicted to save this share of the step, to be tried."""
MAX_MAKESPAN = 1.25
"""Orders whose makespan is longer than the shortest by this factor are not rated by spread."""
MAX_TRIES = 3
MAX_UNEXPLAINED = 0.05
NUMBER = re.compile(r"[0-9]+[.][0-9]+")


@dataclass(frozen=True)
class TunedOrder:
    """An order of actions that `tune` has simulated. Times are in milliseconds."""

    name: str
    """The name of the schedule in the library, `synthesized` or `given`, the program that the Runtime had."""
    expected: float | None
    """The expected step; None for orders that do not fit or have a long makespan."""
    makespan: float
    """The simulated makespan with the medians of all costs."""
    memory: int
    """The largest amount of memory of any rank, in bytes."""
    fits: bool
    """Whether it keeps to the memory limit."""


@dataclass(frozen=True)
class TuneResult:
    """What `tune` has measured, predicted and chosen; the same on all ranks. Times are in milliseconds, memory in bytes.

    `print()` shows the report.
    """

    order: str
    """The order that the Runtime runs now: `given` is the one it had."""
    before: float
    """The step of the given program, measured in turns with the chosen one."""
    after: float
    """The step of the order that was kept, measured."""
    predicted: float
    """The step of the order that was kept, as predicted before it ran."""
    bound: float
    """No order of these actions has a makespan below this."""
    why: str
    """The argument for the bound."""
    would_help: tuple[str, ...]
    """What would make the step shorter, by how much."""
    unexplained: float
    """(measured - predicted) / predicted of the given program's step."""
    remarks: tuple[str, ...]
    """What could not be tried or explained."""
    memory_limit: int
    """Of each rank."""
    orders: tuple[TunedOrder, ...]
    """All orders that were simulated, the best first."""
    measured: str
    """The model and the cluster that were fitted, in the language."""
    steps: int
    """The number of steps that were run."""
    processor_seconds: float
    """The most that any rank computed beside the steps."""

    def __str__(self) -> str:
        lines = [
            f"order        {self.order}: a step takes {self.after:.4g} ms ({self.predicted:.4g} ms predicted); given: {self.before:.4g} ms",
            f"bound        {self.bound:.4g} ms for every order: {re.sub(NUMBER, lambda found: f'{float(found[0]):.4g}', self.why)}",
            *(f"would help   {text}" for text in self.would_help),
            f"prediction   of the given program: {100 * self.unexplained:+.1f} % off",
            f"memory limit {self.memory_limit} bytes a rank",
            f"cost         {self.steps} steps, and {self.processor_seconds:.1f} s of processor time",
            *(f"remark       {text}" for text in self.remarks),
        ]
        rows = [{**vars(order), "fits": "yes" if order.fits else "no"} for order in self.orders]
        return "\n".join(lines) + "\n\n" + text_table(rows)


def tune(
    runtime: Runtime,
    *args: Any,
    memory_limit: int | None = None,
    steps: int = 3,
    effort: int = 20,
    output: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> TuneResult:
    """Let a Runtime run the order of actions that is fastest for its stages. All ranks call it together.

    It runs at most 4 + 4 * steps steps without reductions and optimizer, and leaves weights, buffers, gradients and random numbers as they
    were. Weights must not have gradients yet. If a rank cannot run an order, all ranks go on without it.

    Args:
        runtime: The Runtime. Its program is the first candidate, and has the placement and the number of microbatches of all others.
        *args: The inputs of a step, as for `Runtime.step`.
        memory_limit: The memory that each rank may hold, in bytes: weights, gradients, optimizer state, buffers and activations. By
            default as much as the rank that holds most under the given program.
        steps: How many steps are measured at a time.
        effort: How many millions of actions each search may simulate.
        output: A folder in which rank 0 writes `measured.pp`, `tuned.json` (the program), `report.txt` and `report.html`.
        **kwargs: Further arguments of `Runtime.step`, such as `target`.

    Returns:
        What was measured, predicted and chosen.

    Raises:
        UsageError: The Runtime has something that `tune` does not support, or no order keeps to the memory limit; it then has the
            program that it had.
        StepError: A step failed on any rank.

    Examples:
        >>> import ppcc, torch
        >>> program = ppcc.compile("gpipe", P=1, M=4)
        >>> runtime = ppcc.torch.Runtime(program, {0: torch.nn.Linear(8, 2)}, loss_fn=torch.nn.functional.mse_loss)
        >>> result = ppcc.torch.tune(runtime, torch.ones(16, 8), target=torch.zeros(16, 2))
        >>> result.steps < 20
        True
    """
    if steps < 1:
        raise UsageError(f"steps is {steps}, but must be at least 1")
    with runtime._setup.groups.raise_on_all_ranks():
        _check_supported(runtime, kwargs)
    observer, given = runtime._observer, runtime.program
    try:
        with _restored(runtime):
            return _Tuning(runtime, args, kwargs, steps).run(memory_limit, effort, output)
    except UsageError:
        if _is_on_all_ranks(runtime):
            runtime.set_program(given)
        raise
    finally:
        runtime._observer = observer


def _is_on_all_ranks(runtime: Runtime) -> bool:
    """Whether all ranks have raised the same UsageError together, so that the job goes on."""
    return runtime._failures is None or runtime._failures.first_failure is None


def _check_supported(runtime: Runtime, kwargs: Mapping[str, Any]) -> None:
    program, linked, setup = runtime.program, runtime._linked, runtime._setup
    kinds = _compute_kinds(program)
    run = {(action.op, action.stage) for action in linked.actions if not action.kind.is_message}
    reasons = {
        "programs of one pipe whose stages read the stage before them": len(program.pipes) > 1 or program.pipes[0].skip_edges or program.pipes[0].gaps,
        "training programs": not program.has_backward,
        f"programs of F, B, I and W; this has {', '.join(sorted(kinds - COMPUTES))}": kinds - COMPUTES,
        "programs whose stages all have the same kinds of backward": len(run) != len(kinds) * len(program.local_stages(runtime.rank)),
        "programs without overlap groups": any(len(group) > 1 and not group[0].kind.is_message for group in linked.action_groups),
        "stages on the CPU": setup.device.type != "cpu",
        "one pipeline, without data-parallel copies, a mesh or other groups": setup.outside or setup.mesh or len(setup.groups._pipelines) > 1,
        "stages that are not in fully_shard or DistributedDataParallel": linked.sharded or linked.replicated.wrappers,
        "microbatches of one shape": setup.dynamic,
        "shapes that are inferred, in which stages that cannot be split are found": setup.shapes is not None,
        "weights without gradients: call zero_grad() before": any(weight.grad is not None for weight in _tensors(runtime, "parameters")),
        "steps that return nothing: without reduce_grads, return_outputs and share_losses": kwargs.keys()
        & {"reduce_grads", "return_outputs", "share_losses"},
    }
    for supported, refused in reasons.items():
        if refused:
            raise UsageError(f"tune() supports only {supported}")


def _compute_kinds(program: Program) -> set[str]:
    """The mnemonics of all actions but messages."""
    return {program.kinds[kind].mnemonic for kind in program._rows.kinds() if not program.kinds[kind].is_message}


def _tensors(runtime: Runtime, of: str) -> list[Tensor]:
    return list({id(tensor): tensor for module in runtime._linked.modules.values() for tensor in getattr(module, of)()}.values())


@contextmanager
def _restored(runtime: Runtime) -> Iterator[None]:
    """Restores buffers and random numbers, and drops the gradients of steps."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in _tensors(runtime, "buffers")]
    with fork_random(runtime._setup.device):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, value in buffers:
                    buffer.copy_(value)
            for weight in _tensors(runtime, "parameters"):
                weight.grad = None


@dataclass
class _Chosen:
    """What rank 0 has found: the orders to try, as JSON, and figures."""

    tries: list[tuple[TunedOrder, str]]
    orders: tuple[TunedOrder, ...]
    given: TunedOrder
    expected: dict[str, float]
    bound: float
    why: str
    would_help: dict[str, tuple[str, ...]]
    memory_limit: int
    remarks: list[str]


class _Tuning:
    """The state of one call of tune()."""

    def __init__(self, runtime: Runtime, args: Sequence[Any], kwargs: Mapping[str, Any], steps: int) -> None:
        self.runtime, self.args, self.kwargs, self.steps_at_once = runtime, args, kwargs, steps
        self.groups = runtime._setup.groups
        self.given = runtime.program
        self.profile = new_profile()
        self.meter = MemoryMeter()
        self.overheads: list[float] = []
        """What steps take beside their actions."""
        self.remarks: list[str] = []
        self.steps = 0
        self.step_seconds = 0.0
        self.began = time.process_time()
        # Orders are simulated on the first.
        runs_on = ["posted"] if runtime._linked.channels.host_waits else []
        self.transports = list(dict.fromkeys([*runs_on, *self.given.transports]))

    def run(self, memory_limit: int | None, effort: int, output: str | os.PathLike[str] | None) -> TuneResult:
        self._step(self.meter)  # The first step opens connections and infers shapes.
        walls = self._measure()
        for kinds, name in (({"I", "W"}, "I and W"), ({"B"}, "B")):
            if not kinds <= self._known_kinds():
                probe = self._from_rank_0(partial(self._probe, fused="B" in kinds))
                if (error := self._try_program(probe)) is None:
                    self._measure()
                else:
                    self.remarks.append(f"orders with {name} were left out: {error}")
        chosen = self._from_rank_0(lambda: self._choose(memory_limit, effort))
        self.profile.limit = chosen.memory_limit
        self.remarks += chosen.remarks
        kept, measured, before = chosen.given, median(walls), median(walls)
        self.runtime.set_program(self.given)
        for order, text in chosen.tries:
            if (error := self._try_program(text)) is not None:
                self.remarks.append(f"{order.name} was left out: {error}")
                continue
            before, after = self._compare(self.runtime.program)
            if after < before or not chosen.given.fits:
                kept, measured = order, after
            else:
                self.remarks.append(f"{order.name} was not faster: {after:.4g} ms, {chosen.expected[order.name]:.4g} ms predicted")
                self.runtime.set_program(self.given)
                measured = before
            break
        else:
            if not chosen.given.fits:
                raise UsageError(f"no order within the memory limit of {chosen.memory_limit} bytes can run: {'; '.join(self.remarks)}")
        unexplained = median(walls) / chosen.expected["given"] - 1
        if abs(unexplained) > MAX_UNEXPLAINED:
            self.remarks.append(self._from_rank_0(lambda: self._explain(median(walls), chosen.expected["given"])))
        result = TuneResult(
            order=kept.name,
            before=before,
            after=measured,
            predicted=chosen.expected[kept.name],
            bound=chosen.bound,
            why=chosen.why,
            would_help=chosen.would_help[kept.name],
            unexplained=unexplained,
            remarks=tuple(self.remarks),
            memory_limit=chosen.memory_limit,
            orders=chosen.orders,
            measured=self.profile.model(),
            steps=self.steps,
            processor_seconds=max(self.groups.all_gather(time.process_time() - self.began - self.step_seconds)),
        )
        if output is not None:
            self._from_rank_0(lambda: self._write(Path(output), result))
        return result

    # Measuring.

    def _measure(self) -> list[float]:
        """Adds what some steps of the Runtime's program measure to the profile, and returns their times."""
        recorder = TimeRecorder()
        walls = [self._step(recorder) for _ in range(self.steps_at_once)]
        static = {stage: _static_memory(self.runtime, stage) for _, stage in self.given.local_stages(self.runtime.rank)}
        offsets = self._clock_offsets()
        ranks = self.groups.all_gather((recorder, self.meter.kept | {"static": static}))
        for offset, (found, kept) in zip(offsets, ranks, strict=True):
            for event in found.events:
                assert event.start is not None
                self.profile.add(event._replace(start=event.start - Decimal(offset) / 1000))
            for name, amounts in kept.items():
                self.profile.memory.setdefault(name, {}).update(amounts)
        self.profile.memory = {name: amounts for name, amounts in self.profile.memory.items() if amounts}
        for step, wall in enumerate(walls):
            begins, ends = zip(
                *((begin - offset, end - offset) for offset, (found, _) in zip(offsets, ranks, strict=True) for begin, end in found.spans[step : step + 1])
            )
            self.overheads.append(max(0.0, wall - (max(ends) - min(begins)) / 1e6))
        return walls

    def _compare(self, program: Program) -> tuple[float, float]:
        """The steps of the given program and of another one, in turns."""
        found: dict[bool, list[float]] = {False: [], True: []}
        for is_new in (True, False) * self.steps_at_once:
            self.runtime.set_program(program if is_new else self.given)
            found[is_new].append(self._step(Observer()))
        self.runtime.set_program(program)
        return median(found[False]), median(found[True])

    def _step(self, observer: Observer) -> float:
        """Runs a step, and returns how long it took on the slowest rank, in milliseconds."""
        self.runtime._observer = observer
        if isinstance(observer, TimeRecorder):
            observer.start()
        self.groups.all_gather(None)  # Ranks begin together.
        processor, begin = time.process_time(), now()
        self.runtime.step(*self.args, reduce_grads=False, **self.kwargs)
        wall = (now() - begin) / 1e6
        self.step_seconds += time.process_time() - processor
        self.steps += 1
        return max(self.groups.all_gather(wall))

    def _clock_offsets(self) -> list[int]:
        """By how many nanoseconds the clock of each rank is ahead of rank 0's; 0 if it may be the same clock.

        Each rank reads its clock between two meetings of all, which rank 0 times. The shortest such time bounds the error.
        """
        found: list[tuple[int, list[int]]] = []
        for _ in range(5):
            begin = now()
            self.groups.all_gather(None)
            clocks = self.groups.all_gather(now())
            width = now() - begin
            ahead = [clock - begin - width // 2 for clock in clocks]
            found.append((width, [offset if abs(offset) > width // 2 else 0 for offset in ahead]))
        return self.groups.all_gather(min(found)[1])[0]

    def _known_kinds(self) -> set[str]:
        """The kinds whose time is known for all stages."""
        return {kind for kind, stages in self.profile.times.items() if len(stages) == self.given.pipes[0].num_stages}

    # Choosing, on rank 0.

    def _from_rank_0(self, make: Callable[[], T]) -> T:
        """The value that a function returns on rank 0, on all ranks; raises UsageError on all ranks if it raises."""
        made: Any = None
        with self.groups.raise_on_all_ranks():
            if self.runtime.rank == 0:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = make()
        return cast(T, self.groups.all_gather(made)[0])

    def _without_costs(self) -> Program:
        """The given program, which may have costs of its own."""
        document = json.loads(self.given.json)
        return Program.from_json(json.dumps({key: value for key, value in document.items() if key != "costs"}))

    def _synthesize(self, **arguments: Any) -> SynthesisResult:
        with tempfile.TemporaryDirectory() as folder:
            placement = Path(folder) / "given.json"
            self._without_costs().save(placement)
            return synthesize(placement, transport=self.transports, **arguments)

    def _probe(self, *, fused: bool) -> str:
        """The JSON of a program of this placement with the other kind of backward, that holds no more activations than the given one."""
        limit = self._without_costs().simulate().peak_activations
        return self._program(self._synthesize(fused_backward=fused, effort=1, costs={"memory.limit": limit}).text).json

    def _program(self, text: str) -> Program:
        return compile_source(text, transport=self.transports)

    def _library(self, costs: Path) -> Iterator[tuple[str, Program]]:
        """The orders of the library for this placement, of F, B, I and W."""
        pipe, ranks = self.given.pipes[0], self.given.num_ranks
        for info in schedules():
            values = {"P": ranks, "M": self.given.num_microbatches, "V": pipe.num_stages // ranks}
            params = {name: value for name, value in values.items() if name in info.parameters}
            try:
                found = compile(info.name, params=params, transport=self.transports, costs=costs)
            except CompileError:  # It does not take these numbers.
                continue
            placed = [(there.rank_of_stage, there.skip_edges, there.gaps, there.slices) for there in found.pipes]
            grouped = any(action.group is not None and not action.kind.is_message for own in found.actions for action in own)
            if placed == [(pipe.rank_of_stage, (), (), 1)] and not grouped and _compute_kinds(found) <= COMPUTES & self._known_kinds():
                yield info.name, found

    def _choose(self, memory_limit: int | None, effort: int) -> _Chosen:
        with tempfile.TemporaryDirectory() as folder:
            costs = Path(folder) / "costs.json"
            costs.write_text(self.profile.costs())
            peak = self._without_costs().simulate(costs, transport=self.transports[0]).peak_memory
            limit = int(peak if memory_limit is None else memory_limit)
            with limited_costs(costs, limit) as limited:
                return self._choose_within(limit, costs, limited, effort)

    def _choose_within(self, limit: int, costs: Path, limited: Costs, effort: int) -> _Chosen:
        """`costs` is a file of the costs, `limited` one that has the memory limit, too."""
        programs = {"given": self._without_costs(), **dict(self._library(costs))}
        bounds: list[tuple[float, str]] = []
        remarks = []
        for kinds, name in (({"F", "I", "W"}, "synthesized"), ({"F", "B"}, "synthesized with B")):
            if not kinds <= self._known_kinds():
                continue
            try:
                found = self._synthesize(fused_backward="B" in kinds, effort=effort, costs=limited)
            except CompileError as error:
                if any(one.code != LIMIT_TOO_SMALL for one in error.errors):
                    raise
                remarks.append(f"no order with {', '.join(sorted(kinds))} fits: {error.errors[0].message}")
                continue
            bounds.append((found.bound, found.why))
            programs[name] = self._program(found.text)
        if not bounds:
            raise UsageError("; ".join(remarks))
        spread, overhead = Spread(self.profile), median(self.overheads)
        reports = {name: program.simulate(costs, transport=self.transports[0]) for name, program in programs.items()}
        fitting = {name: report.makespan for name, report in reports.items() if report.peak_memory <= limit}
        rated = {name for name, makespan in fitting.items() if makespan <= MAX_MAKESPAN * min(fitting.values())} | {"given"}
        expected = {name: spread.of(programs[name]) * reports[name].makespan + overhead for name in rated}
        orders = [
            TunedOrder(name, expected.get(name), report.makespan, int(report.peak_memory), name in fitting) for name, report in reports.items()
        ]
        given = orders[0]
        orders.sort(key=lambda order: (not order.fits, order.name not in rated, order.expected or order.makespan))
        slowest = (1 - MIN_GAIN) * expected["given"] if given.fits else math.inf
        better = [order for order in orders if order.fits and expected.get(order.name, math.inf) < slowest][:MAX_TRIES]
        tries = [(order, programs[order.name].json) for order in better]
        would_help = {
            order.name: _would_help(programs[order.name].simulate(limited if order.fits else costs, transport=self.transports[0])) for order in (given, *better)
        }
        return _Chosen(tries, tuple(orders), given, expected, *min(bounds), would_help, limit, remarks)

    def _explain(self, measured: float, predicted: float) -> str:
        """What may be the cause of a step that was not predicted."""
        ratios = {
            f"{kind} of stage {stage}": (median(times), sorted(times)[len(times) * 9 // 10])
            for kind, stages in self.profile.times.items()
            for stage, times in stages.items()
        }
        name, (middle, high) = max(ratios.items(), key=lambda found: found[1][1] - found[1][0])
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
        return (
            f"the given program took {measured:.4g} ms a step, but {predicted:.4g} ms are predicted; what varies most is {name}: "
            f"{middle / 1000:.4g} ms in the median, {high / 1000:.4g} ms or more in one of ten"
            + (f"; the machine of rank 0 has a load of {load:.1f} on {cores} cores" if load > cores else "")
        )

    # Running.

    def _try_program(self, text: str) -> str | None:
        """Runs a first step of a program. If a rank refuses it, all ranks have the given one again; then returns why."""
        try:
            with self.groups.raise_on_all_ranks():
                program = Program.from_json(text)
            self.runtime.set_program(program)  # Compares digests.
            self._step(self.meter)  # Infers shapes.
        except UsageError as error:
            if not _is_on_all_ranks(self.runtime):
                raise
            self.runtime.set_program(self.given)
            # On others than its own rank it begins with the rank.
            return max(self.groups.all_gather(str(error)), key=len)
        return None

    def _write(self, folder: Path, result: TuneResult) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "measured.pp").write_text(result.measured)
        self.runtime.program.save(folder / "tuned.json")
        (folder / "report.txt").write_text(f"{result}\n")
        costs = folder / "costs.json"
        costs.write_text(self.profile.costs())
        frames = [
            f"<h2>{title}</h2>" + iframe(title, program.timeline(costs, transport=self.transports[0]).html)
            for title, program in (("Before", self._without_costs()), ("After", self.runtime.program))
        ]
        (folder / "report.html").write_text(f"<!doctype html><title>ppcc tune</title><pre>{escape(str(result))}</pre>{''.join(frames)}")


def _static_memory(runtime: Runtime, stage: int) -> int:
    module = next(module for (_, number), module in runtime._linked.modules.items() if number == stage)
    total = sum(buffer.nbytes for buffer in module.buffers())
    for weight in module.parameters():
        state = {} if runtime.optimizer is None else runtime.optimizer.state.get(weight, {})
        total += weight.nbytes * (2 if weight.requires_grad else 1)
        total += sum(value.nbytes for value in state.values() if isinstance(value, Tensor))
    return total


def _would_help(report: Report) -> tuple[str, ...]:
    """What the report says would shorten the step, in milliseconds."""
    found, makespan = report.document, report.makespan
    texts = {
        "another order of actions: at most": makespan - found.get("resource_bound", makespan),
        "messages in no time:": makespan - found.get("makespan_without_messages", makespan),
        "memory for one more activation lowers the bound by": found.get("one_more_activation", 0),
        "no memory limit lowers the bound by": found.get("limits_cost", 0),
    }
    return tuple(f"{text} {saved:.4g} ms ({100 * saved / makespan:.1f} %)" for text, saved in texts.items() if saved > 0.0005 * makespan)
