#!/usr/bin/env python3
"""By how much orders chosen by their makespan take longer under jitter than those chosen by their mean: a table of docs/synthesis.md.

40 random uneven problems. `ppcc synthesize` chooses by other random numbers than those by which it, and `ppcc report`, say means.

    python3 test/bench/noise.py build/bin
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path


def problem(seed):
    """The placement, its size, and the costs of stages."""
    rng = random.Random(seed)
    placement, chunks = rng.choice([("linear", 1), ("linear", 1), ("v", 2), ("loop:2", 2)])
    ranks = rng.choice((4, 8))
    stages = ranks * chunks
    costs = {kind: [round(rng.uniform(0.7, 1.3) * usual, 2) for _ in range(stages)] for kind, usual in (("F", 5), ("I", 6), ("W", 4))}
    limit = max(2, round(ranks * rng.choice((0.5, 0.75, 1, 1.5)))) * chunks
    return placement, ranks, ranks * rng.choice((2, 3)), {"cost": costs, "latency": rng.choice((0, 0.5)), "limit": limit}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--effort", default="50")
    parser.add_argument("--jitter", type=float, nargs="+", default=(0.1, 0.4))
    arguments = parser.parse_args()
    print("| jitter | median | from | to | longer | shorter | makespan without jitter: median |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "costs.json")
        for jitter in arguments.jitter:
            gains, makespans = [], []
            for seed in range(arguments.count):
                placement, P, M, costs = problem(seed)
                file.write_text(json.dumps(costs | {"jitter": {"all": jitter}}))

                def found(by):
                    done = subprocess.run([arguments.bin / "ppcc", "synthesize", f"--placement={placement}", f"-DP={P}", f"-DM={M}", f"--costs={file}", f"--objective={by}",
                                           f"--effort={arguments.effort}", "--comm-order=none", "--format=json"], check=True, capture_output=True, text=True)
                    return json.loads(done.stdout)

                before, after = found("makespan"), found("mean")
                gains.append(before["jitter_mean"] / after["jitter_mean"] - 1)
                makespans.append(after["makespan"] / before["makespan"] - 1)
            print(f"| {jitter:.0%} | {statistics.median(gains):.2%} | {min(gains):.2%} | {max(gains):.2%} | {sum(gain > 1e-6 for gain in gains)} "
                  f"| {sum(gain < -1e-6 for gain in gains)} | {statistics.median(makespans):+.2%} |", flush=True)


if __name__ == "__main__":
    main()
