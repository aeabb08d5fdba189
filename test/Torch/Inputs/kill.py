#!/usr/bin/env python3
"""Runs pprun and kills, or stops, the process of a rank after the second step: kill.py PROGRAM.JSON RANK [--stop] [OPTION...]."""
import subprocess
import sys

import psutil

stops = "--stop" in sys.argv
options = [option for option in sys.argv[3:] if option != "--stop"]
run = subprocess.Popen(
    ["pprun", sys.argv[1], "--steps=100000", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
)
for _ in range(2):
    assert run.stdout.readline().startswith("step ")
ranks = sorted(psutil.Process(run.pid).children(), key=lambda child: child.pid)
rank = ranks[int(sys.argv[2])]
rank.suspend() if stops else rank.kill()
_, errors = run.communicate()
print(run.returncode, errors, end="")
left = [rank for rank in ranks if rank.is_running()]
print(f"left: {left}" if left else "no process is left")
