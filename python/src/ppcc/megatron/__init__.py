"""Run programs in Megatron-LM instead of its own schedules (docs/megatron.md).

Call `install`, or `tune`, before `pretrain(...)`. Import this module explicitly, since it needs megatron-core.
"""

from ._cpu import use_cpu
from ._forward_backward import ForwardBackward
from ._placement import build_chunks, install, uninstall
from ._tune import TunedForwardBackward, tune

__all__ = ["ForwardBackward", "TunedForwardBackward", "build_chunks", "install", "tune", "uninstall", "use_cpu"]
