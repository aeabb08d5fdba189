#!/usr/bin/env python3
"""Damages one send or receive at a time in programs of the schedule library, in every way of a list, and counts what ppcc
says: found, or harmless, as the oracle of test/property confirms, which shares no code with ppcc. A damage that only
one of them accepts must not be.

Usage: mutations.py BIN [--every=N]"""

import argparse
import collections
import json
import pathlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "property"))
import library  # noqa: E402
from oracle.check import message_violations  # noqa: E402
from oracle.program import KINDS, Program, text  # noqa: E402
from oracle.run import TRANSPORTS, is_deadlock_free  # noqa: E402
from program_json import to_json  # noqa: E402
from tools import Tools  # noqa: E402

TRANSPORTS_CHECKED = [transport for transport in TRANSPORTS if transport != "buffered:2"]
NAMED = re.compile(r"error: deadlock under `([^`]+)`")
OUTCOMES = ["found", "harmless", "missed", "needless"]


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
    row = ranks[r][i][0]
    turned = KINDS[{"SEND": "RECV", "RECV": "SEND"}[row.kind.mnemonic[:4]] + row.kind.mnemonic[4:]]
    other = KINDS[row.kind.mnemonic[:5] + {"F": "B", "B": "F"}[row.kind.mnemonic[5]]]
    both = KINDS[turned.mnemonic[:5] + other.mnemonic[5]]
    for changed in (row._replace(mb=row.mb + 1), row._replace(mb=max(row.mb - 1, 0)), row._replace(stage=row.stage + 1),
                    row._replace(kind=turned), row._replace(kind=other), row._replace(kind=both)):
        if changed != row:
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


MUTATIONS = [drop, double, rename, misplace, swap]


def messages(ranks):
    return [(r, i) for r, rank in enumerate(ranks) for i, item in enumerate(rank) if item[0].kind.is_message]


def rejected_by_ppcc(tools, base, program):
    """The transports under which ppcc refuses the program."""
    own = Tools(tools.bin)
    own.file("damaged.json", json.dumps(to_json(program, base)))
    done = own.ppcc("check", "damaged.json", f"--transport={','.join(TRANSPORTS_CHECKED)}", "--max-errors=1000")
    named = set(NAMED.findall(done.stderr))
    return set(TRANSPORTS_CHECKED) if done.returncode == 1 and not named else named


def rejected_by_oracle(program):
    head = program.head
    for rank in program.rows:
        for row in rank:
            if row.kind.is_message and not (row.mb < head.pipes[row.pipe].end and row.stage < len(head.pipes[row.pipe].ranks)):
                return set(TRANSPORTS_CHECKED)
    if message_violations(program):
        return set(TRANSPORTS_CHECKED)
    return {transport for transport in TRANSPORTS_CHECKED if not is_deadlock_free(program, transport)}


def compare(tools, base, program):
    """A verdict for each transport."""
    ppcc, oracle = rejected_by_ppcc(tools, base, program), rejected_by_oracle(program)
    names = {(True, True): "found", (False, False): "harmless", (False, True): "missed", (True, False): "needless"}
    return {transport: names[transport in ppcc, transport in oracle] for transport in TRANSPORTS_CHECKED}


def mutants(tools, every):
    """The damage's name, that of the program, the JSON of what was damaged, and the program."""
    number = 0
    for schedule, params in library.SMALL:
        for order in ("sweep", "ready-time"):
            name, base, whole = library.compile_schedule(tools, schedule, params, [f"--comm-order={order}"])
            for place in messages(whole.items):
                for damage in MUTATIONS:
                    for ranks in damage(whole.items, place):
                        number += 1
                        if number % every == 0:
                            yield damage.__name__, f"{name}-{damage.__name__}", base, Program(whole.head, ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of ppcc")
    parser.add_argument("--every", type=int, default=1, help="judge only each N-th")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    tools = Tools(options.bin)

    tally, missed, programs = collections.Counter(), 0, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        cases = list(mutants(tools, options.every))
        for (damage, name, _, program), verdicts in zip(cases, pool.map(lambda case: compare(tools, *case[2:]), cases)):
            programs += 1
            tally.update((damage, transport, verdict) for transport, verdict in verdicts.items())
            wrong = [transport for transport, verdict in verdicts.items() if verdict in ("missed", "needless")]
            if wrong:
                missed += 1
                print(f"{name}: {', '.join(f'{verdicts[transport]} under {transport}' for transport in wrong)}\n{text(program)}")

    print("found: both refuse it; harmless: both accept it; needless: only ppcc refuses it; missed: only ppcc accepts it")
    print(f"{'damage':10}{'transport':18}" + "".join(f"{verdict:>10}" for verdict in OUTCOMES))
    for damage in MUTATIONS:
        for transport in TRANSPORTS_CHECKED:
            counts = [tally[damage.__name__, transport, verdict] for verdict in OUTCOMES]
            print(f"{damage.__name__:10}{transport:18}" + "".join(f"{count:10}" for count in counts))
    print(f"{programs} programs, {missed} missed or needless")
    unseen = [damage.__name__ for damage in MUTATIONS if not tally[damage.__name__, "stream", "found"]]
    if unseen:
        print(f"no damage was found of: {', '.join(unseen)}")
    return 1 if missed or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
