"""The compiler's errors and warnings, as objects and exceptions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from ._documents import from_row


@dataclass(frozen=True, slots=True)
class Note:
    """A place that explains a diagnostic. Lines and columns count from 1, columns in bytes."""

    message: str
    location: str | None = None
    """The place in readable form, such as `mine.pp:3:25`; None without one."""
    file: str | None = None
    """The source file; None, like `line` and `column`, if the place is not in a source file."""
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or a warning of the compiler. Lines and columns count from 1, columns in bytes.

    Examples:
        >>> import ppcc
        >>> try:
        ...     ppcc.compile("one_f_one_b", P=0)
        ... except ppcc.CompileError as error:
        ...     found = error.errors[0]
        >>> found.code, found.severity
        ('E0480', 'error')
    """

    code: str
    """The code, such as `E0301` (`ppcc explain-error E0301` describes it)."""
    severity: Literal["error", "warning"]
    message: str
    hint: str
    """How to fix it."""
    location: str | None = None
    """The place in readable form, such as `mine.pp:3:25`; None without one."""
    file: str | None = None
    """The source file; None, like the lines and columns, if the place is not in a source file."""
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    notes: tuple[Note, ...] = ()
    """Other places that explain it."""

    def __str__(self) -> str:
        return f"{self.location + ': ' if self.location else ''}{self.severity}: {self.message} [{self.code}]"


class Error(Exception):
    """The base class of all exceptions of ppcc."""


class UsageError(Error, ValueError):
    """An option is unknown, has an invalid value, or excludes another one."""


class CompileError(Error):
    """A schedule or a program has errors. The text of the exception lists them.

    Attributes:
        diagnostics: All errors and warnings, in order.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...], text: str = "") -> None:
        self.diagnostics = diagnostics
        super().__init__(_summary(diagnostics) or text or "ppcc failed and did not say why")

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that are errors."""
        return tuple(found for found in self.diagnostics if found.severity == "error")


def _summary(diagnostics: tuple[Diagnostic, ...]) -> str:
    lines: list[str] = []
    for found in diagnostics:
        lines.append(str(found))
        lines += [f"{note.location + ': ' if note.location else ''}note: {note.message}" for note in found.notes]
        lines.append(f"note: {found.hint}")
    return "\n".join(lines)


def parse_diagnostics(text: str) -> tuple[tuple[Diagnostic, ...], str]:
    """Splits what the compiler wrote to standard error into diagnostics and other text."""
    diagnostics: list[Diagnostic] = []
    rest: list[str] = []
    for line in text.splitlines():
        found = _from_line(line)
        if found is None:
            rest.append(line)
        else:
            diagnostics.append(found)
    return tuple(diagnostics), "\n".join(rest)


def _from_line(line: str) -> Diagnostic | None:
    if not line.startswith("{"):
        return None
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    notes = (from_row(Note, note, location=note.get("place")) for note in row["notes"])
    return from_row(Diagnostic, row, location=row.get("place"), notes=tuple(notes))
