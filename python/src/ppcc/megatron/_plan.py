"""A program on a rank of Megatron: what its steps need, and whether Megatron's settings and chunks allow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch import nn

from .._program import Action, Program
from ..torch import _split
from ..torch._errors import UsageError
from ..torch._fits import check_chain, check_messages
from ..torch._stash import stage_key_of
from ..torch._unsupported_stages import UNSUPPORTED_WRAPPERS, check_stage, has_multi_grad_hook
from ._grad_sync import hook_maker
from ._placement import Placement

# By default Megatron does these with orders of its own.
_UNSUPPORTED = {
    "overlap_moe_expert_parallel_comm": "it interleaves the layers of two microbatches by a schedule of its own",
    "hybrid_context_parallel": "it has a schedule of its own",
    "fine_grained_activation_offloading": "it counts on the order of Megatron's schedules",
    "mtp_standalone": "its stages hand over more than one tensor",
}
# What the end of a step does: there Megatron reduces over copies first.
AT_END = ("REDUCE_EMBEDDING", "REDUCE_REPLICAS", "RELEASE_OUT", "RELEASE_IN")
_UNSUPPORTED_WRAPPERS = dict.fromkeys(UNSUPPORTED_WRAPPERS, "wrap chunks in megatron.core.distributed.DistributedDataParallel")


class Plan:
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
        self.last_gradient = {self.chunk(action): (action.stage, action.microbatch) for action in self.actions if action.op in ("B", "W")}
        """By chunk, the key of the last action that adds gradients of its weights."""
        self.reduces = {self.chunk(action) for action in self.actions if action.op == "REDUCE_GRAD"}
        self.in_flight = self._in_flight()
        self.unchecked = {stage_key_of(action) for action in self.actions if action.op == "I"}
        """The stages whose backward is split, and whose graph has not been checked yet."""
        self._check_program()

    def chunk(self, action: Action) -> int:
        return self.chunk_of[stage_key_of(action)]

    def order(self, chunk: int) -> list[int]:
        """The microbatches of a chunk in the order of its forwards."""
        return [action.microbatch for action in self.actions if action.op == "F" and self.chunk(action) == chunk]

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
            if not kind.is_message and mnemonic not in ("F", "B", "I", "W", "REDUCE_GRAD", *AT_END):
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
        inputs, weights = ([a.microbatch for a in self.actions if a.op == op and self.chunk(a) == chunk] for op in ("I", "W"))
        if inputs != weights:
            raise UsageError(
                "TransformerEngine does the W of a layer in the order of its I, but the program in another: "
                f"chunk {chunk} of rank {self.rank}"
            )
