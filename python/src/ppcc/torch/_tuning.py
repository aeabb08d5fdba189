"""The loop of tune(), for all runtimes: finds the order of actions with the shortest step, from measured costs (docs/tuning.md).

1. Run some steps of the given program, and of one with the other kind of backward (B, or I and W) if the stages allow it.
2. Fit costs: means and jitter by kind and stage, the latency of edges, memory.
3. On rank 0, simulate the orders of the library for this placement, and those that synthesis finds. An order is rated by the
   mean makespan of runs that the compiler simulates with the measured jitter.
4. Run the best in turns with the given program, and keep the faster.

The loop runs no step itself. It is a generator: it yields who is to observe the next step, and is sent how long that took. So
steps of a training loop that others own serve as well as those that tune() runs (Tuner).
"""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, cast

import torch
from torch import nn

from .. import _diagnostics
from .._choose import COMPUTES, MAX_LIMIT, Choice, Chooser, compute_kinds, without_costs
from .._profile import new_profile
from .._program import Program
from ._errors import UsageError
from ._groups import Groups
from ._measure import MemoryMeter, Observer, TimeRecorder, now
from ._tune_cache import Cache, StaleError, cache_of
from ._tune_options import TuneOptions
from ._tune_result import TuneResult

T = TypeVar("T")
MAX_UNEXPLAINED = 0.05
Steps = Generator[Observer, float, T]
"""Yields who observes the next step, and is sent how long the step took on this rank, in milliseconds."""


