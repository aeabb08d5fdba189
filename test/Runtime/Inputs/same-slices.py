#!/usr/bin/env python3
"""Compares a plan, the trace of the simulator, with a run of it: the same slices on the same threads, in the same order, the same
names, and as many activations. Usage: same-slices.py PLAN RUN"""
import json
import sys


def read(path):
    slices, names, activations = {}, [], {}
    for event in sorted(json.load(open(path))["traceEvents"], key=lambda event: event.get("ts", 0)):
        if event["ph"] == "X":
            args = {key: value for key, value in event["args"].items() if key not in ("posted", "waited")}
            slices.setdefault((event["pid"], event["tid"]), []).append((event["name"], event["cat"], args))
        elif event["ph"] == "M":
            names.append((event["pid"], event["tid"], event["name"], event["args"]))
        elif event["name"] == "activations":
            activations.setdefault(event["pid"], []).append(event["args"]["activations"])
    return slices, sorted(names, key=str), activations


plan, run = read(sys.argv[1]), read(sys.argv[2])
assert plan[0].keys() == run[0].keys(), plan[0].keys() ^ run[0].keys()
for thread, slices in plan[0].items():
    assert slices == run[0][thread], f"thread {thread}:\n{slices}\n{run[0][thread]}"
assert plan[1] == run[1], f"{plan[1]}\n{run[1]}"
assert plan[2].keys() == run[2].keys()
for rank, counts in plan[2].items():
    # A run may end the backward of a group before its forward begins: the plan never does, and so holds one more.
    overlaps = (rank, 1) in plan[0]
    peak = max(run[2][rank])
    assert peak == max(counts) or overlaps and peak == max(counts) - 1, f"rank {rank}: {counts}\n{run[2][rank]}"
    assert run[2][rank][-1] == counts[-1]
print(f"{sum(map(len, run[0].values()))} slices are the same")
