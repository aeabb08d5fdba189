"""What the stages of a pipe hand to each other: found once, without computing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ._errors import RuntimeMisuse


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

    def fits(self, tensor: Tensor) -> bool:
        return tuple(tensor.shape) == self.shape and tensor.dtype == self.dtype

    @staticmethod
    def of(tensor: Tensor) -> TensorInfo:
        return TensorInfo(tuple(tensor.shape), tensor.dtype)

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}".removeprefix("torch.")


def as_tensors(value: object, label: str) -> tuple[Tensor, ...]:
    """The output of a stage as a tuple. Raises RuntimeMisuse for anything but tensors."""
    tensors = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise RuntimeMisuse(f"{label} returned {type(tensor).__name__}, but stages give a tensor or several")
    return tensors


def infer(module: nn.Module, inputs: Sequence[TensorInfo], device: torch.device, label: str) -> tuple[TensorInfo, ...]:
    """What `module` makes of such inputs. Nothing is computed, no state changes."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        try:
            outputs = module(*(info.empty(device) for info in inputs))
        except Exception as error:
            given = ", ".join(map(str, inputs))
            raise RuntimeMisuse(f"{label} does not take {given}: {error}") from error
        return tuple(TensorInfo.of(tensor) for tensor in as_tensors(outputs, label))
