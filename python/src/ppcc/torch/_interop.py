"""PyTorch's own runtime as a client."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any, Literal

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import _PipelineStageBase

from .._program import Program
from ._groups import agree_on


def load_torch_runtime(
    program: Program,
    stages: Sequence[_PipelineStageBase],
    *,
    format: Literal["compute_comms", "compute_only"] = "compute_comms",
    fsdp: bool = False,
    **options: Any,
) -> schedules._PipelineScheduleRuntime:
    """A `_PipelineScheduleRuntime` of torch.distributed.pipelining that runs the program on this rank's `stages`.

    `options`, such as `loss_fn` and `scale_grads`, go to its constructor. All ranks call it together. Raises CompileError for
    programs that PyTorch cannot run: stages on two ranks, skip edges, no backward, and others; RuntimeMisuse where ranks have
    different programs.
    """
    agree_on(program, stages[0].group)
    text = program.to_csv(format, fsdp=fsdp)
    make: Any = schedules._PipelineScheduleRuntime
    runtime: schedules._PipelineScheduleRuntime = make(list(stages), n_microbatches=program.microbatches, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        runtime._load_csv(path, format=format)
    return runtime
