#!/usr/bin/env python3
"""Writes the programs of the semantic suite, CASE-RUN.json and CASE-forward.json for evaluations: semantics.py CASES.json FOLDER."""
import json
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[2])
folder.mkdir(parents=True)


def write(name, run, microbatches, *options):
    rules = [f"--with={rule}" for rule in run.get("rules", [])]
    values = ["-D", f"P={run['P']}", "-D", f"M={microbatches}"]
    subprocess.run(["ppcc", run["schedule"], *values, *rules, *options, "-o", folder / f"{name}.json"], check=True)


for number, case in enumerate(json.loads(Path(sys.argv[1]).read_text())["cases"]):
    for which, run in enumerate(case["runs"]):
        write(f"{number}-{which}", run, case["M"])
    if case.get("evaluates"):
        write(f"{number}-forward", case["runs"][-1], case["M"], "-D", "forward_only=true")
