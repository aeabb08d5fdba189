#!/usr/bin/env python3
"""Compares --emit=nodes, and the places of messages in --emit=nodes-comm, with the groups of combined.jsonl (see README.md)."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

from cases import print_summary, failures

HERE = pathlib.Path(__file__).resolve().parent
BRACE = re.compile(r"\{([^}]*)\}")
CELL = re.compile(r"\d+(?:SEND|RECV)_[FB]\d+")


def command(params):
    """The order and the model of the library for a case, two layers a stage, with their -D options."""
    values = {"M": params["microbatches"]}
    stages = params["pp"] * params.get("chunks", 1)
    if params["pp"] == 1:
        schedule, values["P"] = "one_f_one_b_overlap", 1
    else:
        schedule = "interleaved_1f1b_overlap"
        values |= {"P": params["pp"], "V": params["chunks"], "G": params["N"]}
    values["layers"] = 2 * stages
    for name in ("delay_w", "early"):
        values[name] = str(params.get(name, False)).lower()
    words = (word for name, value in values.items() for word in ("-D", f"{name}={value}"))
    return [schedule, "--model=megatron_moe", *words]


def groups_of(rank):
    """The nodes of each group, without what hooks splice in between them."""
    return [[node for node in entry["nodes"] if not node.startswith("@")] for entry in rank if "group" in entry]


def hooked(entry):
    """A hook as nodes-comm writes it: the sends of a call on its lane, or the receives that are waited for."""
    lane = "comm" if entry.endswith("@comm") else "comp"
    kind = "RECV" if entry.startswith("@wait") else "SEND"
    return [f"{lane}:{cell}" for cell in CELL.findall(entry) if kind in cell]


def hooked_groups_of(rank):
    """The nodes of each group with its sends, and with those receives that it waits for itself: others came before it."""
    return [
        [word for node in entry["nodes"] for word in (hooked(node) if node.startswith("@") else [node])]
        for entry in rank
        if "group" in entry
    ]


def is_expected(word, want, size):
    """Messages of single actions stand between the groups there, and receives that came before a group nowhere."""
    if not CELL.search(word):
        return True
    return size > 1 and (word in want or "SEND" in word)


def check(ppcc, case):
    return compare(ppcc, case, "nodes", groups_of) or compare(ppcc, case, "nodes-comm", hooked_groups_of)


def compare(ppcc, case, emit, groups):
    done = subprocess.run(
        [ppcc, *command(case["params"]), f"--emit={emit}", "-o", "-"], capture_output=True, text=True, timeout=60
    )
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr.strip().splitlines()[:1]}"
    lines = done.stdout.splitlines()
    if len(lines) != len(case["ranks"]):
        return f"{len(lines)} ranks instead of {len(case['ranks'])}"
    for number, (line, rank) in enumerate(zip(lines, case["ranks"])):
        wanted, found = groups(rank), [text.split() for text in BRACE.findall(line)]
        sizes = [len(entry["group"]) for entry in rank if "group" in entry]
        if len(wanted) != len(found):
            return f"rank {number}: {len(found)} groups instead of {len(wanted)}"
        for index, (want, have, size) in enumerate(zip(wanted, found, sizes)):
            have = [word for word in have if is_expected(word, want, size)]
            if want != have:
                return f"{emit}, rank {number}, group {index}: expected {want}, got {have}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ppcc", help="the compiler to test")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="compilers at a time")
    options = parser.parse_args()
    cases = [json.loads(line) for line in (HERE / "combined.jsonl").read_text().splitlines()]
    return print_summary(cases, failures(cases, lambda case: check(options.ppcc, case), options.jobs))


if __name__ == "__main__":
    sys.exit(main())
