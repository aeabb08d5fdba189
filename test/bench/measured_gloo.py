#!/usr/bin/env python3
"""The seconds that a step of a program takes on gloo with stages that sleep: in ppcc.torch.Runtime, and in PyTorch's own runtime where
that takes it.

Usage: measured_gloo.py PROGRAM.JSON. Stages take SCALE times those of Runtime/Slow.h; what is printed is divided by it.
Called by measured.py with the Python that has PyTorch."""

import contextlib
import sys
import tempfile
import time
from datetime import timedelta

import ppcc
import torch
import torch.distributed as dist
import torch.multiprocessing
from ppcc.torch import Runtime, load_torch_runtime
from torch import nn
from torch.distributed.pipelining import PipelineStage

WIDTH, ROWS = 8, 2
SCALE = 4  # Python takes its time beside the stages.


class Sleep(torch.autograd.Function):
    """Takes the times of Runtime/Slow.h."""

    @staticmethod
    def forward(context, x, weight, seconds):
        context.seconds = seconds
        context.save_for_backward(x, weight)
        time.sleep(seconds)
        return x * weight

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        time.sleep(2 * context.seconds)
        return gradient * weight, (gradient * x).sum(0), None


class Stage(nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.weight = seconds, nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return Sleep.apply(x, self.weight, self.seconds)


def measure(rank, store, text, results):
    torch.set_num_threads(1)
    program = ppcc.Program.from_json(text)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=program.num_ranks, timeout=timedelta(seconds=300)
    )
    stages = {s: Stage((1 + 4 * s) * 3e-3 * SCALE) for _, s in program.local_stages(rank)}
    last = program.pipes[0].num_stages - 1
    rows = program.num_microbatches * ROWS
    batch, target = torch.randn(rows, WIDTH), torch.randn(rows, WIDTH)
    ours = Runtime(program, stages, loss_fn=nn.functional.mse_loss)
    wrapped = [PipelineStage(stages[s], s, last + 1, torch.device("cpu")) for s in sorted(stages)]
    asked = {"target": target, "losses": []} if last in stages else {}
    steps = [lambda: ours.step(batch, target=target)]
    with contextlib.suppress(ppcc.CompileError):  # It takes only what is safe on a stream.
        theirs = load_torch_runtime(program, wrapped, loss_fn=nn.functional.mse_loss)
        steps.append(lambda: theirs.step(*([batch] if 0 in stages else []), **asked))
    found = []
    for step in steps:
        step()  # The first opens connections and learns shapes.
        dist.barrier()
        start = time.perf_counter()
        step()
        dist.barrier()
        found.append((time.perf_counter() - start) / SCALE)
    if rank == 0:
        results.put(found)
    dist.destroy_process_group()


def main():
    text = open(sys.argv[1]).read()
    with tempfile.TemporaryDirectory() as folder:
        results = torch.multiprocessing.get_context("spawn").SimpleQueue()
        torch.multiprocessing.spawn(
            measure, (f"{folder}/store", text, results), nprocs=ppcc.Program.from_json(text).ranks
        )
        print(*results.get())


if __name__ == "__main__":
    main()
