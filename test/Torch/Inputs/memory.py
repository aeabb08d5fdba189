#!/usr/bin/env python3
"""Compares the bytes that ranks held with those that the compiler's report predicts, and their gradients with those of a run
without a pipeline: memory.py FOLDER. What F keeps is measured first, with one microbatch, and what a stage reads is known: the
rest is the compiler's. Prints a table. ppcc and pprun come from $PATH."""
import json
import re
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
width, length, batch = 32, 64, 4
network = ["--layers=4", f"--width={width}", f"--length={length}", f"--batch={batch}"]
message = 2 * batch * length * width * 8  # Two tensors between stages.


def output(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def compiled(name, *options):
    path = folder / f"{name}.json"
    output("ppcc", *options, "-o", path)
    return path


def measured(program):
    """The most bytes of each rank, between actions."""
    line = output("pprun", "--check", "--memory", *network, program)
    return [int(number) for number in re.search(r"; bytes:((?: \d+)+)$", line, re.M)[1].split()]


def predicted(program, costs):
    path = folder / "costs.json"
    mnemonics = {kind["mnemonic"] for kind in json.loads(program.read_text())["kinds"]}
    path.write_text(json.dumps({"memory": {name: amount for name, amount in costs.items() if name in mnemonics}}))
    report = json.loads(output("ppcc", program, f"--costs={path}", "--emit=report-json"))
    return [rank["peak_memory"] for rank in report["ranks"]]


def main():
    whole = measured(compiled("whole", "gpipe", "-D", "P=4", "-D", "M=1"))
    # What W needs is more once I has run.
    split = measured(compiled("split", "zb1p", "-D", "P=4", "-D", "M=1"))
    read = [batch * length * 8] + 3 * [message]  # The first reads tokens.
    # Of the two tensors that go on, the layers' own; the other is saved.
    sent = 3 * [-message / 2] + [0]
    costs = {"RELEASE_OUT": sent, "F": whole, "I": [b - a for a, b in zip(whole, split)], "R": [a - b for a, b in zip(whole, read)], "OFFLOAD": [-a for a in whole], "RELOAD": whole}
    schedules = {
        "one_f_one_b": ["-D", "P=4", "-D", "M=8"],
        "zb1p": ["-D", "P=4", "-D", "M=8"],
        "interleaved_1f1b": ["-D", "P=2", "-D", "M=4", "-D", "V=2"],
        "dualpipe": ["-D", "P=4", "-D", "M=8"],
    }
    for name, options in schedules.items():
        plain = None
        for rule in ["", "release", "recompute", "recompute(2, 1)", "offload"]:
            program = compiled(name, name, *options, *([f"--with={rule}"] if rule else []))
            model, real = predicted(program, costs), measured(program)
            line = " ".join(f"{a / 1e6:6.2f} {b / 1e6:5.2f}" for a, b in zip(model, real))
            print(f"{name:17}{rule:16}{line}")
            # Some messages have come and not been read, or are to be sent. An F that keeps its inputs alone takes all while
            # it runs, which nobody sees between actions.
            assert all(0.8 * a <= b <= a + 2 * message for a, b in zip(model, real)), f"{name} {rule}: {real}"
            plain = plain or real
            most = 1 if rule == "release" else 0.75
            assert not rule or real[0] < most * plain[0], f"{name} {rule}: rank 0 holds as much as without"
    print("all as predicted")


main()
