#!/usr/bin/env python3
"""Compares ppcc with a slow, plain oracle, or with itself, on random schedules: fuzz.py BIN [NAME]. Without NAME it lists the
comparisons."""

import argparse
import collections
import importlib
import pathlib
import sys
import time

from draw import Draw, shrink
from tools import Mismatch, Tools

COMPARISONS = {
    "verification": "whether schedules and programs are right, on each transport",
    "spin": "the same of transports, against SPIN, which searches all that can happen",
    "dynamic": "whether ranks that start whatever is ready can hang, against a search of all that can happen",
    "fill": "where the compiler places the W's of `defer W fill`: within limits, caps and lags, in the order as written",
    "times": "when actions start and end, on each transport and by data alone",
    "nodes": "in which order nodes of layers are launched, and what actions take of which they are made",
    "memory": "what ranks hold, from moment to moment",
    "metrics": "every number of reports and of `compare`",
    "proofs": "what `prove` and `explain` say of all M, every formula of it, against single programs",
    "mutants": "the same of schedules of the library with one change, rules and several transports",
    "certificates": "ppcc-check-proof on what `prove` writes, and on what is changed by chance",
    "families": "programs of one for all M, and rolled ones, against flat ones, byte for byte",
    "files": "what is written and read back, in every format",
    "traces": "what `ppcc-profile` makes of traces: costs and models that ppcc reads, or an error",
    "training": "Python's runtime on gloo against autograd without a pipeline (after ./dev interop)",
    "synthesis": "what `synthesize` says of the schedules that it writes, and whether an order is below its bound",
    "optimality": "ppcc-check-proof on what `synthesize` writes, on what is changed by chance, and on arguments drawn by chance",
}


def run_comparison(comparison, tools, draw, tally):
    """The mismatch that the choices lead to, or None."""
    tools.begin()
    for path in tools.folder.iterdir():
        path.unlink()
    try:
        comparison.compare(draw, tools, tally)
    except Mismatch as mismatch:
        return mismatch
    return None


def shrink_mismatch(comparison, tools, mismatch, draw, seconds):
    """The same mismatch from simpler choices."""
    def fails(candidate):
        again = Draw(choices=candidate)
        try:
            other = run_comparison(comparison, tools, again, collections.Counter())
        except (IndexError, ValueError):
            return None  # Choices that no seed makes.
        return again if other and other.title == mismatch.title else None

    best = shrink(draw, fails, seconds)
    return run_comparison(comparison, tools, Draw(choices=best.choices), collections.Counter()) or mismatch


def report(tools, seed, mismatch, keep):
    print(f"--- seed {seed}: {mismatch.title}\n{mismatch.detail.rstrip()}")
    for command in tools.commands:
        print(f"$ {command.replace(str(tools.folder) + '/', '')}")
    for path in sorted(tools.folder.iterdir()):
        if keep:
            folder = keep / f"{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / path.name).write_bytes(path.read_bytes())
        if path.suffix != ".json" or path.stat().st_size < 500:
            print(f"{path.name}:\n{path.read_text()}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of ppcc and its tools")
    parser.add_argument("name", nargs="?", help="the comparison")
    parser.add_argument("--seconds", type=float, help="how long")
    parser.add_argument("--count", type=int, help="how many seeds instead")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--shrink", type=float, default=30, help="seconds for making each mismatch smaller")
    parser.add_argument("--max-mismatches", type=int, default=5, help="stop after so many different mismatches")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the files of mismatches")
    options = parser.parse_args()
    if not options.name:
        for name, what in COMPARISONS.items():
            print(f"  {name:14} {what}")
        return 0
    if options.name not in COMPARISONS:
        parser.error(f"no comparison is called {options.name}: {', '.join(COMPARISONS)}")

    comparison = importlib.import_module(f"comparisons.{options.name}")
    tools, tally, mismatches = Tools(options.bin), collections.Counter(), collections.Counter()
    begin, seed = time.monotonic(), options.seed
    while len(mismatches) < options.max_mismatches:
        if options.count is None and time.monotonic() - begin >= (options.seconds or 10):
            break
        if options.count is not None and seed == options.seed + options.count:
            break
        draw = Draw(seed)
        mismatch = run_comparison(comparison, tools, draw, tally)
        if mismatch:
            mismatches[mismatch.title] += 1
            if mismatches[mismatch.title] == 1:
                report(tools, seed, shrink_mismatch(comparison, tools, mismatch, draw, options.shrink), options.keep)
        seed += 1
    seconds = time.monotonic() - begin
    print(", ".join(f"{name} {count}" for name, count in sorted(tally.items())))
    uncovered = [name for name, one in comparison.COVERAGE.items() if tally[name] * one < seed - options.seed]
    if uncovered:
        print(f"too few of: {', '.join(uncovered)}")
    print(f"{options.name}: {seed - options.seed} seeds in {seconds:.1f} s, {mismatches.total()} mismatches" +
          "".join(f"; {count} of: {title}" for title, count in mismatches.items()))
    return 1 if mismatches or uncovered else 0


if __name__ == "__main__":
    sys.exit(main())
