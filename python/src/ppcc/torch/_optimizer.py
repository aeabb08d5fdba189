"""The optimizer's step, and what undoes it."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor


class Optimizer:
    """Steps, and takes the step back when that turns out to have been wrong.

    With `can_undo` it keeps a copy of the weights and of the optimizer's state from the step until settle().
    """

    def __init__(self, optimizer: torch.optim.Optimizer, can_undo: bool) -> None:
        self._optimizer = optimizer
        self._can_undo = can_undo
        self._before: tuple[list[Tensor], dict[str, Any]] | None = None

    def step(self) -> None:
        if self._can_undo:
            weights = [weight.detach().clone() for weight in self._weights()]
            self._before = weights, copy.deepcopy(self._optimizer.state_dict())
        self._optimizer.step()

    def gradients_are_finite(self) -> bool:
        """Whether all gradients of this rank are numbers."""
        gradients = [weight.grad for weight in self._weights() if weight.grad is not None]
        pieces = [gradient.to_local() if isinstance(gradient, DTensor) else gradient for gradient in gradients]
        return all(bool(piece.isfinite().all()) for piece in pieces)

    def settle(self, valid: bool) -> None:
        """Keeps the step, or takes it back."""
        assert self._before is not None
        if not valid:
            before, state = self._before
            for weight, value in zip(self._weights(), before, strict=True):
                weight.data.copy_(value)
            self._optimizer.load_state_dict(state)
        self._before = None

    def _weights(self) -> list[Tensor]:
        return [weight for group in self._optimizer.param_groups for weight in group["params"]]
