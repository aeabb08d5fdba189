"""Certificates: each that ppcc writes is accepted; one that is changed is refused, or what is then said to be shown is true of the
schedule, and of the rows in it. Any schedule: certificates.py BIN EACH "SCHEDULE OPTION..." ..., with so many changes of each field."""

import collections
import json
import re
import shlex
import sys
from fractions import Fraction

from comparisons.proofs import TRANSPORTS, formula, numbers, parsed, range_of
from draw import Draw
from generate import for_all
from oracle.check import message_violations, violations
from oracle.program import KINDS, Costs, Program, Row
from oracle.run import EventGraph, is_deadlock_free, run
from tools import Mismatch, Tools, expect, expect_equal

COVERAGE = {"certificates": 2, "changed": 0.1}
RANGE = re.compile(r"(\d+)(?:, (\d+),)?( \.\.(?: (\d+))?)? (valid|invalid|excluded|undecided)(.*)")


def compare(draw, tools, tally):
    case = for_all(draw)
    given = [tools.file("random.pp", case.source()), *case.arguments(tools.folder)]
    transports = draw.pick([["data"], ["stream"], ["stream", "rendezvous"], [draw.pick(TRANSPORTS)]])
    attack(draw, tools, tally, given, ",".join(transports), 0, case)


def attack(draw, tools, tally, given, transports, each, case=None):
    """Changes fields of a schedule's certificate, and some together; `each` is how many of one name, or column, or 0 for a few in all."""
    tools.ppcc("prove", *given, f"--transport={transports}", "--certificate", "proof.json", "-o", "proof.txt")
    if not (tools.folder / "proof.json").exists():
        tally["none"] += 1
        return
    tally["certificates"] += 1
    text = (tools.folder / "proof.json").read_text()
    good, claims = json.loads(text), Claims(draw, tools, given)
    done = tools.run("ppcc-check-proof", "proof.json")
    expect(done.returncode == 0, "ppcc's own certificate is refused", done.stdout + done.stderr)
    claims.check(done.stdout)
    model = [line for line in done.stdout.splitlines() if line.startswith("given")]
    if case:
        check_claims(case, good, numbers(draw))
    alike = collections.defaultdict(list)
    for place in places(good):
        alike[name(good, place)].append(place)
    changes = [[draw.pick(alike[key])] for key in sorted(alike) for _ in range(min(each, len(alike[key])))]
    changes += [[draw.pick(alike[draw.pick(sorted(alike))])] for _ in draw.spans_of(0 if each else 8)]
    for _ in draw.spans_of(4):
        changes.append([draw.pick(alike[draw.pick(sorted(alike))]) for _ in range(draw.integer(2, 3))])
    for changed in changes:
        bad = json.loads(text)
        for place in changed:
            mutate_json(draw, bad, place)
        if bad == good:
            continue
        tools.file("changed.json", json.dumps(bad))
        done = tools.run("ppcc-check-proof", "changed.json")
        tally["changed"] += 1
        if done.returncode:
            tally["refused"] += 1
        elif [line for line in done.stdout.splitlines() if line.startswith("given")] != model:
            tally["of another model"] += 1  # It says so.
        else:
            tally["accepted, and true"] += 1
            if not case or rows(bad) == rows(good):
                claims.check(done.stdout)
            try:
                if case:
                    check_claims(case, bad, touched(draw, bad, good))
            except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
                raise Mismatch("a certificate without sense is accepted", f"{type(error).__name__}: {error}") from error


# Changes.

def places(value, place=()):
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*place, key)
            yield from places(inner, (*place, key))


def at(data, place):
    for key in place:
        data = data[key]
    return data


def name(data, place):
    """Of all that are alike: the last keys, how deep a list lies behind them, and the column in a row."""
    keys = [key for key in place if isinstance(key, str)]
    width = {"actions": 9, "order": 6, "times": 6, "circle": 5}.get(keys[-1], 1)
    leaf = isinstance(place[-1], int) and not isinstance(at(data, place), (dict, list))
    return f"{'.'.join(keys[-2:])}{'[]' * (len(place) - len(keys))}{place[-1] % width if leaf else ''}"


