"""Runs a function in several processes that form one gloo process group."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing


def run(function: Callable[..., None], ranks: int, *args: Any) -> None:
    """Calls `function(rank, *args)` on each rank; raises what the first of them raised."""
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        torch.multiprocessing.spawn(_worker, (store, ranks, function, args), nprocs=ranks)


def _worker(rank: int, store: str, ranks: int, function: Callable[..., None], args: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=timedelta(seconds=240)
    )
    function(rank, *args)
    dist.destroy_process_group()
