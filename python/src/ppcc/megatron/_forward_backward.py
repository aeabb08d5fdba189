"""Runs a program instead of Megatron's forward_backward_pipelining functions."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import schedules
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.utils import get_model_config
from torch import nn

from .._program import Program
from ..torch._channels import Channels
from ..torch._errors import UsageError
from ..torch._fits import check_size
from ..torch._groups import Groups, check_same_program, together
from ..torch._measure import NamedRanges, Observer
from ..torch._reductions import Reductions
from ._data import Microbatches
from ._placement import Programs, check_programs
from ._plan import Plan
from ._step import Call, Step, call_with_known, device_of, timed


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
        self._plans: dict[int, Plan] = {}
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
            call = Call(
                config=config,
                chunks=chunks,
                data=[
                    Microbatches.of(iterator, plan.order(chunk), num_microbatches)
                    for chunk, iterator in enumerate(data_iterator if isinstance(data_iterator, list) else [data_iterator])
                ],
                shapes=shapes,
                headers=self._own_groups(groups.pp).new_group(tuple(range(plan.program.num_ranks)), "gloo") if config.variable_seq_lengths else None,
                groups=groups,
                forward_step_func=forward_step_func,
                collect_non_loss_data=collect_non_loss_data,
                first_val_step=first_val_step,
                forward_only=forward_only,
            )
            step = Step(plan, call, self._channels[plan.program._stated_digest], observer)
            with timed(config, "forward-backward", level=1, barrier=config.barrier_with_L1_time):
                step.run()
                self.peak_activations = step.peak_activations
                if not forward_only:
                    self._finalize(step, force_all_reduce)
        return step.losses(across_job=not plan.placement.is_default_placement)

    def _observed(self, plan: Plan, config: Any, chunks: list[nn.Module], group: dist.ProcessGroup, shapes: Any) -> AbstractContextManager[Observer]:
        """A context around a training step, with who observes it; it may change the program."""
        return contextlib.nullcontext(self._observer)

    def _own_groups(self, group: dist.ProcessGroup) -> Groups:
        if self._groups is None:
            self._groups = Groups(group, dist.get_world_size(group))
        return self._groups

    def _link(self, plan: Plan, config: Any, chunks: list[nn.Module], group: dist.ProcessGroup, forward_only: bool = False) -> None:
        """Checks a program, and opens its channels, when it is first used. All ranks call it together."""
        groups, digest = self._own_groups(group), plan.program._stated_digest
        if (checked := (digest, *map(id, chunks))) not in self._checked and not forward_only:
            with together(group):
                plan.check_modules(config, chunks)
            self._checked.add(checked)
        if digest not in self._channels:
            check_same_program(plan.program, group)
            self._channels[digest] = Channels(plan.program, plan.rank, groups, device_of(chunks))

    def _plan(self, microbatches: int, group: dist.ProcessGroup) -> Plan:
        if microbatches not in self._plans:
            program = self._programs if isinstance(self._programs, Program) else self._programs(microbatches)
            if program.num_microbatches != microbatches:
                raise UsageError(
                    f"the program is for {program.num_microbatches} microbatches, but Megatron runs {microbatches}: give a "
                    "function that makes the program for a number of microbatches"
                )
            check_size(program, "the pipeline", ranks=group.size())
            self._plans[microbatches] = Plan(program, group.rank())
        return self._plans[microbatches]

    def _finalize(self, step: Step, force_all_reduce: bool | None) -> None:
        """Reduces gradients after the last backward, as Megatron does: over copies, then over stages that share weights."""
        config, chunks, groups = step.config, step.call.chunks, step.call.groups
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
            call_with_known(
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
