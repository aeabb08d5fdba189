"""Executes the list of a rank on torch.distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .._program import Action, Pipe, Program
from . import _split
from ._errors import RuntimeMisuse
from ._fsdp import ShardedStage, is_sharded
from ._groups import Groups
from ._held import Held, Memory, RandomState
from ._messages import Messages, connect, edges_from, late_receives
from ._optimizer import Optimizer
from ._reductions import Reductions, Tie
from ._shapes import TensorInfo, as_tensors, infer

LossFunction = Callable[[Tensor, Tensor], Tensor]
Handler = Callable[[Action], None]
Key = tuple[int, int, int]
"""Pipe, stage, microbatch."""


@dataclass(slots=True)
class StepResult:
    """What a rank knows after a step."""

    losses: dict[int, Tensor] = field(default_factory=dict)
    """By microbatch, on the ranks of last stages; detached."""
    outputs: dict[int, tuple[Tensor, ...]] = field(default_factory=dict)
    """By microbatch, of the last stages, when they were asked for; detached."""
    peak_activations: int = 0
    """The most microbatches, counted stage by stage, whose backward was not done."""

    stepped: bool | None = None
    """Whether the optimizer has stepped: False where VALIDATE has taken it back, None without STEP."""

    @property
    def loss(self) -> Tensor | None:
        """The mean of the losses of this rank's microbatches; None where there are none."""
        return torch.stack(list(self.losses.values())).mean() if self.losses else None


