"""Run programs in torchtitan: placement, messages and order are those of the program (docs/training-python.md).

Import this module explicitly, since it needs torchtitan.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

from torchtitan.distributed import pipeline_parallel

from ._program import Program
from .torch._check import replaced
from .torch._errors import UsageError
from .torch._fits import check_chain
from .torch._interop import load_torch_runtime
from .torch._tune_options import TuneKeywords, TuneOptions, with_tune_options
from .torch._tune_pytorch import TunedSchedule

__all__ = ["configure", "pipelining_fn", "tune"]


def configure(config: Any, program: Program) -> None:
    """Set up a `Trainer.Config` to run a program.

    Args:
        config: The config, which is changed. `local_batch_size` divided by the size of a microbatch must be M.
        program: The program.

    Raises:
        UsageError: The config or torchtitan does not fit the program. Programs that PyTorch cannot run raise CompileError when
            the Trainer builds its pipeline.

    Examples:
        In a config file of torchtitan::

            def debugmodel_zero_bubble_v():
                config = llama3_debugmodel()
                config.training.local_batch_size = 8
                config.parallelism.pipeline_parallel_microbatch_size = 1
                ppcc.torchtitan.configure(config, ppcc.compile("zero_bubble_v", P=4, M=8))
                return config
    """
    _configure(config, program, None)


@with_tune_options
def tune(config: Any, program: Program, **options: Unpack[TuneKeywords]) -> None:
    """Set up a `Trainer.Config` to run a program, as `configure` does, and to find a faster order in the first steps of training.

    They are steps of the training, whose gradients are right under every order: none is run beside them, and none is lost. All ranks measure at most
    4 + 4 * steps of them, rank 0 chooses, and all ranks change the program between two steps, or none does. Then it prints the report.

    Args:
        config: The config, which is changed.
        program: The program that runs first, such as 1F1B. It has the placement and the number of microbatches of all others.
        **options: See `ppcc.torch.TuneOptions`.

    Raises:
        UsageError: The config or torchtitan does not fit the program, or an argument is out of range. The Trainer raises it for programs and stages
            that cannot be tuned.

    Examples:
        In a config file of torchtitan::

            def debugmodel_tuned():
                config = llama3_debugmodel()
                config.training.local_batch_size = 8
                config.parallelism.pipeline_parallel_microbatch_size = 1
                ppcc.torchtitan.tune(config, ppcc.compile("one_f_one_b", P=4, M=8), output="tuned")
                return config
    """
    _configure(config, program, TuneOptions(**options))


def _configure(config: Any, program: Program, tuning: TuneOptions | None) -> None:
    config.model_spec.pipelining_fn = _pipelining_fn(program, config.model_spec.pipelining_fn, tuning)
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
    """Return a `pipelining_fn` for a `ModelSpec` that runs a program. `configure` uses it.

    Args:
        program: The program. It replaces the schedule of `pipeline_parallel_schedule`.
        own: The model's pipelining function, which divides the model into stages.

    Returns:
        A function with the arguments and results of `own`. It raises CompileError for programs that PyTorch cannot run, and
        UsageError if the settings of torchtitan do not fit.

    Raises:
        UsageError: The program has several pipes or slices of sequences.
    """
    return _pipelining_fn(program, own, None)


def _pipelining_fn(program: Program, own: Callable[..., Any], tuning: TuneOptions | None) -> Callable[..., Any]:
    check_chain(program, "torchtitan")
    (pipe,) = program.pipes
    gathers = program._runs("UNSHARD")

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
        load: Callable[..., Any] = load_torch_runtime if tuning is None else partial(TunedSchedule.load, tuning=tuning)
        return load(program, stages, fsdp=not gathers, loss_fn=scalar_loss, scale_grads=False, **rest)

    replacements: dict[str, Callable[..., Any]] = {
        "_get_pipeline_metadata": metadata,
        "_get_pp_rank_to_stage_indices_mapping": local_stages,
        "_build_pipeline_schedule": schedule,
    }

    def pipelining(*given: Any, **named: Any) -> Any:
        if missing := [name for name in replacements if not hasattr(pipeline_parallel, name)]:
            raise UsageError(f"this version of torchtitan has no `{missing[0]}`: use 0.3")
        with replaced(pipeline_parallel, replacements):
            return own(*given, **named)

    return pipelining
