"""The digest of everything on which the ranks of a program must agree (docs/program-format.md)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ._rows import Columns

_COLUMNS = ("kind", "pipe", "stage", "microbatch", "peer", "group")
_PRIMES = (3622009729038558863, 3133965575612453507)


def digest(head: Mapping[str, Any], fingerprints: Iterable[Sequence[int]]) -> str:
    """Computes the digest of a program; `head` is its JSON without actions."""
    found = hashlib.blake2b(_text("ppcc.digest.2"), digest_size=16)
    found.update(_numbers([head["ranks"], head["backward"]]))
    found.update(_items(head["kinds"], _kind) + _items(head["pipes"], _pipe) + _items(head.get("preconnect", ()), _numbers))
    for rank in fingerprints:
        found.update(_numbers(rank))
    return found.hexdigest()


def fingerprint(rows: Columns) -> tuple[int, ...]:
    """Computes what the digest holds of the rows of a rank."""
    columns = [int.from_bytes(getattr(rows, name), "little") for name in _COLUMNS]
    return (len(rows.kind), *(column % prime for column in columns for prime in _PRIMES))


def _number(value: int) -> bytes:
    return struct.pack("<q", value)


def _numbers(values: Iterable[int]) -> bytes:
    return b"".join(map(_number, values))


def _text(value: str) -> bytes:
    spelled = value.encode()
    return _number(len(spelled)) + spelled


def _items(values: Sequence[Any], one: Callable[[Any], bytes] = _number) -> bytes:
    return _number(len(values)) + b"".join(map(one, values))


def _kind(kind: Mapping[str, Any]) -> bytes:
    collective = kind.get("collective", "")  # A word, or a list of stages.
    stages = collective if isinstance(collective, list) else []
    word = "stages" if stages else collective.split(" ")[0]
    return _text(kind["mnemonic"]) + _text(kind["class"]) + _text(word) + _items(stages)


def _pipe(pipe: Mapping[str, Any]) -> bytes:
    return (
        _numbers(pipe["microbatches"])
        + _items(pipe["rank_of_stage"])
        + _items(pipe["skip_edges"], _numbers)
        + _items(pipe.get("gaps", ()))
        + _number(pipe.get("slices", 1))
        + _items(pipe.get("tensors", ()), _edge)
    )


def _edge(edge: Mapping[str, Any]) -> bytes:
    return _numbers(edge["edge"]) + _number("shapes" in edge) + _items(edge["carries"], _tensor)


def _tensor(tensor: Mapping[str, Any]) -> bytes:
    return _text(tensor["name"]) + _text(tensor["type"]) + _items(tensor["dims"])
