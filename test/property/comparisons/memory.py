"""What ranks hold, from moment to moment."""

import json
from fractions import Fraction

import programs
from oracle.metrics import MemoryCurve
from oracle.run import TRANSPORTS, row_times
from tools import expect, expect_equal

COVERAGE = {"curves": 2}


def compare(draw, tools, tally):
    found = programs.program(draw, tools, memory=True)
    if not found:
        return
    case, program, path = found
    for transport in draw.subset([None, *TRANSPORTS], 0.3) or [None]:
        one = program if transport else program.without_messages()
        times = row_times(program, transport, case.costs())
        if times is None:
            continue
        if transport:
            done = tools.ppcc(path, "--emit=trace", f"--transport={transport}")
        else:
            done = tools.ppcc(programs.without_messages(tools, program), "--emit=trace", "--comm-order=none")
        if "[E1050]" in done.stderr and all(times[key][0] == times[key][1] or one.row(key).kind.is_message for key in one.row_ids):
            continue  # There is nothing to draw.
        expect(done.returncode == 0, "no trace", done.stderr)
        data = json.loads(done.stdout, parse_float=Fraction)
        memory = MemoryCurve(one, times, case.costs())
        for rank in range(program.head.ranks):
            tally["curves"] += 1
            for name, column in (("memory", 2), ("activations", 3)):
                before = [(Fraction(-1), memory.static_memory(rank) if name == "memory" else 0)]  # A trace begins with the first change.
                got = memory_steps(before + [(Fraction(event["ts"]) / 1000, event["args"][name]) for event in data["traceEvents"]
                                      if event["ph"] == "C" and event["pid"] == rank and event["name"] == name])
                wanted = memory_steps(before + [(change[0], change[column]) for change in memory.ranks[rank]])
                expect_equal(got, wanted, f"another curve of {name}")


def memory_steps(changes):
    """What holds from each moment on."""
    result = []
    for when, value in changes:
        value = Fraction(value)
        if result and result[-1][0] == when:
            result.pop()
        if not result or result[-1][1] != value:
            result.append((when, value))
    return result
