"""tamper.py PPCC CHECKER [--each=N] [--seed=S] SCHEDULE-AND-OPTIONS...: changes each field of certificates, one at a time. Each
change is refused, or all that is then said to be shown is true of the schedule: instances are run. --each bounds how many
fields of one name, or column, are changed; 0 for all. Leaves certificate.json."""
import argparse
import copy
import json
import random
import re
import shlex
import subprocess
from collections import Counter
from fractions import Fraction

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("ppcc")
parser.add_argument("checker")
parser.add_argument("schedules", nargs="+")
parser.add_argument("--each", type=int, default=0)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
rng = random.Random(options.seed)
RANGE = re.compile(r"(\d+)(?:, (\d+),)?( \.\.(?: (\d+))?)? (right|wrong|excluded|undecided)(.*)")


def run(*args, **more):
    done = subprocess.run(args, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode in (0, 1), (args, done.returncode, done.stderr)
    return done


def instance(schedule, m, transport, known={}):
    """Whether it is right, and its makespan."""
    key = schedule, m, transport
    if key not in known:
        words = [word for word in shlex.split(schedule) if not word.startswith("--transport")]
        on = [] if transport == "data" else [f"--transport={transport}"]
        done = run(options.ppcc, *words, f"-DM={m}", "--no-families", "--emit=report-json", *on)
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        span = report.get("bound" if transport == "data" else "makespan")
        known[key] = done.returncode == 0, None if span is None else Fraction(str(span))
    return known[key]


def lie(schedule, text):
    """What of the output of the checker is not true of the schedule, if anything is."""
    for line in text.splitlines():
        if line.startswith(("given: ", "given (", "shown:")):
            continue
        first, second, many, last, verdict, rest = RANGE.fullmatch(line).groups()
        if rest == ": not checked":
            continue
        first, step = int(first), int(second) - int(first) if second else 1
        last = int(last) if last else first + 41 * step if many else first
        numbers = range(first, last + 1, step)
        on = re.match(r" on ([^;(]*)", rest)
        transports = on[1].strip().split(", ") if on else ["stream"]
        span = re.search(r"; makespan (at most )?(.*?) on ([a-z:0-9-]+)", rest)
        for m in sorted({*rng.sample(numbers, min(2, len(numbers))), numbers[0], numbers[-1]}):
            for transport in transports:
                if instance(schedule, m, transport)[0] != (verdict == "right"):
                    return m, line
            if span:
                slope, intercept = re.fullmatch(r"(?:([\d/]*) ?M)?(?:(?: \+ )?(-? ?[\d/]+))?", span[2].replace(" - ", " + -")).groups()
                said = (Fraction(slope or 1) * m if "M" in span[2] else 0) + Fraction((intercept or "0").replace(" ", ""))
                real = instance(schedule, m, span[3])[1]
                if said < real if span[1] else said != real:
                    return m, line, said, real
    return None


def leaves(value, place=()):
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*place, key))
    if place:
        yield place


def name(place):
    """Of all that are alike: the last key, and the column behind it."""
    keys = [key for key in place if isinstance(key, str)]
    width = {"actions": 9, "order": 6, "times": 6, "circle": 1}.get(keys[-1], 1)
    return ".".join(keys[-2:]) + (f"[{place[-1] % width}]" if isinstance(place[-1], int) else "")


def changed(value):
    """Something else in the place of a value; None to take it out."""
    if isinstance(value, bool):
        return rng.choice([not value, None])
    if isinstance(value, int):
        return rng.choice([value - 1, value + 1, value + 2, -value - 1, 0 if value else 3, 2**31, 2**62, -(2**63), "1"])
    if isinstance(value, str):
        words = ["right", "wrong", "data", "stream", "rendezvous", "foo", "F", "B", "2", "-1", "1/3", "", value + "1", value + "0"]
        return rng.choice([word for word in words if word != value])
    return rng.choice([None, [], {}, 1, value[:-1] if isinstance(value, list) else []])


def mutant(good, place):
    result = copy.deepcopy(good)
    inner = result
    for key in place[:-1]:
        inner = inner[key]
    to = changed(inner[place[-1]])
    if to is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = to
    return result, to


def givens(text):
    return [line for line in text.splitlines() if line.startswith("given")]


tried = refused = others = 0
seen = Counter()
for schedule in options.schedules:
    run(options.ppcc, "prove", *shlex.split(schedule), "--certificate", "certificate.json")
    good = json.load(open("certificate.json", encoding="utf-8"))
    done = run(options.checker, "certificate.json")
    assert done.returncode == 0, (schedule, done.stdout)
    assert not lie(schedule, done.stdout), (schedule, lie(schedule, done.stdout))
    given = givens(done.stdout)
    places = {}
    for place in leaves(good):
        places.setdefault(name(place), []).append(place)
    for alike in places.values():
        for place in rng.sample(alike, min(len(alike), options.each or len(alike))):
            forged, to = mutant(good, place)
            if forged == good:
                continue
            tried += 1
            done = run(options.checker, "-", input=json.dumps(forged))
            if done.returncode == 1:
                refused += 1
            elif givens(done.stdout) != given:
                others += 1  # It says so: it is of another model.
            else:
                wrong = lie(schedule, done.stdout)
                assert not wrong, (schedule, place, to, wrong)
                seen[name(place)] += 1
print("# accepted, and true:", ", ".join(f"{key} {count}" for key, count in sorted(seen.items())))
print(f"{len(options.schedules)} certificates, {tried} changes: {refused} refused, {others} of another model, {tried - refused - others} say what is true")
