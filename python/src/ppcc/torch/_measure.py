"""Observers of steps, which name actions in profiles."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch

from .._program import Action

if TYPE_CHECKING:
    from ._messages import Edge
    from ._step import Step


class Observer:
    """What a step calls around its actions and waits for messages, and before it posts messages. This one does nothing."""

    def runs(self, step: Step, action: Action) -> AbstractContextManager[object]:
        return nullcontext()

    def waits(self, edge: Edge) -> AbstractContextManager[object]:
        return nullcontext()

    def posts(self, actions: Sequence[Action]) -> None:
        pass


class NamedRanges(Observer):
    """Names actions in the traces of PyTorch's profiler."""

    def runs(self, step: Step, action: Action) -> AbstractContextManager[object]:
        return torch.profiler.record_function(str(action))
