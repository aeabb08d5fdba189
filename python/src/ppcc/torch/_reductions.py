"""Reductions of the gradients of shared weights: replicas, tied weights, data-parallel copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.multiprocessing.reductions import StorageWeakRef

from .._program import Action, Kind, Program
from ._errors import UsageError
from ._groups import Groups
from ._async_reduce import AsyncReducer
from ._stash import StageKey, stage_key_of

Tie = Mapping[int, str]
"""The name of a shared weight in each of its stages; negative stages count from the last."""

GradientState = tuple[StorageWeakRef, int]
"""The memory of a gradient, and its version."""


@dataclass(slots=True)
class _Reduction:
    """Weights that are the same, on all ranks that have them."""

    stage_keys: frozenset[StageKey]
    """In the whole program."""
    ranks: tuple[int, ...]
    names: dict[int, str] | None = None
    """The name of a tied weight, by stage; None for all weights of a stage that are not tied."""
    kind: Kind | None = None
    """The kind whose actions sum them; None for the end of the step."""
    weights: list[list[nn.Parameter]] = field(default_factory=list)
    """The weights of this rank, each with its places: different Parameters."""
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
        sharded: Collection[StageKey] = (),
        summed: dict[nn.Parameter, GradientState] | None = None,
        by_actions: bool = True,
        make_equal: bool = True,
    ) -> None:
        """`unreplicated` are stages without replicas. `outside` are groups that are not part of the program, by name; gradients
        are averaged over them with `mean`, else summed, but not those of `sharded` stages. `summed` are weights of earlier steps whose
        gradients, if their state is still this, are copies of a sum that another one keeps. Without `by_actions` finish() sums all
        gradients; without `make_equal` the initial weights are not changed."""
        self._program = program
        self._rank = rank
        self._modules = modules
        self._groups = groups
        self._outside = outside
        self._mean = mean
        self._summed = {} if summed is None else summed
        # The table of kinds has those that others are declared to follow, too.
        kinds = [kind for kind in program.kinds if by_actions and kind.collective is not None and kind.per == "stage"]
        if kinds:
            own = list(dict.fromkeys(action.kind for action in program.actions[rank] if action.kind in kinds))
            kinds = list(dict.fromkeys(kind for kinds in groups.all_gather(own) for kind in kinds))
        self._kinds = kinds
        self._reductions = [*self._replicas(unreplicated), *map(self._tie, tied)]
        stage_keys = modules.keys() - set(sharded)
        self._outside_stages = {"data_parallel": stage_keys}
        """The stages of this rank whose gradients are reduced over a group."""
        for action in program.actions[rank]:
            if _is_outside(action.kind):
                self._outside_stages.setdefault(_group_name(action.kind), set()).update({stage_key_of(action)} & stage_keys)
        self._reduced: set[tuple[str, StageKey]] = set()
        self._copied: list[nn.Parameter] = []
        """Weights whose sum in this step another one has, too."""
        self._in_flight = AsyncReducer()
        with groups.raise_on_all_ranks():
            self._find_weights()
        self._connect(make_equal)
        self.start(trains=False)

    def start(self, *, trains: bool) -> None:
        """Resets the state, also after a step that failed.

        Gradients that earlier steps summed are kept in one place only, so that a sum to which this step adds is not counted twice;
        raises UsageError if they were changed since.
        """
        self._in_flight = AsyncReducer()
        self._reduced.clear()
        for found in self._reductions:
            found.missing = {stage_key for stage_key in found.stage_keys if stage_key in self._modules}
        self._find_weights()
        self._copied.clear()
        if trains:
            self._keep_one()

    def _keep_one(self) -> None:
        changed: list[Tensor] = []
        for weight, (storage, version) in self._summed.items():
            if weight.grad is not None and _state(weight)[0] == storage:
                gradient = _gradient(weight)
                if gradient._version == version:
                    gradient.zero_()
                else:
                    changed.append(gradient)
        self._summed.clear()
        if changed and bool(torch.stack([gradient.any() for gradient in changed]).any()):
            raise UsageError(
                "gradients that an earlier step summed were changed and not set to zero: change them after the last step that adds to "
                "them, and pass reduce_grads=False to the others"
            )

    def has_final_reductions(self) -> bool:
        """Whether there are gradients that no action of the program sums."""
        return any(found.kind is None and self._rank in found.ranks for found in self._reductions)

    def finish(self) -> None:
        """Sums gradients that no action sums, also over copies; waits for all reductions."""
        if "data_parallel" in self._outside:
            for stage_key in sorted(self._outside_stages["data_parallel"]):
                if ("data_parallel", stage_key) not in self._reduced:
                    self._reduce_outside(stage_key, "data_parallel")
        for found in self._reductions:
            if found.kind is None and self._rank in found.ranks:
                self._reduce(found)
        self._in_flight.wait()
        self._summed.update((weight, _state(weight)) for weight in self._copied)

    def wait(self) -> None:
        """Waits for the reductions that have started."""
        self._in_flight.wait()

    def perform(self, action: Action) -> None:
        """Starts to sum the gradients of the action's stage over the ranks that run it together.

        If this rank has a weight in several places, the last of their actions sums it.
        """
        stage_key = stage_key_of(action)
        if _is_outside(action.kind):
            self._outside_group(action.kind)
            self._reduce_outside(stage_key, _group_name(action.kind))
            return
        for found in self._reductions:
            if found.kind == action.kind and stage_key in found.missing:
                found.missing.remove(stage_key)
                if not found.missing:
                    self._reduce(found)

    def duplicate_weights(self) -> set[int]:
        """The ids of weights of this rank that are copies; their originals are on this rank or on another one."""
        self._find_weights()
        repeated: set[int] = set()
        for found in self._reductions:
            repeated.update(map(id, self._copies(found)))
        return repeated

    def _copies(self, found: _Reduction) -> list[nn.Parameter]:
        """The weights of this rank whose original is another one, here or on the first rank."""
        is_owner = found.ranks[0] == self._rank
        return [weight for weights in found.weights for weight in weights[is_owner:]]

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

    def _replicas(self, unreplicated: frozenset[StageKey]) -> list[_Reduction]:
        sums = []
        for stage in range(max(pipe.num_stages for pipe in self._program.pipes)):
            stage_keys = self._replicas_of(stage)
            if len(self._hosting_ranks(stage_keys)) == 1 or stage_keys & unreplicated:
                continue
            kind = next((kind for kind in self._kinds if kind.collective == "replicas"), None)
            sums.append(_Reduction(stage_keys, self._hosting_ranks(stage_keys), kind=kind))
        return sums

    def _tie(self, tie: Tie) -> _Reduction:
        last = max(pipe.num_stages for pipe in self._program.pipes)
        names = {self._stage_number(stage, last): name for stage, name in tie.items()}
        stage_keys = frozenset(stage_key for stage in names for stage_key in self._replicas_of(stage))
        return _Reduction(stage_keys, self._hosting_ranks(stage_keys), names, self._kind_of(set(names), last))

    def _find_weights(self) -> None:
        """Looks the weights up, since load_state_dict(assign=True) replaces them."""
        in_ties: set[int] = set()
        for found in reversed(self._reductions):  # Ties come last.
            mine = [stage_key for stage_key in sorted(found.stage_keys) if stage_key in self._modules]
            if found.names is not None:
                places = {id(weight): weight for key in mine for weight in [self._weight(key, found.names[key[1]])]}
                found.weights = [list(places.values())] if places else []
                in_ties.update(places)
            elif mine:
                found.weights = [[weight] for weight in self._modules[mine[0]].parameters() if id(weight) not in in_ties]

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
        if make_equal and (copies := self._outside.get("data_parallel")) is not None:
            for module in dict.fromkeys(self._modules[stage_key] for stage_key in sorted(self._outside_stages["data_parallel"])):
                for tensor in (*module.parameters(), *module.buffers()):
                    _broadcast(tensor, dist.get_global_rank(copies, 0), copies)
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
                _broadcast(first, root, found.group)
            for other in others:
                other.data.copy_(first.data)
        if found.group is not None and len({stage for _, stage in found.stage_keys}) == 1:
            module = next(self._modules[stage_key] for stage_key in sorted(found.stage_keys) if stage_key in self._modules)
            for buffer in module.buffers():
                _broadcast(buffer, root, found.group)

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
            if action.kind == other and stage_key_of(action) == stage_key:
                at = position
            if action.kind == found.kind and stage_key_of(action) in found.stage_keys:
                summed = position
        return None if at is None or summed is None else at < summed

    # Sums.

    def _outside_group(self, kind: Kind) -> dist.ProcessGroup:
        name = _group_name(kind)
        if name not in self._outside:
            raise UsageError(f"`{kind.mnemonic}` is done by the group `{name}`: give the Runtime groups={{'{name}': ...}}")
        return self._outside[name]

    def _reduce_outside(self, stage_key: StageKey, name: str) -> None:
        """Starts to reduce the gradients of a stage, but not those to which a stage that comes later adds."""
        self._reduced.add((name, stage_key))
        later = [key for key in self._outside_stages[name] if (name, key) not in self._reduced]
        shared = {id(weight) for key in later for weight in self._modules[key].parameters()}
        weights = [w for w in self._modules[stage_key].parameters() if w.requires_grad and id(w) not in shared]
        gradients, group = list(map(_gradient, weights)), self._outside[name]
        size = dist.get_world_size(group) if self._mean else 1
        if not self._mean and dist.get_rank(group) > 0:
            self._copied += weights
        self._in_flight.begin(group, gradients, lambda gradient: None if size == 1 else gradient.div_(size))

    def _reduce(self, found: _Reduction) -> None:
        trained = [list(map(_gradient, weights)) for weights in found.weights if weights[0].requires_grad]
        self._copied += [weight for weight in self._copies(found) if weight.requires_grad]
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


def _group_name(kind: Kind) -> str:
    return str(kind.collective).removeprefix("outside ")


def _broadcast(tensor: Tensor, root: int, group: dist.ProcessGroup) -> None:
    local = (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach()
    whole = local.contiguous()
    dist.broadcast(whole.view(-1).view(torch.uint8), root, group=group)  # Of any type.
    local.copy_(whole)


def _state(weight: nn.Parameter) -> GradientState:
    gradient = _gradient(weight)
    return StorageWeakRef(gradient.untyped_storage()), gradient._version  # type: ignore[no-untyped-call]


def _gradient(weight: nn.Parameter) -> Tensor:
    """The tensor to sum: of a sharded weight, the shard of this rank."""
    main: Tensor | None = getattr(weight, "main_grad", None)  # Where Megatron-LM adds gradients up.
    if main is not None:
        return main
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    return weight.grad.to_local() if isinstance(weight.grad, DTensor) else weight.grad
