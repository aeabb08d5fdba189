"""Comparisons of schedules, and a notebook widget with sliders."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._compiler import compile
from ._diagnostics import CompileError, UsageError
from ._run import Costs, Value, cost_options, definitions, option_argument, run
from ._table import html_table as table
from ._timeline import iframe, suffix

if TYPE_CHECKING:
    from anywidget import AnyWidget


@dataclass(frozen=True)
class Comparison:
    """The figures and timelines of several runs.

    `print()` shows the table; a notebook shows the table, and the timelines on one time axis.
    """

    rows: tuple[dict[str, float | str | None], ...]
    """One row per run; the keys are the columns of `ppcc compare`."""
    _arguments: tuple[str, ...]

    @cached_property
    def html(self) -> str:
        """An HTML page with the timelines, drawn on first use."""
        return run(["compare", *self._arguments, "--format=html"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison to a file.

        Args:
            path: The file; `.html` gets the timelines, `.csv` the table.

        Raises:
            ValueError: The file has another extension.
        """
        form = suffix(path, (".html", ".csv"))[1:]
        run(["compare", *self._arguments, f"--format={form}", "-o", os.fspath(path)])

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rows)} runs>"

    @cached_property
    def _text(self) -> str:
        return run(["compare", *self._arguments, "--format=text"]).rstrip("\n")

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"{table(self.rows)}<p>{escape(self._text.splitlines()[-1])}</p>{iframe('Comparison', self.html)}"


def compare(
    *schedules: str | os.PathLike[str],
    params: Mapping[str, Value] | None = None,
    sweep: Mapping[str, Iterable[Value]] | None = None,
    costs: Costs | None = None,
    transport: str | Sequence[str] | None = None,
    work: str | None = None,
    **more_params: Value,
) -> Comparison:
    """Compare schedules by makespan, bubble, memory and messages, as `ppcc compare` does (docs/reports.md).

    Args:
        *schedules: Names of the library, or paths of schedules or programs.
        params: Parameters of the schedules, for names that are arguments of this function.
        sweep: The values of each parameter to vary, such as `{"M": [8, 16]}`; several parameters give all combinations.
        costs: Costs by name, or the path of a file of costs; see `Program.simulate`.
        transport: The transport to simulate; by default that of each schedule.
        work: Whether costs are those of a `"rank"` (the default), whose stages share them, so that all schedules do the same
            work, or of each `"stage"`.
        **more_params: Parameters of the schedules.

    Returns:
        One row per schedule and combination of values.

    Raises:
        CompileError: A schedule has errors.
        UsageError: An option is unknown or does not fit the others.

    Examples:
        >>> import ppcc
        >>> compared = ppcc.compare("one_f_one_b", "zb_h1", P=4, sweep={"M": [8, 16]}, costs={"F": 1, "I": 1, "W": 1})
        >>> [(row["schedule"], row["M"], row["makespan"]) for row in compared.rows]
        [('one_f_one_b', 8, 33), ('one_f_one_b', 16, 57), ('zb_h1', 8, 27), ('zb_h1', 16, 51)]
    """
    sweeps = (f"--sweep={name}={','.join(map(_text, values))}" for name, values in (sweep or {}).items())
    arguments = (
        *(os.fspath(schedule) for schedule in schedules),
        *definitions(params, more_params),
        *sweeps,
        *cost_options(costs),
        *option_argument("--transport", transport),
        *option_argument("--work", work),
    )
    rows = csv.DictReader(io.StringIO(run(["compare", *arguments, "--format=csv"])))
    return Comparison(tuple({name: _number(text) for name, text in row.items()} for row in rows), arguments)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(text: str) -> float | str | None:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text or None


def explore(
    schedule: str | os.PathLike[str],
    /,
    *,
    costs: Mapping[str, float] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    transport: str | None = None,
    **params: Value,
) -> AnyWidget:
    """Show a notebook widget with sliders for the parameters and costs of a schedule, its figures and its timeline.

    Errors in the chosen values are shown below the last valid timeline. The attribute `program` of the widget is the program
    on display.

    Args:
        schedule: A name of the library, or the path of a schedule.
        costs: The costs that get a slider, with their first values, such as `{"F": 1, "latency": 0, "memory.limit": 16}`.
            By default each compute kind of the schedule gets one (B: 2, others: 1), and `latency` (0).
        ranges: The least and the greatest value of sliders, such as `{"P": (2, 16)}`.
        transport: The transport to verify and to simulate.
        **params: First values of parameters of the schedule.

    Returns:
        The widget.

    Raises:
        ImportError: The package anywidget is not installed (`pip install "ppcc[notebook]"`).
        CompileError: The schedule has errors with its first values.

    Examples:
        In a notebook::

            ppcc.explore("dualpipe", P=8, M=20, costs={"F": 1, "B": 2, "latency": 0})
    """
    try:
        from anywidget import AnyWidget
        from traitlets import Dict, List, Unicode
    except ImportError as error:
        raise ImportError('explore needs anywidget: pip install "ppcc[notebook]"') from error

    class Explorer(AnyWidget):  # type: ignore[misc]
        _esm = Path(__file__).parent / "_explore.js"
        _css = Path(__file__).parent / "_explore.css"
        controls = List().tag(sync=True)
        values = Dict().tag(sync=True)
        figures = Unicode().tag(sync=True)
        page = Unicode().tag(sync=True)
        problems = Unicode().tag(sync=True)

        def draw(self, _change: object = None) -> None:
            """Compiles and simulates with the values of the sliders."""
            chosen: dict[str, dict[str, Value]] = {"param": {}, "cost": {}}
            for control in self.controls:
                chosen[control["group"]][control["name"]] = self.values[control["name"]]
            try:
                program = compile(schedule, params=chosen["param"], costs=chosen["cost"] or None, transport=transport)
                report = program.simulate()
            except (CompileError, UsageError) as error:
                self.problems = str(error)
                return
            self.program = program
            self.problems = ""
            self.figures = (
                f"makespan {report._time(report.makespan)}, {100 * report.global_bubble_rate:.1f} % bubble, "
                f"memory {report._memory(report.peak_memory)} at most, {report.messages} messages"
            )
            self.page = program.timeline().html

    first = compile(schedule, params=params)
    if costs is None:
        costs = {k.mnemonic: 1 + (k.mnemonic == "B") for k in first.kinds if k.is_compute and first._runs(k.mnemonic)}
        costs = {**costs, "latency": 0}
    controls = [_control("param", name, value, (ranges or {}).get(name)) for name, value in first.params.items()]
    controls += [_control("cost", name, value, (ranges or {}).get(name)) for name, value in costs.items()]
    widget = Explorer(controls=controls, values={control["name"]: control["value"] for control in controls})
    widget.draw()
    widget.observe(widget.draw, names="values")
    return widget


def _control(group: str, name: str, value: Value, reach: tuple[float, float] | None) -> dict[str, Any]:
    control: dict[str, Any] = {"group": group, "name": name, "value": value}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return {**control, "type": "flag" if isinstance(value, bool) else "text"}
    low, high = reach or ((1, max(4 * value, 8)) if group == "param" else (0, max(4 * value, 4)))
    return {**control, "type": "number", "min": low, "max": high, "step": 1 if group == "param" else 0.25}
