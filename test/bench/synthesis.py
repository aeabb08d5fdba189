#!/usr/bin/env python3
"""Writes the tables of docs/synthesis.md: synthesis.py PPCC [times] [linear] [library] [compare] [uneven] [saving] [others]. Seconds are user time of the command."""

import itertools
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile

PPCC = str(pathlib.Path(sys.argv[1]).resolve())
COSTS = {"1, 1, 1": (1, 1, 1), "5, 6, 4": (5, 6, 4), "3, 4, 2": (3, 4, 2), "2, 3, 2": (2, 3, 2)}
FOLDER = tempfile.TemporaryDirectory()


def run(*arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([PPCC, *arguments], capture_output=True, text=True, check=True, cwd=FOLDER.name)
    return json.loads(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def options(P, M, costs, limit=None):
    costs = {"cost": dict(zip("FIW", costs))} | ({"limit": limit} if limit else {})
    path = FOLDER.name + "/costs.json"
    with open(path, "w") as file:
        json.dump(costs, file)
    return [f"-DP={P}", f"-DM={M}", f"--costs={path}"]


def synthesize(placement, *given, more=()):
    return run("synthesize", f"--placement={placement}", *options(*given), "--format=json", "-o", "found.pp", *more)


def percent(number):
    return f"{100 * number:.1f} %"


def times():
    print("| placement | P | M | limit | seconds | makespan | above the bound |\n|---|---|---|---|---|---|---|")
    worst = 0
    for placement, P, M, times_P in itertools.product(("linear", "v"), (4, 16, 32, 64), (32, 256), (0.5, 1)):
        limit = int(P * times_P * (2 if placement == "v" else 1))
        found, seconds = synthesize(placement, P, M, COSTS["5, 6, 4"], limit)
        worst = max(worst, seconds)
        print(f"| {placement} | {P} | {M} | {limit} | {seconds:.2f} | {found['makespan']} | {percent(found['gap'])} |")
    print(f"at most {worst:.1f} s")


def linear():
    for text, limits in (("1, 1.25, 1.5, 2 and 3", (1, 1.25, 1.5, 2, 3)), ("0.5 and 0.75", (0.5, 0.75))):
        found = [synthesize("linear", P, M * P, costs, int(P * times_P))
                 for P, M, costs, times_P in itertools.product((4, 8, 16), (1, 2, 4), COSTS.values(), limits)]
        gaps = [one["gap"] for one, _ in found]
        print(f"limits of {text} times P: {len(found)} problems, {sum(one['optimal'] for one, _ in found)} proven optimal, "
              f"{percent(statistics.median(gaps))} above the bound (median), {percent(max(gaps))} at most; "
              f"{statistics.median(seconds for _, seconds in found):.2f} s (median)")


def library():
    print("| schedule | problems | less time | above the bound, at most | better | equal | worse |\n|---|---|---|---|---|---|---|")
    for name, more in (("v_half", []), ("v_min", []), ("zero_bubble_v", []), ("dualpipe_v", []), ("hanayo", ["-DV=2"]), ("interleaved_1f1b", ["-DV=2"]),
                       ("one_f_one_b", []), ("zb_h1", []), ("zb_h2", [])):
        less, gaps = [], []
        for P, costs in itertools.product((4, 8), COSTS.values()):
            report, _ = run("report", name, "--comm-order=none", "--format=json", *options(P, 4 * P, costs), *more)
            peaks = [rank["peak_memory"] for rank in report["ranks"]]
            found, _ = synthesize(name, P, 4 * P, costs, peaks, more=["--comm-order=none", *more])
            less.append(1 - found["makespan"] / report["makespan"])
            gaps.append(found["gap"])
        counts = [sum(one > 1e-9 for one in less), sum(abs(one) <= 1e-9 for one in less), sum(one < -1e-9 for one in less)]
        print(f"| `{name}` | {len(less)} | {percent(min(less))} to {percent(max(less))} | {percent(max(gaps))} | {' | '.join(map(str, counts))} |")


def compare():
    print("| schedule | longer |\n|---|---|")
    names = ["hanayo", "chimera", "one_f_one_b", "interleaved_1f1b", "zb_h1", "zb_h2", "zero_bubble_v", "dualpipe_v", "v_half", "v_min", "gpipe"]
    gaps = {}
    for P, costs in itertools.product((4, 8, 16), COSTS.values()):
        table, _ = run("compare", *names, *options(P, 4 * P, costs), "--cost=B=%d" % (costs[1] + costs[2]), "--comm-order=none", "--synthesize", "--format=json")
        for row in table["rows"]:
            gaps.setdefault(row["schedule"], []).append(row["synthesis_gap"])
    for name, those in gaps.items():
        print(f"| `{name}` | {'0' if max(those) == 0 else f'{percent(min(those))} to {percent(max(those))}'} |")


def uneven():
    print("| schedule | P = 4 | 8 | 16 | 24 |\n|---|---|---|---|---|")
    names = ["v_min", "v_half", "dualpipe_v", "zero_bubble_v"]
    gaps = {}
    for P, seed in itertools.product((4, 8, 16, 24), range(3)):
        rng = random.Random(1000 * P + seed)
        costs = {kind: [round(usual * rng.uniform(0.7, 1.3), 2) for _ in range(2 * P)] for kind, usual in zip("FIW", (5, 6, 4))}
        costs["B"] = [sum(parts) for parts in zip(costs["I"], costs["W"])]
        path = FOLDER.name + "/uneven.json"
        with open(path, "w") as file:
            json.dump({"cost": costs, "latency": rng.choice((0.2, 1))}, file)
        table, _ = run("compare", *names, f"-DP={P}", f"-DM={2 * P}", f"--costs={path}", "--comm-order=none", "--synthesize", "--format=json")
        for row in table["rows"]:
            gaps.setdefault((row["schedule"], P), []).append(row["synthesis_gap"])
    for name in names:
        print(f"| `{name}` | " + " | ".join(f"{percent(min(gaps[name, P]))} to {percent(max(gaps[name, P]))}" for P in (4, 8, 16, 24)) + " |")


def saving():
    for limit, more in itertools.product((2, 3, 4, 5), ([], ["--recompute"], ["--offload"], ["--offload", "--cost=OFFLOAD=2", "--cost=RELOAD=2"])):
        found, _ = synthesize("linear", 8, 32, COSTS["1, 1, 1"], limit, more=more)
        print(f"limit {limit} {' '.join(more)}: {found['makespan']}, bound {found['bound']}")


def others():
    for P, costs in itertools.product((4, 8), COSTS.values()):
        costs = dict(zip("FB", (costs[0], costs[1] + costs[2])))
        given = [f"-DP={P}", f"-DM={4 * P}", *(f"--cost={kind}={time}" for kind, time in costs.items()), "--comm-order=none", "--format=json"]
        report, _ = run("report", "dualpipe_v", *given)
        found, _ = run("synthesize", "--placement=dualpipe_v", "--fused-backward", *given, "-o", "found.pp")
        print(f"dualpipe_v, fused: {percent(found['makespan'] / report['makespan'] - 1)} more, {percent(found['gap'])} above the bound")
    for limit in (8, 7):
        found, _ = synthesize("v", 8, 32, COSTS["5, 6, 4"], limit)
        print(f"v, P = 8, M = 32, limit {limit}: {percent(found['gap'])} above the bound")
    for placement, M, more in (("v", 48, ["--model=gpt"]), ("v", 96, ["--model=gpt"]), ("chimera", 48, [])):
        found, seconds = run("synthesize", f"--placement={placement}", "-DP=8", f"-DM={M}", "--for=M", *more, "--format=json", "-o", "found.pp")
        print(f"{placement}, for M: {found['formulas'][0]['makespan']}, {percent(found['gap'])} above the bound at M = {M}, {seconds:.1f} s")


if __name__ == "__main__":
    for part in sys.argv[2:] or ("times", "linear", "library", "compare", "uneven", "saving", "others"):
        print(f"\n{part}")
        globals()[part]()
