"""Rolls mutated programs of the library, and reads and writes them in all formats that have loops: rolled.py FOLDER COUNT.

Leaves the programs there as JSON and in one file all.cpp, and the names to run them by in programs.txt."""
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

ITEM = re.compile(r'phase "[^"]*"|\([^)]*\)|[^\s()]+')
FUSIONS = ["none", "batch", "megatron", "megatron-even-odd"]


def run(*command, check=True):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode in ([0] if check else [0, 1]), (command, done.returncode, done.stderr)
    return done


def swap(items, at, _):
    items[at], items[at + 1] = items[at + 1], items[at]


def join(items, at, end):
    """Joins pairs from `at` to `end`."""
    for i in range(at, min(end, len(items) - 1)):
        if i + 1 < len(items) and not any(item.startswith("phase") for item in items[i:i + 2]):
            items[i:i + 2] = [f'({"; ".join(item.strip("()") for item in items[i:i + 2])})']


def split(items, at, end):
    """Takes the groups from `at` to `end` apart."""
    items[at:end] = [part for item in items[at:end] for part in (item.strip("()").split("; ") if item[0] == "(" else [item])]


def mutated(text, rng):
    head, *ranks = re.split(r"^rank \d+ ", re.sub(r"^  (proven|preconnect) .*\n", "", text, flags=re.M), flags=re.M)
    rows = [ITEM.findall(rank.strip()[1:-1]) for rank in ranks]
    for _ in range(rng.randint(1, 3)):
        items = rng.choice([items for items in rows if len(items) > 1])
        at = rng.randrange(len(items) - 1)
        rng.choice([swap, join, join, split])(items, at, at + rng.choice([1, 1, 4, 9]))
    return head + "".join(f"rank {rank} {{\n{' '.join(items)}\n}}\n" for rank, items in enumerate(rows))


def write_mutant(folder, number, case):
    """A program that is right, though in another order and other groups than its schedule's."""
    schedule, P, fusion = case
    rng = random.Random(f"{number} {case}")
    path = folder / f"p{number}.ir"
    text = run("ppcc", schedule, "-D", f"P={P}", "-D", f"M={P * rng.randint(2, 5)}", f"--fuse={fusion}", "--emit=ir",
               check=False).stdout
    for _ in range(12 if text else 0):
        path.write_text(mutated(text, rng))
        if run("ppcc", "--check", path, check=False).returncode == 0:
            return path
    return None


def roll(path):
    """Whether the program has loops, and whether there are groups in them."""
    flat, rolled, there, json = (path.with_suffix(f".{name}") for name in ("flat.ir", "rolled.ir", "there.json", "json"))
    run("ppcc", path, "--passes=unroll", "--emit=ir", "-o", flat)
    run("ppcc", path, "--passes=roll", "--verify-each", "--emit=ir", "-o", rolled)
    assert run("ppcc", rolled, "--passes=unroll", "--emit=ir").stdout == flat.read_text(), f"{path} differs when written out"
    run("ppcc", path, "--rolled", "-o", json)
    run("ppcc", "--check", json)
    run("ppcc", path, "-o", there)
    assert run("ppcc", json).stdout == there.read_text(), f"{path} differs when read from JSON"
    run("ppcc", path, "--rolled", "--emit=cpp", f"--cpp-symbol={path.stem}", "-o", path.with_suffix(".cpp"))
    loops = re.findall(r"loop \d+ [^{]*\{[^}]*\}", rolled.read_text())
    return bool(loops), any("(" in loop for loop in loops)


def main():
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    names = [line.split()[0] for line in run("ppcc", "--list-schedules").stdout.splitlines()]
    schedules = [name for name in names if "P:" in run("ppcc", name, "--list-params").stdout.split()]
    cases = list(product(schedules, (2, 4), FUSIONS))
    random.Random(1).shuffle(cases)
    with ThreadPoolExecutor() as pool:
        paths = list(pool.map(lambda case: write_mutant(folder, *case), enumerate(cases + cases)))
        paths = [path for path in paths if path][:count]
        loops = list(pool.map(roll, paths))
    assert len(paths) == count, f"{len(paths)} mutants are right"
    (folder / "all.cpp").write_text("".join(
        f'#define ppcc_data data_{path.stem}\n#include "{path.stem}.cpp"\n#undef ppcc_data\n' for path in paths))
    library = (folder / "all.so").resolve()
    (folder / "programs.txt").write_text("".join(
        f"{path.with_suffix('.json')}\n{library}:{path.stem}\n" for path in paths))
    print(f"{count} programs, {sum(has for has, _ in loops)} with loops, {sum(has for _, has in loops)} with groups in them")


main()
