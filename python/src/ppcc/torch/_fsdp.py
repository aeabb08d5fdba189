"""Stages whose weights `fully_shard` has sharded."""

from __future__ import annotations

import sys
from typing import Any

from torch import nn

from ._errors import UsageError


def is_sharded(module: nn.Module) -> bool:
    fsdp = sys.modules.get("torch.distributed.fsdp")  # Slow to import.
    return fsdp is not None and isinstance(module, fsdp.FSDPModule)


def check_root(module: nn.Module, label: str) -> None:
    """Raises UsageError if only parts of a stage are sharded, since its root determines when gradients are reduced."""
    if not is_sharded(module) and any(map(is_sharded, module.modules())):
        raise UsageError(f"fully_shard has cut up parts of {label}, but not the stage: call fully_shard(stage) after them")


class ShardedStage:
    """A sharded stage that is unsharded, resharded and reduced at the actions of the program. Before PyTorch 2.15 its last B reduces.

    The module itself must be sharded, as the root of its submodules.
    """

    def __init__(self, module: nn.Module, label: str, *, keep_unsharded: bool, is_split: bool, last: int) -> None:
        """With `keep_unsharded` only methods of this class unshard and reshard, else forwards and backwards do. `last` is the microbatch of
        the last B."""
        self._finalizes = hasattr(module, "finalize_backward")
        if is_split and not self._finalizes:
            raise UsageError(f"{label} is sharded, which needs PyTorch 2.15 for I and W: use a schedule that has B in their place")
        self._last = last
        self._root: Any = module
        self._parts: list[Any] = [part for part in module.modules() if is_sharded(part)]
        self._stays_gathered = keep_unsharded
        self._is_reduced = True
        if keep_unsharded:
            for part in self._parts:
                part.set_reshard_after_forward(False, recurse=False)

    def unshard(self) -> None:
        """Starts to gather the weights; the forward waits for it."""
        for part in self._parts:
            part.unshard(async_op=True)

    def unshard_and_wait(self) -> None:
        """Gathers the weights and waits for it."""
        for part in self._parts:
            part.unshard()

    def reshard(self) -> None:
        for part in self._parts:
            part.reshard()

    def before_forward(self) -> None:
        """Accumulates gradients on this rank until reduce()."""
        if self._finalizes:
            self._root.set_manual_backward_finalization(True)
        self._root.set_requires_gradient_sync(False)
        self._root.set_reshard_after_backward(not self._stays_gathered)
        self._is_reduced = False

    def before_backward(self, microbatch: int, *, reduces: bool) -> None:
        """Before a B; with `reduces` the gradients are those of the step after the last."""
        if not self._finalizes:
            self._is_reduced = reduces and microbatch == self._last
            self._root.set_requires_gradient_sync(self._is_reduced)
            self._root.set_is_last_backward(self._is_reduced)
            self._root.set_reshard_after_backward(self._is_reduced or not self._stays_gathered)

    def reduce(self) -> None:
        """Reduce-scatters the mean of the gradients over the ranks that share the weights, once per step."""
        if self._is_reduced:
            return
        self._root.set_requires_gradient_sync(True)
        self._root.set_reshard_after_backward(True)
        self._root.finalize_backward()
        self._root.set_manual_backward_finalization(False)
        self._is_reduced = True
