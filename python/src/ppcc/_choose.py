"""The best order of actions for measured costs: library schedules and what synthesis finds, within a memory limit.

An order is rated by the mean makespan of the runs that the compiler simulates with the measured jitter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._compiler import SynthesisResult, compile, compile_source, schedules, synthesize
from ._diagnostics import CompileError, UsageError
from ._profile import Profile
from ._program import Program, input_file
from ._report import Report
from ._run import Costs
from ._sweep import LIMIT_TOO_SMALL

COMPUTES = {"F", "B", "I", "W"}
MIN_GAIN = 0.01
"""An order must be predicted to save this share of the step, to be tried."""
MAX_TRIES = 3
MAX_LIMIT = 10**12
"""The largest memory limit of the compiler."""


@dataclass(frozen=True)
class Placement:
    """Which rank has which stage, as synthesis takes it."""

    name: str
    """One that synthesis knows, or the name of a program, whose placement it is."""
    rank_of_stage: tuple[int, ...]
    microbatches: int
    program: Program | None = None

    @staticmethod
    def of(program: Program) -> Placement:
        """That of a program."""
        return Placement("given", program.pipes[0].rank_of_stage, program.num_microbatches, program)

    @staticmethod
    def named(name: str, ranks: int, microbatches: int) -> Placement:
        """`linear`, `v`, `loop:V` or `wave:V`. Raises UsageError for others."""
        kind, _, chunks = "wave:2".partition(":") if name == "v" else "loop:1".partition(":") if name == "linear" else name.partition(":")
        if kind not in ("loop", "wave") or not chunks.isdigit() or not 1 <= int(chunks) <= 64:
            raise UsageError(f"`{name}` is no placement: they are linear, v, loop:V and wave:V, with V stages a rank")
        rows = [range(ranks) if kind == "loop" or chunk % 2 == 0 else reversed(range(ranks)) for chunk in range(int(chunks))]
        return Placement(name, tuple(rank for row in rows for rank in row), microbatches)

    def synthesize(self, **arguments: Any) -> SynthesisResult:
        """Raises CompileError, as for memory limits that are too small."""
        if self.program is None:
            return synthesize(self.name, params={"P": len(set(self.rank_of_stage)), "M": self.microbatches}, **arguments)
        with input_file(without_costs(self.program)) as path:
            return synthesize(path, **arguments)


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
        free = {recomputes: self.costs(recomputes) for recomputes in ((False,) if self.restored is None else (False, True))}
        limited = {recomputes: costs | {"limit": min(limit, MAX_LIMIT)} for recomputes, costs in free.items()}
        programs = {**{name: without_costs(program) for name, program in candidates.items()}, **dict(self._library(free[False]))}
        bounds: list[tuple[float, str]] = []
        remarks = []
        for recomputes in free:
            for kinds, name in (({"F", "I", "W"}, "synthesized"), ({"F", "B"}, "synthesized with B")):
                if not kinds <= self.known_kinds():
                    continue
                try:
                    found = self.synthesize(fused_backward="B" in kinds, recompute=recomputes, effort=self.effort, costs=limited[recomputes])
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

        def simulate(name: str, costs: Mapping[bool, Costs]) -> Report:
            return programs[name].simulate(costs["R" in compute_kinds(programs[name])], transport=self.transports[0])

        reports = {name: simulate(name, free) for name in programs}
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
        would_help = {order.name: _would_help(simulate(order.name, limited if order.fits else free)) for order in (base, *better)}
        return Choice(tries, tuple(orders), base, expected, *min(bounds), would_help, remarks)

    def costs(self, recomputes: bool = False) -> dict[str, Any]:
        """The costs, of programs that recompute or not."""
        costs: dict[str, Any] = json.loads(self.profile.costs())
        if recomputes:
            assert self.restored is not None
            for item in ("cost", "jitter"):
                costs[item]["R"] = costs[item]["F"]
            costs["memory"]["R"] = [size for _, size in sorted(self.restored.items())]
        return costs

    def known_kinds(self) -> set[str]:
        """The kinds whose time is known for all stages."""
        return {kind for kind, stages in self.profile.times.items() if len(stages) == self.placement.pipes[0].num_stages}

    def synthesize(self, *, recompute: bool = False, **arguments: Any) -> SynthesisResult:
        placement = Placement.of(self.placement)
        if recompute:  # The file of a program has no R.
            ranks, chunks = self.placement.num_ranks, self.placement.pipes[0].num_stages // self.placement.num_ranks
            named = [Placement.named(f"{kind}:{chunks}", ranks, placement.microbatches) for kind in ("loop", "wave")]
            same = [one for one in named if one.rank_of_stage == placement.rank_of_stage]
            if not same:
                raise UsageError("stages can recompute only in the placements linear, v, loop and wave")
            placement = same[0]
        return placement.synthesize(transport=self.transports, recompute=recompute, **arguments)

    def compile(self, text: str) -> Program:
        return compile_source(text, transport=self.transports)

    def peak_memory(self, program: Program) -> float:
        """The memory that a program takes on the rank that holds most, in bytes."""
        return _whole(self.simulate(program).peak_memory)

    def simulate(self, program: Program) -> Report:
        """A run of a program that does not recompute, with these costs."""
        return without_costs(program).simulate(self.costs(), transport=self.transports[0])

    def _library(self, costs: Costs) -> Iterator[tuple[str, Program]]:
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
