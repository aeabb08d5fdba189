"""Certificates of `synthesize`: each is accepted; what ppcc-check-proof accepts, after changes and with arguments drawn by chance, too, is
true. A search of all orders says so, which lets the microbatches of an action overtake each other where there are few."""

import collections
import copy
import json
import math
import re
from fractions import Fraction

from comparisons.certificates import mutate_json, name, places
from comparisons.synthesis import Problem
from tools import diagnostic_codes, expect, expect_equal

COVERAGE = {"certificates": 3, "by load": 10, "by cases": 10, "changed": 0.5, "changed, accepted": 10, "drawn models": 4, "drawn, true and accepted": 1,
            "drawn, false": 0.5}
MAX_NODES = 6000  # Partial orders that one search looks at.
MAX_FREE_RUNS = 8  # Of so many runs, those of an action may have any order.


class Small(Problem):
    def __init__(self, draw):
        self.draw, self.for_all, self.small, self.options, self.share = draw, False, True, ["--effort=1"], 2
        self.draw_small()
        self.add(f"-DM={self.microbatches}", f"-DP={self.ranks}", "--certificate=proof.json")


def compare(draw, tools, tally):
    if draw.chance(0.5):
        return attack_drawn(draw, tools, tally)
    done = Small(draw).run(tools)
    if done.returncode:
        codes = set(diagnostic_codes(done))
        tally["refused: " + ", ".join(sorted(codes))] += 1
        return expect({"E1102"}.issuperset(codes) or "nothing takes time" in done.stderr, "no certificate", done.stderr)
    found = json.loads(done.stdout, parse_float=Fraction)
    good = json.loads((tools.folder / "proof.json").read_text())
    tally["certificates"] += 1
    tally["by load" if "begin" in good["proof"] else "by cases"] += 1
    printed = check(tools, good)
    expect(printed, "ppcc's own certificate is refused")
    unit = Fraction(good["time_unit"])
    expect_equal(math.ceil(Fraction(found["bound"]) / unit), good["bound"], "a certificate of another bound")
    expect(good["makespan"] * unit <= found["makespan"], "a certificate of a longer makespan")
    expect(not found["optimal"] or "is optimal" in printed, "an optimum is not shown")
    expect_equal(good["makespan"], makespan(good), "the order takes another time")
    expect_true(tally, good)
    change(draw, tools, tally, good)


def check(tools, certificate):
    """What the checker prints, if it accepts."""
    tools.file("checked.json", json.dumps(certificate))
    done = tools.run("ppcc-check-proof", "checked.json")
    expect((done.returncode == 0) == bool(done.stdout), "an answer without sense", done.stdout + done.stderr)
    if done.stdout:
        shown = re.search(r"^makespan (\d+)[^:]*: .*\nbound (\d+)", done.stdout, re.M)
        expect_equal([int(number) for number in shown.groups()], [certificate["makespan"], certificate["bound"]], "other claims are printed")
    return done.stdout


def change(draw, tools, tally, good):
    """Changes fields of a certificate, and some together."""
    alike = collections.defaultdict(list)
    for place in places(good):
        alike[name(good, place)].append(place)
    for several in [1] * 8 + [2, 3]:
        bad = copy.deepcopy(good)
        for _ in range(several):
            mutate_json(draw, bad, draw.pick(alike[draw.pick(sorted(alike))]))
        tally["changed"] += bad != good
        if bad != good and check(tools, bad):
            tally["changed, accepted"] += 1
            expect_equal(bad["makespan"], makespan(bad), "a wrong makespan is accepted")
            expect_true(tally, bad)
            if all(bad[key] == good[key] for key in ("limits", "actions")):
                expect(bad["bound"] <= good["makespan"] and bad["makespan"] >= good["bound"], "a bound above an order is accepted")


def expect_true(tally, certificate):
    order = order_within(certificate, certificate["bound"] - 1)
    expect(not order, "a bound above the optimum is accepted", f"bound {certificate['bound']}, {order}")
    tally["search given up" if order is None else "bounds true"] += 1


# What a certificate says, read another way.

def makespan(certificate):
    """That of the order, which is checked."""
    actions, done, ends = certificate["actions"], collections.Counter(), {}
    starts = {}
    for rank, row in enumerate(certificate["order"]):
        free, held, limit = 0, 0, certificate["limits"][rank]
        for i, begin in zip(row[::2], row[1::2]):
            held += actions[i]["takes"]
            expect(actions[i]["rank"] == rank and begin >= free and (limit is None or held <= limit), "a wrong order is accepted")
            held -= actions[i]["frees"]
            free = ends[i, done[i]] = begin + actions[i]["time"]
            starts[i, done[i]] = begin
            done[i] += 1
    for i, action in enumerate(actions):
        expect_equal(done[i], action["count"], "an order without all runs is accepted")
        for (source, latency), m in ((wait, m) for wait in action["waits"] for m in range(done[i])):
            expect(starts[i, m] >= ends[source, m] + latency, "a wrong order is accepted")
    return max(ends.values(), default=0)


