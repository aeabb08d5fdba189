"""What `ppcc synthesize` says of the schedules that it writes: each figure is that of their reports, and of small ones that of the
oracle; no order is below its bound. With a sanitized compiler a report of the sanitizers is a mismatch, too."""

import json
import math
from fractions import Fraction

from comparisons.proofs import formula
from generate import wave_placement
from oracle.metrics import MemoryCurve, rates, spans
from oracle.program import KINDS, Costs, Head, Pipe, Setting
from oracle.run import TRANSPORTS, row_times
from program_json import from_json
from tools import diagnostic_codes, expect, expect_equal

COVERAGE = {"found": 2, "no order below the bound": 10, "bounds by exact search": 20}
SECONDS = 600  # Of a sanitized compiler.
MAX_NODES = 60000  # Partial orders that the search for a better one looks at.
# No order can keep the limit, or nothing is found; an order of the messages that hangs, or a transport where there are none.
REFUSED = {"": {"E1101", "E1102"}, "--comm-order=late": {"E0762", "E0766"}, "--comm-order=none": {"E0764"}, "--from": {"E1103"}}

PIPES = """\
schedule pipes(P: int = 2, M: int = 4) {{
  ranks P;
  pipe down {{ stages P; stage s on rank s;         microbatches 0 .. M / {share}; }}
  pipe up   {{ stages P; stage s on rank P - 1 - s; microbatches M / {share} .. M; }}
  on rank r {{ }}
}}
"""
SKIPS = """\
schedule skips(P: int = 3, M: int = 4) {{
  ranks P; microbatches M; stages P + 1; stage s on rank min(s, P - 1);
  edge stage 0 -> stage P;
  on rank r {{ }}
}}
"""


