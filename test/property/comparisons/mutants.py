"""What `ppcc prove` says of schedules of the library with one change against single programs."""

import json
import pathlib
from fractions import Fraction

from comparisons.proofs import formula, range_of
from generate import MUTATED, mutant
from tools import codes_of, expect, expect_equal

SCARCE = {"right": 5, "wrong": 2}
LIBRARY = pathlib.Path(__file__).resolve().parents[3] / "lib" / "schedules"


def compare(draw, tools, tally):
    name = draw.pick(MUTATED)
    text = mutant(draw, (LIBRARY / f"{name}.pp").read_text(encoding="utf-8"))
    if text is None:
        return
    file = tools.file("mutant.pp", text)
    given = [f"-DP={draw.pick([2, 4])}", f"--schedule={name}", f"--transport={draw.pick(['stream', 'rendezvous'])}"]
    done = tools.ppcc("prove", file, *given, "--format=json", seconds=120)
    if not done.stdout:
        return  # It is no schedule.
    ranges = json.loads(done.stdout)["ranges"]
    tally["mutants"] += 1
    tally["undecided in part"] += any(one["verdict"] == "undecided" for one in ranges)
    for most in (30, 70, 300):
        m = draw.int(1, most)
        one = range_of(ranges, m)
        if one["verdict"] == "undecided":
            continue
        done = tools.ppcc(file, f"-DM={m}", "--no-families", "--emit=report-json", *given)
        excluded = done.returncode and codes_of(done)[0] in ("E0404", "E0480")
        verdict = "excluded" if excluded else "wrong" if done.returncode else "right"
        tally[verdict] += 1
        expect_equal(one["verdict"], verdict, "another verdict for an M")
        if verdict == "right" and one["makespan"]:
            tally["makespans"] += 1
            told, exact = formula(one["makespan"], m), one["makespan"]["exact"]
            real = Fraction(str(json.loads(done.stdout)["makespan"]))
            expect(told == real if exact else told >= real, "another makespan for an M", f"M = {m}: ppcc {told}, instance {real}")
