#!/usr/bin/env python3
"""Decompiles programs, compiles what comes, and compares the actions. Usage: decompiled.py PPCC CONFORMANCE FOLDER"""
import json
import random
import subprocess
import sys
from pathlib import Path

LIBRARY = ["gpipe -D P=3 -D M=4", "looped_bfs -D P=2 -D V=3 -D M=4", "interleaved_1f1b -D P=4 -D M=8", "dualpipe -D P=4 -D M=10",
           "dualpipe_v -D P=4 -D M=9", "zero_bubble_v -D P=3 -D M=7", "zb_h2 -D P=4 -D M=9", "chimera -D P=4 -D M=8",
           "hanayo -D P=4 -D M=8", "seq1f1b -D P=2 -D M=4", "zb1p -D P=3 -D M=6", "zb_h1 -D P=7 -D M=9",
           "interleaved_1f1b -D P=8 -D M=16 -D V=3", "zero_bubble_v -D P=8 -D M=16", "v_half -D P=8 -D M=16", "gis -D P=7 -D M=9",
           "dualpipe_v -D P=8 -D M=16", "one_f_one_b -D P=3 -D M=5 -D forward_only=true",
           "chimera_n -D P=8 -D M=16", "bitpipe -D P=8 -D M=16", "bitpipe -D P=4 -D M=8 -D N=4", "v_min -D P=5 -D M=7",
           "eager_1f1b -D P=4 -D M=8", "slimpipe -D P=4 -D M=8"]


def run(*arguments):
    done = subprocess.run([ppcc, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def round_trips(*given):
    """Whether the compute actions are the same after both ways."""
    run("decompile", *given, "-o", str(folder / "again.pp"))
    actions = "--comm-order=none", "--emit=actions"
    wanted, got = run(*given, *actions), run(str(folder / "again.pp"), *actions)
    assert wanted == got, (given, wanted, got)
    return True


def lists(rows):
    path = folder / "list.actions"
    path.write_text("".join(f"rank {i}: {row}\n" for i, row in enumerate(rows)))
    return str(path)


def shuffled(seed):
    """Two ranks that do their actions in any order that the data allows."""
    pick = random.Random(seed)
    count = pick.randrange(1, 7)
    done, rows = set(), [[], []]
    left = [(s, k, m) for s in (0, 1) for k in "FIW" for m in range(count)]
    needs = {"F": lambda s, m: {(0, "F", m)} if s else set(),
             "I": lambda s, m: {(s, "F", m)} | (set() if s else {(1, "I", m)}), "W": lambda s, m: {(s, "I", m)}}
    while left:
        s, k, m = pick.choice([one for one in left if needs[one[1]](one[0], one[2]) <= done])
        left.remove((s, k, m))
        done.add((s, k, m))
        rows[s].append(f"{s}{k}{m}")
    return [" ".join(row) for row in rows]


ppcc, conformance, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
folder.mkdir(exist_ok=True)
print(f"library: {sum(round_trips(*one.split()) for one in LIBRARY)} of {len(LIBRARY)}")
for system in "pytorch", "d9d", "deepseek", "megatron", "pp":
    cases = [json.loads(line)["compute"] for line in (conformance / f"{system}.jsonl").open()]
    cases = [rows for rows in cases if sum(map(len, rows)) < 20000]
    cases = cases[:: max(1, len(cases) // 6)][:6]
    print(f"{system}: {sum(round_trips(lists(rows)) for rows in cases)} of {len(cases)}")
print(f"random: {sum(round_trips(lists(shuffled(seed))) for seed in range(20))} of 20")
