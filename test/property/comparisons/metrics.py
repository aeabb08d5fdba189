"""Every number of a report: work, bubbles, idle time, memory, messages, the critical path; and of `compare`."""

import collections
import json
from fractions import Fraction

import programs
from oracle.metrics import MemoryCurve, bubbles, occupies_compute, rates, spans
from oracle.run import TRANSPORTS, row_times
from tools import diagnostic_codes, expect, expect_equal

COVERAGE = {"reports": 2}


def compare(draw, tools, tally):
    found = programs.program(draw, tools, memory=True)
    if not found:
        return
    case, program, path = found
    costs = case.costs()
    for transport in draw.subset([None, *TRANSPORTS], 0.2) or [None]:
        one = program if transport else program.without_messages()
        times = row_times(program, transport, costs)
        if times is None:
            continue
        path = tools.folder / "random.json" if transport else programs.without_messages(tools, program)
        options = [f"--transport={transport}"] if transport else ["--comm-order=none"]
        done = tools.ppcc(path, "--emit=report-json", *options)
        expect(done.returncode == 0, "no report", done.stderr)
        report = json.loads(done.stdout, parse_float=Fraction)
        tally["reports"] += 1
        check_totals(report, program, one, transport, times, costs)
        memory = MemoryCurve(one, times, costs)
        for rank in range(program.head.ranks):
            check_rank(report["ranks"][rank], one, times, memory, rank)
        check_idle_time(report, one, transport, costs, times)
        check_critical_path(report, one, times)
        if draw.chance(0.4):
            check_memory_limit(draw, tools, path, options, one, memory, report, tally)
        if draw.chance(0.3):
            check_compare_table(tools, path, options, report, tally)


def check_totals(report, program, one, transport, times, costs):
    makespan, rate, overall = rates(one, times, costs)
    rows = [row for rank in one.rows for row in rank]
    expect_equal(report["transport"], transport if transport and program.has_messages() else "none", "another transport is reported")
    expect_equal(report["makespan"], makespan, "another makespan")
    expect_equal(report["actions"], len([row for row in rows if occupies_compute(row)]), "another number of actions")
    expect_equal(report["messages"], len([row for row in rows if row.kind.role == "send"]), "another number of messages")
    alone = row_times(program, None, costs)
    expect(alone is not None, "ends with messages alone", "")
    expect_equal(report["bound"], rates(program.without_messages(), alone, costs)[0], "another bound by data alone")
    expect(same_rate(report["bubble_rate"], rate), "another bubble rate", f"ppcc: {report['bubble_rate']}, oracle: {float(rate)}")
    expect(same_rate(report["global_bubble_rate"], overall), "another global bubble rate",
           f"ppcc: {report['global_bubble_rate']}, oracle: {float(overall)}")
    expect(report["resource_bound"] <= min(makespan, report["bound"]), "a resource bound that this order beats",
           f"{report['resource_bound']}, but the makespan is {makespan}, by data {report['bound']}")
    if "makespan_without_messages" in report:
        free = [setting for setting in costs.settings if setting.item not in ("latency", "bytes", "bandwidth")]
        costs.settings, kept = free, costs.settings
        again = row_times(one, transport, costs)
        costs.settings = kept
        expect_equal(report["makespan_without_messages"], rates(one, again, costs)[0], "another makespan without messages")


def same_rate(got, wanted):
    return abs(Fraction(got) - wanted) <= Fraction(1, 10**9)


def check_rank(reported, program, times, memory, rank):
    begin, end, busy = spans(program, times, memory.costs)[rank]
    wanted = {"begin": begin, "end": end, "span": end - begin, "busy": busy, "idle": end - begin - busy,
              "actions": len([row for row in program.rows[rank] if occupies_compute(row)]),
              "sends": len([row for row in program.rows[rank] if row.kind.role == "send"]),
              "peak_activations": memory.peak_activations(rank), "static_memory": memory.static_memory(rank),
              "final_memory": memory.final(rank)}
    peak, when, row, held = memory.peak(rank)
    wanted["peak_memory"] = peak
    if row is not None:
        wanted |= {"peak_at": when, "peak_action": str(row)}
    for name, value in wanted.items():
        expect(name in reported, f"no {name}", reported)
        expect_equal(reported[name], value, f"another {name}")
    names = [pipe.name for pipe in program.head.pipes]
    got = {(names.index(one["pipe"]), one["stage"]): (one["microbatches"], one["first"], one["last"], one["memory"])
           for one in reported.get("peak_held", [])}
    expect_equal(got, held, "other memory is held at the peak")


