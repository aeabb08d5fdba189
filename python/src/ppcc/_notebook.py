"""What notebooks show: tables, comparisons, and a widget with sliders."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._compiler import _definitions, compile
from ._diagnostics import CompileError, UsageError
from ._run import Costs, Value, option_argument, cost_options, run
from ._timeline import iframe, suffix

if TYPE_CHECKING:
    from anywidget import AnyWidget


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """HTML of rows that have the same columns; numbers stand at the right."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (rows[0] if rows else ()))
    body = "".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    align = ' style="text-align: right"' if isinstance(value, (int, float)) else ""
    return f"<td{align}>{escape(text)}</td>"


@dataclass(frozen=True)
class Comparison:
    """Several runs beside each other; a notebook shows the table and the pictures on one axis."""

    rows: tuple[dict[str, float | str | None], ...]
    """A row a run, by the headings of `ppcc compare`."""
    _arguments: tuple[str, ...]

    @cached_property
    def html(self) -> str:
        """A page with the pictures."""
        return run(["compare", *self._arguments, "--format=html"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the pictures, `.html`, or the table, `.csv`."""
        form = suffix(path, (".html", ".csv"))[1:]
        run(["compare", *self._arguments, f"--format={form}", "-o", os.fspath(path)])

    def _repr_html_(self) -> str:
        return table(self.rows) + iframe("Comparison", self.html)


def compare(
    *schedules: str | os.PathLike[str],
    params: Mapping[str, Value] | None = None,
    sweep: Mapping[str, Iterable[Value]] | None = None,
    costs: Costs | None = None,
    transport: str | Sequence[str] | None = None,
    work: str | None = None,
    **more_params: Value,
) -> Comparison:
    """Compares schedules by makespan, bubble, memory and messages, as `ppcc compare` does (docs/reports.md).

    `compare("zb_h1", "zb_h2", P=8, M=24)`; `sweep={"M": [8, 16]}` gives a parameter several values, `work="rank"` says that
    costs are of a rank's share of a microbatch.
    """
    sweeps = (f"--sweep={name}={','.join(map(_text, values))}" for name, values in (sweep or {}).items())
    arguments = (
        *(os.fspath(schedule) for schedule in schedules),
        *_definitions(params, more_params),
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
    """A widget for notebooks: sliders for the parameters and costs of a schedule, its figures and its picture.

    `explore("dualpipe", P=8, M=20, costs={"F": 1, "B": 2, "latency": 0})`. Without `costs` each kind of the schedule has one;
    `memory.limit` is a cost, too. `ranges` says how far a slider goes: `{"P": (2, 16)}`. What is wrong with the values stands
    below the last good picture. Needs the package anywidget (`pip install "ppcc[notebook]"`).
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
            """Compiles anew."""
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
                f"makespan {report.makespan:g}, {100 * report.global_bubble_rate:.1f} % bubble, "
                f"memory {report.peak_memory:g} at most, {report.messages} messages"
            )
            self.page = program.timeline().html

    first = compile(schedule, params=params)
    if costs is None:
        costs = {k.mnemonic: 1 + (k.mnemonic == "B") for k in first.kinds if k.is_compute and _runs(first, k.mnemonic)}
        costs = {**costs, "latency": 0}
    controls = [_control("param", name, value, (ranges or {}).get(name)) for name, value in first.params.items()]
    controls += [_control("cost", name, value, (ranges or {}).get(name)) for name, value in costs.items()]
    widget = Explorer(controls=controls, values={control["name"]: control["value"] for control in controls})
    widget.draw()
    widget.observe(widget.draw, names="values")
    return widget


def _runs(program: Any, mnemonic: str) -> bool:
    return any(program.kinds[kind].mnemonic == mnemonic for kind in program._rows.kinds())


def _control(group: str, name: str, value: Value, reach: tuple[float, float] | None) -> dict[str, Any]:
    control: dict[str, Any] = {"group": group, "name": name, "value": value}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return {**control, "type": "flag" if isinstance(value, bool) else "text"}
    low, high = reach or ((1, max(4 * value, 8)) if group == "param" else (0, max(4 * value, 4)))
    return {**control, "type": "number", "min": low, "max": high, "step": 1 if group == "param" else 0.25}
