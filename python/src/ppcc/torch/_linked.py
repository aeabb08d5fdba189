"""A program on a rank: the facts that its steps need, computed once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.utils._pytree import tree_leaves

from .._program import Action, Pipe, Program
from ._channels import Channels
from ._ddp import ReplicatedStages, inside
from ._errors import UsageError
from ._fits import TAKE_SLICES, check_messages, check_slices
from ._fsdp import ShardedStage, check_root, is_sharded
from ._groups import Groups
from ._inputs import BatchSplitter, Inputs, parameter_names
from ._moves import Moves, home, is_move
from ._messages import first_early_receive, acknowledged_by
from ._reductions import GradientState, Reductions, Tie
from ._shapes import TensorInfo, check_plain, infer, structure_of, structured, tensor_spec
from ._slices import caches_of
from ._split import check_version
from ._stash import Key, StageKey, key_of, stage_key_of
from ._unsupported_stages import check_stage, has_multi_grad_hook
from ._streams import Streams

_log = logging.getLogger(__name__)
LossFunction = Callable[..., Tensor]
Handler = Callable[[Action], None]

REDUCES = ("REDUCE_GRAD", "REDUCE_EMBEDDING", "REDUCE_REPLICAS")
UNSHARDS = ("UNSHARD", "UNSHARD_B")
RESHARDS = ("RESHARD", "RESHARD_F")
_FORWARD = ("F", "SEND_F", "RECV_F", *UNSHARDS, *RESHARDS)
"""Keeps only the forwards and their messages. A subset of an order without deadlock has none either."""


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """The arguments of a Runtime, which its programs share."""

    rank: int
    stages: Mapping[Any, nn.Module]
    groups: Groups
    device: torch.device
    streams: Streams | None
    loss_fn: LossFunction | None
    scale_grads: bool
    split_dim: int
    sequence_dim: int
    handlers: Mapping[str, Handler]
    tied: Sequence[Tie]
    outside: Mapping[str, dist.ProcessGroup]
    mesh: DeviceMesh | None
    has_optimizer: bool
    shapes: Mapping[Any, Sequence[Tensor]] | None
    dynamic: bool
    dw_builders: Mapping[Any, Callable[[], Callable[[], None]]] = field(default_factory=dict)
    summed: dict[nn.Parameter, GradientState] = field(default_factory=dict)
    """See Reductions."""

    @property
    def messages_mesh(self) -> DeviceMesh | None:
        """The mesh over which stages may hand over DTensors; headers have no layouts."""
        return None if self.dynamic else self.mesh

    def all_agree(self, yes: bool, *, with_outside_groups: bool = False) -> bool:
        """Whether a condition holds on all ranks; `with_outside_groups`: and in the groups outside of it."""
        if dist.is_initialized():
            for group in (self.groups.pipeline, *(self.outside.values() if with_outside_groups else ())):
                vote = torch.tensor([int(yes)], device=self.device)
                dist.all_reduce(vote, op=dist.ReduceOp.MIN, group=group)
                yes = bool(vote.item())
        return yes


class LinkedProgram:
    """A program with the modules of this rank. All ranks create it together."""

    def __init__(self, program: Program, setup: RuntimeConfig, performed: Collection[str], *, is_first: bool) -> None:
        """`performed` are the mnemonics that need no handler. The first program makes shared weights equal."""
        self.program = program
        self.setup = setup
        self.rank = setup.rank
        self.actions = program.actions[self.rank]
        self.unreplicated: set[tuple[int, int]] = set()
        split = () if "I" in setup.handlers else program.actions[self.rank]
        self.split = {stage_key_of(action) for action in split if action.op == "I" and self.dw_builder(action) is None}
        """The stages whose backward the Runtime splits into I and W."""
        self.unchecked = set(self.split)
        """The stages whose autograd graph has not been checked yet."""
        self.unrepeated = set() if "R" in setup.handlers else {stage_key_of(action) for action in self.actions if action.op == "R"}
        """The recomputed stages whose forward has not been compared with its repetition yet."""
        self.has_multi_grad_hook: set[tuple[int, int]] = set()
        """The stages that have a hook that waits for the gradients of several weights."""
        with setup.groups.raise_on_all_ranks():
            given = self._assign()
            self.replicated = ReplicatedStages(given, self.actions)
            self.modules = {key: inside(module) for key, module in given.items()}
            """Of stages in DistributedDataParallel the module inside."""
            self.caches = {key: caches_of(module) for key, module in self.modules.items() if program.pipes[key[0]].slices > 1}
            """Of stages of slices the caches."""
            self._check(performed)
            self.sharded = self._find_sharded()
            self._check_mesh()
        self.action_groups = [group.actions for group in program.groups(self.rank)]
        evaluated = (tuple(action for action in item if action.op in _FORWARD) for item in self.action_groups)
        self.evaluation = [item for item in evaluated if item] if program.has_backward else self.action_groups
        self.recomputed = self._find_keys(lambda action: action.op == "R")
        self.offloaded = self._find_keys(lambda action: action.op == "OFFLOAD" or (is_move(action) and home(action) == self.rank))
        """The forwards whose activations are moved."""
        own_names = list(map(parameter_names, self.modules.values()))
        names = [one for there in setup.groups.all_gather(own_names) for one in there]
        known = None if None in names else frozenset().union(*names)  # type: ignore[arg-type]
        pipes = sorted(program.pipes, key=lambda pipe: pipe.microbatches.start)
        slices = tuple(pipe.slices for pipe in pipes for _ in pipe.microbatches[:: pipe.slices])
        self.splitter = BatchSplitter(slices, setup.split_dim, setup.sequence_dim, equal=not setup.dynamic, names=known)
        self.reductions = Reductions(
            program,
            self.rank,
            self.modules,
            unreplicated=frozenset().union(*setup.groups.all_gather(frozenset(self.unreplicated))),
            tied=setup.tied,
            groups=setup.groups,
            outside=setup.outside,
            mean=setup.scale_grads,
            sharded=self.sharded.keys() | self.replicated.wrappers.keys(),
            summed=setup.summed,
            make_equal=is_first,
        )
        with setup.groups.raise_on_all_ranks():
            self._check_reductions()
            self.shapes, self.structures = self._given_shapes()
        # The host has to know shapes, so they have a group of their own.
        has_headers = setup.dynamic and dist.is_initialized()
        self.headers = setup.groups.new_group(tuple(range(program.num_ranks)), "gloo") if has_headers else None
        self.channels = Channels(program, self.rank, setup.groups, setup.device)
        self.moves = Moves(program, self.rank, setup.groups, self.channels, setup.device)
        self.acknowledges = acknowledged_by(program, self.rank) if self.channels.host_waits and not has_headers else {}
        self._shapes_for: tuple[Any, ...] | None = None
        _log.info("rank %d runs %s, of digest %s: %d actions", self.rank, program.name, program._stated_digest, len(self.actions))

    def runs_itself(self, mnemonic: str) -> bool:
        """Whether the Runtime itself runs actions of this mnemonic on this rank."""
        return mnemonic not in self.setup.handlers and any(action.op == mnemonic for action in self.actions)

    def is_last(self, pipe: Pipe, stage: int) -> bool:
        return not pipe.readers(stage)

    def dw_builder(self, action: Action) -> Callable[[], Callable[[], None]] | None:
        """What makes the W of a stage whose layers hold back the gradients of their weights."""
        builders = self.setup.dw_builders
        return builders.get((action.pipe.name, action.stage), builders.get(action.stage))

    def defers_all(self, stage_key: tuple[int, int]) -> bool:
        """Whether, of a microbatch at least, no weight of a stage may get a gradient before W."""
        return stage_key in self.has_multi_grad_hook or stage_key in self.replicated.wrappers

    # Fitting program and stages together.

    def _assign(self) -> dict[tuple[int, int], nn.Module]:
        """The module of each stage of this rank, by pipe and stage."""
        modules: dict[tuple[int, int], nn.Module] = {}
        stages, used = self.setup.stages, set()
        for pipe, stage in self.program.local_stages(self.rank):
            key: object = (pipe.name, stage) if (pipe.name, stage) in stages else stage
            if key not in stages:
                hosted = ", ".join(str(number) for _, number in self.program.local_stages(self.rank))
                raise UsageError(f"rank {self.rank} has no module for stage {stage} of pipe `{pipe.name}`; it hosts {hosted}")
            module = stages[key]
            if not isinstance(module, nn.Module):
                raise UsageError(f"stage {stage} is {type(module).__name__}, but must be a torch.nn.Module")
            modules[pipe.index, stage] = module
            used.add(key)
            if key != stage:
                self.unreplicated.add((pipe.index, stage))
        for key in stages:
            if key not in used:
                raise UsageError(f"rank {self.rank} was given stage {key}, which does not live on it")
        return modules

    def _check(self, performed: Collection[str]) -> None:
        program, setup = self.program, self.setup
        check_version()
        for stage_key, caches in self.caches.items():
            if not caches and not getattr(self.modules[stage_key], "takes_slices", False):
                check_slices(program, f"stage {stage_key[1]}", TAKE_SLICES)
        for key in setup.dw_builders:
            module = setup.stages.get(key)
            if module is None:
                raise UsageError(f"dw_builder has stage {key}, which does not live on rank {self.rank}")
            if is_sharded(module) or inside(module) is not module:
                raise UsageError(f"dw_builder is for plain stages: nothing would reduce the gradients that stage {key} holds back")
        if program.has_backward:
            self.check_stages()
        for action in self.actions:
            mnemonic = action.op
            if not action.kind.is_message and not is_move(action) and mnemonic not in setup.handlers and mnemonic not in performed:
                raise UsageError(f"nothing runs `{mnemonic}`: give the Runtime a handler for it")
        if self.runs_itself("STEP") and not setup.has_optimizer:
            raise UsageError("the program has `STEP`: give the Runtime an optimizer, or a handler")
        if self.runs_itself("VALIDATE") and not self.runs_itself("STEP"):
            raise UsageError("`VALIDATE` is about a step of the optimizer's, but nothing here runs `STEP`")
        if setup.dynamic and setup.device.type != "cpu":
            late = first_early_receive(self.actions, program.waits[self.rank])
            if late is not None:
                raise UsageError(
                    f"with variable_shapes each receive has to stand right before the action that reads it, but {late} does "
                    "not: compile with comm_order='late', and without fuse"
                )
        check_messages(program)
        has_last = any(not pipe.readers(stage) for pipe, stage in program.local_stages(self.rank))
        if program.has_backward and setup.loss_fn is None and has_last:
            raise UsageError("a last stage needs a loss_fn")
        if program.has_backward and isinstance(setup.loss_fn, nn.Module) and any(weight.requires_grad for weight in setup.loss_fn.parameters()):
            raise UsageError("loss_fn has weights to train, which the Runtime would neither reduce nor clip: make it a part of the last stage")

    def check_stages(self) -> None:
        """Raises UsageError for modules that cannot be trained as stages."""
        for stage_key, module in self.modules.items():
            check_stage(module, f"stage {stage_key[1]}", has_split_backward=stage_key in self.split)
        self.has_multi_grad_hook = {stage_key for stage_key, module in self.modules.items() if has_multi_grad_hook(module)}

    def _check_mesh(self) -> None:
        """Raises UsageError for a dimension over which nothing reduces the gradients of a weight."""
        mesh = self.setup.mesh
        names = () if mesh is None or not self.program.has_backward else mesh.mesh_dim_names or ()
        for name in set(names) - {"pp", "dp", "tp"}:
            ranks = set(dist.get_process_group_ranks(self.setup.outside[name]))
            for stage_key, module in self.modules.items() if len(ranks) > 1 else ():
                if stage_key in self.sharded:
                    self.sharded[stage_key].reshard()
                for weight_name, weight in module.named_parameters():
                    reduced = set(weight.device_mesh.mesh.flatten().tolist()) if isinstance(weight, DTensor) else set()
                    if weight.requires_grad and not ranks <= reduced:
                        raise UsageError(
                            f"nothing reduces the gradients of `{weight_name}` of stage {stage_key[1]} over the dimension `{name}` of the mesh: "
                            "name it `dp`, which averages them, call fully_shard(stage) over it, or give group=mesh.get_group('pp') "
                            "in place of the mesh and reduce them after step(reduce_grads=False)"
                        )

    def _find_keys(self, is_wanted: Callable[[Action], bool]) -> frozenset[Key]:
        """The forwards of which the Runtime itself runs such an action later."""
        wanted = (action for action in self.actions if action.op not in self.setup.handlers and is_wanted(action))
        return frozenset(map(key_of, wanted))

    def _find_sharded(self) -> dict[tuple[int, int], ShardedStage]:
        # W needs the weights that its I had, so between them they stay, too.
        stays = self.runs_itself("UNSHARD") or self.runs_itself("W")
        last = {stage_key_of(action): action.microbatch for action in self.actions if action.op == "B"}
        sharded = {
            stage_key: ShardedStage(
                module, f"stage {stage_key[1]}", keep_unsharded=stays, is_split=stage_key in self.split, last=last.get(stage_key, -1)
            )
            for stage_key, module in self.modules.items()
            if is_sharded(module)
        }
        for (_, stage), module in self.modules.items():
            check_root(module, f"stage {stage}")
        if sharded and (self.setup.tied or len(self.program.pipes) > 1):
            raise UsageError("stages that are sharded cannot have replicas in other pipes, or tied weights")
        for action in self.actions:
            mnemonic, stage_key = action.op, stage_key_of(action)
            if mnemonic in UNSHARDS + RESHARDS and mnemonic not in self.setup.handlers and stage_key not in sharded:
                raise UsageError(f"{action} is for stages that fully_shard has cut up, which stage {action.stage} is not")
        return sharded

    def _check_reductions(self) -> None:
        for action in self.actions:
            if action.op in self.setup.handlers or action.op not in REDUCES:
                continue
            stage_key = stage_key_of(action)
            if action.op != "REDUCE_GRAD" or (stage_key not in self.sharded and stage_key not in self.replicated.wrappers):
                self.reductions.check(action.kind)
        for position, action in enumerate(self.actions):
            if action.op == "STEP" and self.runs_itself("STEP") and self.reductions.has_final_reductions():
                # Ranks meet in these sums, so no rank may still wait for a message.
                if any(later.kind.is_message for later in self.actions[position:]):
                    raise UsageError(
                        f"rank {self.rank} has messages after `STEP`, in front of which gradients are summed: "
                        "let the program say where, with REDUCE_REPLICAS and REDUCE_EMBEDDING"
                    )

    # Shapes.

    def arguments(self, pipe: int, inputs: Mapping[int, Sequence[Any]]) -> list[Any]:
        """What a stage is called with, from what its sources have given, by stage: a tuple or list is several arguments."""
        found: list[Any] = []
        for source in sorted(inputs):
            value = structured(self.structures.get((pipe, source)), inputs[source])
            found += value if isinstance(value, (tuple, list)) else [value]
        return found

    def _given_shapes(self) -> tuple[dict[StageKey, tuple[TensorInfo, ...]], dict[StageKey, Any]]:
        """The tensors that stages return, and their structures where they are nested."""
        given = self.setup.shapes
        if given is None:
            return {}, {}
        found, structures = {}, {}
        for pipe in self.program.pipes:
            for stage in range(pipe.num_stages):
                key: object = (pipe.name, stage) if (pipe.name, stage) in given else stage
                if key in given:
                    found[pipe.index, stage] = tuple(map(TensorInfo.of_type, tree_leaves(given[key])))
                    structures[pipe.index, stage] = structure_of(given[key])
                elif pipe.readers(stage):
                    raise UsageError(f"`shapes` lack stage {stage} of pipe `{pipe.name}`, which others read")
        return found, structures

    def reset_shapes(self) -> None:
        (self.shapes, self.structures), self._shapes_for = self._given_shapes(), None

    def check_shapes(self, inputs: Inputs) -> None:
        """Raises UsageError if microbatches have other shapes than those for which messages were inferred."""
        if self._shapes_for is not None and (first := _shapes_of(inputs)) != self._shapes_for:
            found, before = (", ".join(map(str, infos)) for infos in (first, self._shapes_for))
            raise UsageError(
                f"microbatches are {found}, but were {before}: let all ranks call reset_shapes() between such steps, or give the "
                "Runtime variable_shapes=True"
            )

    def infer_shapes(self, inputs: Inputs) -> None:
        """The tensors of each edge; each stage sends them to all ranks in the first step."""
        if self.setup.shapes is not None:
            return
        if self._shapes_for is not None:
            return
        first = _shapes_of(inputs)
        for pipe in self.program.pipes:
            for stage, home in enumerate(pipe.rank_of_stage):
                infos: list[object] = [None]
                if home == self.rank:
                    infos[0] = self._infer_stage(pipe, stage, first, inputs)
                if dist.is_initialized():
                    groups = self.setup.groups
                    dist.broadcast_object_list(infos, groups.global_rank(home), group=groups.pipeline, device=self.setup.device)
                if isinstance(infos[0], str):
                    raise UsageError(infos[0])
                self.shapes[pipe.index, stage], self.structures[pipe.index, stage] = infos[0]  # type: ignore[misc]
                _log.info("stage %d of pipe %s returns %s", stage, pipe.name, ", ".join(map(str, self.shapes[pipe.index, stage])))
        self._shapes_for = first

    def _infer_stage(self, pipe: Pipe, stage: int, first: Sequence[Any], inputs: Inputs) -> object:
        """The outputs of a stage, or an error that all ranks then raise together."""
        stage_key = pipe.index, stage
        sources, module = pipe.sources(stage), self.modules[stage_key]
        given = self.arguments(pipe.index, {source: self.shapes[pipe.index, source] for source in sources}) if sources else list(first)
        named = inputs.named(module, 0)
        run_module = stage_key in self.sharded or _has_pieces(module) or any(isinstance(info, TensorInfo) and info.layout for info in tree_leaves(given))
        try:
            for value in [*([] if sources or inputs.args is None else inputs.args[0]), *named.values()]:
                if isinstance(value, Tensor):
                    check_plain(value, f"stage {stage} was given")
            infos = infer(
                module,
                given,
                {name: tensor_spec(value) for name, value in named.items()},
                self.setup.device,
                f"stage {stage}",
                trains=self.program.has_backward,
                has_split_backward=stage_key in self.split,
                defers_all=self.defers_all(stage_key),
                reads_stages=bool(sources),
                is_read=bool(pipe.readers(stage)),
                run_module=run_module,
                mesh=self.setup.messages_mesh,
            )
        except UsageError as error:
            return f"rank {self.rank}: {error}"
        if not run_module:
            self.unchecked.discard(stage_key)
        return infos


def _shapes_of(inputs: Inputs) -> tuple[Any, ...]:
    return tuple(map(tensor_spec, inputs.args[0])) if inputs.args is not None else ()


def _has_pieces(module: nn.Module) -> bool:
    return any(isinstance(weight, DTensor) for weight in module.parameters())
