"""Programs in torchtitan: where a model is cut, which stages are on which ranks, and in which order everything comes.

    spec = model_registry("debugmodel")
    spec.pipelining_fn = ppcc.torchtitan.pipelining_fn(ppcc.compile("zero_bubble_v", P=4, M=8))

in the place of `--parallelism.pipeline_parallel_schedule`. Imported by itself, since it needs torchtitan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from torchtitan.distributed import pipeline_parallel

from ._program import Program
from .torch._errors import RuntimeMisuse
from .torch._interop import load_torch_runtime

__all__ = ["pipelining_fn"]

_DECLARED = ("UNSHARD", "RESHARD", "REDUCE_GRAD")


def pipelining_fn(program: Program, own: Callable[..., Any] = pipeline_parallel.pipeline_llm) -> Callable[..., Any]:
    """What a ModelSpec has as `pipelining_fn`: `own`, which cuts the model, with the stages, the messages and the declared
    actions of a program. What `pipeline_parallel_schedule` says counts no more.

    Raises CompileError for programs that PyTorch cannot run, RuntimeMisuse for what torchtitan's settings do not fit.
    """
    if len(program.pipes) != 1:
        raise RuntimeMisuse(f"torchtitan has one pipe, the program {len(program.pipes)}")
    (pipe,) = program.pipes
    has_steps = any(action.kind.letters in _DECLARED for actions in program.actions for action in actions)

    def metadata(parallel_dims: Any, parallelism: Any, model_config: Any) -> tuple[int, int, int, int]:
        return (
            pipe.num_stages,
            len(model_config.layers),
            parallelism.pipeline_parallel_first_stage_less_layers,
            parallelism.pipeline_parallel_last_stage_less_layers,
        )

    def stages_of(pp_rank: int, pp_degree: int, pp_schedule: str, num_stages: int) -> tuple[int, ...]:
        if (pp_degree, num_stages) != (program.ranks, pipe.num_stages):
            raise RuntimeMisuse(
                f"the program is for {program.ranks} ranks and {pipe.num_stages} stages, but torchtitan has {pp_degree} and "
                f"{num_stages}"
            )
        return tuple(stage for _, stage in program.stages_of(pp_rank))

    def schedule(*, parallelism: Any, local_batch_size: int, stages: list[Any], loss_fn: Callable[..., Any], **rest: Any) -> Any:
        count, left = divmod(local_batch_size, parallelism.pipeline_parallel_microbatch_size)
        if left or count != program.microbatches:
            raise RuntimeMisuse(
                f"the program is for {program.microbatches} microbatches, but local_batch_size {local_batch_size} in pieces of "
                f"{parallelism.pipeline_parallel_microbatch_size} makes {count}"
            )

        def scalar_loss(*given: Any, **named: Any) -> Any:
            return loss_fn(*given, **named)[0]

        # torchtitan divides by the number of tokens itself. FSDP gathers where the schedule does not say it.
        return load_torch_runtime(program, stages, fsdp=not has_steps, loss_fn=scalar_loss, scale_grads=False, **rest)

    def pipelining(*given: Any, **named: Any) -> Any:
        with (
            mock.patch.object(pipeline_parallel, "_get_pipeline_metadata", metadata),
            mock.patch.object(pipeline_parallel, "_get_pp_rank_to_stage_indices_mapping", stages_of),
            mock.patch.object(pipeline_parallel, "_build_pipeline_schedule", schedule),
        ):
            return own(*given, **named)

    return pipelining
