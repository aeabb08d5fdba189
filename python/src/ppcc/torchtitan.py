"""Programs in torchtitan: where a model is cut, which stages are on which ranks, and in which order everything comes.

    config = llama3_debugmodel()
    ppcc.torchtitan.configure(config, ppcc.compile("zero_bubble_v", P=4, M=8))

in the function of a config file that gives the config. Imported by itself, since it needs torchtitan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from torchtitan.distributed import pipeline_parallel

from ._program import Program
from .torch._errors import UsageError
from .torch._interop import load_torch_runtime
from .torch._unsupported_stages import check_slices

__all__ = ["configure", "pipelining_fn"]

def configure(config: Any, program: Program) -> None:
    """Makes a `Trainer.Config` run a program; what the program decides is set in it. The batch is to be M microbatches.

    Raises CompileError for programs that PyTorch cannot run, UsageError for what else of the config does not fit.
    """
    config.model_spec.pipelining_fn = pipelining_fn(program, config.model_spec.pipelining_fn)
    _check_batch(program, config.training.local_batch_size, config.parallelism.pipeline_parallel_microbatch_size)
    config.parallelism.pipeline_parallel_degree = program.num_ranks
    config.training.disable_cuda_graphs = True  # A pipeline has none.
    # torchtitan reads from these names on which rank the losses are, and nothing else: on 0, or on the last.
    on = program.pipes[0].rank_of_stage[-1]
    config.parallelism.pipeline_parallel_schedule = "ZBVZeroBubble" if on == 0 else "1F1B"
    config.metrics.save_for_all_ranks |= on not in (0, program.num_ranks - 1)


def _check_batch(program: Program, size: int, microbatch: int) -> None:
    count, left = divmod(size, microbatch)
    if left or count != program.num_microbatches:
        raise UsageError(
            f"the program is for {program.num_microbatches} microbatches, but local_batch_size {size} in pieces of {microbatch} "
            f"makes {count}"
        )


def pipelining_fn(program: Program, own: Callable[..., Any] = pipeline_parallel.pipeline_llm) -> Callable[..., Any]:
    """What a ModelSpec has as `pipelining_fn`: `own`, which cuts the model, with the stages, the messages and the declared
    actions of a program. What `pipeline_parallel_schedule` says counts no more.

    Raises CompileError for programs that PyTorch cannot run, UsageError for what torchtitan's settings do not fit.
    """
    if len(program.pipes) != 1:
        raise UsageError(f"torchtitan has one pipe, the program {len(program.pipes)}")
    check_slices(program, "torchtitan")
    (pipe,) = program.pipes
    gathers = any(action.op == "UNSHARD" for actions in program.actions for action in actions)

    def metadata(parallel_dims: Any, parallelism: Any, model_config: Any) -> tuple[int, int, int, int]:
        return (
            pipe.num_stages,
            len(model_config.layers),
            parallelism.pipeline_parallel_first_stage_less_layers,
            parallelism.pipeline_parallel_last_stage_less_layers,
        )

    def local_stages(pp_rank: int, pp_degree: int, pp_schedule: str, num_stages: int) -> tuple[int, ...]:
        if (pp_degree, num_stages) != (program.num_ranks, pipe.num_stages):
            raise UsageError(
                f"the program is for {program.num_ranks} ranks and {pipe.num_stages} stages, but torchtitan has {pp_degree} and "
                f"{num_stages}"
            )
        return tuple(stage for _, stage in program.local_stages(pp_rank))

    def schedule(*, parallelism: Any, local_batch_size: int, stages: list[Any], loss_fn: Callable[..., Any], **rest: Any) -> Any:
        _check_batch(program, local_batch_size, parallelism.pipeline_parallel_microbatch_size)

        def scalar_loss(*given: Any, **named: Any) -> Any:
            return loss_fn(*given, **named)[0]

        # torchtitan divides by the number of tokens itself, and wraps stages in FSDP whether there are replicas or not.
        return load_torch_runtime(program, stages, fsdp=not gathers, loss_fn=scalar_loss, scale_grads=False, **rest)

    def pipelining(*given: Any, **named: Any) -> Any:
        with (
            mock.patch.object(pipeline_parallel, "_get_pipeline_metadata", metadata),
            mock.patch.object(pipeline_parallel, "_get_pp_rank_to_stage_indices_mapping", local_stages),
            mock.patch.object(pipeline_parallel, "_build_pipeline_schedule", schedule),
        ):
            return own(*given, **named)

    return pipelining
