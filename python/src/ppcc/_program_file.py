"""Reads the file of a program rank by rank."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, BinaryIO

from ._diagnostics import Error
from ._program_json import parse_program_json, validate_header, validate_rank

_CUT = b'"(lines of their own)"'


class ProgramFile:
    """A file that has `actions` and `waits` as the compiler writes them: a line for each rank. These lines are read when they are
    asked for.

    Attributes:
        document: The other keys.
    """

    def __init__(self, file: BinaryIO, document: dict[str, Any], lines: dict[str, list[int]]) -> None:
        self._path = os.path.abspath(file.name)
        self._stamp = _stamp(file.fileno())
        self._lines = lines
        self.document = document
        self.columns = lru_cache(maxsize=8)(self._read_columns)

    @staticmethod
    def open(path: str | os.PathLike[str], *, has_rows: bool = True) -> ProgramFile | None:
        """Reads the keys; without `has_rows` only those before the rows. None for files of another form, and what is no JSON."""
        rest: list[bytes] = []
        lines: dict[str, list[int]] = {}
        section: list[int] | None = None
        offset = 0
        with open(path, "rb") as file:
            for line in file:
                if section is None or line.startswith(b"]"):
                    section = None
                    rest.append(line)
                    if line in (b'"actions": [\n', b'"waits": [\n'):
                        section = lines.setdefault(line.split(b'"')[1].decode(), [])
                        rest.append(_CUT)
                        if not has_rows:
                            rest.append(b"]}")
                            break
                else:
                    section.append(offset)
                offset += len(line)
            if "actions" not in lines:
                return None
            try:
                document = parse_program_json(b"".join(rest).decode(errors="surrogateescape"))
            except Error:
                return None
            # Where one is part of another key, or is there twice, this is not the form.
            if "families" in document or any(document.pop(name, None) != [json.loads(_CUT)] for name in lines):
                return None
            return ProgramFile(file, document, lines)

    def validate(self) -> None:
        """Raises Error if the keys that are not about rows are invalid."""
        validate_header(self.document)
        for name, lines in self._lines.items():
            if len(lines) != self.document["ranks"]:
                raise Error(f"no program: `{name}` has {len(lines)} lists for {self.document['ranks']} ranks")

    def _read_columns(self, rank: int) -> bytes:
        """The columns of a rank, one after another, in int32."""
        return validate_rank(self.document, rank, self._read("actions", rank))

    def waits(self, rank: int) -> Iterable[int]:
        waits: list[int] = self._read("waits", rank) if "waits" in self._lines else []
        return waits

    def json(self) -> str:
        with open(self._path, encoding="utf-8") as file:
            self._check_unchanged(file.fileno())
            return file.read()

    def _read(self, section: str, rank: int) -> Any:
        with open(self._path, "rb") as file:
            self._check_unchanged(file.fileno())
            file.seek(self._lines[section][rank])
            line = file.readline().rstrip().removesuffix(b",")
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Error(f"no program: `{section}` of rank {rank}: {error}") from error

    def _check_unchanged(self, file: int) -> None:
        if _stamp(file) != self._stamp:
            raise Error(f"{self._path} has changed since it was loaded")


def _stamp(file: int) -> tuple[int, ...]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
