"""The shapes of the messages between stages, inferred once, without computation."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from ._errors import UsageError
from ._unsupported_stages import check_graph

_DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
_HEADER = 128
"""The length of a header: the number of tensors, and for each its type, whether it gets a gradient, its number of dimensions and
their sizes."""
OUTPUT = "an output of a stage that the next stage has not got yet"
_CONTAINERS = (dict, list, set, OrderedDict, defaultdict)
_stance = threading.Lock()
"""Held while inference changes torch.compile's stance, which is the process's."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How ranks beside the pipeline hold a DTensor together; the ranks of the stage at the other end hold it alike."""

    dimensions: tuple[str, ...]
    """Of the Runtime's mesh."""
    placements: tuple[Placement, ...]
    shape: torch.Size
    stride: tuple[int, ...]

    @staticmethod
    def of(tensor: Tensor) -> Layout | None:
        if not isinstance(tensor, DTensor):
            return None
        return Layout(tuple(tensor.device_mesh.mesh_dim_names or ()), tensor.placements, tensor.shape, tensor.stride())

    def whole(self, part: Tensor, mesh: DeviceMesh) -> Tensor:
        """The DTensor of which this rank has a part."""
        return DTensor.from_local(part, mesh[self.dimensions], self.placements, run_check=False, shape=self.shape, stride=self.stride)


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Type and shape of a tensor on an edge."""

    shape: tuple[int, ...]
    """Of a DTensor that of the part of this rank."""
    dtype: torch.dtype
    has_gradient: bool = False
    """Whether its gradient is sent back."""
    layout: Layout | None = None
    """Of a DTensor."""

    def empty(self, device: torch.device) -> Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device=device)

    def fits(self, tensor: Tensor) -> bool:
        return tuple(part_of(tensor).shape) == self.shape and tensor.dtype == self.dtype and Layout.of(tensor) == self.layout

    @staticmethod
    def of(tensor: Tensor) -> TensorInfo:
        return TensorInfo(tuple(part_of(tensor).shape), tensor.dtype, tensor.requires_grad, Layout.of(tensor))

    @staticmethod
    def of_type(tensor: Tensor) -> TensorInfo:
        """For a tensor without `requires_grad`: assumes a gradient if its type can have one."""
        return replace(TensorInfo.of(tensor), has_gradient=tensor.is_floating_point() or tensor.is_complex())

    def gradient(self) -> TensorInfo:
        """That of the gradient that is sent back."""
        layout = self.layout and replace(self.layout, placements=gradient_placements(self.layout.placements))
        return replace(self, has_gradient=False, layout=layout)

    def received(self, part: Tensor, mesh: DeviceMesh | None) -> Tensor:
        """What a stage reads, a leaf, of the part that a message has."""
        if self.layout is not None:
            assert mesh is not None
            part = self.layout.whole(part, mesh)
        return part.requires_grad_(self.has_gradient)

    @staticmethod
    def empty_header() -> Tensor:
        return torch.zeros(_HEADER, dtype=torch.int64, device="cpu")

    @staticmethod
    def header(infos: Sequence[TensorInfo]) -> Tensor:
        """Encodes a header of fixed size for another rank."""
        numbers = [len(infos)]
        for info in infos:
            numbers += [_DTYPES.index(info.dtype), int(info.has_gradient), len(info.shape), *info.shape]
        if len(numbers) > _HEADER:
            raise UsageError(f"a message has more tensors or dimensions than {_HEADER} numbers describe")
        return torch.tensor(numbers + [0] * (_HEADER - len(numbers)), dtype=torch.int64, device="cpu")

    @staticmethod
    def of_header(header: Tensor) -> list[TensorInfo]:
        count, *numbers = header.tolist()
        infos = []
        for _ in range(count):
            dtype, has_gradient, dimensions, *numbers = numbers
            infos.append(TensorInfo(tuple(numbers[:dimensions]), _DTYPES[dtype], bool(has_gradient)))
            numbers = numbers[dimensions:]
        return infos

    def __str__(self) -> str:
        text = f"{self.dtype}{list(self.shape)}".removeprefix("torch.")
        return text if self.layout is None else f"{text} of a DTensor {self.layout.placements}"


def gradient_placements(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The placements of the gradient of a DTensor: those of partial sums have the whole."""
    return tuple(Replicate() if placement.is_partial() else placement for placement in placements)


