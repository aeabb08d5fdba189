"""Runs a function in several processes that form one process group.

The processes are forked from one that has imported PyTorch and done nothing else, which costs a tenth of importing it in each.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import os
import runpy
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

from .where import BACKEND, DEVICE, become_rank

_imported = [*(f"torch.{name}" for name in ("distributed.checkpoint", "distributed.fsdp", "distributed.pipelining", "distributed.tensor.parallel", "testing"))]
_imported += ["ppcc.torch._retune", "ppcc.torch._slice_cache", "pytest"]
multiprocessing.set_forkserver_preload(_imported)


def preload(*modules: str) -> None:
    """Imports modules before the first process, if they are installed: for those that take seconds, but not where they may initialize a device, with which no
    process can be forked."""
    _imported.extend(name for name in modules if DEVICE.type == "cpu" and importlib.util.find_spec(name.partition(".")[0]) is not None)
    multiprocessing.set_forkserver_preload(_imported)


def run(function: Callable[..., None], ranks: int, *args: Any) -> None:
    """Calls `function(rank, *args)` on each rank. Fails with what the first of them raised: others fail for its sake."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            torch.multiprocessing.start_processes(
                _worker, (folder, ranks, function, args), nprocs=ranks, start_method="forkserver"
            )
        except (torch.multiprocessing.ProcessRaisedException, torch.multiprocessing.ProcessExitedException) as error:
            errors = sorted(Path(folder).glob("error-*"))
            raise AssertionError(errors[0].read_text() if errors else str(error)) from None


@contextlib.contextmanager
def as_launched() -> Iterator[None]:
    """Scripts in it get the process group that stands, as if torchrun had started them."""
    before = dist.init_process_group, dist.destroy_process_group
    dist.init_process_group = lambda backend: None
    dist.destroy_process_group = lambda: None
    try:
        yield
    finally:
        dist.init_process_group, dist.destroy_process_group = before


def run_script(script: Path, ranks: int, *arguments: str) -> str:
    """What a script prints, rank by rank, that torchrun would start on these ranks."""
    with tempfile.TemporaryDirectory() as folder:
        run(_run_script, ranks, folder, script, arguments)
        return "".join(Path(folder, str(rank)).read_text() for rank in range(ranks))


def _run_script(rank: int, folder: str, script: Path, arguments: tuple[str, ...]) -> None:
    sys.argv = [str(script), *arguments]
    with Path(folder, str(rank)).open("w") as file, contextlib.redirect_stdout(file), as_launched():
        runpy.run_path(str(script), run_name="__main__")


def _worker(rank: int, folder: str, ranks: int, function: Callable[..., None], args: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    store = os.path.join(folder, "store")
    become_rank(rank, ranks)
    dist.init_process_group(
        BACKEND, init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=timedelta(seconds=240)
    )
    try:
        function(rank, *args)
    except BaseException:
        Path(folder, f"error-{time.time_ns()}").write_text(f"rank {rank}: {traceback.format_exc()}")
        raise
    dist.destroy_process_group()
