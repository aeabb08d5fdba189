"""Rejects stages whose gradients would be wrong in a pipeline.

A stage runs several forwards before the first backward. `I` and `W` run its graph in two parts, ours (_split.py) or PyTorch's, which
load_torch_runtime uses:

    hook                                                          with B   ours      PyTorch's I and W
    full backward hooks of modules, hooks on weights and inputs   once     once      once
    hooks on a tensor from whose node W starts                    once     once      twice: W starts from the result of I
    hooks before a node from which W starts                       once     once      twice
    hooks after a node from which W starts                        once     only I    twice
    hooks after the accumulation of a weight's gradient           once     once      never
    backward hooks of the old kind (register_backward_hook)       once     only I    twice
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge
from torch.overrides import TorchFunctionMode

from ._errors import UsageError
from ._split import find_split_nodes, is_compiled, needs_whole_backward, runs_whole, whole_backward_message

USE_FULL_BACKWARD = "use a schedule that has B in the place of I and W"
UNWRAP = "give the module inside of it, and groups={'data_parallel': GROUP}, over which the Runtime averages"
USE_FULLY_SHARD = "call torch.distributed.fsdp.fully_shard(stage) in its place"
UNSUPPORTED_WRAPPERS = {
    "DistributedDataParallel": UNWRAP,
    "DDP": UNWRAP,  # torch.distributed._composable.replicate
    "ShardedDataParallel": UNWRAP,
    "DeepSpeedEngine": UNWRAP,
    "FullyShardedDataParallel": USE_FULLY_SHARD,
    "MegatronFSDP": USE_FULLY_SHARD,
}
"""Classes, by name, of any package, that expect one backward after each forward, and what to use instead."""


def check_stage(
    module: nn.Module,
    label: str,
    *,
    has_split_backward: bool,
    torch_splits: bool = False,
    ignore_package: str = "ppcc.",
    unsupported: Mapping[str, str] = UNSUPPORTED_WRAPPERS,
) -> None:
    """Raises UsageError for a module that cannot be trained as a stage, as far as its attributes show.

    `has_split_backward`: its backward is I and W; with `torch_splits` PyTorch's own. Wrappers of the package `ignore_package` are ignored.
    """
    for name, part in module.named_modules():
        where = f"`{name}` of {label}" if name else label
        for base in type(part).__mro__:
            if base.__name__ in unsupported and not base.__module__.startswith(ignore_package):
                raise UsageError(
                    f"{where} is a {base.__name__}, which expects one backward after each forward, but a pipeline runs several "
                    f"forwards first: {unsupported[base.__name__]}"
                )
        if torch_splits and (any(base.__name__ == "OptimizedModule" for base in type(part).__mro__) or _is_compiled(part)):
            raise UsageError(compiled_stage_message(where))
        if has_split_backward and part._backward_hooks and not part._is_full_backward_hook:
            raise UsageError(f"{where} has a hook that I and W would not call as B does: use register_full_backward_hook()")
    for name, weight in module.named_parameters():
        where = f"`{name}` of {label}"
        if hasattr(weight, "_in_backward_optimizers"):
            raise UsageError(
                f"the optimizer of {where} steps inside of the backward, but a pipeline needs the old weights for the next "
                "microbatches: let it step after Runtime.step()"
            )
        if torch_splits and weight.requires_grad:
            _check_hooks(weight, where)


def _is_compiled(part: nn.Module) -> bool:
    """Whether module.compile(), or torch.compile of its forward, has compiled it."""
    forward = part.forward
    is_disabled = getattr(forward, "_torchdynamo_disable", False)  # By torch.compiler.disable.
    return part._compiled_call_impl is not None or (hasattr(forward, "_torchdynamo_orig_callable") and not is_disabled)


def compiled_stage_message(where: str) -> str:
    """The error message for a compiled part."""
    return f"{where} is compiled by torch.compile, whose backward PyTorch's I and W would run twice: leave it as it is, train with Runtime, or {USE_FULL_BACKWARD}"


def _check_hooks(weight: nn.Parameter, where: str) -> None:
    node = get_gradient_edge(weight).node
    found = [*(weight._post_accumulate_grad_hooks or {}).values(), *_hooks(node)]
    found += _multi_grad_hooks(weight)
    if not all(_is_from(hook, "ppcc.") for hook in found):
        raise UsageError(
            f"{where} has a hook after the accumulation of its gradient, which PyTorch's I and W do not call: use Tensor.register_hook(), "
            f"train with Runtime, or {USE_FULL_BACKWARD}"
        )


def _multi_grad_hooks(weight: nn.Parameter) -> list[Callable[..., Any]]:
    hooks = (weight._backward_hooks or {}).values()
    return [hook for hook in hooks if "register_multi_grad_hook" in getattr(hook, "__qualname__", "")]


def has_multi_grad_hook(module: nn.Module) -> bool:
    """Whether a hook waits for the gradients of several weights."""
    return any(map(_multi_grad_hooks, module.parameters()))


def _hooks(node: Node) -> list[Callable[..., Any]]:
    """The hooks before and after a node."""
    return _registered(node.register_hook) + _registered(node.register_prehook)


def _registered(register: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The hooks of a node; they share a dictionary with each new hook."""
    handle = register(_noop_hook)
    found = [hook for hook in handle.hooks_dict_ref().values() if hook is not _noop_hook]
    handle.remove()
    return found


