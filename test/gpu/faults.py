"""Faults: a stage throws, or a rank is killed; seconds until all ranks have ended, with one communicator and with many."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import ppcc
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, StepError
from tests.interop import spawn  # noqa: F401: what the processes have imported before they start.
from tests.interop.models import Plain, loss_fn, make_batch
from tests.interop.where import BACKEND, DEVICE, become_rank

from results import check, figure, seconds_left, skipped

RANKS, FAULTY = 4, 2
TIMEOUT = 3 if DEVICE.type == "cpu" else 10
"""Seconds after which the others give up, where nobody can tell them; the first messages take some."""
LIMITS = {"throws": 10, "is killed": TIMEOUT + 10}


class Faulty(Plain):
    how = folder = ""
    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += not isinstance(x, torch._subclasses.FakeTensor)
        if self.calls == 11:  # In the second step.
            Path(self.folder, "fault").write_text(str(time.time()))
            if self.how == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("out of luck")
        return super().forward(x)


def child(rank: int, text: str, how: str, folder: str) -> None:
    torch.set_num_threads(1)
    become_rank(rank, RANKS)
    dist.init_process_group(
        BACKEND, init_method=f"file://{folder}/store", rank=rank, world_size=RANKS, timeout=timedelta(seconds=120)
    )
    program = ppcc.Program.from_json(text)
    module = Faulty().double() if rank == FAULTY else Plain().double()
    module.how, module.folder = how, folder
    batch, target = make_batch(program.num_microbatches)
    runtime = Runtime(program, {rank: module}, loss_fn=loss_fn, timeout=TIMEOUT if how == "is killed" else None)
    try:
        for _ in range(3):
            runtime.step(batch, target=target)
    except StepError as error:
        Path(folder, f"error{rank}").write_text(str(error))
        os._exit(3)  # What training scripts do: a group that has been aborted is not destroyed.
    os._exit(4)


def measure(how: str, transport: str) -> None:
    name = f"a rank {how}, {transport}"
    if seconds_left() < 25:
        return skipped(name, "the time of the step is over")
    text = ppcc.compile("one_f_one_b", P=RANKS, M=8, transport=transport).json
    context = multiprocessing.get_context("forkserver")
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=child, args=(rank, text, how, folder)) for rank in range(RANKS)]
        for process in processes:
            process.start()
        fault, limit = Path(folder, "fault"), time.monotonic() + min(60, seconds_left() - 15)
        while not fault.exists() and time.monotonic() < limit and any(process.is_alive() for process in processes):
            time.sleep(0.02)
        limit = time.monotonic() + LIMITS[how] + 5
        while any(process.is_alive() for process in processes) and time.monotonic() < limit:
            time.sleep(0.02)
        ended = time.time()
        codes = [process.exitcode for process in processes]
        for process in processes:
            process.kill()
            process.join()
        errors = "\n".join(path.read_text() for path in sorted(Path(folder).glob("error*")))
        began = float(fault.read_text()) if fault.exists() else 0.0
    wanted = [-signal.SIGKILL if how == "is killed" and rank == FAULTY else 3 for rank in range(RANKS)]
    told = "out of luck" if how == "throws" else "ended because of"
    check(f"{name}: all end with StepError", codes == wanted and errors.count(told) >= RANKS - (1 if how == "throws" else 2), f"exit codes {codes}\n{errors}")
    if began:
        figure(f"{name}: all have ended after", ended - began, "s")
        check(f"{name}: within {LIMITS[how]} s", ended - began < LIMITS[how], f"{ended - began:.1f} s")


if __name__ == "__main__":
    for how in LIMITS:
        for transport in ("stream", "stream-per-edge"):
            measure(how, transport)