class Job(ABC):
    """What runs the steps, on one rank."""

    rank: int
    groups: Groups
    """Of all processes that decide together."""
    inputs: Any
    """What steps are called with, on which results in the cache depend."""
    advice = ""
    """What to do if no order fits."""
    recomputes = False
    """Whether stages may compute their activations again."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """The program that steps run."""

    @abstractmethod
    def set_program(self, program: Program) -> None:
        """Sets the program of the next steps. Raises UsageError on all ranks if one cannot run it."""

    @property
    def host_waits(self) -> bool:
        """Whether the host waits for messages."""
        return True

    @property
    def transports(self) -> list[str]:
        """The transports under which orders must not deadlock; they are simulated on the first."""
        return list(dict.fromkeys([*(["posted"] if self.host_waits else []), *self.program.transports]))

    @property
    @abstractmethod
    def modules(self) -> Mapping[int, nn.Module]:
        """The stages of this rank."""

    @abstractmethod
    def static_memory(self, state_per_weight: float) -> dict[int, int]:
        """What weights, gradients, buffers and the state of the optimizer take by stage of this rank, in bytes."""

    def new_meter(self) -> MemoryMeter:
        return MemoryMeter()

    def goes_on(self) -> bool:
        """Whether all ranks have raised the same UsageError together, so that the job goes on."""
        return True


def check_program(program: Program, rank: int) -> None:
    """Raises UsageError for programs that cannot be tuned."""
    kinds = compute_kinds(program)
    own = [action for action in program.actions[rank] if not action.kind.is_message]
    reasons = {
        "programs of one pipe whose stages read the stage before them": len(program.pipes) > 1 or program.pipes[0].skip_edges or program.pipes[0].gaps,
        "programs of whole sequences, without slices": any(pipe.slices > 1 for pipe in program.pipes),
        "training programs": not program.has_backward,
        f"programs of F, B, I and W; this has {', '.join(sorted(kinds - COMPUTES))}": kinds - COMPUTES,
        "programs whose stages all have the same kinds of backward": len({(action.op, action.stage) for action in own})
        != len(kinds) * len(program.local_stages(rank)),
        "programs without overlap groups": any(len(group.actions) > 1 and not group.actions[0].kind.is_message for group in program.groups(rank)),
    }
    raise_first(reasons)


def raise_first(reasons: Mapping[str, object]) -> None:
    """Raises UsageError for the first that holds."""
    for supported, refused in reasons.items():
        if refused:
            raise UsageError(f"tune() supports only {supported}")


def from_rank_0(job: Job, make: Callable[[], T]) -> T:
    """The value that a function returns on rank 0, on all ranks; raises UsageError on all ranks if it raises."""
    made: Any = None
    with job.groups.raise_on_all_ranks():
        if job.rank == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = make()
    return cast(T, job.groups.all_gather(made)[0])


class Tuning:
    """The state of one loop."""

    def __init__(self, job: Job, options: TuneOptions) -> None:
        self.job, self.options, self.groups = job, options, job.groups
        self.given = job.program
        self.base, self.base_name = self.given, "given"
        """What other orders are compared with."""
        self.profile = new_profile()
        self.restored: dict[int, int] | None = None
        """If stages may recompute: what that frees, by stage, in bytes."""
        self.meter = self.new_meter()
        self.overheads: list[float] = []
        """What steps take beside their actions."""
        self.remarks: list[str] = []
        self.steps = 0
        self.step_seconds = 0.0
        self.began = time.process_time()
        self.transports = job.transports

    def run(self) -> Steps[TuneResult]:
        """Tunes. If it raises UsageError and the job goes on, the job has the given program."""
        try:
            file = None if self.options.cache is None else self._cache(self.options.cache)
            if file is not None and (known := self._from_cache(file)) is not None:
                return known
            result = yield from self._run()
            if file is not None:
                from_rank_0(self.job, partial(file.save, result, self.job.program))
            return result
        except UsageError:
            if self.job.goes_on():
                self.undo()
                self.job.set_program(self.given)
            raise

    def _run(self) -> Steps[TuneResult]:
        yield from self._step(self.meter)  # The first step opens connections and infers shapes.
        walls = given_walls = yield from self._measure()
        self.given_costs = self.chooser.costs()
        asked = self.options.memory_limit
        limit = int(from_rank_0(self.job, lambda: self.chooser.peak_memory(self.given) if asked is None else asked))
        walls, predicted = yield from self._rearrange(limit, walls)
        for kinds, name in (({"I", "W"}, "I and W"), ({"B"}, "B")):
            if not kinds <= self.chooser.known_kinds():
                probe = from_rank_0(self.job, partial(self._probe, fused="B" in kinds))
                if (error := (yield from self._try_program(probe))) is None:
                    yield from self._measure()
                else:
                    self.remarks.append(f"orders with {name} were left out: {error}")
        chosen = from_rank_0(self.job, lambda: self._choose(limit))
        if predicted is not None:
            chosen.expected[self.base_name] = predicted
        self.profile.limit = min(limit, MAX_LIMIT)
        self.remarks += chosen.remarks
        kept, measured, before = chosen.base, median(walls), median(walls)
        self.job.set_program(self.base)
        for order, text in chosen.tries:
            if (error := (yield from self._try_program(text))) is not None:
                self.remarks.append(f"{order.name} was left out: {error}")
                continue
            before, after = yield from self._compare(self.job.program)
            if after < before or not chosen.base.fits:
                kept, measured = order, after
            else:
                self.remarks.append(f"{order.name} was not faster: {after:.4g} ms, {chosen.expected[order.name]:.4g} ms predicted")
                self.job.set_program(self.base)
                measured = before
            break
        else:
            if not chosen.base.fits:
                raise UsageError(f"no order within the memory limit of {limit} bytes can run: {'; '.join(self.remarks)}")
        unexplained = median(walls) / chosen.expected[self.base_name] - 1
        if abs(unexplained) > MAX_UNEXPLAINED:
            self.remarks.append(from_rank_0(self.job, lambda: self._explain(median(walls), chosen.expected[self.base_name])))
        result = TuneResult(
            order=kept.name,
            before=before if self.base_name == "given" else median(given_walls),
            after=measured,
            predicted=chosen.expected[kept.name],
            bound=chosen.bound,
            why=chosen.why,
            would_help=chosen.would_help[kept.name],
            unexplained=unexplained,
            remarks=tuple(self.remarks),
            memory_limit=limit,
            orders=chosen.orders,
            measured=self.profile.model(),
            steps=self.steps,
            processor_seconds=max(self.groups.all_gather(time.process_time() - self.began - self.step_seconds)),
            **self._more_results(),
        )
        if (output := self.options.output) is not None:
            from_rank_0(self.job, lambda: self._write(Path(output), result))
        return result

    # What front ends may add.

    def new_meter(self) -> MemoryMeter:
        return self.job.new_meter()

    def _rearrange(self, limit: int, walls: list[float]) -> Steps[tuple[list[float], float | None]]:
        """May give stages other layers. Returns the times of steps, and what was predicted for them if they have changed."""
        return walls, None
        yield

    def undo(self) -> None:
        """Gives stages what they had."""

    def reset(self) -> None:
        """Returns to what other orders are compared with."""
        self.job.set_program(self.base)

    def _more_results(self) -> dict[str, Any]:
        return {}

    def _adopt(self, result: TuneResult) -> None:
        """Gives stages what a result from the cache says."""

    def _cache_options(self) -> dict[str, Any]:
        """On which options results depend."""
        return {name: getattr(self.options, name) for name in ("memory_limit", "effort", "state_per_weight")} | {"recompute": self.job.recomputes}

    # The cache.

    def _cache(self, folder: str | os.PathLike[str]) -> Cache:
        return cache_of(folder, self.groups, self.given, self.job.modules, self.job.inputs, self._cache_options())

    def _from_cache(self, file: Cache) -> TuneResult | None:
        """Uses the result in a file, if there is one that fits."""

        def load() -> tuple[TuneResult, str] | str | None:
            try:
                return file.load()
            except StaleError as error:
                return str(error)

        found = from_rank_0(self.job, load)
        if isinstance(found, str):
            self.remarks.append(f"the cache was not used: {found}")
        if found is None or isinstance(found, str):
            return None
        result, text = found
        try:
            self._adopt(result)
            with self.groups.raise_on_all_ranks():
                program = Program.from_json(text)
            self.job.set_program(program)
        except UsageError as error:
            self.undo()
            self.job.set_program(self.given)
            self.remarks.append(f"the cache was not used: {max(self.groups.all_gather(str(error)), key=len)}")
            return None
        return result

    # Measuring.

    def _measure(self) -> Steps[list[float]]:
        """Adds what some steps of the job's program measure to the profile, and returns their times."""
        recorder, walls = TimeRecorder(), []
        for _ in range(self.options.steps):
            walls.append((yield from self._step(recorder)))
        static = self.job.static_memory(self.options.state_per_weight)
        spans = recorder.gather(self.groups, self.meter.kept | {"static": static}, self.profile)
        if self.job.recomputes:
            self.restored = {stage: size for there in self.groups.all_gather(self.meter.restored) for stage, size in there.items()}
        self.overheads += [max(0.0, wall - span) for wall, span in zip(walls, spans, strict=True)]
        return walls

    def _compare(self, program: Program) -> Steps[tuple[float, float]]:
        """The steps of the base and of another program, in turns."""
        found: dict[bool, list[float]] = {False: [], True: []}
        for is_new in (True, False) * self.options.steps:
            self.job.set_program(program if is_new else self.base)
            found[is_new].append((yield from self._step(Observer())))
        self.job.set_program(program)
        return median(found[False]), median(found[True])

    def _step(self, observer: Observer) -> Steps[float]:
        """Waits for a step, and returns how long it took on the slowest rank, in milliseconds."""
        wall = yield observer
        self.steps += 1
        return max(self.groups.all_gather(wall))

    # Choosing, on rank 0.

    @property
    def chooser(self) -> Chooser:
        return Chooser(self.base, self.profile, self.transports, self.options.effort, self.restored)

    def _probe(self, *, fused: bool) -> str:
        """The JSON of a program of this placement with the other kind of backward, that holds no more activations than the base."""
        limit, chooser = without_costs(self.base).simulate().peak_activations, self.chooser
        return chooser.compile(chooser.synthesize(fused_backward=fused, effort=1, costs={"memory.limit": limit}).text).json

    def _candidates(self) -> dict[str, Program]:
        """The programs to compare with others, the base first."""
        return {self.base_name: self.base}

    def _choose(self, limit: int) -> Choice:
        try:
            return self.chooser.choose(self._candidates(), limit, median(self.overheads))
        except _diagnostics.UsageError as error:
            raise UsageError(f"{error}{self.job.advice if self.restored is None else ''}") from error

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
            f"the {self.base_name} program took {measured:.4g} ms a step, but {predicted:.4g} ms are predicted; what varies most is {name}: "
            f"{middle / 1000:.4g} ms in the median, {high / 1000:.4g} ms or more in one of ten"
            + (f"; the machine of rank 0 has a load of {load:.1f} on {cores} cores" if load > cores else "")
        )

    # Running.

    def _try_program(self, text: str) -> Steps[str | None]:
        """Waits for a first step of a program. If a rank refuses it, all ranks have the base again; then returns why."""
        try:
            with self.groups.raise_on_all_ranks():
                program = Program.from_json(text)
            self.job.set_program(program)  # Compares digests.
            yield from self._step(self.meter)  # Infers shapes.
        except UsageError as error:
            if not self.job.goes_on():
                raise
            self.reset()
            # On others than its own rank it begins with the rank.
            return max(self.groups.all_gather(str(error)), key=len)
        return None

    def _write(self, folder: Path, result: TuneResult) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "measured.pp").write_text(result.measured)
        self.job.program.save(folder / "tuned.json")
        (folder / "report.txt").write_text(f"{result}\n")
        before, after = (
            without_costs(program).timeline(costs, transport=self.transports[0])
            for program, costs in ((self.given, self.given_costs), (self.job.program, self.chooser.costs("R" in compute_kinds(self.job.program))))
        )
        (folder / "report.html").write_text(result.page(before, after, self.given.num_ranks))