def _is_from(hook: Callable[..., Any], package: str) -> bool:
    """Whether a hook is from a package; those of PyTorch, such as fully_shard's, may run with I alone, or twice."""
    return str(getattr(hook, "__module__", "")).startswith(package)


def _noop_hook(*gradients: Any) -> None:
    pass


class ForwardRecord(TorchFunctionMode):
    """A context that records, for check_torch_graph(), on which nodes' tensors the forwards of this thread inside of it register hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.hooked: set[Node] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.register_hook and not torch.compiler.is_compiling():
            given: list[Any] = [*args, *(kwargs or {}).values()]
            if given[0].grad_fn is not None and not _is_from(given[1], "torch."):
                self.hooked.add(given[0].grad_fn)
        return func(*args, **(kwargs or {}))


def check_graph(outputs: Sequence[Tensor], inputs: Sequence[Any], label: str, *, defers_all: bool = False) -> None:
    """Raises UsageError if I and W would run the graph of a forward otherwise than B; with `defers_all` no weight may get a gradient before W."""
    for node in _topological_order([tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]) if defers_all else ():
        if reason := needs_whole_backward(node) or ("a backward inside of an autograd function" if _runs_nested_backward(node) else ""):
            raise UsageError(whole_backward_message(label, reason))
    for node in itertools.filterfalse(runs_whole, find_split_nodes(outputs, inputs)):
        if not all(_is_from(hook, "torch.") for hook in _registered(node.register_hook)):
            raise UsageError(
                f"{label} has a hook on the node {node.name()}, which W would not call: put it on a tensor (Tensor.register_hook), or "
                f"{USE_FULL_BACKWARD}"
            )


def check_trains(outputs: Sequence[Tensor], module: nn.Module, label: str) -> None:
    """Raises UsageError if a backward would reach none of the weights that are to be trained."""
    if not any(output.requires_grad for output in outputs) and any(weight.requires_grad for weight in module.parameters()):
        raise UsageError(
            f"{label} has weights that require gradients, but none of its outputs does: freeze them, or let it compute with them outside of "
            "no_grad() and of checkpoints with use_reentrant=True, which need an input that requires a gradient"
        )


def check_torch_graph(record: ForwardRecord, outputs: Sequence[Tensor], inputs: Sequence[Any], label: str) -> None:
    """Raises UsageError if PyTorch cannot split the graph of a forward into I and W."""
    nodes = _topological_order([tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None])
    if any(map(is_compiled, nodes)):
        raise UsageError(compiled_stage_message(f"a part of {label}"))
    if any(map(_runs_nested_backward, nodes)):
        raise UsageError(
            f"{label} runs a backward inside of an autograd function, which PyTorch's I and W would run again for each weight: use "
            f"torch.utils.checkpoint with use_reentrant=False, train with Runtime, or {USE_FULL_BACKWARD}"
        )
    for node in find_split_nodes(outputs, inputs):
        if node in record.hooked or not all(_is_from(hook, "torch.") for hook in _hooks(node)):
            raise UsageError(
                f"{label} has a hook on the result of {node.name().removesuffix('Backward0')}, from which W starts, so it would run twice: put "
                f"it on the weight or on the input of that operation, train with Runtime, or {USE_FULL_BACKWARD}"
            )


def check_leaves(
    outputs: Sequence[Tensor], inputs: Sequence[Any], weights: Sequence[nn.Parameter], label: str, *, starts_backward: bool = True
) -> None:
    """Raises UsageError for gradients that PyTorch's I and W would lose: of other leaves than inputs and weights, or of outputs that depend on no
    input, if the backward starts from them. If no input requires a gradient, W runs the whole backward."""
    reaches_input = {_leaf(tensor) for tensor in inputs if isinstance(tensor, Tensor) and tensor.requires_grad}
    if not reaches_input:
        return
    known = reaches_input | {_leaf(weight) for weight in weights if weight.requires_grad}
    for node in _topological_order([_leaf(tensor) for tensor in outputs if tensor.requires_grad]):
        if type(node).__name__ == "AccumulateGrad" and node not in known:
            raise UsageError(
                f"{label} uses a tensor of shape {list(node.variable.shape)} that requires a gradient, which PyTorch's I and W would lose, since it is "  # type: ignore[attr-defined]
                f"no output of another stage and not in parameters() of the stage: make it one of them, detach() it, or {USE_FULL_BACKWARD}"
            )
        if any(next_node in reaches_input for next_node, _ in node.next_functions):
            reaches_input.add(node)
    for number, tensor in enumerate(outputs if starts_backward else ()):
        if tensor.requires_grad and _leaf(tensor) not in reaches_input:
            raise UsageError(
                f"output {number} of {label} requires a gradient, but depends on no output of another stage, so PyTorch's I and W would lose the "
                f"gradients of its weights: compute it from an input, detach() it, or {USE_FULL_BACKWARD}"
            )


def check_no_nested_backward(outputs: Sequence[Tensor], label: str) -> None:
    """Raises UsageError for a graph with a nested backward: PyTorch's runtime runs it again to infer shapes, which adds to gradients."""
    if any(map(_runs_nested_backward, _topological_order([tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]))):
        raise UsageError(
            f"{label} runs a backward inside of an autograd function, which PyTorch's runtime would also do to find shapes: use "
            "torch.utils.checkpoint with use_reentrant=False"
        )


def _topological_order(roots: Sequence[Node]) -> list[Node]:
    """The nodes of the graph, each after those to which it passes gradients."""
    found: dict[Node, None] = {}
    left = [(node, False) for node in roots]
    while left:
        node, is_done = left.pop()
        if is_done:
            found[node] = None
        elif node not in found:
            left.append((node, True))
            left += [(next_node, False) for next_node, _ in node.next_functions if next_node is not None and next_node not in found]
    return list(found)


def _runs_nested_backward(node: Node) -> bool:
    """Whether a node runs another backward inside, as a reentrant checkpoint does."""
    function = getattr(type(node), "_forward_cls", None)
    if function is None:
        return False
    code = getattr(function.backward, "__code__", None)
    names = set() if code is None else set(code.co_names)
    return "checkpoint" in function.__name__.lower() or {"backward", "enable_grad"} <= names


def _leaf(tensor: Tensor) -> Node:
    return get_gradient_edge(tensor).node
