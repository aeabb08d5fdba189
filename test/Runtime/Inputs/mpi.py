#!/usr/bin/env python3
"""Runs programs on MPI, a process a rank: mpi.py MPIRUN PPCC_RUN_MPI FAULT PROGRAM.JSON... Without a fault the layers of all
programs are counted together; with one, what the ranks print is printed, in their order, and the time is judged."""
import json
import re
import subprocess
import sys
import time

SETTINGS = {"btl": "self,vader", "pml": "ob1", "btl_vader_single_copy_mechanism": "none", "mpi_yield_when_idle": "1"}
WELL = ("none", "any-size", "wait-here")


def run(mpirun, program, fault, path, ranks):
    command = [mpirun, "--oversubscribe", "--allow-run-as-root", "--timeout", "60"]
    for name, value in SETTINGS.items():
        command += ["--mca", name, value]
    return subprocess.run([*command, "-np", str(ranks), program, fault, path], capture_output=True, text=True,
                          timeout=120)


def main():
    mpirun, program, fault, *paths = sys.argv[1:]
    exact = reordered = failed = 0
    for path in paths:
        ranks = json.load(open(path))["ranks"] - (fault == "ranks")
        start = time.monotonic()
        done = run(mpirun, program, fault, path, ranks)
        seconds = time.monotonic() - start
        if fault not in WELL:
            print("\n".join(sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))))
            print(f"status {done.returncode}" if seconds < 20 else f"{seconds} s are too long")
            continue
        found = re.search(r"(\d+) layers exact, (\d+) in another order, (\d+) failed", done.stdout)
        if done.returncode or not found:
            print(f"{path}: status {done.returncode}\n{done.stdout}{done.stderr}")
            failed += 1
            continue
        exact, reordered = exact + int(found[1]), reordered + int(found[2])
    if fault in WELL:
        print(f"{len(paths)} programs, {exact} layers exact, {reordered} in another order, {failed} failed")
    return failed != 0


sys.exit(main())
