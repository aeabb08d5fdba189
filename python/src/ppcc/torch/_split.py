"""The backward of a stage: full, or split into the gradients of inputs (I) and, later, of weights (W).

Algorithm: the split of Qi et al. (Zero Bubble, ICLR 2024), as in examples/libtorch/Split.h. A depth-first search in post-order marks the
nodes that lead to an input. A split node has an edge that leads to an input and one that does not. I is one run of the engine from the
outputs to the inputs, which also captures the gradients that enter split nodes. W calls the split nodes with these gradients for their
other edges only, and then runs the engine from there to the weights.

Invariant: W runs no node that leads to an input except split nodes, so it adds no gradient twice, and calls hooks after the accumulation
of a weight's gradient once. Saved tensors are unpacked in two runs of the engine, so a checkpointed block runs its forward three times.
A third run, and a fourth forward, is needed where a weight is computed from saved tensors inside of the checkpoint.

Nodes that run as a whole, autograd functions in Python and what torch.compile makes, are not called again: I keeps the gradients of their
other edges, and adds them to those of the weights at once unless W adds to the same weights. A reentrant checkpoint runs only with all
of the backward, so I does it all.

Cost: O(nodes and edges) beside the runs; I keeps the graph from the first split node on for W.

Example: h = x W1, y = h W2; both products are split nodes. I runs from dy to dx; it captures dy for the second product and dh for the
first. W finds dW2 from dy and h, and dW1 from dh and x.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast
from weakref import WeakSet

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from ._errors import UsageError

Gradients = Sequence["Tensor | None"]
DONATES = "parts that torch.compile compiled for B, which donate saved tensors to the backward (torch.compiler.reset() lets it compile them again)"
_donating: WeakSet[type] = WeakSet()
"""The types of the nodes of such parts, as far as one has been met."""
_warned: set[str] = set()
"""Warnings that were shown; Python itself repeats some, since torch.compile resets what it has shown."""
Edges = Sequence[tuple[GradientEdge, Tensor]]
"""Where a run of the engine begins, with the gradients there."""


def check_version() -> None:
    """Raises UsageError if this PyTorch cannot keep alive what leads to an edge of the graph (GradientEdge.ownership_token)."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        raise UsageError(f"training needs PyTorch 2.9 or newer, and this is {torch.__version__}")


def backward(outputs: Sequence[Tensor], gradients: Gradients, further: Edges = ()) -> None:
    """Adds the gradients of weights and inputs to their `grad`; starts at `further` edges, too."""
    _run([*_roots(outputs, gradients), *further])


def backward_input(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], gradients: Gradients, label: str = "a stage", further: Edges = (), *, defers_all: bool = False
) -> Callable[[], None]:
    """Adds the gradients of the inputs, which are leaves, to their `grad`; returns a function to call once, which does so for the weights.

    It starts at `further` edges, too. Drop the outputs afterwards: they keep the graph. With `defers_all` no weight gets a gradient before that call.
    """
    roots = [*_roots(outputs, gradients), *further]
    sources = [tensor for tensor in inputs if tensor.requires_grad]
    if not sources:  # The first stage: no stage reads the gradient of its input.
        return partial(_run, roots)
    on_path, split_nodes = _find_paths([edge.node for edge, _ in roots], sources)
    if reason := next(filter(None, map(needs_whole_backward, on_path)), ""):
        return _run_whole(roots, label, reason, defers_all)
    deferred = [root for root in roots if not on_path[root[0].node]]
    leading = [root for root in roots if on_path[root[0].node]]
    whole = [node for node in split_nodes if runs_whole(node)]
    compiled = [node for node in whole if is_compiled(node)]
    cut = [node for node in split_nodes if not runs_whole(node)]
    entering: dict[Node, Sequence[Tensor | None]] = {}
    kept: dict[Node, Edges] = {}
    handles = [node.register_prehook(partial(entering.__setitem__, node)) for node in cut]
    handles += [node.register_hook(partial(_keep_others, kept, node, on_path)) for node in whole]
    try:
        found = _gradients(leading, sources, retain_graph=bool(cut))
    except RuntimeError as error:
        if not compiled or "donated buffers" not in str(error) or any(map(_may_not_run_twice, on_path)):
            raise
        _donating.update(map(type, compiled))  # The graph is as it was.
        return _run_whole(roots, label, DONATES, defers_all)
    finally:
        for handle in handles:
            handle.remove()
    if compiled:
        _warn_whole(label, "a part that torch.compile has compiled, which has")
    for source, gradient in zip(sources, found, strict=True):
        if gradient is not None:
            source.grad = gradient if source.grad is None else source.grad + gradient
    calls = [
        (node, entering[node], _other_edges(node, on_path))
        for node in reversed(cut)
        if any(gradient is not None for gradient in entering.get(node, ()))
    ]
    ready = [edge for node in whole for edge in kept.get(node, ())]
    others = [edge for _, _, edges in calls for edge, _ in edges] + [edge for edge, _ in deferred]
    if ready and (defers_all or not _leaves(edge for edge, _ in ready).isdisjoint(_leaves(others))):
        deferred, ready = deferred + ready, []
    _run(ready)
    return partial(_backward_weight, calls, deferred)


