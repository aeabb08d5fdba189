#!/usr/bin/env python3
"""Writes programs of every schedule of the library into a folder: library.py PPCC FOLDER [P...] [OPTION...]. With each P come
several numbers of microbatches: the smallest that the schedule allows, and larger ones."""
import subprocess
import sys
from pathlib import Path


def microbatches(name, P):
    if name.startswith("dualpipe"):
        return [2 * P, 2 * P + 2, 4 * P]
    if name == "chimera":
        return [P, 2 * P, 3 * P]
    return [1, P, 2 * P + 1]


def main():
    ppcc, folder = sys.argv[1], Path(sys.argv[2])
    options = [word for word in sys.argv[3:] if word.startswith("-")]
    ranks = [int(word) for word in sys.argv[3:] if word not in options] or [2, 4, 8]
    folder.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run([ppcc, "--list-schedules"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    for name in names:
        for P in ranks:
            refused = []
            for M in microbatches(name, P):
                out = folder / f"{name}-{P}-{M}.json"
                command = [ppcc, name, "-D", f"P={P}", "-D", f"M={M}", "-o", out, *options]
                done = subprocess.run(command, capture_output=True)
                refused += [M] if done.returncode else []
            assert not refused, f"{name} with P={P} is refused with M in {refused}"
    print(f"{len(names)} schedules")


main()
