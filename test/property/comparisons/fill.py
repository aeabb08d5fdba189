"""Where the compiler places the W's of `defer W fill` (docs/language.md#deferring-w)."""

import json

from generate import fill_case, fill_source
from oracle.check import violations
from oracle.metrics import MemoryCurve
from oracle.program import text
from oracle.run import row_times
from program_json import from_json
from tools import expect, expect_equal

COVERAGE = {"with a limit": 4, "as written": 10}


def compare(draw, tools, tally):
    case, caps, lag = fill_case(draw)
    wanted, refused = case.expand()
    expect(not refused, "the generator is wrong", refused)
    done = tools.ppcc(tools.file("random.pp", fill_source(case, caps, lag)), "--comm-order=none")
    expect(done.returncode == 0, "W's cannot be placed", done.stderr)
    program, costs = from_json(json.loads(done.stdout)), case.costs()
    expect(not violations(program, costs), "W's in wrong places", text(program))
    memory = MemoryCurve(program, row_times(program, None, costs), costs)
    for rank in range(case.head.ranks):
        limit = memory.limit(rank)
        expect(limit is None or memory.peak(rank)[0] <= limit, "above the limit", f"rank {rank}: {memory.peak(rank)[0]}")
        for stage in {row.stage for row in program.rows[rank]}:
            for kind in "FI":
                got, order = ([row for row in one.rows[rank] if row.stage == stage and row.kind.mnemonic == kind] for one in (program, wanted))
                expect_equal(list(map(str, got)), list(map(str, order)), "a chunk in another order")
        if limit is None and not caps:
            got, order = ([str(row) for row in one.rows[rank] if row.kind.mnemonic != "W"] for one in (program, wanted))
            expect_equal(got, order, "forwards and backwards not as written")
            tally["as written"] += 1
        open_forwards = pending = 0
        for row in program.rows[rank]:
            open_forwards += {"F": 1, "I": -1}.get(row.kind.mnemonic, 0)
            pending += {"I": 1, "W": -1}.get(row.kind.mnemonic, 0)
            expect(not caps or open_forwards <= caps[rank], "above the cap", text(program))
            expect(lag is None or pending <= lag + 1, "more W's wait than the lag lets", text(program))
    tally["with a limit"] += memory.limit(0) is not None
    tally["schedules"] += 1
