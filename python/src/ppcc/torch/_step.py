"""One training or evaluation step of a program on one rank.

Forwards and a backward of one group overlap if there are two streams, or are left to the stage's `overlap_f_b()`. The stash of a forward
that is recomputed has its inputs and its random state. Gradients that no action reduces are reduced before the optimizer steps, or at the
end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .._program import Action
from . import _split
from ._errors import UsageError
from ._executor import Executor
from ._stash import Key, OffloadedTensors, RandomState, Stash, key_of, repeats, stage_key_of
from ._inputs import Inputs
from ._linked import REDUCES, RESHARDS, UNSHARDS, LinkedProgram
from ._measure import Observer
from ._messages import Edge, Messages, edges_from
from ._moves import home, is_move
from ._optimizer import Optimizer
from ._overlap import Half
from ._slices import SliceStore, running
from ._shapes import TensorInfo, as_tensors, check_real, structure_of, structured
from ._unsupported_stages import check_trains

_log = logging.getLogger(__name__)
BACKWARDS = ("B", "I", "W")
STEP_ACTIONS = (*REDUCES, "STEP", "VALIDATE")
"""The actions that a step with `reduce_grads=False` skips."""


@dataclass(slots=True)
class StepResult:
    """The results of a step on this rank."""

    losses: dict[int, Tensor] = field(default_factory=dict)
    """Detached scalar losses by microbatch; on the ranks of last stages, or on all ranks with `share_losses`. With several last
    stages, the sum of their losses."""
    outputs: dict[int, tuple[Tensor, ...]] = field(default_factory=dict)
    """Detached outputs of last stages on this rank, by microbatch; filled by `eval`, or with `return_outputs`. With several last
    stages, the outputs of all, by stage."""
    peak_activations: int = 0
    """The peak number of activations (one per stage and microbatch) that were kept for a backward."""

    optimizer_stepped: bool | None = None
    """Whether the optimizer stepped; False if VALIDATE undid the step or a gradient was not finite, None if STEP did not run."""

    @property
    def loss(self) -> Tensor | None:
        """The mean of `losses`; None if there are none."""
        return torch.stack(list(self.losses.values())).mean() if self.losses else None


class Step(Executor):
    """A step in progress of a Runtime."""

    def __init__(
        self,
        linked: LinkedProgram,
        inputs: Inputs,
        *,
        trains: bool,
        reduces: bool,
        keeps_outputs: bool,
        optimizer: Optimizer | None,
        validate: Callable[[], bool] | None,
        observer: Observer,
    ) -> None:
        setup = linked.setup
        messages = Messages(
            linked.channels, setup.device, partial(_receive_specs, linked, trains), linked.headers, answered=trains, acknowledges=linked.acknowledges, mesh=setup.mesh, observer=observer
        )
        super().__init__(messages, observer, linked.unchecked, trains=trains)
        self._linked = linked
        self._setup = setup
        self._inputs = inputs
        self._reduces = reduces and trains
        self._keeps_outputs = keeps_outputs
        self._optimizer = optimizer
        self._validate = validate
        self._is_reduced = False
        self._optimizer_stepped: bool | None = None
        self._losses: dict[Key, Tensor] = {}
        self._outputs: dict[Key, tuple[Tensor, ...]] = {}
        self._slices = SliceStore(self._stashes, linked.recomputed, trains=trains) if linked.caches else None

    def run(self) -> StepResult:
        self._linked.reductions.start(trains=self._trains)
        self.run_groups(self._linked.action_groups if self._trains else self._linked.evaluation)
        if self._reduces:
            self._reduce_rest()
        result = StepResult(peak_activations=self.peak_activations, optimizer_stepped=self._optimizer_stepped)
        for (_, _, microbatch), loss in sorted(self._losses.items(), key=itemgetter(0)):
            before = result.losses.get(microbatch)
            result.losses[microbatch] = loss if before is None else before + loss
        for (_, _, microbatch), outputs in sorted(self._outputs.items(), key=itemgetter(0)):
            result.outputs[microbatch] = (*result.outputs.get(microbatch, ()), *outputs)
        return result

    def share_losses(self, result: StepResult) -> None:
        """All-reduces the losses over the pipeline group, so that each rank has those of all microbatches."""
        # Losses, and whether there are any.
        shared = torch.zeros(2, self._linked.program.num_microbatches, dtype=torch.float64, device=self._setup.device)
        for microbatch, loss in result.losses.items():
            shared[0, microbatch], shared[1, microbatch] = loss, 1
        if dist.is_initialized():
            dist.all_reduce(shared, group=self._setup.groups.pipeline)
        losses, counts = shared
        result.losses = {microbatch: losses[microbatch] for microbatch in counts.nonzero().flatten().tolist()}

    def _run_group(self, group: tuple[Action, ...]) -> None:
        """Runs the actions of a group; with two streams and one backward, forwards and backward overlap."""
        streams = self._setup.streams
        sides = [] if streams is None else [self._side_of(action) for action in group]
        backwards = [side for side in sides if side is not None]
        if streams is None or not backwards or (len(group) == 1 and not backwards[0]):
            self._run_actions(group, [partial(self._perform, action) for action in group])
            return
        overlap = len(backwards) == 1  # Two concurrent backwards would race on the same gradients.

        def perform(action: Action, side: bool) -> None:
            with nullcontext() if overlap else streams.fork_join(), streams.on(side):
                self._perform(action)

        sides = [overlap and not backwards[0] if side is None else side for side in sides]
        with streams.fork_join() if overlap else nullcontext():
            self._run_actions(group, [partial(perform, action, bool(side)) for action, side in zip(group, sides, strict=True)])

    def _run_actions(self, group: tuple[Action, ...], runs: Sequence[Callable[[], None]]) -> None:
        """Runs actions in order; leaves one forward, and the rest of its group with a backward, to the stage's overlap_f_b(), if defined."""
        forwards = [position for position, action in enumerate(group) if action.op == "F"]
        hook = None
        if len(group) > 1 and len(forwards) == 1 and any(action.op in BACKWARDS for action in group):
            hook = getattr(self._module(group[forwards[0]]), "overlap_f_b", None)
        if hook is None:
            for run in runs:
                run()
            return
        (at,) = forwards
        halves = Half(group[at : at + 1], runs[at : at + 1]), Half(group[:at] + group[at + 1 :], [*runs[:at], *runs[at + 1 :]])
        hook(*halves)
        for half in halves:
            if not half.has_run:
                raise UsageError(f"{half.actions[0]} was not run by overlap_f_b()")

    def _side_of(self, action: Action) -> bool | None:
        """True if the matching forward ran on the side stream, since autograd runs a backward on the stream of its forward."""
        stash = self._stashes.get(key_of(action)) if action.op in BACKWARDS else None
        return None if stash is None else stash.on_side

    def _perform(self, action: Action) -> None:
        op, self.at = action.op, action
        _log.debug("%s", action)
        handler = self._setup.handlers.get(op)
        if handler is None and op in STEP_ACTIONS and not self._reduces:
            return
        with self._observer.runs(self, action), running(action, self._slices):
            try:
                if handler is not None:
                    handler(action)
                else:
                    (Step._move if is_move(action) else self.functions[op])(self, action)
            except Exception:
                self.at = action  # The other part of the group may have changed it.
                raise

    def _module(self, action: Action) -> nn.Module:
        return self._linked.modules[stage_key_of(action)]

    def _take(self, edge: Edge) -> tuple[Tensor, ...]:
        taken = super()._take(edge)
        if self._setup.streams is not None:
            self._setup.streams.record_on_side_stream(taken)
        return taken

    def stays(self, action: Action) -> list[Tensor]:
        module = self._module(action)
        return [*module.parameters(), *module.buffers(), *self._inputs.tensors(action.microbatch)]

    # Forward.

    def _compute(self, action: Action, stash: Stash) -> tuple[Tensor, ...]:
        key, stage_key = key_of(action), stage_key_of(action)
        if not stash.inputs:
            assert self._inputs.args is not None
            stash.inputs[-1] = self._inputs.args[action.microbatch]
        stash.on_side = self._setup.streams is not None and self._setup.streams.on_side
        recomputed = self._trains and key in self._linked.recomputed
        if self._trains:
            if sharded := self._linked.sharded.get(stage_key):
                sharded.before_forward()
            stash.random = RandomState(self._setup.device) if recomputed else None
            stash.offloaded = self._new_offloaded_tensors(action) if key in self._linked.offloaded else None
        saving_hooks = stash.offloaded.saving_hooks() if stash.offloaded is not None else nullcontext()
        with torch.set_grad_enabled(self._trains and not recomputed), saving_hooks:
            outputs = self._call(action, stash)
            stash.infos = self._infos(action, outputs, grad=not recomputed)
            if recomputed and stage_key in self._linked.unrepeated:
                self._linked.unrepeated.discard(stage_key)
                stash.repeated = outputs
            if self._keeps_outputs and self._linked.is_last(action.pipe, action.stage):
                self._outputs[key] = tuple(tensor.detach() for tensor in outputs)
            if not recomputed:
                stash.outputs = self._loss(action, stash, outputs)
        if self._slices is not None:
            self._slices.after_forward(action, self._linked.caches.get(stage_key, frozenset()))
        return outputs

    def _call(self, action: Action, stash: Stash) -> tuple[Tensor, ...]:
        module, label = self._module(action), f"stage {action.stage}"
        wrapper = self._linked.replicated.wrappers.get(stage_key_of(action), module)
        stage_key, is_read = stage_key_of(action), not self._linked.is_last(action.pipe, action.stage)
        given, named = self._linked.arguments(action.pipe.index, stash.inputs), self._inputs.named(module, action.microbatch)
        with _split.without_donation() if stage_key in self._linked.split else nullcontext(), self._linked.replicated.forward(action):
            value = wrapper(*given, **named)
        outputs, structure = as_tensors(value, label, self._setup.messages_mesh, is_read=is_read), structure_of(value)
        if is_read and structure != self._linked.structures.get(stage_key):
            raise UsageError(
                f"rank {self._linked.rank}, {action}: returned a structure of tensors that its readers do not expect: let all ranks call "
                "reset_shapes(), or give the Runtime `shapes` of this structure; with variable_shapes return a tensor or a tuple of them"
            )
        self._linked.structures[stage_key] = structure
        self._check_graph(action, stash, outputs, defers_all=self._linked.defers_all(stage_key))  # Where inference has not.
        if torch.is_grad_enabled() and self._linked.program.has_backward:
            check_trains(outputs, module, label)
        check_real(outputs, label)
        return outputs

    def _infos(self, action: Action, outputs: tuple[Tensor, ...], *, grad: bool) -> tuple[TensorInfo, ...]:
        """Returns dtypes and shapes of the outputs of an action; raises UsageError if they differ from what readers expect."""
        if not self._trains:
            infos = tuple(replace(TensorInfo.of(tensor), has_gradient=False) for tensor in outputs)
        else:
            infos = tuple(map(TensorInfo.of if grad else TensorInfo.of_type, outputs))
        if self._setup.dynamic:
            return infos
        expected = self._linked.shapes.get(stage_key_of(action))
        if expected is None:  # No other rank reads the outputs.
            return infos
        if len(infos) != len(expected) or not all(map(TensorInfo.fits, expected, outputs)):
            found, wanted = (", ".join(map(str, of)) for of in (infos, expected))
            raise UsageError(f"rank {self._linked.rank}, {action}: returned {found}, but {wanted} is expected")
        if grad and any(info.has_gradient and not wanted.has_gradient for info, wanted in zip(infos, expected, strict=True)):
            raise UsageError(f"rank {self._linked.rank}, {action}: returned a tensor that requires a gradient, unlike in the first step: let all ranks call reset_shapes()")
        return expected if self._trains else infos

    def _loss(self, action: Action, stash: Stash, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Returns the outputs; at a last stage the scaled loss, if there is one, in their place."""
        setup, targets = self._setup, self._inputs.targets
        if not self._linked.is_last(action.pipe, action.stage) or setup.loss_fn is None or targets is None:
            return outputs
        structure = self._linked.structures[stage_key_of(action)]
        given = outputs[0] if structure is None and len(outputs) == 1 else structured(structure, outputs)
        loss = setup.loss_fn(given, targets[action.microbatch], **self._inputs.loss_kwargs)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise UsageError(f"rank {self._linked.rank}, {action}: loss_fn must return a tensor with one element")
        self._losses[key_of(action)] = loss.detach()
        if setup.scale_grads:
            loss = loss / self._linked.program.num_microbatches
        return (loss if self._optimizer is None else self._optimizer.scaled(loss),)

    # Backward.

    def _sources(self, action: Action, stash: Stash) -> list[Tensor]:
        """Beside those of other stages, those of the slices before."""
        return stash.received() + ([] if self._slices is None else self._slices.leaves(key_of(action)))

    def _further_roots(self, action: Action) -> _split.Edges:
        """At what later slices have read."""
        return () if self._slices is None else self._slices.roots(key_of(action))

    def _runs_backward(self, action: Action) -> AbstractContextManager[None]:
        if action.op == "I":
            return nullcontext()
        if action.op == "B" and (sharded := self._linked.sharded.get(stage_key_of(action))):
            sharded.before_backward(action.microbatch, reduces=self._reduces)
        return self._linked.replicated.adding(action, reduces=self._reduces)

    def _held_back(self, action: Action) -> Callable[[], Callable[[], None]] | None:
        return self._linked.dw_builder(action)

    def _defers_all(self, action: Action) -> bool:
        return stage_key_of(action) in self._linked.has_multi_grad_hook or self._linked.replicated.is_last(action)

    def _send_input_gradients(self, action: Action, stash: Stash) -> None:
        """Leaves those of slices to them."""
        if self._slices is not None:
            self._slices.give_back(key_of(action), is_done=action.op == "B")
        super()._send_input_gradients(action, stash)

    def _backward_weight(self, action: Action) -> None:
        super()._backward_weight(action)
        if self._slices is not None:
            self._slices.drop(key_of(action))

    # Actions that schedules declare; their names are those of std.pp.

    def _recompute(self, action: Action) -> None:
        stash = self._stashes[key_of(action)].ready(action)
        assert stash.random is not None
        with torch.enable_grad(), stash.random.restored():
            outputs = self._call(action, stash)
            self._infos(action, outputs, grad=True)
            if not repeats(stash.repeated, outputs):
                raise UsageError(
                    f"rank {self._linked.rank}, {action}: computes other results than the forward that it repeats: a recomputed stage may not "
                    "change inputs or what it reads, nor have random numbers from other generators than PyTorch's default ones"
                )
            stash.repeated = ()
            stash.outputs = self._loss(action, stash, outputs)

    def _release_output(self, action: Action) -> None:
        for edge in edges_from(action.pipe, action.stage, action.microbatch):
            self._messages.release(action, edge)
        if stash := self._stashes.get(key_of(action)):
            stash.release_outputs()

    def _release_input(self, action: Action) -> None:
        # The backward has freed inputs that were received; the first stage still holds its microbatch of the batch.
        if key_of(action) in self._stashes:
            raise UsageError(f"{action} releases an input that the backward still needs")
        if action.stage == 0 and self._inputs.args is not None:
            self._inputs.args[action.microbatch] = ()

    def _new_offloaded_tensors(self, action: Action) -> OffloadedTensors:
        if sharded := self._linked.sharded.get(stage_key_of(action)):
            sharded.unshard_and_wait()  # What stays on the device are the unsharded parameters.
        return OffloadedTensors(self.stays(action), self._setup.streams)

    def _offload(self, action: Action) -> None:
        stash = self._stashes[key_of(action)]
        assert stash.offloaded is not None
        stash.release_outputs()
        stash.offloaded.offload(stash.tensors())

    def _reload(self, action: Action) -> None:
        offloaded = self._stashes[key_of(action)].offloaded
        if offloaded is None or not offloaded.is_offloaded:
            raise UsageError(f"{action} has no offloaded tensors to reload")
        offloaded.reload()

    def _move(self, action: Action) -> None:
        key = key_of(action)
        if home(action) != self._linked.rank:
            self._linked.moves.run(action, key, None, [])
            return
        stash = self._stashes[key]
        assert stash.offloaded is not None
        leaves = action.kind.collective == "to"
        if stash.offloaded.is_offloaded == leaves:
            raise UsageError(f"{action} moves what is {'no longer on' if leaves else 'still on'} rank {self._linked.rank}")
        if leaves:
            stash.release_outputs()
        self._linked.moves.run(action, key, stash.offloaded, stash.tensors())

    def _unshard(self, action: Action) -> None:
        self._linked.sharded[stage_key_of(action)].unshard()

    def _reshard(self, action: Action) -> None:
        self._linked.sharded[stage_key_of(action)].reshard()

    def _reduce(self, action: Action) -> None:
        stage_key, is_outside = stage_key_of(action), str(action.kind.collective).startswith("outside ")
        sharded = self._linked.sharded.get(stage_key)
        if sharded is not None and is_outside:
            sharded.reduce()
        elif not is_outside or stage_key not in self._linked.replicated.wrappers:
            self._linked.reductions.perform(action)

    def reduce(self, action: Action) -> None:
        """Reduces the gradients of the stage of an action, and waits for the result."""
        self._reduce(action)
        self._linked.reductions.wait()

    def _reduce_rest(self) -> None:
        """Reduces the gradients that no action reduces, once per step, and waits for all reductions."""
        if self._is_reduced:
            return
        self._is_reduced = True
        for sharded in self._linked.sharded.values():
            sharded.reduce()
        self._linked.reductions.finish()

    def _step_optimizer(self, action: Action) -> None:
        assert self._optimizer is not None
        self._reduce_rest()
        self._optimizer_stepped = self._optimizer.step(self._linked, can_undo=self._linked.runs_itself("VALIDATE"))

    def _validate_step(self, action: Action) -> None:
        assert self._optimizer is not None
        valid = self._optimizer.gradients_are_finite() if self._validate is None else self._validate()
        # Data-parallel replicas hold different shards of the gradients, so all must agree.
        valid = self._setup.all_agree(bool(valid), with_outside_groups=True)
        self._optimizer_stepped = self._optimizer.commit_or_roll_back(valid)


def _receive_specs(linked: LinkedProgram, trains: bool, action: Action) -> Sequence[TensorInfo]:
    """Dtypes and shapes of the tensors of a receive. No method, lest a step and its messages wait for the cyclic collector."""
    assert action.peer is not None
    forward = action.peer < action.stage
    infos = linked.shapes[action.pipe.index, action.peer if forward else action.stage]
    if forward and trains:
        return infos
    if forward:
        return [replace(info, has_gradient=False) for info in infos]
    return [info.gradient() for info in infos if info.has_gradient]


Step.functions = {
    "F": Step._forward,
    "B": Step._backward,
    "I": Step._backward_input,
    "W": Step._backward_weight,
    "R": Step._recompute,
    "RELEASE_OUT": Step._release_output,
    "RELEASE_IN": Step._release_input,
    "OFFLOAD": Step._offload,
    "RELOAD": Step._reload,
    **dict.fromkeys(UNSHARDS, Step._unshard),
    **dict.fromkeys(RESHARDS, Step._reshard),
    **dict.fromkeys(REDUCES, Step._reduce),
    "STEP": Step._step_optimizer,
    "VALIDATE": Step._validate_step,
}
