#!/usr/bin/env python3
"""Runs pprun and kills the process of a rank after the second step: kill.py PROGRAM.JSON RANK."""
import subprocess
import sys

import psutil

run = subprocess.Popen(
    ["pprun", sys.argv[1], "--steps=100000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
)
for _ in range(2):
    assert run.stdout.readline().startswith("step ")
ranks = sorted(psutil.Process(run.pid).children(), key=lambda child: child.pid)
ranks[int(sys.argv[2])].kill()
_, errors = run.communicate()
print(run.returncode, errors, end="")
left = [rank for rank in ranks if rank.is_running()]
print(f"left: {left}" if left else "no process is left")
