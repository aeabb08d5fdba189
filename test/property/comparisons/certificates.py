"""Certificates: each that ppcc writes is accepted; one that is changed by chance is refused, or what it claims of its own rows
holds."""

import json
import re

from comparisons.proofs import TRANSPORTS, formula, numbers, range_of
from generate import for_all
from oracle.check import message_reasons, reasons_of
from oracle.program import KINDS, Costs, Program, Row
from oracle.run import Waits, is_safe, run
from tools import Mismatch, expect

SCARCE = {"certificates": 2, "changed": 1}


def compare(draw, tools, tally):
    case = for_all(draw)
    file, costs = tools.file("random.pp", case.source()), case.arguments(tools.folder)
    transports = draw.pick([["data"], ["stream"], ["stream", "rendezvous"], [draw.pick(TRANSPORTS)]])
    tools.ppcc("prove", file, *costs, f"--transport={','.join(transports)}", "--certificate", "proof.json", "-o", "proof.txt")
    if not (tools.folder / "proof.json").exists():
        tally["none"] += 1
        return
    tally["certificates"] += 1
    text = (tools.folder / "proof.json").read_text()
    good = json.loads(text)
    done = tools.run("ppcc-check-proof", "proof.json")
    expect(done.returncode == 0, "ppcc's own certificate is refused", done.stdout + done.stderr)
    holds(draw, case, good)
    for _ in draw.times(8):
        bad = json.loads(text)
        for _ in range(draw.weighted([(1, 4), (2, 2), (3, 1)])):
            change(draw, bad)
        tools.file("changed.json", json.dumps(bad))
        done = tools.run("ppcc-check-proof", "changed.json")
        tally["changed"] += 1
        if done.returncode == 0 and bad != good:
            if any(bad.get(key) != good[key] for key in ("models", "microbatches")):
                tally["of another model"] += 1
                continue
            tally["changed and accepted"] += 1
            try:
                holds(draw, case, bad)
            except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
                raise Mismatch("a certificate without sense is accepted", f"{type(error).__name__}: {error}") from error


def change(draw, data):
    """Another number, word or list somewhere."""
    holder = data
    while True:
        key = draw.pick(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
        if not isinstance(holder[key], (dict, list)) or not holder[key] or draw.chance(0.06):
            break
        holder = holder[key]
    old = holder[key]
    if isinstance(old, bool) or old is None:
        holder[key] = not old
    elif isinstance(old, int):
        holder[key] = draw.pick([old + 1, old - 1, 0, old * 2, old + draw.int(-9, 9), -old])
    elif isinstance(old, str):
        numbers = list(re.finditer(r"\d+", old))
        if numbers:
            place = draw.pick(numbers)
            holder[key] = old[:place.start()] + str(max(0, int(place[0]) + draw.pick([1, -1, 2]))) + old[place.end():]
        else:
            holder[key] = draw.pick(["right", "wrong", "excluded", "undecided", "data", "stream", "rendezvous", "buffered", ""])
    elif isinstance(old, list) and old:
        at = draw.below(len(old))
        {0: lambda: old.pop(at), 1: lambda: old.insert(at, old[at]),
         2: lambda: old.__setitem__(slice(at, at + 2), old[at:at + 2][::-1])}[draw.below(3)]()
    elif isinstance(holder, dict):
        del holder[key]


# What is claimed of the rows in a certificate.

def holds(draw, case, data):
    """Judges some programs of a certificate, which is accepted, of the model of the schedule."""
    for m in numbers(draw):
        one = range_of(data["ranges"], m)
        if one["verdict"] != "right":
            continue
        shown = one["evidence"]
        expect(shown, "right without evidence is accepted", f"M = {m}")
        n, rest = divmod(m - shown["base"], shown["step"]) if shown["step"] else (0, m - shown["base"])
        expect(rest == 0 and n >= 0, "evidence of other M is accepted", f"M = {m}: {shown['base']} + {shown['step']} n")
        unknown = {*one["transports"]} - {"data", *(order["transport"] for order in shown["orders"])}
        expect(not unknown, "a transport without evidence is accepted", f"M = {m}: {unknown}")
        kinds = [*KINDS.values(), *(case.head.kinds[kind["name"]] for kind in data["models"][shown["model"]].get("declared", []))]
        alone = instance(case, kinds, shown["data"], n)
        reasons = reasons_of(alone, Costs(alone.head))
        expect(not reasons, "wrong rows are accepted", f"M = {m}: {sorted(reasons)}")
        on = [transport for transport in one["transports"] if transport != "data"]
        program = instance(case, kinds, shown["carried"], n) if on else alone
        reasons = message_reasons(program) if on else set()
        expect(not reasons, "wrong messages are accepted", f"M = {m}: {sorted(reasons)}")
        for transport in on:
            expect(is_safe(program, transport), "what hangs is accepted", f"M = {m} on {transport}")
        if one["makespan"]:
            by_data = one["makespan"]["on"] == "data"
            real = max(run(Waits(alone if by_data else program, None if by_data else one["makespan"]["on"], case.costs())).values())
            told, exact = formula(one["makespan"], m), one["makespan"]["exact"]
            expect(told == real if exact else told >= real, "a wrong makespan is accepted",
                   f"M = {m}: {told}, {'exactly' if exact else 'at most'}, oracle {real}")


def instance(case, kinds, template, n):
    """The program of one n."""
    pipes = tuple(pipe._replace(first=first + n * first_n, end=first + n * first_n + count + n * count_n, padded=0)
                  for pipe, (first, first_n, count, count_n) in zip(case.head.pipes, template["microbatches"]))
    items = []
    for rank in template["actions"]:
        rows = []
        at = 0
        while at < len(rank):
            window, stop = rank[at][8], at + 1
            while window >= 0 and stop < len(rank) and rank[stop][8] == window:
                stop += 1
            for turn in range(n + 1 if window >= 0 else 1):
                for kind, pipe, stage, mb, peer, group, per_n, per_turn, _ in rank[at:stop]:
                    number = -1 if kinds[kind].per != "microbatch" else mb + n * per_n + turn * per_turn
                    rows.append(((group, turn), Row(kinds[kind], pipe, stage, number, peer)))
            at = stop
        items.append([])
        for i, (group, row) in enumerate(rows):
            if group[0] >= 0 and i and rows[i - 1][0] == group:
                items[-1][-1] += (row,)
            else:
                items[-1].append((row,))
    return Program(case.head._replace(pipes=pipes), items)
