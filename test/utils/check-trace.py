#!/usr/bin/env python3
"""Reads a trace, and checks that viewers can make something of it: slices of a thread do not cross, and each arrow goes
forward in time between slices. Prints how many there are of each. Usage: check-trace.py FILE"""
import collections
import decimal
import json
import sys

trace = json.load(open(sys.argv[1]), parse_float=decimal.Decimal)
assert trace["otherData"]["format"] == "ppcc.trace" and trace["otherData"]["version"] == 1
slices, flows, names, counters = collections.defaultdict(list), collections.defaultdict(list), {}, 0
for event in trace["traceEvents"]:
    thread = event["pid"], event["tid"]
    if event["ph"] == "X":
        slices[thread].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    elif event["ph"] in "stf":
        flows[event["id"]].append((event["ph"], event["ts"], thread))
    elif event["ph"] == "C":
        counters += 1
        assert event["args"][event["name"]] >= 0, event
    else:
        assert event["ph"] == "M", event
        names.setdefault(event["name"], set()).add(thread)
for thread, list_ in slices.items():
    assert thread in names["thread_name"], thread
    open_ = []
    for start, end, name in sorted(list_, key=lambda slice: (slice[0], -slice[1])):
        while open_ and open_[-1] <= start:
            open_.pop()
        assert not open_ or end <= open_[-1], f"{name} crosses another on {thread}"
        open_.append(end)
for id_, steps in flows.items():
    assert [steps[0][0], steps[-1][0]] == ["s", "f"] and {step[0] for step in steps[1:-1]} <= {"t"}, steps
    assert [step[1] for step in steps] == sorted(step[1] for step in steps), f"arrow {id_} goes back: {steps}"
    for phase, at, thread in steps:
        assert any(start <= at < end for start, end, _ in slices[thread]), f"arrow {id_}: {phase} is in no slice"
actions = sum(len(list_) for list_ in slices.values())
print(f"{actions} slices on {len(slices)} threads of {len(names['process_name'])} ranks, {len(flows)} arrows, {counters} counters")
