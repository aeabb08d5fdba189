"""Runs programs on torch.distributed.

    runtime = ppcc.torch.Runtime(program, {0: first_stage}, loss_fn=loss_fn)
    losses = runtime.step(batch, target=target)

Any program runs: several pipes (DualPipe), overlap groups, skip edges, B or I and W. `load_torch_runtime` gives a program to
PyTorch's own runtime instead.
"""

from ._errors import RuntimeMisuse
from ._interop import load_torch_runtime
from ._runtime import Runtime, StepResult

__all__ = ["Runtime", "RuntimeMisuse", "StepResult", "load_torch_runtime"]
