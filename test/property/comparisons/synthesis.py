"""What `ppcc synthesize` says of the schedules that it writes; no order is below its bound."""

import json
from fractions import Fraction

from comparisons.proofs import formula
from generate import fold
from oracle.figures import Memory, rates, spans
from oracle.program import KINDS, Costs, Head, Pipe, Setting
from oracle.run import TRANSPORTS, times_of
from program_json import from_json
from tools import codes_of, expect, expect_equal

SCARCE = {"found": 2, "no order below the bound": 4}
NODES = 60000  # Partial orders that the search for a better one looks at.


def compare(draw, tools, tally):
    ranks, m = draw.int(1, 3), draw.int(1, 4)
    stages, placement = draw.pick([(list(range(ranks)), "linear"), (fold(ranks, 2), "v"), (list(range(ranks)) * 2, "loop:2"),
                                   (fold(ranks, 2), "wave:2")])
    fused = draw.chance(0.4)
    costs = {"cost": {kind: [draw.int(0 if draw.chance(0.1) else 1, 5) for _ in stages] for kind in ("FB" if fused else "FIW")}}
    if draw.chance(0.5):
        costs["latency"] = draw.int(0, 2)
    if draw.chance(0.6):
        costs["limit"] = [draw.int(1, 3 * len(stages) // ranks + 1) for _ in range(ranks)] if draw.chance(0.5) else draw.int(1, 4)
    if draw.chance(0.3):
        costs["memory"] = {"F": 2} if fused else {"F": 2, "I": draw.pick([0, -1])}
    tools.file("costs.json", json.dumps(costs))
    transport = draw.pick([None, None, *TRANSPORTS])
    on = ["--comm-order=none"] if transport is None else [f"--transport={transport}"]
    more = ["--fused-backward"] * fused
    free, span = draw.chance(0.15), draw.chance(0.15)
    for option in ("--recompute", "--offload"):
        more += [option] * (draw.chance(0.1) and not free)
    more += ["--objective=span"] * span
    sizes = [f"-DP={ranks}", "--for=M"] if free else [f"-DP={ranks}", f"-DM={m}"]
    done = tools.ppcc("synthesize", f"--placement={placement}", *sizes, "--costs=costs.json", "--format=json", "--effort=1", *on, *more)
    head = Head(ranks, (Pipe("main", 0, m, m, tuple(stages)),), True, dict(KINDS))
    settings = [Setting(item, kind, Fraction(value), {"stage": s}) for item, kind, values in
                [("cost", kind, values) for kind, values in costs["cost"].items()] for s, value in enumerate(values)]
    settings += [Setting("latency", None, Fraction(costs.get("latency", 0)))]
    settings += [Setting("memory", kind, Fraction(value)) for kind, value in costs.get("memory", {}).items()]
    limits = costs.get("limit")
    limits = limits if isinstance(limits, list) else [limits] * ranks
    plain = Costs(head, settings)
    needs = [sum(plain.of_forward(0, s) for s, rank in enumerate(stages) if rank == r) for r in range(ranks)]
    if done.returncode:
        if "E1102" in codes_of(done):
            expect(any(limit is not None and need > limit for need, limit in zip(needs, limits)), "a limit that would do is refused",
                   done.stderr)
            tally["limits too small"] += 1
        else:
            tally[f"not found: {', '.join(codes_of(done)) or done.stderr[:80]}"] += 1
        return
    found = json.loads(done.stdout, parse_float=Fraction)
    tally["found"] += 1
    told = Fraction(found["span" if span else "makespan"])
    if free:
        m = found["microbatches"]
    tools.file("found.pp", found["schedule"])
    asked = [f"-DM={m}"] if free else []
    done = tools.ppcc("found.pp", "--costs=costs.json", *on, *asked)
    expect(done.returncode == 0, "what is found does not compile", done.stderr)
    judge(tools, found, from_json(json.loads(done.stdout)), transport, settings, limits, bool(set(more) & {"--recompute", "--offload"}), on,
          asked)
    for one in found.get("formulas", []):
        other = one["from"] + one["modulus"] * draw.int(0, 3)
        report = tools.ppcc("found.pp", "--costs=costs.json", *on, f"-DM={other}", "--no-families", "--emit=report-json")
        expect(report.returncode == 0, "a number of microbatches that was promised", f"M = {other}: {report.stderr}")
        if not one["makespan"]:
            continue
        real, exact = Fraction(str(json.loads(report.stdout)["makespan"])), one["makespan"]["exact"]
        promised = formula(one["makespan"], other)
        expect(promised == real if exact else promised >= real, "another makespan than promised", f"M = {other}: {promised}, {real}")
        tally["promises"] += 1
    bound = Fraction(found["bound"])
    expect(bound <= told, "a bound above what is found")
    expect_equal(found["optimal"], bound == told, "optimal, or not")
    expect(abs(Fraction(found["gap"]) - (told / bound - 1 if bound else 0)) < Fraction(1, 10**6), "another gap", found["gap"])
    if not free and not span and not set(more) & {"--recompute", "--offload"}:
        better = search(head, plain, "FB" if fused else "FIW", limits, bound)
        expect(better is not True, "an order is below the bound", f"bound {bound}")
        tally["no order below the bound" if better is False else "search given up"] += 1


def judge(tools, found, program, transport, settings, limits, chosen, on, asked):
    """The makespan, the spans and the memory of what was written."""
    if chosen:  # What declared actions take stands in the file; ppcc's report is compared with the oracle elsewhere.
        done = tools.ppcc("found.pp", "--costs=costs.json", *on, *asked, "--emit=report-json")
        report = json.loads(done.stdout, parse_float=Fraction)
        makespan, span = report["makespan"], max(rank["span"] for rank in report["ranks"])
        peaks = [rank["peak_memory"] for rank in report["ranks"]]
    else:
        costs = Costs(program.head, settings)
        times = times_of(program, transport, costs)
        memory = Memory(program, times, costs)
        makespan, span = rates(program, times, costs)[0], max(end - begin for begin, end, _ in spans(program, times, costs))
        peaks = [memory.peak(rank)[0] for rank in range(program.head.ranks)]
    expect_equal(Fraction(found["makespan"]), Fraction(makespan), "another makespan than is told")
    expect_equal(Fraction(found["span"]), Fraction(span), "another span than is told")
    expect_equal([Fraction(peak) for peak in found["peak_memory"]], [Fraction(peak) for peak in peaks], "another peak of memory")
    for rank, (peak, limit) in enumerate(zip(peaks, limits)):
        expect(limit is None or peak <= limit, "what is found is above its limit", f"rank {rank}: {peak}")


def search(head, costs, letters, limits, bound):
    """Whether some order of the actions ends before the bound, by data alone; None when there are too many to look at. Microbatches
    are alike, so each stage does them in order."""
    pipe, count = head.pipes[0], head.pipes[0].end
    last = len(pipe.ranks) - 1
    takes = {(kind, s): costs.of_kind(kind, 0, s) for kind in letters for s in range(last + 1)}
    left = {key: count for key in takes}
    ends, free, held = {}, [Fraction(0)] * head.ranks, [Fraction(0)] * head.ranks
    work = [sum(takes[key] * count for key in takes if pipe.ranks[key[1]] == r) for r in range(head.ranks)]
    seen, nodes = set(), 0
    kept = {s: costs.of_forward(0, s) for s in range(last + 1)}
    gone = {s: -costs.value("memory", "I", 0, pipe=0, stage=s) for s in range(last + 1)}

    def start(kind, s):
        """When the next action of a kind and a stage can begin at the earliest; None: something must come before."""
        m = count - left[kind, s]
        rank = pipe.ranks[s]
        needs = {"F": [("F", s - 1)] if s else [], "W": [("I", s)]}.get(kind, [("F", s)] + ([(kind, s + 1)] if s < last else []))
        times = [free[rank]]
        for other, stage in needs:
            if (other, stage, m) not in ends:
                return None
            way = costs.way(0, min(s, stage), max(s, stage), m) if pipe.ranks[stage] != rank else 0
            times.append(ends[other, stage, m] + way)
        if kind == "F" and limits[rank] is not None and held[rank] + kept[s] > limits[rank]:
            return None
        return max(times)

    def go():
        nonlocal nodes
        nodes += 1
        if nodes > NODES:
            return None
        if not any(left.values()):
            return True
        state = (tuple(left.values()), tuple(free), tuple(sorted(ends.items())))
        if state in seen:
            return False
        seen.add(state)
        given_up = False
        for kind, s in [key for key, number in left.items() if number]:
            begin, rank = start(kind, s), pipe.ranks[s]
            if begin is None or begin + work[rank] >= bound:
                continue
            m, before = count - left[kind, s], (free[rank], held[rank])
            end = begin + takes[kind, s]
            change = {"F": kept[s], "B": -kept[s], "I": -gone[s], "W": gone[s] - kept[s]}[kind]
            ends[kind, s, m], free[rank], held[rank] = end, end, held[rank] + change
            left[kind, s] -= 1
            work[rank] -= takes[kind, s]
            result = go()
            left[kind, s] += 1
            work[rank] += takes[kind, s]
            free[rank], held[rank] = before
            del ends[kind, s, m]
            if result:
                return True
            given_up |= result is None
            if nodes > NODES:
                return None
        return None if given_up else False

    return go()
