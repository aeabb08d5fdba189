"""Certificates: each that ppcc writes is accepted; one that is changed by chance is refused, or what it claims of its own rows
holds."""

import json
import re
from fractions import Fraction

from comparisons.proofs import TRANSPORTS, formula, numbers, range_of
from generate import for_all
from oracle.check import message_reasons, reasons_of
from oracle.program import KINDS, Costs, Program, Row
from oracle.run import TRANSPORTS as KNOWN
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

class Given(Costs):
    """What rows take as the certificate says."""

    def __init__(self, head, program, durations):
        super().__init__(head)
        self.rows, self.ways = {}, {}
        for key, duration in zip(program.keys, durations):
            row, value = program.row(key), Fraction(duration, 10**9)
            if row.kind.is_message:
                self.ways[program.label(key)[1:]] = value
            else:
                self.rows[row] = value

    def time(self, row):
        return self.rows[row]

    def together(self, rows):
        return self.rows[rows[0]]

    def way(self, pipe, source, reader, mb):
        return self.ways.get((pipe, source, reader, mb), 0)


def holds(draw, case, data):
    """Judges some programs of a certificate, which is accepted."""
    for transport in data["transports"]:
        expect(transport in KNOWN or transport == "data" or re.fullmatch(r"buffered:[1-9]\d*", transport),
               "a certificate for an unknown transport is accepted", transport)
    for m in numbers(draw):
        one = range_of(data["ranges"], m)
        if one["verdict"] != "right":
            continue
        shown = one["evidence"]
        expect(shown, "right without evidence is accepted", f"M = {m}")
        n, rest = divmod(m - shown["base"], shown["step"]) if shown["step"] else (0, m - shown["base"])
        expect(rest == 0 and n >= 0, "evidence of other M is accepted", f"M = {m}: {shown['base']} + {shown['step']} n")
        alone = instance(case, shown, shown["data"], n)[0]
        reasons = reasons_of(alone, Costs(alone.head))
        expect(not reasons, "wrong rows are accepted", f"M = {m}: {sorted(reasons)}")
        shown_on = [order["transport"] for order in shown["orders"]]
        on = [transport for transport in data["transports"] if transport in KNOWN and transport in shown_on]
        if not shown.get("carried") or not on and not one["makespan"]:
            continue
        program, durations = instance(case, shown, shown["carried"], n)
        reasons = message_reasons(program) if on else set()
        expect(not reasons, "wrong messages are accepted", f"M = {m}: {sorted(reasons)}")
        for transport in on:
            expect(is_safe(program, transport), "what hangs is accepted", f"M = {m} on {transport}")
        if one["makespan"] and durations and data["transports"][0] in (*on, "data"):
            transport = data["transports"][0]
            costs = Given(program.head, program, durations)
            waits = Waits(program, None if transport == "data" else transport, costs)
            real = max(run(waits).values())
            told, exact = formula(one["makespan"], m), one["makespan"]["exact"]
            expect(told == real if exact else told >= real, "a wrong makespan is accepted",
                   f"M = {m}: {told}, {'exactly' if exact else 'at most'}, oracle {real}")


def instance(case, shown, template, n):
    """The program of one n, and what its rows take."""
    declared = re.findall(r"^  action (\w+)", shown["head"], re.M)
    kinds = [*KINDS.values(), *(case.head.kinds[letters] for letters in declared)]
    pipes = tuple(pipe._replace(first=first + n * first_n, end=first + n * first_n + count + n * count_n, padded=0)
                  for pipe, (first, first_n, count, count_n) in zip(case.head.pipes, template["microbatches"]))
    head = case.head._replace(pipes=pipes)
    items, taken = [], []
    given = shown.get("durations") or [[0] * len(rank) for rank in template["actions"]]
    for rank, times in zip(template["actions"], given):
        rows = []
        at = 0
        while at < len(rank):
            window, stop = rank[at][10], at + 1
            while window >= 0 and stop < len(rank) and rank[stop][10] == window:
                stop += 1
            for turn in range(n + 1 if window >= 0 else 1):
                for i in range(at, stop):
                    kind, pipe, stage, mb, peer, _, group, _, per_n, per_turn, _ = rank[i]
                    number = -1 if kinds[kind].per != "microbatch" else mb + n * per_n + turn * per_turn
                    rows.append(((group, turn), Row(kinds[kind], pipe, stage, number, peer)))
                    taken.append(times[i] if i < len(times) else 0)
            at = stop
        items.append([])
        for i, (group, row) in enumerate(rows):
            if group[0] >= 0 and i and rows[i - 1][0] == group:
                items[-1][-1] += (row,)
            else:
                items[-1].append((row,))
    return Program(head, items), taken if shown.get("durations") else None
