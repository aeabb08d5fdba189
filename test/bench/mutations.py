#!/usr/bin/env python3
"""Damages one send or receive at a time in programs of the schedule library, in every way of a list, and counts what ppcc
says: found, or harmless, as a slow checker that shares no code with ppcc confirms by playing the program. A damage that
ppcc accepts and the checker does not is missed: there must be none.

Usage: mutations.py BIN [--every=N]"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Spin"))
from checker import TRANSPORTS, Cell, is_safe, unmatched  # noqa: E402
from programs import SMALL, Case, compile_case, messages  # noqa: E402

JUDGED = [transport for transport in TRANSPORTS if transport != "buffered:2"]
PASSES = f"verify,verify-matching,verify-transport{{transport={'+'.join(JUDGED)}}}"
NAMED = re.compile(r"error: under `([^`]+)`")
VERDICTS = ["found", "harmless", "missed", "needless"]


def copies(ranks):
    return [list(rank) for rank in ranks]


def edited(ranks, place, *cells):
    """With these cells instead of the one at `place`."""
    r, i = place
    ranks = copies(ranks)
    ranks[r][i:i + 1] = [(cell,) for cell in cells]
    return ranks


def shifted(ranks, place, to):
    r, i = place
    ranks = copies(ranks)
    ranks[r].insert(to, ranks[r].pop(i))
    return ranks


def drop(ranks, place):
    yield edited(ranks, place)


def double(ranks, place):
    r, i = place
    cell = ranks[r][i][0]
    yield edited(ranks, place, cell, cell)
    ranks = copies(ranks)
    ranks[r].append((cell,))
    yield ranks


def rename(ranks, place):
    r, i = place
    cell = ranks[r][i][0]
    turned = {"SEND": "RECV", "RECV": "SEND"}[cell.kind[:4]] + cell.kind[4:]
    other = cell.kind[:5] + {"F": "B", "B": "F"}[cell.kind[5]]
    for changed in (cell._replace(mb=cell.mb + 1), cell._replace(mb=max(cell.mb - 1, 0)),
                    cell._replace(stage=cell.stage + 1), cell._replace(kind=turned), cell._replace(kind=other),
                    Cell(cell.stage, other, cell.mb, cell.peer)._replace(kind=turned[:5] + other[5])):
        if changed != cell:
            yield edited(ranks, place, changed)


def misplace(ranks, place):
    """Everywhere else on its rank, and at the end of the next rank."""
    r, i = place
    for to in range(len(ranks[r])):
        if to != i:
            yield shifted(ranks, place, to)
    moved = edited(ranks, place)
    moved[(r + 1) % len(ranks)].append(ranks[r][i])
    yield moved


def swap(ranks, place):
    """With the next message of its rank."""
    r, i = place
    later = [j for q, j in messages(ranks) if q == r and j > i]
    if later:
        swapped = copies(ranks)
        swapped[r][i], swapped[r][later[0]] = swapped[r][later[0]], swapped[r][i]
        yield swapped


DAMAGES = [drop, double, rename, misplace, swap]


def refused_by_ppcc(opt, case):
    """The transports under which ppcc refuses the program."""
    done = subprocess.run([opt, "-", f"--passes={PASSES}", "--no-print", "--max-errors=1000"], input=case.ir(),
                          capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr}\n{case.ir()}")
    named = set(NAMED.findall(done.stderr))
    return set(JUDGED) if done.returncode == 1 and not named else named


def refused_by_checker(case):
    program = case.program()
    if unmatched(program):
        return set(JUDGED)
    return {transport for transport in JUDGED if not is_safe(program, transport)}


def judge(opt, case):
    """A verdict for each transport."""
    ppcc = refused_by_ppcc(opt, case)
    checker = refused_by_checker(case)
    names = {(True, True): "found", (False, False): "harmless", (False, True): "missed", (True, False): "needless"}
    return {transport: names[transport in ppcc, transport in checker] for transport in JUDGED}


def damaged(ppcc, every):
    """Pairs of the damage's name and the program."""
    number = 0
    for schedule, params in SMALL:
        for order in ("sweep", "ready-time"):
            base = compile_case(ppcc, schedule, params, [f"--comm-order={order}"])
            for place in messages(base.ranks):
                for damage in DAMAGES:
                    for ranks in damage(base.ranks, place):
                        number += 1
                        if number % every == 0:
                            yield damage.__name__, Case(f"{base.name}-{order}-{damage.__name__}", base.head, ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of ppcc and ppcc-opt")
    parser.add_argument("--every", type=int, default=1, help="judge only each N-th")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    opt = str(options.bin / "ppcc-opt")

    tally, missed, programs = collections.Counter(), 0, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        pairs = list(damaged(str(options.bin / "ppcc"), options.every))
        for (damage, case), verdicts in zip(pairs, pool.map(lambda pair: judge(opt, pair[1]), pairs)):
            programs += 1
            tally.update((damage, transport, verdict) for transport, verdict in verdicts.items())
            wrong = [transport for transport, verdict in verdicts.items() if verdict == "missed"]
            if wrong:
                missed += 1
                print(f"{case.name}: missed under {', '.join(wrong)}\n{case.actions()}")

    print("found: both refuse it; harmless: both accept it; needless: only ppcc refuses it; missed: only ppcc accepts it")
    print(f"{'damage':10}{'transport':18}" + "".join(f"{verdict:>10}" for verdict in VERDICTS))
    for damage in DAMAGES:
        for transport in JUDGED:
            counts = [tally[damage.__name__, transport, verdict] for verdict in VERDICTS]
            print(f"{damage.__name__:10}{transport:18}" + "".join(f"{count:10}" for count in counts))
    print(f"{programs} programs, {missed} missed")
    unseen = [damage.__name__ for damage in DAMAGES if not tally[damage.__name__, "stream", "found"]]
    if unseen:
        print(f"no damage was found of: {', '.join(unseen)}")
    return 1 if missed or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
