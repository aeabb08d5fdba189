#!/usr/bin/env python3
"""Compares verify-matching and verify-transport with the verdicts of transport.jsonl (see README.md)."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

from cases import print_summary, failures

HERE = pathlib.Path(__file__).resolve().parent
CELL = re.compile(r"(\d+)([A-Z_]+)(\d+)")
CODE = re.compile(r"error: .*\[(E\d+)\]")
UNMATCHED_CODES, ORDER_CODES, CYCLE = {"E0760", "E0761"}, {"E0762"}, {"E0765", "E0766"}


def program_text(rows):
    """The rows as text of the IR: each stage is on the rank that computes it."""
    cells = [CELL.findall(row) for row in rows]
    rank_of = {int(stage): rank for rank, row in enumerate(cells) for stage, _, _ in row}
    microbatches = 1 + max(int(microbatch) for row in cells for _, _, microbatch in row)
    backward = any(kind in ("B", "I") for row in cells for _, kind, _ in row)
    pipe = {"name": "main", "microbatches": [0, microbatches], "rank_of_stage": [rank_of[stage] for stage in range(len(rank_of))], "skip_edges": []}
    head = {"ranks": 1 + max(rank_of.values()), "backward": backward, "pipes": [pipe]}
    return f"program {json.dumps(head)}\n" + "".join(f"rank {rank} {{ {row} }}\n" for rank, row in enumerate(rows))


def codes(ppcc, text, pipeline, *options):
    """The codes of the errors that a pipeline reports."""
    done = subprocess.run(
        [ppcc, "-", "--check", f"--passes={pipeline}", *options], input=text, capture_output=True, text=True, timeout=60
    )
    found = set(CODE.findall(done.stderr))
    assert (done.returncode == 0) == (not found), done.stderr
    return found


def run_ppcc(ppcc, text, question):
    """Our answer to one question of a verdict, or the codes that are none."""
    if question in ("matched", "fifo"):
        found = codes(ppcc, text, "verify-matching")
        bad = UNMATCHED_CODES if question == "matched" else UNMATCHED_CODES | ORDER_CODES
        known = UNMATCHED_CODES | ORDER_CODES
    else:
        found = codes(ppcc, text, "verify-transport", f"--transport={question}")
        bad = known = CYCLE
    return not found & bad if found <= known else found


def check(ppcc, case):
    text = program_text(case["rows"])
    for question, expected in case["verdict"].items():
        answer = run_ppcc(ppcc, text, question)
        if answer != expected:
            return f"{question}: expected {expected}, got {answer}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ppcc", help="the ppcc to test")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=HERE / "transport.jsonl")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()

    cases = [json.loads(line) for line in options.file.read_text().splitlines() if line]
    failed = failures(cases, lambda case: check(options.ppcc, case), options.jobs)
    verdicts = sum(len(case["verdict"]) for case in cases)
    return print_summary(cases, failed, f" ({verdicts} verdicts)")


if __name__ == "__main__":
    sys.exit(main())
