#!/usr/bin/env python3
"""Compares what an action costs in PyTorch's own runtime and in the Python loader.

One program, one process a rank on gloo, stages of no size (Linear 16x16, 4 rows a microbatch,
float32), so that what remains is the interpreter and the messages. `./dev interop` has made the Python that runs this:

    build/interop-2.15.0/bin/python test/bench/loaders.py
"""

import os
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import ppcc
import torch
import torch.distributed as dist
import torch.multiprocessing
from ppcc.torch import Runtime, load_torch_runtime
from torch import nn
from torch.distributed.pipelining import PipelineStage

P, M, WIDTH, ROWS = 4, 32, 16, 4
WARMUP, STEPS = 2, 10


def seconds(steps):
    """The median of each of some steps; they take turns, so that what else runs meets all, and ranks begin together."""
    times = [[] for _ in steps]
    for iteration in range(WARMUP + STEPS):
        for step, found in zip(steps, times, strict=True):
            dist.barrier()
            start = time.perf_counter()
            step()
            dist.barrier()
            if iteration >= WARMUP:
                found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]


def measure(rank, store, text, results):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=P, timeout=timedelta(seconds=300)
    )
    program = ppcc.Program.from_json(text)
    batch, target = torch.randn(M * ROWS, WIDTH), torch.randn(M * ROWS, WIDTH)
    loss_fn = nn.functional.mse_loss
    ours = Runtime(program, {rank: nn.Linear(WIDTH, WIDTH)}, loss_fn=loss_fn)
    stage = PipelineStage(nn.Linear(WIDTH, WIDTH), rank, P, torch.device("cpu"))
    theirs = load_torch_runtime(program, [stage], loss_fn=loss_fn)
    given = [batch] if rank == 0 else []
    asked = {"target": target, "losses": []} if rank == P - 1 else {}
    found = seconds([lambda: theirs.step(*given, **asked), lambda: ours.step(batch, target=target)])
    if rank == 0:
        Path(results).write_text("\n".join(map(str, found)))
    dist.destroy_process_group()


def main():
    program = ppcc.compile("one_f_one_b", P=P, M=M)
    actions = sum(map(len, program.actions))
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results")
        arguments = (os.path.join(folder, "store"), program.json, results)
        torch.multiprocessing.spawn(measure, arguments, nprocs=P)
        theirs, ours = (float(line) / actions for line in Path(results).read_text().split())
    load = os.getloadavg()[0]
    print(f"{program.name}, {actions} actions on {P} processes (gloo), {os.cpu_count()} cores, load {load:.1f}, PyTorch {torch.__version__}")
    for name, seconds_of_action in {"PyTorch's runtime": theirs, "Python loader": ours}.items():
        figures = f"{seconds_of_action * actions * 1e3:8.1f} ms a step {seconds_of_action * 1e6:7.1f} us an action"
        print(f"{name:20} {figures} {theirs / seconds_of_action:7.2f} times as fast as PyTorch's")


if __name__ == "__main__":
    main()
