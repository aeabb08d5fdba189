"""The rows of a program, stored in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, overload


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
    """The columns of all ranks, each read when it is asked for.

    Args:
        ranks: The number of ranks.
        columns: Returns the columns of a rank, one after another, in int32.
    """

    def __init__(self, ranks: int, columns: Callable[[int], bytes]) -> None:
        self.ranks = ranks
        self._columns = columns

    def __len__(self) -> int:
        return sum(len(self.rank(rank).kind) for rank in range(self.ranks))

    def rank(self, rank: int) -> Columns:
        if not 0 <= rank < self.ranks:
            raise IndexError(f"no rank {rank}")
        values = memoryview(self._columns(rank)).cast("i")
        size = len(values) // len(Columns._fields)
        return Columns(*(values[column * size : (column + 1) * size] for column in range(len(Columns._fields))))

    def kinds(self) -> Iterator[int]:
        """The numbers of the kinds that occur on each rank."""
        return (kind for rank in range(self.ranks) for kind in set(self.rank(rank).kind))


T = TypeVar("T")


class ByRank(Sequence[tuple[T, ...]]):
    """A tuple for each rank, built when it is first asked for."""

    def __init__(self, ranks: int, make: Callable[[int], Iterable[T]]) -> None:
        self._ranks = ranks
        self._make = make
        self._made: dict[int, tuple[T, ...]] = {}

    @overload
    def __getitem__(self, rank: int) -> tuple[T, ...]: ...
    @overload
    def __getitem__(self, rank: slice) -> tuple[tuple[T, ...], ...]: ...
    def __getitem__(self, rank: int | slice) -> tuple[T, ...] | tuple[tuple[T, ...], ...]:
        if isinstance(rank, slice):
            return tuple(self[one] for one in range(*rank.indices(len(self))))
        index = rank + len(self) if rank < 0 else rank
        if not 0 <= index < len(self):
            raise IndexError(f"no rank {rank}")
        if index not in self._made:
            self._made[index] = tuple(self._make(index))
        return self._made[index]

    def __iter__(self) -> Iterator[tuple[T, ...]]:
        return (self[rank] for rank in range(len(self)))

    def __len__(self) -> int:
        return self._ranks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(tuple.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]