def part_of(tensor: Tensor) -> Tensor:
    """The part of a DTensor that this rank has; any other tensor itself."""
    if isinstance(tensor, DTensor):
        tensor = cast(DTensor, tensor.detach()).to_local()
    return tensor.wait() if isinstance(tensor, AsyncCollectiveTensor) else tensor


def as_tensors(value: object, label: str, mesh: DeviceMesh | None = None, *, is_read: bool) -> tuple[Tensor, ...]:
    """Returns the tensors in the output of a stage: one, or those in tuples, lists and dicts.

    Raises UsageError for values that are not tensors, and for tensors that a message cannot carry if other stages read them. DTensors may
    be over dimensions of a mesh.
    """
    tensors = tuple(tree_leaves(value))
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise UsageError(f"{label} returned {type(tensor).__name__}, but stages give a tensor or several, also in tuples, lists and dicts")
        if is_read:
            check_plain(tensor, f"{label} returned", mesh)
    return tensors


def structure_of(value: object) -> Any:
    """A nested output of a stage with numbers in place of its tensors; None for a tensor, and for a tuple or list of tensors."""
    if isinstance(value, Tensor) or (type(value) in (tuple, list) and all(isinstance(part, Tensor) for part in value)):  # type: ignore[attr-defined]
        return None
    leaves, spec = tree_flatten(value)
    return tree_unflatten(range(len(leaves)), spec)


def structured(structure: Any, parts: Sequence[Any]) -> Any:
    """The parts in a result of structure_of()."""
    return parts if structure is None else tree_map(parts.__getitem__, structure)


def check_real(tensors: Sequence[Tensor], label: str) -> None:
    """Raises UsageError for a result of infer() that a cache outside of the module has kept."""
    if any(isinstance(tensor, FakeTensor) for tensor in tensors):
        raise UsageError(
            f"{label} returned a FakeTensor: a cache outside of its attributes, such as lru_cache, has kept one from the inference of "
            "shapes: give the Runtime `shapes`, or fill the cache before the first step"
        )


