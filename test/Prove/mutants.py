"""mutants.py PPCC LIBRARY COUNT: verdicts about schedules with one change against runs of single numbers. What fails is kept in
a file of its own. For many, as in docs/every-m.md: mutants.py build/bin/ppcc lib/schedules 10000 --each=20 --seed=2"""
import argparse
import json
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("ppcc")
parser.add_argument("library", type=Path)
parser.add_argument("count", type=int)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--each", type=int, default=3, help="how many numbers of each are looked at")
parser.add_argument("--timeout", type=float, default=120)
options = parser.parse_args()
ppcc, library, count = options.ppcc, options.library, options.count
rng = random.Random(options.seed)
NAMES = "gpipe one_f_one_b one_f_one_b_overlap eager_1f1b zb_h1 zb_h2 zb1p seq1f1b looped_bfs zero_bubble_v dualpipe dualpipe_v chimera hanayo interleaved_1f1b interleaved_1f1b_overlap v_half".split()
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
    return subprocess.run([ppcc, *args], capture_output=True, text=True, timeout=options.timeout)


def disagrees(one, long_way, m):
    """What is wrong with the verdict `one` about the number m."""
    if one["verdict"] == "excluded" or any(code in long_way.stderr for code in ("[E0404]", "[E0480]")):
        return one["verdict"] != "excluded" or long_way.returncode == 0
    if (one["verdict"] == "right") != (long_way.returncode == 0):
        return True
    span = one["makespan"]
    if one["verdict"] != "right" or not span:
        return False
    slope, rest = (eval(span[key]) for key in ("slope", "intercept"))
    real = json.loads(long_way.stdout)["makespan"]
    return abs(m * slope + rest - real) > 1e-9 if span["exact"] else m * slope + rest < real - 1e-9


done = judged = undecided = slow = bad = 0
why = Counter()
for file in library.glob("*.pp"):  # What they import.
    Path(file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
while done < count:
    name = rng.choice(NAMES)
    text = mutant((library / f"{name}.pp").read_text(encoding="utf-8"))
    if text is None:
        continue
    Path("mutant.pp").write_text(text, encoding="utf-8")
    given = [f"-DP={rng.choice([2, 4])}", f"--schedule={name}", f"--transport={rng.choice(['stream', 'rendezvous'])}"]
    try:
        proof = run("prove", "mutant.pp", "--format=json", *given)
    except subprocess.TimeoutExpired:
        done, slow = done + 1, slow + 1
        Path(f"slow-{options.seed}-{done}.pp").write_text(f"// {given}\n{text}", encoding="utf-8")
        print("SLOW", given, flush=True)
        continue
    assert proof.returncode in (0, 1), (text, given, proof.stderr)
    if not proof.stdout:
        continue  # It is no schedule.
    done += 1
    ranges = json.loads(proof.stdout)["ranges"]
    if reasons := [one["reason"] for one in ranges if one["verdict"] == "undecided"]:
        undecided += 1
        why[re.sub(r"`[^`]*`|\d+", "_", re.sub(r"^\S*:\d+:\d+: ", "", reasons[0]))] += 1
        if options.each > 3:
            Path(f"undecided-{options.seed}-{done}.pp").write_text(f"// {given} {reasons[0]}\n{text}", encoding="utf-8")
    for i in range(options.each):
        m = rng.randint(1, [30, 70, 300][i % 3])
        hits = [
            one
            for one in ranges
            if one["from"] <= m and (one["to"] is None or m <= one["to"]) and m % one["modulus"] == one["residue"]
        ]
        assert len(hits) == 1, (m, hits)
        if hits[0]["verdict"] == "undecided":
            continue
        judged += 1
        long_way = run("mutant.pp", f"-DM={m}", "--no-families", "--emit=report-json", *given)
        if disagrees(hits[0], long_way, m):
            bad += 1
            Path(f"bad-{options.seed}-{done}.pp").write_text(f"// {given} M={m} {hits[0]}\n{text}", encoding="utf-8")
            print("BAD", given, m, hits[0], long_way.stderr[:300], flush=True)
    if done % 100 == 0 and options.each > 3:
        print(f"# {done} mutants, {judged} numbers, {undecided} undecided in part, {bad} bad", flush=True)
for reason, times in why.most_common():
    print(f"# {times} {reason}")
assert bad == 0 and slow == 0
print(f"{done} mutants, {judged} numbers agree, {undecided} undecided in part")
