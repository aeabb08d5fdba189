"""mutants.py PPCC LIBRARY COUNT [SEED]: verdicts about schedules with one change against runs of single numbers."""
import json
import random
import re
import subprocess
import sys
from pathlib import Path

ppcc, library, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
NAMES = "gpipe one_f_one_b zb_h1 zb_h2 zb1p seq1f1b looped_bfs zero_bubble_v dualpipe dualpipe_v chimera hanayo interleaved_1f1b".split()
ACTION = r"\b(?:F|B|I|W)(?:\([^;(){}]*(?:\([^()]*\)[^;(){}]*)*\))?;"
CONDITIONS = ["M % 3 == 1", "M == 57", "M > 40", "r == 1 and M % 5 == 2", "M < 30", "r == 0", "M % 4 == 0 and r > 0"]


def other(action):
    return {"F": "B", "B": rng.choice("FI"), "I": "B", "W": "F"}[action[0]] + action[1:]


CHANGES = [
    (r"(?<![\w.])\d+(?![\w.])", lambda text: str(max(0, int(text) + rng.choice([-1, 1])))),
    (r" [+-] ", lambda text: " - " if text == " + " else " + "),
    (ACTION, lambda text: ""),
    (ACTION, lambda text: text + " " + text),
    (ACTION, other),
    (r" (?:<|>|<=|>=|==) ", lambda text: f" {rng.choice(['<', '<=', '>', '>=', '==', '!='])} "),
    (r"\bM\b", lambda text: rng.choice(["(M - 1)", "(M + 1)", "(M / 2)", "max(M - 3, 1)"])),
    (ACTION, lambda text: f"if {rng.choice(CONDITIONS)} {{ {text} }}"),
]


def mutant(text):
    begin = text.find("on rank")
    pattern, change = rng.choice(CHANGES)
    places = list(re.finditer(pattern, text[begin:]))
    if not places:
        return None
    place = rng.choice(places)
    return text[: begin + place.start()] + change(place.group()) + text[begin + place.end() :]


def run(*args):
    return subprocess.run([ppcc, *args], capture_output=True, text=True, timeout=120)


done = judged = undecided = 0
while done < count:
    name = rng.choice(NAMES)
    text = mutant((library / f"{name}.pp").read_text(encoding="utf-8"))
    if text is None:
        continue
    for file in library.glob("*.pp"):  # What it imports.
        if not Path(file.name).exists():
            Path(file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    Path("mutant.pp").write_text(text, encoding="utf-8")
    options = [f"-DP={rng.choice([2, 4])}", f"--schedule={name}", f"--transport={rng.choice(['stream', 'rendezvous'])}"]
    proof = run("prove", "mutant.pp", "--format=json", *options)
    assert proof.returncode in (0, 1), proof.stderr
    if not proof.stdout:
        continue  # It is no schedule.
    done += 1
    ranges = json.loads(proof.stdout)["ranges"]
    undecided += any(one["verdict"] == "undecided" for one in ranges)
    for m in [rng.randint(1, 30), rng.randint(1, 70), rng.randint(70, 300)]:
        hits = [
            one
            for one in ranges
            if one["from"] <= m and (one["to"] is None or m <= one["to"]) and m % one["modulus"] == one["residue"]
        ]
        assert len(hits) == 1, (m, hits)
        one = hits[0]
        long_way = run("mutant.pp", f"-DM={m}", "--no-families", "--emit=report-json", *options)
        if one["verdict"] == "undecided" or any(code in long_way.stderr for code in ("[E0404]", "[E0480]")):
            continue
        judged += 1
        assert (one["verdict"] == "right") == (long_way.returncode == 0), (text, options, m, one, long_way.stderr)
        span = one["makespan"]
        if one["verdict"] == "right" and span and span["exact"]:
            slope, rest = (eval(span[key]) for key in ("slope", "intercept"))
            assert abs(m * slope + rest - json.loads(long_way.stdout)["makespan"]) < 1e-9, (text, options, m)
print(f"{done} mutants, {judged} numbers agree, {undecided} undecided in part")
