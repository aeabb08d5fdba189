"""The inputs of a step, by microbatch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from ._errors import UsageError
from ._shapes import TensorInfo


@dataclass(slots=True)
class Inputs:
    """The inputs of first stages, the keyword arguments of all stages, and the targets of the loss."""

    args: list[tuple[Any, ...]] | None
    kwargs: list[dict[str, Any]]
    targets: Sequence[Any] | None
    loss_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Of each microbatch, as they are."""

    def named(self, module: nn.Module, microbatch: int) -> dict[str, Any]:
        """The keyword arguments that the forward of a stage takes."""
        given = self.kwargs[microbatch]
        names = parameter_names(module) if given else None
        return given if names is None else {name: given[name] for name in given.keys() & names}

    def tensors(self, microbatch: int) -> list[Tensor]:
        given: list[Any] = list(self.kwargs[microbatch].values())
        given += self.args[microbatch] if self.args is not None else ()
        given += tree_leaves(self.targets[microbatch]) if self.targets is not None else ()
        given += tree_leaves(dict(self.loss_kwargs))
        return [value for value in given if isinstance(value, Tensor)]


@dataclass(slots=True, frozen=True)
class BatchSplitter:
    """Splits batches into microbatches.

    Tensors are split along a dimension, also those in a target that is a dict or a tuple; lists of tensors are microbatches already,
    and values without tensors are passed to each.
    """

    slices: tuple[int, ...]
    """Into how many slices each sequence is cut; 1 where a microbatch is a whole one."""
    dim: int
    sequence_dim: int
    equal: bool
    """Whether all microbatches have the same shape."""
    names: frozenset[str] | None = None
    """The parameters of the stages of all ranks; None if a stage takes any keyword argument."""

    @property
    def count(self) -> int:
        """The number of microbatches."""
        return sum(self.slices)

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any], target: Any, loss_kwargs: Mapping[str, Any] | None) -> Inputs:
        for name in kwargs.keys() - (kwargs.keys() if self.names is None else self.names):
            raise UsageError(f"no stage has a parameter `{name}`; parameters are {', '.join(sorted(self.names or ()))}")
        by_argument = [self._split(value, "the batch") for value in args]
        by_name = {name: self._split(value, f"`{name}`") for name, value in kwargs.items()}
        return Inputs(
            list(zip(*by_argument, strict=True)) if args else None,
            [{name: values[microbatch] for name, values in by_name.items()} for microbatch in range(self.count)],
            None if target is None else self._split_target(target),
            loss_kwargs or {},
        )

    def _split_target(self, target: Any) -> Sequence[Any]:
        if isinstance(target, (Tensor, list)) or not _has_tensors(target):
            return self._split(target, "the target")
        if isinstance(target, tuple) and len(target) == self.count:
            raise UsageError(
                f"the target is a tuple of {self.count}, as many as microbatches: pass a list if it is one target a microbatch, "
                "and a dict if these are parts of the target"
            )
        leaves, structure = tree_flatten(target)
        if len({leaf.shape[self.dim : self.dim + 1] for leaf in leaves if isinstance(leaf, Tensor)}) > 1:
            raise UsageError(f"parts of the target have several sizes along dimension {self.dim}: let loss_fn hold what is not of the batch")
        parts = [self._split(leaf, "a part of the target") for leaf in leaves]
        return [tree_unflatten(list(part), structure) for part in zip(*parts, strict=True)]

    def _split(self, value: Any, what: str) -> Sequence[Any]:
        if isinstance(value, Tensor):
            microbatches = _equal_parts(value, len(self.slices), self.dim, what, "microbatches")
            return [
                one
                for microbatch, slices in zip(microbatches, self.slices, strict=True)
                for one in _equal_parts(microbatch, slices, self.sequence_dim, what, "slices")
            ]
        if not _has_tensors(value):
            return [value] * self.count
        if not isinstance(value, (list, tuple)):
            raise UsageError(f"{what} is a {type(value).__name__} with tensors: pass each tensor as an argument of its own")
        if len(value) != self.count or not all(isinstance(one, Tensor) for one in value):
            raise UsageError(f"{what} is a sequence of {len(value)}, but must be of {self.count} tensors, one a microbatch")
        if self.equal and len({TensorInfo.of(one) for one in value}) > 1:
            raise UsageError(f"{what} has microbatches of several shapes, which needs variable_shapes")
        return value


def _equal_parts(value: Tensor, count: int, dim: int, what: str, parts: str) -> Sequence[Tensor]:
    if count == 1:
        return [value]
    if value.ndim <= dim or value.shape[dim] % count != 0:
        raise UsageError(f"{what} of shape {list(value.shape)} cannot be cut into {count} equal {parts} along dimension {dim}")
    return value.tensor_split(count, dim)


def _has_tensors(value: Any) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in tree_leaves(value))


def parameter_names(module: nn.Module) -> set[str] | None:
    """The parameters of a stage's forward; None if it takes any keyword argument."""
    parameters = inspect.signature(getattr(module, "_orig_mod", module).forward).parameters  # Of a compiled module.
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return set(parameters)
