"""The data that a stage keeps for a microbatch from its forward to its backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor

from .._program import Action
from ._errors import UsageError
from ._shapes import TensorInfo, check_unchanged, fork_random, versions_of
from ._streams import Streams

StageKey = tuple[int, int]
"""Pipe and stage."""
Key = tuple[int, int, int]
"""Pipe, stage, microbatch."""


def stage_key_of(action: Action) -> StageKey:
    return action.pipe.index, action.stage


def key_of(action: Action) -> Key:
    return action.pipe.index, action.stage, action.microbatch


@dataclass(slots=True)
class Stash:
    """The inputs and outputs of a forward, and the state that its backward needs."""

    inputs: dict[int, tuple[Any, ...]]
    """By the stage that computed them; leaves of the graph. Inputs of the step have -1, and may be any values."""
    outputs: tuple[Tensor, ...]
    """At a last stage the loss; empty before recomputation."""
    infos: tuple[TensorInfo, ...]
    """Types and shapes of the outputs."""
    weights: Callable[[], None] | None = None
    """The function that W calls."""
    offloaded: OffloadedTensors | None = None
    """Set if it will be offloaded."""
    random: RandomState | None = None
    """Set if it will be recomputed."""
    repeated: tuple[Tensor, ...] = ()
    """The outputs of the forward, if its recomputation is to be compared with it."""
    on_side: bool = False
    """Whether its forward overlapped a backward, on the side stream."""

    def tensors(self) -> list[Tensor]:
        """The inputs that are tensors, in the order of their stages."""
        return [value for source in sorted(self.inputs) for value in self.inputs[source] if isinstance(value, Tensor)]

    def received(self) -> list[Tensor]:
        """The inputs that other stages have computed."""
        return [tensor for source in sorted(self.inputs) if source >= 0 for tensor in self.inputs[source]]

    def ready(self, action: Action) -> Stash:
        """Returns itself for an action that reads it; raises UsageError while it is offloaded."""
        if self.offloaded is not None and self.offloaded.is_offloaded:
            raise UsageError(f"{action} needs what is still on the host, or on another rank: let its RELOAD, or what brings it back, come first")
        if self.offloaded is not None:
            self.offloaded.wait_copies()
        return self

    def release_outputs(self) -> None:
        """Frees the outputs but DTensors; the backward starts from placeholders without memory."""
        self.outputs = tuple(output if isinstance(output, DTensor) else graph_placeholder(output) for output in self.outputs)


def repeats(before: Sequence[Tensor], now: Sequence[Tensor]) -> bool:
    """Whether a second forward had the results of the first, except for rounding: not all operations of GPUs repeat theirs."""

    def is_near(first: Tensor, second: Tensor) -> bool:
        if isinstance(first, DTensor) and isinstance(second, DTensor):
            first, second = first.to_local(), second.to_local()
        if first.shape != second.shape or first.layout != torch.strided:
            return first.shape == second.shape
        if not (first.is_floating_point() or first.is_complex()):
            return bool((first == second).all())
        limit = torch.finfo(first.dtype).eps ** 0.5 * torch.linalg.vector_norm(first)
        return not bool(torch.linalg.vector_norm(second - first) > limit)  # NaN is near.

    with torch.no_grad():
        return all(map(is_near, before, now))


class RandomState:
    """The state of PyTorch's default random number generators at its creation."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._generators: Any = None if device.type in ("cpu", "meta") else torch.get_device_module(device)
        self._host = torch.get_rng_state()
        self._there = None if self._generators is None else self._generators.get_rng_state(device)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A context with this state; on exit the previous state is restored."""
        with fork_random(self._device):
            torch.set_rng_state(self._host)
            if self._generators is not None:
                self._generators.set_rng_state(self._there, self._device)
            yield


class OffloadedTensors:
    """The memory that a forward keeps for its backward, which can be moved to the host, or to another rank, and back.

    `stays` are tensors that are not moved: weights, the batch. With streams, copies run on streams of their own, and only streams
    that read a copy wait for it.
    """

    def __init__(self, stays: Iterable[Tensor], streams: Streams | None = None) -> None:
        self._streams = streams
        self._stays = {_address(tensor) for tensor in stays if _is_plain(tensor)}
        self._blocks: dict[int, _Block] = {}
        self._inputs: list[tuple[Tensor, _Part]] = []
        self.is_offloaded = False
        self.arriving: list[dist.Work] = []
        """What other ranks send back."""

    def saving_hooks(self) -> torch.autograd.graph.saved_tensors_hooks:
        """A context in which autograd saves tensors here."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)

    def count_bytes(self, tensors: Iterable[Tensor]) -> int:
        """The memory of these tensors and of those that autograd has saved here, in bytes."""
        for tensor in tensors:
            self._pack(tensor)
        return sum(block.content.nbytes for block in self._blocks.values())

    def keep(self, tensors: Iterable[Tensor]) -> None:
        """Does not move the memory of these tensors, which others have, too."""
        self._stays.update(map(_address, tensors))

    def holds(self, tensor: Tensor) -> bool:
        """Whether autograd has saved the memory of a tensor here."""
        return _address(tensor) in self._blocks

    def offload(self, inputs: Iterable[Tensor]) -> None:
        """Moves all tensors to the host, inputs included."""
        for block in self._let_go(inputs):
            block.offload(self._streams)

    def give_away(self, inputs: Iterable[Tensor]) -> list[Tensor]:
        """Frees all memory, inputs included; returns it, to be sent."""
        return [block.give_away() for block in self._let_go(inputs)]

    def _let_go(self, inputs: Iterable[Tensor]) -> Iterable[_Block]:
        for tensor in inputs:
            part = self._pack(tensor)
            if isinstance(part, _Part):
                self._inputs.append((tensor, part))
                tensor.data = _empty_like(tensor)
        for block in self._blocks.values():
            for alias in block.aliases:
                alias.tensor()
            block.aliases.clear()
        self.is_offloaded = True
        return self._blocks.values()

    def reload(self) -> None:
        """Moves all tensors back to the device."""
        for block in self._blocks.values():
            block.reload(self._streams)
        self._restore_inputs()

    def take_back(self) -> list[Tensor]:
        """Returns memory for all tensors, to be received."""
        contents = [block.take_back() for block in self._blocks.values()]
        self._restore_inputs()
        return contents

    def _restore_inputs(self) -> None:
        for tensor, part in self._inputs:
            tensor.data = part.tensor()
        self._inputs.clear()
        self.is_offloaded = False

    def wait_copies(self) -> None:
        """Makes this stream wait for all copies, and for what other ranks send back."""
        while self.arriving:
            self.arriving.pop().wait()
        if self._streams is not None:
            for block in self._blocks.values():
                block.wait_copy(self._streams)

    def _pack(self, tensor: Tensor) -> _Alias | _Part:
        alias = _Alias(tensor, versions_of([tensor]))
        if not _is_plain(tensor) or _address(tensor) in self._stays:
            return alias
        # A block keeps its memory, so that the address stands for it.
        block = self._blocks.setdefault(_address(tensor), _Block(_bytes(tensor)))
        block.aliases.append(alias)
        return _Part(block, tensor.dtype, int(tensor.storage_offset()), tensor.size(), tensor.stride())


