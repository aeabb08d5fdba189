"""The inputs of a step, by microbatch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ._errors import UsageError
from ._shapes import TensorInfo


@dataclass(slots=True)
class Inputs:
    """The inputs of first stages, the keyword arguments of all stages, and the targets of the loss."""

    args: list[tuple[Any, ...]] | None
    kwargs: list[dict[str, Any]]
    targets: Sequence[Any] | None

    def named(self, module: nn.Module, microbatch: int) -> dict[str, Any]:
        """The keyword arguments that the forward of a stage takes."""
        given = self.kwargs[microbatch]
        return {name: given[name] for name in given.keys() & _names(module, given)} if given else given

    def tensors(self, microbatch: int) -> list[Tensor]:
        given: list[Any] = list(self.kwargs[microbatch].values())
        given += self.args[microbatch] if self.args is not None else ()
        given += [self.targets[microbatch]] if self.targets is not None else ()
        return [value for value in given if isinstance(value, Tensor)]


@dataclass(slots=True, frozen=True)
class BatchSplitter:
    """Splits batches into microbatches.

    Tensors are split along a dimension, lists of tensors are microbatches already, and other values are passed to each.
    """

    count: int
    dim: int
    equal: bool
    """Whether all microbatches have the same shape."""

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any], target: Any) -> Inputs:
        by_argument = [self._split(value, "the batch") for value in args]
        by_name = {name: self._split(value, f"`{name}`") for name, value in kwargs.items()}
        return Inputs(
            list(zip(*by_argument, strict=True)) if args else None,
            [{name: values[microbatch] for name, values in by_name.items()} for microbatch in range(self.count)],
            None if target is None else self._split(target, "the target"),
        )

    def _split(self, value: Any, what: str) -> Sequence[Any]:
        if isinstance(value, Tensor):
            if value.ndim <= self.dim or value.shape[self.dim] % self.count != 0:
                raise UsageError(
                    f"{what} of shape {list(value.shape)} cannot be cut into {self.count} equal microbatches "
                    f"along dimension {self.dim}"
                )
            return value.tensor_split(self.count, self.dim)
        if not isinstance(value, (list, tuple)) or not any(isinstance(one, Tensor) for one in value):
            return [value] * self.count
        if len(value) != self.count or not all(isinstance(one, Tensor) for one in value):
            raise UsageError(f"{what} is a sequence of {len(value)}, but must be of {self.count} tensors, one a microbatch")
        if self.equal and len({TensorInfo.of(one) for one in value}) > 1:
            raise UsageError(f"{what} has microbatches of several shapes, which needs variable_shapes")
        return value


def _names(module: nn.Module, given: Mapping[str, Any]) -> set[str]:
    parameters = inspect.signature(module.forward).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return set(given)
    return set(parameters)
