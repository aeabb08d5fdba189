"""The rows of a program, stored in columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

if TYPE_CHECKING:
    import _ppcc

    from ._program import Action


class Columns(NamedTuple):
    """The actions of one rank in columns: read-only buffers of int32, one element per action, in order.

    `numpy.asarray(columns.stage)` and `torch.frombuffer(columns.stage, dtype=torch.int32)` do not copy. -1 means none.

    Examples:
        >>> import ppcc
        >>> columns = ppcc.compile("one_f_one_b", P=2, M=2).columns(0)
        >>> list(columns.microbatch)
        [0, 0, 1, 1, 0, 0, 1, 1]
    """

    kind: memoryview
    """Index into `Program.kinds`."""
    pipe: memoryview
    """Index into `Program.pipes`."""
    stage: memoryview
    microbatch: memoryview
    peer: memoryview
    """The stage at the other end of a message."""
    phase: memoryview
    """Index into the phases of the program's JSON."""
    group: memoryview
    """Actions of a rank with the same number run together."""
    site: memoryview
    """Index into the sites of the program's JSON."""


class Rows:
    """The columns of all ranks."""

    def __init__(self, columns: Columns, rank_offsets: Sequence[int]) -> None:
        self._columns = columns
        self._starts = rank_offsets

    @staticmethod
    def from_native(program: _ppcc.Program) -> Rows:
        columns = Columns(*(memoryview(program.column(name)) for name in Columns._fields))
        return Rows(columns, program.rank_offsets())

    @staticmethod
    def from_lists(names: Sequence[str], ranks: Sequence[Sequence[Sequence[int]]]) -> Rows:
        """Builds columns from lists of rows; `names` are the names of their values."""
        columns = Columns(
            *(
                memoryview(array("i", (row[position] for rows in ranks for row in rows))).toreadonly()
                for position in map(names.index, Columns._fields)
            )
        )
        rank_offsets = [0]
        for rows in ranks:
            rank_offsets.append(rank_offsets[-1] + len(rows))
        return Rows(columns, rank_offsets)

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def ranks(self) -> int:
        return len(self._starts) - 1

    def size(self, rank: int) -> int:
        return self._starts[rank + 1] - self._starts[rank]

    def rank(self, rank: int) -> Columns:
        begin, end = self._starts[rank], self._starts[rank + 1]
        return Columns(*(column[begin:end] for column in self._columns))

    def kinds(self) -> set[int]:
        """The numbers of the kinds that occur."""
        return set(self._columns.kind)


class Actions(Sequence["tuple[Action, ...]"]):
    """The actions of each rank, built on first access to the rank."""

    def __init__(self, rows: Rows, make: Callable[[Columns], Iterable[Action]]) -> None:
        self._rows = rows
        self._make = make
        self._made: dict[int, tuple[Action, ...]] = {}

    @overload
    def __getitem__(self, rank: int) -> tuple[Action, ...]: ...
    @overload
    def __getitem__(self, rank: slice) -> tuple[tuple[Action, ...], ...]: ...
    def __getitem__(self, rank: int | slice) -> tuple[Action, ...] | tuple[tuple[Action, ...], ...]:
        if isinstance(rank, slice):
            return tuple(self[one] for one in range(*rank.indices(len(self))))
        index = rank + len(self) if rank < 0 else rank
        if not 0 <= index < len(self):
            raise IndexError(f"no rank {rank}")
        if index not in self._made:
            self._made[index] = tuple(self._make(self._rows.rank(index)))
        return self._made[index]

    def __iter__(self) -> Iterator[tuple[Action, ...]]:
        return (self[rank] for rank in range(len(self)))

    def __len__(self) -> int:
        return self._rows.ranks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(tuple.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]
