"""Changes numbers of a certificate, one at a time; each that says something must be missed.

tamper.py CHECKER CERTIFICATE COUNT
"""
import copy
import json
import random
import subprocess
import sys

checker, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
good = json.load(open(path, encoding="utf-8"))


def check(certificate):
    text = json.dumps(certificate)
    done = subprocess.run([checker, "-"], input=text, capture_output=True, text=True)
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    return done.returncode == 0


def leaves(value, place=()):
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*place, key))
    else:
        yield place


def kind(place):
    """What a leaf is: its last name, or its column."""
    names = [key for key in place if isinstance(key, str)]
    return f"{names[-1]}{place[-1]}" if names[-1] in ("actions", "circle") else names[-1]


def changed(place, random):
    result = copy.deepcopy(good)
    inner = result
    for key in place[:-1]:
        inner = inner[key]
    old = inner[place[-1]]
    if isinstance(old, bool):
        inner[place[-1]] = not old
    elif isinstance(old, int):
        inner[place[-1]] = old + random.choice([-1, 1])
    elif old is None:
        inner[place[-1]] = 12345
    elif place[-1] in ("slope", "intercept"):
        inner[place[-1]] = old + "1"
    elif place[-1] == "verdict":
        inner[place[-1]] = random.choice([v for v in ("right", "wrong", "excluded", "undecided") if v != old])
    elif place[-1] == "head":
        inner[place[-1]] = old[: len(old) // 2]
    elif place[-1] == "transport":
        inner[place[-1]] = "data" if old != "data" else "stream"
    else:
        inner[place[-1]] = old + "x"
    return result


# Names; places in the source; and numbers that may be others: what shows a claim need not be the only thing that does.
FREE = {"schedule", "params", "P", "for", "reason", "order", "times", "durations", "actions5", "actions6", "actions7"}
FREE |= {"circle3", "circle4"}  # Some turns later it may be a circle as well.
assert check(good), "the certificate is good"
rng = random.Random(1)
places = {}
for place in leaves(good):
    places.setdefault(kind(place), []).append(place)
tried = refused = 0
for name, some in sorted(places.items()):
    for place in rng.sample(some, min(len(some), count)):
        tried += 1
        if not check(changed(place, rng)):
            refused += 1
        elif name == "exact" and not changed(place, rng)["ranges"][place[1]]["makespan"]["exact"]:
            pass  # A bound is less than what is shown.
        elif "data" in place and good["ranges"][place[1]]["verdict"] == "wrong":
            pass  # The row is on no circle.
        elif name == "verdict" and good["ranges"][place[1]]["evidence"] is None:
            pass  # What the source alone says.
        elif name == "actions10":
            pass  # A window by another name, or with one turn.
        else:
            assert name in FREE, (name, place)
# An order that says nothing.
for number, claim in enumerate(good["ranges"]):
    evidence = claim["evidence"] or {}
    for i, shown in enumerate(evidence.get("orders", [])):
        flat = copy.deepcopy(good)
        flat["ranges"][number]["evidence"]["orders"][i]["order"] = [[0] * len(row) for row in shown["order"]]
        assert claim["verdict"] == "wrong" or not check(flat), (number, i)
    if claim["verdict"] == "wrong":
        continue
    # Nor is a row left out.
    for name in ("data", "carried"):
        if name in evidence:
            fewer = copy.deepcopy(good)
            fewer["ranges"][number]["evidence"][name]["actions"][0].pop()
            assert not check(fewer), (number, name)
print(f"{refused} of {tried} changes refused")
