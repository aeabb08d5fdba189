"""Lets the compiler place W's: at the memory of zb_h1 and zb_h2 it must be as fast as they are.

    fill.py STEP    every STEP-th of P in 2..16, M in P..4 P, at two costs
"""

import json
import subprocess
import sys

FREE = """schedule free(P: int, M: int, held: int) {
  ranks P; microbatches M; placement linear;
  cluster { limit = held; }
  on rank r { defer W fill { repeat M { F; B; } } }
}"""
COSTS = [("1", "1", "1"), ("5", "6", "4")]


def run(text, *options):
    """The report of a schedule, or what is wrong with it."""
    name, given = ("-", text) if "{" in text else (text, None)
    done = subprocess.run(["ppcc", name, *options], input=given, capture_output=True, text=True, timeout=60)
    return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr)


def makespan(text, *options):
    report, error = run(text, "--comm-order=none", "--emit=report-json", *options)
    assert report, error
    return report["makespan"]


def limits(step):
    tried = better = worse = 0
    cases = [(P, M, costs, schedule) for P in range(2, 17) for M in range(P, 4 * P + 1) for costs in COSTS for schedule in ("zb_h1", "zb_h2")]
    for P, M, costs, schedule in cases[::step]:
        options = [f"-DP={P}", f"-DM={M}", *(f"--cost={kind}={cost}" for kind, cost in zip("FIW", costs))]
        theirs = makespan(schedule, *options)
        ours = makespan(FREE, *options, f"-Dheld={P if schedule == 'zb_h1' else 2 * P - 1}")
        tried, better, worse = tried + 1, better + (ours < theirs), worse + (ours > theirs)
        if ours > theirs:
            print(f"{schedule} P={P} M={M} costs {costs}: {ours} instead of {theirs}")
    print(f"tried {tried}, better {better}, worse {worse}")
    return worse or not tried


sys.exit(bool(limits(int(sys.argv[1]))))
