"""What the compiler finds wrong, as objects and exceptions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from ._deprecated import Renamed


@dataclass(frozen=True, slots=True)
class Note:
    """A place that has to do with a diagnostic, and why; None without one, `file` when it is in no source file."""

    message: str
    location: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    place = Renamed("location")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of the compiler. Lines and columns count from 1, columns in bytes.

    `location` is what people read, None without one; `file` and what follows are None when it is in no source file.
    """

    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str
    """What to do."""
    location: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    notes: tuple[Note, ...] = ()

    place = Renamed("location")

    def __str__(self) -> str:
        return f"{self.location + ': ' if self.location else ''}{self.severity}: {self.message} [{self.code}]"


class Error(Exception):
    """Whatever goes wrong in ppcc."""


class UsageError(Error, ValueError):
    """The compiler was given options that it does not know or that exclude each other."""


class CompileError(Error):
    """The schedule or program has errors; `diagnostics` holds them, and the warnings beside them, in order."""

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
    return Diagnostic(
        code=row["code"],
        severity=row["severity"],
        message=row["message"],
        hint=row["hint"],
        location=row.get("place"),
        file=row.get("file"),
        line=row.get("line"),
        column=row.get("column"),
        end_line=row.get("end_line"),
        end_column=row.get("end_column"),
        notes=tuple(
            Note(note["message"], note.get("place"), note.get("file"), note.get("line"), note.get("column"))
            for note in row["notes"]
        ),
    )