def mutate_json(draw, data, place):
    """Another number, word or list there, or nothing."""
    try:
        holder = at(data, place[:-1])
        old = holder[place[-1]]
    except (KeyError, IndexError, TypeError):
        return  # What was changed before has taken it away.
    if isinstance(old, bool) or old is None:
        new = draw.pick([not old, None])
    elif isinstance(old, int):
        new = draw.pick([old + 1, old - 1, old + 2, -old, -old - 1, old * 2, old + draw.integer(-9, 9), 0 if old else 3, 2**31, 2**62, -(2**63), "1"])
    elif isinstance(old, str):
        digits = list(re.finditer(r"\d+", old))
        words = ["valid", "invalid", "excluded", "undecided", "data", "stream", "rendezvous", "buffered", "foo", "F", "B", "2", "-1", "1/3", "",
                 old + "1", old + "0"]
        if digits and draw.chance(0.5):
            digit = draw.pick(digits)
            words = [old[:digit.start()] + str(max(0, int(digit[0]) + by)) + old[digit.end():] for by in (1, -1, 2)]
        new = draw.pick([word for word in words if word != old])
    elif isinstance(old, list) and old and draw.chance(0.7):
        new, i = list(old), draw.below(len(old))
        new[i:i + 2] = draw.pick([[*old[i + 1:i + 2]], [old[i], *old[i:i + 2]], old[i:i + 2][::-1]])
    else:
        new = draw.pick([None, [], {}, 1])
    if new is None and not (old is None or draw.chance(0.3)):
        del holder[place[-1]]
    else:
        holder[place[-1]] = new


def touched(draw, bad, good):
    """Some M of each range of which something else is claimed, or shown."""
    def without_reason(ranges):
        return [{key: value for key, value in one.items() if key != "reason"} for one in ranges]

    before = without_reason(good["ranges"])
    return sorted({one["from"] + one["modulus"] * n for one in without_reason(bad["ranges"]) if one not in before
                   for n in (0, draw.integer(1, 3)) if one["to"] is None or one["from"] + one["modulus"] * n <= one["to"]})


def rows(data):
    """What is claimed of a schedule is true of its own rows alone."""
    try:
        return [[one["evidence"].get("data"), one["evidence"].get("with_messages")] for one in data["ranges"] if one.get("evidence")]
    except (KeyError, TypeError, AttributeError):
        return None


# What the checker says, of the schedule.

class Claims:
    """Instances of a schedule, which what the checker prints is held against."""

    def __init__(self, draw, tools, given):
        self.draw, self.tools, self.given, self.known = draw, tools, given, {}

    def instance(self, m, transport):
        """Whether it is right, and its makespan."""
        if (m, transport) not in self.known:
            on = ["--comm-order=none"] if transport == "data" else [f"--transport={transport}"]
            done = self.tools.ppcc(*self.given, f"-DM={m}", "--no-families", "--emit=report-json", *on)
            report = json.loads(done.stdout, parse_float=Fraction) if done.returncode == 0 else {}
            span = report.get("bound" if transport == "data" else "makespan")
            self.known[m, transport] = done.returncode == 0, span
        return self.known[m, transport]

    def check(self, text):
        for line in text.splitlines():
            if line.startswith(("given: ", "given (", "shown:")):
                continue
            first, second, many, last, verdict, rest = RANGE.fullmatch(line).groups()
            if rest == ": not checked":
                continue
            first, step = int(first), int(second) - int(first) if second else 1
            last = int(last) if last else first + 41 * step if many else first
            ms = range(first, last + 1, step)
            on = re.match(r" on ([^;(]*)", rest)
            span = re.search(r"; makespan (at most )?(.*?) on ([a-z:0-9-]+)", rest)
            for m in sorted({self.draw.pick(ms), self.draw.pick(ms), ms[0], ms[-1]}):
                for transport in on[1].strip().split(", ") if on else ["stream"]:
                    expect_equal(verdict == "valid", self.instance(m, transport)[0], "a wrong verdict is accepted")
                if span:
                    reported, real = parsed(span[2], m), self.instance(m, span[3])[1]
                    expect(reported >= real if span[1] else reported == real, "a wrong makespan is accepted", f"M = {m}: {line}, is {real}")


# What is claimed of the rows in a certificate.

