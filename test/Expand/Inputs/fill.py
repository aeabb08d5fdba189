"""Lets the compiler place W's: at the memory of zb_h1 and zb_h2 it must be as fast as they are, and with any limits that hold a
microbatch it must come to an end within them.

    fill.py limits STEP     every STEP-th of P in 2..16, M in P..4 P, at two costs
    fill.py random COUNT    so many random placements, costs and limits
"""

import json
import random
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


def drawn(rng):
    """A schedule whose limit holds a microbatch, and perhaps more."""
    P, M = rng.randint(1, 6), rng.randint(1, 14)
    V = rng.randint(1, 3)
    place = rng.choice([f"placement loop({V});", f"placement wave({V});", "map"])
    stages = P * V
    if place == "map":
        hosts = list(range(P)) + [rng.randrange(P) for _ in range(stages - P)]
        rng.shuffle(hosts)
        place = f"let hosts = {hosts}; stages {stages}; stage s on rank hosts[s];"
    else:
        wave = "wave" in place
        hosts = [P - 1 - s % P if wave and s // P % 2 else s % P for s in range(stages)]
    held = [rng.choice([1, 1, 2, 3, 5]) for _ in range(stages)]
    gone = [rng.randint(0, x) for x in held]  # Of it, with the input gradient.
    rank_need = [sum(held[s] for s in range(stages) if hosts[s] == r) for r in range(P)]
    limit = max(rank_need) + rng.choice([0, 0, 1, 2, 3, 5, 8, 100])
    settings = [f"cost {kind} stage s = {[rng.randint(0, 9) for _ in range(stages)]}[s];" for kind in "FIW"]
    settings += [f"memory F stage s = {held}[s];", f"memory I stage s = -{gone}[s];",
                 f"memory W stage s = {gone}[s] - {held}[s];"]
    cluster = f"limit = {limit}; latency = {rng.choice([0, 0, 1, 4])};"
    each = ["repeat M { for c in 0 .. n { F(c); } for c in 0 .. n { B(n - 1 - c); } }",
            "repeat M { for c in 0 .. n { F(c); } } repeat M { for c in 0 .. n { B(n - 1 - c); } }",
            "for c in 0 .. n { repeat M { F(c); } } for c in 0 .. n { repeat M { B(n - 1 - c); } }"]
    caps = [hosts.count(r) + rng.choice([0, 1, 4]) for r in range(P)]
    cap = rng.choice(["", "", f" cap {caps}[r]", " lag 1"])
    return f"""schedule drawn() {{
  ranks {P}; let M = {M}; microbatches M; {place}
  model {{ {' '.join(settings)} }}
  cluster {{ {cluster} }}
  on rank r {{ let n = {[hosts.count(r) for r in range(P)]}[r]; defer W fill{cap} {{ {rng.choice(each)} }} }}
}}"""


def randoms(count):
    wrong = 0
    for seed in range(count):
        text = drawn(random.Random(seed))
        report, error = run(text, "--comm-order=none", "--emit=report-json")
        if report is None:
            wrong += 1
            print(f"seed {seed}:\n{text}\n{error}")
    print(f"tried {count}, wrong {wrong}")
    return wrong or not count


sys.exit(bool({"limits": limits, "random": randoms}[sys.argv[1]](int(sys.argv[2]))))
