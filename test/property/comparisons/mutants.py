"""What `prove` and `explain` say of schedules of the library, most with one change, and of random ones, with rules, against the reports
of single programs."""

import json
from fractions import Fraction

from comparisons.proofs import judge, messages
from generate import for_all, of_library, rules
from tools import diagnostic_codes

COVERAGE = {"valid": 5, "invalid": 2, "makespan": 5, "work": 5, "memory": 5, "idle": 5, "activations": 5, "messages": 5}
TRANSPORTS = "stream rendezvous data buffered buffered:1 buffered:2 stream-per-peer stream-per-edge posted".split()


def compare(draw, tools, tally):
    if draw.chance(0.3):
        case = for_all(draw)
        text, given = case.source(), case.arguments(tools.folder)
    else:
        text, given = of_library(draw)
    transports = draw.pick(TRANSPORTS)
    if draw.chance(0.25):
        transports += f",{draw.pick([other for other in TRANSPORTS if other != transports])}"
    given, more = [tools.file("mutant.pp", text), *given, *rules(draw)], messages(draw)
    if transports == "data":
        more = []  # There are no messages to place.
    judge(tools, tally, [*given, *more], transports, sorted({draw.integer(1, most) for most in (30, 70, 600)}),
          lambda m: instance(tools, given, more, transports.split(","), m))


def instance(tools, given, more, transports, m):
    """The verdict about one M, and what its report says."""
    on = ",".join(transport for transport in transports if transport != "data")
    by_data = "data" in transports  # All else must be right, too, but its times are reported.
    if on:
        more = [*more, f"--transport={on}"]
    elif by_data:
        more = []
    command = [*given, *more, f"-DM={m}", "--no-families", "--emit=report-json"]
    done = tools.ppcc(*command)
    codes = diagnostic_codes(done)
    if done.returncode and codes[0] in ("E0404", "E0480"):
        return "excluded", {}, None
    free = tools.ppcc(*command, "--cost=limit=1000000000") if done.returncode and set(codes) <= {"E1010", "E1052"} else done
    if free.returncode:
        return "invalid", {}, None
    report = json.loads(free.stdout, parse_float=Fraction)
    held = [Fraction(rank["peak_memory"]) for rank in report["ranks"]]
    if done.returncode:
        return "invalid", {}, held
    makespan, work = report["bound" if by_data else "makespan"], sum(rank["busy"] for rank in report["ranks"])
    figures = {"work": work, "messages": report["messages"], "memory": max(held),
               "activations": max(rank["peak_activations"] for rank in report["ranks"])}
    if not (by_data and "--with=release" in given):  # A release follows messages.
        figures |= {"makespan": makespan, "idle": len(held) * makespan - work}
    sizes = [option for option in given if str(option).startswith("--cost=bytes=")]
    if len(sizes) == 1 and "scale" not in (tools.folder / "mutant.pp").read_text():
        figures["bytes"] = Fraction(sizes[0].rsplit("=", 1)[1]) * report["messages"]
    return "valid", figures, held
