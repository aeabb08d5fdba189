#!/usr/bin/env python3
"""families.py PPCC COUNT: programs of families that are proven for all M, each searched by SPIN on a transport of the proof. At 2
to 4 ranks they are the first of families without an end; at more, of few microbatches. As in docs/every-m.md:
    families.py build/bin/ppcc 100 --ranks=2,3,4,4,8"""
import argparse
import collections
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "property"))
from program_json import from_json  # noqa: E402
from spin_model import Model, search  # noqa: E402

NAMES = "gpipe one_f_one_b eager_1f1b zb_h1 zb1p seq1f1b gis chimera dualpipe_v zero_bubble_v interleaved_1f1b".split()
TRANSPORTS = "stream rendezvous buffered buffered:1 buffered:2 stream-per-peer stream-per-edge".split()
parser = argparse.ArgumentParser()
parser.add_argument("ppcc")
parser.add_argument("count", type=int)
parser.add_argument("--ranks", default="2,3", help="drawn from these")
options = parser.parse_args()
rng = random.Random(3)
ranks, drawn = options.ranks.split(","), collections.Counter()


def run(*args):
    return subprocess.run([options.ppcc, *args], capture_output=True, text=True, timeout=60)


with tempfile.TemporaryDirectory() as name:
    verdicts, file = {}, Path(name) / "family.json"  # By model.
    while drawn.total() < options.count:
        schedule, transport, p = rng.choice(NAMES), rng.choice(TRANSPORTS), rng.choice(ranks)
        if transport == "stream-per-edge":  # What can happen there grows with the power of the edges.
            p = ranks[0]
        families = run(schedule, "-D", f"P={p}", "--for=M", f"--transport={transport}")
        if families.returncode != 0:
            assert "E1203" in families.stderr or "E0415" in families.stderr, families.stderr
            continue  # Not of so many ranks, or not decided.
        file.write_text(families.stdout, encoding="utf-8")
        right = [one for one in json.loads(families.stdout)["families"] if one["verdict"] == "valid"]
        if int(p) <= 4:
            family = rng.choice([one for one in right if one["to"] is None])
            m = family["from"] + rng.randint(0, 2) * family["modulus"]
        else:
            m = rng.choice([one["from"] for one in right][:2])
            if m > 4:
                continue
        program = from_json(json.loads(run(str(file), "-D", f"M={m}", f"--transport={transport}").stdout))
        model = Model(program, transport).text()
        if model not in verdicts:
            verdicts[model] = search(Path(name), model)
        assert verdicts[model] == "safe", f"{schedule}, P = {p}, M = {m}, on {transport}: {verdicts[model]}"
        drawn[p] += 1
counts = ", ".join(f"{drawn[p]} of {p} ranks" for p in sorted(drawn))
print(f"{drawn.total()} programs of families, {counts}, {len(verdicts)} models, all safe")
