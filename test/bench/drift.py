#!/usr/bin/env python3
"""Measures what ppcc.torch.Retuner recovers when a rank becomes 1.5 times slower while it trains, on 4 gloo processes.

Stages sleep for random, uneven times, those of tuned.py, and ran the order that `tune` had chosen for them within the memory of 1F1B or of ZB-H1. Prints a
table in Markdown; steps are medians of five:

    build/interop-2.15.0/bin/python test/bench/drift.py [CASES]
"""

import os
import random
import statistics
import sys
import tempfile
import time
from datetime import timedelta

import ppcc
import torch
import torch.distributed as dist
import torch.multiprocessing
from ppcc.torch import Retuner, Runtime, tune
from tuned import P, ROWS, WIDTH, case

from interop.sleeping import Sleeper

SLOWER, STEPS = 1.5, 5
COLUMNS = ["case", "M", "given", "slow rank", "before", "slowed", "re-tuned", "bound", "recovered", "over the bound"]


def measure(rank, store, cases, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=P, timeout=timedelta(seconds=300))
    for number in range(cases):
        microbatches, seconds = case(number)
        batch, target = torch.randn(2, microbatches * ROWS, WIDTH, dtype=torch.float64)
        given = ("one_f_one_b", "zb_h1")[number % 2]
        module = Sleeper(rank, WIDTH, seconds[rank])
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
        runtime = Runtime(ppcc.compile(given, P=P, M=microbatches), {rank: module}, loss_fn=torch.nn.functional.mse_loss)
        limit = tune(runtime, batch, target=target).memory_limit
        retuner = Retuner(runtime, every=2 * STEPS, memory_limit=limit)
        drifts = []

        def train(steps):
            """Milliseconds of a step of the Runtime; all ranks begin together."""
            times = []
            for _ in range(steps):
                optimizer.zero_grad()
                dist.barrier()
                start = time.perf_counter()
                runtime.step(batch, target=target)
                dist.barrier()
                times.append(1e3 * (time.perf_counter() - start))
                optimizer.step()
                if (drift := retuner.step()) is not None:
                    drifts.append(drift)
            return statistics.median(times)

        before = train(STEPS)
        slow = random.Random(number).randrange(P)
        if rank == slow:
            module.seconds = tuple(SLOWER * time for time in module.seconds)
        slowed = train(STEPS)
        while not drifts or (drifts[-1].applied and drifts[-1].after is None):
            train(1)
        after = train(STEPS)
        if rank == 0:
            results.put((number, microbatches, given, slow, before, slowed, after, drifts[-1].bound, (slowed - after) / slowed, after / drifts[-1].bound - 1))
    dist.destroy_process_group()


def main():
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        results = torch.multiprocessing.get_context("spawn").SimpleQueue()
        processes = torch.multiprocessing.spawn(measure, (f"{folder}/store", cases, results), nprocs=P, join=False)
        while len(found) < cases:
            while results.empty():
                if processes.join(timeout=1):
                    sys.exit("the processes have ended early")
            number, microbatches, given, slow, *times, recovered, over = one = results.get()
            cells = [number, microbatches, given, slow, *(f"{time:.0f}" for time in times), f"{100 * recovered:+.1f} %", f"{100 * over:+.1f} %"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            found.append(one)
        while not processes.join():
            pass
    recovered, over = ([100 * one[column] for one in found] for column in (-2, -1))
    print(
        f"\n{cases} cases, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: the new order saves {statistics.median(recovered):.1f} % of the slowed step in the median "
        f"({min(recovered):.1f} to {max(recovered):.1f} %), and is {statistics.median(over):.1f} % over the bound in the median, {max(over):.1f} % at most."
    )


if __name__ == "__main__":
    main()
