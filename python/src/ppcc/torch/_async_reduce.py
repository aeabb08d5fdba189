"""All-reduces that overlap the backward."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor

_BUCKET = 25 << 20
_MAX_IN_FLIGHT = 4 * _BUCKET
"""In bytes; some backends keep a copy until a reduction has ended."""


@dataclass(slots=True)
class _Bucket:
    tensors: list[Tensor]
    work: dist.Work
    then: Callable[[Tensor], object]


class AsyncReducer:
    """All-reduces tensors in buckets. Reductions of one tensor run one after another; read it only after wait() or wait_for()."""

    def __init__(self) -> None:
        self._pending: deque[_Bucket] = deque()
        self._busy: set[int] = set()
        self._bytes = 0

    def begin(
        self, group: dist.ProcessGroup, tensors: Sequence[Tensor], then: Callable[[Tensor], object] = lambda tensor: None
    ) -> None:
        """Starts to sum each tensor over the group; calls `then` on each at the end."""
        self.wait_for(tensors)
        for bucket in _buckets(tensors):
            self._bytes += _bytes(bucket)
            while self._pending and self._bytes > _MAX_IN_FLIGHT:
                self._settle_one()
            work = group.allreduce_coalesced(bucket, dist.AllreduceCoalescedOptions())
            self._pending.append(_Bucket(bucket, work, then))
            self._busy.update(map(id, bucket))

    def wait_for(self, tensors: Sequence[Tensor]) -> None:
        """Waits until none of these tensors is being summed."""
        if self._busy.intersection(map(id, tensors)):
            self.wait()

    def wait(self) -> None:
        """Waits for all reductions."""
        while self._pending:
            self._settle_one()

    def _settle_one(self) -> None:
        ended = self._pending.popleft()
        ended.work.wait()
        for tensor in ended.tensors:
            ended.then(tensor)
        self._bytes -= _bytes(ended.tensors)
        self._busy.difference_update(map(id, ended.tensors))


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    by_type: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        bucket = by_type.setdefault(tensor.dtype, [])
        bucket.append(tensor)
        if _bytes(bucket) >= _BUCKET:
            yield by_type.pop(tensor.dtype)
    yield from by_type.values()


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)
