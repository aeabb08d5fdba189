"""The rows of a program, in columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

if TYPE_CHECKING:
    import _ppcc

    from ._program import Action


class Columns(NamedTuple):
    """The rows of one rank, a buffer of int32 each: `numpy.asarray(columns.stage)` and `torch.frombuffer` copy nothing.

    Numbers are those of the program's tables: `program.kinds[kind]`, `program.pipes[pipe]`. -1 stands for none.
    """

    kind: memoryview
    pipe: memoryview
    stage: memoryview
    microbatch: memoryview
    peer: memoryview
    phase: memoryview
    group: memoryview
    site: memoryview


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
        """From lists of rows, whose values are called so."""
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
        """Those that occur."""
        return set(self._columns.kind)


class Actions(Sequence["tuple[Action, ...]"]):
    """The actions of each rank, made when somebody asks for the rank."""

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
