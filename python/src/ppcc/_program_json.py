"""Validates the JSON of a program against what docs/program.schema.json describes, before a Program is built from it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ._diagnostics import Error
from ._rows import Columns, Rows

MAX_STAGES = 0xFFFE
MAX_INDEX = (1 << 31) - 1
MAX_RANKS = 1 << 20


def parse_program_json(text: str) -> dict[str, Any]:
    """Parses the JSON of a program. Raises Error for other text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Error(f"no program: {error}") from error
    if not isinstance(document, dict) or document.get("format") != "ppcc.program":
        raise Error("no program: it has no `format` of `ppcc.program`")
    return document


def validate_header(document: Mapping[str, Any]) -> None:
    """Raises Error if the head of a program is invalid."""
    _validate(_HEADER_SCHEMA, document, "")
    ranks = document["ranks"]
    for at, pipe in enumerate(document["pipes"]):
        stages, where = len(pipe["rank_of_stage"]), f"pipes[{at}]"
        _check_range(pipe["rank_of_stage"], 0, ranks, f"{where}.rank_of_stage")
        begin, end = pipe["microbatches"]
        if begin > end or (end - begin) % pipe.get("slices", 1) != 0:
            _raise_invalid(f"{where}.microbatches", pipe["microbatches"], "a range, of whole sequences")
        for low, high in pipe["skip_edges"]:
            if not 0 <= low < high < stages:
                _raise_invalid(f"{where}.skip_edges", [low, high], f"two of {stages} stages, the lower first")
        _check_range(pipe.get("gaps", ()), 0, stages, f"{where}.gaps")
    _check_range([site[0] for site in document["sites"]], -1, len(document["files"]), "sites")
    for pair in document.get("preconnect", ()):
        _check_range(pair, 0, ranks, "preconnect")


def validate_rows(document: Mapping[str, Any]) -> Rows:
    """Returns the rows of a program whose head is valid. Raises Error if they are invalid."""
    actions = document.get("actions")
    _validate([_any], actions, "actions")
    assert isinstance(actions, list)
    if len(actions) != document["ranks"]:
        raise Error(f"no program: `actions` has {len(actions)} lists for {document['ranks']} ranks")
    columns = [validate_rank(document, rank, rows) for rank, rows in enumerate(actions)]
    _validate([[_INDEX]], document.get("waits", []), "waits")
    return Rows(len(columns), columns.__getitem__)


def validate_rank(document: Mapping[str, Any], rank: int, rows: Any) -> bytes:
    """Returns the columns of a rank, one after another, in int32. Raises Error if its rows are invalid."""
    _validate([str, len(Columns._fields)], document.get("columns"), "columns")
    _validate([_any], rows, f"actions[{rank}]")
    names: list[str] = document["columns"]
    if missing := set(Columns._fields) - set(names):
        raise Error(f"no program: `columns` lack {', '.join(sorted(missing))}")
    try:
        columns = [array("i", (row[position] for row in rows)) for position in map(names.index, Columns._fields)]
    except (TypeError, IndexError, KeyError, OverflowError) as error:
        raise Error(f"no program: `actions` must be lists of {len(names)} integers of 32 bits: {error}") from error
    _check_columns(Columns(*(memoryview(column) for column in columns)), document, f"actions[{rank}]")
    return b"".join(columns)


def _check_columns(rows: Columns, document: Mapping[str, Any], where: str) -> None:
    stages = [len(pipe["rank_of_stage"]) for pipe in document["pipes"]]
    ends = {"kind": len(document["kinds"]), "pipe": len(stages), "phase": len(document["phases"]), "site": len(document["sites"])}
    for name, end in ends.items():
        _check_range(getattr(rows, name), 0, end, f"{where}, {name}")
    _check_range(rows.group, -1, MAX_INDEX, f"{where}, group")
    microbatches = max((pipe["microbatches"][1] for pipe in document["pipes"]), default=0)
    _check_range(rows.microbatch, -1, microbatches, f"{where}, microbatch")
    messages = {at for at, kind in enumerate(document["kinds"]) if kind["class"] in ("send", "recv")}
    for kind, pipe, stage, peer in zip(rows.kind, rows.pipe, rows.stage, rows.peer, strict=True):
        if not 0 <= stage < stages[pipe] or not -(kind not in messages) <= peer < stages[pipe]:
            _raise_invalid(where, [kind, pipe, stage, peer], f"kind, pipe, stage and peer, of {stages[pipe]} stages")


