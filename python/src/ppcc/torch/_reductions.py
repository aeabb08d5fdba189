"""Reductions of the gradients of shared weights: replicas, tied weights, data-parallel copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from .._program import Action, Kind, Program
from ._errors import UsageError
from ._groups import Groups
from ._async_reduce import AsyncReducer

StageKey = tuple[int, int]
"""Pipe and stage."""

Tie = Mapping[int, str]
"""The name of a shared weight in each of its stages; negative stages count from the last."""


@dataclass(slots=True)
class _Reduction:
    """Weights that are the same, on all ranks that have them."""

    stage_keys: frozenset[StageKey]
    """In the whole program."""
    ranks: tuple[int, ...]
    weights: list[list[nn.Parameter]]
    """The weights of this rank, each with its places: different Parameters."""
    kind: Kind | None = None
    """The kind whose actions sum them; None for the end of the step."""
    group: dist.ProcessGroup | None = None
    """The process group of `ranks`; None if one rank has all places."""
    missing: set[StageKey] = field(default_factory=set)
    """The places of this rank whose action has not run yet in this step."""


class Reductions:
    """Determines which gradients are summed over which ranks, makes the initial weights equal, and sums gradients.

    All ranks create it together, and sum in the same order.
    """

    def __init__(
        self,
        program: Program,
        rank: int,
        modules: Mapping[StageKey, nn.Module],
        *,
        unreplicated: frozenset[StageKey],
        tied: Sequence[Tie],
        groups: Groups,
        outside: Mapping[str, dist.ProcessGroup],
        mean: bool,
        by_actions: bool = True,
        make_equal: bool = True,
    ) -> None:
        """`unreplicated` are stages without replicas. `outside` are groups that are not part of the program, by name; gradients
        are averaged over them with `mean`, else summed. Without `by_actions` finish() sums all gradients; without `make_equal`
        the initial weights are not changed."""
        self._program = program
        self._rank = rank
        self._modules = modules
        self._groups = groups
        self._outside = outside
        self._mean = mean
        # The table of kinds has those that others are declared to follow, too.
        found = dict.fromkeys(action.kind for actions in program.actions for action in actions)
        self._kinds = [kind for kind in found if by_actions and kind.collective is not None and kind.per == "stage"]
        ties = [self._tie(tie) for tie in tied]
        in_ties = {id(weight) for tie in ties for weights in tie.weights for weight in weights}
        self._reductions = [*self._replicas(unreplicated, in_ties), *ties]
        self._reduced: set[StageKey] = set()
        self._in_flight = AsyncReducer()
        self._connect(make_equal)
        self.start()

    def start(self) -> None:
        """Resets the state, also after a step that failed."""
        self._in_flight = AsyncReducer()
        self._reduced.clear()
        for found in self._reductions:
            found.missing = {stage_key for stage_key in found.stage_keys if stage_key in self._modules}

    def has_final_reductions(self) -> bool:
        """Whether there are gradients that no action of the program sums."""
        return any(found.kind is None and self._rank in found.ranks for found in self._reductions)

    def finish(self, sharded: Collection[StageKey] = ()) -> None:
        """Sums gradients that no action sums, also over copies except those of `sharded` stages; waits for all reductions."""
        if (copies := self._outside.get("data_parallel")) is not None:
            for stage_key in sorted(self._modules.keys() - self._reduced - set(sharded)):
                self._reduce_outside(stage_key, copies)
        for found in self._reductions:
            if found.kind is None and self._rank in found.ranks:
                self._reduce(found)
        self._in_flight.wait()

    def wait(self) -> None:
        """Waits for the reductions that have started."""
        self._in_flight.wait()

    def perform(self, action: Action) -> None:
        """Starts to sum the gradients of the action's stage over the ranks that run it together.

        If this rank has a weight in several places, the last of their actions sums it.
        """
        stage_key = (action.pipe.index, action.stage)
        if _is_outside(action.kind):
            self._reduced.add(stage_key)
            self._reduce_outside(stage_key, self._outside_group(action.kind))
            return
        for found in self._reductions:
            if found.kind == action.kind and stage_key in found.missing:
                found.missing.remove(stage_key)
                if not found.missing:
                    self._reduce(found)

    def duplicate_weights(self) -> set[int]:
        """The ids of weights of this rank that are copies; their originals are on this rank or on another one."""
        repeated: set[int] = set()
        for found in self._reductions:
            is_owner = found.ranks[0] == self._rank
            repeated.update(id(weight) for weights in found.weights for weight in weights[is_owner:])
        return repeated

    def check(self, kind: Kind) -> None:
        """Raises UsageError if actions of this kind have nothing to sum, or no group."""
        if _is_outside(kind):
            self._outside_group(kind)
        elif isinstance(kind.collective, tuple) and not any(found.kind == kind for found in self._reductions):
            raise UsageError(f"`{kind.mnemonic}` has nothing to sum: give the Runtime tied=[{{STAGE: NAME, ...}}]")

    # What there is to sum.

    def _home(self, stage_key: StageKey) -> int:
        pipe, stage = stage_key
        return self._program.pipes[pipe].rank_of_stage[stage]

    def _replicas_of(self, stage: int) -> frozenset[StageKey]:
        """A stage in all pipes that have it."""
        return frozenset((pipe.index, stage) for pipe in self._program.pipes if stage < pipe.num_stages)

    def _hosting_ranks(self, stage_keys: frozenset[StageKey]) -> tuple[int, ...]:
        return tuple(sorted({self._home(stage_key) for stage_key in stage_keys}))

    def _replicas(self, unreplicated: frozenset[StageKey], without: set[int]) -> list[_Reduction]:
        sums = []
        for stage in range(max(pipe.num_stages for pipe in self._program.pipes)):
            stage_keys = self._replicas_of(stage)
            mine = [self._modules[stage_key] for stage_key in sorted(stage_keys) if stage_key in self._modules]
            if len(self._hosting_ranks(stage_keys)) == 1 or stage_keys & unreplicated:
                continue
            weights = [[weight] for weight in mine[0].parameters() if id(weight) not in without] if mine else []
            kind = next((kind for kind in self._kinds if kind.collective == "replicas"), None)
            sums.append(_Reduction(stage_keys, self._hosting_ranks(stage_keys), weights, kind))
        return sums

    def _tie(self, tie: Tie) -> _Reduction:
        last = max(pipe.num_stages for pipe in self._program.pipes)
        names = {self._stage_number(stage, last): name for stage, name in tie.items()}
        stage_keys = frozenset(stage_key for stage in names for stage_key in self._replicas_of(stage))
        found: dict[int, nn.Parameter] = {}
        for stage_key in sorted(stage_keys):
            if stage_key in self._modules:
                weight = self._weight(stage_key, names[stage_key[1]])
                found[id(weight)] = weight
        return _Reduction(stage_keys, self._hosting_ranks(stage_keys), [list(found.values())] if found else [], self._kind_of(set(names), last))

    @staticmethod
    def _stage_number(stage: int, count: int) -> int:
        if not -count <= stage < count:
            raise UsageError(f"a weight is tied to stage {stage}, but there are {count} stages")
        return stage % count

    def _weight(self, stage_key: StageKey, name: str) -> nn.Parameter:
        try:
            return self._modules[stage_key].get_parameter(name)
        except AttributeError as error:
            raise UsageError(f"stage {stage_key[1]} has no weight `{name}` to be tied: {error}") from error

    def _kind_of(self, stages: set[int], count: int) -> Kind | None:
        for kind in self._kinds:
            if isinstance(kind.collective, tuple) and stages <= {stage % count for stage in kind.collective}:
                return kind
        return None

    # Groups and first values.

    def _connect(self, make_equal: bool) -> None:
        for found in self._reductions:
            self._check_order(found)
            if len(found.ranks) > 1:
                found.group = self._groups.new_group(found.ranks)
            if make_equal and self._rank in found.ranks:
                self._make_equal(found)

    def _make_equal(self, found: _Reduction) -> None:
        """Copies the values of the first place to all others."""
        root = self._groups.global_rank(self._home(min(found.stage_keys)))
        for first, *others in found.weights:
            if found.group is not None:
                dist.broadcast(first.data, root, group=found.group)
            for other in others:
                other.data.copy_(first.data)
        if found.group is not None and len({stage for _, stage in found.stage_keys}) == 1:
            module = next(self._modules[stage_key] for stage_key in sorted(found.stage_keys) if stage_key in self._modules)
            for buffer in module.buffers():
                dist.broadcast(buffer, root, group=found.group)

    def _check_order(self, found: _Reduction) -> None:
        """Checks that reductions over other groups come before this one at all places, or after it at all places."""
        if found.kind is None:
            return
        for other in self._kinds:
            if _is_outside(other):
                orders = {self._comes_first(other, found, stage_key) for stage_key in found.stage_keys} - {None}
                if len(orders) > 1:
                    raise UsageError(
                        f"`{other.mnemonic}` comes before `{found.kind.mnemonic}` at one stage of "
                        f"{sorted({stage for _, stage in found.stage_keys})} and after it at another: sums would differ"
                    )

    def _comes_first(self, other: Kind, found: _Reduction, stage_key: StageKey) -> bool | None:
        """Whether `other` comes before the reduction on the rank of a place; None without such an action."""
        at, summed = None, None
        for position, action in enumerate(self._program.actions[self._home(stage_key)]):
            if action.kind == other and (action.pipe.index, action.stage) == stage_key:
                at = position
            if action.kind == found.kind and (action.pipe.index, action.stage) in found.stage_keys:
                summed = position
        return None if at is None or summed is None else at < summed

    # Sums.

    def _outside_group(self, kind: Kind) -> dist.ProcessGroup:
        name = str(kind.collective).removeprefix("outside ")
        if name not in self._outside:
            raise UsageError(f"`{kind.mnemonic}` is done by the group `{name}`: give the Runtime groups={{'{name}': ...}}")
        return self._outside[name]

    def _reduce_outside(self, stage_key: StageKey, group: dist.ProcessGroup) -> None:
        gradients = [_gradient(weight) for weight in self._modules[stage_key].parameters() if weight.requires_grad]
        size = dist.get_world_size(group) if self._mean else 1
        self._in_flight.begin(group, gradients, lambda gradient: None if size == 1 else gradient.div_(size))

    def _reduce(self, found: _Reduction) -> None:
        trained = [list(map(_gradient, weights)) for weights in found.weights if weights[0].requires_grad]
        self._in_flight.wait_for([gradient for gradients in trained for gradient in gradients])
        for first, *others in trained:
            for other in others:
                first.add_(other)
        copies = {id(first): others for first, *others in trained}

        def spread(first: Tensor) -> None:
            for other in copies[id(first)]:
                other.copy_(first)

        if found.group is not None:
            self._in_flight.begin(found.group, [first for first, *_ in trained], spread)
        else:
            for first, *_ in trained:
                spread(first)


def _is_outside(kind: Kind) -> bool:
    return isinstance(kind.collective, str) and kind.collective.startswith("outside ")


def _gradient(weight: nn.Parameter) -> Tensor:
    """The tensor to sum: of a sharded weight, the shard of this rank."""
    main: Tensor | None = getattr(weight, "main_grad", None)  # Where Megatron-LM adds gradients up.
    if main is not None:
        return main
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    return weight.grad.to_local() if isinstance(weight.grad, DTensor) else weight.grad
