"""Run programs on torch.distributed.

`Runtime` runs every program except those with slices of sequences and those that move memory between ranks (`bpipe`), including
several pipes (DualPipe), overlap groups, skip edges, B or I and W. It rejects stages whose gradients would be wrong before the
first step. `tune` finds the order with the shortest step for measured costs, and `Retuner` a new one when these drift. `load_torch_runtime` runs a program in PyTorch's own
runtime, and `check` reports whether a schedule of another system can deadlock.

Examples:
    >>> import ppcc, ppcc.torch, torch
    >>> program = ppcc.compile("gpipe", P=1, M=4)
    >>> runtime = ppcc.torch.Runtime(program, {0: torch.nn.Linear(8, 2)}, loss_fn=torch.nn.functional.mse_loss)
    >>> sorted(runtime.step(torch.ones(16, 8), target=torch.zeros(16, 2)).losses)
    [0, 1, 2, 3]
"""

from .._choose import TunedOrder
from .._deprecated import renamed_in_module
from ._check import CheckResult, check
from ._checkpoint import Checkpoint
from ._errors import UsageError, StepError
from ._interop import load_torch_runtime
from ._overlap import Half, yield_to_other, interleave
from ._retune import Drift, Retuner
from ._runtime import Runtime
from ._step import StepResult
from ._tune import tune
from ._tune_result import TuneResult

__all__ = [
    "CheckResult",
    "Checkpoint",
    "Drift",
    "Half",
    "Retuner",
    "Runtime",
    "UsageError",
    "StepError",
    "StepResult",
    "TuneResult",
    "TunedOrder",
    "check",
    "interleave",
    "load_torch_runtime",
    "tune",
    "yield_to_other",
]

__getattr__ = renamed_in_module(
    __name__,
    {"RuntimeMisuse": "UsageError", "StepFailed": "StepError", "Verdict": "CheckResult", "give_way": "yield_to_other"},
    globals(),
)