def versions_of(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """How often tensors were changed in place."""
    return tuple(0 if tensor.is_inference() else tensor._version for tensor in tensors)


def check_unchanged(tensors: Sequence[Tensor], versions: tuple[int, ...], what: str) -> None:
    """Raises UsageError if a tensor was changed in place since it had these versions."""
    for tensor, found, version in zip(tensors, versions_of(tensors), versions, strict=True):
        if found != version:
            raise UsageError(f"{what}, of shape {list(tensor.shape)}, was changed in place: let the stage compute a new tensor, or return a clone()")


def check_plain(tensor: Tensor, what: str, mesh: DeviceMesh | None = None) -> None:
    """Raises UsageError for a tensor subclass or layout that a message cannot carry; with a mesh it can carry DTensors over it."""
    if isinstance(tensor, DTensor):
        names, known = tensor.device_mesh.mesh_dim_names, set((mesh and mesh.mesh_dim_names) or ()) - {"pp"}
        if mesh is not None and names and known.issuperset(names) and mesh[names] == tensor.device_mesh:
            return
        raise UsageError(
            f"{what} a DTensor, but stages hand over only those over dimensions of the Runtime's `mesh`, without variable_shapes: give it a "
            "mesh with these dimensions, or use tensor.to_local(), or use_local_output=True in the plan of parallelize_module()"
        )
    has_parts = hasattr(type(tensor), "__tensor_flatten__") and not isinstance(tensor, AsyncCollectiveTensor)
    if has_parts or tensor.layout != torch.strided:
        raise UsageError(f"{what} a {type(tensor).__name__} of layout {tensor.layout}, but stages hand over plain, strided tensors")


def tensor_spec(value: Any) -> Any:
    """A key of an argument: shape and type of a tensor, other values themselves."""
    return TensorInfo.of(value) if isinstance(value, Tensor) else value


def infer(
    module: nn.Module,
    inputs: Sequence[Any],
    named: Mapping[str, Any],
    device: torch.device,
    label: str,
    *,
    trains: bool,
    has_split_backward: bool = False,
    defers_all: bool = False,
    reads_stages: bool = True,
    is_read: bool = True,
    run_module: bool = False,
    mesh: DeviceMesh | None = None,
) -> tuple[tuple[TensorInfo, ...], Any]:
    """Infers the outputs of `module` and their structure, without computation; restores attributes, buffers and caches of the module.

    With `run_module` it runs on zeros, for modules that communicate; which outputs have gradients is then unknown. Raises
    UsageError if `has_split_backward` and I and W would run the graph otherwise than B (not checked with `run_module`).
    """
    with (
        _restored(module, device, has_run=run_module),
        nullcontext() if run_module else FakeTensorMode(allow_non_fake_inputs=True),
        torch.set_grad_enabled(trains and not run_module),
        torch.autograd.graph.saved_tensors_hooks(lambda tensor: None, lambda nothing: nothing),
        nullcontext() if run_module else _stance,  # Other threads may have to answer what a module sends.
        nullcontext() if run_module else torch.compiler.set_stance("force_eager"),
    ):
        given = [tree_map(partial(_zeros, device=device, mesh=mesh), value) for value in inputs]
        by_name = {name: _zeros(value, device, mesh) for name, value in named.items()}
        try:
            result = module(*given, **by_name)
        except Exception as error:
            raise UsageError(f"{label} does not take {', '.join(map(str, inputs))}: {error}") from error
        outputs = as_tensors(result, label, mesh, is_read=is_read)
        if has_split_backward:
            check_graph(outputs, tree_leaves(given) if reads_stages else [], label, defers_all=defers_all)
        return tuple(map(TensorInfo.of_type if run_module else TensorInfo.of, outputs)), structure_of(result)


def fork_random(device: torch.device) -> AbstractContextManager[None]:
    """A context after which the default random number generators of host and device are as before."""
    if device.type in ("cpu", "meta"):
        return torch.random.fork_rng([])
    return torch.random.fork_rng([device], device_type=device.type)


@contextmanager
def _restored(module: nn.Module, device: torch.device, *, has_run: bool) -> Iterator[None]:
    """Restores what a forward may change: attributes, with the dictionaries, lists and sets in them, buffers, random numbers."""
    found: list[Any] = [vars(part) for part in module.modules()]
    found += [value for attributes in found for value in attributes.values() if type(value) in _CONTAINERS]
    if has_run:  # fully_shard exchanges parameters for others, and knows which ones are there.
        kept = {id(part._parameters) for part in module.modules()}
        found = [content for content in found if id(content) not in kept]
    before = [(content, content.copy()) for content in found]
    if has_run:
        clones = {id(buffer): buffer.clone() for buffer in module.buffers()}
        for part in module.modules():
            part._buffers.update({name: clones.get(id(buffer)) for name, buffer in part._buffers.items()})
    try:
        with fork_random(device) if has_run else nullcontext():
            yield
    finally:
        torch.clear_autocast_cache()
        for content, values in before:
            content.clear()
            content.extend(values) if isinstance(content, list) else content.update(values)


def _zeros(value: Any, device: torch.device, mesh: DeviceMesh | None) -> Any:
    if not isinstance(value, TensorInfo):
        return value
    zeros = torch.zeros(value.shape, dtype=value.dtype, device=device)
    return value.received(zeros, mesh)
