"""What the stages of a pipe hand to each other: found once, without computing anything."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ._errors import RuntimeMisuse


_DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
_HEADER = 128
"""How many numbers describe a message: how many tensors, and of each its type, its dimensions and their sizes."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Shape and type of a tensor on an edge."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def has_gradient(self) -> bool:
        """Whether a gradient comes back for it."""
        return self.dtype.is_floating_point or self.dtype.is_complex

    def empty(self, device: torch.device) -> Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device=device)

    def zeros(self, device: torch.device) -> Tensor:
        return torch.zeros(self.shape, dtype=self.dtype, device=device)

    def fits(self, tensor: Tensor) -> bool:
        return tuple(tensor.shape) == self.shape and tensor.dtype == self.dtype

    @staticmethod
    def of(tensor: Tensor) -> TensorInfo:
        return TensorInfo(tuple(tensor.shape), tensor.dtype)

    @staticmethod
    def empty_header() -> Tensor:
        return torch.zeros(_HEADER, dtype=torch.int64)

    @staticmethod
    def header(infos: Sequence[TensorInfo]) -> Tensor:
        """A description for another rank, of a fixed size."""
        numbers = [len(infos)]
        for info in infos:
            numbers += [_DTYPES.index(info.dtype), len(info.shape), *info.shape]
        if len(numbers) > _HEADER:
            raise RuntimeMisuse(f"a message has more tensors or dimensions than {_HEADER} numbers describe")
        return torch.tensor(numbers + [0] * (_HEADER - len(numbers)), dtype=torch.int64)

    @staticmethod
    def of_header(header: Tensor) -> list[TensorInfo]:
        count, *numbers = header.tolist()
        infos = []
        for _ in range(count):
            dtype, dimensions, *numbers = numbers
            infos.append(TensorInfo(tuple(numbers[:dimensions]), _DTYPES[dtype]))
            numbers = numbers[dimensions:]
        return infos

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}".removeprefix("torch.")


def as_tensors(value: object, label: str) -> tuple[Tensor, ...]:
    """The output of a stage as a tuple. Raises RuntimeMisuse for anything but tensors."""
    tensors = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise RuntimeMisuse(f"{label} returned {type(tensor).__name__}, but stages give a tensor or several")
    return tensors


def infer(
    module: nn.Module, inputs: Sequence[TensorInfo], device: torch.device, label: str, *, really: bool = False
) -> tuple[TensorInfo, ...]:
    """What `module` makes of such inputs. Nothing is computed, no state changes; but with `really` it runs on zeros, for
    modules that gather their weights to run."""
    with nullcontext() if really else FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        try:
            outputs = module(*(info.zeros(device) for info in inputs))
        except Exception as error:
            given = ", ".join(map(str, inputs))
            raise RuntimeMisuse(f"{label} does not take {given}: {error}") from error
        return tuple(TensorInfo.of(tensor) for tensor in as_tensors(outputs, label))