def check_claims(case, data, ms):
    """Judges some programs of a certificate, which is accepted, of the model of the schedule."""
    for m in ms:
        one = range_of(data["ranges"], m)
        shown = one["evidence"]
        if one["verdict"] != "valid" and not (one["verdict"] == "invalid" and shown):
            continue
        expect(shown, "right without evidence is accepted", f"M = {m}")
        n, rest = divmod(m - shown["base"], shown["step"]) if shown["step"] else (0, m - shown["base"])
        expect(rest == 0 and n >= 0, "evidence of other M is accepted", f"M = {m}: {shown['base']} + {shown['step']} n")
        unknown = {*one["transports"]} - {"data", *(order["transport"] for order in shown["orders"])}
        expect(not unknown, "a transport without evidence is accepted", f"M = {m}: {unknown}")
        kinds = [*KINDS.values(), *(case.head.kinds[kind["name"]] for kind in data["models"][shown["model"]].get("declared", []))]
        alone = instance(case, kinds, shown["data"], n)
        reasons = violations(alone, Costs(alone.head))
        if one["verdict"] == "invalid":
            expect(reasons, "right rows are accepted as wrong", f"M = {m}")
            continue
        expect(not reasons, "wrong rows are accepted", f"M = {m}: {sorted(reasons)}")
        on = [transport for transport in one["transports"] if transport != "data"]
        by_data = not one["makespan"] or one["makespan"]["on"] == "data"
        program = instance(case, kinds, shown["with_messages"], n) if on or not by_data else alone
        reasons = message_violations(program) if program is not alone else set()
        expect(not reasons, "wrong messages are accepted", f"M = {m}: {sorted(reasons)}")
        for transport in on:
            expect(is_deadlock_free(program, transport), "what hangs is accepted", f"M = {m} on {transport}")
        if one["makespan"]:
            real = max(run(EventGraph(alone if by_data else program, None if by_data else one["makespan"]["on"], case.costs())).values())
            reported, exact = formula(one["makespan"], m), one["makespan"]["exact"]
            expect(reported == real if exact else reported >= real, "a wrong makespan is accepted",
                   f"M = {m}: {reported}, {'exactly' if exact else 'at most'}, oracle {real}")


def instance(case, kinds, template, n):
    """The program of one n."""
    pipes = tuple(pipe._replace(first=first + n * first_n, end=first + n * first_n + count + n * count_n, padded=0)
                  for pipe, (first, first_n, count, count_n) in zip(case.head.pipes, template["microbatches"]))
    items = []
    for rank in template["actions"]:
        rows = []
        at = 0
        while at < len(rank):
            loop, stop = rank[at][8], at + 1
            while loop >= 0 and stop < len(rank) and rank[stop][8] == loop:
                stop += 1
            for iteration in range(n + 1 if loop >= 0 else 1):
                for kind, pipe, stage, mb, peer, group, per_n, per_iteration, _ in rank[at:stop]:
                    number = -1 if kinds[kind].per != "microbatch" else mb + n * per_n + iteration * per_iteration
                    rows.append(((group, iteration), Row(kinds[kind], pipe, stage, number, peer)))
            at = stop
        items.append([])
        for i, (group, row) in enumerate(rows):
            if group[0] >= 0 and i and rows[i - 1][0] == group:
                items[-1][-1] += (row,)
            else:
                items[-1].append((row,))
    return Program(case.head._replace(pipes=pipes), items)


def main():
    tools, tally = Tools(sys.argv[1]), collections.Counter()
    for schedule in sys.argv[3:]:
        words = shlex.split(schedule)
        transports = [word.split("=")[1] for word in words if word.startswith("--transport=")] or ["stream"]
        given = [word for word in words if not word.startswith("--transport=")]
        try:
            attack(Draw(1), tools, tally, given, transports[0], int(sys.argv[2]))
        except Mismatch as mismatch:
            sys.exit(f"{schedule}: {mismatch.title}\n{mismatch.detail}")
    print(f"{tally['certificates']} certificates, {tally['changed']} changes: {tally['refused']} refused, {tally['of another model']} of another "
          f"model, {tally['accepted, and true']} say what is true")


if __name__ == "__main__":
    main()
