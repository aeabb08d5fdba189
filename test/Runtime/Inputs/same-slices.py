#!/usr/bin/env python3
"""Compares a plan, the trace of the simulator, with a run of it: the same slices on the same threads, in the same order, and the
same names. Usage: same-slices.py PLAN RUN"""
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
    # What happens at one time in the plan does not in a run.
    return slices, sorted(names, key=str), {rank: (max(counts), counts[-1]) for rank, counts in activations.items()}


plan, run = read(sys.argv[1]), read(sys.argv[2])
assert plan[0].keys() == run[0].keys(), plan[0].keys() ^ run[0].keys()
for thread, slices in plan[0].items():
    assert slices == run[0][thread], f"thread {thread}:\n{slices}\n{run[0][thread]}"
assert plan[1:] == run[1:], f"{plan[1:]}\n{run[1:]}"
print(f"{sum(map(len, run[0].values()))} slices are the same")
