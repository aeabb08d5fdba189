"""What a run costs: docs/reports.md says what each figure is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._deprecated import Renamed


@dataclass(frozen=True, slots=True)
class Bubble:
    """Time in which a rank computes nothing, by the phase of the action that waits and what it waits for."""

    phase: str
    waits_for: str
    time: float


@dataclass(frozen=True, slots=True)
class LiveActivations:
    """What a rank holds of a stage at its peak: microbatches, the first and the last of them, and how much."""

    pipe: str
    stage: int
    microbatches: int
    first: int
    last: int
    memory: float


@dataclass(frozen=True, slots=True)
class CriticalSection:
    """A stretch of the critical path on one rank, from one action to another."""

    rank: int
    begin: float
    end: float
    communication: float
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class RankReport:
    """The figures of one rank."""

    rank: int
    begin: float
    end: float
    span: float
    busy: float
    idle: float
    actions: int
    sends: int
    peak_activations: int
    peak_memory: float
    peak_at: float | None
    peak_action: str | None
    peak_live: tuple[LiveActivations, ...]
    static_memory: float
    final_memory: float
    memory_limit: float | None
    bubbles: tuple[Bubble, ...]

    peak_held = Renamed("peak_live")

    @property
    def bubble(self) -> float:
        """All of its time without work, from the start of the run to its end."""
        return sum(bubble.time for bubble in self.bubbles)


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a run."""

    schedule: str
    transport: str
    """`none` for a run by data alone."""
    actions: int
    messages: int
    makespan: float
    bound: float
    bubble_rate: float
    global_bubble_rate: float
    ranks: tuple[RankReport, ...]
    critical_path: tuple[CriticalSection, ...]
    document: Mapping[str, Any] = field(repr=False, compare=False)
    """All of it as the compiler wrote it."""

    @property
    def peak_memory(self) -> float:
        """The most that any rank holds."""
        return max(rank.peak_memory for rank in self.ranks)

    @property
    def peak_activations(self) -> int:
        """The most microbatches that any rank holds, counted stage by stage."""
        return max(rank.peak_activations for rank in self.ranks)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Report:
        """Reads what `--emit=report-json` writes."""
        return Report(
            schedule=document["schedule"],
            transport=document["transport"],
            actions=document["actions"],
            messages=document["messages"],
            makespan=document["makespan"],
            bound=document["bound"],
            bubble_rate=document["bubble_rate"],
            global_bubble_rate=document["global_bubble_rate"],
            ranks=tuple(map(_rank, document["ranks"])),
            critical_path=tuple(
                CriticalSection(
                    row["rank"], row["begin"], row["end"], row["communication"], row["first"], row["last"]
                )
                for row in document["critical_path"]
            ),
            document=document,
        )


def _rank(row: Mapping[str, Any]) -> RankReport:
    return RankReport(
        rank=row["rank"],
        begin=row["begin"],
        end=row["end"],
        span=row["span"],
        busy=row["busy"],
        idle=row["idle"],
        actions=row["actions"],
        sends=row["sends"],
        peak_activations=row["peak_activations"],
        peak_memory=row["peak_memory"],
        peak_at=row.get("peak_at"),
        peak_action=row.get("peak_action"),
        peak_live=tuple(
            LiveActivations(held["pipe"], held["stage"], held["microbatches"], held["first"], held["last"], held["memory"])
            for held in row.get("peak_live", ())
        ),
        static_memory=row["static_memory"],
        final_memory=row["final_memory"],
        memory_limit=row.get("memory_limit"),
        bubbles=tuple(Bubble(bubble["phase"], bubble["waits_for"], bubble["time"]) for bubble in row["bubbles"]),
    )
