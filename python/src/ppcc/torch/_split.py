"""The backward of a stage: full, or split into the gradients of inputs (I) and, later, of weights (W)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

try:
    from torch.distributed.pipelining._backward import stage_backward_input, stage_backward_weight
except ImportError:  # Moved or gone: the second way below serves.
    stage_backward_input = stage_backward_weight = None  # type: ignore[assignment]

# Older releases count weights twice that lie between two nodes where the graph is split.
_SPLITS_RIGHT = stage_backward_input is not None and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)

Gradients = Sequence["Tensor | None"]


def backward(outputs: Sequence[Tensor], gradients: Gradients) -> None:
    """Adds the gradients of weights and inputs to their `grad`."""
    pairs = _differentiable(outputs, gradients)
    if pairs:
        torch.autograd.backward([output for output, _ in pairs], [gradient for _, gradient in pairs])


def backward_input(
    module: nn.Module, inputs: Sequence[Tensor], outputs: Sequence[Tensor], gradients: Gradients
) -> Callable[[], None]:
    """Adds the gradients of the inputs to their `grad`; returns a function to call once, which does so for the weights."""
    pairs = _differentiable(outputs, gradients)
    sources = [tensor for tensor in inputs if tensor.requires_grad]
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    if not pairs:
        return lambda: None
    if not sources:  # The first stage: no stage reads the gradient of its input.
        return lambda: backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
    roots, root_gradients = [output for output, _ in pairs], [gradient for _, gradient in pairs]
    if _SPLITS_RIGHT:
        # It detaches the roots in place, which views do not allow; inputs that are outputs have to stay inputs.
        roots = [root.clone() if root._is_view() or root.is_leaf else root for root in roots]
        _, groups = stage_backward_input(roots, root_gradients, sources, iter(weights))
        return lambda: _finish(weights, groups)
    # Twice through the graph, which is dearer, but right.
    for source, gradient in zip(
        sources,
        torch.autograd.grad(roots, sources, root_gradients, retain_graph=True, allow_unused=True),
        strict=True,
    ):
        source.grad = gradient
    return lambda: _weights_alone(roots, root_gradients, weights)


def _finish(weights: Sequence[nn.Parameter], groups: list[dict[str, object]]) -> None:
    # A weight that a stage has twice leads through nodes that others need, too.
    stage_backward_weight(iter(weights), groups, retain_graph=True)


def _weights_alone(roots: Sequence[Tensor], gradients: Sequence[Tensor], weights: Sequence[nn.Parameter]) -> None:
    for weight, gradient in zip(
        weights, torch.autograd.grad(roots, weights, gradients, allow_unused=True), strict=True
    ):
        if gradient is not None:
            weight.grad = gradient if weight.grad is None else weight.grad + gradient


def _differentiable(outputs: Sequence[Tensor], gradients: Gradients) -> list[tuple[Tensor, Tensor]]:
    return [
        (output, gradient)
        for output, gradient in zip(outputs, gradients, strict=True)
        if gradient is not None and output.requires_grad
    ]
