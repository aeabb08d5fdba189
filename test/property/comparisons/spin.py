"""Verdicts on transports against SPIN, which searches all that can happen in a model of the program."""

import json
import re

import library
import programs
from mutate import mutated, delay_receives
from oracle.check import message_violations, violations
from oracle.program import Costs, Program, text
from oracle.run import TRANSPORTS, is_deadlock_free
from program_json import to_json
from spin_model import Model, search
from tools import expect

COVERAGE = {"safe": 2, "deadlock": 16, "unmatched": 12}
UNMATCHED, DEADLOCK = {"E0760", "E0761", "E0762"}, {"E0765", "E0766"}


def compare(draw, tools, tally):
    if draw.chance(0.5):
        found = programs.program(draw, tools, plain=True)
        if not found or sum(map(len, found[1].rows)) > 60:
            return
        base, program = json.loads((tools.folder / "random.json").read_text()), found[1]
    else:
        _, base, program = library.compile_schedule(tools, *draw.pick([(*one, ["--comm-order=sweep"]) for one in library.SMALL] + library.FUSED))
    program = mutated(draw, mutated(draw, program, messages=True), messages=True)
    if draw.chance(0.3):
        ranks = [list(rank) for rank in program.items]
        for number in range(len(ranks)):
            delay_receives(draw, program, ranks, number, 0)
        program = Program(program.head, ranks)
    other = message_violations(program) - {"unmatched"} | violations(program, Costs(program.head))
    if other:
        return  # Not a question of the messages' order; `verdicts` looks into these.
    tools.file("random.json", json.dumps(to_json(program, base)))
    expect(tools.ppcc("random.json", "--passes=unroll", "--emit=ir", "-o", "random.ir").returncode == 0, "no text")
    for transport in draw.subset(list(TRANSPORTS), 0.3) or ["rendezvous"]:
        oracle = "unmatched" if message_violations(program) else "safe" if is_deadlock_free(program, transport) else "deadlock"
        tally[oracle] += 1
        tally[f"{transport}: {oracle}"] += 1
        spin = search(tools.folder, Model(program, transport).text())
        # SPIN stops at whatever it meets first in a program whose messages do not match.
        fits = spin in ("unmatched", "deadlock") if oracle == "unmatched" else spin == oracle
        expect(fits and by_ppcc(tools, transport) == oracle, "another verdict by SPIN",
               f"{transport}: oracle {oracle}, SPIN {spin}, ppcc {by_ppcc(tools, transport)}\n{text(program)}")


def by_ppcc(tools, transport):
    done = tools.ppcc("random.ir", "--passes=verify-matching,verify-transport", f"--transport={transport}", "--check")
    codes = set(re.findall(r"\[(E\d{4})\]", done.stderr))
    if done.returncode == 0:
        return "safe"
    return "unmatched" if codes & UNMATCHED else "deadlock" if codes and codes <= DEADLOCK else done.stderr
