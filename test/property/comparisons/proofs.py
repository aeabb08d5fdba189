"""What `ppcc prove` says of all M against single programs: verdicts and makespans."""

import json
from fractions import Fraction

from generate import for_all
from oracle.check import reasons_of
from oracle.expand import value_of
from oracle.figures import Memory, rates
from oracle.run import times_of
from program_json import from_json
from tools import codes_of, expect, expect_equal

SCARCE = {"right": 2, "wrong": 8}
TRANSPORTS = ["data", "data", "stream", "rendezvous", "buffered", "buffered:2", "posted", "stream-per-peer", "stream-per-edge"]


def compare(draw, tools, tally):
    case = for_all(draw)
    transport = draw.pick(TRANSPORTS)
    file, costs = tools.file("random.pp", case.source()), case.arguments(tools.folder)
    done = tools.ppcc("prove", file, *costs, f"--transport={transport}", "--format=json")
    tally["schedules"] += 1
    if not done.stdout:
        tally["not judged"] += 1
        return
    ranges = json.loads(done.stdout)["ranges"]
    for m in numbers(draw):
        one = range_of(ranges, m)
        if one["verdict"] == "undecided":
            tally["undecided"] += 1
            continue
        verdict, makespan = instance(tools, case, file, costs, transport, m)
        tally[verdict] += 1
        expect_equal(one["verdict"], verdict, "another verdict for an M")
        if verdict == "right" and one["makespan"]:
            told = formula(one["makespan"], m)
            exact = one["makespan"]["exact"]
            tally["makespans"] += 1
            expect(abs(told - makespan) <= Fraction(1, 10**6) if exact else told >= makespan, "another makespan for an M",
                   f"M = {m}: ppcc {float(told)}, {'exactly' if exact else 'at most'}, oracle {float(makespan)}")


def numbers(draw):
    """Some M, most of them small, where the beginning and the end of a run meet."""
    return sorted({draw.int(1, 8), draw.int(1, 14), draw.int(1, 30), draw.int(8, 60)})


def range_of(ranges, m):
    found = [one for one in ranges if one["from"] <= m and (one["to"] is None or m <= one["to"]) and
             m % one["modulus"] == one["residue"]]
    expect(len(found) == 1, "an M in several ranges, or in none", f"M = {m}: {found}")
    return found[0]


def formula(one, m):
    return Fraction(one["slope"]) * m + Fraction(one["intercept"])


def instance_rows(tools, file, costs, transport, m):
    """The program of one M, if it is one."""
    options = ["--comm-order=none"] if transport == "data" else [f"--transport={transport}"]
    done = tools.ppcc(file, *costs, *options, "--no-families", f"-DM={m}")
    return None if done.returncode else from_json(json.loads(done.stdout))


def instance(tools, case, file, costs, transport, m):
    """The verdict about one M, and its makespan, by the oracle; what ppcc says of that M must be the same."""
    options = ["--comm-order=none"] if transport == "data" else [f"--transport={transport}"]
    done = tools.ppcc(file, *costs, *options, "--no-families", f"-DM={m}")
    codes = codes_of(done)
    if not value_of(case.require, {"M": m}):
        expect(codes[:1] == ["E0404"], "compiles what is excluded", done.stderr)
        return "excluded", None
    program, reasons = case.expand(M=m)
    reasons = reasons or reasons_of(program, case.costs())
    if reasons:
        expect(done.returncode == 1, "accepted what is wrong", f"M = {m}: {sorted(reasons)}")
        return "wrong", None
    if done.returncode and set(codes) & {"E0765", "E0766"}:
        return "wrong", None  # `verdicts` looks into these.
    rows = program if transport == "data" or done.returncode else from_json(json.loads(done.stdout))
    if done.returncode:  # Only its memory can be at fault, which has the same order without messages.
        expect(set(codes) <= {"E1010", "E1052"}, "refused what is right", f"M = {m}: {done.stderr}")
        again = tools.ppcc(file, *costs, *options, "--cost=limit=1000000000", "--no-families", f"-DM={m}")
        rows = from_json(json.loads(again.stdout))
    times = times_of(rows, None if transport == "data" else transport, case.costs())
    memory = Memory(rows, times, case.costs())
    above = any(memory.limit(rank) is not None and memory.peak(rank)[0] > memory.limit(rank) for rank in range(case.head.ranks))
    expect_equal(bool(done.returncode), above, f"another verdict about limits of memory")
    return ("wrong", None) if above else ("right", rates(rows, times, case.costs())[0])
