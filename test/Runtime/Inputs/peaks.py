#!/usr/bin/env python3
"""Compares the activations that ranks held in a run with those that the compiler's report predicts: peaks.py FOLDER of what
library.py writes. Both tools come from $PATH."""
import json
import re
import subprocess
import sys
from pathlib import Path


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    programs = sorted(Path(sys.argv[1]).glob("*.json"))
    ranks = 0
    for program in programs:
        printed = output("ppcc-run", "--transport=cooperative", "--peaks", program)
        held = re.findall(r"^rank \d+: (\d+) activations", printed, re.M)
        report = json.loads(output("ppcc", program, "--emit=report-json"))
        written = json.loads(program.read_text())["peak_activations"]
        predicted = [rank["peak_activations"] for rank in report["ranks"]]
        assert [int(number) for number in held] == predicted, f"{program}: held {held}, predicted {predicted}"
        assert written == predicted, f"{program}: it says {written}, the report {predicted}"
        ranks += len(predicted)
    print(f"{len(programs)} programs, {ranks} ranks agree")


main()
