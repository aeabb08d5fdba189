"""Runs a program instead of Megatron's forward_backward_pipelining functions."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import schedules
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.utils import get_model_config
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from .._program import Action, Program
from ..torch import _split
from ..torch._channels import Channels
from ..torch._errors import UsageError
from ..torch._fits import check_chain, check_messages, check_size
from ..torch._groups import Groups, check_same_program, together
from ..torch._measure import NamedRanges, Observer
from ..torch._stash import Key, Stash, key_of
from ..torch._messages import Edge, Messages
from ..torch._reductions import Reductions
from ..torch._shapes import TensorInfo
from ..torch._unsupported_stages import UNSUPPORTED_WRAPPERS, check_graph, check_stage, has_multi_grad_hook
from ._data import Microbatches
from ._grad_sync import GradSync, hook_maker
from ._placement import Placement, Programs, check_programs

# By default Megatron does these with orders of its own.
_UNSUPPORTED = {
    "overlap_moe_expert_parallel_comm": "it interleaves the layers of two microbatches by a schedule of its own",
    "hybrid_context_parallel": "it has a schedule of its own",
    "fine_grained_activation_offloading": "it counts on the order of Megatron's schedules",
    "mtp_standalone": "its stages hand over more than one tensor",
}
# What the end of a step does: there Megatron reduces over copies first.
_AT_END = ("REDUCE_EMBEDDING", "REDUCE_REPLICAS", "RELEASE_OUT", "RELEASE_IN")


_UNSUPPORTED_WRAPPERS = dict.fromkeys(UNSUPPORTED_WRAPPERS, "wrap chunks in megatron.core.distributed.DistributedDataParallel")


class ForwardBackward:
    """Runs programs with the arguments and results of Megatron's forward_backward functions.

    `install` makes `get_forward_backward_func` return one; in a training loop of your own, call it like Megatron's functions.

    Args:
        programs: A program, or a function from a number of microbatches to its program.
        profile: Whether to name actions and messages in the traces of PyTorch's profiler, for `ppcc-profile` and `ppcc-tune`.

    Attributes:
        peak_activations: The largest number of pairs of stage and microbatch that waited for their backward in the last call.

    Examples:
        On each rank, with chunks from `build_chunks` (docs/megatron.md)::

            forward_backward = ppcc.megatron.ForwardBackward(program)
            losses = forward_backward(
                forward_step_func=forward_step,
                data_iterator=[iter(data) for _ in chunks],
                model=chunks,
                num_microbatches=8,
                seq_length=16,
                micro_batch_size=4,
            )
    """

    def __init__(self, programs: Programs, *, profile: bool = False) -> None:
        check_programs(programs)
        self._programs = programs
        self._observer = NamedRanges() if profile else Observer()
        self._plans: dict[int, _Plan] = {}
        self._shared: dict[tuple[int, ...], Reductions | None] = {}
        self._groups: Groups | None = None
        self._channels: dict[str, Channels] = {}
        self._checked: set[tuple[object, ...]] = set()
        self.peak_activations = 0

    def __call__(
        self,
        *,
        forward_step_func: Callable[..., Any],
        data_iterator: Any,
        model: nn.Module | list[nn.Module],
        num_microbatches: int,
        seq_length: int,
        micro_batch_size: int,
        decoder_seq_length: int | None = None,
        forward_only: bool = False,
        collect_non_loss_data: bool = False,
        first_val_step: bool | None = None,
        adjust_tensor_shapes_fn: Callable[..., Any] | None = None,
        p2p_communicator: Any = None,
        pg_collection: Any = None,
        force_all_reduce: bool | None = False,
    ) -> list[Any]:
        """Run a step. The arguments are those of Megatron's functions.

        Args:
            forward_step_func: As for Megatron.
            data_iterator: An iterator; with several chunks, a list of one per chunk.
            model: The chunks of this rank: chunk i is its i-th stage.
            num_microbatches: The number of microbatches, for which there must be a program.
            seq_length: The length of sequences, in tokens.
            micro_batch_size: The number of sequences of a microbatch.
            decoder_seq_length: The length of sequences of the decoder, if it differs.
            forward_only: Whether to run only the forwards.
            collect_non_loss_data: As for Megatron.
            first_val_step: As for Megatron.
            adjust_tensor_shapes_fn: As for Megatron; for ranks with one chunk.
            p2p_communicator: Ignored; the program has its own messages.
            pg_collection: The process groups; by default those of `parallel_state`.
            force_all_reduce: As for Megatron.

        Returns:
            The results of the loss function by microbatch: with Megatron's own placement on the rank of the last stage (an empty
            list on others), with other placements on all ranks.

        Raises:
            UsageError: Megatron's settings, the chunks or the data do not fit the program.
        """
        chunks = model if isinstance(model, list) else [model]
        config = get_model_config(chunks[0])
        groups = _groups(pg_collection)
        plan = self._plan(num_microbatches, groups.pp)
        plan.check(config, chunks, data_iterator)
        if adjust_tensor_shapes_fn is not None and len(chunks) > 1:
            raise UsageError("adjust_tensor_shapes_fn is for ranks with one chunk")
        self._link(plan, config, chunks, groups.pp, forward_only)
        length = (decoder_seq_length or seq_length) // groups.cp.size()
        if config.sequence_parallel:
            length //= groups.tp.size()
        shapes = _shapes((length, micro_batch_size, config.hidden_size), adjust_tensor_shapes_fn)
        with contextlib.nullcontext(self._observer) if forward_only else self._observed(plan, config, chunks, groups.pp, shapes) as observer:
            plan = self._plans[num_microbatches]
            step = _Step(
                plan=plan,
                config=config,
                chunks=chunks,
                data=[
                    Microbatches.of(iterator, plan.order(chunk), num_microbatches)
                    for chunk, iterator in enumerate(data_iterator if isinstance(data_iterator, list) else [data_iterator])
                ],
                shapes=shapes,
                headers=self._own_groups(groups.pp).new_group(tuple(range(plan.program.num_ranks)), "gloo") if config.variable_seq_lengths else None,
                channels=self._channels[plan.program._stated_digest],
                groups=groups,
                forward_step_func=forward_step_func,
                collect_non_loss_data=collect_non_loss_data,
                first_val_step=first_val_step,
                forward_only=forward_only,
                observer=observer,
            )
            with _timed(config, "forward-backward", level=1, barrier=config.barrier_with_L1_time):
                step.run()
                self.peak_activations = step.peak_activations
                if not forward_only:
                    self._finalize(step, force_all_reduce)
        return step.losses(across_job=not plan.placement.is_default_placement)

    def _observed(self, plan: _Plan, config: Any, chunks: list[nn.Module], group: dist.ProcessGroup, shapes: Any) -> AbstractContextManager[Observer]:
        """A context around a training step, with who observes it; it may change the program."""
        return contextlib.nullcontext(self._observer)

    def _own_groups(self, group: dist.ProcessGroup) -> Groups:
        if self._groups is None:
            self._groups = Groups(group, dist.get_world_size(group))
        return self._groups

    def _link(self, plan: _Plan, config: Any, chunks: list[nn.Module], group: dist.ProcessGroup, forward_only: bool = False) -> None:
        """Checks a program, and opens its channels, when it is first used. All ranks call it together."""
        groups, digest = self._own_groups(group), plan.program._stated_digest
        if (checked := (digest, *map(id, chunks))) not in self._checked and not forward_only:
            with together(group):
                plan.check_modules(config, chunks)
            self._checked.add(checked)
        if digest not in self._channels:
            check_same_program(plan.program, group)
            self._channels[digest] = Channels(plan.program, plan.rank, groups, _device(chunks))

    def _plan(self, microbatches: int, group: dist.ProcessGroup) -> _Plan:
        if microbatches not in self._plans:
            program = self._programs if isinstance(self._programs, Program) else self._programs(microbatches)
            if program.num_microbatches != microbatches:
                raise UsageError(
                    f"the program is for {program.num_microbatches} microbatches, but Megatron runs {microbatches}: give a "
                    "function that makes the program for a number of microbatches"
                )
            check_size(program, "the pipeline", ranks=group.size())
            self._plans[microbatches] = _Plan(program, group.rank())
        return self._plans[microbatches]

    def _finalize(self, step: _Step, force_all_reduce: bool | None) -> None:
        """Reduces gradients after the last backward, as Megatron does: over copies, then over stages that share weights."""
        config, chunks, groups = step.config, step.chunks, step.groups
        if config.finalize_model_grads_func is not None:
            tokens = step.tokens if config.calculate_per_token_loss else None
            if not step.plan.placement.is_default_placement:
                # There the last rank has the tokens, which Megatron sends to the others.
                if tokens is not None:
                    dist.all_reduce(tokens, group=groups.pp)
                groups = copy.copy(groups)
                groups.embd = groups.pos_embd = None
            for chunk, module in step.embeddings.items():
                schedules.finish_embedding_wgrad_compute(config, module, True, groups.tp)
            _call(
                config.finalize_model_grads_func,
                chunks,
                tokens,
                pg_collection=groups,
                force_all_reduce=force_all_reduce,
            )
        key = tuple(map(id, chunks))
        if key not in self._shared:
            self._shared[key] = step.plan.placement.share(chunks, groups.pp, make_equal=False)
        if (shared := self._shared[key]) is not None:
            shared.finish()


class _Plan:
    """The facts about a program that the steps of a rank need."""

    def __init__(self, program: Program, rank: int) -> None:
        self.program = program
        self.placement = Placement(program)
        self.rank = rank
        self.action_groups = [group.actions for group in program.groups(rank)]
        self.places = program.local_stages(rank)
        self.chunk_of = {(pipe.index, stage): chunk for chunk, (pipe, stage) in enumerate(self.places)}
        self.actions = program.actions[rank]
        self.mnemonics = {action.kind.mnemonic for action in self.actions}
        self.has_split_backward = "I" in self.mnemonics
        self.last_gradient = {
            self.chunk(action): (action.stage, action.microbatch)
            for action in self.actions
            if action.op in ("B", "W")
        }
        """By chunk, the key of the last action that adds gradients of its weights."""
        self.reduces = {self.chunk(action) for action in self.actions if action.op == "REDUCE_GRAD"}
        self.in_flight = self._in_flight()
        self.looked_at: set[int] = set()
        """The chunks whose graph has been checked: it can be split."""
        self._check_program()

    def chunk(self, action: Action) -> int:
        return self.chunk_of[action.pipe.index, action.stage]

    def order(self, chunk: int) -> list[int]:
        """The microbatches of a chunk in the order of its forwards."""
        pipe, stage = self.places[chunk]
        return [
            action.microbatch
            for action in self.actions
            if action.op == "F" and (action.pipe.index, action.stage) == (pipe.index, stage)
        ]

    def _in_flight(self) -> dict[int, int]:
        """The maximum number of microbatches in flight, by chunk."""
        now: Counter[int] = Counter()
        most: Counter[int] = Counter()
        for action in self.actions:
            if action.op == "F":
                now[self.chunk(action)] += 1
                most[self.chunk(action)] = max(most[self.chunk(action)], now[self.chunk(action)])
            elif action.op in ("B", "W"):
                now[self.chunk(action)] -= 1
        return dict(most)

    def _check_program(self) -> None:
        program = self.program
        _split.check_version()
        check_chain(program, "Megatron", has_pipes=True)
        for mnemonic in sorted(self.mnemonics):
            kind = next(action.kind for action in self.actions if action.op == mnemonic)
            if not kind.is_message and mnemonic not in ("F", "B", "I", "W", "REDUCE_GRAD", *_AT_END):
                raise UsageError(f"nothing in Megatron is told to do `{mnemonic}` by its schedule")
        check_messages(program)

    def check(self, config: Any, chunks: Sequence[nn.Module], data: Any) -> None:
        """Raises UsageError if Megatron's settings require an order of its own."""
        if len(chunks) != len(self.places):
            raise UsageError(f"rank {self.rank} has {len(self.places)} stages, but the model {len(chunks)} chunks")
        if data is not None and len(chunks) != (len(data) if isinstance(data, list) else 1):
            raise UsageError(f"data_iterator must be a list of {len(chunks)}, one for each chunk")
        for name, reason in _UNSUPPORTED.items():
            if getattr(config, name, False):
                raise UsageError(f"`{name}` does not go with a program: {reason}")
        if getattr(config, "cuda_graph_impl", "none") == "local":
            raise UsageError("`cuda_graph_impl=local` does not go with a program: it counts on Megatron's schedules")
        if self.has_split_backward and config.gradient_accumulation_fusion and not config.delay_wgrad_compute:
            raise UsageError(
                "gradient_accumulation_fusion adds the gradients of weights in `I` and again in `W`: turn it off, use a "
                "program with B, or let TransformerEngine's layers keep W (delay_wgrad_compute)"
            )
        if self.has_split_backward and config.delay_wgrad_compute:
            for chunk in range(len(chunks)):
                self._check_order_of_weights(chunk)
        if len(self.program.pipes) > 1 and getattr(config, "moe_router_enable_expert_bias", False):
            raise UsageError("moe_router_enable_expert_bias counts tokens on one copy of a stage, the program has two")
        if config.pipeline_dtype is None:
            raise UsageError("pipeline_dtype must be set: it is the type of messages")
        self.placement.check_chunks(chunks, self.rank)

    def check_modules(self, config: Any, chunks: Sequence[nn.Module]) -> None:
        """Raises UsageError if the gradients of chunks would be wrong in the order of the program."""
        cuts = self.has_split_backward and not config.delay_wgrad_compute
        shares = len(self.program.pipes) > 1 or self.placement.ties(chunks)
        for (_, stage), chunk in zip(self.places, chunks, strict=True):
            settings = getattr(chunk, "ddp_config", None)
            if shares and getattr(settings, "use_distributed_optimizer", False):
                raise UsageError(
                    f"use_distributed_optimizer leaves each rank a part of the gradients of stage {stage}, before those of weights that "
                    "several stages have are summed: turn it off, use a placement of Megatron's own, or untie the embeddings"
                )
            if cuts and settings is not None and hook_maker(chunk) is None:
                raise UsageError(f"{type(chunk).__name__} reduces gradients while they are computed: use a program with B")
            if cuts and has_multi_grad_hook(chunk):
                raise UsageError(f"stage {stage} has a hook on several weights, which I and W would call twice: use hooks on each, or a program with B")
            check_stage(chunk, f"stage {stage}", has_split_backward=cuts, ignore_package="megatron.core.distributed", unsupported=_UNSUPPORTED_WRAPPERS)
        if cuts and getattr(config, "recompute_granularity", None) is not None:
            raise UsageError(
                "recompute_granularity checkpoints activations, which I and W cannot run: turn it off, use a program with B, or let "
                "TransformerEngine's layers keep W (delay_wgrad_compute)"
            )

    def _check_order_of_weights(self, chunk: int) -> None:
        orders = [
            [a.microbatch for a in self.actions if a.op == mnemonic and self.chunk(a) == chunk]
            for mnemonic in ("I", "W")
        ]
        if orders[0] != orders[1]:
            raise UsageError(
                "TransformerEngine does the W of a layer in the order of its I, but the program in another: "
                f"chunk {chunk} of rank {self.rank}"
            )


