#!/usr/bin/env python3
"""Tells what overlapping the nodes of experts' layers brings, simulated. Usage: overlap.py PPCC

For each schedule: the makespan when the actions of a group run one after another; when their nodes take turns, in the order of list
scheduling and in that of the schedule's pattern; and the time that the busiest lane of a rank computes or
communicates, which no order of nodes undercuts."""
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "lib" / "models"
FORWARD = {"attention": 1.0, "dispatch": 0.5, "mlp": 1.2, "combine": 0.5}
SPLIT = ("attention", "mlp")  # Nodes with weights: half of the backward is theirs.
CASES = [
    ("one_f_one_b_overlap", "megatron_moe", "P=1 M=16 layers=4"),
    ("one_f_one_b_overlap", "megatron_moe", "P=1 M=16 layers=4 delay_w=true"),
    ("interleaved_1f1b_overlap", "megatron_moe", "P=4 M=16 V=2 layers=16"),
    ("interleaved_1f1b_overlap", "megatron_moe", "P=4 M=16 V=2 layers=16 delay_w=true"),
    ("interleaved_1f1b_overlap", "megatron_moe", "P=8 M=64 V=2 layers=32 delay_w=true"),
    ("dualpipe", "deepseek_moe", "P=4 M=16 layers=16"),
    ("dualpipe", "deepseek_moe", "P=8 M=64 layers=32"),
]
NODE = re.compile(r"(\w+):\d+([A-Z])\d+\.(?:L\d+\.)?(\w+)")


def costs(model, splits):
    """By part and name; a backward takes twice its forward."""
    names = {"attention": "attention" if model == "deepseek_moe" else "pre_dispatch"}
    result = {}
    for name, cost in FORWARD.items():
        known = names.get(name, name)
        result["F", known] = cost
        halves = splits and name in SPLIT
        result["B", known] = cost if halves else 2 * cost
        if halves:
            result["W", known] = cost
        if model == "deepseek_moe":
            result["I", known] = result["B", known]
    return result


def run(ppcc, schedule, params, *options):
    command = [ppcc, schedule, *(word for param in params.split() for word in ("-D", param)), *options, "-o", "-"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def makespan(ppcc, schedule, params, options):
    text = run(ppcc, schedule, params, "--comm-order=none", "--emit=report-json", *options)
    return float(re.search(r'"makespan": ([\d.]+)', text)[1])


def without_pattern(model, folder):
    """The model without its pattern, as a file."""
    text = (MODELS / f"{model}.pp").read_text()
    start = text.index("  overlap ")
    end = text.index("\n  }\n", start) + len("\n  }\n")
    path = Path(folder) / f"{model}.pp"
    path.write_text(text[:start] + text[end:])
    return path


def busiest(lines, cost):
    """The most that a lane of a rank is busy."""
    most = 0.0
    for line in lines.splitlines():
        busy = Counter()
        for lane, part, name in NODE.findall(line):
            busy[lane] += cost.get((part, name), 0)
        most = max(most, *busy.values())
    return most


def actions(lines, cost):
    """What each kind of action takes when its nodes run one after another; all stages have the same layers."""
    times = {}
    for brace in re.findall(r"\{([^}]*)\}", lines):
        nodes = NODE.findall(brace)
        kinds = {part for _, part, _ in nodes}
        if len(kinds - {"W"}) <= 1:  # An action by itself, perhaps a B that holds its W.
            kind = next(iter(kinds - {"W"}), "W")
            times[kind] = sum(cost.get((part, name), 0) for _, part, name in nodes)
    return times


def main():
    ppcc = sys.argv[1]
    print(f"{'schedule':<62} {'serial':>8} {'list':>8} {'pattern':>8} {'gain':>6} {'lane':>8} {'pattern/lane':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for schedule, model, params in CASES:
            cost = costs(model, "delay_w=true" in params or model == "deepseek_moe")
            options = [f"--cost={part}.{name}={time:g}" for (part, name), time in cost.items()]
            chosen = f"--model={model}"
            lines = run(ppcc, schedule, params, chosen, "--emit=nodes")
            serial = makespan(
                ppcc, schedule, params, [chosen, *(f"--cost={kind}={time:g}" for kind, time in actions(lines, cost).items())]
            )
            listed = makespan(ppcc, schedule, params, [f"--model={without_pattern(model, folder)}", *options])
            pattern, lane = makespan(ppcc, schedule, params, [chosen, *options]), busiest(lines, cost)
            print(
                f"{schedule + ' ' + params:<62} {serial:8.1f} {listed:8.1f} {pattern:8.1f}"
                f" {1 - pattern / serial:6.1%} {lane:8.1f} {pattern / lane:12.3f}"
            )


main()