class Runtime:
    """Runs a program's list of this rank, step by step.

    `stages` are the modules of the stages that live on this rank, by stage number; in a program with several pipes
    whose stages differ, by `(pipe name, stage number)`. A stage takes the outputs of the stages that it reads, one
    argument a tensor, and gives a tensor or several. The stages of two pipes with one number are replicas: their
    weights begin equal (those of the lowest rank) and their gradients are summed over their ranks.

    `loss_fn(output, target)` is called at the last stages. With `scale_grads` the gradients are those of the mean of
    all microbatches' losses, without it those of their sum. `split_dim` is the dimension along which batches are cut
    into microbatches.

    What a schedule declares is performed by the function of its name in `handlers`, else by what this class has for the
    names of the library's std.pp: `tied` are weights that several stages have (each by its name in these stages, such as
    `{0: "embed.weight", -1: "head.weight"}`), `groups` the process groups of collectives outside of the program, such
    as `data_parallel`, `optimizer` what STEP calls, and `validate` says on each rank at VALIDATE whether that step was
    right; without it, whether all gradients are finite.

    With `dynamic_shapes` the shape of each message goes ahead of it, so that microbatches may differ.

    Every rank of `group` makes its Runtime and calls step() together; where the job has several pipelines, all processes
    make theirs together. Raises RuntimeMisuse when program, stages and
    group do not fit.
    """

    def __init__(
        self,
        program: Program,
        stages: Mapping[int, nn.Module] | Mapping[tuple[str, int], nn.Module],
        *,
        loss_fn: LossFunction | None = None,
        group: dist.ProcessGroup | None = None,
        device: torch.device | str | None = None,
        scale_grads: bool = True,
        split_dim: int = 0,
        handlers: Mapping[str, Handler] | None = None,
        tied: Sequence[Tie] = (),
        groups: Mapping[str, dist.ProcessGroup] | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        validate: Callable[[], bool] | None = None,
        dynamic_shapes: bool = False,
        profile: bool = False,
    ) -> None:
        self.program = program
        self._group = group
        self._own_handlers = frozenset(handlers or {})
        self._handlers = {**self._performers(), **(handlers or {})}
        self._loss_fn = loss_fn
        self._scale_grads = scale_grads
        self._split_dim = split_dim
        self._profile = profile
        self._validate = validate
        self._dynamic = dynamic_shapes
        self._outside = dict(groups or {})
        self.rank = self._own_rank()
        self._separate: set[tuple[int, int]] = set()
        self._modules = self._assign(stages)
        self._device = self._find_device(device)
        self._check_program(optimizer)
        self._items = [group_.actions for group_ in program.groups(self.rank)]
        self._marked = self._find_marked()
        self._optimizer = None if optimizer is None else Optimizer(optimizer, self._performs("VALIDATE"))
        self._sharded = self._find_sharded(bool(tied))
        self._shapes: dict[tuple[int, int], tuple[TensorInfo, ...]] = {}
        self._shapes_for: tuple[object, ...] = ()
        self._groups = Groups(group, program.ranks)
        self._reductions = Reductions(
            program,
            self.rank,
            self._modules,
            separate=frozenset().union(*self._groups.gather(frozenset(self._separate))),
            tied=tied,
            groups=self._groups,
            outside=self._outside,
            mean=scale_grads,
        )
        self._check_reductions()
        # The host has to know shapes, so they have a group of their own.
        has_headers = dynamic_shapes and dist.is_initialized()
        self._headers = self._groups.make(tuple(range(program.ranks)), "gloo") if has_headers else None
        connect(program, self.rank, group, self._device)
        self._reset()

    # Fitting program, process group and stages together.

    def _own_rank(self) -> int:
        if not dist.is_initialized():
            if self.program.ranks == 1:
                return 0
            raise RuntimeMisuse(
                f"the program is for {self.program.ranks} ranks, but there is no process group: "
                "call torch.distributed.init_process_group first"
            )
        size = dist.get_world_size(self._group)
        if size != self.program.ranks:
            raise RuntimeMisuse(f"the program is for {self.program.ranks} ranks, but the process group has {size}")
        return dist.get_rank(self._group)

    def _assign(self, stages: Mapping[Any, nn.Module]) -> dict[tuple[int, int], nn.Module]:
        """The module of each stage of this rank, by pipe and stage."""
        modules: dict[tuple[int, int], nn.Module] = {}
        used = set()
        for pipe, stage in self.program.stages_of(self.rank):
            key: object = (pipe.name, stage) if (pipe.name, stage) in stages else stage
            if key not in stages:
                hosted = ", ".join(str(number) for _, number in self.program.stages_of(self.rank))
                raise RuntimeMisuse(f"rank {self.rank} has no module for stage {stage} of pipe `{pipe.name}`; it hosts {hosted}")
            module = stages[key]
            if not isinstance(module, nn.Module):
                raise RuntimeMisuse(f"stage {stage} is {type(module).__name__}, but must be a torch.nn.Module")
            modules[pipe.index, stage] = module
            used.add(key)
            if key != stage:
                self._separate.add((pipe.index, stage))
        for key in stages:
            if key not in used:
                raise RuntimeMisuse(f"rank {self.rank} was given stage {key}, which does not live on it")
        return modules

    def _find_device(self, device: torch.device | str | None) -> torch.device:
        if device is not None:
            return torch.device(device)
        for module in self._modules.values():
            for tensor in module.parameters():
                return tensor.device
        return torch.device("cpu")

    def _check_program(self, optimizer: torch.optim.Optimizer | None) -> None:
        program = self.program
        for action in program.actions[self.rank]:
            if not action.kind.is_message and action.kind.letters not in self._handlers:
                raise RuntimeMisuse(f"nothing runs `{action.kind.letters}`: give the Runtime a handler for it")
        if self._performs("STEP") and optimizer is None:
            raise RuntimeMisuse("the program has `STEP`: give the Runtime an optimizer, or a handler")
        if self._performs("VALIDATE") and not self._performs("STEP"):
            raise RuntimeMisuse("`VALIDATE` is about a step of the optimizer's, but nothing here runs `STEP`")
        if self._dynamic and self._device.type != "cpu":
            late = late_receives(program.actions[self.rank], program.waits[self.rank])
            if late is not None:
                raise RuntimeMisuse(
                    f"with dynamic_shapes each receive has to stand right before the action that reads it, but {late} does "
                    "not: compile with comm_order='late', and without fuse"
                )
        crosses = any(
            pipe.rank_of_stage[stage] != pipe.rank_of_stage[reader]
            for pipe in program.pipes
            for stage in range(pipe.num_stages)
            for reader in pipe.readers(stage)
        )
        if crosses and not program.has_messages():
            raise RuntimeMisuse("the program has no messages: compile it with a comm_order other than `none`")
        if program.backward and self._loss_fn is None and any(self._is_last(pipe, s) for pipe, s in self._hosted()):
            raise RuntimeMisuse(f"rank {self.rank} has a last stage, which needs a loss_fn")

    def _hosted(self) -> Iterable[tuple[Pipe, int]]:
        return self.program.stages_of(self.rank)

    @staticmethod
    def _is_last(pipe: Pipe, stage: int) -> bool:
        return not pipe.readers(stage)

    def _performs(self, letters: str) -> bool:
        """Whether this class performs an action of that name on this rank."""
        return letters not in self._own_handlers and any(
            action.kind.letters == letters for action in self.program.actions[self.rank]
        )

    def _find_marked(self) -> dict[str, frozenset[Key]]:
        """The forwards that have to know what will be done with what they keep."""
        names = ("R", "OFFLOAD")
        marked: dict[str, set[Key]] = {name: set() for name in names}
        for action in self.program.actions[self.rank]:
            if action.kind.letters in marked and action.kind.letters not in self._own_handlers:
                marked[action.kind.letters].add(self._key(action))
        return {name: frozenset(keys) for name, keys in marked.items()}

    def _find_sharded(self, has_ties: bool) -> dict[tuple[int, int], ShardedStage]:
        stays = self._performs("UNSHARD")
        sharded = {
            place: ShardedStage(module, f"stage {place[1]}", stays_gathered=stays)
            for place, module in self._modules.items()
            if is_sharded(module)
        }
        if sharded and (has_ties or len(self.program.pipes) > 1):
            raise RuntimeMisuse("stages that are sharded cannot have replicas in other pipes, or tied weights")
        for action in self.program.actions[self.rank]:
            letters, place = action.kind.letters, (action.pipe.index, action.stage)
            if letters in ("UNSHARD", "RESHARD") and letters not in self._own_handlers and place not in sharded:
                raise RuntimeMisuse(f"{action} is for stages that fully_shard has cut up, which stage {action.stage} is not")
        return sharded

    def _check_reductions(self) -> None:
        actions = self.program.actions[self.rank]
        for action in actions:
            if action.kind.letters in self._own_handlers or action.kind.letters not in _REDUCES:
                continue
            if action.kind.letters != "REDUCE_GRAD" or (action.pipe.index, action.stage) not in self._sharded:
                self._reductions.check(action.kind)
        for position, action in enumerate(actions):
            if action.kind.letters == "STEP" and self._performs("STEP") and self._reductions.at_end():
                # Ranks meet in these sums, so nobody may still wait for a message.
                if any(later.kind.is_message for later in actions[position:]):
                    raise RuntimeMisuse(
                        f"rank {self.rank} has messages behind `STEP`, in front of which gradients are summed: "
                        "let the program say where, with REDUCE_REPLICAS and REDUCE_EMBEDDING"
                    )

    # A step.

    def _reset(self) -> None:
        self._result = StepResult()
        self._held: dict[Key, Held] = {}
        self._messages = Messages(self._group, self._device, self._room, self._headers)
        self._args: list[tuple[Tensor, ...]] | None = None
        self._targets: list[Tensor] | None = None
        self._keeps_outputs = False
        self._reduces = True
        self._is_reduced = False

    def step(
        self,
        *args: Tensor | Sequence[Tensor],
        target: Tensor | Sequence[Tensor] | None = None,
        reduce_grads: bool = True,
        return_outputs: bool = False,
    ) -> StepResult:
        """Runs all microbatches of a batch forward and, unless the program is forward-only, backward.

        `args` are needed on the ranks of first stages, `target` on those of last stages: whole batches, of which each
        pipe takes its microbatches, or sequences of microbatches, which may differ with `dynamic_shapes`. Gradients are
        added to `grad`; to add up those of several steps, reduce them in the last one only (`reduce_grads=False`
        before, which leaves out REDUCE_GRAD and its kin, STEP and VALIDATE).
        """
        self._reset()
        self._args = self._cut(args, "the batch") if args else None
        targets = self._cut((target,), "the target") if target is not None else None
        self._targets = None if targets is None else [microbatch[0] for microbatch in targets]
        self._keeps_outputs = return_outputs
        self._reduces = reduce_grads and self.program.backward
        self._check_batch()
        self._reductions.start()
        if not self._dynamic:
            self._infer_shapes()
        for item in self._items:
            self._run_item(item)
        self._messages.finish()
        if self._reduces:
            self._reduce_rest()
        result = self._result
        self._reset()
        return result

    def module(self, action: Action) -> nn.Module:
        """The module of the stage of an action, for handlers."""
        return self._modules[action.pipe.index, action.stage]

    def _cut(self, tensors: Sequence[Tensor | Sequence[Tensor]], what: str) -> list[tuple[Tensor, ...]]:
        return list(zip(*(self._microbatches(tensor, what) for tensor in tensors), strict=True))

    def _microbatches(self, batch: Tensor | Sequence[Tensor], what: str) -> Sequence[Tensor]:
        count = self.program.microbatches
        if isinstance(batch, (list, tuple)):
            if len(batch) != count or not all(isinstance(tensor, Tensor) for tensor in batch):
                raise RuntimeMisuse(f"{what} is a sequence of {len(batch)}, but must be of {count} tensors, one a microbatch")
            if not self._dynamic and len({TensorInfo.of(tensor) for tensor in batch}) > 1:
                raise RuntimeMisuse(f"{what} has microbatches of several shapes, which needs dynamic_shapes")
            return batch
        if not isinstance(batch, Tensor):
            raise RuntimeMisuse(f"{what} is {type(batch).__name__}, but must be tensors")
        if batch.ndim <= self._split_dim or batch.shape[self._split_dim] % count != 0:
            raise RuntimeMisuse(
                f"{what} of shape {list(batch.shape)} cannot be cut into {count} equal microbatches "
                f"along dimension {self._split_dim}"
            )
        return batch.tensor_split(count, self._split_dim)

    def _check_batch(self) -> None:
        for pipe, stage in self._hosted():
            if not pipe.sources(stage) and self._args is None:
                raise RuntimeMisuse(f"rank {self.rank} has a first stage of pipe `{pipe.name}`: give step() the batch")
            if self.program.backward and self._is_last(pipe, stage) and self._targets is None:
                raise RuntimeMisuse(f"rank {self.rank} has a last stage of pipe `{pipe.name}`: give step() the target")

    def _infer_shapes(self) -> None:
        """What goes along each edge, told by each stage to all ranks when the shape of a microbatch is new."""
        first = tuple(map(TensorInfo.of, self._args[0])) if self._args is not None else ()
        # Ranks between the ends follow the ends, which know.
        known = self._agree(self._shapes_for == (first, "known"), self._group)
        if known:
            return
        for pipe in self.program.pipes:
            for stage, home in enumerate(pipe.rank_of_stage):
                infos: list[object] = [None]
                if home == self.rank:
                    infos[0] = self._infer_stage(pipe, stage, first)
                if dist.is_initialized():
                    dist.broadcast_object_list(infos, self._groups.world(home), group=self._group, device=self._device)
                if isinstance(infos[0], str):
                    raise RuntimeMisuse(infos[0])
                self._shapes[pipe.index, stage] = infos[0]  # type: ignore[assignment]
        self._shapes_for = (first, "known")

    def _agree(self, known: bool, group: dist.ProcessGroup | None) -> bool:
        """Whether it is so on all ranks of a group."""
        if not dist.is_initialized():
            return known
        vote = torch.tensor([int(known)], device=self._device)
        dist.all_reduce(vote, op=dist.ReduceOp.MIN, group=group)
        return bool(vote.item())

    def _infer_stage(self, pipe: Pipe, stage: int, first: Sequence[TensorInfo]) -> object:
        """The outputs of a stage, or what is wrong: all ranks then stop together."""
        sources = pipe.sources(stage)
        inputs = [info for source in sources for info in self._shapes[pipe.index, source]] if sources else list(first)
        sharded = self._sharded.get((pipe.index, stage))
        try:
            return infer(
                self._modules[pipe.index, stage],
                inputs,
                self._device,
                f"stage {stage}",
                really=sharded is not None,
            )
        except RuntimeMisuse as error:
            return f"rank {self.rank}: {error}"

    # Items.

    def _run_item(self, item: tuple[Action, ...]) -> None:
        if item[0].kind.is_message:
            self._messages.post(item)
            return
        for action in item:
            self._perform(action)

    def _perform(self, action: Action) -> None:
        letters = action.kind.letters
        if letters in _ONCE_A_BATCH and letters not in self._own_handlers and not self._reduces:
            return
        if not self._profile:
            self._handlers[letters](action)
            return
        with torch.profiler.record_function(str(action)):
            self._handlers[letters](action)

    def _performers(self) -> dict[str, Handler]:
        """What performs actions, by their letters."""
        return {
            "F": self._forward,
            "B": self._backward,
            "I": self._backward_input,
            "W": self._backward_weight,
            "R": self._recompute,
            "RELEASE_OUT": self._release_output,
            "RELEASE_IN": self._release_input,
            "OFFLOAD": self._offload,
            "RELOAD": self._reload,
            "UNSHARD": self._unshard,
            "RESHARD": self._reshard,
            **dict.fromkeys(_REDUCES, self.reduce),
            "STEP": self._step_optimizer,
            "VALIDATE": self._validate_step,
        }

    @staticmethod
    def _key(action: Action) -> Key:
        return action.pipe.index, action.stage, action.microbatch

    # Forward.

    def _forward(self, action: Action) -> None:
        pipe, stage, microbatch = action.pipe, action.stage, action.microbatch
        key = self._key(action)
        sources = pipe.sources(stage)
        if sources:
            takes = {source: (pipe.index, source, stage, microbatch) for source in sources}
            inputs = {source: self._leaves(self._messages.take(edge)) for source, edge in takes.items()}
        else:
            assert self._args is not None
            inputs = {-1: self._args[microbatch]}
        held = Held(inputs, (), ())
        recomputed = key in self._marked["R"]
        if self.program.backward:
            if place := self._sharded.get(key[:2]):
                place.before_forward()
            held.random = RandomState(self._device) if recomputed else None
            held.memory = self._new_memory(action) if key in self._marked["OFFLOAD"] else None
            self._held[key] = held
            self._result.peak_activations = max(self._result.peak_activations, len(self._held))
        watched = held.memory.watched() if held.memory is not None else nullcontext()
        with torch.set_grad_enabled(self.program.backward and not recomputed), watched:
            outputs = self._call(action, held)
            held.infos = self._infos(action, outputs)
            for edge in edges_from(pipe, stage, microbatch):
                self._messages.lay_down(edge, tuple(tensor.detach() for tensor in outputs))
            outputs = self._finish(action, outputs)
        if not recomputed:
            held.outputs = outputs

    def _call(self, action: Action, held: Held) -> tuple[Tensor, ...]:
        return as_tensors(self.module(action)(*held.arguments()), f"stage {action.stage}")

    def _leaves(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(
            tensor.detach().requires_grad_(self.program.backward and TensorInfo.of(tensor).has_gradient)
            for tensor in tensors
        )

    def _infos(self, action: Action, outputs: tuple[Tensor, ...]) -> tuple[TensorInfo, ...]:
        """What the outputs of an action are, which the other ranks expect."""
        if self._dynamic:
            return tuple(map(TensorInfo.of, outputs))
        expected = self._shapes[action.pipe.index, action.stage]
        if len(outputs) != len(expected) or not all(map(TensorInfo.fits, expected, outputs)):
            found = ", ".join(str(TensorInfo.of(tensor)) for tensor in outputs)
            raise RuntimeMisuse(f"rank {self.rank}, {action}: gave {found}, but {', '.join(map(str, expected))} is expected")
        return expected

    def _finish(self, action: Action, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """At the last stage: the loss takes the place of the outputs."""
        if not self._is_last(action.pipe, action.stage):
            return outputs
        if self._keeps_outputs:
            self._result.outputs[action.microbatch] = tuple(tensor.detach() for tensor in outputs)
        if self._loss_fn is None or self._targets is None:
            return outputs
        loss = self._loss_fn(outputs[0] if len(outputs) == 1 else outputs, self._targets[action.microbatch])  # type: ignore[arg-type]
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise RuntimeMisuse(f"rank {self.rank}, {action}: loss_fn must give a tensor with one number")
        self._result.losses[action.microbatch] = loss.detach()
        return (loss / self.program.microbatches if self._scale_grads else loss,)

    # Backward.

    def _output_gradients(self, action: Action, held: Held) -> list[Tensor | None]:
        pipe, stage, microbatch = action.pipe, action.stage, action.microbatch
        readers = pipe.readers(stage)
        if not readers:
            return [torch.ones_like(tensor) for tensor in held.outputs]
        wanted = [i for i, info in enumerate(held.infos) if info.has_gradient]
        gradients: list[Tensor | None] = [None] * len(held.outputs)
        for reader in readers:
            taken = self._messages.take((pipe.index, reader, stage, microbatch))
            for i, tensor in zip(wanted, taken, strict=True):
                before = gradients[i]
                gradients[i] = tensor if before is None else before + tensor
        return gradients

    def _hand_back(self, action: Action, held: Held) -> None:
        """Lays down the gradients of the inputs for the stages that made them."""
        for source, inputs in held.inputs.items():
            if source >= 0:
                gradients = tuple(
                    torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
                    for tensor in inputs
                    if tensor.requires_grad
                )
                self._messages.lay_down((action.pipe.index, action.stage, source, action.microbatch), gradients)

    def _backward(self, action: Action) -> None:
        held = self._held[self._key(action)].ready(action)
        _split.backward(held.outputs, self._output_gradients(action, held))
        self._hand_back(action, held)
        del self._held[self._key(action)]

    def _backward_input(self, action: Action) -> None:
        held = self._held[self._key(action)].ready(action)
        gradients = self._output_gradients(action, held)
        held.weights = _split.backward_input(self.module(action), held.arguments(), held.outputs, gradients)
        self._hand_back(action, held)

    def _backward_weight(self, action: Action) -> None:
        held = self._held.pop(self._key(action)).ready(action)
        assert held.weights is not None
        held.weights()

    # What schedules declare, by the names of std.pp.

    def _recompute(self, action: Action) -> None:
        held = self._held[self._key(action)].ready(action)
        assert held.random is not None
        with torch.enable_grad(), held.random.again():
            held.outputs = self._finish(action, self._call(action, held))

    def _release_output(self, action: Action) -> None:
        for edge in edges_from(action.pipe, action.stage, action.microbatch):
            self._messages.release(action, edge)
        if held := self._held.get(self._key(action)):
            held.release_outputs()

    def _release_input(self, action: Action) -> None:
        # The backward has let go of what came from other stages; the first stage reads the batch.
        if self._key(action) in self._held:
            raise RuntimeMisuse(f"{action} releases what the backward has still to read")
        if action.stage == 0 and self._args is not None:
            self._args[action.microbatch] = ()

    def _new_memory(self, action: Action) -> Memory:
        module = self.module(action)
        if sharded := self._sharded.get((action.pipe.index, action.stage)):
            sharded.gather()  # It is the whole weights that stay.
        given = self._args[action.microbatch] if self._args is not None else ()
        wanted = (self._targets[action.microbatch],) if self._targets is not None else ()
        return Memory([*module.parameters(), *module.buffers(), *given, *wanted])

    def _offload(self, action: Action) -> None:
        held = self._held[self._key(action)]
        assert held.memory is not None
        held.release_outputs()
        held.memory.offload(held.arguments())

    def _reload(self, action: Action) -> None:
        memory = self._held[self._key(action)].memory
        if memory is None or not memory.is_away:
            raise RuntimeMisuse(f"{action} finds nothing on the host")
        memory.reload()

    def _unshard(self, action: Action) -> None:
        self._sharded[action.pipe.index, action.stage].unshard()

    def _reshard(self, action: Action) -> None:
        self._sharded[action.pipe.index, action.stage].reshard()

    def reduce(self, action: Action) -> None:
        """Sums the gradients of an action's stage over those who do it together: what REDUCE_GRAD, REDUCE_EMBEDDING and
        REDUCE_REPLICAS do, for handlers of other names."""
        sharded = self._sharded.get((action.pipe.index, action.stage))
        if sharded is not None and str(action.kind.collective).startswith("outside "):
            sharded.reduce()
        else:
            self._reductions.perform(action)

    def _reduce_rest(self) -> None:
        """Sums what the program has no action for, once a step."""
        if self._is_reduced:
            return
        self._is_reduced = True
        for sharded in self._sharded.values():
            sharded.reduce()
        self._reductions.finish()

    def _step_optimizer(self, action: Action) -> None:
        assert self._optimizer is not None
        self._reduce_rest()
        self._optimizer.step()
        self._result.stepped = True

    def _validate_step(self, action: Action) -> None:
        assert self._optimizer is not None
        valid = self._optimizer.gradients_are_finite() if self._validate is None else self._validate()
        # Copies of the pipeline have other pieces of the gradients where stages are sharded.
        for group in (self._group, *self._outside.values()):
            valid = self._agree(bool(valid), group)
        self._result.stepped = bool(valid)
        self._optimizer.settle(self._result.stepped)

    # Messages.

    def _room(self, action: Action) -> Sequence[TensorInfo]:
        """What a receive gets."""
        assert action.peer is not None
        forward = action.peer < action.stage
        infos = self._shapes[action.pipe.index, action.peer if forward else action.stage]
        return [info for info in infos if forward or info.has_gradient]


_REDUCES = ("REDUCE_GRAD", "REDUCE_EMBEDDING", "REDUCE_REPLICAS")
_ONCE_A_BATCH = (*_REDUCES, "STEP", "VALIDATE")
"""Left out where the gradients of several steps are added up."""
