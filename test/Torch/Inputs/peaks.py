#!/usr/bin/env python3
"""Compares the activations that pprun held with those that the compiler's report predicts: peaks.py FOLDER OUTPUT, the output
of `pprun --check` for the programs of the folder. ppcc comes from $PATH."""
import json
import re
import subprocess
import sys
from pathlib import Path


def main():
    printed, ranks = Path(sys.argv[2]).read_text(), 0
    programs = sorted(Path(sys.argv[1]).glob("*.json"))
    for program in programs:
        line = re.search(rf"^{re.escape(str(program))}: .*; activations alive:((?: \d+)+)$", printed, re.M)
        assert line, f"pprun says nothing of {program}"
        report = json.loads(
            subprocess.run(["ppcc", program, "--emit=report-json"], capture_output=True, text=True, check=True).stdout
        )
        predicted = [rank["peak_activations"] for rank in report["ranks"]]
        held = [int(number) for number in line[1].split()]
        assert held == predicted, f"{program}: held {held}, predicted {predicted}"
        ranks += len(predicted)
    print(f"{len(programs)} programs, {ranks} ranks agree")


main()
