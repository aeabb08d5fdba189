"""The optimizer's step: scaled losses, a norm over all ranks, and undo."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from .._program import Action, Program
from ._errors import UsageError
from ._linked import LinkedProgram, RuntimeConfig


class Optimizer:
    """Steps on all ranks or on none.

    With a `scaler`, a gradient that is not finite on any rank skips the step; with `max_norm`, gradients are clipped by their norm
    over all ranks.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, setup: RuntimeConfig, scaler: torch.amp.GradScaler | None, max_norm: float | None
    ) -> None:
        self._optimizer = optimizer
        self._setup = setup
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._unscaled: bool | None = None
        """Whether gradients that have been unscaled are finite; None before that."""
        self._max_norm = max_norm
        self.norm: Tensor | None = None
        """The norm of the last gradients before clipping, if they were clipped."""
        self._before: tuple[list[Tensor], dict[str, Any]] | None = None

    @property
    def is_collective(self) -> bool:
        """Whether a step waits for all ranks."""
        return self._scaler is not None or self._max_norm is not None

    def start(self, linked: LinkedProgram) -> None:
        """Begins a training step; raises UsageError if the optimizer has none of the weights of this rank."""
        self._unscaled = None
        # A sharded stage may have its gathered weights now, which are other objects.
        modules = [module for stage_key, module in linked.modules.items() if stage_key not in linked.sharded]
        trained = {id(weight) for module in modules for weight in module.parameters() if weight.requires_grad}
        if trained and trained.isdisjoint(map(id, self._weights())):
            raise UsageError(
                f"the optimizer has none of the weights of the stages of rank {linked.rank}: create it from them, and again after what "
                "replaces them, such as fully_shard() or load_state_dict(assign=True)"
            )

    def scaled(self, loss: Tensor) -> Tensor:
        """Returns the loss, multiplied by the scale of the scaler."""
        return loss if self._scaler is None else self._scaler.scale(loss)

    def step(self, linked: LinkedProgram, *, can_undo: bool = False) -> bool:
        """Steps, and returns whether it did. With `can_undo` a copy of weights and state is kept until commit_or_roll_back()."""
        if can_undo:
            weights = [weight.detach().clone() for weight in self._weights()]
            self._before = weights, copy.deepcopy(self._optimizer.state_dict())
        stepped = self.unscale()
        if stepped and self._max_norm is not None:
            self.norm = clip_grad_norm_(linked, self._max_norm)
        if self._scaler is None:
            self._optimizer.step()
        else:
            self._scaler.step(self._optimizer)
            self._scaler.update()
        self._unscaled = None
        return stepped

    def unscale(self) -> bool:
        """Unscales the gradients, unless that has been done, and returns whether they are finite on all ranks."""
        if self._unscaled is None:
            self._unscaled = self._scaler is None or self._unscale(self._scaler)
        return self._unscaled

    def gradients_are_finite(self) -> bool:
        """Whether all gradients of this rank are finite."""
        gradients = [weight.grad for weight in self._weights() if weight.grad is not None]
        pieces = [gradient.to_local() if isinstance(gradient, DTensor) else gradient for gradient in gradients]
        return all(bool(piece.isfinite().all()) for piece in pieces)

    def commit_or_roll_back(self, valid: bool) -> bool:
        """Keeps the step, or undoes it."""
        assert self._before is not None
        if not valid:
            before, state = self._before
            for weight, value in zip(self._weights(), before, strict=True):
                weight.data.copy_(value)
            self._optimizer.load_state_dict(state)
        self._before = None
        return valid

    def _unscale(self, scaler: torch.amp.GradScaler) -> bool:
        """Divides the gradients by the scale, and returns whether they are finite on all ranks."""
        scaler.scale(torch.zeros((), device=self._setup.device))  # Ranks without a last stage have not had a scale yet.
        scaler.unscale_(self._optimizer)
        found = scaler._per_optimizer_states[id(self._optimizer)]["found_inf_per_device"]
        if not found:
            raise UsageError(f"rank {self._setup.rank} has a scaler, but its optimizer has no gradients")
        is_finite = self._setup.all_agree(not any(bool(flag.item()) for flag in found.values()), with_outside_groups=True)
        for flag in found.values():
            flag.fill_(not is_finite)
        return is_finite

    def _weights(self) -> list[Tensor]:
        return [weight for group in self._optimizer.param_groups for weight in group["params"]]


