"""megatron-core on machines without a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _CudaToCpu(TorchFunctionMode):
    """Creates tensors on the CPU where CUDA is requested."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if "cuda" in str(named.get("device", "")):
            named["device"] = "cpu"
        if function is torch.Tensor.cuda:
            return args[0]
        return function(*args, **named)


class _NoCudaRngTracker:
    """Replaces the tracker of CUDA's random states."""

    @contextlib.contextmanager
    def fork(self, name: str = "") -> Iterator[None]:
        yield

    def is_initialized(self) -> bool:
        return True

    def get_states(self) -> dict[str, Any]:
        return {}


def use_cpu() -> None:
    """Make megatron-core use the CPU instead of CUDA, in the whole process, to try programs without a GPU.

    Call it before you build models. Random states are those of the CPU, the same on all tensor-parallel ranks.
    """
    from megatron.core.tensor_parallel import random

    torch.cuda.current_device = lambda: "cpu"  # type: ignore[assignment, return-value]
    torch.cuda.synchronize = lambda *device: None
    random._CUDA_RNG_STATE_TRACKER, random._CUDA_RNG_STATE_TRACKER_INITIALIZED = _NoCudaRngTracker(), True
    mode: Any = _CudaToCpu()
    mode.__enter__()
