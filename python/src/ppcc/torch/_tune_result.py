"""The result of tune(), as text and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, cast

from .._choose import TunedOrder
from .._table import html_table, text_table
from .._timeline import Timeline, iframe
from ._layers import Layer, Layout

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>ppcc tune</title>
<style>
:root { color-scheme: light dark; --paper: #ffffff; --ground: #f2f2f2; --text: #111111; --faint: #6b6b6b; --line: #cccccc; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181d; --ground: #272b33; --text: #e8e8e8; --faint: #9aa1ab; --line: #3a404b; } }
body { max-width: 1200px; margin: 0 auto; padding: 8px 20px 40px; font: 15px/1.5 Helvetica, Arial, sans-serif; color: var(--text); background: var(--paper); }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 1.6em 0 0.5em; }
section { display: flex; flex-wrap: wrap; gap: 12px; }
section div { padding: 10px 18px; border-radius: 8px; background: var(--ground); color: var(--faint); }
section b { display: block; font-size: 1.4em; color: var(--text); }
pre, .wide { overflow-x: auto; } pre { padding: 12px; border-radius: 8px; background: var(--ground); }
table { border-collapse: collapse; } th, td { padding: 2px 14px 2px 0; border-bottom: 1px solid var(--line); text-align: left; }
td { font-variant-numeric: tabular-nums; } iframe { border: 1px solid var(--line) !important; border-radius: 8px; }
</style>
"""


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
    """(measured - predicted) / predicted of the given program's step; if layers have moved, of the first one with the new layout, predicted
    from the costs of layers."""
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
    layout: Layout | None = None
    """With `layers`: the numbers of the layers that each stage has now, counted from 0 in the order in which a microbatch passes them."""
    given_layout: Layout | None = None
    """With `layers`: those that each stage had."""
    layers: tuple[Layer, ...] = ()
    """With `layers`: what each layer costs."""
    moved_bytes: int = 0
    """With `layers`: what has been sent between ranks."""
    placement: str = "given"
    """Which rank has which stage: one of `placements`, or `given`, as it was."""
    cached: str = ""
    """The file of the cache that this is from; nothing was measured then. Otherwise empty."""

    def __str__(self) -> str:
        lines = [
            f"order        {self.order}: a step takes {self.after:.4g} ms ({self.predicted:.4g} ms predicted); given: {self.before:.4g} ms",
            f"bound        {self.bound:.4g} ms for every order: {self.why}",
            *(f"would help   {text}" for text in self.would_help),
            f"prediction   of the program that ran first{'' if self.layout == self.given_layout else ' with these layers'}: {100 * self.unexplained:+.1f} % off",
            f"memory limit {self.memory_limit} bytes a rank",
            f"cost         {self.steps} steps, and {self.processor_seconds:.1f} s of processor time",
            *([f"cache        from {self.cached}: nothing was measured"] if self.cached else []),
            *(f"remark       {text}" for text in self.remarks),
        ]
        if self.layout is not None and self.given_layout is not None:
            now, given = ((" | ".join(str(len(numbers)) for numbers in layout)) for layout in (self.layout, self.given_layout))
            lines.insert(1, f"layers       {now} (given: {given})" + (f"; {self.moved_bytes} bytes were sent" if now != given else ""))
        if self.placement != "given":
            lines.insert(1, f"placement    {self.placement}")
        return "\n".join(lines) + "".join(f"\n\n{text_table(rows)}" for rows in self._tables().values())

    def _tables(self) -> dict[str, list[dict[str, object]]]:
        """Orders and, if there are any, layers, by their titles."""
        tables: dict[str, list[dict[str, object]]] = {"Orders": [{**vars(order), "fits": "yes" if order.fits else "no"} for order in self.orders]}
        if self.layout is not None and self.given_layout is not None:
            now, given = ({number: stage for stage, numbers in enumerate(layout) for number in numbers} for layout in (self.layout, self.given_layout))
            tables["Layers"] = [
                {"layer": layer.number, "class": layer.name, "stage": now[layer.number], "given": given[layer.number]}
                | {kind: round(time, 4) for kind, time in layer.times.items()}
                | {"static": layer.static}
                for layer in self.layers
            ]
        return tables

    def page(self, before: Timeline, after: Timeline, ranks: int) -> str:
        """The report as an HTML page, with the simulated runs of the given and of the kept program, of so many ranks."""
        height = f"<style>iframe {{ height: {min(700, 160 + 30 * ranks)}px !important; }}</style>"
        figures = {
            "given": f"{self.before:.4g} ms",
            "now": f"{self.after:.4g} ms",
            "predicted": f"{self.predicted:.4g} ms",
            "bound": f"{self.bound:.4g} ms",
            "saved": f"{100 * (1 - self.after / self.before):.1f} %",
        }
        boxes = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in figures.items())
        tables = "".join(f"<h2>{title}</h2><div class=wide>{html_table(rows)}</div>" for title, rows in self._tables().items())
        frames = "".join(
            f"<h2>{title}</h2>{iframe(title, timeline.html)}" for title, timeline in (("Before, simulated", before), ("After, simulated", after))
        )
        text = escape(str(self).split("\n\n", 1)[0])
        return f"{PAGE}{height}<h1>A step of {self.after:.4g} ms instead of {self.before:.4g} ms</h1><section>{boxes}</section>{frames}<h2>Report</h2><pre>{text}</pre>{tables}</html>\n"

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them."""
        return cast("dict[str, Any]", json.loads(json.dumps(asdict(self))))

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> TuneResult:
        """The result whose fields these are. Raises TypeError or ValueError for others."""

        def layout(name: str) -> Layout | None:
            return None if fields[name] is None else tuple(map(tuple, fields[name]))

        return TuneResult(
            **{
                **fields,
                **{name: layout(name) for name in ("layout", "given_layout")},
                **{name: tuple(fields[name]) for name in ("would_help", "remarks")},
                "orders": tuple(TunedOrder(**order) for order in fields["orders"]),
                "layers": tuple(Layer(**layer) for layer in fields["layers"]),
            }
        )