@dataclass
class _Step:
    """One call."""

    plan: _Plan
    config: Any
    chunks: list[nn.Module]
    data: list[Any]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    """The shapes of received and of sent outputs."""
    headers: dist.ProcessGroup | None
    """The group of the headers of messages, if their shapes differ."""
    channels: Channels
    groups: Any
    forward_step_func: Callable[..., Any]
    collect_non_loss_data: bool
    first_val_step: bool | None
    forward_only: bool
    observer: Observer
    peak_activations: int = 0
    embeddings: dict[int, Any] = field(default_factory=dict)
    """The modules of last stages that compute the gradients of their embeddings at the end."""

    def __post_init__(self) -> None:
        self.device = _device(self.chunks)
        self._trains = not self.forward_only
        self.tokens = torch.zeros([], dtype=torch.int, device=self.device)
        self._stores: dict[int, list[Any]] = {}
        self._stashes: dict[Key, Stash] = {}
        self._started: Counter[int] = Counter()
        self._messages = Messages(self.channels, self.device, self._receive_specs, self.headers, answered=False, acknowledges={}, observer=self.observer)
        self._sync = GradSync(self.config, self.chunks, self.plan.reduces)
        self._perform: dict[str, Callable[[Action], None]] = {
            "F": self._forward,
            "B": self._backward,
            "I": self._backward_input,
            "W": self._backward_weight,
            "REDUCE_GRAD": lambda action: self._sync.reduce(self.plan.chunk(action)),
            **dict.fromkeys(_AT_END, lambda action: None),
        }

    def run(self) -> None:
        """Runs all items of the rank, or only those of the forward."""
        if not self.forward_only:
            for chunk, (pipe, stage) in enumerate(self.plan.places):
                if stage == pipe.num_stages - 1 and self.config.finalize_model_grads_func is not None:
                    module = schedules.clear_embedding_activation_buffer(self.config, self.chunks[chunk], True)
                    if module is not None:
                        self.embeddings[chunk] = module
            self._sync.disable_grad_sync()
        try:
            with contextlib.nullcontext() if not self.forward_only else torch.no_grad():
                for item in self.plan.action_groups:
                    wanted = tuple(filter(_is_forward, item)) if self.forward_only else item
                    if wanted and wanted[0].kind.is_message:
                        self._post(wanted)
                    else:
                        for action in wanted:
                            with self.observer.runs(self, action):
                                self._perform[action.op](action)
            self._messages.finish()
        finally:  # Else the garbage collector would end them in a later step.
            self._sync.finish()
        for data in self.data:
            if isinstance(data, Microbatches):
                data.finish()

    def losses(self, *, across_job: bool) -> list[Any]:
        """The results of the loss function by microbatch; on the rank of the last stage, with `across_job` on all ranks."""
        stores = self._stores
        if across_job:
            found: list[Any] = [None] * self.plan.program.num_ranks
            dist.all_gather_object(found, tree_map(_to_host, stores), group=self.groups.pp)
            stores = {microbatch: store for there in found for microbatch, store in there.items()}
            stores = tree_map(lambda leaf: leaf.to(self.device) if isinstance(leaf, Tensor) else leaf, stores)
        return [given for microbatch in sorted(stores) for given in stores[microbatch]]

    # Messages.

    def _post(self, item: tuple[Action, ...]) -> None:
        direction = "forward" if _is_forward(item[0]) else "backward"
        with _timed(self.config, f"{direction}-{'send' if item[0].kind.is_send else 'recv'}"):
            self._messages.post(item)

    def _receive_specs(self, action: Action) -> list[TensorInfo]:
        """Type and shape of the tensor of a receive."""
        return [TensorInfo(self.shapes[0 if _is_forward(action) else 1], self.config.pipeline_dtype)]

    def _take(self, edge: Edge, direction: str) -> Tensor:
        with _timed(self.config, f"{direction}-recv"):
            (tensor,) = self._messages.take(edge)
        return tensor

    def _output_gradient(self, action: Action) -> Tensor | None:
        if _is_last(action):
            return None
        return self._take((action.pipe.index, action.stage + 1, action.stage, action.microbatch), "backward")

    def _send_input_gradients(self, action: Action, stash: Stash, gradient: Tensor | None) -> None:
        for tensor in stash.received():
            edge = (action.pipe.index, action.stage, action.stage - 1, action.microbatch)
            self._messages.put(edge, (torch.zeros_like(tensor) if gradient is None else gradient,))

    # Actions.

    def _forward(self, action: Action) -> None:
        pipe, stage, microbatch = action.pipe, action.stage, action.microbatch
        chunk = self.plan.chunk(action)
        input_tensor = None
        if stage > 0:
            received = self._take((pipe.index, stage - 1, stage, microbatch), "forward")
            input_tensor = received.detach().requires_grad_(not self.forward_only)
        is_first = self._started[chunk] == 0
        splits = self.plan.has_split_backward and not self.config.delay_wgrad_compute and not self.forward_only
        with _split.without_donation() if splits else contextlib.nullcontext():
            output, tokens = self._forward_step(action, chunk, input_tensor, is_first)
        if splits and chunk not in self.plan.looked_at and isinstance(output, Tensor):
            check_graph([output], [input_tensor], f"stage {stage}", defers_all=True)
            self.plan.looked_at.add(chunk)
        self._started[chunk] += 1
        self.tokens += tokens.to(self.device)
        if not _is_last(action):
            if not isinstance(output, Tensor):
                raise UsageError(f"rank {self.plan.rank}, {action}: gave {type(output).__name__}, but stages give a tensor")
            if output.dtype != self.config.pipeline_dtype:
                raise UsageError(
                    f"rank {self.plan.rank}, {action}: gave a tensor of {output.dtype}, but pipeline_dtype is {self.config.pipeline_dtype}"
                )
            self._messages.put((pipe.index, stage, stage + 1, microbatch), (output.detach(),))
        if self.forward_only:
            return
        stash = self._stashes[key_of(action)] = Stash({} if input_tensor is None else {stage - 1: (input_tensor,)}, (output,), ())
        if not _is_last(action) and self.config.deallocate_pipeline_outputs:
            # The message has the memory; the backward needs only the place in the graph.
            if self.plan.has_split_backward:
                stash.release_outputs()
            else:
                schedules.deallocate_output_tensor(output, True)
        self.peak_activations = max(self.peak_activations, len(self._stashes))

    def _forward_step(self, action: Action, chunk: int, input_tensor: Tensor | None, is_first: bool) -> Any:
        """Runs Megatron's forward step; returns the output and the number of tokens."""
        return _call(
            schedules.forward_step,
            self.forward_step_func,
            self._data(chunk, action.microbatch),
            self.chunks[chunk],
            self.plan.program.num_microbatches,
            input_tensor,
            self._stores.setdefault(action.microbatch, []) if _is_last(action) else [],
            self.config,
            cp_group_size=self.groups.cp.size(),
            collect_non_loss_data=self.collect_non_loss_data,
            checkpoint_activations_microbatch=self._checkpoints(chunk),
            is_first_microbatch=is_first and bool(self.first_val_step is None or not self.forward_only or self.first_val_step),
            current_microbatch=action.microbatch,
            vp_stage=chunk if len(self.chunks) > 1 else None,
            is_last_stage=_is_last(action),
        )

    def _data(self, chunk: int, microbatch: int) -> Any:
        data = self.data[chunk] if chunk < len(self.data) else None
        if isinstance(data, Microbatches):
            data.seek(microbatch)
        return data

    def _checkpoints(self, chunk: int) -> bool | None:
        """Whether a forward checkpoints activations, if Megatron does so for some microbatches only; else None."""
        kept = self.config.num_microbatches_with_partial_activation_checkpoints
        return None if kept is None else self._started[chunk] % self.plan.in_flight[chunk] >= kept

    def _backward(self, action: Action) -> None:
        stash = self._stashes[key_of(action)]
        with self._adding(action):
            self._send_input_gradients(action, stash, self._backward_step(stash, self._output_gradient(action)))
            self._delayed_weights(action)
        del self._stashes[key_of(action)]

    def _backward_step(self, stash: Stash, gradient: Tensor | None) -> Tensor | None:
        config = self.config
        if self.plan.has_split_backward and config.deallocate_pipeline_outputs:
            config = copy.copy(config)  # Stand-ins have a shape.
            config.deallocate_pipeline_outputs = False
        from megatron.core.utils import get_model_type

        given: Tensor | None = _call(
            schedules.backward_step,
            next(iter(stash.received()), None),
            *stash.outputs,
            gradient,
            model_type=get_model_type(self.chunks[0]),
            config=config,
        )
        return given

    def _backward_input(self, action: Action) -> None:
        stash = self._stashes[key_of(action)]
        gradient = self._output_gradient(action)
        if self.config.delay_wgrad_compute:
            self._send_input_gradients(action, stash, self._backward_step(stash, gradient))
            return
        with _timed(self.config, "backward-compute"):
            (output,) = stash.outputs
            if gradient is None:
                output = output if self.config.grad_scale_func is None else self.config.grad_scale_func(output)
                gradient = torch.ones_like(output)
            # The hooks of Megatron's DistributedDataParallel are to see each weight of the last gradient once, in W.
            is_last = self._is_last_gradient(action)
            stash.weights = _split.backward_input(stash.received(), [output], [gradient], f"stage {action.stage}", defers_all=is_last)
            stash.outputs = ()  # Else they would keep the graph.
        self._send_input_gradients(action, stash, next((tensor.grad for tensor in stash.received()), None))

    def _backward_weight(self, action: Action) -> None:
        stash = self._stashes.pop(key_of(action))
        with self._adding(action), _timed(self.config, "backward-compute"):
            if stash.weights is not None:
                stash.weights()
            else:
                self._delayed_weights(action)

    def _delayed_weights(self, action: Action) -> None:
        """Runs the weight gradients that TransformerEngine's layers have deferred."""
        if self.config.delay_wgrad_compute:
            module: Any
            for module in self.chunks[self.plan.chunk(action)].modules():
                if hasattr(module, "wgrad_store") and hasattr(module, "backward_dw"):
                    module.backward_dw()

    def _adding(self, action: Action) -> contextlib.AbstractContextManager[None]:
        """A context for actions that add gradients of weights; after the last one of a chunk its reduction may start."""
        return self._sync.last(self.plan.chunk(action)) if self._is_last_gradient(action) else contextlib.nullcontext()

    def _is_last_gradient(self, action: Action) -> bool:
        return self.plan.last_gradient[self.plan.chunk(action)] == (action.stage, action.microbatch)


