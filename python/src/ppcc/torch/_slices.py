"""Slices of sequences: what a stage keeps of the slices before, and the gradients that later slices give back.

A slice reads the keys of the slices before it from memory that all slices of a sequence share: they are a leaf of its graph, beside the
inputs that other stages have sent. Its backward comes before those of these slices, and leaves the gradient of the leaf to them. There each
takes its part, as a further start of its backward.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from .._program import Action
from ._errors import UsageError
from ._stash import Key, Stash, key_of, over

if TYPE_CHECKING:
    from ._slice_cache import SliceCache


class _Running(threading.local):
    now: tuple[Action, SliceStore | None] | None = None


_running = _Running()
_backward: tuple[Action, SliceStore | None] | None = None
"""What runs in the threads in which PyTorch runs the backward on devices."""


@contextmanager
def running(action: Action, store: SliceStore | None) -> Iterator[None]:
    """A context for an action."""
    global _backward
    before, _running.now = _running.now, (action, store)
    if action.op in ("B", "I", "W"):
        _backward = _running.now
    try:
        yield
    finally:
        _running.now = before
        if action.op in ("B", "I", "W"):
            _backward = None


def now_running() -> tuple[Action, SliceStore | None] | None:
    """What this thread runs, or is a part of."""
    return _running.now or _backward


@dataclass(slots=True)
class _Sequence:
    """What one cache keeps of a sequence, by tensor."""

    memory: list[Tensor]
    """Of all positions of the slices up to the last."""
    length: int = 0
    gradients: list[Tensor | None] = field(default_factory=list)
    """Of the positions of the slices whose backward has not run yet."""


@dataclass(slots=True)
class _Slice:
    """What one cache keeps of a slice, until its backward has ended."""

    sequence: _Sequence
    dim: int
    start: int
    length: int
    before: list[Tensor]
    """Of the slices before this one; leaves of the graph."""
    memory: list[Tensor]
    edges: list[GradientEdge | None] = field(default_factory=list)
    """Where the tensors of this slice are in its graph; empty where it has none yet."""


def caches_of(module: nn.Module) -> frozenset[SliceCache]:
    """The caches of a stage."""
    from ._slice_cache import SliceCache  # Slow to import.

    return frozenset(part for part in module.modules() if isinstance(part, SliceCache))


class SliceStore:
    """What the stages of a rank keep of slices in a step."""

    def __init__(self, stashes: Mapping[Key, Stash], recomputed: Collection[Key], *, trains: bool) -> None:
        self._stashes = stashes
        self._trains = trains
        self._recomputed = recomputed
        self._sequences: dict[Key, dict[SliceCache, _Sequence]] = {}
        self._slices: dict[Key, dict[SliceCache, _Slice]] = {}

    def extend(self, cache: SliceCache, action: Action, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What a cache returns."""
        key = key_of(action)
        if action.op == "F":
            self._keep(cache, action, key, tensors)
        kept = self._slices[key][cache]
        if action.op in ("F", "R") and torch.is_grad_enabled():
            kept.edges = [get_gradient_edge(tensor) if tensor.requires_grad else None for tensor in tensors]
            for leaf, tensor in zip(kept.before, tensors):
                leaf.requires_grad_(tensor.requires_grad)
        leaves: Sequence[Tensor | None] = kept.before or [None] * len(tensors)
        apply = cast(Any, _Append.apply)
        return tuple(apply(leaf, tensor, memory, cache.dim) for leaf, tensor, memory in zip(leaves, tensors, kept.memory, strict=True))

    def _keep(self, cache: SliceCache, action: Action, key: Key, tensors: tuple[Tensor, ...]) -> None:
        if cache in self._slices.setdefault(key, {}):
            raise UsageError(f"{action} calls a SliceCache twice: give each attention a cache of its own")
        if self._trains and key not in self._recomputed and not torch.is_grad_enabled():
            raise UsageError(f"{action} calls a SliceCache without gradients: use checkpoints with use_reentrant=False, and freeze weights in place of no_grad()")
        dim, size = cache.dim, tensors[0].shape[cache.dim]
        sequences = self._sequences.setdefault((*key[:2], action.microbatch - action.slice), {})
        if cache not in sequences:
            sequences[cache] = _Sequence([_room(tensor, dim, size * action.pipe.slices) for tensor in tensors])
        found = sequences[cache]
        start, end = found.length, found.length + size
        if end > found.memory[0].shape[dim]:  # Slices may differ in length.
            found.memory = [torch.cat([memory, _room(memory, dim, size)], dim) for memory in found.memory]
        for memory, tensor in zip(found.memory, tensors, strict=True):
            memory.narrow(dim, start, size).copy_(tensor.detach())
        before, all_of_it = ([_beginning(memory, dim, length) for memory in found.memory] for length in (start, end))
        self._slices[key][cache] = _Slice(found, dim, start, size, before if start else [], all_of_it)
        found.length = end
        if (stash := self._stashes.get(key)) is not None and stash.offloaded is not None:
            stash.offloaded.keep(found.memory)

    def after_forward(self, action: Action, caches: Set[SliceCache]) -> None:
        """Raises UsageError if one of these caches was not called; frees what no later slice reads."""
        key = key_of(action)
        if self._slices.get(key, {}).keys() != caches:
            raise UsageError(f"{action} has not called each SliceCache of its stage: let it have those of the attentions that it runs")
        if not self._trains:
            self._slices.pop(key, None)
        if action.slice == action.pipe.slices - 1:
            for found in self._sequences.pop((*key[:2], action.microbatch - action.slice), {}).values():
                found.memory.clear()

    def leaves(self, key: Key) -> list[Tensor]:
        """What the graph of a slice reads of the slices before."""
        return [leaf for kept in self._slices.get(key, {}).values() for leaf in kept.before]

    def roots(self, key: Key) -> list[tuple[GradientEdge, Tensor]]:
        """Where the backward of a slice starts beside its outputs, with what later slices give back there."""
        return [
            (edge, gradient.narrow(kept.dim, kept.start, kept.length))
            for kept in self._slices.get(key, {}).values()
            for edge, gradient in zip(kept.edges, kept.sequence.gradients)
            if edge is not None and gradient is not None
        ]

    def give_back(self, key: Key, *, is_done: bool) -> None:
        """Leaves the gradients of the leaves to the slices before; `is_done`: the backward of the slice has ended."""
        for kept in self._slices.get(key, {}).values():
            before, kept.edges = kept.sequence.gradients or [None] * len(kept.memory), []
            kept.sequence.gradients = []
            for position, leaf in enumerate(kept.before):
                rest, gradient = before[position], leaf.grad
                if rest is not None:
                    rest = rest.narrow(kept.dim, 0, kept.start)
                kept.sequence.gradients.append(gradient if rest is None else rest if gradient is None else rest + gradient)
                leaf.grad = None
        if is_done:
            self.drop(key)

    def drop(self, key: Key) -> None:
        """Frees what a slice has kept for its backward."""
        self._slices.pop(key, None)


def _room(tensor: Tensor, dim: int, size: int) -> Tensor:
    shape = list(tensor.shape)
    shape[dim] = size
    return tensor.new_empty(shape)


def _beginning(memory: Tensor, dim: int, length: int) -> Tensor:
    """No view, since later slices write behind it."""
    part = memory.narrow(dim, 0, length)
    return over(memory, memory.dtype, 0, part.size(), part.stride())


class _Append(torch.autograd.Function):
    """Tensors of the slices before and of this one, in the memory that has both."""

    @staticmethod
    def forward(ctx: Any, before: Tensor | None, tensor: Tensor, memory: Tensor, dim: int) -> Tensor:
        ctx.dim, ctx.start, ctx.length = dim, memory.shape[dim] - tensor.shape[dim], tensor.shape[dim]
        return _beginning(memory, dim, memory.shape[dim])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        before = gradient.narrow(ctx.dim, 0, ctx.start) if ctx.start else None
        return before, gradient.narrow(ctx.dim, ctx.start, ctx.length), None, None
