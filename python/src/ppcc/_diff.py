"""Where two programs differ."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ._documents import from_row
from ._program import Program, input_file
from ._run import compile_arguments, run_verdict


@dataclass(frozen=True, slots=True)
class RankDifference:
    """The first action of a rank that differs."""

    rank: int
    action: int
    """Its position in the rank's program."""
    a: str
    """The action of the first program, with its place; `the end` past its last."""
    b: str
    """That of the second."""
    only_order: bool
    """Whether the rank runs the same actions, in another order."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two programs differ. `print()` shows it as `ppcc diff` does."""

    equal: bool
    same_work: bool
    """Whether they run the same actions on the same ranks, perhaps in another order."""
    ranks: tuple[int, int]
    """The number of ranks of each."""
    head: str | None
    """What differs beside the actions; None if nothing does."""
    differences: tuple[RankDifference, ...]
    """Of each rank that differs."""
    _text: str = field(repr=False)

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def diff(a: Program | str | os.PathLike[str], b: Program | str | os.PathLike[str], /, **arguments: Any) -> Difference:
    """Find where the programs of two schedules first differ, rank by rank.

    Args:
        a: A program, the name of a schedule of the library, or the path of a schedule or program.
        b: Another one.
        **arguments: The arguments of `compile`, for both.

    Returns:
        The difference.

    Raises:
        CompileError: One of them has errors.
        UsageError: An option is unknown or does not fit the others.

    Examples:
        >>> import ppcc
        >>> found = ppcc.diff("one_f_one_b", "gpipe", P=2, M=3)
        >>> found.equal, found.same_work, found.differences[0].action
        (False, True, 4)
    """
    with input_file(a) as first, input_file(b) as second:
        words = ["diff", first, second, *compile_arguments(**arguments)]
        written, text = (run_verdict([*words, *more])[1] for more in (["--format=json"], []))
    for program, path in ((a, first), (b, second)):
        if isinstance(program, Program):
            written, text = (one.replace(path, program.name) for one in (written, text))
    document = json.loads(written)
    rows = (from_row(RankDifference, row) for row in document["differences"])
    return from_row(Difference, document, differences=tuple(rows), _text=text.rstrip("\n"))