def _device(chunks: list[nn.Module]) -> torch.device:
    return next((weight.device for chunk in chunks for weight in chunk.parameters()), torch.device("cpu"))


def _is_last(action: Action) -> bool:
    return action.stage == action.pipe.num_stages - 1


def _is_forward(action: Action) -> bool:
    """Whether a forward-only program has this action."""
    if action.kind.is_message:
        assert action.peer is not None
        return (action.peer > action.stage) == action.kind.is_send
    return action.op == "F"


def _shapes(shape: tuple[int, ...], adjust: Callable[..., Any] | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if adjust is None:
        return shape, shape
    received, sent = adjust([shape], [shape])
    if len(received) > 1 or len(sent) > 1:
        raise UsageError("adjust_tensor_shapes_fn asks for several tensors a message, but stages give one")
    return tuple((received or [shape])[0]), tuple((sent or [shape])[0])


def _groups(given: Any) -> Any:
    """The process groups that Megatron's own functions use."""
    if given is not None:
        return given
    groups = ProcessGroupCollection()
    groups.tp = parallel_state.get_tensor_model_parallel_group()
    groups.cp = parallel_state.get_context_parallel_group()
    groups.pp = parallel_state.get_pipeline_model_parallel_group()
    groups.embd = parallel_state.get_embedding_group(check_initialized=False)
    groups.pos_embd = parallel_state.get_position_embedding_group(check_initialized=False)
    groups.dp_cp = parallel_state.get_data_parallel_group(with_context_parallel=True, partial_data_parallel=False)
    return groups


def _call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Calls a function with the named arguments that this release of Megatron has."""
    parameters = inspect.signature(function).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return function(*arguments, **{name: value for name, value in named.items() if takes_all or name in parameters})


@contextlib.contextmanager
def _timed(config: Any, name: str, level: int = 2, **options: Any) -> Iterator[None]:
    if config.timers is not None:
        config.timers(name, log_level=level).start(**options)
    yield
    if config.timers is not None:
        config.timers(name).stop()


def _to_host(leaf: Any) -> Any:
    return leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf
