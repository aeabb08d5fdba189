"""Validates the JSON of a program against what docs/program.schema.json describes, before a Program is built from it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ._diagnostics import Error
from ._rows import Columns, Rows

Validator = Callable[[Any, str], None]
"""Raises Error for an invalid value; the second argument is its path in the document."""

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
    _HEADER_SCHEMA(document, "")
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
    _array(_any)(actions, "actions")
    assert isinstance(actions, list)
    if len(actions) != document["ranks"]:
        raise Error(f"no program: `actions` has {len(actions)} lists for {document['ranks']} ranks")
    columns = [validate_rank(document, rank, rows) for rank, rows in enumerate(actions)]
    _array(_array(_integer(0)))(document.get("waits", []), "waits")
    return Rows(len(columns), columns.__getitem__)


def validate_rank(document: Mapping[str, Any], rank: int, rows: Any) -> bytes:
    """Returns the columns of a rank, one after another, in int32. Raises Error if its rows are invalid."""
    _array(_text, minimum=len(Columns._fields))(document.get("columns"), "columns")
    _array(_any)(rows, f"actions[{rank}]")
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


# Validators of the values of the document.


def _raise_invalid(where: str, value: Any, expected: str) -> NoReturn:
    shown = repr(value)
    raise Error(f"no program: `{where.removeprefix('.')}` is {shown if len(shown) < 60 else shown[:60] + '...'}, but must be {expected}")


def _any(value: Any, where: str) -> None:
    pass


def _text(value: Any, where: str) -> None:
    if not isinstance(value, str):
        _raise_invalid(where, value, "text")
    try:
        value.encode()
    except UnicodeEncodeError:
        _raise_invalid(where, value, "text of Unicode's characters")


def _boolean(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        _raise_invalid(where, value, "true or false")


def _scalar(value: Any, where: str) -> None:
    if isinstance(value, str):
        _text(value, where)
    elif not isinstance(value, (int, float)):
        _raise_invalid(where, value, "a number, true, false or text")


def _integer(minimum: int, maximum: int = MAX_INDEX) -> Validator:
    def validate(value: Any, where: str) -> None:
        if type(value) is not int or not minimum <= value <= maximum:
            _raise_invalid(where, value, f"an integer from {minimum} to {maximum}")

    return validate


def _array(item: Validator, minimum: int = 0, maximum: int | None = None) -> Validator:
    def validate(value: Any, where: str) -> None:
        if not isinstance(value, list) or len(value) < minimum or (maximum is not None and len(value) > maximum):
            _raise_invalid(where, value, "a list" + (f" of {minimum}" if minimum == maximum else f" of {minimum} or more" if minimum else ""))
        for at, one in enumerate(value):
            item(one, f"{where}[{at}]")

    return validate


def _one_of(*values: str) -> Validator:
    def validate(value: Any, where: str) -> None:
        if value not in values:
            _raise_invalid(where, value, f"one of {', '.join(values)}")

    return validate


def _object(required: Mapping[str, Validator], optional: Mapping[str, Validator]) -> Validator:
    def validate(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            _raise_invalid(where or "it", value, "an object")
        for name, item in required.items():
            if name not in value:
                raise Error(f"no program: `{f'{where}.{name}'.removeprefix('.')}` is missing")
            item(value[name], f"{where}.{name}")
        for name, item in optional.items():
            if name in value:
                item(value[name], f"{where}.{name}")

    return validate


def _params(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        _raise_invalid(where, value, "an object")
    for name, one in value.items():
        _text(name, where)
        _scalar(one, f"{where}.{name}")


def _collective(value: Any, where: str) -> None:
    if isinstance(value, list):
        _array(_integer(-MAX_STAGES), minimum=1)(value, where)
    else:
        _text(value, where)


_index = _integer(0)
_pair = _array(_index, 2, 2)
_tensor = _object({"name": _text, "type": _text, "dims": _array(_integer(-1))}, {})
_HEADER_SCHEMA = _object(
    {
        "schedule": _text,
        "params": _params,
        "ranks": _integer(1, MAX_RANKS),
        "backward": _boolean,
        "kinds": _array(
            _object(
                {"mnemonic": _text, "class": _one_of("compute", "send", "recv", "declared")},
                {"per": _one_of("microbatch", "stage", "rank"), "collective": _collective},
            )
        ),
        "phases": _array(_text, minimum=1),
        "pipes": _array(
            _object(
                {
                    "name": _text,
                    "microbatches": _pair,
                    "rank_of_stage": _array(_index, maximum=MAX_STAGES),
                    "skip_edges": _array(_pair),
                },
                {
                    "gaps": _array(_index),
                    "slices": _integer(1),
                    "tensors": _array(_object({"edge": _pair, "carries": _array(_tensor)}, {})),
                },
            )
        ),
        "files": _array(_text),
        "sites": _array(_array(_integer(-1), 4, 4), minimum=1),
    },
    {"transports": _array(_text), "preconnect": _array(_pair)},
)
