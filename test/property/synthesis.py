#!/usr/bin/env python3
"""Synthesizes random problems, and compares each figure of what is found with the report on the written schedule.

A problem ends with a schedule, or with an error that says why there is none. With a sanitized compiler, a report of the
sanitizers is a failure, too.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SECONDS = 600
CODE = re.compile(r"\berror: .*\[(E\d{4})\]")
# No order can keep the limit, or nothing is found.
REFUSED = {"E1101", "E1102"}
# What was asked for cannot be: an order of the messages that hangs, or a transport where there are none.
BY_OPTION = {"--comm-order=late": {"E0762", "E0766"}, "--comm-order=none": {"E0764"}, "--from": {"E1103"}}

PIPES = """\
schedule pipes(P: int = 2, M: int = 4) {{
  ranks P;
  pipe down {{ stages P; stage s on rank s;         microbatches 0 .. M / {share}; }}
  pipe up   {{ stages P; stage s on rank P - 1 - s; microbatches M / {share} .. M; }}
  on rank r {{ }}
}}
"""
SKIPS = """\
schedule skips(P: int = 3, M: int = 4) {{
  ranks P; microbatches M; stages P + 1; stage s on rank min(s, P - 1);
  edge stage 0 -> stage P;
  on rank r {{ }}
}}
"""
PLACEMENTS = ["linear", "linear", "linear", "v", "v", "loop:2", "loop:3", "wave:2", "wave:3", "wave:4", "dualpipe", "chimera",
              "pipes", "skips"]


class Problem:
    """A placement with costs and options; `files` are written beside them."""

    def __init__(self, rng):
        self.placement = rng.choice(PLACEMENTS)
        small = [1, 2, 2, 3, 3, 4, 4, 5, 6]
        self.ranks = rng.choice(small if self.placement == "linear" else [2, 2, 3, 4])
        self.microbatches = rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 17])
        if self.placement in ("dualpipe", "chimera"):
            self.ranks += self.ranks % 2
            self.microbatches = 2 * self.ranks * rng.choice([1, 1, 2])
        if self.placement == "skips":
            self.ranks = max(self.ranks, 2)
        self.share = rng.choice([2, 2, 3])
        if self.placement == "pipes":
            self.microbatches = max(self.microbatches, self.share)
        name, _, chunks = self.placement.partition(":")
        self.stages = self.ranks * (int(chunks) if chunks else 2 if name == "v" else 1) + (name == "skips")
        self.chunks = 2 if name in ("dualpipe", "chimera", "pipes", "skips") else self.stages // self.ranks
        self.for_all = rng.random() < 0.2
        self.recompute = not self.for_all and self.is_named() and rng.random() < 0.2
        self.offload = not self.for_all and self.is_named() and rng.random() < 0.2
        self.costs = self.random_costs(rng)
        self.options = self.random_options(rng)

    def is_named(self):
        return self.placement.partition(":")[0] in ("linear", "v", "loop", "wave")

    def random_costs(self, rng):
        number = rng.choice([
            lambda: rng.randint(0, 5), lambda: rng.randint(1, 9), lambda: round(rng.uniform(0, 3), rng.choice([1, 3, 9])),
            lambda: rng.choice([0, 1e-9, 1, 1e5]),
        ])

        def by_stage(value):
            if rng.random() < 0.5:
                return value()
            if self.placement in ("dualpipe", "chimera", "pipes") and rng.random() < 0.5:
                return {"down": [value() for _ in range(self.stages)], "up": value()}
            return [value() for _ in range(self.stages)]

        costs = {"cost": {kind: by_stage(number) for kind in "FIW" if rng.random() < 0.8}}
        if rng.random() < 0.2:
            costs["cost"]["B"] = by_stage(number)
        if rng.random() < 0.5:
            costs["latency"] = by_stage(number)
        if self.ranks > 1 and rng.random() < 0.15:
            costs["latency"] = {f"{a}-{b}": number() for a, b in [rng.sample(range(self.ranks), 2)]}
        memory = {}
        if rng.random() < 0.5:
            memory["F"] = by_stage(lambda: rng.randint(0, 4))
        if rng.random() < 0.3:
            memory["I"] = by_stage(lambda: rng.choice([-2, -1, -0.5, 0, 0.5, 1]))
        if rng.random() < 0.1:  # W gives back what is left, be it told so or not; seldom it does not.
            memory = {"F": rng.randint(1, 4), "I": rng.choice([-1, -0.5, 0, 1])}
            memory["W"] = -memory["F"] - memory["I"] - rng.choice([0, 0, 0, 1])
        if memory:
            costs["memory"] = memory
        if rng.random() < 0.2:
            costs["static"] = by_stage(lambda: rng.randint(0, 3))
        least, most = self.chunks, self.chunks * (self.ranks + 2) * rng.choice([1, 1, 4])
        if rng.random() < 0.3:
            costs["limit"] = rng.randint(least, most)
        elif rng.random() < 0.7:
            costs["limit"] = [rng.randint(least, most) for _ in range(self.ranks)]
        if self.recompute and rng.random() < 0.5:
            costs["cost"]["R"] = number()
        if self.offload and rng.random() < 0.5:
            costs["cost"].update(OFFLOAD=number(), RELOAD=number())
        return costs

    def random_options(self, rng):
        options = ["--effort=1"]
        options += ["--recompute"] * self.recompute + ["--offload"] * self.offload
        if rng.random() < 0.25:
            options.append("--fused-backward")
        if rng.random() < 0.2:
            options.append("--objective=span")
        if rng.random() < 0.3:
            options.append("--comm-order=" + rng.choice(["none", "sweep", "ready-time", "late", "best"]))
        if rng.random() < 0.3:
            options.append("--transport=" + rng.choice(["buffered", "buffered:2", "stream-per-peer", "posted", "rendezvous"]))
        if rng.random() < 0.1:
            options.append("--prefetch=" + rng.choice("123"))
        if not self.for_all and self.is_named() and rng.random() < 0.1:
            options.append(f"--layers=E,t*{self.stages * rng.choice([1, 2])},L")
        if not self.for_all and self.is_named() and rng.random() < 0.05:
            options.append("--from=" + rng.choice(["one_f_one_b", "zb_h1", "interleaved_1f1b", "zero_bubble_v"]))
        if self.for_all:
            options.append("--for=M")
        if not self.for_all and rng.random() < 0.05:
            options.append(f"--sweep=limit={self.chunks}..{self.chunks + rng.randint(1, 3)}")
        if not self.for_all or rng.random() < 0.5:
            options.append(f"-DM={self.microbatches}")
        return options + [f"-DP={self.ranks}"]

    def command(self, ppcc, folder):
        placement = self.placement
        for name, text in (("pipes", PIPES), ("skips", SKIPS)):
            if placement == name:
                placement = folder / f"{name}.pp"
                placement.write_text(text.format(share=self.share))
        (folder / "costs.json").write_text(json.dumps(self.costs))
        return [ppcc, "synthesize", f"--placement={placement}", f"--costs={folder / 'costs.json'}", "--format=json",
                "-o", str(folder / "found.pp"), *self.options]

    def kind(self):
        kind = "for M" if self.for_all else "sweep" if any("--sweep" in o for o in self.options) else "one M"
        return kind + " recompute" * self.recompute + " offload" * self.offload


def run(command, folder):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=folder)
    if done.returncode not in (0, 1) or "runtime error" in done.stderr or "Sanitizer" in done.stderr:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return done


def is_near(a, b):
    return math.isclose(a, b, rel_tol=1e-12, abs_tol=2e-9)


def check_sweep(points):
    """More memory never takes longer, and no order is below its bound or above its limit."""
    times = [point["makespan"] for point in points if point["fits"]]
    assert times == sorted(times, reverse=True), f"more memory takes longer: {times}"
    for point in points:
        if point["fits"]:
            assert point["bound"] <= point["makespan"] and point["peak_memory"] <= point["limit"], point
            assert point["optimal"] == (point["makespan"] == point["bound"]), point


def check(problem, found, judge, folder):
    """Compares what was said of the schedule with its report."""
    by_data = "--comm-order=none" in problem.options
    given = [f"-DM={found['microbatches']}"] if problem.for_all else []
    done = run([judge, "report", "found.pp", "--format=json", *["--comm-order=none"] * by_data, *given], folder)
    assert done.returncode == 0, f"the schedule is refused: {done.stderr}"
    report = json.loads(done.stdout)
    assert is_near(found["makespan"], report["makespan"]), f"makespan {found['makespan']}, report {report['makespan']}"
    span = max(rank["span"] for rank in report["ranks"])
    assert is_near(found["span"], span), f"span {found['span']}, report {span}"
    peaks = [rank["peak_memory"] for rank in report["ranks"]]
    assert found["peak_memory"] == peaks, f"peaks {found['peak_memory']}, report {peaks}"
    limits = problem.costs.get("limit", math.inf)
    limits = limits if isinstance(limits, list) else [limits] * problem.ranks
    assert all(peak <= limit for peak, limit in zip(peaks, limits)), f"peaks {peaks}, limits {limits}"
    is_span = "--objective=span" in problem.options
    value, bound = found["span" if is_span else "makespan"], found["bound"]
    assert bound <= value and found["optimal"] == (value == bound), f"value {value}, bound {bound}"
    gap = (value - bound) / bound if bound else 0
    assert abs(found["gap"] - gap) <= 1e-6 * max(gap, 1), f"gap {found['gap']}, not {gap}"
    # A bound of all choices of what is saved is another one; so is that of spans.
    if not (is_span or problem.recompute or problem.offload):
        assert is_near(bound, report["resource_bound"]), f"bound {bound}, report {report['resource_bound']}"


def verdict(ppcc, judge, seed):
    """What came of a problem: a word for the tally, and what is wrong, or None."""
    problem = Problem(random.Random(seed))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = problem.command(ppcc, folder)
        shown = " ".join(map(str, command)) + "\n" + json.dumps(problem.costs)
        try:
            done = run(command, folder)
            if done.returncode == 1:
                codes = CODE.findall(done.stderr)
                allowed = REFUSED.union(*(more for option, more in BY_OPTION.items()
                                          if any(given.startswith(option) for given in problem.options)))
                if not codes or not allowed.issuperset(codes):
                    raise AssertionError(done.stderr)
                return problem.kind(), codes[0], None
            found = json.loads(done.stdout)
            if "sweep" in found:
                check_sweep(found["sweep"])
            else:
                check(problem, found, judge, folder)
            return problem.kind(), "found", None
        except subprocess.TimeoutExpired:
            return problem.kind(), "failed", f"no end after {SECONDS} s\n{shown}"
        except (AssertionError, ValueError) as fault:
            return problem.kind(), "failed", f"{fault}\n{shown}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ppcc", help="the compiler to test")
    parser.add_argument("--judge", help="the compiler that reports; the same without it")
    parser.add_argument("--count", type=int, default=60, help="how many problems")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="problems at a time")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    tally = collections.Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(lambda seed: verdict(options.ppcc, options.judge or options.ppcc, seed), seeds)
        for seed, (kind, outcome, wrong) in zip(seeds, verdicts):
            tally[kind, outcome] += 1
            if wrong:
                print(f"--- seed {seed}: {wrong}", flush=True)
    for (kind, outcome), number in sorted(tally.items()):
        print(f"{kind:26} {outcome:8} {number}")
    found = sum(number for (_, outcome), number in tally.items() if outcome == "found")
    failed = sum(number for (_, outcome), number in tally.items() if outcome == "failed")
    print(f"{options.count} problems: {found} schedules, {options.count - found - failed} refused, {failed} failed")
    return failed != 0 or found < options.count // 2


if __name__ == "__main__":
    sys.exit(main())
