"""What `prove` and `explain` say of all M against single programs, run by the oracle: verdicts, and every formula."""

import json
import re
from fractions import Fraction

from generate import for_all
from oracle.check import messages_of, violations
from oracle.expand import value_of
from oracle.metrics import MemoryCurve, rates, spans
from oracle.run import row_times
from program_json import from_json
from tools import diagnostic_codes, expect, expect_equal

COVERAGE = {"valid": 2, "invalid": 8, "makespan": 2, "memory": 2, "idle": 2, "activations": 2, "messages": 2, "held": 400}
TRANSPORTS = ["data", "data", "stream", "rendezvous", "buffered", "buffered:2", "posted", "stream-per-peer", "stream-per-edge"]


def compare(draw, tools, tally):
    case = for_all(draw)
    transport = draw.pick(TRANSPORTS)
    file, costs = tools.file("random.pp", case.source()), case.arguments(tools.folder)
    more = messages(draw) if transport != "data" else []
    judge(tools, tally, [file, *costs, *more], transport, numbers(draw),
          lambda m: instance(tools, case, [file, *costs, *more], transport, m))


def messages(draw):
    """Options that place messages otherwise."""
    return draw.weighted([([], 14), (["--comm-order=sweep"], 1), (["--comm-order=ready-time"], 1), (["--comm-order=late"], 1),
                          (["--comm-order=best"], 1), (["--fuse=batch"], 1), (["--fuse=megatron"], 1), (["--fuse=megatron-even-odd"], 1)])


def judge(tools, tally, given, transports, ms, instance):
    """Holds what both commands say of some M against `instance`: the verdict, the figures by their names in `explain`, and what
    each rank holds, of what is wrong, too."""
    options = [*given, f"--transport={transports}", "--format=json"]
    proof = tools.ppcc("prove", *options, "--certificate=proof.json", seconds=120)
    explanation = tools.ppcc("explain", *options, seconds=120)
    tally["schedules"] += 1
    expect_equal(bool(explanation.stdout), bool(proof.stdout), "explained and not proven, or the other way round")
    if not proof.stdout:
        tally["not judged"] += 1
        return
    done = tools.run("ppcc-check-proof", "proof.json")
    expect(done.returncode == 0, "ppcc's own certificate is refused", done.stdout + done.stderr)
    both = {"prove": json.loads(proof.stdout)["ranges"], "explain": json.loads(explanation.stdout)["ranges"]}
    for m in ms:
        said = {command: one for command, ranges in both.items() if (one := range_of(ranges, m))["verdict"] != "undecided"}
        if not said:
            tally["undecided"] += 1
            continue
        verdict, figures, held = instance(m)
        tally[verdict] += 1
        for command, one in said.items():
            expect_equal(one["verdict"], verdict, f"another verdict of {command} for an M")
            holds = re.search(r"rank (\d+) holds (.*), above its limit of", one.get("reason", ""))
            if holds and held:
                tally["held"] += 1
                expect_equal(parsed(holds[2], m), held[int(holds[1])], "a rank holds another amount")
            for name, value in figures.items():
                if command == "prove" and name != "makespan":
                    continue
                if one[name] is None:
                    tally[f"no {name}"] += 1
                    continue
                reported, exact = formula(one[name], m), one[name]["exact"]
                tally[name] += 1
                expect(abs(reported - value) <= Fraction(1, 10**6) if exact else reported >= value, f"another {name} of {command}",
                       f"M = {m}: ppcc {float(reported)}, {'exactly' if exact else 'at most'}, but {float(value)}")


def numbers(draw):
    """Some M, most of them small, where the beginning and the end of a run meet."""
    return sorted({draw.integer(1, 8), draw.integer(1, 14), draw.integer(1, 30), draw.integer(8, 60)})


def range_of(ranges, m):
    found = [one for one in ranges if one["from"] <= m and (one["to"] is None or m <= one["to"]) and
             m % one["modulus"] == one["residue"]]
    expect(len(found) == 1, "an M in several ranges, or in none", f"M = {m}: {found}")
    return found[0]


def formula(one, m):
    return Fraction(one["slope"]) * m + Fraction(one["intercept"])


def parsed(text, m):
    """The value of a formula as it is printed, `3/2 M - 1`."""
    slope, intercept = re.fullmatch(r"(?:([\d/.]*) ?M)?(?:(?: \+ )?(-? ?[\d/.]+))?", text.replace(" - ", " + -")).groups()
    return (Fraction(slope or 1) * m if "M" in text else 0) + Fraction((intercept or "0").replace(" ", ""))


def instance(tools, case, given, transport, m):
    """The verdict about one M, its figures, and the most that each rank holds, by the oracle; what ppcc says of that M must be the
    same."""
    options = [*given, *(["--comm-order=none"] if transport == "data" else [f"--transport={transport}"]), "--no-families", f"-DM={m}"]
    done = tools.ppcc(*options)
    codes = diagnostic_codes(done)
    if not value_of(case.require, {"M": m}):
        expect(codes[:1] == ["E0404"], "compiles what is excluded", done.stderr)
        return "excluded", {}, None
    program, reasons = case.expand(M=m)
    reasons = reasons or violations(program, case.costs())
    if reasons:
        expect(done.returncode == 1, "accepted what is wrong", f"M = {m}: {sorted(reasons)}")
        return "invalid", {}, None
    if done.returncode and set(codes) & {"E0765", "E0766"}:
        return "invalid", {}, None  # `verdicts` looks into these.
    if done.returncode:  # Only its memory can be at fault: the same without the limit.
        expect(set(codes) <= {"E1010", "E1052"}, "refused what is right", f"M = {m}: {done.stderr}")
    free = tools.ppcc(*options, "--cost=limit=1000000000") if done.returncode else done
    rows = from_json(json.loads(free.stdout))
    costs = case.costs()
    times = row_times(rows, None if transport == "data" else transport, costs)
    memory = MemoryCurve(rows, times, costs)
    held = [memory.peak(rank)[0] for rank in range(case.head.ranks)]
    above = any(memory.limit(rank) is not None and held[rank] > memory.limit(rank) for rank in range(case.head.ranks))
    expect_equal(bool(done.returncode), above, "another verdict about limits of memory")
    return ("invalid", {}, held) if above else ("valid", figures(rows, times, costs, memory, held), held)


def figures(rows, times, costs, memory, held):
    makespan = rates(rows, times, costs)[0]
    work = sum(busy for _, _, busy in spans(rows, times, costs))
    sends = messages_of(rows.head)
    return {"makespan": makespan, "work": work, "idle": makespan * rows.head.ranks - work, "messages": len(sends),
            "bytes": sum(costs.size(*send[1:]) for send in sends),
            "activations": max(memory.peak_activations(rank) for rank in range(rows.head.ranks)), "memory": max(held)}
