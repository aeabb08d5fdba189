#!/usr/bin/env python3
"""Compares `ppcc synthesize` with the schedulers for V-shapes of sail-sg, for a table of docs/synthesis.md: sail_sg.py PPCC CHECKOUT [COUNT] [EFFORT] [P...]

CHECKOUT is a clone of https://github.com/sail-sg/zero-bubble-pipeline-parallelism (measured at 39f2c186). COUNT random problems for each scheduler and P:
stages differ by up to 30 %, messages take 0 to 1. As in their runtime, v_min and v_half know of no costs, zbv and v_adaptive of means. Their orders and
ours are run here, by data alone; ours has on each rank the memory that theirs takes. Seconds are user time.
"""

import contextlib
import importlib
import io
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import types

PACKAGE = "megatron.core.pipeline_parallel.zerobubble.scheduler"
HELD = {"F": 1, "B": 0, "W": -1, "BW": -1}  # Of a stage's activations.


def load(checkout):
    """Their modules, without those that import PyTorch."""
    parts = PACKAGE.split(".")
    for n in range(1, len(parts) + 1):
        package = types.ModuleType(".".join(parts[:n]))
        package.__path__ = [str(checkout.joinpath(*parts[:n]))]
        sys.modules[package.__name__] = package
    return {name: importlib.import_module(f"{PACKAGE}.{name}") for name in ("zbv", "zbv_greedy", "v1f1b", "v_auto_schedule")}


def theirs(modules, scheduler, P, M, costs, latency, limit):
    """By rank, the kind and stage of each action; microbatches follow by counting."""
    f, b, w = (max(1, round(1000 * statistics.mean(costs[kind]))) for kind in "FIW")
    c = round(1000 * latency)
    with contextlib.redirect_stdout(io.StringIO()):
        if scheduler in ("v_min", "v_half"):
            graph = modules["zbv_greedy"].PipelineGraph(P, M, scheduler[2:], 1000, 1000, 1000, 1)
            order = graph.create_schedule(types.SimpleNamespace(max_chunks=2, n_stages=P))
        elif scheduler == "zbv":
            order = modules["zbv"].PipelineGraph(P, M, f, b, w, c, 2, 0, -2).create_schedule(types.SimpleNamespace(max_chunks=2, n_stages=P))
        elif scheduler == "1f1b_v":
            order = modules["v1f1b"].schedule(P, M, (f, b, w, c))
        else:
            order = modules["v_auto_schedule"].schedule(P, M, (f, b, w, c), limit)
    kind = lambda node: getattr(node.type, "value", node.type)
    return [[(kind(node), rank if node.chunk == 0 else 2 * P - 1 - rank) for node in row] for rank, row in enumerate(order)]


def simulate(order, costs, latency, S):
    """The makespan by data alone, and the peak of each rank."""
    rank_of = lambda stage: min(stage, S - 1 - stage)
    ends, done, place, free = {}, {}, [0] * len(order), [0] * len(order)
    time = lambda kind, stage: costs["I"][stage] + costs["W"][stage] if kind == "BW" else costs[{"B": "I"}.get(kind, kind)][stage]
    isProgress = True
    while isProgress:
        isProgress = False
        for rank, row in enumerate(order):
            while place[rank] < len(row):
                kind, stage = row[place[rank]]
                letter = "B" if kind == "BW" else kind
                m = done.get((letter, stage), 0)
                needs = []
                if letter == "F" and stage > 0:
                    needs.append(("F", stage - 1))
                elif letter == "B":
                    needs += [("F", stage)] + ([("B", stage + 1)] if stage + 1 < S else [])
                elif letter == "W":
                    needs.append(("B", stage))
                if any((*need, m) not in ends for need in needs):
                    break
                start = max([free[rank]] + [ends[*need, m] + (latency if rank_of(need[1]) != rank else 0) for need in needs])
                free[rank] = ends[letter, stage, m] = start + time(kind, stage)
                done[letter, stage] = m + 1
                place[rank] += 1
                isProgress = True
    assert all(n == len(row) for n, row in zip(place, order)), "deadlock"
    peaks = []
    for row in order:
        held = peak = 0
        for kind, _ in row:
            held += HELD[kind]
            peak = max(peak, held)
        peaks.append(peak)
    return max(free), peaks


def ours(ppcc, folder, P, M, costs, latency, peaks, is_fused, effort):
    model = {"cost": {"F": costs["F"]} | ({"B": [sum(pair) for pair in zip(costs["I"], costs["W"])]} if is_fused else {"I": costs["I"], "W": costs["W"]}),
             "latency": latency, "memory": {"F": 1, **({} if is_fused else {"I": 0}), "limit": peaks}}
    (folder / "costs.json").write_text(json.dumps(model))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([ppcc, "synthesize", "--placement=v", f"-DP={P}", f"-DM={M}", f"--costs={folder / 'costs.json'}", "--comm-order=none", f"--effort={effort}",
                           "--format=json"] + ["--fused-backward"] * is_fused, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    ppcc, checkout = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    count, effort = int((sys.argv[3:] or ["4"])[0]), (sys.argv[4:] or ["100"])[0]
    sizes = [int(P) for P in sys.argv[5:]] or [4, 6, 8, 12, 16, 24]
    if not (checkout / PACKAGE.replace(".", "/") / "zbv.py").exists():
        sys.exit(f"{checkout} has no {PACKAGE}: nothing was compared. Clone https://github.com/sail-sg/zero-bubble-pipeline-parallelism there")
    modules = load(checkout)
    print("| scheduler | P | shorter by | median | better | equal | worse | optimal | seconds |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for scheduler in ("v_min", "v_half", "zbv", "v_adaptive", "1f1b_v"):
            for P in sizes:
                less, optimal, seconds = [], 0, []
                for seed in range(count):
                    rng = random.Random(1000 * P + seed)
                    M = P * rng.choice((1, 2, 3))
                    base = rng.choice(((1, 1, 1), (5, 6, 4), (3, 4, 2), (2, 3, 2)))
                    spread = rng.choice((0, 0.1, 0.3))
                    costs = {kind: [round(usual * rng.uniform(1 - spread, 1 + spread), 2) for _ in range(2 * P)] for kind, usual in zip("FIW", base)}
                    latency = base[0] * rng.choice((0, 0.05, 0.2))
                    limit = rng.choice((2 * P // 3 + 2, P + 1, 3 * P // 2, 2 * P))
                    makespan, peaks = simulate(theirs(modules, scheduler, P, M, costs, latency, limit), costs, latency, 2 * P)
                    found, took = ours(ppcc, pathlib.Path(folder), P, M, costs, latency, peaks, scheduler == "1f1b_v", effort)
                    less.append(1 - found["makespan"] / makespan)
                    optimal += found["optimal"]
                    seconds.append(took)
                print(f"| `{scheduler}` | {P} | {min(less):.1%} to {max(less):.1%} | {statistics.median(less):.1%} | {sum(one > 1e-9 for one in less)} "
                      f"| {sum(abs(one) <= 1e-9 for one in less)} | {sum(one < -1e-9 for one in less)} | {optimal} | {max(seconds):.1f} |", flush=True)


if __name__ == "__main__":
    main()
