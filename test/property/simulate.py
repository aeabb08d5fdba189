#!/usr/bin/env python3
"""Compares the times that ppcc-opt gives small programs, under every transport and by data alone, with those of a slow
simulator of our own."""

import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from slow_simulator import TRANSPORTS, simulate
from programs import small_cases

SECONDS = 30


def random_costs(rng, stages):
    def value(least):
        return rng.choice([rng.randint(least, 5), [rng.randint(least, 5) for _ in range(stages)]])

    costs = {"cost": {kind: value(0) for kind in "FBIW" if rng.random() < 0.7}, "latency": value(0)}
    group = rng.choice([None, rng.randint(0, 9), {"sum": rng.randint(0, 2)}, {"max": rng.randint(1, 2)}])
    if isinstance(group, dict):
        costs["group"] = group
    elif group is not None:
        costs["cost"]["overlap"] = group
    return costs


def stages_of(head):
    """How many stages each pipe has, when all have as many."""
    counts = {len(ranks.split()) for ranks in re.findall(r"ranks \[([^\]]*)\]", head)}
    return counts.pop() if len(counts) == 1 else None


def without_messages(case):
    return case._replace(ranks=[[item for item in rank if not item[0].is_message] for rank in case.ranks])


def by_ppcc(opt, folder, name, case, transport, costs):
    """The times of each rank's rows; a string when something is wrong."""
    (folder / f"{name}.ir").write_text(case.ir())
    (folder / f"{name}.json").write_text(json.dumps(costs))
    command = [opt, folder / f"{name}.ir", "--emit=times", f"--costs={folder / name}.json"]
    done = subprocess.run([*command, *([f"--transport={transport}"] if transport else [])], capture_output=True,
                          text=True, timeout=SECONDS)
    if done.returncode == 1 and "[E1009]" in done.stderr and not done.stdout:
        return None
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr}"
    rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
    return [(int(rank), action, int(start), int(end)) for rank, action, _, start, end in rows]


def compare(opt, folder, number, case):
    """For each transport, and for data alone, whether the program ends; and what is wrong."""
    rng = random.Random(number)
    costs = random_costs(rng, stages_of(case.head))
    results = {}
    for transport in [None, *TRANSPORTS]:
        one = without_messages(case) if transport is None else case
        times = simulate(one.ranks, transport, costs)
        expected = times and [(r, str(one.ranks[r][i][m]), *times[r, i, m]) for r, i, m in sorted(times)]
        got = by_ppcc(opt, folder, f"{number}-{transport}", one, transport, costs)
        wrong = None
        if got != expected:
            first = next((pair for pair in zip(got, expected) if pair[0] != pair[1]), None) \
                if isinstance(got, list) and expected else (got, expected and "it ends")
            wrong = f"{case.name} by {transport or 'data alone'}, costs {costs}\nppcc, then expected: {first}\n{one.ir()}"
        results[transport] = (times is not None, wrong)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of ppcc and ppcc-opt")
    parser.add_argument("--each", type=int, default=6, help="how many programs of a schedule")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--jobs", type=int, default=2, help="programs at a time")
    options = parser.parse_args()

    cases = [case for case, verdict in small_cases(options.bin / "ppcc", options.each, options.seed) if verdict[0]]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(
            lambda pair: compare(options.bin / "ppcc-opt", pathlib.Path(name), options.seed * 1000 + pair[0], pair[1]),
            enumerate(cases)))

    tally = collections.Counter()
    failed = 0
    for result in results:
        for transport, (ends, wrong) in result.items():
            tally[transport, ends] += 1
            if wrong:
                failed += 1
                print(wrong)
    for transport in [None, *TRANSPORTS]:
        ends, hangs = tally[transport, True], tally[transport, False]
        print(f"{transport or 'data alone'}: {ends} end, {hangs} hang")
        if ends < len(cases) // 8:
            failed += 1
            print("too few of these end")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
