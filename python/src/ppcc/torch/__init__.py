"""Runs programs on torch.distributed.

    runtime = ppcc.torch.Runtime(program, {0: first_stage}, loss_fn=loss_fn)
    losses = runtime.step(batch, target=target)

Any program runs, but for those whose microbatches are slices of sequences and those that move memory between ranks (bpipe), which are
refused: several pipes (DualPipe), overlap groups, skip edges, B or I and W. Stages whose gradients would be wrong are refused before the first step. `load_torch_runtime` gives a program to PyTorch's
own runtime instead, and `check` says of a schedule of others whether it can hang.
"""

from .._deprecated import renamed_in_module
from ._check import CheckResult, check
from ._checkpoint import Checkpoint
from ._errors import UsageError, StepError
from ._interop import load_torch_runtime
from ._overlap import Half, yield_to_other, interleave
from ._runtime import Runtime
from ._step import StepResult

__all__ = [
    "CheckResult",
    "Checkpoint",
    "Half",
    "Runtime",
    "UsageError",
    "StepError",
    "StepResult",
    "check",
    "interleave",
    "load_torch_runtime",
    "yield_to_other",
]

__getattr__ = renamed_in_module(
    __name__,
    {"RuntimeMisuse": "UsageError", "StepFailed": "StepError", "Verdict": "CheckResult", "give_way": "yield_to_other"},
    globals(),
)
