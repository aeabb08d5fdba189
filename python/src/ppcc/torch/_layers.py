"""Stages that are lists of layers: what each layer costs, and layers that move to other ranks (docs/tuning.md#layers).

A layer moves as its pickle, in which places of tensors stand for tensors, and the memory of these tensors. So it arrives with its class,
its attributes, and tensors of the same values, types and strides, which share memory where they did.

Invariant: nothing changes on any rank before each rank has packed what leaves it and built what arrives. The modules that have left stay
as they were, so that undoing a move needs no messages.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from .._program import Action
from . import _split
from ._errors import UsageError
from ._measure import MemoryMeter, now
from ._runtime import Runtime
from ._stash import OffloadedTensors, key_of
from ._step import Step
from ._unsupported_stages import check_graph

Container = nn.Sequential | nn.ModuleList | nn.ModuleDict
Layout = tuple[tuple[int, ...], ...]
"""The numbers of the layers of each stage. Layers are numbered in the order in which a microbatch passes them."""
RUN_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(frozen=True)
class Layer:
    """What a layer costs, measured alone. Times are in milliseconds, memory in bytes."""

    number: int
    name: str
    """The name of its class."""
    times: Mapping[str, float]
    """The medians by kind: F, B and, if its backward can be split, I and W."""
    kept: int
    """What its forward keeps for its backward, without its input and its output."""
    input: int
    """The size of its input."""
    output: int
    keeps_input: bool
    keeps_output: bool
    kept_for_weights: int
    """What its I keeps for its W."""
    static: int
    """Weights, their gradients and buffers."""
    trains: bool
    """Whether it has weights that are to be trained."""


def find_containers(runtime: Runtime, layers: bool | Mapping[int, Container], *, with_state: bool = False) -> dict[int, Container]:
    """The list of layers of each stage of this rank. Raises UsageError if its layers cannot move. `with_state`: the state of the optimizer moves, too."""
    stages = {stage: module for (_, stage), module in runtime._linked.modules.items()}
    setup, found = runtime._setup, cast(dict[int, Container], {})
    for refused, why in (
        (runtime.optimizer is not None and not with_state, "an optimizer has the weights that a rank has now: create it after tune(), from the parameters of the stages"),
        (setup.tied, "weights that several stages share cannot move"),
        (setup.dw_builders, "stages that have a dw_builder cannot change"),
    ):
        if refused:
            raise UsageError(f"layers cannot move: {why}")
    for stage, module in stages.items():
        given: Any = module if layers is True else dict(layers or {}).get(stage)
        if given is None:
            raise UsageError(f"layers cannot move: `layers` lack stage {stage}")
        is_list = type(given).forward is nn.Sequential.forward if isinstance(given, nn.Sequential) else isinstance(given, (nn.ModuleList, nn.ModuleDict))
        if not is_list:
            raise UsageError(
                f"layers cannot move: stage {stage} is {_a(given)}, not a list of layers: make it an nn.Sequential, or give `layers` the "
                "nn.Sequential, nn.ModuleList or nn.ModuleDict in each stage whose modules are the layers, by stage"
            )
        if not any(part is given for part in module.modules()):
            raise UsageError(f"layers cannot move: the layers that were given for stage {stage} are not a part of it")
        if not len(given):
            raise UsageError(f"layers cannot move: stage {stage} has none")
        if module._compiled_call_impl is not None or hasattr(module, "_orig_mod"):
            raise UsageError(f"layers cannot move: stage {stage} is compiled: compile it after tune()")
        for part in {id(part): part for part in (module, given)}.values():
            _check_hooks(part, f"stage {stage}")
        found[stage] = given
    return found


def _a(value: object) -> str:
    return f"a {type(value).__name__}"


def _check_hooks(module: nn.Module, label: str) -> None:
    if any(getattr(module, name) for name in RUN_HOOKS):
        raise UsageError(f"layers cannot move: {label} has hooks, which would stay behind: register them after tune()")


# Measuring.


@dataclass
class _Call:
    """How a layer was called for the first microbatch."""

    layer: nn.Module
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    output: Tensor


class LayerMeter(MemoryMeter):
    """A MemoryMeter that also records how the layers of each stage are called."""

    def __init__(self, containers: Mapping[int, Container], last: int) -> None:
        """`last` is the number of the last stage."""
        super().__init__()
        self.containers, self.last = containers, last
        self.calls: dict[int, list[_Call]] = {}
        self.error = ""
        """Why the layers of a stage are not a chain."""

    @contextmanager
    def runs(self, step: Step, action: Action) -> Iterator[None]:
        if action.op != "F" or action.stage in self.calls:
            with super().runs(step, action):
                yield
            return
        calls: list[_Call] = []
        self.calls[action.stage] = calls
        stage = action.stage
        key = key_of(action)
        passed: list[Any] = []

        def record(layer: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
            label = f"layer {len(calls)} of stage {stage}"
            before = passed[0] if calls else step._stashes[key].received()[0] if stage else args[0] if args else None
            tensors = [leaf for leaf in tree_leaves((args[1:], kwargs)) if isinstance(leaf, Tensor)]
            if not args or not isinstance(args[0], Tensor) or type(output) is not Tensor:
                self.error = self.error or f"{label} does not take and return one tensor"
            elif args[0] is not before:
                self.error = self.error or f"{label} does not take what the layer, or stage, before it returns"
            elif any(tensor.requires_grad for tensor in tensors):
                self.error = self.error or f"{label} takes a second tensor that requires a gradient"
            else:
                args = [args[0].detach().requires_grad_(args[0].requires_grad), *args[1:]]
                calls.append(_Call(layer, args, kwargs, output.detach()))
                passed[:] = [output]

        layers = list(self.containers[stage]._modules.values())
        handles = [layer.register_forward_hook(record, with_kwargs=True) for layer in layers if layer is not None]
        try:
            with super().runs(step, action):
                yield
        finally:
            for handle in handles:
                handle.remove()
        if [id(call.layer) for call in calls] != list(map(id, layers)):
            self.error = self.error or f"stage {stage} does not run its layers once each, in their order"
        elif stage != self.last and not any(tensor is passed[0] for tensor in step._stashes[key].outputs):
            self.error = self.error or f"stage {stage} does not return what its last layer returns"


def measure_layers(calls: Sequence[_Call], stage: int, first: int, times: int, state_per_weight: float = 0.0) -> list[Layer]:
    """Runs each layer of a stage alone, and returns what it costs; `first` is the number of the first.

    Raises UsageError for layers that cannot run alone.
    """
    return [_measure_layer(call, f"layer {number} of stage {stage}", first + number, times, state_per_weight) for number, call in enumerate(calls)]


def _measure_layer(call: _Call, label: str, number: int, times: int, state_per_weight: float) -> Layer:
    layer, kept_for_weights = call.layer, 0
    durations: dict[str, list[float]] = {}
    weights, buffers = list(layer.parameters()), list(layer.buffers())
    memory = OffloadedTensors([*weights, *buffers])

    def forward() -> tuple[Tensor, Tensor]:
        source = call.args[0].detach().requires_grad_(call.args[0].requires_grad)
        with torch.enable_grad():
            return source, layer(source, *call.args[1:], **call.kwargs)

    def timed(kind: str, run: Callable[[], Any]) -> Any:
        begin = now()
        result = run()
        durations.setdefault(kind, []).append((now() - begin) / 1e6)
        return result

    try:
        with memory.saving_hooks():
            source, output = forward()  # The first is not measured.
        is_view = output.untyped_storage()._cdata == source.untyped_storage()._cdata
        keeps_input, keeps_output = memory.holds(source), memory.holds(output) and not is_view
        kept = memory.count_bytes(()) - keeps_input * source.untyped_storage().nbytes() - keeps_output * output.untyped_storage().nbytes()
        trains = output.requires_grad and output is not source
        can_be_split = _can_be_split(source, output, label)
        if trains:
            _split.backward([output], [torch.ones_like(output)])
        for _ in range(times):
            source, output = timed("F", forward)
            timed("B", partial(_split.backward, [output], [torch.ones_like(output)]) if trains else _nothing)
        for _ in range(times if can_be_split else 0):
            source, output = forward()
            inputs = [source] if source.requires_grad else []
            finish = timed("I", partial(_split.backward_input, inputs, [output], [torch.ones_like(output)], label) if trains else _nothing) or _nothing
            saved = [leaf for leaf in tree_leaves(getattr(finish, "args", ())) if isinstance(leaf, Tensor)]
            kept_for_weights = OffloadedTensors(()).count_bytes(saved)
            timed("W", finish)
    except Exception as error:
        raise UsageError(f"layers cannot move: {label} does not run alone: {type(error).__name__}: {error}") from error
    finally:
        for weight in weights:
            weight.grad = None
    return Layer(
        number,
        type(layer).__name__,
        {kind: median(found) for kind, found in durations.items()},
        kept,
        source.nbytes,
        output.nbytes,
        keeps_input,
        keeps_output,
        kept_for_weights,
        static_bytes(layer, None, state_per_weight),
        any(weight.requires_grad for weight in weights),
    )


def static_bytes(module: nn.Module, optimizer: torch.optim.Optimizer | None, state_per_weight: float = 0.0) -> int:
    """What the weights of a module, their gradients and optimizer state, and its buffers take. `state_per_weight` estimates the state of weights of
    which the optimizer knows nothing yet."""
    total = sum(buffer.nbytes for buffer in module.buffers())
    for weight in module.parameters():
        state = {} if optimizer is None else optimizer.state.get(weight, {})
        known = sum(value.nbytes for value in state.values() if isinstance(value, Tensor))
        total += weight.nbytes + (weight.nbytes + (known or int(state_per_weight * weight.nbytes)) if weight.requires_grad else 0)
    return total


def _nothing() -> None:
    pass


def _can_be_split(source: Tensor, output: Tensor, label: str) -> bool:
    try:
        check_graph([output], [source], label)
    except UsageError:
        return False
    return True


# Moving.


class Move:
    """Layers that change their stages, with their weights, buffers and, if it is given, the state that an optimizer has for them, which then has the
    weights of the layers that a rank has. All ranks create it together, with the same layouts.

    Raises UsageError on all ranks if a layer cannot move; then nothing has moved.
    """

    def __init__(
        self,
        runtime: Runtime,
        containers: Mapping[int, Container],
        before: Layout,
        after: Layout,
        optimizer: torch.optim.Optimizer | None = None,
        rank_of_stage_after: Sequence[int] | None = None,
    ) -> None:
        """With another placement, given as `rank_of_stage_after`, each stage is an nn.Sequential: those that a rank did not have are new."""
        groups, rank, rank_of_stage = runtime._setup.groups, runtime.rank, runtime.program.pipes[0].rank_of_stage
        stages = list(runtime._linked.modules.values())
        self.containers = containers
        self.containers_after = containers
        if rank_of_stage_after is not None:
            own = [stage for stage, there in enumerate(rank_of_stage_after) if there == rank]
            self.containers_after = {stage: containers[stage] if stage in containers else nn.Sequential().train(stages[0].training) for stage in own}
        rank_of_stage_after = rank_of_stage_after or rank_of_stage
        self.before = {stage: dict(container._modules) for stage, container in containers.items()}
        """What the lists held, by name."""
        modules = {number: module for stage, own in self.before.items() for number, module in zip(before[stage], own.values(), strict=True)}
        names = {number: name for stage, own in self.before.items() for number, name in zip(before[stage], own, strict=True)}
        at = {number: rank_of_stage[stage] for stage, numbers in enumerate(before) for number in numbers}
        to = {number: rank_of_stage_after[stage] for stage, numbers in enumerate(after) for number in numbers}
        moves = sorted(number for number in at if at[number] != to[number])
        self.moved = tuple(moves)
        self.bytes = 0
        """What has been sent, on all ranks, in bytes."""
        counts = groups.all_gather(0 if optimizer is None else len(optimizer.param_groups))
        with groups.raise_on_all_ranks():
            if len(set(counts)) > 1:
                raise UsageError(f"layers cannot move: the optimizers of ranks have {', '.join(map(str, counts))} groups of weights, but need as many")
            leaving = {number: modules[number] for number in moves if at[number] == rank}
            packed = {number: _Packed(module, _state(optimizer, module), f"layer {number}") for number, module in leaving.items()}
            _check_shared(packed, stages, list(leaving.values()))
        headers = [one for there in groups.all_gather([(number, names[number], packed[number].header()) for number in leaving]) for one in there]
        with groups.raise_on_all_ranks():
            arriving = {number: _Arriving(header) for number, _, header in headers if to[number] == rank}
        for number, name, header in sorted(headers, key=lambda found: found[0]):
            names[number] = name
            self.bytes += sum(header.storages)
            if at[number] == rank:
                for content in packed[number].contents():
                    dist.send(content, groups.global_rank(to[number]), groups.pipeline)
            elif to[number] == rank:
                for content in arriving[number].contents():
                    dist.recv(content, groups.global_rank(at[number]), groups.pipeline)
        with groups.raise_on_all_ranks():
            arrived = {number: found.load_layer() for number, found in arriving.items()}
            modules.update((number, module) for number, (module, _) in arrived.items())
            self.after = {stage: _named([(names[number], modules[number]) for number in after[stage]], stage) for stage in self.containers_after}
        self.apply()
        if optimizer is not None:
            _remove(optimizer, leaving.values())
            for module, state in arrived.values():
                _add(optimizer, module, state)

    def apply(self) -> None:
        """Gives the stages of this rank the layers that they have after the move."""
        _set(self.containers_after, self.after)

    def undo(self) -> None:
        """Gives the stages of this rank the layers that they had."""
        _set(self.containers, self.before)


_State = Sequence[tuple[str, int, Mapping[str, Any]]]
"""The names of weights of a layer, with their group in the optimizer, and what it knows of them."""


def _state(optimizer: torch.optim.Optimizer | None, module: nn.Module | None) -> _State:
    if optimizer is None or module is None:
        return []
    group_of = {id(weight): number for number, group in enumerate(optimizer.param_groups) for weight in group["params"]}
    found = [(name, group_of[id(weight)], dict(optimizer.state.get(weight, {}))) for name, weight in module.named_parameters() if id(weight) in group_of]
    for weight in module.parameters():
        weight.grad = None
    return found


def _remove(optimizer: torch.optim.Optimizer, modules: Iterable[nn.Module | None]) -> None:
    weights = [weight for module in modules if module is not None for weight in module.parameters()]
    gone = set(map(id, weights))
    for group in optimizer.param_groups:
        group["params"] = [weight for weight in group["params"] if id(weight) not in gone]
    for weight in weights:
        optimizer.state.pop(weight, None)


def _add(optimizer: torch.optim.Optimizer, module: nn.Module, state: _State) -> None:
    weights = dict(module.named_parameters())
    for name, group, values in state:
        optimizer.param_groups[group]["params"].append(weights[name])
        if values:
            optimizer.state[weights[name]] = dict(values)


def _set(containers: Mapping[int, Container], contents: Mapping[int, Mapping[str, nn.Module | None]]) -> None:
    for stage, content in contents.items():
        containers[stage]._modules.clear()
        containers[stage]._modules.update(cast(Any, content))


def _named(layers: Sequence[tuple[str, nn.Module | None]], stage: int) -> dict[str, nn.Module | None]:
    """Layers by name: numbers count from 0 in each stage, as nn.Sequential counts; other names stay."""
    names = [name for name, _ in layers]
    if all(name.isdigit() for name in names):
        names = list(map(str, range(len(names))))
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"layers cannot move: stage {stage} would have two layers with the name `{min(twice)}`: give layers of all stages different names")
    return dict(zip(names, (module for _, module in layers), strict=True))


def _check_shared(packed: Mapping[int, _Packed], stages: Sequence[nn.Module], leaving: Sequence[nn.Module | None]) -> None:
    """Raises UsageError if a layer that leaves shares memory with what stays, or with another one."""
    seen: dict[int, str] = {}
    left, leaves = list(stages), set(map(id, leaving))
    while left:
        part = left.pop()
        own = [*part._parameters.values(), *part._buffers.values()]
        seen.update((tensor.untyped_storage()._cdata, "what stays") for tensor in own if tensor is not None)
        left += [child for child in part._modules.values() if child is not None and id(child) not in leaves]
    for number, found in packed.items():
        for address in found.addresses:
            if address in seen:
                raise UsageError(f"layers cannot move: layer {number} shares a weight or buffer with {seen[address]}")
        seen.update(dict.fromkeys(found.addresses, f"layer {number}"))


@dataclass(frozen=True)
class _TensorHeader:
    storage: int
    dtype: torch.dtype
    offset: int
    size: torch.Size
    stride: tuple[int, ...]
    is_parameter: bool
    requires_grad: bool
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class _Header:
    structure: bytes
    """The pickle of the layer, with places of tensors."""
    tensors: Sequence[_TensorHeader]
    storages: Sequence[int]
    """The sizes of the memory of the tensors, in bytes."""


class _Packed(pickle.Pickler):
    """A layer that leaves this rank. Raises UsageError if it cannot."""

    def __init__(self, module: nn.Module | None, state: _State, label: str) -> None:
        file = io.BytesIO()
        super().__init__(file)
        self.label = label
        self.addresses: dict[int, int] = {}
        """The places of the memory of tensors."""
        self._places: dict[int, int] = {}
        self._tensors: list[Tensor] = []
        self._headers: list[_TensorHeader] = []
        for name, part in () if module is None else module.named_modules():
            _check_hooks(part, f"`{name}` of {label}" if name else label)
        try:
            self.dump((module, state))
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"layers cannot move: {label} cannot be pickled: {type(error).__name__}: {error}") from error
        self._structure = file.getvalue()

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, Tensor):
            return None
        if id(value) not in self._places:
            self._check(value)
            address = value.untyped_storage()._cdata
            header = _TensorHeader(
                self.addresses.setdefault(address, len(self.addresses)),
                value.dtype,
                int(value.storage_offset()),
                value.size(),
                value.stride(),
                isinstance(value, nn.Parameter),
                value.requires_grad,
                vars(value),
            )
            self._places[id(value)] = len(self._tensors)
            self._tensors.append(value)
            self._headers.append(header)
        return self._places[id(value)]

    def _check(self, tensor: Tensor) -> None:
        hooked = getattr(tensor, "_backward_hooks", None) or getattr(tensor, "_post_accumulate_grad_hooks", None)
        if type(tensor) not in (Tensor, nn.Parameter) or tensor.layout != torch.strided or tensor.device.type != "cpu":
            raise UsageError(f"layers cannot move: {self.label} has {_a(tensor)} of layout {tensor.layout} on {tensor.device}, not a plain tensor")
        if hooked or tensor.grad_fn is not None or (tensor.is_leaf and tensor.grad is not None):
            raise UsageError(f"layers cannot move: {self.label} has a tensor with {'hooks' if hooked else 'a gradient or a graph'}")

    def header(self) -> _Header:
        sizes = {self._headers[place].storage: tensor.untyped_storage().nbytes() for place, tensor in enumerate(self._tensors)}
        return _Header(self._structure, self._headers, [sizes[storage] for storage in range(len(sizes))])

    def contents(self) -> Iterator[Tensor]:
        """The memory of the tensors, as bytes."""
        found = {header.storage: tensor for header, tensor in zip(self._headers, self._tensors, strict=True)}
        for storage in range(len(found)):
            if (content := found[storage].untyped_storage()).nbytes():
                yield torch.empty(0, dtype=torch.uint8).set_(content, 0, (content.nbytes(),), (1,))


class _Arriving(pickle.Unpickler):
    """A layer that arrives on this rank. Raises UsageError if it cannot be built."""

    def __init__(self, header: _Header) -> None:
        super().__init__(io.BytesIO(header.structure))
        self._storages = [torch.empty(size, dtype=torch.uint8) for size in header.storages]
        self._tensors = list(map(self._tensor, header.tensors))

    def _tensor(self, header: _TensorHeader) -> Tensor:
        tensor = torch.empty(0, dtype=header.dtype)
        tensor.set_(self._storages[header.storage].untyped_storage(), header.offset, header.size, header.stride)
        tensor = nn.Parameter(tensor, header.requires_grad) if header.is_parameter else tensor.requires_grad_(header.requires_grad)
        vars(tensor).update(header.attributes)
        return tensor

    def persistent_load(self, place: int) -> Tensor:
        return self._tensors[place]

    def contents(self) -> Iterator[Tensor]:
        """Where to receive the memory of the tensors."""
        return (content for content in self._storages if content.numel())

    def load_layer(self) -> tuple[nn.Module, _State]:
        """The layer and what the optimizer knows of it, when the tensors have arrived."""
        try:
            return cast("tuple[nn.Module, _State]", self.load())
        except Exception as error:
            raise UsageError(f"layers cannot move: a layer cannot be unpickled: {type(error).__name__}: {error}") from error
