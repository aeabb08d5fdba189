"""The placement of stages, and the functions of Megatron that depend on it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from types import ModuleType
from typing import Any

import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.models.common.language_module import language_module
from megatron.core.num_microbatches_calculator import get_num_microbatches
from megatron.core.pipeline_parallel import schedules, utils
from megatron.core.transformer import transformer_block, transformer_layer
from megatron.core.transformer.enums import LayerType
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
from torch import nn

from .._program import Pipe, Program
from ..torch._errors import UsageError
from ..torch._groups import Groups
from ..torch._reductions import Reductions

Programs = Program | Callable[[int], Program]
"""A program, or a function from a number of microbatches to its program."""

StageKey = tuple[Pipe, int]


def check_programs(programs: object) -> None:
    """Raises UsageError for what is neither a program nor a function of one number."""
    if isinstance(programs, Program):
        return
    try:
        inspect.signature(programs).bind(1)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(
            f"a {type(programs).__name__} is neither a Program nor a function from a number of microbatches to one: "
            "give `lambda microbatches: ppcc.compile(NAME, P=..., M=microbatches)`"
        ) from None


class Placement:
    """The placement of a program. Chunk i of a rank is its i-th stage, by pipe, then ascending."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    @cached_property
    def program(self) -> Program:
        """A program of this placement, which is the same for all numbers of microbatches."""
        if isinstance(self._programs, Program):
            return self._programs
        return self._programs(get_num_microbatches())

    @cached_property
    def is_default_placement(self) -> bool:
        """Whether the placement is Megatron's own: one pipe, with stage s on rank s % P."""
        pipes, ranks = self.program.pipes, self.program.num_ranks
        return len(pipes) == 1 and pipes[0].rank_of_stage == tuple(s % ranks for s in range(pipes[0].num_stages))

    def place(self, chunk: int | None, rank: int | None = None) -> StageKey:
        """The stage of a chunk, by default of this rank."""
        own: int = parallel_state.get_pipeline_model_parallel_rank() if rank is None else rank
        return self.program.local_stages(own)[chunk or 0]

    def hosts(self, rank: int, *, first: bool) -> bool:
        """Whether a first or last stage is on a rank."""
        return any(_is_end(place, first) for place in self.program.local_stages(rank))

    def layers(self, config: Any, place: StageKey) -> int:
        """How many transformer layers a stage has."""
        pipe, stage = place
        if config.pipeline_model_parallel_layout is not None:
            return _stages_of_layout(config.pipeline_model_parallel_layout, pipe.num_stages)[stage].count(LayerType.decoder)
        if config.num_layers_in_first_pipeline_stage or config.num_layers_in_last_pipeline_stage:
            raise UsageError(
                "num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage mean ranks, not stages: say with "
                "pipeline_model_parallel_layout which layers each stage has"
            )
        embedding, loss = config.account_for_embedding_in_pipeline_split, config.account_for_loss_in_pipeline_split
        total = config.num_layers + bool(embedding) + bool(loss)
        if total % pipe.num_stages != 0:
            raise UsageError(
                f"{total} layers cannot be divided among {pipe.num_stages} stages: say with pipeline_model_parallel_layout "
                "which layers each stage has"
            )
        taken = bool(embedding and stage == 0) + bool(loss and stage == pipe.num_stages - 1)
        return int(total // pipe.num_stages - taken)

    def layers_before(self, config: Any, place: StageKey) -> int:
        """How many layers come before those of a stage."""
        pipe, stage = place
        return sum(self.layers(config, (pipe, before)) for before in range(stage))

    def built_as(self, place: StageKey) -> tuple[Any, ...]:
        """A key of the placement for which a chunk is built; other programs of this placement can run it."""
        pipe, stage = place
        return pipe.index, stage, tuple(pipe.rank_of_stage for pipe in self.program.pipes)

    def check_chunks(self, chunks: Sequence[nn.Module], rank: int) -> None:
        """Raises UsageError for chunks that were built for another placement."""
        for number, (place, chunk) in enumerate(zip(self.program.local_stages(rank), chunks, strict=True)):
            built = getattr(unwrapped(chunk), "ppcc_built_as", None)
            if built is not None and built != self.built_as(place):
                raise UsageError(
                    f"chunk {number} of rank {rank} was built as stage {built[1]} of another placement, but is stage {place[1]} of "
                    f"{self.program.name}: build chunks for the program that runs them"
                )

    def ties(self, chunks: Sequence[nn.Module]) -> bool:
        """Whether the first and the last stage share a weight that is not in Megatron's embedding groups."""
        has_ties = all(getattr(unwrapped(chunk), "share_embeddings_and_output_weights", False) for chunk in chunks)
        return has_ties and not self.is_default_placement and self.program.pipes[0].num_stages > 1

    def share(self, chunks: list[nn.Module], group: dist.ProcessGroup, *, make_equal: bool) -> Reductions | None:
        """Returns the reductions of shared weights that are not in Megatron's embedding groups.

        These are tied weights, and those of stages in two pipes. None if there are none.
        """
        if self.is_default_placement:
            return None
        rank = dist.get_rank(group)
        modules = {
            (pipe.index, stage): unwrapped(chunk)
            for (pipe, stage), chunk in zip(self.program.local_stages(rank), chunks, strict=True)
        }
        ends: dict[int, str] = {0: "embedding.word_embeddings.weight", -1: "output_layer.weight"}
        return Reductions(
            self.program,
            rank,
            modules,
            unreplicated=frozenset(),
            tied=[ends] if self.ties(chunks) else [],
            groups=Groups(group, self.program.num_ranks),
            outside={},
            mean=True,
            by_actions=False,
            make_equal=make_equal,
        )


def unwrapped(chunk: nn.Module) -> nn.Module:
    """The model inside of Megatron's wrappers for half precision and data parallelism."""
    while isinstance(inner := getattr(chunk, "module", None), nn.Module):
        chunk = inner
    return chunk


def _is_end(place: StageKey, first: bool) -> bool:
    pipe, stage = place
    return stage == (0 if first else pipe.num_stages - 1)


def _stages_of_layout(layout: Any, stages: int) -> list[list[LayerType]]:
    """The layers of each stage: Megatron lays the list of stages out in loops over the ranks."""
    ranks = layout.pipeline_model_parallel_size
    count = ranks * layout.virtual_pipeline_model_parallel_size
    if count != stages:
        raise UsageError(f"pipeline_model_parallel_layout has {count} stages, but the program {stages}")
    return [layout.layout[stage % ranks][stage // ranks] for stage in range(count)]


def build_chunks(programs: Programs, provider: Callable[..., nn.Module]) -> list[nn.Module]:
    """Build the chunks of this rank, one per stage. All ranks call it together.

    Layers have the numbers that they have in the whole model. Weights that several stages share start equal. From then on
    Megatron uses the placement of the program, as after `install`.

    Args:
        programs: A program, or a function from a number of microbatches to its program.
        provider: Builds a chunk; called as `provider(pre_process=..., post_process=..., vp_stage=...)` for each stage.

    Returns:
        The chunks: chunk i is the i-th stage of this rank.

    Raises:
        UsageError: Another program is installed.

    Examples:
        On each rank, after `parallel_state.initialize_model_parallel` (docs/megatron.md)::

            chunks = ppcc.megatron.build_chunks(program, provider)
    """
    placement = _installed(programs)
    rank = parallel_state.get_pipeline_model_parallel_rank()
    places = placement.program.local_stages(rank)
    chunks = []
    for chunk, place in enumerate(places):
        virtual = chunk if len(places) > 1 else None
        chunks.append(provider(pre_process=_is_end(place, True), post_process=_is_end(place, False), vp_stage=virtual))
    _finish_chunks(placement, chunks)
    return chunks


def _finish_chunks(placement: Placement, chunks: list[nn.Module]) -> None:
    rank = parallel_state.get_pipeline_model_parallel_rank()
    placement.share(chunks, parallel_state.get_pipeline_model_parallel_group(), make_equal=True)
    for (pipe, stage), chunk in zip(placement.program.local_stages(rank), chunks, strict=True):
        unwrapped(chunk).ppcc_built_as = placement.built_as((pipe, stage))  # type: ignore[assignment]
        if pipe.index > 0:  # Norms of gradients count them once.
            for weight in chunk.parameters():
                weight.shared = True  # type: ignore[attr-defined]


def install(programs: Programs, *, profile: bool = False) -> None:
    """Make Megatron run a program. Call it before models are built, for example before `pretrain(...)`.

    `get_forward_backward_func` then returns a `ForwardBackward`, also in modules that have imported it already, and models,
    checkpoints and data use the placement of the program.

    Args:
        programs: A program, or a function from a number of microbatches to its program, which is called once per number.
        profile: Whether to name actions and messages in the traces of PyTorch's profiler, for `ppcc-profile` and `ppcc-tune`.

    Examples:
        In `pretrain_gpt.py`, started for as many ranks and chunks per rank as the program has::

            ppcc.megatron.install(lambda microbatches: ppcc.compile("zero_bubble_v", P=4, M=microbatches))
            pretrain(...)
    """
    from ._forward_backward import ForwardBackward

    install_run(programs, ForwardBackward(programs, profile=profile))


def install_run(programs: Programs, run: Callable[..., Any]) -> None:
    """Makes Megatron call `run`, and use the placement of the programs."""
    uninstall()
    _installed(programs)
    _run.append(programs)
    _replace(schedules, "get_forward_backward_func", lambda *sizes, **named_sizes: run)


def uninstall() -> None:
    """Undo `install` and `build_chunks`; chunks that were built remain."""
    while _undo:
        _undo.pop()()
    _current.clear()
    _run.clear()


_undo: list[Callable[[], None]] = []
_current: list[Placement] = []
_run: list[Programs] = []
"""The programs that install() makes Megatron run."""


def _installed(programs: Programs) -> Placement:
    """Returns the placement, and makes Megatron use it."""
    if _current and _current[0]._programs is programs:
        return _current[0]
    if _run:
        raise UsageError("install() lets Megatron run another program: build chunks for that one, or call uninstall() before")
    uninstall()
    placement = Placement(programs)
    _current.append(placement)
    for owner, names in _overrides(placement).items():
        for name, make in names.items():
            if hasattr(owner, name):
                original = getattr(owner, name)
                _replace(owner, name, _unless_default_placement(placement, original, make(original)))
    return placement


def _unless_default_placement(placement: Placement, original: Any, own: Any) -> Any:
    @wraps(original)
    def answer(*args: Any, **options: Any) -> Any:
        # The rank is unknown before the process groups exist.
        ours = parallel_state.model_parallel_is_initialized() and not placement.is_default_placement
        return (own if ours else original)(*args, **options)

    return answer


def _overrides(placement: Placement) -> Mapping[Any, Mapping[str, Callable[[Any], Any]]]:
    """The functions of Megatron to replace, by owner and name; each replacement is built from the original."""

    def of_rank(first: bool) -> Callable[[Any], Any]:
        # The ranks that Megatron takes for first and last stay so: there it logs.
        return lambda original: lambda pp_group: original(pp_group) or placement.hosts(pp_group.rank(), first=first)

    def of_chunk(first: bool) -> Callable[[Any], Any]:
        return lambda _: lambda vp_stage, vp_size: _is_end(placement.place(vp_stage), first)

    def of_stage(first: bool) -> Callable[[Any], Any]:
        def answer(original: Any) -> Any:
            def is_end(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
                if not ignore_virtual:
                    return _is_end(placement.place(vp_stage), first)
                own = parallel_state.get_pipeline_model_parallel_rank()
                return bool(original()) or placement.hosts(own, first=first)

            return is_end

        return answer

    def layers(_: Any) -> Any:
        return lambda config, vp_stage=None, pp_rank=None: placement.layers(config, placement.place(vp_stage, pp_rank))

    def offset(_: Any) -> Any:
        return lambda config, vp_stage=None, pp_rank=None: placement.layers_before(
            config, placement.place(vp_stage, pp_rank)
        )

    def of_layout(before: bool) -> Callable[[Any], Any]:
        def answer(
            layout: Any,
            layer_type: LayerType = LayerType.decoder,
            vp_stage: int | None = None,
            pp_rank: int | None = None,
        ) -> int:
            pipe, stage = placement.place(vp_stage, pp_rank)
            rows = _stages_of_layout(layout, pipe.num_stages)
            return sum(row.count(layer_type) for row in (rows[:stage] if before else rows[stage : stage + 1]))

        return lambda _: answer

    def chunks(original: Any) -> Any:
        def get_model(*args: Any, **options: Any) -> Any:
            made = original(*args, **options)
            _finish_chunks(placement, made)
            return made

        return get_model

    def nothing(value: Any) -> Callable[[Any], Any]:
        return lambda _: lambda *args, **options: value

    training = sys.modules.get("megatron.training.training")
    return {
        utils: {
            "is_pp_first_stage": of_rank(True),
            "is_pp_last_stage": of_rank(False),
            "is_vp_first_stage": of_chunk(True),
            "is_vp_last_stage": of_chunk(False),
        },
        parallel_state: {
            "is_pipeline_first_stage": of_stage(True),
            "is_pipeline_last_stage": of_stage(False),
            # Weights are tied by Placement.share: these groups are of the first and the last rank.
            "get_embedding_group": nothing(None),
            "get_position_embedding_group": nothing(None),
            "is_rank_in_embedding_group": nothing(False),
            "is_rank_in_position_embedding_group": nothing(False),
        },
        language_module.LanguageModule: {"_is_in_embd_group": nothing(False)},
        transformer_block: {"get_num_layers_to_build": layers},
        transformer_layer: {"get_transformer_layer_offset": offset},
        PipelineParallelLayerLayout: {
            "get_num_layers_to_build": of_layout(before=False),
            "get_layer_offset": of_layout(before=True),
        },
        **({training: {"get_model": chunks}} if training is not None else {}),
    }


def _replace(owner: Any, name: str, new: Any) -> None:
    """Sets a name, in all modules that have imported it."""
    original = getattr(owner, name)
    owners = [owner, *list(sys.modules.values())] if isinstance(owner, ModuleType) else [owner]
    found = [
        (module, key)
        for module in {id(module): module for module in owners}.values()
        for key, value in (list(vars(module).items()) if hasattr(module, "__dict__") else [])
        if value is original
    ]
    for module, key in found:
        setattr(module, key, new)

    def undo() -> None:
        for module, key in found:
            setattr(module, key, original)

    _undo.append(undo)