def without_donation() -> AbstractContextManager[None]:
    """A context for the first forward of parts that torch.compile compiles: saved tensors are not donated to the backward, which the
    graph that I keeps for W would not allow."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch._functorch.config.patch(donated_buffer=False)  # type: ignore[no-any-return]


def runs_whole(node: Node) -> bool:
    """Whether a node always computes all gradients: an autograd function, in Python or C++, or what torch.compile makes."""
    return hasattr(type(node), "_forward_cls") or "CppNode" in node.name()


def is_compiled(node: Node) -> bool:
    """Whether torch.compile has made a node."""
    return type(node).__name__ == "CompiledFunctionBackward"


def _may_not_run_twice(node: Node) -> bool:
    """Whether the backward of a node may do more than to compute gradients."""
    module = str(getattr(getattr(type(node), "_forward_cls", None), "__module__", "torch."))
    return not module.startswith("torch.") or module.startswith("torch.distributed.")


def needs_whole_backward(node: Node) -> str:
    """Why a node needs a run of the engine to all leaves, which frees the graph; empty for most."""
    if type(node) in _donating:
        return DONATES
    function = getattr(type(node), "_forward_cls", None)
    code = getattr(getattr(function, "backward", None), "__code__", None)
    return "a checkpoint with use_reentrant=True" if code is not None and "_is_checkpoint_valid" in code.co_names else ""


def find_split_nodes(outputs: Sequence[Tensor], inputs: Sequence[Any]) -> list[Node]:
    """The nodes on the way to an input from which another way leads to no input; W calls those by themselves that do not run whole."""
    sources = [tensor for tensor in inputs if isinstance(tensor, Tensor) and tensor.requires_grad]
    roots = [get_gradient_edge(tensor).node for tensor in outputs if tensor.requires_grad]
    return _find_paths(roots, sources)[1]


def _run_whole(roots: Edges, label: str, reason: str, defers_all: bool) -> Callable[[], None]:
    if defers_all:
        raise UsageError(whole_backward_message(label, reason))
    _warn_whole(label, f"{reason}, so it has")
    _run(roots)
    return partial(_run, [])


def whole_backward_message(label: str, reason: str) -> str:
    """The error message for a stage whose gradients have to wait for W, but cannot."""
    return (
        f"{label} has {reason}, so I would compute the gradients of its weights, for which hooks wait until W: avoid it, or use a schedule "
        "that has B in the place of I and W"
    )


def _roots(outputs: Sequence[Tensor], gradients: Gradients) -> list[tuple[GradientEdge, Tensor]]:
    return [
        (get_gradient_edge(output), gradient)
        for output, gradient in zip(outputs, gradients, strict=True)
        if gradient is not None and output.requires_grad
    ]


def _run(edges: Edges) -> None:
    """Runs the engine to all leaves."""
    if edges:
        torch.autograd.backward([edge for edge, _ in edges], [gradient for _, gradient in edges])


def _gradients(roots: Edges, sources: Sequence[Tensor], *, retain_graph: bool) -> Sequence[Tensor | None]:
    if not roots:
        return [None] * len(sources)
    starts: Any = [edge for edge, _ in roots]
    return torch.autograd.grad(starts, sources, [gradient for _, gradient in roots], retain_graph, allow_unused=True)


def _find_paths(roots: Sequence[Node], sources: Sequence[Tensor]) -> tuple[dict[Node, bool], list[Node]]:
    """Whether each node leads to a source, and the split nodes: each before those to which it passes gradients, and otherwise the later
    operand first, as the engine runs them. Without recursion: graphs can be deep."""
    on_path = {get_gradient_edge(source).node: True for source in sources}
    split_nodes = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            reached = [on_path[following] for following, _ in node.next_functions if following is not None]
            on_path[node] = any(reached)
            if on_path[node] and not all(reached):
                split_nodes.append(node)
        elif node not in on_path:
            on_path[node] = False
            stack.append((node, True))
            stack += [(following, False) for following, _ in reversed(node.next_functions) if following is not None and following not in on_path]
    return on_path, split_nodes[::-1]


def _other_edges(node: Node, on_path: dict[Node, bool]) -> list[tuple[GradientEdge, int]]:
    """The edges of a split node that lead to no input, each with its position.

    The node of an autograd function in Python lives as long as what leads to it.
    """
    return [
        (GradientEdge(following, number, node if runs_whole(following) else None), position)
        for position, (following, number) in enumerate(node.next_functions)
        if following is not None and not on_path[following]
    ]


def _keep_others(
    kept: dict[Node, Edges], node: Node, on_path: dict[Node, bool], into: Sequence[Tensor | None], out: Sequence[Tensor | None]
) -> None:
    """A hook of a node that runs as a whole."""
    kept[node] = [(edge, gradient) for edge, position in _other_edges(node, on_path) if (gradient := into[position]) is not None]


def _leaves(edges: Iterable[GradientEdge]) -> set[Node]:
    """The leaves to which edges lead."""
    seen: set[Node] = set()
    left = [edge.node for edge in edges]
    while left:
        if (node := left.pop()) not in seen:
            seen.add(node)
            left += [following for following, _ in node.next_functions if following is not None]
    return {node for node in seen if not node.next_functions}


_Call = tuple[Node, Sequence["Tensor | None"], list[tuple[GradientEdge, int]]]
"""A split node, the gradients that enter it, and its edges that lead to no input."""


class _InOneRun(torch.autograd.Function):
    """A node whose backward calls a function."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, function: Callable[[], None]) -> Tensor:
        ctx.function = function
        return anchor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        ctx.function()
        return gradient, None


