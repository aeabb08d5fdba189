"""Reduction of a chunk's gradients over its data-parallel copies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn


class GradSync:
    """Defers reductions until a chunk's last gradient, as Megatron's schedules do.

    `grad_sync_func`, if it is set, is called after that, or at the REDUCE_GRAD of chunks that have one; else the hooks of
    Megatron's DistributedDataParallel start reductions during the last backward.
    """

    def __init__(self, config: Any, chunks: Sequence[nn.Module], by_action: set[int]) -> None:
        no_sync = config.no_sync_func
        self._own = isinstance(no_sync, list)
        makers = no_sync if self._own else [no_sync or contextlib.nullcontext]
        self._makers = list(makers)
        self._entered: dict[int, Any] = {}
        self._chunks = chunks
        self._by_action = by_action
        reduce = config.grad_sync_func
        self._reduce = None if reduce is None else reduce if isinstance(reduce, list) else [reduce] * len(chunks)
        self._waiting = set(range(len(chunks)))

    def disable_grad_sync(self) -> None:
        for number in range(len(self._makers)):
            self._hold(number)

    def finish(self) -> None:
        """Finishes reductions at the end of the step."""
        for number in list(self._entered):
            self._enable_grad_sync(number)

    @contextlib.contextmanager
    def last(self, chunk: int) -> Iterator[None]:
        """A context for the last action that adds gradients of a chunk's weights."""
        number = chunk if self._own else 0
        if self._reduce is None:
            self._enable_grad_sync(number)
        yield
        self._waiting.discard(chunk)
        if self._reduce is not None:
            if chunk not in self._by_action:
                self.reduce(chunk)
        elif not self._own and self._waiting:  # The others have still to be held back.
            self._hold(number)

    def reduce(self, chunk: int) -> None:
        """Runs REDUCE_GRAD."""
        if self._reduce is None:
            return
        number = chunk if self._own else 0
        was_held = number in self._entered
        self._enable_grad_sync(number)
        self._reduce[chunk](self._chunks[chunk].parameters())
        if not self._own and self._waiting and was_held:
            self._hold(number)

    def _hold(self, number: int) -> None:
        self._entered[number] = self._makers[number]()
        self._entered[number].__enter__()

    def _enable_grad_sync(self, number: int) -> None:
        if number in self._entered:
            self._entered.pop(number).__exit__(None, None, None)


def hook_maker(chunk: nn.Module) -> Any:
    """Returns what creates the hooks of Megatron's DistributedDataParallel; None for other chunks."""
    return getattr(chunk, "_make_backward_post_hook", None) or getattr(chunk, "_make_param_hook", None)
