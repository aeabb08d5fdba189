"""Every formula of `ppcc explain` against single programs."""

import json
from fractions import Fraction

from comparisons.proofs import TRANSPORTS, formula, instance_rows, numbers, range_of
from generate import for_all
from oracle.check import messages_of
from oracle.figures import Memory, rates, spans
from oracle.run import times_of
from tools import expect

SCARCE = {"instances": 1}


def compare(draw, tools, tally):
    case = for_all(draw)
    transport = draw.pick(TRANSPORTS)
    file, costs = tools.file("random.pp", case.source()), case.arguments(tools.folder)
    done = tools.ppcc("explain", file, *costs, f"--transport={transport}", "--format=json")
    if not done.stdout:
        tally["not explained"] += 1
        return
    ranges = json.loads(done.stdout)["ranges"]
    for m in numbers(draw):
        one = range_of(ranges, m)
        if one["verdict"] != "right":
            continue
        rows = instance_rows(tools, file, costs, transport, m)
        if rows is None:
            continue  # `proofs` looks into that.
        tally["instances"] += 1
        times = times_of(rows, None if transport == "data" else transport, case.costs())
        real = figures(rows, times, case.costs())
        for name, value in real.items():
            if one.get(name) is None:
                tally[f"no {name}"] += 1
                continue
            tally[name] += 1
            told, exact = formula(one[name], m), one[name]["exact"]
            expect(abs(told - value) <= Fraction(1, 10**6) if exact else told >= value, f"another formula of {name}",
                   f"M = {m}: ppcc {float(told)}, {'exactly' if exact else 'at most'}, oracle {float(value)}")


def figures(rows, times, costs):
    makespan = rates(rows, times, costs)[0]
    work = sum(busy for _, _, busy in spans(rows, times, costs))
    memory = Memory(rows, times, costs)
    ranks = range(rows.head.ranks)
    sends = messages_of(rows.head)
    size = sum(costs.size(*send[1:]) for send in sends)
    return {"makespan": makespan, "work": work, "bubble": makespan * len(ranks) - work, "messages": len(sends), "bytes": size,
            "activations": max(memory.peak_activations(rank) for rank in ranks), "memory": max(memory.peak(rank)[0] for rank in ranks)}
