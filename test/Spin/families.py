#!/usr/bin/env python3
"""families.py PPCC COUNT: programs of families that are proven for all M, each searched by SPIN on a transport of the proof."""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from run import Spin

NAMES = "gpipe one_f_one_b eager_1f1b zb_h1 zb1p seq1f1b gis chimera dualpipe_v zero_bubble_v interleaved_1f1b".split()
TRANSPORTS = "stream rendezvous buffered buffered:1 buffered:2 stream-per-peer stream-per-edge".split()
ppcc, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(3)


def run(*args):
    return subprocess.run([ppcc, *args], capture_output=True, text=True, check=True, timeout=60).stdout


with tempfile.TemporaryDirectory() as name:
    spin, file, done = Spin(name), Path(name) / "family.json", 0
    while done < count:
        schedule, transport = rng.choice(NAMES), rng.choice(TRANSPORTS)
        text = run(schedule, "-D", f"P={2 if schedule != 'dualpipe_v' else 3}", "--for=M", f"--transport={transport}")
        file.write_text(text, encoding="utf-8")
        endless = [one for one in json.loads(text)["families"] if one["to"] is None and one["verdict"] == "right"]
        family = rng.choice(endless)
        m = family["from"] + rng.randint(0, 2) * family["modulus"]
        model = run(str(file), "-D", f"M={m}", "--emit=promela", f"--transport={transport}")
        verdict = spin.verdict(model)
        assert verdict == "safe", f"{schedule}, M = {m}, on {transport}: {verdict}"
        done += 1
print(f"{done} programs of families, {len(spin.verdicts)} models, all safe")