def check_step_is_barrier(program: Program) -> None:
    """Raises UsageError on all ranks if a rank has a message or collective after STEP that its peer has before STEP.

    For steps that wait for all ranks: these two would deadlock.
    """
    if all(kind.mnemonic != "STEP" for kind in program.kinds):
        return
    surplus: Counter[tuple[int, int | None, int | None]] = Counter()
    last_action: dict[tuple[tuple[int, int | None, int | None], bool], tuple[int, Action]] = {}
    together: dict[str, tuple[int, int, Action]] = {}

    def refuse(rank: int, action: Action) -> None:
        raise UsageError(
            f"rank {rank}: {action} stands after STEP, which waits for all ranks with `scaler` or `max_norm`, but the other end "
            "of it stands ahead"
        )

    counts = [sum(action.op == "STEP" for action in actions) for actions in program.actions]
    if len(set(counts)) > 1:
        raise UsageError(f"ranks have STEP {counts} times, but with `scaler` or `max_norm` each waits for that of all ranks")
    for rank, actions in enumerate(program.actions):
        steps = 0
        for action in actions:
            kind = action.kind
            if kind.mnemonic == "STEP":
                steps += 1
            elif kind.is_message:
                ends = (rank, action.peer_rank) if kind.is_send else (action.peer_rank, rank)
                surplus[steps, *ends] += 1 if kind.is_send else -1
                last_action[(steps, *ends), kind.is_send] = rank, action
            elif kind.collective is not None and not str(kind.collective).startswith("outside"):
                first = together.setdefault(kind.mnemonic, (steps, rank, action))
                if first[0] != steps:
                    refuse(*(first[1:] if first[0] > steps else (rank, action)))
    for key, more in surplus.items():
        if key[0] and more:
            refuse(*last_action[key, more > 0])


def clip_grad_norm_(linked: LinkedProgram, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Clips the gradients of all ranks by their norm, in which a shared weight counts once; returns the norm before."""
    setup = linked.setup
    weights = list({id(weight): weight for module in linked.modules.values() for weight in module.parameters()}.values())
    repeated = linked.reductions.duplicate_weights()
    whole = _norm([weight for weight in weights if id(weight) not in repeated], norm_type, setup.device)
    if dist.is_initialized():
        if norm_type == float("inf"):
            dist.all_reduce(whole, dist.ReduceOp.MAX, group=setup.groups.pipeline)
        else:
            powered = whole**norm_type
            dist.all_reduce(powered, group=setup.groups.pipeline)
            whole = powered ** (1 / norm_type)
    for alike in _by_mesh(weights):
        nn.utils.clip_grads_with_norm_(alike, max_norm, whole)
    return whole


def _norm(weights: list[nn.Parameter], norm_type: float, device: torch.device) -> Tensor:
    gradients = [[weight.grad for weight in alike if weight.grad is not None] for alike in _by_mesh(weights)]
    norms = [nn.utils.get_total_norm(alike, norm_type) for alike in gradients]
    parts = [norm.full_tensor() if isinstance(norm, DTensor) else norm for norm in norms]
    # In one type on all ranks, whatever theirs are.
    none = torch.zeros(1, dtype=torch.float64, device=device)
    whole: Tensor = torch.linalg.vector_norm(torch.cat([none, *(part.to(none).view(1) for part in parts)]), norm_type)
    return whole


def _by_mesh(weights: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    """The weights that have gradients, in lists by the ranks over which they are sharded."""
    found: dict[object, list[nn.Parameter]] = {}
    for weight in weights:
        if weight.grad is not None:
            mesh = weight.grad.device_mesh if isinstance(weight.grad, DTensor) else None
            found.setdefault(mesh, []).append(weight)
    return list(found.values())
