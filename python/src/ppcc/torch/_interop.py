"""Runs programs in PyTorch's own runtime."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import _PipelineStageBase
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_leaves

from .._program import Program
from ._errors import UsageError
from ._fits import check_slices
from ._fsdp import check_root, is_sharded
from ._groups import check_same_program, together
from ._unsupported_stages import UNSUPPORTED_WRAPPERS, USE_FULL_BACKWARD, ForwardRecord, check_leaves, check_no_nested_backward, check_stage, check_torch_graph

Format = Literal["compute_comms", "compute_only"]
_UNSUPPORTED_WRAPPERS = UNSUPPORTED_WRAPPERS | {"DistributedDataParallel": f"PyTorch knows it around a whole stage, with B: wrap the stage, and {USE_FULL_BACKWARD}"}


def load_torch_runtime(
    program: Program,
    stages: Sequence[_PipelineStageBase],
    *,
    format: Format = "compute_comms",
    fsdp: bool = False,
    **options: Any,
) -> schedules._PipelineScheduleRuntime:
    """Return a `_PipelineScheduleRuntime` of torch.distributed.pipelining that runs a program. All ranks call it together.

    Args:
        program: The program, the same on all ranks.
        stages: The `PipelineStage` objects of this rank.
        format: Whether PyTorch takes the messages of the program (`"compute_comms"`) or adds its own (`"compute_only"`).
        fsdp: Whether to add the actions that gather and free the parameters of stages that `fully_shard` has sharded.
        **options: Further arguments of its constructor, such as `loss_fn` and `scale_grads`.

    Returns:
        PyTorch's schedule; call `step` as usual.

    Raises:
        CompileError: PyTorch cannot run the program: stages on two ranks, skip edges, no backward, and others.
        UsageError: Ranks have different programs, or the gradients of a stage would be wrong.

    Examples:
        On each rank (docs/training-python.md)::

            (pipe,) = program.pipes
            stages = [PipelineStage(modules[s], s, pipe.num_stages, device) for _, s in program.local_stages(rank)]
            runtime = load_torch_runtime(program, stages, loss_fn=torch.nn.functional.mse_loss)
    """
    runtime: schedules._PipelineScheduleRuntime = make_runtime(schedules._PipelineScheduleRuntime, program, stages, format, fsdp, options)
    return runtime


def make_runtime(kind: Any, program: Program, stages: Sequence[_PipelineStageBase], format: Format, fsdp: bool, options: Mapping[str, Any]) -> Any:
    """`load_torch_runtime` for a class that is or derives from `_PipelineScheduleRuntime`."""
    check_same_program(program, stages[0].group)
    with together(stages[0].group):
        check_slices(program, "PyTorch")
        for stage in stages:
            prepare_stage(program, stage)
            if is_sharded(stage.submod) and not fsdp and not program._runs("UNSHARD"):
                raise UsageError(f"stage {stage.stage_index} is cut up by fully_shard: say fsdp=True, which gathers its weights")
    text = program.to_csv(format, fsdp=fsdp)
    runtime = kind(list(stages), n_microbatches=program.num_microbatches, **options)
    load_rows(runtime, text, format)
    return runtime


def load_rows(runtime: schedules._PipelineScheduleRuntime, text: str, format: Format) -> None:
    """Lets PyTorch's runtime run a program, given as CSV."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        runtime._load_csv(path, format=format)


def prepare_stage(program: Program, stage: Any) -> None:
    """Checks a stage, now and in its first forward. Raises UsageError if its gradients would be wrong."""
    module, label = stage.submod, f"stage {stage.stage_index}"
    actions = program.actions[program.pipes[0].rank_of_stage[stage.stage_index]]
    has_split_backward = any(action.op == "I" and action.stage == stage.stage_index for action in actions)
    if has_split_backward and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        raise UsageError(
            f"PyTorch {torch.__version__} may count gradients of weights twice where I and W split a graph: use PyTorch 2.13 or newer, train "
            f"with Runtime, or {USE_FULL_BACKWARD}"
        )
    if isinstance(module, DistributedDataParallel) and not has_split_backward:
        module = module.module
    check_stage(module, label, has_split_backward=has_split_backward, torch_splits=has_split_backward, unsupported=_UNSUPPORTED_WRAPPERS)
    check_root(module, label)
    _check_first_graph(stage, label, has_split_backward)
    for part in module.modules() if has_split_backward else ():
        if is_sharded(part):  # W needs the weights that its I had.
            part.set_reshard_after_forward(False, recurse=False)


def _check_first_graph(stage: Any, label: str, has_split_backward: bool) -> None:
    """Checks the autograd graph of the first forward of a stage."""
    run = stage.forward_maybe_with_nosync

    def first(*given: Any, **named: Any) -> Any:
        with ForwardRecord() as seen:
            result = run(*given, **named)
        outputs = [tensor for tensor in tree_leaves(result) if isinstance(tensor, Tensor) and tensor.requires_grad]
        if outputs:
            stage.forward_maybe_with_nosync = run
            if has_split_backward:
                check_torch_split(stage, seen, outputs, tree_leaves([given, named]))
            elif hasattr(stage, "_stage_meta"):  # From 2.15 on it runs backwards to find shapes.
                check_no_nested_backward(outputs, label)
        return result

    stage.forward_maybe_with_nosync = first


def check_torch_split(stage: Any, seen: ForwardRecord, outputs: Sequence[Tensor], sources: Sequence[Any]) -> None:
    """Raises UsageError if PyTorch cannot split the backward of a forward of a stage into I and W."""
    weights, label = list(stage.submod.parameters()), f"stage {stage.stage_index}"
    check_torch_graph(seen, outputs, sources, label)
    check_leaves(outputs, sources, weights, label, starts_backward=not stage.is_last)
