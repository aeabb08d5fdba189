"""The device and the backend of the tests: PPCC_TEST_DEVICE, such as `cuda` (the default is `cpu`), and PPCC_TEST_BACKEND.

Tensors are made there (`torch.set_default_device`), in the process of pytest and in those of ranks. Ranks may share a GPU:
NCCL refuses two only where host and GPU are the same, so each rank is given a host of its own, and a network between them.
"""

from __future__ import annotations

import os

import torch

DEVICE = torch.device(os.environ.get("PPCC_TEST_DEVICE") or "cpu")
BACKEND = os.environ.get("PPCC_TEST_BACKEND") or ("gloo" if DEVICE.type == "cpu" else f"cpu:gloo,{DEVICE.type}:nccl")


def use_device() -> None:
    """Makes tensors on the device from now on, in this thread."""
    if DEVICE.type != "cpu":
        torch.set_default_device(DEVICE)


def environment_of_rank(rank: int, ranks: int, gpus: int) -> dict[str, str]:
    """What NCCL reads in the process of a rank, so that several may share a GPU."""
    if ranks <= gpus:
        return {}
    own_host = {"NCCL_HOSTID": f"rank{rank}", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_MNNVL_ENABLE": "0"}
    return {**own_host, "NCCL_MULTI_RANK_GPU_ENABLE": "1"}  # From 2.30 on it must be allowed.


def become_rank(rank: int, ranks: int) -> None:
    """Before the process group is made."""
    if DEVICE.type != "cpu":
        gpus = torch.cuda.device_count()
        os.environ.update(environment_of_rank(rank, ranks, gpus))
        torch.cuda.set_device(rank % gpus)
    use_device()
