"""Runs the actions of a rank: the one executor of Runtime (_step.py) and of Megatron's chunks (megatron/_step.py).

A client is an adapter of its stages. It computes their forwards (`_compute`), and says by the methods below it what their backwards need
beside a run of autograd. In training each forward leaves a stash that the backward of its microbatch consumes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from .._program import Action
from . import _split
from ._measure import Observer
from ._messages import Edge, Messages, edges_from
from ._shapes import gradient_placements
from ._stash import Key, StageKey, Stash, key_of, stage_key_of
from ._unsupported_stages import check_graph


class Executor(ABC):
    """One step of a rank; `at` is the current action."""

    functions: ClassVar[Mapping[str, Callable[..., None]]]
    """The methods that run actions, by mnemonic."""

    def __init__(self, messages: Messages, observer: Observer, unchecked: set[StageKey], *, trains: bool) -> None:
        """`unchecked` are the stages whose backward is split, and whose autograd graph has not been checked yet."""
        self.at: Action | None = None
        self.peak_activations = 0
        """The peak number of activations (one per stage and microbatch) that were kept for a backward."""
        self._messages = messages
        self._observer = observer
        self._unchecked = unchecked
        self._trains = trains
        self._stashes: dict[Key, Stash] = {}

    def run_groups(self, groups: Iterable[tuple[Action, ...]]) -> None:
        for group in groups:
            if group[0].kind.is_message:
                self.at = group[0]
                self._post(group)
            else:
                self._run_group(group)
        self._messages.finish()

    def _post(self, group: tuple[Action, ...]) -> None:
        self._messages.post(group)

    def _run_group(self, group: tuple[Action, ...]) -> None:
        for action in group:
            self._perform(action)

    def _perform(self, action: Action) -> None:
        self.at = action
        with self._observer.runs(self, action):
            self.functions[action.op](self, action)

    # What clients define.

    @abstractmethod
    def _compute(self, action: Action, stash: Stash) -> Sequence[Tensor]:
        """Runs the forward of a stage; sets `infos` of the stash, and `outputs`, from which its backward starts. Returns the outputs."""

    @abstractmethod
    def stays(self, action: Action) -> list[Tensor]:
        """What there is in memory without the forward of an action: weights, buffers, the batch."""

    @abstractmethod
    def _runs_backward(self, action: Action) -> AbstractContextManager[object]:
        """A context for the computation of a B, I or W."""

    def _held_back(self, action: Action) -> Callable[[], Callable[[], None]] | None:
        """For layers that hold back the gradients of their weights: returns, after a backward, what computes these."""
        return None

    def _defers_all(self, action: Action) -> bool:
        """Whether an I may add to no gradient of weights."""
        return False

    def _sources(self, action: Action, stash: Stash) -> list[Tensor]:
        """The leaves whose gradients others wait for."""
        return stash.received()

    def _further_roots(self, action: Action) -> _split.Edges:
        """Where the backward starts beside the outputs."""
        return ()

    def _take(self, edge: Edge) -> tuple[Tensor, ...]:
        """Waits for a message."""
        return self._messages.take(edge)

    # Forward.

    def _forward(self, action: Action) -> None:
        pipe, stage, microbatch = action.pipe, action.stage, action.microbatch
        stash = Stash({source: self._take((pipe.index, source, stage, microbatch)) for source in pipe.sources(stage)}, (), ())
        if self._trains:
            self._stashes[key_of(action)] = stash
            self.peak_activations = max(self.peak_activations, len(self._stashes))
        outputs = self._compute(action, stash)
        for edge in edges_from(pipe, stage, microbatch):
            leaves = (tensor.detach().requires_grad_(info.has_gradient) for tensor, info in zip(outputs, stash.infos, strict=True))
            self._messages.put(edge, tuple(leaves))

    def _check_graph(self, action: Action, stash: Stash, outputs: Sequence[Tensor], *, defers_all: bool) -> None:
        """Raises UsageError if I and W would run the graph of the first forward of a stage otherwise than B."""
        if (stage_key := stage_key_of(action)) in self._unchecked and torch.is_grad_enabled():
            check_graph(outputs, self._sources(action, stash), f"stage {action.stage}", defers_all=defers_all)
            self._unchecked.discard(stage_key)

    # Backward.

    def _backward(self, action: Action) -> None:
        stash = self._stashes[key_of(action)].ready(action)
        gradients = self._output_gradients(action, stash)
        with self._runs_backward(action):
            _split.backward(stash.outputs, gradients, self._further_roots(action))
            if (build := self._held_back(action)) is not None:
                build()()
        self._send_input_gradients(action, stash)
        del self._stashes[key_of(action)]

    def _backward_input(self, action: Action) -> None:
        stash = self._stashes[key_of(action)].ready(action)
        gradients, further = self._output_gradients(action, stash), self._further_roots(action)
        with self._runs_backward(action):
            if (build := self._held_back(action)) is not None:
                _split.backward(stash.outputs, gradients, further)
                stash.weights = build()
            else:
                sources, label = self._sources(action, stash), f"stage {action.stage}"
                stash.weights = _split.backward_input(sources, stash.outputs, gradients, label, further, defers_all=self._defers_all(action))
            stash.outputs = ()  # Else they would keep the graph.
        self._send_input_gradients(action, stash)

    def _backward_weight(self, action: Action) -> None:
        stash = self._stashes.pop(key_of(action)).ready(action)
        assert stash.weights is not None
        with self._runs_backward(action):
            stash.weights()

    def _output_gradients(self, action: Action, stash: Stash) -> Sequence[Tensor | None]:
        """Waits for the gradients of the outputs; of several readers, their sum."""
        pipe, stage, microbatch = action.pipe, action.stage, action.microbatch
        readers = pipe.readers(stage)
        if not readers:
            return [torch.ones_like(tensor) for tensor in stash.outputs]
        wanted = [i for i, info in enumerate(stash.infos) if info.has_gradient]
        gradients: list[Tensor | None] = [None] * len(stash.outputs)
        for reader in readers:
            taken = self._take((pipe.index, reader, stage, microbatch))
            self._messages.acknowledge((pipe.index, stage, reader, microbatch))
            for i, tensor in zip(wanted, taken, strict=True):
                before = gradients[i]
                gradients[i] = tensor if before is None else before + tensor
        return gradients

    def _send_input_gradients(self, action: Action, stash: Stash) -> None:
        """Queues the gradients of the inputs for the stages that produced those inputs."""
        for source, inputs in stash.inputs.items():
            if source >= 0:
                gradients = []
                for tensor in inputs:
                    if tensor.requires_grad:
                        gradient = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
                        if isinstance(tensor, DTensor) and isinstance(gradient, DTensor):
                            gradient = gradient.redistribute(placements=gradient_placements(tensor.placements))
                        gradients.append(gradient)
                        tensor.grad = None
                self._messages.put((action.pipe.index, action.stage, source, action.microbatch), tuple(gradients))
