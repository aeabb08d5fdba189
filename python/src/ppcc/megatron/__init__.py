"""Runs programs in Megatron-LM, in the place of its own schedules.

    ppcc.megatron.install(ppcc.compile("zero_bubble_v", P=4, M=16))

in front of `pretrain(...)` is all that `pretrain_gpt.py` needs. Imported by itself, since it needs megatron-core.
"""

from ._cpu import use_cpu
from ._forward_backward import ForwardBackward
from ._placement import build_chunks, install, uninstall

__all__ = ["ForwardBackward", "build_chunks", "install", "uninstall", "use_cpu"]
