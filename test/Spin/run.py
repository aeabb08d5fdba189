#!/usr/bin/env python3
"""Compares what ppcc says of small programs under every transport with SPIN, which searches all that can happen in the
model of --emit=promela, and with a slow checker that plays them."""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from checker import TRANSPORTS, is_safe, unmatched
from programs import fused_cases, small_cases, transport_cases

HERE = pathlib.Path(__file__).resolve().parent
CODE = re.compile(r"\berror: .*\[(E\d{4})\]")
UNMATCHED = {"E0760", "E0761", "E0762"}
DEADLOCK = {"E0765", "E0766"}
KINDS = ["safe", "deadlock", "unmatched"]
SECONDS = 30


def by_checker(program, transport):
    if unmatched(program):
        return "unmatched"
    return "safe" if is_safe(program, transport) else "deadlock"


def by_ppcc(opt, path, transport):
    passes = f"verify-matching,verify-transport{{transport={transport}}}"
    done = subprocess.run([opt, path, f"--passes={passes}", "--no-print"], capture_output=True, text=True,
                          timeout=SECONDS)
    codes = set(CODE.findall(done.stderr))
    if done.returncode == 0 and not codes:
        return "safe"
    if done.returncode == 1 and codes & UNMATCHED:
        return "unmatched"
    if done.returncode == 1 and codes and codes <= DEADLOCK:
        return "deadlock"
    return f"exit status {done.returncode}: {done.stderr}"


class Spin:
    """Runs models, each different one once."""

    def __init__(self, folder):
        self.folder, self.verdicts = folder, {}

    def verdict(self, model):
        text = model.split("\n", 1)[1]  # The first line names the program.
        if text not in self.verdicts:
            with tempfile.TemporaryDirectory(dir=self.folder) as name:
                self.verdicts[text] = self.search(pathlib.Path(name), model)
        return self.verdicts[text]

    @staticmethod
    def search(folder, model):
        (folder / "model.pml").write_text(model)
        for command in (["spin", "-a", "model.pml"], ["tcc", "-w", "-DSAFETY", "-DVECTORSZ=8192", "-o", "pan", "pan.c"],
                        ["./pan", "-w16", "-m100000"]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
            if done.returncode != 0:
                return f"{command[0]}: exit status {done.returncode}: {done.stdout}{done.stderr}"
        out = done.stdout
        errors = re.search(r"errors: (\d+)", out)
        if errors and errors[1] == "0" and "Search not completed" not in out and "depth too small" not in out:
            return "safe"
        witness = re.match(r"pan:1: (invalid end state|assertion violated)", out.lstrip())
        return {"invalid": "deadlock", "asserti": "unmatched"}[witness[1][:7]] if witness else f"pan: {out}"


def agree(checker, spin, ppcc):
    """SPIN stops at whatever it meets first in a program whose messages do not match."""
    if checker == "unmatched":
        return ppcc == "unmatched" and spin in ("unmatched", "deadlock")
    return checker == spin == ppcc


def transports_of(number):
    """All transports, with one of the capacities in turn."""
    capacities = [transport for transport in TRANSPORTS if ":" in transport]
    skipped = {*capacities} - {capacities[number % len(capacities)]}
    return [transport for transport in TRANSPORTS if transport not in skipped]


def kind_of(transport):
    return re.sub(r":\d+", ":k", transport)


def report_scarce(cases, least):
    """How many classes of verdicts have too few programs."""
    scarce = 0
    for transport in TRANSPORTS:
        counts = collections.Counter(by_checker(case.program(), transport) for case in cases)
        if any(counts[kind] < least for kind in KINDS):
            scarce += 1
            print(f"too few of one class under {transport}: {dict(counts)}")
    return scarce


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of ppcc and ppcc-opt")
    parser.add_argument("--shard", default="0/1", help="I/N: one in N of the programs, from the I-th")
    parser.add_argument("--each", type=int, default=2, help="how many programs of each schedule")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scarce", type=int, default=8, help="fail when fewer programs of all shards are of a class")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="searches at a time")
    options = parser.parse_args()
    shard, shards = map(int, options.shard.split("/"))
    ppcc, opt = str(options.bin / "ppcc"), str(options.bin / "ppcc-opt")

    cases = [case for case, _ in small_cases(ppcc, options.each, options.seed)]
    cases += [case for case, _ in transport_cases(HERE.parent / "conformance" / "transport.jsonl", 32)]
    cases += fused_cases(ppcc)
    failed = report_scarce(cases, options.scarce)
    cases = cases[shard::shards]
    tally = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        spin = Spin(folder)

        def judge(numbered):
            number, case = numbered
            path = folder / f"{number}.ir"
            path.write_text(case.ir())
            verdicts = {}
            for transport in transports_of(number):
                model = subprocess.run([opt, path, "--emit=promela", f"--transport={transport}"], capture_output=True,
                                       text=True, check=True, timeout=SECONDS).stdout
                verdicts[transport] = (by_checker(case.program(), transport), spin.verdict(model),
                                       by_ppcc(opt, path, transport))
            return verdicts

        with ThreadPoolExecutor(options.jobs) as pool:
            judged = list(pool.map(judge, enumerate(cases)))
    for case, verdicts in zip(cases, judged):
        for transport, verdict in verdicts.items():
            tally[kind_of(transport), verdict[0]] += 1
            if not agree(*verdict):
                failed += 1
                print(f"{case.name} under {transport}: checker {verdict[0]}, SPIN {verdict[1]}, ppcc {verdict[2]}\n"
                      f"{case.actions()}")
    for transport in dict.fromkeys(map(kind_of, TRANSPORTS)):
        print(f"{transport}: " + ", ".join(f"{kind} {tally[transport, kind]}" for kind in KINDS))
    print(f"{len(cases)} programs, {len(spin.verdicts)} models, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
