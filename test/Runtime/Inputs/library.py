#!/usr/bin/env python3
"""Writes programs of every schedule of the library into a folder: library.py PPCC FOLDER [P...] [-NAME...] [--OPTION...].
-NAME leaves a schedule out. With each P come
several numbers of microbatches: the smallest that the schedule allows, and larger ones. With --emit=cpp there is a file
all.cpp beside them that holds them all, and symbols.txt with the names in it."""
import subprocess
import sys
from pathlib import Path


def microbatches(name, P):
    if name.startswith("dualpipe"):
        return [2 * P, 2 * P + 2, 4 * P]
    if name in ("chimera", "chimera_n", "bitpipe"):
        return [P, 2 * P, 3 * P]
    return [1, P, 2 * P + 1]


def symbol_of(path):
    return path.stem.replace("-", "_")


def takes_ranks(ppcc, name):
    """Whether the schedule is for any number of ranks."""
    listed = subprocess.run([ppcc, name, "--list-params"], capture_output=True, text=True, check=True).stdout
    return any(line.startswith("P:") for line in listed.splitlines())


def write_all(folder):
    """One file compiles faster than many."""
    paths = sorted(folder.glob("*.cpp"))
    texts = [f'#define ppcc_data data_{symbol_of(path)}\n#include "{path.name}"\n#undef ppcc_data\n' for path in paths]
    (folder / "all.cpp").write_text("".join(texts))
    library = (folder / "all.so").resolve()
    (folder / "symbols.txt").write_text("".join(f"{library}:{symbol_of(path)}\n" for path in paths))


def main():
    ppcc, folder = sys.argv[1], Path(sys.argv[2])
    options = [word for word in sys.argv[3:] if word.startswith("--")]
    without = [word[1:] for word in sys.argv[3:] if word.startswith("-") and word not in options]
    ranks = [int(word) for word in sys.argv[3:] if word.isdigit()] or [2, 4, 8]
    folder.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run([ppcc, "--list-schedules"], capture_output=True, text=True, check=True).stdout
    is_cpp = "--emit=cpp" in options
    names = [line.split()[0] for line in listed.splitlines() if line.split()[0] not in without and takes_ranks(ppcc, line.split()[0])]
    for name in names:
        for P in ranks:
            refused = []
            for M in microbatches(name, P):
                out = folder / f"{name}-{P}-{M}{'.cpp' if is_cpp else '.json'}"
                command = [ppcc, name, "-D", f"P={P}", "-D", f"M={M}", "-o", out, *options]
                command += [f"--cpp-symbol={symbol_of(out)}"] if is_cpp else []
                done = subprocess.run(command, capture_output=True)
                refused += [M] if done.returncode else []
            assert not refused, f"{name} with P={P} is refused with M in {refused}"
    if is_cpp:
        write_all(folder)
    print(f"{len(names)} schedules")


main()