def _check_range(values: Sequence[int] | memoryview, begin: int, end: int, where: str) -> None:
    minimum, maximum = min(values, default=begin), max(values, default=begin)
    if minimum < begin or (maximum >= end and len(values) > 0):
        _raise_invalid(where, minimum if minimum < begin else maximum, f"from {begin} to {end - 1}")


# The head, as data: a type, a tuple of the least and the greatest integer, a set of words, `[item]` or `[item, least length, greatest length]`,
# an object by its keys, of which those that end in `?` may be missing, or a function.


def _validate(expected: Any, value: Any, where: str) -> None:
    """Raises Error for an invalid value; `where` is its path in the document."""
    if isinstance(expected, dict):
        if not isinstance(value, dict):
            _raise_invalid(where or "it", value, "an object")
        for key, item in expected.items():
            name = key.removesuffix("?")
            if name in value:
                _validate(item, value[name], f"{where}.{name}")
            elif name == key:
                raise Error(f"no program: `{f'{where}.{name}'.removeprefix('.')}` is missing")
    elif isinstance(expected, list):
        item, *limits = expected
        least, most = limits[0] if limits else 0, limits[1] if len(limits) > 1 else None
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            _raise_invalid(where, value, "a list" + (f" of {least}" if least == most else f" of {least} or more" if least else ""))
        for at, one in enumerate(value):
            _validate(item, one, f"{where}[{at}]")
    elif isinstance(expected, tuple):
        if type(value) is not int or not expected[0] <= value <= expected[1]:
            _raise_invalid(where, value, f"an integer from {expected[0]} to {expected[1]}")
    elif isinstance(expected, set):
        if not isinstance(value, str) or value not in expected:
            _raise_invalid(where, value, f"one of {', '.join(sorted(expected))}")
    elif expected is bool:
        if not isinstance(value, bool):
            _raise_invalid(where, value, "true or false")
    elif expected is str:
        if not isinstance(value, str):
            _raise_invalid(where, value, "text")
        try:
            value.encode()
        except UnicodeEncodeError:
            _raise_invalid(where, value, "text of Unicode's characters")
    else:
        expected(value, where)


def _raise_invalid(where: str, value: Any, expected: str) -> NoReturn:
    shown = repr(value)
    raise Error(f"no program: `{where.removeprefix('.')}` is {shown if len(shown) < 60 else shown[:60] + '...'}, but must be {expected}")


def _any(value: Any, where: str) -> None:
    pass


def _params(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        _raise_invalid(where, value, "an object")
    for name, one in value.items():
        _validate(str, name, where)
        if not isinstance(one, (int, float)):
            _validate(str, one, f"{where}.{name}")


def _collective(value: Any, where: str) -> None:
    _validate([(-MAX_STAGES, MAX_INDEX), 1] if isinstance(value, list) else str, value, where)


_INDEX = (0, MAX_INDEX)
_PAIR = [_INDEX, 2, 2]
_HEADER_SCHEMA = {
    "schedule": str,
    "params": _params,
    "ranks": (1, MAX_RANKS),
    "backward": bool,
    "kinds": [
        {
            "mnemonic": str,
            "class": {"compute", "send", "recv", "declared"},
            "per?": {"microbatch", "stage", "rank"},
            "collective?": _collective,
        }
    ],
    "phases": [str, 1],
    "pipes": [
        {
            "name": str,
            "microbatches": _PAIR,
            "rank_of_stage": [_INDEX, 0, MAX_STAGES],
            "skip_edges": [_PAIR],
            "gaps?": [_INDEX],
            "slices?": (1, MAX_INDEX),
            "tensors?": [{"edge": _PAIR, "carries": [{"name": str, "type": str, "dims": [(-1, MAX_INDEX)]}]}],
        }
    ],
    "files": [str],
    "sites": [[(-1, MAX_INDEX), 4, 4], 1],
    "transports?": [str],
    "preconnect?": [_PAIR],
}
