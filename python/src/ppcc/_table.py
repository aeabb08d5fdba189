"""Tables for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


_TIMES = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}
_AMOUNTS = {"TiB": 2.0**40, "GiB": 2.0**30, "MiB": 2.0**20, "KiB": 2.0**10, "B": 1}


class Figure(str):
    """A number, perhaps with its unit: tables align it to the right."""


def time_text(value: float, unit: str | None) -> Figure:
    """A time for people, such as `1.62 s`; nine digits if its unit is not known."""
    return Figure(f"{value:.9g}" if unit is None else _in_steps(value * _TIMES[unit], _TIMES))


def memory_text(value: float, unit: str | None) -> Figure:
    """An amount of memory for people, such as `56.4 GiB`; nine digits unless it is in bytes."""
    return Figure(f"{value:.9g}" if unit is None else _in_steps(value, _AMOUNTS))


def _in_steps(value: float, steps: Mapping[str, float]) -> str:
    if not value:
        return "0"
    name, size = next((step for step in steps.items() if abs(value) >= 0.9995 * step[1]), [*steps.items()][-1])
    value /= size
    return f"{value:.{0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2}f} {name}"


def text_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Formats rows that have the same columns for a terminal; numbers are aligned to the right."""
    names = list(rows[0] if rows else ())
    lines = [names, *([_text(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_number = [any(isinstance(row[name], (int, float, Figure)) for row in rows) for name in names]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(width) if right else c.ljust(width) for c, width, right in zip(cells, widths, is_number, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, lines))


def html_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Formats rows that have the same columns as HTML; numbers are aligned to the right."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (rows[0] if rows else ()))
    body = "".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _cell(value: object) -> str:
    align = ' style="text-align: right"' if isinstance(value, (int, float, Figure)) else ""
    return f"<td{align}>{escape(_text(value))}</td>"
