"""Memory against time: the best order for each of several memory limits."""

from __future__ import annotations

import io
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._compiler import synthesize
from ._diagnostics import CompileError
from ._run import Costs
from ._table import html_table, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT_TOO_SMALL = "E1102"


@dataclass(frozen=True)
class SweepPoint:
    """The best order for one limit of memory. Figures are None if no order fits."""

    limit: float
    """The memory that each rank may hold, in the memory unit of the costs."""
    fits: bool
    """Whether an order keeps to the limit."""
    makespan: float | None = None
    bound: float | None = None
    gap: float | None = None
    optimal: bool = False
    peak_memory: float | None = None
    knee: bool = False
    """Whether this is the knee: the point after which more memory saves less time."""


@dataclass(frozen=True)
class Sweep:
    """The best makespan for each limit of memory (docs/synthesis.md).

    `print()` shows a table; a notebook shows the table and, if Matplotlib is installed, the curve.
    """

    points: tuple[SweepPoint, ...]
    """One per limit, ascending."""

    def plot(self) -> Figure:
        """Draw the makespan and its lower bound over the memory limit.

        Returns:
            A figure of Matplotlib; `plot().savefig("curve.pdf")` saves it.

        Raises:
            ImportError: Matplotlib is not installed.

        Examples:
            >>> import ppcc
            >>> figure = ppcc.sweep("linear", P=2, M=4, limits=(1, 3)).plot()
            >>> figure.axes[0].get_xlabel()
            'memory limit'
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("plots need Matplotlib: pip install 'ppcc[plot]'") from error
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        for name, marker, style in (("makespan", "o", "-"), ("bound", "", "--")):
            values = [math.nan if (value := getattr(point, name)) is None else value for point in self.points]
            axes.plot([point.limit for point in self.points], values, marker=marker, linestyle=style, label=name)
        for point in self.points:
            if point.knee and point.makespan is not None:
                text = f"knee: {point.makespan:.9g} at {point.limit:.9g}"
                axes.annotate(text, (point.limit, point.makespan), textcoords="offset points", xytext=(8, 8))
        axes.set(xlabel="memory limit", ylabel="time")
        axes.legend()
        return figure

    def __repr__(self) -> str:
        return f"<Sweep of {len(self.points)} limits>"

    def __str__(self) -> str:
        return text_table([asdict(point) for point in self.points])

    def _repr_html_(self) -> str:
        table = html_table([asdict(point) for point in self.points])
        try:
            figure = self.plot()
        except ImportError:
            return table
        svg = io.StringIO()
        figure.savefig(svg, format="svg")
        return svg.getvalue()[svg.getvalue().index("<svg") :] + table


def sweep(
    placement: str | os.PathLike[str] = "linear", /, *, limits: tuple[float, float], costs: Costs | None = None, **arguments: Any
) -> Sweep:
    """Find the best order for each memory limit between two.

    What fits into less memory fits into more, so more memory never takes longer.

    Args:
        placement: The placement, as for `synthesize`.
        limits: The lowest and the highest limit, both included, in the memory unit of the costs: each whole number between
            whole ones at most 64 apart, else 17 limits at equal distances.
        costs: Costs, as for `synthesize`; the memory limit among them is replaced.
        **arguments: Further arguments of `synthesize`.

    Returns:
        The makespan for each limit.

    Raises:
        ValueError: The lowest limit is not below the highest.
        CompileError: The placement or the costs have errors.
        UsageError: An option is unknown or excludes another one.

    Examples:
        >>> import ppcc
        >>> print(ppcc.sweep("linear", P=4, M=12, limits=(1, 5), costs={"memory.static": 1}, effort=2))
        limit   fits  makespan  bound        gap  optimal  peak_memory   knee
            1  False                                False               False
            2   True       108    108          0     True            2  False
            3   True        61     59  0.0338983    False            3   True
            4   True        44     44          0     True            4  False
            5   True        39     39          0     True            5  False
    """
    points: list[SweepPoint] = []
    best: SweepPoint | None = None
    for limit in _between(*limits):
        try:
            with limited_costs(costs, limit) as with_limit:
                found = synthesize(placement, costs=with_limit, **arguments)
        except CompileError as error:
            if any(one.code != LIMIT_TOO_SMALL for one in error.errors):
                raise
            points.append(SweepPoint(limit, fits=False))
            continue
        value = found.span if arguments.get("objective") == "span" else found.makespan
        point = SweepPoint(limit, True, value, found.bound, found.gap, found.optimal, max(found.peak_memory))
        if best is not None and best.makespan is not None and best.makespan <= value:
            gap = (best.makespan - found.bound) / found.bound if found.bound else math.inf
            point = replace(best, limit=limit, bound=found.bound, gap=gap, optimal=best.makespan <= found.bound)
        points.append(best := point)
    return Sweep(tuple(_with_knee(points)))


def _between(low: float, high: float) -> list[float]:
    if not low < high:
        raise ValueError(f"limits={low, high}: the first must be below the second")
    if low == int(low) and high == int(high) and high - low <= 64:
        return list(range(int(low), int(high) + 1))
    return [low + (high - low) * step / 16 for step in range(17)]


@contextmanager
def limited_costs(costs: Costs | None, limit: float) -> Iterator[Costs]:
    """Yields costs with another memory limit of all ranks, those of a file as a temporary file."""
    if costs is None or isinstance(costs, Mapping):
        others = {name: value for name, value in (costs or {}).items() if name not in ("limit", "memory.limit")}
        yield {**others, "memory.limit": limit}
        return
    document = json.loads(Path(costs).read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(costs).name
        path.write_text(json.dumps({**document, "limit": limit}), encoding="utf-8")
        yield path


def _with_knee(points: list[SweepPoint]) -> list[SweepPoint]:
    """Marks the point that is farthest below the line from the first to the last, if one is below."""
    curve = [(number, point.limit, point.makespan) for number, point in enumerate(points) if point.makespan is not None]
    if len(curve) < 3:
        return points
    (_, first, top), (_, last, bottom) = curve[0], curve[-1]
    below, knee = max(((top - time) * (last - first) - (top - bottom) * (limit - first), -number) for number, limit, time in curve)
    if below <= 0:
        return points
    return [replace(point, knee=number == -knee) for number, point in enumerate(points)]