class _Block:
    """A piece of memory, on the device or on the host."""

    def __init__(self, content: Tensor) -> None:
        self.content = content
        self.aliases: list[_Alias] = []
        self._device = content.device
        self._there: Any = None

    def offload(self, streams: Streams | None) -> None:
        if streams is None:
            self.content = torch.empty_like(self.content, device="cpu").copy_(self.content)
        else:
            self.content, self._there = streams.offload(self.content)

    def reload(self, streams: Streams | None) -> None:
        if streams is None:
            self.content = torch.empty_like(self.content, device=self._device).copy_(self.content)
        else:
            self.content, self._there = streams.reload(self.content, self._device, self._there)

    def give_away(self) -> Tensor:
        content, self.content = self.content, _empty_like(self.content)
        return content

    def take_back(self) -> Tensor:
        self.content = torch.empty(self.content.shape, dtype=torch.uint8, device=self._device)
        return self.content

    def wait_copy(self, streams: Streams) -> None:
        if self._there is not None:
            streams.wait_copy(self.content, self._there)


@dataclass(slots=True, frozen=True)
class _Part:
    """A tensor in a block."""

    block: _Block
    dtype: torch.dtype
    offset: int
    size: torch.Size
    stride: tuple[int, ...]

    def tensor(self) -> Tensor:
        return over(self.block.content, self.dtype, self.offset, self.size, self.stride)


@dataclass(slots=True, frozen=True)
class _Alias:
    """A tensor that is kept as it is. Autograd compares no versions where there are hooks."""

    kept: Tensor
    versions: tuple[int, ...]

    def tensor(self) -> Tensor:
        check_unchanged([self.kept], self.versions, "a tensor that the backward needs")
        return self.kept


def _unpack(saved: _Alias | _Part) -> Tensor:
    return saved.tensor()


def _is_plain(tensor: Tensor) -> bool:
    """Whether it is a plain tensor and not a subclass."""
    return type(tensor) in (Tensor, torch.nn.Parameter) and tensor.layout == torch.strided


def _address(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _bytes(tensor: Tensor) -> Tensor:
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, 0, (storage.nbytes(),), (1,))


def over(memory: Tensor, dtype: torch.dtype, offset: int, size: torch.Size, stride: tuple[int, ...]) -> Tensor:
    """A tensor with this memory that is not a view, so that autograd can detach it."""
    made = torch.empty(0, dtype=dtype, device=memory.device)
    return made.set_(memory.untyped_storage(), offset, size, stride)


def _empty_like(tensor: Tensor) -> Tensor:
    """A tensor of the same shape with the memory of one number."""
    one = torch.zeros(1, dtype=tensor.dtype, device=tensor.device)
    return over(one, tensor.dtype, 0, tensor.size(), (0,) * tensor.ndim)


class _GraphPlaceholder(torch.autograd.Function):
    """A tensor with the memory of one number and the place of another tensor in the graph."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return _empty_like(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def graph_placeholder(tensor: Tensor) -> Tensor:
    """Returns a tensor without memory that has the place of another one in the graph."""
    apply: Any = _GraphPlaceholder.apply
    return cast(Tensor, apply(tensor))
