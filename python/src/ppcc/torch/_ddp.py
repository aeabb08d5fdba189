"""Stages in DistributedDataParallel: their gradients are averaged once a step, while the last action that adds to them runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .._program import Action
from ._errors import UsageError
from ._stash import Key, key_of, stage_key_of


def inside(module: nn.Module) -> nn.Module:
    """The module in a DistributedDataParallel; any other itself."""
    return module.module if isinstance(module, DistributedDataParallel) else module


class ReplicatedStages:
    """The wrappers of stages. DistributedDataParallel expects a backward after each forward that it prepares for; here none is, and the
    last action is prepared for alone, as PyTorch's own runtime does."""

    def __init__(self, given: Mapping[tuple[int, int], nn.Module], actions: Iterable[Action]) -> None:
        """`given` are the modules by pipe and stage; raises UsageError for options that need each forward."""
        self.wrappers = {stage_key: module for stage_key, module in given.items() if isinstance(module, DistributedDataParallel)}
        for (_, stage), wrapper in self.wrappers.items():
            if wrapper.find_unused_parameters or wrapper.static_graph:
                raise UsageError(
                    f"stage {stage} is a DistributedDataParallel with find_unused_parameters or static_graph, which look at the graph of each "
                    "forward, but a pipeline runs several forwards first: leave them out, or give the module inside of it, and "
                    "groups={'data_parallel': GROUP}, over which the Runtime averages"
                )
        self._last: dict[int, Key] = {}
        for action in actions:
            if action.op in ("B", "W") and (wrapper := self._wrapper(action)) is not None:
                self._last[id(wrapper)] = key_of(action)

    def _wrapper(self, action: Action) -> Any:
        return self.wrappers.get(stage_key_of(action))

    def is_last(self, action: Action) -> bool:
        """Whether a stage is replicated, and no backward of another microbatch adds to its gradients later."""
        wrapper = self._wrapper(action)
        return wrapper is not None and self._last.get(id(wrapper)) == key_of(action)

    def forward(self, action: Action) -> AbstractContextManager[None]:
        """A context for a forward."""
        wrapper = self._wrapper(action)
        return nullcontext() if wrapper is None else wrapper.no_sync()

    def adding(self, action: Action, *, reduces: bool) -> AbstractContextManager[None]:
        """A context for an action that adds gradients of weights; the last one averages them, with `reduces`."""
        if not (reduces and self.is_last(action)):
            return self.forward(action)
        self._wrapper(action).reducer.prepare_for_backward([])
        return nullcontext()
