#!/usr/bin/env python3
"""Holds the default order of messages against the best of `sweep`, `late` and `ready-time`: fourteen schedules on each transport,
with two latencies.

Usage: comm_orders.py PPCC [P] [M]
"""
import json
import subprocess
import sys

SCHEDULES = {
    "gpipe": [], "one_f_one_b": [], "interleaved_1f1b": ["-DV=2"], "looped_bfs": ["-DV=2"], "hanayo": ["-DV=2"], "chimera": [],
    "dualpipe": [], "dualpipe_v": [], "zb_h1": [], "zb_h2": [], "zero_bubble_v": [], "v_half": [], "seq1f1b": [], "slimpipe": [],
}
TRANSPORTS = ("stream", "stream-per-peer", "stream-per-edge", "buffered", "rendezvous", "posted")


def makespan(ppcc, schedule, sizes, transport, latency, order):
    run = subprocess.run(
        [ppcc, schedule, *sizes, *SCHEDULES[schedule], f"--transport={transport}", f"--cost=latency={latency}",
         "--emit=report-json", *order],
        capture_output=True, text=True,
    )
    return json.loads(run.stdout)["makespan"] if run.returncode == 0 else None


def main():
    ppcc, P, M = sys.argv[1:] + ["4", "8"][len(sys.argv) - 2:]
    sizes = [f"-DP={P}", f"-DM={M}"]
    cases, worse = 0, []
    for schedule in SCHEDULES:
        for transport in TRANSPORTS:
            for latency in (0.05, 0.4):
                mine = makespan(ppcc, schedule, sizes, transport, latency, [])
                others = [
                    makespan(ppcc, schedule, sizes, transport, latency, [f"--comm-order={order}"])
                    for order in ("sweep", "late", "ready-time")
                ]
                best = min((time for time in others if time is not None), default=mine)
                assert mine is not None or best is None, (schedule, transport, latency)
                if mine is None:
                    continue
                cases += 1
                if mine > best:
                    worse.append((mine / best - 1, schedule, transport, latency))
    print(f"{cases} cases: worse in {len(worse)}, by more than 1 % in {sum(by > 0.01 for by, *_ in worse)}")
    for by, *case in sorted(worse, reverse=True):
        print(f"{100 * by:.2f} %", *case)


main()
