"""Checks the JSON of a program, as docs/program.schema.json describes it, before anything is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ._diagnostics import Error
from ._rows import Columns, Rows

Check = Callable[[Any, str], None]
"""Raises Error for a value that is something else; the text says where it stands."""

MAX_STAGES = 0xFFFE
MAX_INDEX = (1 << 31) - 1
MAX_RANKS = 1 << 20


def read_document(text: str) -> dict[str, Any]:
    """The object that a text holds. Raises Error for other text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Error(f"no program: {error}") from error
    if not isinstance(document, dict) or document.get("format") != "ppcc.program":
        raise Error("no program: it has no `format` of `ppcc.program`")
    return document


def check_head(document: Mapping[str, Any]) -> None:
    """Raises Error for what no head of a program is."""
    _HEAD(document, "")
    ranks = document["ranks"]
    for at, pipe in enumerate(document["pipes"]):
        stages, where = len(pipe["rank_of_stage"]), f"pipes[{at}]"
        _within(pipe["rank_of_stage"], 0, ranks, f"{where}.rank_of_stage")
        begin, end = pipe["microbatches"]
        if begin > end or (end - begin) % pipe.get("slices", 1) != 0:
            _fail(f"{where}.microbatches", pipe["microbatches"], "a range, of whole sequences")
        for low, high in pipe["skip_edges"]:
            if not 0 <= low < high < stages:
                _fail(f"{where}.skip_edges", [low, high], f"two of {stages} stages, the lower first")
        _within(pipe.get("gaps", ()), 0, stages, f"{where}.gaps")
    _within([site[0] for site in document["sites"]], -1, len(document["files"]), "sites")
    for pair in document.get("preconnect", ()):
        _within(pair, 0, ranks, "preconnect")


def check_rows(document: Mapping[str, Any]) -> Rows:
    """The rows of a program whose head is right. Raises Error for what no rows of it are."""
    _array(_text, least=len(Columns._fields))(document.get("columns"), "columns")
    _array(_array(_anything))(document.get("actions"), "actions")
    columns, actions = document["columns"], document["actions"]
    if missing := set(Columns._fields) - set(columns):
        raise Error(f"no program: `columns` lack {', '.join(sorted(missing))}")
    if len(actions) != document["ranks"]:
        raise Error(f"no program: `actions` has {len(actions)} lists for {document['ranks']} ranks")
    try:
        rows = Rows.of_lists(columns, actions)
    except (TypeError, IndexError, KeyError, OverflowError) as error:
        raise Error(f"no program: `actions` must be lists of {len(columns)} integers of 32 bits: {error}") from error
    stages = [len(pipe["rank_of_stage"]) for pipe in document["pipes"]]
    for rank in range(rows.ranks):
        _check_columns(rows.rank(rank), document, stages, f"actions[{rank}]")
    _array(_array(_integer(0)))(document.get("waits", []), "waits")
    return rows


def _check_columns(rows: Columns, document: Mapping[str, Any], stages: Sequence[int], where: str) -> None:
    ends = {"kind": len(document["kinds"]), "pipe": len(stages), "phase": len(document["phases"]), "site": len(document["sites"])}
    for name, end in ends.items():
        _within(getattr(rows, name), 0, end, f"{where}, {name}")
    _within(rows.group, -1, MAX_INDEX, f"{where}, group")
    microbatches = max((pipe["microbatches"][1] for pipe in document["pipes"]), default=0)
    _within(rows.microbatch, -1, microbatches, f"{where}, microbatch")
    messages = {at for at, kind in enumerate(document["kinds"]) if kind["class"] in ("send", "recv")}
    for kind, pipe, stage, peer in zip(rows.kind, rows.pipe, rows.stage, rows.peer, strict=True):
        if not 0 <= stage < stages[pipe] or not -(kind not in messages) <= peer < stages[pipe]:
            _fail(where, [kind, pipe, stage, peer], f"kind, pipe, stage and peer, of {stages[pipe]} stages")


def _within(values: Sequence[int] | memoryview, begin: int, end: int, where: str) -> None:
    least, most = min(values, default=begin), max(values, default=begin)
    if least < begin or (most >= end and len(values) > 0):
        _fail(where, least if least < begin else most, f"from {begin} to {end - 1}")


# What stands where.


def _fail(where: str, value: Any, wanted: str) -> NoReturn:
    shown = repr(value)
    raise Error(f"no program: `{where.removeprefix('.')}` is {shown if len(shown) < 60 else shown[:60] + '...'}, but must be {wanted}")


def _anything(value: Any, where: str) -> None:
    pass


def _text(value: Any, where: str) -> None:
    if not isinstance(value, str):
        _fail(where, value, "text")
    try:
        value.encode()
    except UnicodeEncodeError:
        _fail(where, value, "text of Unicode's characters")


def _boolean(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        _fail(where, value, "true or false")


def _scalar(value: Any, where: str) -> None:
    if isinstance(value, str):
        _text(value, where)
    elif not isinstance(value, (int, float)):
        _fail(where, value, "a number, true, false or text")


def _integer(least: int, most: int = MAX_INDEX) -> Check:
    def check(value: Any, where: str) -> None:
        if type(value) is not int or not least <= value <= most:
            _fail(where, value, f"an integer from {least} to {most}")

    return check


def _array(item: Check, least: int = 0, most: int | None = None) -> Check:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            _fail(where, value, "a list" + (f" of {least}" if least == most else f" of {least} or more" if least else ""))
        for at, one in enumerate(value):
            item(one, f"{where}[{at}]")

    return check


def _one_of(*values: str) -> Check:
    def check(value: Any, where: str) -> None:
        if value not in values:
            _fail(where, value, f"one of {', '.join(values)}")

    return check


def _object(needed: Mapping[str, Check], others: Mapping[str, Check]) -> Check:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            _fail(where or "it", value, "an object")
        for name, item in needed.items():
            if name not in value:
                raise Error(f"no program: `{f'{where}.{name}'.removeprefix('.')}` is missing")
            item(value[name], f"{where}.{name}")
        for name, item in others.items():
            if name in value:
                item(value[name], f"{where}.{name}")

    return check


def _params(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        _fail(where, value, "an object")
    for name, one in value.items():
        _text(name, where)
        _scalar(one, f"{where}.{name}")


def _collective(value: Any, where: str) -> None:
    if isinstance(value, list):
        _array(_integer(-MAX_STAGES), least=1)(value, where)
    else:
        _text(value, where)


_index = _integer(0)
_pair = _array(_index, 2, 2)
_tensor = _object({"name": _text, "type": _text, "dims": _array(_integer(-1))}, {})
_HEAD = _object(
    {
        "schedule": _text,
        "params": _params,
        "ranks": _integer(1, MAX_RANKS),
        "backward": _boolean,
        "kinds": _array(
            _object(
                {"letters": _text, "class": _one_of("compute", "send", "recv", "declared")},
                {"per": _one_of("microbatch", "stage", "rank"), "collective": _collective},
            )
        ),
        "phases": _array(_text, least=1),
        "pipes": _array(
            _object(
                {
                    "name": _text,
                    "microbatches": _pair,
                    "rank_of_stage": _array(_index, most=MAX_STAGES),
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
        "sites": _array(_array(_integer(-1), 4, 4), least=1),
    },
    {"transports": _array(_text), "preconnect": _array(_pair)},
)
