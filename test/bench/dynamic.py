#!/usr/bin/env python3
"""Simulates orders under noise: as they are, as hints to a runtime whose ranks start what is ready (RRFP, arXiv 2605.18750), and with more memory.

Prints a table in Markdown of docs/decisions/0021-fixed-orders.md: means of the makespan over runs in which each action, each microbatch, each rank
or each message takes a random multiple of its time.

    python3 test/bench/dynamic.py build/bin [RUNS]
"""

import argparse
import heapq
import random
import re
import statistics
import subprocess
import tempfile
from functools import partial
from pathlib import Path

F, B, I, W, LATENCY = 1, 2, 1, 1, 0.1
TIMES = {"F": F, "B": B, "I": I, "W": W}
LIBRARY = {"one_f_one_b": "linear", "zb_h1": "linear", "interleaved_1f1b": "loop:2", "zbv": "v"}
SPREADS = (0.1, 0.2, 0.4)
NOISES = ("action", "microbatch", "rank", "message")
COLUMNS = ["noise", "spread", "fixed", "hint", "ready", "fixed, more memory", "hint, more memory", "hint of more memory"]


class Order:
    """What ranks run: cells such as `1F0`, of a program that ppcc prints."""

    def __init__(self, text):
        lines = [line.partition(":")[2].split() for line in text.splitlines() if line.startswith("rank")]
        self.ranks = [[self.action(cell) for cell in line] for line in lines]
        self.home = {action: rank for rank, actions in enumerate(self.ranks) for action in actions}
        stages = 1 + max(stage for _, stage, _ in self.home)
        self.needs, self.readers = {}, {}
        for kind, stage, microbatch in self.home:
            if kind == "F":
                needs = [("F", stage - 1, microbatch)]
            elif kind == "W":
                needs = [("I", stage, microbatch)]
            else:
                needs = [("F", stage, microbatch)]
                needs += [(above, stage + 1, microbatch) for above in "BI"] if stage + 1 < stages else []
            action = (kind, stage, microbatch)
            self.needs[action] = [need for need in needs if need in self.home]
            for need in self.needs[action]:
                self.readers.setdefault(need, []).append(action)

    @staticmethod
    def action(cell):
        stage, kind, microbatch = re.fullmatch(r"(\d+)([FBIW])(\d+)", cell).groups()
        return kind, int(stage), int(microbatch)

    def peaks(self):
        found = []
        for actions in self.ranks:
            held = peak = 0
            for kind, _, _ in actions:
                held += kind == "F"
                peak = max(peak, held)
                held -= kind in "BW"
            found.append(peak)
        return found


def simulate(order, rule, limits, time, message):
    """The makespan; None where ranks wait for ever. `time` is of an action, `message` of one that reads from another rank."""
    ends, left = {}, [list(actions) for actions in order.ranks]
    held, busy, running = [0] * len(left), [0.0] * len(left), [None] * len(left)
    events = [(0.0, rank) for rank in range(len(left))]

    def is_ready(action, now):
        return all(need in ends and ends[need] + (message(need, action) if order.home[need] != order.home[action] else 0) <= now + 1e-9
                   for need in order.needs[action])

    def chosen(rank, now):
        """The place of the action that the rank starts."""
        after = most = held[rank]  # If what stands before it runs later.
        for place, action in enumerate(left[rank]):
            takes = action[0] == "F"
            fits = {"fixed": place == 0, "hint": max(most, after) + takes <= limits[rank], "ready": held[rank] + takes <= limits[rank]}
            if fits[rule] and is_ready(action, now):
                return place
            if rule == "fixed":
                return None
            after += takes
            most = max(most, after)
            after -= action[0] in "BW"
        return None

    while events:
        now, rank = heapq.heappop(events)
        if busy[rank] > now + 1e-9:
            continue
        if running[rank]:
            held[rank] -= running[rank][0] in "BW"
            running[rank] = None
        place = chosen(rank, now)
        if place is None:
            continue
        action = left[rank].pop(place)
        held[rank] += action[0] == "F"
        running[rank] = action
        busy[rank] = ends[action] = now + time(action)
        heapq.heappush(events, (busy[rank], rank))
        for reader in order.readers.get(action, []):
            home = order.home[reader]
            heapq.heappush(events, (ends[action] + (message(action, reader) if home != rank else 0), home))
    return max(ends.values()) if len(ends) == len(order.home) else None


def factors(noise, spread, order, seed):
    """Times of actions and of messages in one run."""
    chosen, known = random.Random(seed), {}

    def factor(key):
        if key not in known:
            known[key] = max(0.05, chosen.gauss(1, spread))
        return known[key]

    for action in sorted(order.home):  # The same for every order of these actions.
        factor(action)
    keys = {"action": lambda action: action, "microbatch": lambda action: action[2], "rank": lambda action: ("rank", order.home[action])}

    def time(action):
        return TIMES[action[0]] * (factor(keys[noise](action)) if noise in keys else 1)

    def message(_, reader):
        return LATENCY * (max(0, 1 + 10 * (factor(reader) - 1)) if noise == "message" else 1)

    return time, message


def mean(order, rule, limits, noise, spread, runs):
    times = [simulate(order, rule, limits, *factors(noise, spread, order, seed)) for seed in range(runs)]
    hangs = times.count(None)
    return f"hangs in {hangs} of {runs}" if hangs else f"{statistics.mean(times):.1f}"


def orders(ppcc, name, placement, ranks, microbatches, more):
    """The order of the library, its peaks, and the best order for `more` activations beside these."""
    size = ["-D", f"P={ranks}", "-D", f"M={microbatches}"]
    actions = ["--comm-order=none", "--emit=actions"]
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    given = Order(run([ppcc, name, *size, *actions]).stdout)
    peaks = given.peaks()
    with tempfile.TemporaryDirectory() as folder:
        limits, found = Path(folder, "limits.json"), Path(folder, "found.pp")
        limits.write_text(f'{{"limit": {[peak + more for peak in peaks]}}}')
        costs = [word for kind, value in (*TIMES.items(), ("latency", LATENCY)) for word in ("--cost", f"{kind}={value}")]
        fused = [] if any(kind == "I" for kind, _, _ in given.home) else ["--fused-backward"]
        run([ppcc, "synthesize", f"--placement={placement}", *size, *costs, "--costs", limits, *fused, "--comm-order=none", "-o", found])
        return given, peaks, Order(run([ppcc, found, *actions]).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=Path)
    parser.add_argument("runs", nargs="?", type=int, default=40)
    options = parser.parse_args()
    ranks, microbatches, more = 8, 32, 2
    print("| " + " | ".join(["schedule", *COLUMNS]) + " |")
    print("|---" * (1 + len(COLUMNS)) + "|")
    for name, placement in LIBRARY.items():
        given, peaks, found = orders(options.bin / "ppcc", name, placement, ranks, microbatches, more)
        larger = [peak + more for peak in peaks]
        for noise in NOISES:
            for spread in SPREADS:
                of = partial(mean, noise=noise, spread=spread, runs=options.runs)
                cells = [of(given, "fixed", peaks), of(given, "hint", peaks), of(given, "ready", peaks), of(found, "fixed", larger),
                         of(given, "hint", larger), of(found, "hint", larger)]
                print("| " + " | ".join([name, noise, f"{spread:.0%}", *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
