"""Tables for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def text_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Formats rows that have the same columns for a terminal; numbers are aligned to the right."""
    names = list(rows[0] if rows else ())
    lines = [names, *([_text(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_number = [any(isinstance(row[name], (int, float)) for row in rows) for name in names]

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
    align = ' style="text-align: right"' if isinstance(value, (int, float)) else ""
    return f"<td{align}>{escape(_text(value))}</td>"
