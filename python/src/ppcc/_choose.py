"""The best order of actions for measured costs: library schedules and what synthesis finds, within a memory limit.

An order is rated by the mean makespan of the runs that the compiler simulates with the measured jitter.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._compiler import SynthesisResult, compile, compile_source, schedules, synthesize
from ._diagnostics import CompileError, UsageError
from ._profile import Profile
from ._program import Program
from ._report import Report
from ._run import Costs
from ._sweep import LIMIT_TOO_SMALL, limited_costs

COMPUTES = {"F", "B", "I", "W"}
MIN_GAIN = 0.01
"""An order must be predicted to save this share of the step, to be tried."""
MAX_TRIES = 3
MAX_LIMIT = 10**12
"""The largest memory limit of the compiler."""


@dataclass(frozen=True)
class TunedOrder:
    """An order of actions that `tune` has simulated. Times are in milliseconds."""

    name: str
    """The name of the schedule in the library, `synthesized`, or `given`, the program that the Runtime had. If layers have moved, also
    `moved`, the order with which they were chosen."""
    expected: float | None
    """The expected step; None for orders that do not fit."""
    makespan: float
    """The simulated makespan with the means of all costs."""
    memory: float
    """The largest amount of memory of any rank, in bytes."""
    fits: bool
    """Whether it keeps to the memory limit."""


@dataclass
class Choice:
    """What was found. Times are in milliseconds."""

    tries: list[tuple[TunedOrder, str]]
    """The orders that are better than the base, the best first, as JSON."""
    orders: tuple[TunedOrder, ...]
    """All that were simulated, the best first."""
    base: TunedOrder
    expected: dict[str, float]
    bound: float
    why: str
    would_help: dict[str, tuple[str, ...]]
    """By the names of the base and of `tries`."""
    remarks: list[str]


@dataclass
class Chooser:
    """Chooses among orders with the placement and the number of microbatches of a program."""

    placement: Program
    profile: Profile
    transports: Sequence[str]
    """Orders are simulated on the first."""
    effort: int
    """How many millions of actions each search may simulate."""
    restored: Mapping[int, int] | None = None
    """By stage, what its forward keeps that it can compute again, in bytes; None if stages may not recompute. It takes as long as the forward."""

    def choose(self, candidates: dict[str, Program], limit: float, overhead: float, min_gain: float = MIN_GAIN) -> Choice:
        """The best orders within a memory limit in bytes; the first candidate is the base. Raises UsageError if no order fits."""
        with tempfile.TemporaryDirectory() as folder, ExitStack() as files:

            def both(recomputes: bool) -> tuple[Path, Costs]:
                """A file of the costs, and one that has the memory limit, too."""
                path = Path(folder) / f"costs{recomputes}.json"
                path.write_text(self.costs(recomputes))
                return path, files.enter_context(limited_costs(path, min(limit, MAX_LIMIT)))

            return self._choose(candidates, limit, overhead, min_gain, {recomputes: both(recomputes) for recomputes in self._recomputes()})

    def costs(self, recomputes: bool = False) -> str:
        """The costs as a file for `--costs`, of programs that recompute or not."""
        text = self.profile.costs()
        if not recomputes:
            return text
        assert self.restored is not None
        document = json.loads(text)
        for item in ("cost", "jitter"):
            document[item]["R"] = document[item]["F"]
        document["memory"]["R"] = [size for _, size in sorted(self.restored.items())]
        return json.dumps(document)

    def _recomputes(self) -> Sequence[bool]:
        return (False,) if self.restored is None else (False, True)

    def _choose(self, candidates: dict[str, Program], limit: float, overhead: float, min_gain: float, files: Mapping[bool, tuple[Path, Costs]]) -> Choice:
        """`files` are those of costs, without and with recomputation."""
        programs = {**{name: without_costs(program) for name, program in candidates.items()}, **dict(self._library(files[False][0]))}
        bounds: list[tuple[float, str]] = []
        remarks = []
        for recomputes in self._recomputes():
            for kinds, name in (({"F", "I", "W"}, "synthesized"), ({"F", "B"}, "synthesized with B")):
                if not kinds <= self.known_kinds():
                    continue
                try:
                    found = self.synthesize(fused_backward="B" in kinds, recompute=recomputes, effort=self.effort, costs=files[recomputes][1])
                except CompileError as error:
                    if any(one.code != LIMIT_TOO_SMALL for one in error.errors):
                        raise
                    remarks.append(f"no order with {', '.join(sorted(kinds | ({'R'} if recomputes else set())))} fits: {error.errors[0].message}")
                    continue
                bounds.append((found.bound, found.why))
                if not recomputes or "R" in compute_kinds(program := self.compile(found.text)):
                    programs[f"{name}, recomputing" if recomputes else name] = program if recomputes else self.compile(found.text)
        if not bounds:
            raise UsageError("; ".join(remarks))
        costs, limited = ({name: files["R" in compute_kinds(program)][place] for name, program in programs.items()} for place in (0, 1))
        reports = {name: program.simulate(costs[name], transport=self.transports[0]) for name, program in programs.items()}
        base_name = next(iter(candidates))
        fitting = {name for name, report in reports.items() if report.peak_memory <= limit}
        expected = {name: reports[name].jitter_mean + overhead for name in fitting | {base_name}}
        orders = [
            TunedOrder(name, expected.get(name), report.makespan, _whole(report.peak_memory), name in fitting) for name, report in reports.items()
        ]
        base = orders[0]
        orders.sort(key=lambda order: (not order.fits, order.expected or order.makespan))
        slowest = (1 - min_gain) * expected[base.name] if base.fits else math.inf
        better = [order for order in orders if order.fits and expected.get(order.name, math.inf) < slowest][:MAX_TRIES]
        tries = [(order, programs[order.name].json) for order in better]
        would_help = {
            order.name: _would_help(programs[order.name].simulate((limited if order.fits else costs)[order.name], transport=self.transports[0])) for order in (base, *better)
        }
        return Choice(tries, tuple(orders), base, expected, *min(bounds), would_help, remarks)

    def known_kinds(self) -> set[str]:
        """The kinds whose time is known for all stages."""
        return {kind for kind, stages in self.profile.times.items() if len(stages) == self.placement.pipes[0].num_stages}

    def synthesize(self, **arguments: Any) -> SynthesisResult:
        if arguments.get("recompute"):  # The file of a program has no R.
            params = {"P": self.placement.num_ranks, "M": self.placement.num_microbatches}
            return synthesize(self._placement_name(), params=params, transport=self.transports, **arguments)
        with tempfile.TemporaryDirectory() as folder:
            placement = Path(folder) / "given.json"
            without_costs(self.placement).save(placement)
            return synthesize(placement, transport=self.transports, **arguments)

    def _placement_name(self) -> str:
        (pipe,), ranks = self.placement.pipes, self.placement.num_ranks
        chunks = pipe.num_stages // ranks
        for kind in ("loop", "wave"):
            if pipe.rank_of_stage == rank_of_stage(kind, chunks, ranks):
                return f"{kind}:{chunks}"
        raise UsageError("stages can recompute only in the placements linear, v, loop and wave")

    def compile(self, text: str) -> Program:
        return compile_source(text, transport=self.transports)

    def peak_memory(self, program: Program) -> float:
        """The memory that a program takes on the rank that holds most, in bytes."""
        return _whole(self.simulate(program).peak_memory)

    def simulate(self, program: Program) -> Report:
        """A run of a program that does not recompute, with these costs."""
        with tempfile.TemporaryDirectory() as folder:
            costs = Path(folder) / "costs.json"
            costs.write_text(self.profile.costs())
            return without_costs(program).simulate(costs, transport=self.transports[0])

    def _library(self, costs: Path) -> Iterator[tuple[str, Program]]:
        """The orders of the library for this placement, of F, B, I and W."""
        pipe, ranks = self.placement.pipes[0], self.placement.num_ranks
        for info in schedules():
            values = {"P": ranks, "M": self.placement.num_microbatches, "V": pipe.num_stages // ranks}
            params = {name: value for name, value in values.items() if name in info.parameters}
            try:
                found = compile(info.name, params=params, transport=self.transports, costs=costs)
            except CompileError:  # It does not take these numbers.
                continue
            placed = [(there.rank_of_stage, there.skip_edges, there.gaps, there.slices) for there in found.pipes]
            grouped = any(action.group is not None and not action.kind.is_message for own in found.actions for action in own)
            if placed == [(pipe.rank_of_stage, (), (), 1)] and not grouped and compute_kinds(found) <= COMPUTES & self.known_kinds():
                yield info.name, found


def rank_of_stage(kind: str, chunks: int, ranks: int) -> tuple[int, ...]:
    """Which rank has which stage in the placements `loop` and `wave`, with so many stages a rank."""
    rows = [range(ranks) if kind == "loop" or chunk % 2 == 0 else reversed(range(ranks)) for chunk in range(chunks)]
    return tuple(rank for row in rows for rank in row)


def without_costs(program: Program) -> Program:
    """The program without the costs that it may have of its own, and without what they are in."""
    document = json.loads(program.json)
    return Program.from_json(json.dumps({key: value for key, value in document.items() if key not in ("costs", "units")}))


def compute_kinds(program: Program) -> set[str]:
    """The mnemonics of all actions but messages."""
    return {program.kinds[kind].mnemonic for kind in program._rows.kinds() if not program.kinds[kind].is_message}


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


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
