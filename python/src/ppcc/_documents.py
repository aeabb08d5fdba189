"""Reads what the compiler writes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def from_row(kind: type[T], row: Mapping[str, Any], **given: Any) -> T:
    """The dataclass whose fields are the keys of an object, but for those that are given. Absent keys are None, or the default.

    Lists become tuples. Fields whose names begin with `_` are not read.
    """
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in given and field.name[0] != "_" and (field.name in row or field.default is MISSING):
            value = row.get(field.name)
            given[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**given)