def order_within(model, end):
    """An order that ends by then, as in a certificate; False for none; None when there are too many to look at. Runs are taken by
    their starts, each as early as it can."""
    actions, limits = model["actions"], model["limits"]
    runs = [(i, m) for i, action in enumerate(actions) for m in range(action["count"])]
    in_order, ends, order, nodes, seen = len(runs) > MAX_FREE_RUNS, {}, [], 0, set()
    tails = [action["time"] for action in actions]
    for i, action in reversed(list(enumerate(actions))):
        for source, latency in action["waits"]:
            tails[source] = max(tails[source], actions[source]["time"] + latency + tails[i])

    def branch(now, free, held):
        nonlocal nodes
        nodes += 1
        if nodes > MAX_NODES:
            return None
        if len(ends) == len(runs):
            return [[number for i, begin in order if actions[i]["rank"] == rank for number in (i, begin)] for rank in range(len(limits))]
        state = (now, free, tuple(sorted(ends.items())), held)
        if state in seen:
            return False
        seen.add(state)
        given_up = False
        for i, m in runs:
            action = actions[i]
            rank, limit = action["rank"], limits[action["rank"]]
            if (i, m) in ends or (in_order and m and (i, m - 1) not in ends) or any((source, m) not in ends for source, _ in action["waits"]):
                continue
            begin = max([free[rank], *(ends[source, m] + latency for source, latency in action["waits"])])
            if begin < now or begin + tails[i] > end or (limit is not None and held[rank] + action["takes"] > limit):
                continue
            ends[i, m] = begin + action["time"]
            order.append((i, begin))
            found = branch(begin, (*free[:rank], ends[i, m], *free[rank + 1:]),
                           (*held[:rank], held[rank] + action["takes"] - action["frees"], *held[rank + 1:]))
            order.pop()
            del ends[i, m]
            if found:
                return found
            given_up |= found is None
        return None if given_up else False

    return branch(0, (0,) * len(limits), (0,) * len(limits))


# Models and arguments drawn by chance.

def draw_model(draw):
    ranks, count = draw.integer(1, 2), draw.pick([1, 2, 2, 3])
    actions, kept = [], draw.chance(0.7)
    for i in range(draw.integer(2, 5)):
        waits = [[source, draw.pick([0, 0, 1, 2])] for source in range(i) if draw.chance(0.5)]
        takes, frees = (draw.integer(0, 2), draw.integer(0, 2)) if kept else (0, 0)
        actions.append({"name": "x", "rank": draw.below(ranks), "count": count, "time": draw.integer(0, 4), "takes": takes, "frees": frees,
                        "waits": waits})
    return {"format": "ppcc.optimality", "version": 1, "time_unit": "1", "memory_unit": "1",
            "limits": [draw.pick([None, 1, 2, 3, 4]) for _ in range(ranks)], "actions": actions}


def related(actions, chosen, forward):
    """These actions with all that wait for them, or all that they wait for."""
    result = set(chosen)
    for i in range(len(actions)) if forward else reversed(range(len(actions))):
        for source, _ in actions[i]["waits"]:
            if (source if forward else i) in result:
                result.add(i if forward else source)
    return result


def draw_proof(draw, model, most):
    actions = model["actions"]
    if draw.chance(0.5):
        cases = []

        def grow(depth):
            cases.append([])
            if depth < 3 and draw.chance(0.5):
                i = draw.below(len(actions))
                cases[-1] += [i, draw.below(actions[i]["count"]), draw.integer(0, most), draw.below(2)]
                grow(depth + 1)
                grow(depth + 1)

        grow(0)
        return {"ranks": [rank for rank in range(len(model["limits"])) if draw.chance(0.8)], "cases": cases}
    rank = draw.below(len(model["limits"]))
    own = [i for i, action in enumerate(actions) if action["rank"] == rank]
    begin, end = (draw.subset(own, 0.4) if draw.chance(0.6) else [] for _ in range(2))
    chains = []
    for i in own if end else []:
        if i in related(actions, end, False):
            continue
        before = [chain for chain in chains if any(source == chain[-1] for source, _ in actions[i]["waits"])]
        if before and draw.chance(0.7):
            draw.pick(before).append(i)
        else:
            chains.append([i])
    return {"rank": rank, "begin": begin, "end": end, "chains": chains}


def attack_drawn(draw, tools, tally):
    """Arguments for the optimum, which may be accepted, and for more, which may not."""
    model = draw_model(draw)
    optimum = max(sum(action["time"] * action["count"] for action in model["actions"] if action["rank"] == rank)
                  for rank in range(len(model["limits"])))
    while (order := order_within(model, optimum)) is False and optimum < 60:
        optimum += 1
    if not order:
        tally["drawn models without an order, or with too many"] += 1
        return
    tally["drawn models"] += 1
    for _ in range(8):
        proof = draw_proof(draw, model, optimum)
        for bound in (optimum, optimum + 1):
            is_accepted = bool(check(tools, {**model, "order": order, "makespan": optimum, "bound": bound, "proof": proof}))
            tally[f"drawn, {'true' if bound == optimum else 'false'}{' and accepted' if is_accepted else ''}"] += 1
            expect(bound == optimum or not is_accepted, "a bound above the optimum is accepted", f"optimum {optimum}: {proof}")
