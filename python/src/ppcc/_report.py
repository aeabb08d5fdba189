"""The figures of a simulated run; docs/reports.md defines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ._documents import from_row
from ._table import html_table, memory_text, text_table, time_text


@dataclass(frozen=True, slots=True)
class Bubble:
    """Time in which a rank computes nothing, grouped by phase and cause."""

    phase: str
    """The phase of the action that waits; empty without one, and after the last action."""
    waits_for: str
    """`rank N`, `communication`, `lane`, or `end` (this rank has finished and others have not)."""
    time: float
    """In the time unit of the costs."""


@dataclass(frozen=True, slots=True)
class LiveActivations:
    """The activations of one stage that a rank holds at its peak of memory."""

    pipe: str
    """The name of the pipe."""
    stage: int
    microbatches: int
    """Their number."""
    first: int
    """The lowest of these microbatches."""
    last: int
    """The highest of these microbatches."""
    memory: float
    """In the memory unit of the costs."""


@dataclass(frozen=True, slots=True)
class CriticalSection:
    """Consecutive actions of the critical path on one rank. Times are in the time unit of the costs."""

    rank: int
    begin: float
    end: float
    communication: float
    """How much of this time is communication."""
    first: str
    """The first action, such as `0F3`."""
    last: str
    """The last action."""


@dataclass(frozen=True, slots=True)
class RankReport:
    """The figures of one rank. Times are in the time unit of the costs, memory in their memory unit."""

    rank: int
    begin: float
    """The start of the first compute action."""
    end: float
    """The end of the last compute action."""
    span: float
    """end - begin."""
    busy: float
    """The time of all compute actions."""
    idle: float
    """span - busy."""
    actions: int
    """The number of actions that occupy the rank: compute and declared ones, not messages."""
    sends: int
    """The number of messages sent."""
    peak_activations: int
    """The largest number of pairs of stage and microbatch that the rank holds at one time."""
    peak_memory: float
    """The largest amount of memory that the rank holds, static memory included."""
    peak_at: float | None
    """When the rank first holds `peak_memory`."""
    peak_action: str | None
    """The action that allocates the last of it, such as `0F3`."""
    peak_live: tuple[LiveActivations, ...]
    """The activations that the rank holds then, by stage."""
    static_memory: float
    """Weights, gradients and optimizer state."""
    final_memory: float
    """The memory that the rank holds after its last action."""
    memory_limit: float | None
    """The memory that the rank may hold; None without a limit."""
    bubbles: tuple[Bubble, ...]
    """All time without work from 0 to the makespan."""

    @property
    def bubble(self) -> float:
        """The time without work from 0 to the makespan: the sum of `bubbles`."""
        return sum(bubble.time for bubble in self.bubbles)


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a simulated run (docs/reports.md), as `Program.simulate` returns them.

    Times are in the time unit of the costs, memory in their memory unit, rates between 0 and 1. `print()` shows the figures
    and a row per rank; a notebook shows them as a table.

    Examples:
        >>> import ppcc
        >>> print(ppcc.compile("one_f_one_b", P=2, M=4).simulate())
        one_f_one_b on stream: makespan 15, bubble 20.00 %, peak memory 2, 8 messages
        rank  busy  span  idle  activations  memory
           0    12    15     3            2       2
           1    12    12     0            1       1
    """

    schedule: str
    transport: str
    """The transport of the simulation; `none` for a program without messages."""
    actions: int
    """The number of actions of all ranks, without messages."""
    messages: int
    """The number of messages."""
    makespan: float
    """The time from the first start to the last end of all ranks."""
    bound: float
    """The makespan without messages, limited by data dependences alone."""
    bubble_rate: float
    """(longest span - average work of a rank) / longest span."""
    global_bubble_rate: float
    """(makespan - average work of a rank) / makespan."""
    ranks: tuple[RankReport, ...]
    """The figures of each rank, by number."""
    critical_path: tuple[CriticalSection, ...]
    """The chain of actions and messages that determines the makespan."""
    document: Mapping[str, Any] = field(repr=False, compare=False)
    """The whole report, as `--emit=report-json` writes it."""

    @property
    def jitter_mean(self) -> float:
        """The mean makespan of runs whose times differ as `jitter` says (docs/reports.md#jitter); without jitter the makespan."""
        return float(self.document.get("jitter_mean", self.makespan))

    @property
    def jitter_p95(self) -> float:
        """What 95 % of the makespans of these runs do not exceed."""
        return float(self.document.get("jitter_p95", self.makespan))

    @property
    def time_unit(self) -> str | None:
        """`s`, `ms` or `us`; None if neither model nor cluster says it."""
        return self.document.get("time_unit")

    @property
    def memory_unit(self) -> str | None:
        """`bytes`, or None likewise."""
        return self.document.get("memory_unit")

    @property
    def peak_memory(self) -> float:
        """The largest `peak_memory` of any rank."""
        return max(rank.peak_memory for rank in self.ranks)

    @property
    def peak_activations(self) -> int:
        """The largest `peak_activations` of any rank."""
        return max(rank.peak_activations for rank in self.ranks)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Report:
        """Read the parsed JSON that `--emit=report-json` writes.

        Args:
            document: The parsed JSON.

        Returns:
            The report.
        """
        path = (from_row(CriticalSection, row) for row in document["critical_path"])
        return from_row(Report, document, ranks=tuple(map(_rank, document["ranks"])), critical_path=tuple(path), document=document)

    def _time(self, value: float) -> str:
        return time_text(value, self.time_unit)

    def _memory(self, value: float) -> str:
        return memory_text(value, self.memory_unit)

    def _headline(self) -> str:
        return (
            f"{self.schedule} on {self.transport}: makespan {self._time(self.makespan)}, "
            f"bubble {100 * self.global_bubble_rate:.2f} %, peak memory {self._memory(self.peak_memory)}, {self.messages} messages"
        )

    def _table(self) -> list[dict[str, object]]:
        return [
            {
                "rank": rank.rank,
                "busy": self._time(rank.busy),
                "span": self._time(rank.span),
                "idle": self._time(rank.idle),
                "activations": rank.peak_activations,
                "memory": self._memory(rank.peak_memory),
            }
            for rank in self.ranks
        ]

    def __repr__(self) -> str:
        return f"<Report {self._headline()}>"

    def __str__(self) -> str:
        return f"{self._headline()}\n{text_table(self._table())}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._headline())}</p>{html_table(self._table())}"


def _rank(row: Mapping[str, Any]) -> RankReport:
    live = (from_row(LiveActivations, held) for held in row.get("peak_held", ()))
    return from_row(RankReport, row, peak_live=tuple(live), bubbles=tuple(from_row(Bubble, bubble) for bubble in row["bubbles"]))
