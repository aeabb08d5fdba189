"""Executes the list of a rank on torch.distributed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .._program import Action, Pipe, Program
from . import _split
from ._errors import RuntimeMisuse
from ._shapes import TensorInfo, as_tensors, infer

LossFunction = Callable[[Tensor, Tensor], Tensor]
Handler = Callable[[Action], None]
Edge = tuple[int, int, int, int]
"""Pipe, from stage, to stage, microbatch."""


@dataclass(slots=True)
class StepResult:
    """What a rank knows after a step."""

    losses: dict[int, Tensor] = field(default_factory=dict)
    """By microbatch, on the ranks of last stages; detached."""
    outputs: dict[int, tuple[Tensor, ...]] = field(default_factory=dict)
    """By microbatch, of the last stages, when they were asked for; detached."""
    peak_activations: int = 0
    """The most microbatches, counted stage by stage, whose backward was not done."""

    @property
    def loss(self) -> Tensor | None:
        """The mean of the losses of this rank's microbatches; None where there are none."""
        return torch.stack(list(self.losses.values())).mean() if self.losses else None


@dataclass(slots=True)
class _Held:
    """What is kept from the forward of a stage and microbatch."""

    inputs: dict[int, tuple[Tensor, ...]]
    """By the stage that made them; leaves of the graph."""
    outputs: tuple[Tensor, ...]
    weights: Callable[[], None] | None = None
    """What W has to do."""


@dataclass(slots=True)
class _Receive:
    tensors: tuple[Tensor, ...]
    works: list[dist.Work]


