"""Where the compiler places the W's of `defer W fill` (docs/language.md#deferring-w)."""

import json

from generate import filled, filled_source
from oracle.check import reasons_of
from oracle.figures import Memory
from oracle.program import text
from oracle.run import times_of
from program_json import from_json
from tools import expect, expect_equal

SCARCE = {"with a limit": 4, "as written": 10}


def compare(draw, tools, tally):
    case, caps, lag = filled(draw)
    wanted, refused = case.expand()
    expect(not refused, "the generator is wrong", refused)
    done = tools.ppcc(tools.file("random.pp", filled_source(case, caps, lag)), "--comm-order=none")
    expect(done.returncode == 0, "W's cannot be placed", done.stderr)
    program, costs = from_json(json.loads(done.stdout)), case.costs()
    expect(not reasons_of(program, costs), "W's in wrong places", text(program))
    memory = Memory(program, times_of(program, None, costs), costs)
    for rank in range(case.head.ranks):
        limit = memory.limit(rank)
        expect(limit is None or memory.peak(rank)[0] <= limit, "above the limit", f"rank {rank}: {memory.peak(rank)[0]}")
        for stage in {row.stage for row in program.rows[rank]}:
            for kind in "FI":
                got, order = ([row for row in one.rows[rank] if row.stage == stage and row.kind.letters == kind] for one in (program, wanted))
                expect_equal(list(map(str, got)), list(map(str, order)), "a chunk in another order")
        if limit is None and not caps:
            got, order = ([str(row) for row in one.rows[rank] if row.kind.letters != "W"] for one in (program, wanted))
            expect_equal(got, order, "forwards and backwards not as written")
            tally["as written"] += 1
        open_forwards = pending = 0
        for row in program.rows[rank]:
            open_forwards += {"F": 1, "I": -1}.get(row.kind.letters, 0)
            pending += {"I": 1, "W": -1}.get(row.kind.letters, 0)
            expect(not caps or open_forwards <= caps[rank], "above the cap", text(program))
            expect(lag is None or pending <= lag + 1, "more W's wait than the lag lets", text(program))
    tally["with a limit"] += memory.limit(0) is not None
    tally["schedules"] += 1
