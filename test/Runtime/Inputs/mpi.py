#!/usr/bin/env python3
"""Runs programs on MPI, a process a rank: mpi.py MPIRUN PPCC_RUN_MPI FAULT [--trace=FILE] PROGRAM.JSON... Without a fault one run
takes all programs, and prints how many layers are right. With one, what the ranks print is printed, in their order; the time is
judged, and that no process is left."""
import json
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "utils"))
from openmpi import mpirun  # noqa: E402

NO_FAULT = ("none", "digest", "parts", "any-size", "rendezvous", "concurrent")
SECONDS = 80  # Four times what mpirun takes on a machine that does other things too.


def run(launcher, program, fault, ranks, words):
    with mpirun(ranks, "--timeout", "240", program=launcher) as command:
        return subprocess.run([*command, program, fault, *words], capture_output=True, text=True, timeout=280)


def is_running(process):
    """A zombie has ended, and waits for its parent to notice."""
    try:
        state = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def main():
    launcher, program, fault, *words = sys.argv[1:]
    ranks = max(json.load(open(word))["ranks"] for word in words if not word.startswith("--"))
    start = time.monotonic()
    done = run(launcher, program, fault, ranks - (fault == "ranks"), words)
    seconds = time.monotonic() - start
    if fault in NO_FAULT:
        print(done.stdout if done.returncode == 0 else f"status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.returncode
    print("\n".join(sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))))
    processes = [int(number) for number in re.findall(r"^process (\d+)$", done.stdout, re.M)]
    while any(map(is_running, processes)) and time.monotonic() - start < SECONDS:
        time.sleep(0.1)
    left = sum(map(is_running, processes))
    if processes:
        print(f"{len(processes)} processes began, {left} are left")
    thrown, ended = (list(map(int, re.findall(rf"^{word} (\d+)$", done.stdout, re.M))) for word in ("thrown", "ended"))
    if thrown:
        print(f"{len(ended)} ended within 10 s" if max(ended) - min(thrown) < 10e9 else f"too late: {ended} after {thrown}")
    print(f"status {done.returncode}" if seconds < SECONDS else f"{seconds} s are too long")
    return 0


sys.exit(main())
