"""When actions start and end, on each transport and by data alone."""

import programs
from oracle.run import TRANSPORTS, row_times
from program_json import numbered
from tools import expect, expect_equal, fraction

COVERAGE = {"timings": 2}


def compare(draw, tools, tally):
    found = programs.program(draw, tools)
    if not found:
        return
    case, program, path = found
    for transport in draw.subset([None, *TRANSPORTS], 0.5) or [None]:
        tally["timings"] += 1
        one = program if transport else program.without_messages()
        times = row_times(program, transport, case.costs())
        if transport:
            done = tools.ppcc(path, "--emit=times", f"--transport={transport}")
        else:
            done = tools.ppcc(programs.without_messages(tools, program), "--emit=times", "--comm-order=none")
        if times is None:
            expect(done.returncode == 1, "times of what hangs", f"on {transport}")
            tally["hang"] += 1
            continue
        expect(done.returncode == 0, "no times of what ends", f"on {transport}: {done.stderr}")
        rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
        got = [(int(rank), cell, group, fraction(start), fraction(end)) for rank, cell, group, start, end in rows]
        wanted = [(key[0], str(one.row(key)), group, *times[key]) for key, group in zip(one.row_ids, numbered(one))]
        expect_equal(got, wanted, "other times" if transport else "other times by data alone")
