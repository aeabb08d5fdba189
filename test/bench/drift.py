#!/usr/bin/env python3
"""Measures what ppcc.torch.Retuner recovers when a rank becomes 1.5 times slower while it trains, on 4 gloo processes.

Stages are 3 to 6 layers that sleep for random, uneven times, those of `tuned.py --layers`. `tune` has chosen layout and order within the memory of ZB-H1. Then a rank
becomes slow, once with a Retuner that changes the order alone, and once with one that also moves layers. Prints a table in Markdown; steps are medians of five, in ms:

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
from tuned import P, ROWS, WIDTH, case, layers_of

from interop.sleeping import RankSleeper

SLOWER, STEPS = 1.5, 5
COLUMNS = ["case", "M", "slow rank", "before", "slowed", "new order", "bound", "layers moved", "bound", "layers", "saved by order", "saved by layers", "over the bound"]


def measure(rank, store, cases, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=P, timeout=timedelta(seconds=300))
    for number in range(cases):
        microbatches, seconds = case(number)
        slow = random.Random(number).randrange(P)
        batch, target = torch.randn(2, microbatches * ROWS, WIDTH, dtype=torch.float64)
        RankSleeper.factor = 1.0
        stage = torch.nn.Sequential(*(RankSleeper(rank, WIDTH, one) for one in layers_of(number, seconds)[rank]))
        runtime = Runtime(ppcc.compile("zb_h1", P=P, M=microbatches), {rank: stage}, loss_fn=torch.nn.functional.mse_loss)
        result = tune(runtime, batch, target=target, layers=True)
        optimizer = torch.optim.SGD(stage.parameters(), lr=1e-3)
        tuned = runtime.program

        def recover(layers):
            """Milliseconds of steps before, slowed, and with what the Retuner has done, which is returned, too."""
            RankSleeper.factor = 1.0
            runtime.set_program(tuned)
            retuner = Retuner(runtime, every=2 * STEPS, memory_limit=result.memory_limit, layers=layers, result=result, optimizer=optimizer)
            drifts = []

            def train(steps):
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
            RankSleeper.factor = SLOWER if rank == slow else 1.0
            slowed = train(STEPS)
            while not drifts or (drifts[-1].applied and drifts[-1].after is None):
                train(1)
            found = before, slowed, train(STEPS), drifts[-1]
            retuner.close()
            return found

        before, slowed, reordered, by_order = recover(False)
        _, again, moved, by_layers = recover(True)
        if rank == 0:
            layouts = [result.layout, by_layers.layout or result.layout]
            sizes = " to ".join("\\|".join(str(len(numbers)) for numbers in layout) for layout in layouts)
            times = [before, slowed, reordered, by_order.bound, moved, by_layers.bound]
            results.put((number, microbatches, slow, *times, sizes, (slowed - reordered) / slowed, (again - moved) / again, moved / by_layers.bound - 1))
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
            number, microbatches, slow, *times, sizes, by_order, by_layers, over = one = results.get()
            shares = [f"{100 * share:+.1f} %" for share in (by_order, by_layers, over)]
            print(f"| {' | '.join(map(str, [number, microbatches, slow, *(f'{time:.0f}' for time in times), sizes, *shares]))} |", flush=True)
            found.append(one)
        while not processes.join():
            pass
    by_order, by_layers, over = ([100 * one[column] for one in found] for column in (-3, -2, -1))
    print(
        f"\n{cases} cases, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: a new order saves {statistics.median(by_order):.1f} % of the slowed step in the median "
        f"({min(by_order):.1f} to {max(by_order):.1f} %), layers that move {statistics.median(by_layers):.1f} % ({min(by_layers):.1f} to {max(by_layers):.1f} %), to steps that are "
        f"{statistics.median(over):.1f} % over the bound in the median, {max(over):.1f} % at most."
    )


if __name__ == "__main__":
    main()
