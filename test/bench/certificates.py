#!/usr/bin/env python3
"""Which arguments the certificates of `ppcc synthesize` have, for docs/synthesis.md: certificates.py BIN [PROBLEMS]. Small random problems, those of
test/Synthesis/Inputs/cpsat.py, and schedules of the library at their own peak memory by rank."""

import collections
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Synthesis/Inputs"))
from small_problems import options_of, problem

BIN, FOLDER = pathlib.Path(sys.argv[1]).resolve(), tempfile.TemporaryDirectory()
COSTS = {"1, 1, 1": (1, 1, 1), "5, 6, 4": (5, 6, 4)}
LIBRARY = ["v_half", "v_min", "zero_bubble_v", "dualpipe_v", "hanayo -DV=2", "interleaved_1f1b -DV=2", "one_f_one_b", "zb_h1", "zb_h2", "chimera", "gpipe"]


def run(*arguments):
    return subprocess.run([BIN / arguments[0], *arguments[1:]], capture_output=True, text=True, cwd=FOLDER.name)


def certify(costs, options):
    """Whether the order is optimal, the kind of argument, bytes, cases and seconds of the check."""
    path = pathlib.Path(FOLDER.name)
    (path / "costs.json").write_text(json.dumps(costs))
    done = run("ppcc", "synthesize", *options, "--costs=costs.json", "--comm-order=none", "--format=json", "-o", "x.pp", "--certificate=x.json")
    is_optimal = json.loads(done.stdout)["optimal"]
    if done.returncode:
        return is_optimal, "none", 0, 0, 0
    begin = time.monotonic()
    assert run("ppcc-check-proof", "x.json").returncode == 0
    seconds, proof = time.monotonic() - begin, json.loads((path / "x.json").read_text())["proof"]
    ranks, cases = len(proof.get("ranks", [])), (len(proof.get("cases", [])) + 1) // 2
    kind = "load" if "begin" in proof else "cases" if cases > 1 else f"windows of {ranks if ranks < 2 else 'all'} ranks"
    return is_optimal, kind, (path / "x.json").stat().st_size, cases, seconds


def show(name, results):
    print(f"{name}: {len(results)} problems, {sum(one[0] for one in results)} optimal; at most {max(one[2] for one in results)} bytes, "
          f"{max(one[3] for one in results)} cases, {max(one[4] for one in results):.2f} s")
    for kind, count in collections.Counter(one[1] for one in results).most_common():
        print(f"  {count} by {kind}")


def library():
    for name, P, costs in itertools.product(LIBRARY, (4, 8, 16), COSTS.values()):
        costs = {"cost": dict(zip("FIW", costs))}
        (pathlib.Path(FOLDER.name) / "costs.json").write_text(json.dumps(costs))
        given = [*name.split()[1:], f"-DP={P}", f"-DM={4 * P}"]
        report = json.loads(run("ppcc", "report", name.split()[0], *given, "--costs=costs.json", "--comm-order=none", "--format=json").stdout)
        costs["limit"] = [rank["peak_memory"] for rank in report["ranks"]]
        yield certify(costs, [f"--placement={name.split()[0]}", *given])


rng = random.Random(1)
show("small", [certify(*options_of(*problem(rng))) for _ in range(int((sys.argv + ["550"])[2]))])
show("library", list(library()))