def check_idle_time(report, program, transport, costs, times):
    """Where several waits end at once, each of them may be reported as the cause."""
    sums, certain = collections.Counter(), True
    for rank, gaps in enumerate(bubbles(program, transport, costs)):
        reported = {(one["phase"], one["waits_for"]): one["time"] for one in report["ranks"][rank]["bubbles"]}
        begin = spans(program, times, costs)[rank][0]
        possible = [({}, {})]
        for gap in gaps:
            possible = unique(add(*known, gap, way, begin) for known in possible for way in gap[3])[:400]
        fits = unique(kinds for shown, kinds in possible if shown == reported)
        expect(fits, "other bubbles", f"rank {rank}\nppcc:   {plain(reported)}\noracle: {[plain(shown) for shown, _ in possible[:3]]}")
        certain &= len(fits) == 1
        sums.update(fits[0])
    expect_equal(sum(report["idle"].values()), sum(sums.values()), "idle time is not the sum of bubbles")
    if certain:
        expect_equal(report["idle"], {name: sums[name] for name in ("ramp", "dependence", "messages", "lanes")}, "other idle time")


def add(shown, kinds, gap, way, begin):
    """The report of gaps so far, and of this one by one of its causes."""
    shown, kinds = dict(shown), dict(kinds)
    for cause, time in way:
        if time:
            ramp = cause == "end" or gap[1] <= begin
            kind = "ramp" if ramp else {"lane": "lanes", "communication": "messages"}.get(cause, "dependence")
            shown[gap[2], cause] = shown.get((gap[2], cause), 0) + time
            kinds[kind] = kinds.get(kind, 0) + time
    return shown, kinds


def unique(values):
    result = []
    for value in values:
        if value not in result:
            result.append(value)
    return result


def plain(values):
    return {key: float(value) for key, value in values.items()}


def check_critical_path(report, program, times):
    """A critical path goes from 0 to the makespan without a gap; its parts end when their last rows do."""
    now = 0
    for part in report["critical_path"]:
        expect_equal(part["begin"], now, "a gap in the critical path")
        now = part["end"]
        ends = [times[key][1] for key in program.row_ids if key[0] == part["rank"] and str(program.row(key)) == part["last"]]
        message = part["last"].lstrip("0123456789").startswith(("SEND_", "RECV_"))
        expect(message and now <= max(ends) or now in ends, "a part of the critical path ends at another time",
               f"{part} {ends}")
    expect_equal(now, report["makespan"], "the critical path does not end with the run")


def check_memory_limit(draw, tools, path, options, program, memory, free, tally):
    """What a limit of memory changes."""
    peaks = [memory.peak(rank)[0] for rank in range(program.head.ranks)]
    limit = max(peaks + [0]) + draw.pick([0, 0, 1, -1, Fraction(-1, 4)])
    if limit <= 0:
        return
    done = tools.ppcc(path, "--emit=report-json", *options, f"--cost=limit={float(limit)}")
    tally["limits"] += 1
    above = max(peaks) > limit
    expect_equal(bool(done.returncode), above, "another verdict about a limit")
    if above:
        expect(set(diagnostic_codes(done)) <= {"E1010", "E1052"}, "refused for another reason than a limit", done.stderr)
        return
    report = json.loads(done.stdout, parse_float=Fraction)
    expect_equal([rank["memory_limit"] for rank in report["ranks"]], [limit] * len(peaks), "another limit is reported")
    expect(report["resource_bound"] >= free["resource_bound"], "a limit lowers the bound")
    expect(report["resource_bound"] <= report["makespan"], "a bound with a limit that this order beats")
    if "limits_cost" in report:
        expect_equal(report["limits_cost"], report["resource_bound"] - free["resource_bound"], "another cost of limits")


def check_compare_table(tools, path, options, report, tally):
    """`compare` tells the same."""
    done = tools.ppcc("compare", path, "--format=csv", "--work=stage", *options)
    expect(done.returncode == 0, "no comparison", done.stderr)
    names, values = (line.split(",") for line in done.stdout.splitlines())
    reported = dict(zip(names, values))
    wanted = {"makespan": report["makespan"], "bound": report["bound"], "bubble rate": report["bubble_rate"],
              "global bubble rate": report["global_bubble_rate"], "messages": report["messages"],
              "activations": max(rank["peak_activations"] for rank in report["ranks"]),
              "memory": max(rank["peak_memory"] for rank in report["ranks"])}
    tally["tables"] += 1
    for name, value in wanted.items():
        column = name if name in reported else name.replace(" ", "_")
        expect_equal(Fraction(reported[column]), Fraction(value), f"compare tells another {name}")
