#!/usr/bin/env python3
"""Measures what ppcc.torch.tune gains: steps of orders of the library, of PyTorch's own runtime, and of the tuned order, on 4 gloo processes.

Stages sleep for random, uneven times. Every order but GPipe's, which is shown for comparison, keeps to the memory of ZB-H1. The steps of
all orders take turns. With --layers, stages are 3 to 6 layers that take the same times together, which `tune` may move to other ranks within the same
memory; the orders that are compared run with the given stages, and then ZB-H1 also with the new ones. With --transformer, stages are 1 to 5 layers of a
transformer, the last one with a head, on as many processes as it says: each needs a core of its own. Prints a table in Markdown:

    build/interop-2.15.0/bin/python test/bench/tuned.py [--layers] [--transformer=2] [CASES]
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import ppcc
import torch
import torch.distributed as dist
import torch.multiprocessing
from ppcc.torch import Runtime, load_torch_runtime, tune
from torch.distributed.pipelining import PipelineStage

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/tests"))
from interop.sleeping import Sleeper  # noqa: E402

P, WIDTH, ROWS, STEPS = 4, 64, 2, 3
HIDDEN, LENGTH, WORDS = 64, 32, 1024
LIBRARY = ["gpipe", "one_f_one_b", "zb_h1"]
COLUMNS = ["case", "M", "GPipe", "1F1B", "ZB-H1", "PyTorch 1F1B", "PyTorch ZB-H1", "tuned", "predicted", "bound", "over 1F1B", "over the best", "off"]
WITH_LAYERS = ["memory", "layers", "ZB-H1 with them"]


def case(number):
    """Microbatches, and the seconds of F, I and W of each stage."""
    chosen = random.Random(number)
    forwards = [chosen.uniform(0.006, 0.024) for _ in range(P)]
    return chosen.choice([8, 12]), [(f, f * chosen.uniform(0.8, 1.3), f * chosen.uniform(0.5, 1.2)) for f in forwards]


def layers_of(number, seconds):
    """The seconds of F, I and W of the layers of each stage."""
    chosen, found = random.Random(1000 + number), []
    for stage in seconds:
        shares = [chosen.uniform(0.5, 1.5) for _ in range(chosen.randint(3, 6))]
        found.append([tuple(time * share / sum(shares) for time in stage) for share in shares])
    return found


def transformer_stage(number, rank, ranks):
    """Random layers, so that stages are uneven; the last one has a head."""
    torch.manual_seed(number)
    counts = [random.Random(2000 + number + one).randint(1, 5) for one in range(ranks)]
    layer = partial(torch.nn.TransformerEncoderLayer, HIDDEN, 4, 4 * HIDDEN, dropout=0.0, batch_first=True)
    head = [torch.nn.Linear(HIDDEN, WORDS)] if rank == ranks - 1 else []
    return torch.nn.Sequential(*(layer() for _ in range(counts[rank])), *head)


def medians(steps, turns=STEPS):
    """Milliseconds of steps, each after what prepares it; they take turns, and all ranks begin together."""
    found = [[] for _ in steps]
    for turn in range(1 + turns):
        for (prepare, step), times in zip(steps, found, strict=True):
            prepare()
            dist.barrier()
            start = time.perf_counter()
            step()
            dist.barrier()
            if turn:
                times.append(1e3 * (time.perf_counter() - start))
    return list(map(statistics.median, found))


def measure(rank, store, cases, with_layers, transformer, results):
    torch.set_num_threads(1)
    ranks = transformer or P
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=timedelta(seconds=300))
    loss_fn = torch.nn.functional.mse_loss
    for number in range(cases):
        microbatches, seconds = case(number)
        programs = {name: ppcc.compile(name, P=ranks, M=microbatches) for name in LIBRARY}
        if transformer:
            batch, target = torch.randn(microbatches * ROWS, LENGTH, HIDDEN), torch.randn(microbatches * ROWS, LENGTH, WORDS)
            stages = [transformer_stage(number, rank, ranks) for _ in range(2)]
        else:
            batch, target = torch.randn(2, microbatches * ROWS, WIDTH, dtype=torch.float64)
            layers = layers_of(number, seconds) if with_layers else [[one] for one in seconds]
            stages = [torch.nn.Sequential(*(Sleeper(rank, WIDTH, one) for one in layers[rank])) for _ in range(2)]
        given, moved = (Runtime(programs["zb_h1"], {rank: stage}, loss_fn=loss_fn) for stage in stages)
        found = tune(moved, batch, target=target, layers=with_layers)
        tuned = moved.program

        theirs = []
        for name in ("one_f_one_b", "zb_h1"):
            stage = PipelineStage(stages[0], rank, ranks, torch.device("cpu"))
            theirs.append(load_torch_runtime(programs[name], [stage], loss_fn=loss_fn))
        inputs = [batch] if rank == 0 else []
        asked = {"target": target, "losses": []} if rank == ranks - 1 else {}
        runs = [*((given, program) for program in programs.values()), (moved, tuned), (moved, programs["zb_h1"])]
        steps = [(partial(runtime.set_program, program), partial(runtime.step, batch, target=target)) for runtime, program in runs]
        steps += [(lambda: None, partial(there.step, *inputs, **asked)) for there in theirs]
        gpipe, one_f_one_b, zb_h1, after, zb_h1_after, *pytorch = medians(steps, 3 * STEPS if transformer else STEPS)
        if rank == 0:
            best = min(one_f_one_b, zb_h1, *pytorch)
            shares = [one_f_one_b / after - 1, best / after - 1, after / found.predicted - 1, zb_h1_after / after - 1]
            times = [gpipe, one_f_one_b, zb_h1, *pytorch, after, found.predicted, found.bound]
            memory = max(order.memory for order in found.orders if order.name == found.order) / found.memory_limit
            sizes = ["\\|".join(str(len(numbers)) for numbers in layout) for layout in (found.given_layout, found.layout)] if with_layers else []
            more = [f"{100 * memory:.0f} %", " to ".join(sizes), f"{zb_h1_after:.0f}"] if with_layers else []
            results.put((number, microbatches, times, shares, found.steps, found.processor_seconds, more, memory))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", action="store_true", help="let tune() move layers")
    parser.add_argument("--transformer", type=int, default=0, metavar="PROCESSES", help="layers of a transformer instead of those that sleep")
    parser.add_argument("cases", nargs="?", type=int, default=30)
    options = parser.parse_args()
    columns = COLUMNS + (WITH_LAYERS if options.layers else [])
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        results = torch.multiprocessing.get_context("spawn").SimpleQueue()
        processes = torch.multiprocessing.spawn(measure, (f"{folder}/store", options.cases, options.layers, options.transformer, results), nprocs=options.transformer or P, join=False)
        while len(found) < options.cases:
            while results.empty():
                if processes.join(timeout=1):
                    sys.exit("the processes have ended early")
            number, microbatches, times, shares, _, _, more, _ = one = results.get()
            cells = [number, microbatches, *(f"{time:.0f}" for time in times), *(f"{100 * share:+.1f} %" for share in shares[:3]), *more]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            found.append(one)
        while not processes.join():
            pass
    over_1f1b, over_best, off, over_moved = ([100 * share for share in shares] for shares in zip(*(one[3] for one in found), strict=True))
    off = list(map(abs, off))
    print(
        f"\n{options.cases} cases, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: the tuned order is faster than 1F1B by {statistics.median(over_1f1b):.1f} % in "
        f"the median ({min(over_1f1b):.1f} to {max(over_1f1b):.1f} %), than the best of the others that hold no more by {statistics.median(over_best):.1f} % "
        f"({min(over_best):.1f} to {max(over_best):.1f} %)"
        + (f", than ZB-H1 with the same layers by {statistics.median(over_moved):.1f} % ({min(over_moved):.1f} to {max(over_moved):.1f} %)" if options.layers else "")
        + f". It holds {100 * max(one[7] for one in found):.1f} % of the limit at most. Predictions are {statistics.median(off):.1f} % off in the median, {max(off):.1f} % at most. Tuning took at "
        f"most {max(one[4] for one in found)} steps, and {max(one[5] for one in found):.1f} s of processor time beside them."
    )


if __name__ == "__main__":
    main()
