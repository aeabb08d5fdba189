"""The figures of a run, as docs/reports.md defines them."""

import collections
from fractions import Fraction

from .program import WEIGHTS
from .run import EventGraph, run


def occupies_compute(row):
    """Whether it keeps the rank's compute lane busy."""
    return not row.kind.is_message and row.kind.lane == "compute"


class MemoryCurve:
    """What ranks hold, from change to change."""

    def __init__(self, program, times, costs):
        self.program, self.times, self.costs = program, times, costs
        self.ranks = [self.memory_changes(rank) for rank in range(program.head.ranks)]

    def frees_remainder(self, row):
        return row.kind.role == "compute" and WEIGHTS in row.kind.fills and \
            not self.costs.find(["memory"], [row.kind.mnemonic], pipe=row.pipe, stage=row.stage)

    def restored(self, rank, row):
        """What another action takes in its place, and it gives back."""
        return sum(max(0, self.costs.memory_delta(other)) for other in self.program.rows[rank]
                   if other.kind.restores == row.kind.mnemonic and other[1:4] == row[1:4])

    def static_memory(self, rank):
        return sum(self.costs.value("static", None, 0, pipe=p, stage=s) for p, s in self.program.head.chunks(rank))

    def limit(self, rank):
        return self.costs.value("limit", None, None, rank=rank)

    def memory_changes(self, rank):
        """The changes of a rank: when, by which row, what it holds then, how many activations, what each pair holds."""
        events = []
        for i, key in enumerate(key for key in self.program.row_ids if key[0] == rank and not self.program.row(key).kind.is_message):
            begin, end = self.times[key]
            first = self.program.row_ids.index(self.program.item_rows[key][0])
            # At one moment what ends gives back first, unless it began then too.
            events.append(((begin, 1, first, 0, i), key, True))
            events.append(((end, int(begin == end), first, 1, i), key, False))
        total, active, live, changes = self.static_memory(rank), 0, collections.Counter(), []
        for (when, *_), key, begins in sorted(events):
            row = self.program.row(key)
            amount = self.costs.memory_delta(row) * (1 if self.program.head.home(row) == rank else -1)
            if begins:
                change = max(0, amount)
                active += row.kind.stores_activation
            else:
                change = -live[row[1:4]] if self.frees_remainder(row) else min(0, amount) - self.restored(rank, row)
                active -= row.kind.role == "compute" and WEIGHTS in row.kind.fills
            total += change
            live[row[1:4]] += change
            changes.append((when, row, total, active, dict(live)))
        return changes

    def peak(self, rank):
        """The most that a rank holds, the first moment when it does, by which action, and what is held then by stage."""
        best = (self.static_memory(rank), 0, None, {})
        for when, row, total, _, live in self.ranks[rank]:
            if total > best[0]:
                best = (total, when, row, live)
        live_microbatches = collections.defaultdict(list)
        for (pipe, stage, mb), amount in best[3].items():
            if amount and mb >= 0:
                live_microbatches[pipe, stage].append((mb, amount))
        stages = {stage: (len(ones), min(ones)[0], max(ones)[0], sum(amount for _, amount in ones)) for stage, ones in live_microbatches.items()}
        return (*best[:3], stages)

    def final(self, rank):
        return self.ranks[rank][-1][2] if self.ranks[rank] else self.static_memory(rank)

    def peak_activations(self, rank):
        return max([active for _, _, _, active, _ in self.ranks[rank]], default=0)


def spans(program, times, costs):
    """By rank: the start of its first compute action, the end of its last, and what its compute actions take."""
    result = []
    for r, rank in enumerate(program.items):
        keys = [(r, i) for i, row in enumerate(program.rows[r]) if occupies_compute(row)]
        begin, end = min((times[key][0] for key in keys), default=0), max((times[key][1] for key in keys), default=0)
        result.append((begin, end, sum(costs.group_time(item) for item in rank if occupies_compute(item[0]))))
    return result


def rates(program, times, costs):
    """The makespan, and the shares of the longest span and of the makespan that are not work."""
    makespan = max([end for _, end in times.values()], default=Fraction(0))
    by_rank = spans(program, times, costs)
    work = Fraction(sum(busy for _, _, busy in by_rank)) / len(by_rank)
    longest = max(end - begin for begin, end, _ in by_rank)
    return makespan, *[(whole - work) / whole if whole else Fraction(0) for whole in (longest, makespan)]


def limiting_computes(graph, times, event):
    """The compute rows that may have let an event happen no sooner, each at the end of a way back along which each event waited
    for the one before it; None where it leads to the begin."""
    found = set()
    for other, delay in graph.predecessors[event]:
        if times[other] + delay == times[event]:
            key, ending = other
            found |= {key} if ending and occupies_compute(graph.program.row(key)) else limiting_computes(graph, times, other)
    return found or {None}


def causes(graph, times, rank, event, begin, end):
    """What a rank waited for from `begin` until `end`, for an event: lists of pairs of a cause and its time, each of which may be
    reported."""
    alternatives = []
    lanes = [other for other, delay in graph.predecessors[event] if times[other] + delay == times[event] and other[1] and
             graph.program.row(other[0]).kind.role == "declared" and not occupies_compute(graph.program.row(other[0]))]
    if lanes:
        alternatives.append([("lane", end - begin)])
    for key in limiting_computes(graph, times, event):
        # Another rank, as long as that computes what is needed; from then on it is on its way, or queued.
        split = min(max(times[key, 1], begin), end) if key and key[0] != rank else begin
        alternatives.append([(f"rank {key[0]}", split - begin), ("communication", end - split)] if key else [("communication", end - begin)])
    return alternatives


def bubbles(program, transport, costs):
    """By rank, for each time without work: its begin and end, the phase of what waits, and what `causes` gives."""
    transport = transport if program.has_messages() else None
    graph = EventGraph(program if transport else program.without_messages(), transport, costs)
    program, times, result = graph.program, run(graph), []
    for r, rank in enumerate(program.rows):
        gaps, free = [], 0
        for i, row in enumerate(rank):
            key = (r, i)
            if occupies_compute(row) and key == program.item_rows[key][0]:
                start, end = times[key, 0], times[key, 1]
                alternatives = [alternative for one in program.item_rows[key] for alternative in causes(graph, times, r, (one, 0), free, start)]
                gaps.append((free, start, row.phase, alternatives))
                if row.kind.is_collective:  # It waits for the others.
                    late = end - costs.time(row)
                    gaps.append((start, late, row.phase, causes(graph, times, r, (key, 1), start, late)))
                free = max(free, end)
        gaps.append((free, max(times.values(), default=0), "", [[("end", max(times.values(), default=0) - free)]]))
        result.append([gap for gap in gaps if gap[0] < gap[1]])
    return result
