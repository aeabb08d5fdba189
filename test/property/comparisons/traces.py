"""ppcc-profile on traces with values that no profiler writes: costs that ppcc reads, or an error with a place."""

import contextlib
import io
import json
import pathlib
import sys

from tools import diagnostic_codes, expect

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "python/src/ppcc"))
import _profile  # noqa: E402

COVERAGE = {"costs": 5, "accepted": 25}
OTHER_PROGRAM = {"E0451", "E0458", "E1005", "E1007"}  # It may have other stages, actions, or messages.
STRANGE = [None, True, -1, 0, 1e308, -0.0, 10**9, 10**18, 10**400, 1e-400, "", "1", "NaN", [], {}, [[]], "\ud800", "0F0" * 50, float("nan"), float("inf")]
NAMES = ["0F1", "0B1", "1F1", "1B1", "0W3", "1W3", "0SEND_F0", "1RECV_F0", "1SEND_B0>0", "0RECV_B0<1", "0SEND_F1", "1RECV_F1", "other", "2F0", "65534F0", "99999F0", "0F", "²F0"]


def compare(draw, tools, tally):
    names = ["0F0", "1F0", "0B0", "1B0"] * draw.chance(0.8) + [draw.pick(NAMES) for _ in range(draw.below(8))]
    events = [{"ph": "X", "name": name, "ts": draw.below(1000), "dur": draw.below(1000), "pid": 0, "tid": 0} for name in names]
    for event in events:
        if draw.chance(0.05):
            event["args"] = {"waited": draw.below(100)}
        if draw.chance(0.05):
            event[draw.pick(["ph", "name", "ts", "dur", "args", "args.waited"])] = draw.pick(STRANGE)
    trace = draw.pick([events, {"traceEvents": events}, {"traceEvents": events}, {"traceEvents": draw.pick(STRANGE)}])
    text = bytearray(json.dumps(trace).encode())
    if draw.chance(0.2):
        at = draw.below(len(text))
        text[at : at + draw.below(3)] = bytes(draw.below(256) for _ in range(draw.below(3)))
    path, costs = tools.folder / "trace.json", tools.folder / "costs.json"
    path.write_bytes(text)
    costs.unlink(missing_ok=True)
    arguments = [str(path), "-o", str(costs), f"--emit={draw.pick(['costs', 'model'])}", f"--unit={draw.pick(list(_profile.UNITS))}"]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            status = _profile.main([*arguments, *draw.pick([[], [], ["--match=([0-9]+)([A-Z])"], ["--match=(.)", "--groups=kind"]])])
        except SystemExit as stop:
            status = stop.code
        except Exception as error:  # noqa: BLE001: what this looks for.
            expect(False, "ppcc-profile breaks", repr(error))
    tally[f"status {status}"] += 1
    expect((status == 0) == costs.exists() and (status != 0) == bool(errors.getvalue()), "neither costs nor an error", errors.getvalue())
    if status:
        return
    tally["costs"] += 1
    given = ["--costs=costs.json"] if arguments[3] == "--emit=costs" else ["--model=costs.json", "--cluster=costs.json"]
    codes = diagnostic_codes(tools.ppcc("gpipe", "-DP=2", "-DM=2", *given, "--check"))
    expect(set(codes) <= OTHER_PROGRAM, "ppcc refuses what ppcc-profile writes", codes)
    tally["accepted"] += not codes