class Problem:
    """A placement with costs and options. Of a small one the oracle knows the placement, `stages` by rank, and the costs."""

    def __init__(self, draw):
        self.draw, self.for_all = draw, draw.chance(0.2)
        self.placement, self.stages, self.share, self.costs, self.options = "", None, 2, {}, ["--effort=1"]
        self.small = draw.chance(0.6)
        (self.draw_small if self.small else self.draw_large)()
        for option in ("--recompute", "--offload"):
            if not self.for_all and self.is_named() and draw.chance(0.15):
                self.add(option)
        if draw.chance(0.2):
            self.add("--objective=span")
        self.add("--for=M") if self.for_all else None
        if not self.for_all or not self.small and draw.chance(0.5):
            self.add(f"-DM={self.microbatches}")
        self.add(f"-DP={self.ranks}")

    def add(self, *options):
        self.options += options

    def has(self, word):
        return any(option.startswith(word) for option in self.options)

    def is_named(self):
        return self.placement.partition(":")[0] in ("linear", "v", "loop", "wave")

    def draw_small(self):
        draw = self.draw
        self.ranks, self.microbatches = draw.integer(1, 3), draw.integer(1, 4)
        line = list(range(self.ranks))
        self.stages, self.placement = draw.pick([(line, "linear"), (wave_placement(self.ranks, 2), "v"), (line * 2, "loop:2"), (wave_placement(self.ranks, 2), "wave:2")])
        fused = draw.chance(0.4)
        self.costs = {"cost": {kind: [draw.integer(0 if draw.chance(0.1) else 1, 5) for _ in self.stages] for kind in ("FB" if fused else "FIW")}}
        if draw.chance(0.5):
            self.costs["latency"] = draw.integer(0, 2)
        if draw.chance(0.6):
            most = 3 * len(self.stages) // self.ranks + 1
            self.costs["limit"] = [draw.integer(1, most) for _ in range(self.ranks)] if draw.chance(0.5) else draw.integer(1, 4)
        if draw.chance(0.3):
            self.costs["memory"] = {"F": 2} if fused else {"F": 2, "I": draw.pick([0, -1])}
        transport = draw.pick([None, None, *TRANSPORTS])
        self.add("--comm-order=none" if transport is None else f"--transport={transport}", *["--fused-backward"] * fused)
        self.transport = transport

    def draw_large(self):
        draw = self.draw
        self.placement = draw.pick("linear linear linear v v loop:2 loop:3 wave:2 wave:3 wave:4 dualpipe chimera pipes skips".split())
        self.ranks = draw.pick([1, 2, 2, 3, 3, 4, 4, 5, 6] if self.placement == "linear" else [2, 2, 3, 4])
        self.microbatches = draw.pick([1, 2, 3, 4, 5, 6, 8, 12, 17])
        if self.placement in ("dualpipe", "chimera"):
            self.ranks += self.ranks % 2
            self.microbatches = 2 * self.ranks * draw.pick([1, 1, 2])
        self.share = draw.pick([2, 2, 3])
        if self.placement == "pipes":
            self.microbatches = max(self.microbatches, self.share)
        name, _, chunks = self.placement.partition(":")
        count = self.ranks * (int(chunks) if chunks else 2 if name == "v" else 1) + (name == "skips")
        chunks = 2 if name in ("dualpipe", "chimera", "pipes", "skips") else count // self.ranks
        self.draw_costs(count, chunks)
        if draw.chance(0.25):
            self.add("--fused-backward")
        if draw.chance(0.3):
            self.add("--comm-order=" + draw.pick(["none", "sweep", "ready-time", "late", "best"]))
        if draw.chance(0.3):
            self.add("--transport=" + draw.pick(["buffered", "buffered:2", "stream-per-peer", "posted", "rendezvous"]))
        if draw.chance(0.1):
            self.add("--prefetch=" + draw.pick("123"))
        if not self.for_all and self.is_named() and draw.chance(0.1):
            self.add(f"--layers=E,t*{count * draw.integer(1, 2)},L")
        if not self.for_all and self.is_named() and draw.chance(0.05):
            self.add("--from=" + draw.pick(["one_f_one_b", "zb_h1", "interleaved_1f1b", "zero_bubble_v"]))

    def draw_costs(self, count, chunks):
        draw, digits = self.draw, self.draw.pick([1, 3, 9])
        number = draw.pick([lambda: draw.integer(0, 5), lambda: draw.integer(1, 9), lambda: draw.below(3 * 10**digits) / 10**digits,
                            lambda: draw.pick([0, 1, 1e-9, 1e5])])

        def by_stage(value):
            if draw.chance(0.5):
                return value()
            if self.placement in ("dualpipe", "chimera", "pipes") and draw.chance(0.5):
                return {"down": [value() for _ in range(count)], "up": value()}
            return [value() for _ in range(count)]

        costs = self.costs
        costs["cost"] = {kind: by_stage(number) for kind in draw.subset("FIW", 0.8) + draw.subset("B", 0.2)}
        if draw.chance(0.5):
            costs["latency"] = by_stage(number)
        if self.ranks > 1 and draw.chance(0.15):
            a = draw.below(self.ranks)
            costs["latency"] = {f"{a}-{(a + draw.integer(1, self.ranks - 1)) % self.ranks}": number()}
        memory = {}
        if draw.chance(0.5):
            memory["F"] = by_stage(lambda: draw.integer(0, 4))
        if draw.chance(0.3):
            memory["I"] = by_stage(lambda: draw.pick([0, -1, -2, -0.5, 0.5, 1]))
        if draw.chance(0.1):  # W gives back what is left, with or without `memory`; seldom it does not.
            memory = {"F": draw.integer(1, 4), "I": draw.pick([0, -1, -0.5, 1])}
            memory["W"] = -memory["F"] - memory["I"] - draw.pick([0, 0, 0, 1])
        if memory:
            costs["memory"] = memory
        if draw.chance(0.2):
            costs["static"] = by_stage(lambda: draw.integer(0, 3))
        most = chunks * (self.ranks + 2) * draw.pick([1, 1, 4])
        form = draw.weighted([(None, 21), ("one", 30), ("each", 49)])
        if form:
            costs["limit"] = draw.integer(chunks, most) if form == "one" else [draw.integer(chunks, most) for _ in range(self.ranks)]
        if draw.chance(0.2):
            costs["cost"].update(R=number(), OFFLOAD=number(), RELOAD=number())

    def run(self, tools):
        placement = self.placement
        for name, text in (("pipes", PIPES), ("skips", SKIPS)):
            if placement == name:
                placement = tools.file(f"{name}.pp", text.format(share=self.share))
        for kind, option in (("R", "--recompute"), ("OFFLOAD", "--offload"), ("RELOAD", "--offload")):
            if not self.has(option):
                self.costs["cost"].pop(kind, None)
        tools.file("costs.json", json.dumps(self.costs))
        return tools.ppcc("synthesize", f"--placement={placement}", "--costs=costs.json", "--format=json", "-o", "found.pp", *self.options,
                          seconds=SECONDS)

    def kind(self):
        return ("for M" if self.for_all else "one M") + \
            "".join(f" {word}" for word in ("recompute", "offload") if self.has("--" + word))


