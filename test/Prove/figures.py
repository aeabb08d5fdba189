"""figures.py PPCC CHECKER [--count N] [--seed S] [--each K]: all that `prove` and `explain` say of random schedules, for random numbers of
microbatches, against the run of each by the ordinary way; and what the checker says of the certificates. What differs is kept
in a file of its own."""
import argparse
import json
import random
import subprocess
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import parametric

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("ppcc")
parser.add_argument("checker")
parser.add_argument("--count", type=int, default=40)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--each", type=int, default=5, help="how many numbers of each are looked at")
parser.add_argument("--most", type=int, default=120, help="the largest number, but for one in ten of five times as much")
parser.add_argument("--timeout", type=float, default=60)
options = parser.parse_args()
EXCLUDED = ("[E0404]", "[E0480]")


def run(*args):
    return subprocess.run([options.ppcc, *args], capture_output=True, text=True, timeout=options.timeout)


def exact(value):
    return Fraction(str(value))


def figures(report, given, byData):
    """Those of one run, by the names of `ppcc explain`."""
    ranks = report["ranks"]
    makespan = exact(report["bound" if byData else "makespan"])
    result = {
        "makespan": makespan,
        "work": sum(exact(rank["busy"]) for rank in ranks),
        "activations": max(rank["peak_activations"] for rank in ranks),
        "memory": max(exact(rank["peak_memory"]) for rank in ranks),
        "messages": report["messages"],
    }
    result["bubble"] = len(ranks) * makespan - result["work"]
    for cost in given:
        if cost.startswith("--cost=bytes="):
            result["bytes"] = exact(cost.rsplit("=", 1)[1]) * report["messages"]
    return result


def value(formula, m):
    return Fraction(formula["slope"]) * m + Fraction(formula["intercept"])


rng = random.Random(options.seed)
told = Counter()
bad = judged = schedules = refused = 0
began = time.time()
for file in parametric.LIBRARY.glob("*.pp"):  # What they import.
    Path(file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")


def report_bad(what, given, text):
    global bad
    bad += 1
    if bad > 30:
        return
    Path(f"bad-{options.seed}-{schedules}.pp").write_text(f"// {' '.join(given)}\n// {what}\n{text}", encoding="utf-8")
    print("BAD", f"bad-{options.seed}-{schedules}.pp", what, flush=True)


while schedules < options.count:
    text, given = parametric.schedule(rng)
    numbers = [rng.randint(1, options.most * (5 if rng.random() < 0.1 else 1)) for _ in range(options.each)]
    Path("schedule.pp").write_text(text, encoding="utf-8")
    explained = run("explain", "schedule.pp", "--format=json", *given)
    proven = run("prove", "schedule.pp", "--format=json", "--certificate=c.json", *given)
    if not explained.stdout or not proven.stdout:
        refused += 1
        if bool(explained.stdout) != bool(proven.stdout):
            report_bad(f"{explained.stderr} {proven.stderr}", given, text)
        continue
    schedules += 1
    checked = subprocess.run([options.checker, "c.json"], capture_output=True, text=True, timeout=options.timeout)
    if checked.returncode != 0:
        report_bad(f"{checked.stdout} {checked.stderr}", given, text)
    claims = [one["verdict"] for one in json.loads(Path("c.json").read_text(encoding="utf-8"))["ranges"]]
    told["right ranges in certificates"] += claims.count("right")
    byData = any(option.startswith("--transport=") and "data" in option for option in given)  # It goes first.
    for m in sorted(numbers):
        sides = []
        for proof in (explained, proven):
            (one,) = [
                one
                for one in json.loads(proof.stdout)["ranges"]
                if one["from"] <= m <= (one["to"] or m) and m % one["modulus"] == one["residue"]
            ]
            sides.append(one)
        one, other = sides
        if one["verdict"] == "undecided":
            told["undecided"] += 1
            continue
        on = [option for option in given if option != "--transport=data"]
        if on != given:  # Nothing is said of messages.
            on = [option for option in on if not option.startswith(("--comm-order", "--fuse"))]
        on = [option.replace("data,", "").replace(",data", "") for option in on]
        instance = run("schedule.pp", f"-DM={m}", "--no-families", "--emit=report-json", *on)
        excluded = any(code in instance.stderr for code in EXCLUDED)
        verdict = "right" if instance.returncode == 0 else "excluded" if excluded else "wrong"
        judged += 1
        for side in sides:
            if side["verdict"] not in (verdict, "undecided"):
                report_bad(f"M={m}: {side['verdict']}, is {verdict} {instance.stderr[:300]}", given, text)
                break
        else:
            if verdict != "right":
                continue
            real = figures(json.loads(instance.stdout), given, byData)
            if byData and "--with=release" in given:
                del real["makespan"], real["bubble"]  # A release follows messages.
            for name in real:
                for side in sides:
                    formula = side.get(name)
                    if not formula:
                        continue
                    said = value(formula, m)
                    told[name if formula["exact"] else f"{name} (bound)"] += 1
                    if abs(said - real[name]) > Fraction(1, 10**6) if formula["exact"] else said < real[name] - Fraction(1, 10**6):
                        report_bad(f"M={m}: {name} {said}, is {real[name]}: {side}", given, text)
    if options.count > 200 and schedules % 100 == 0:
        print(f"# {schedules} schedules, {judged} numbers, {bad} bad, {time.time() - began:.0f} s", flush=True)
print("#", ", ".join(f"{name} {count}" for name, count in sorted(told.items())), f"; {refused} refused")
assert bad == 0
print(f"{schedules} schedules, {judged} numbers and {sum(told.values())} figures agree")