def _backward_weight(calls: list[_Call], deferred: Edges) -> None:
    """Calls split nodes, the last first, and runs the engine from there to the leaves.

    The calls are inside of one run of the engine, in which checkpoints recompute once, and which wants the gradients of their other edges:
    a node computes only those.
    """
    found: list[tuple[GradientEdge, Tensor]] = []

    def call_all() -> None:
        while calls:  # Frees each node, and what it has saved.
            node, gradients, edges = calls.pop()
            into = cast(Any, node)(*gradients)
            found.extend((edge, _fitting(into[position], edge)) for edge, position in edges if into[position] is not None)

    if calls:
        anchor = torch.zeros((), requires_grad=True)
        with torch.enable_grad():
            root = cast(Any, _InOneRun.apply)(anchor, call_all)
        wanted = [edge for _, _, edges in calls for edge, _ in edges]
        torch.autograd.grad([root], [get_gradient_edge(anchor), *wanted], allow_unused=True)
    _run([*deferred, *found])


def _fitting(gradient: Tensor, edge: GradientEdge) -> Tensor:
    """A gradient in the shape and type of its edge, as the engine makes it between two nodes."""
    expected = edge.node._input_metadata[edge.output_nr]
    if gradient.is_complex() and not expected.dtype.is_complex:
        gradient = gradient.real
    if not gradient.is_nested and gradient.shape != (shape := torch.Size(expected.shape)):
        gradient = gradient.sum_to_size(shape)
    return gradient.to(expected.device, expected.dtype)


def _warn_whole(label: str, reason: str) -> None:
    text = (
        f"{label} has {reason} a backward that runs as a whole: I computes the gradients of its weights, too, and takes as long for it as B; "
        "W has nothing to do there"
    )
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=2)