def compare(draw, tools, tally):
    problem = Problem(draw)
    done = problem.run(tools)
    if done.returncode:
        codes = diagnostic_codes(done)
        tally[f"{problem.kind()}: {', '.join(codes)}"] += 1
        allowed = set().union(*(codes for option, codes in REFUSED.items() if problem.has(option)))
        expect(codes and allowed.issuperset(codes), "refused for another reason", done.stderr)
        if problem.small and "E1102" in codes:
            head, costs, limits = known(problem, problem.microbatches)
            needs = [sum(costs.activation_memory(0, s) for s, rank in enumerate(problem.stages) if rank == r) for r in range(problem.ranks)]
            expect(any(limit is not None and need > limit for need, limit in zip(needs, limits)), "a limit that would do is refused",
                   done.stderr)
        return
    found = json.loads(done.stdout, parse_float=Fraction)
    tally["found"] += 1
    tally[problem.kind()] += 1
    of_report(tools, tally, problem, found)
    if problem.small:
        of_oracle(draw, tools, tally, problem, found)


def is_near(a, b):
    return math.isclose(a, b, rel_tol=1e-12, abs_tol=2e-9)


def of_report(tools, tally, problem, found):
    """Holds what was said of the schedule against its report."""
    given = [f"-DM={found['microbatches']}"] if problem.for_all else []
    by_data = ["--comm-order=none"] if problem.has("--comm-order=none") else []
    done = tools.ppcc("report", "found.pp", "--format=json", *by_data, *given, seconds=SECONDS)
    expect(done.returncode == 0, "the schedule is refused", done.stderr)
    report = json.loads(done.stdout, parse_float=Fraction)
    span, peaks = max(rank["span"] for rank in report["ranks"]), [rank["peak_memory"] for rank in report["ranks"]]
    expect(is_near(found["makespan"], report["makespan"]), "another makespan than its report's", f"{found['makespan']}, {report['makespan']}")
    expect(is_near(found["span"], span), "another span than its report's", f"{found['span']}, {span}")
    expect_equal(found["peak_memory"], peaks, "other peaks of memory than its report's")
    for peak, limit in zip(peaks, limits_of(problem)):
        expect(limit is None or peak <= limit, "what is found is above its limit", f"{peaks}, {limits_of(problem)}")
    is_span = problem.has("--objective=span")
    value, bound = found["span" if is_span else "makespan"], found["bound"]
    expect(bound <= value, "a bound above what is found", f"{bound}, {value}")
    expect_equal(found["optimal"], value == bound, "optimal, or not")
    gap = (value - bound) / bound if bound else 0
    expect(abs(found["gap"] - gap) <= 1e-6 * max(gap, 1), "another gap", f"{found['gap']}, {gap}")
    # A bound of all choices of what is saved is another one; so is that of spans.
    if not (is_span or problem.has("--recompute") or problem.has("--offload")):
        least, shown = report["resource_bound"], "exact search" in found["why"]
        expect(bound > least if shown else is_near(bound, least), "another bound than its report's", f"{bound}, {least}")
        tally["bounds by exact search"] += shown


def limits_of(problem):
    limits = problem.costs.get("limit")
    return limits if isinstance(limits, list) else [limits] * problem.ranks


def known(problem, m):
    """The head, the costs and the limits of a small problem, as the oracle knows them."""
    costs = problem.costs
    head = Head(problem.ranks, (Pipe("main", 0, m, m, tuple(problem.stages)),), True, dict(KINDS))
    settings = [Setting("cost", kind, Fraction(value), {"stage": s}) for kind, values in costs["cost"].items() for s, value in enumerate(values)]
    settings += [Setting("latency", None, Fraction(costs.get("latency", 0)))]
    settings += [Setting("memory", kind, Fraction(value)) for kind, value in costs.get("memory", {}).items()]
    return head, Costs(head, settings), limits_of(problem)


