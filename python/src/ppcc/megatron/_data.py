"""The data of chunks that do not take microbatches in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class Microbatches:
    """An iterator that returns the microbatch of the current forward, in any order."""

    def __init__(self, iterator: Iterator[Any], count: int) -> None:
        self._iterator = iterator
        self._count = count
        self._read = 0
        self._kept: dict[int, Any] = {}
        self._now = 0

    @staticmethod
    def of(iterator: Any, order: Sequence[int], count: int) -> Any:
        """Wraps an iterator, unless the chunk takes all microbatches in order."""
        if iterator is None or list(order) == list(range(count)):
            return iterator
        return Microbatches(iterator, count)

    def seek(self, microbatch: int) -> None:
        """Sets the microbatch that is returned next."""
        self._now = microbatch

    def finish(self) -> None:
        """Skips the rest of the step, if anything was read."""
        if self._read > 0:
            while self._read < self._count:
                self._advance()
        self._read, self._kept = 0, {}

    def __iter__(self) -> Microbatches:
        return self

    def __next__(self) -> Any:
        while self._read <= self._now:
            self._advance()
        return self._kept.pop(self._now)

    def _advance(self) -> None:
        self._kept[self._read] = next(self._iterator)
        self._read += 1