class Runtime:
    """Runs a program's list of this rank, step by step.

    `stages` are the modules of the stages that live on this rank, by stage number; in a program with several pipes
    whose stages differ, by `(pipe name, stage number)`. A stage takes the outputs of the stages that it reads, one
    argument a tensor, and gives a tensor or several. The stages of two pipes with one number are replicas: their
    weights begin equal (those of the lowest rank) and their gradients are summed over their ranks.

    `loss_fn(output, target)` is called at the last stages. With `scale_grads` the gradients are those of the mean of
    all microbatches' losses, without it those of their sum. `split_dim` is the dimension along which batches are cut
    into microbatches. `handlers` run actions of kinds that a schedule declared, by their letters.

    Every rank of `group` makes its Runtime and calls step() together. Raises RuntimeMisuse when program, stages and
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
        profile: bool = False,
    ) -> None:
        self.program = program
        self._group = group
        self._handlers = {**self._compute_handlers(), **(handlers or {})}
        self._loss_fn = loss_fn
        self._scale_grads = scale_grads
        self._split_dim = split_dim
        self._profile = profile
        self.rank = self._own_rank()
        self._modules = self._assign(stages)
        self._device = self._find_device(device)
        self._check_program()
        self._items = [group_.actions for group_ in program.groups(self.rank)]
        self._shapes: dict[tuple[int, int], tuple[TensorInfo, ...]] = {}
        self._shapes_for: tuple[object, ...] = ()
        self._reductions = self._connect_replicas()
        self._connect()
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

    def _check_program(self) -> None:
        program = self.program
        for action in program.actions[self.rank]:
            if action.kind.is_compute and action.kind.letters not in self._handlers:
                raise RuntimeMisuse(f"nothing runs `{action.kind.letters}`: give the Runtime a handler for it")
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

    def _global(self, rank: int) -> int:
        return rank if self._group is None else dist.get_global_rank(self._group, rank)

    def _connect_replicas(self) -> list[tuple[dist.ProcessGroup, list[nn.Parameter]]]:
        """Makes the weights of replicas equal, and the groups over which their gradients are summed."""
        homes: dict[int, list[int]] = defaultdict(list)
        for pipe in self.program.pipes:
            for stage, rank in enumerate(pipe.rank_of_stage):
                if rank not in homes[stage]:
                    homes[stage].append(rank)
        groups: dict[tuple[int, ...], dist.ProcessGroup] = {}
        reductions: dict[tuple[int, ...], list[nn.Parameter]] = defaultdict(list)
        for stage, ranks in sorted(homes.items()):
            key = tuple(sorted(ranks))
            if len(key) == 1:
                continue
            if key not in groups:  # All ranks make all groups, in one order.
                made = dist.new_group([self._global(rank) for rank in key])
                groups[key] = cast(dist.ProcessGroup, made)  # On other ranks a mark that says so.
            if self.rank not in key:
                continue
            module = next(m for (_, number), m in self._modules.items() if number == stage)
            for tensor in [*module.parameters(), *module.buffers()]:
                dist.broadcast(tensor.data, self._global(key[0]), group=groups[key])
            reductions[key] += [weight for weight in module.parameters() if weight.requires_grad]
        return [(groups[key], weights) for key, weights in reductions.items()]

    def _connect(self) -> None:
        """Opens connections where that is done as messages come, in an order in which no rank waits for itself."""
        if self._device.type != "cuda":
            return
        for pair in self.program.preconnect:
            if self.rank in pair:
                peer = self._global(pair[0] + pair[1] - self.rank)
                token = torch.zeros(1, device=self._device)
                post = dist.send if self.rank == pair[0] else dist.recv
                post(token, peer, group=self._group)

    # A step.

    def _reset(self) -> None:
        self._result = StepResult()
        self._held: dict[tuple[int, int, int], _Held] = {}
        self._here: dict[Edge, tuple[Tensor, ...]] = {}
        self._arriving: dict[Edge, _Receive] = {}
        self._sends: list[dist.Work] = []
        self._sent: list[tuple[Tensor, ...]] = []
        self._args: list[tuple[Tensor, ...]] | None = None
        self._targets: list[Tensor] | None = None
        self._keeps_outputs = False

    def step(
        self,
        *args: Tensor,
        target: Tensor | None = None,
        reduce_grads: bool = True,
        return_outputs: bool = False,
    ) -> StepResult:
        """Runs all microbatches of a batch forward and, unless the program is forward-only, backward.

        `args` are needed on the ranks of first stages, `target` on those of last stages: whole batches, of which each
        pipe takes its microbatches. Gradients are added to `grad`; to add up those of several steps, reduce them over
        replicas in the last one only (`reduce_grads=False` before).
        """
        self._reset()
        self._args = self._cut(args, "the batch") if args else None
        targets = self._cut((target,), "the target") if target is not None else None
        self._targets = None if targets is None else [microbatch[0] for microbatch in targets]
        self._keeps_outputs = return_outputs
        self._check_batch()
        self._infer_shapes()
        for item in self._items:
            self._run_item(item)
        for work in self._sends:
            work.wait()
        if reduce_grads and self.program.backward:
            self._reduce()
        result = self._result
        self._reset()
        return result

    def _cut(self, tensors: Sequence[Tensor], what: str) -> list[tuple[Tensor, ...]]:
        count = self.program.microbatches
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise RuntimeMisuse(f"{what} is {type(tensor).__name__}, but must be tensors")
            if tensor.ndim <= self._split_dim or tensor.shape[self._split_dim] % count != 0:
                raise RuntimeMisuse(
                    f"{what} of shape {list(tensor.shape)} cannot be cut into {count} equal microbatches "
                    f"along dimension {self._split_dim}"
                )
        return list(zip(*(tensor.tensor_split(count, self._split_dim) for tensor in tensors), strict=True))

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
        known = self._agree(self._shapes_for == (first, "known"))
        if known:
            return
        for pipe in self.program.pipes:
            for stage, home in enumerate(pipe.rank_of_stage):
                infos: list[object] = [None]
                if home == self.rank:
                    infos[0] = self._infer_stage(pipe, stage, first)
                if dist.is_initialized():
                    dist.broadcast_object_list(infos, self._global(home), group=self._group, device=self._device)
                if isinstance(infos[0], str):
                    raise RuntimeMisuse(infos[0])
                self._shapes[pipe.index, stage] = infos[0]  # type: ignore[assignment]
        self._shapes_for = (first, "known")

    def _agree(self, known: bool) -> bool:
        if not dist.is_initialized():
            return known
        vote = torch.tensor([int(known)], device=self._device)
        dist.all_reduce(vote, op=dist.ReduceOp.MIN, group=self._group)
        return bool(vote.item())

    def _infer_stage(self, pipe: Pipe, stage: int, first: Sequence[TensorInfo]) -> object:
        """The outputs of a stage, or what is wrong: all ranks then stop together."""
        sources = pipe.sources(stage)
        inputs = [info for source in sources for info in self._shapes[pipe.index, source]] if sources else list(first)
        try:
            return infer(self._modules[pipe.index, stage], inputs, self._device, f"stage {stage}")
        except RuntimeMisuse as error:
            return f"rank {self.rank}: {error}"

    # Items.

    def _run_item(self, item: tuple[Action, ...]) -> None:
        if item[0].kind.is_compute:
            for action in item:
                self._run_compute(action)
        elif len(item) == 1:
            self._post(item[0])
        else:
            self._post_batch(item)

    def _run_compute(self, action: Action) -> None:
        handler = self._handlers[action.kind.letters]
        if not self._profile:
            handler(action)
            return
        with torch.profiler.record_function(str(action)):
            handler(action)

    def _compute_handlers(self) -> dict[str, Handler]:
        return {
            "F": self._forward,
            "B": self._backward,
            "I": self._backward_input,
            "W": self._backward_weight,
        }

    def _forward(self, action: Action) -> None:
        pipe, stage, microbatch = action.pipe, action.stage, action.microbatch
        sources = pipe.sources(stage)
        if sources:
            inputs = {source: self._leaves(self._take((pipe.index, source, stage, microbatch))) for source in sources}
        else:
            assert self._args is not None
            inputs = {-1: self._args[microbatch]}
        arguments = [tensor for source in sorted(inputs) for tensor in inputs[source]]
        with torch.set_grad_enabled(self.program.backward):
            outputs = as_tensors(self._modules[pipe.index, stage](*arguments), f"stage {stage}")
            self._check_outputs(action, outputs)
            self._hand_over(pipe, stage, pipe.readers(stage), microbatch, tuple(t.detach() for t in outputs))
            if self._is_last(pipe, stage):
                outputs = self._finish(action, outputs)
        if self.program.backward:
            self._held[pipe.index, stage, microbatch] = _Held(inputs, outputs)
            self._result.peak_activations = max(self._result.peak_activations, len(self._held))

    def _leaves(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(
            tensor.detach().requires_grad_(self.program.backward and TensorInfo.of(tensor).has_gradient)
            for tensor in tensors
        )

    def _check_outputs(self, action: Action, outputs: tuple[Tensor, ...]) -> None:
        expected = self._shapes[action.pipe.index, action.stage]
        if len(outputs) != len(expected) or not all(map(TensorInfo.fits, expected, outputs)):
            found = ", ".join(str(TensorInfo.of(tensor)) for tensor in outputs)
            raise RuntimeMisuse(f"rank {self.rank}, {action}: gave {found}, but {', '.join(map(str, expected))} is expected")

    def _finish(self, action: Action, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """At the last stage: the loss takes the place of the outputs."""
        if self._keeps_outputs:
            self._result.outputs[action.microbatch] = tuple(tensor.detach() for tensor in outputs)
        if self._loss_fn is None or self._targets is None:
            return outputs
        loss = self._loss_fn(outputs[0] if len(outputs) == 1 else outputs, self._targets[action.microbatch])  # type: ignore[arg-type]
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise RuntimeMisuse(f"rank {self.rank}, {action}: loss_fn must give a tensor with one number")
        self._result.losses[action.microbatch] = loss.detach()
        return (loss / self.program.microbatches if self._scale_grads else loss,)

    def _hand_over(
        self, pipe: Pipe, stage: int, readers: Iterable[int], microbatch: int, tensors: tuple[Tensor, ...]
    ) -> None:
        """Lays a result down for each stage that reads it; sends take it from there."""
        for reader in readers:
            self._here[pipe.index, stage, reader, microbatch] = tensors

    def _take(self, edge: Edge) -> tuple[Tensor, ...]:
        """What came along an edge; waits for it."""
        receive = self._arriving.pop(edge, None)
        if receive is None:
            return self._here.pop(edge)
        for work in receive.works:
            work.wait()
        return receive.tensors

    def _output_gradients(self, action: Action, held: _Held) -> list[Tensor | None]:
        pipe, stage, microbatch = action.pipe, action.stage, action.microbatch
        readers = pipe.readers(stage)
        if not readers:
            return [torch.ones_like(tensor) for tensor in held.outputs]
        wanted = [i for i, info in enumerate(self._shapes[pipe.index, stage]) if info.has_gradient]
        gradients: list[Tensor | None] = [None] * len(held.outputs)
        for reader in readers:
            for i, tensor in zip(wanted, self._take((pipe.index, reader, stage, microbatch)), strict=True):
                before = gradients[i]
                gradients[i] = tensor if before is None else before + tensor
        return gradients

    def _hand_back(self, action: Action, held: _Held) -> None:
        """Lays down the gradients of the inputs for the stages that made them."""
        for source, inputs in held.inputs.items():
            if source >= 0:
                gradients = tuple(
                    torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
                    for tensor in inputs
                    if tensor.requires_grad
                )
                self._hand_over(action.pipe, action.stage, [source], action.microbatch, gradients)

    def _backward(self, action: Action) -> None:
        held = self._held[action.pipe.index, action.stage, action.microbatch]
        _split.backward(held.outputs, self._output_gradients(action, held))
        self._hand_back(action, held)
        del self._held[action.pipe.index, action.stage, action.microbatch]

    def _backward_input(self, action: Action) -> None:
        held = self._held[action.pipe.index, action.stage, action.microbatch]
        inputs = [tensor for tensors in held.inputs.values() for tensor in tensors]
        module = self._modules[action.pipe.index, action.stage]
        held.weights = _split.backward_input(module, inputs, held.outputs, self._output_gradients(action, held))
        self._hand_back(action, held)

    def _backward_weight(self, action: Action) -> None:
        held = self._held.pop((action.pipe.index, action.stage, action.microbatch))
        assert held.weights is not None
        held.weights()

    # Messages.

    def _message(self, action: Action) -> tuple[Edge, tuple[Tensor, ...]]:
        """The edge of a message, and its tensors: those that are sent, or room for those that come."""
        assert action.peer is not None
        pipe = action.pipe
        if action.kind.is_send:
            edge = (pipe.index, action.stage, action.peer, action.microbatch)
            return edge, tuple(tensor.contiguous() for tensor in self._here.pop(edge))
        edge = (pipe.index, action.peer, action.stage, action.microbatch)
        forward = action.peer < action.stage
        infos = self._shapes[pipe.index, action.peer if forward else action.stage]
        return edge, tuple(info.empty(self._device) for info in infos if forward or info.has_gradient)

    def _post(self, action: Action) -> None:
        edge, tensors = self._message(action)
        post = dist.isend if action.kind.is_send else dist.irecv
        works = [post(tensor, self._peer(action), self._group) for tensor in tensors]
        self._keep(action, edge, tensors, [work for work in works if work is not None])

    def _peer(self, action: Action) -> int:
        assert action.peer_rank is not None
        return self._global(action.peer_rank)

    def _post_batch(self, item: tuple[Action, ...]) -> None:
        messages = [(action, *self._message(action)) for action in item]
        operations = [
            dist.P2POp(dist.isend if action.kind.is_send else dist.irecv, tensor, self._peer(action), self._group)
            for action, _, tensors in messages
            for tensor in tensors
        ]
        works = dist.batch_isend_irecv(operations) if operations else []
        # Gloo gives a work for each tensor, which may be waited for once; NCCL gives one for all.
        by_tensor = len(works) == len(operations)
        first = 0
        for action, edge, tensors in messages:
            self._keep(action, edge, tensors, works[first : first + len(tensors)] if by_tensor else works)
            first += len(tensors)

    def _keep(self, action: Action, edge: Edge, tensors: tuple[Tensor, ...], works: list[dist.Work]) -> None:
        if action.kind.is_send:
            self._sends += works
            self._sent.append(tensors)
        else:
            self._arriving[edge] = _Receive(tensors, works)

    def _reduce(self) -> None:
        for group, weights in self._reductions:
            for weight in weights:
                if weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
                dist.all_reduce(weight.grad, group=group)