def of_oracle(draw, tools, tally, problem, found):
    """The same by the oracle, for other numbers of microbatches, too; and a search for an order below the bound."""
    m = found["microbatches"] if problem.for_all else problem.microbatches
    head, costs, limits = known(problem, m)
    on = ["--comm-order=none"] if problem.transport is None else [f"--transport={problem.transport}"]
    chosen = problem.has("--recompute") or problem.has("--offload")
    if not chosen:  # What declared actions take stands in the file.
        done = tools.ppcc("found.pp", "--costs=costs.json", *on, *[f"-DM={m}"] * problem.for_all)
        expect(done.returncode == 0, "what is found does not compile", done.stderr)
        program = from_json(json.loads(done.stdout))
        times = row_times(program, problem.transport, costs)
        memory = MemoryCurve(program, times, costs)
        expect_equal(Fraction(found["makespan"]), rates(program, times, costs)[0], "another makespan than the oracle's")
        expect_equal(Fraction(found["span"]), max(end - begin for begin, end, _ in spans(program, times, costs)), "another span than the oracle's")
        expect_equal(found["peak_memory"], [memory.peak(rank)[0] for rank in range(head.ranks)], "other peaks of memory than the oracle's")
    for one in found.get("formulas", []):
        other = one["from"] + one["modulus"] * draw.integer(0, 3)
        report = tools.ppcc("found.pp", "--costs=costs.json", *on, f"-DM={other}", "--no-families", "--emit=report-json")
        expect(report.returncode == 0, "a number of microbatches that was promised", f"M = {other}: {report.stderr}")
        if not one["makespan"]:
            continue
        real, exact = Fraction(str(json.loads(report.stdout)["makespan"])), one["makespan"]["exact"]
        promised = formula(one["makespan"], other)
        expect(promised == real if exact else promised >= real, "another makespan than promised", f"M = {other}: {promised}, {real}")
        tally["promises"] += 1
    if not problem.for_all and not problem.has("--objective=span") and not chosen:
        mnemonic = "FB" if problem.has("--fused-backward") else "FIW"
        better = find_below_bound(head, costs, mnemonic, limits, Fraction(found["bound"]))
        expect(better is not True, "an order is below the bound", f"bound {found['bound']}")
        tally["no order below the bound" if better is False else "search given up"] += 1


def find_below_bound(head, costs, mnemonic, limits, bound):
    """Whether some order of the actions ends before the bound, by data alone; None when there are too many to look at. Microbatches
    are alike, so each stage does them in order."""
    pipe, count = head.pipes[0], head.pipes[0].end
    last = len(pipe.ranks) - 1
    takes = {(kind, s): costs.kind_time(kind, 0, s) for kind in mnemonic for s in range(last + 1)}
    left = {key: count for key in takes}
    ends, free, held = {}, [Fraction(0)] * head.ranks, [Fraction(0)] * head.ranks
    work = [sum(takes[key] * count for key in takes if pipe.ranks[key[1]] == r) for r in range(head.ranks)]
    seen, nodes = set(), 0
    kept = {s: costs.activation_memory(0, s) for s in range(last + 1)}
    freed_by_i = {s: -costs.value("memory", "I", 0, pipe=0, stage=s) for s in range(last + 1)}

    def start(kind, s):
        """When the next action of a kind and a stage can begin at the earliest; None: something must come before."""
        m = count - left[kind, s]
        rank = pipe.ranks[s]
        needs = {"F": [("F", s - 1)] if s else [], "W": [("I", s)]}.get(kind, [("F", s)] + ([(kind, s + 1)] if s < last else []))
        times = [free[rank]]
        for other, stage in needs:
            if (other, stage, m) not in ends:
                return None
            edge_time = costs.edge_time(0, min(s, stage), max(s, stage), m) if pipe.ranks[stage] != rank else 0
            times.append(ends[other, stage, m] + edge_time)
        if kind == "F" and limits[rank] is not None and held[rank] + kept[s] > limits[rank]:
            return None
        return max(times)

    def branch():
        nonlocal nodes
        nodes += 1
        if nodes > MAX_NODES:
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
            change = {"F": kept[s], "B": -kept[s], "I": -freed_by_i[s], "W": freed_by_i[s] - kept[s]}[kind]
            ends[kind, s, m], free[rank], held[rank] = end, end, held[rank] + change
            left[kind, s] -= 1
            work[rank] -= takes[kind, s]
            result = branch()
            left[kind, s] += 1
            work[rank] += takes[kind, s]
            free[rank], held[rank] = before
            del ends[kind, s, m]
            if result:
                return True
            given_up |= result is None
            if nodes > MAX_NODES:
                return None
        return None if given_up else False

    return branch()