class Tuner:
    """Tunes in steps that others run, each inside of `step()`, until there is a result."""

    def __init__(self, tuning: Tuning, *, keeps_training: bool = False) -> None:
        """If it `keeps_training`, a UsageError between steps ends the tuning alone: with a warning, and the given program."""
        self._tuning, self._steps, self._keeps_training = tuning, tuning.run(), keeps_training
        self._observer: Observer | None = None
        self.result: TuneResult | None = None
        self._advance(lambda: next(self._steps))

    @property
    def has_ended(self) -> bool:
        return self._observer is None

    @contextmanager
    def step(self) -> Iterator[Observer]:
        """A context for one step on all ranks, which this observes."""
        if self._observer is None:
            yield Observer()
            return
        self._tuning.groups.all_gather(None)  # Ranks begin together.
        processor, begin = time.process_time(), now()
        try:
            yield self._observer
        except UsageError as error:
            if self._keeps_training:
                raise
            caught = error
            self._advance(lambda: self._steps.throw(caught))
            return
        wall = (now() - begin) / 1e6
        self._tuning.step_seconds += time.process_time() - processor
        self._advance(lambda: self._steps.send(wall))

    def _advance(self, send: Callable[[], Observer]) -> None:
        self._observer = None
        try:
            self._observer = send()
        except StopIteration as end:
            self.result = end.value
        except UsageError as error:
            if not self._keeps_training:
                raise
            if self._tuning.job.rank == 0:
                warnings.warn(f"tune() has ended, and training goes on with the given program: {error}", stacklevel=2)
        if self.result is not None and self._keeps_training and self._tuning.job.rank == 0:
            print(self.result, flush=True)  # The training loop is not the user's.
