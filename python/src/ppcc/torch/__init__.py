"""Run programs on torch.distributed.

`Runtime` runs every program: several pipes (DualPipe), slices of sequences (`SliceCache`), overlap groups, skip edges, B or I and W, moves
between ranks (`bpipe`). It rejects stages whose gradients would be wrong before the first step. `tune` finds the order with the shortest
step for measured costs, and `Retuner` a new one when these drift. `load_torch_runtime` runs a program in PyTorch's own runtime, and `check`
reports whether a schedule of another system can deadlock.

Examples:
    >>> import ppcc, ppcc.torch, torch
    >>> program = ppcc.compile("gpipe", P=1, M=4)
    >>> runtime = ppcc.torch.Runtime(program, {0: torch.nn.Linear(8, 2)}, loss_fn=torch.nn.functional.mse_loss)
    >>> sorted(runtime.step(torch.ones(16, 8), target=torch.zeros(16, 2)).losses)
    [0, 1, 2, 3]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from .._choose import TunedOrder
    from ._check import CheckResult, check
    from ._checkpoint import Checkpoint
    from ._errors import StepError, UsageError
    from ._interop import load_torch_runtime
    from ._overlap import Half, interleave, yield_to_other
    from ._retune import Drift, Retuner
    from ._runtime import Runtime
    from ._slice_cache import SliceCache, current_action
    from ._step import StepResult
    from ._tune import tune
    from ._tune_options import TuneOptions
    from ._tune_result import TuneResult

_NAMES = {
    ".._choose": ("TunedOrder",),
    "._check": ("CheckResult", "check"),
    "._checkpoint": ("Checkpoint",),
    "._errors": ("StepError", "UsageError"),
    "._interop": ("load_torch_runtime",),
    "._overlap": ("Half", "interleave", "yield_to_other"),
    "._retune": ("Drift", "Retuner"),
    "._runtime": ("Runtime",),
    "._slice_cache": ("SliceCache", "current_action"),
    "._step": ("StepResult",),
    "._tune": ("tune",),
    "._tune_options": ("TuneOptions",),
    "._tune_result": ("TuneResult",),
}
"""By module. Each is imported when a name of it is used first: parts of PyTorch are slow to import."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "CheckResult", "Checkpoint", "Drift", "Half", "Retuner", "Runtime", "SliceCache", "StepError", "StepResult", "TuneOptions", "TuneResult",
    "TunedOrder", "UsageError", "check", "current_action", "interleave", "load_torch_runtime", "tune", "yield_to_other",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name], __name__), name)
    return found


def __dir__() -> list[str]:
    return __all__
