"""Runs programs: whether all their actions end on a transport, and when. The rules are those of docs/verification.md.

An event is a row and 0 for its start or 1 for its end. Each rule says that an event comes after another one, and how long
after. What can happen never stops being possible, so one run tells for all."""

import collections
from typing import NamedTuple

from .program import OUTPUT, GRADIENT, Costs

UNBOUNDED = 10**9


class Transport(NamedTuple):
    queue: object  # From a message's kind and the rank at its other end to the queue that it runs in.
    capacity: object  # Messages under way on a pair before a send waits; None: it waits until its receive has started.


def one_queue(kind, peer):
    return "compute"


def by_edge(kind, peer):
    return f"{'to' if kind.role == 'send' else 'from'} {peer}"


TRANSPORTS = {
    "buffered": Transport(one_queue, UNBOUNDED),
    "buffered:1": Transport(one_queue, 1),
    "buffered:2": Transport(one_queue, 2),
    "rendezvous": Transport(one_queue, None),
    "posted": Transport(by_edge, UNBOUNDED),
    "stream": Transport(lambda kind, peer: "comm", None),
    "stream-per-peer": Transport(lambda kind, peer: f"comm {peer}", None),
    "stream-per-edge": Transport(by_edge, None),
}


class EventGraph:
    """From each event to what it waits for: pairs of an event and the time that must have gone by since it."""

    def __init__(self, program, transport=None, costs=None, with_collectives=True):
        """Without `meet` ranks do not wait for each other in collectives."""
        self.program, self.head, self.with_collectives = program, program.head, with_collectives
        self.transport = TRANSPORTS[transport] if transport else None
        self.costs = costs or Costs(program.head)
        self.predecessors = {(key, side): [] for key in program.row_ids for side in (0, 1)}
        self.dependences = []  # Pairs of a row and one that it needs, by data or by a rule.
        self.missing = []  # Rows whose data nobody brings.
        self.index()
        for rank in range(len(program.rows)):
            self.queues(rank)
        for key in program.row_ids:
            self.data(key)
            self.rules(key)
            self.end(key)
        self.add_in_flight_waits()

    def index(self):
        self.rows_of = collections.defaultdict(list)  # By rank and mnemonic.
        self.producers = collections.defaultdict(list)  # Who makes or receives a slot: by slot, pipe, stage, microbatch, reader.
        self.messages = collections.defaultdict(list)  # The sends, or receives, of a pair of ranks.
        for key in self.program.row_ids:
            row, kind = self.program.row(key), self.program.row(key).kind
            self.rows_of[key[0], row.kind.mnemonic].append(key)
            if kind.is_message:
                self.messages[self.program.ends(key), kind.role].append(key)
            if kind.role == "recv":
                self.producers[key[0], kind.fills, row.pipe, row.peer, row.mb, row.stage].append(key)
            if kind.role == "compute":
                for slot in kind.fills:
                    self.producers[key[0], slot, row.pipe, row.stage, row.mb, None].append(key)

    def add_wait(self, key, others, delay=0):
        """The start of a row, and of all that starts with it, comes behind the ends of others, and of all that end with them."""
        for one in self.program.item_rows[key]:
            self.predecessors[one, 0] += [((also, 1), delay) for other in others for also in self.program.item_rows[other]]

    # Each queue runs in order; what is in no queue of the compute actions is issued behind those before it.

    def queue(self, key):
        kind = self.program.row(key).kind
        if kind.is_message:
            there = self.program.ends(key)
            return self.transport.queue(kind, there[1] if there[0] == key[0] else there[0])
        if kind.lane == "comm" and self.transport:
            queue = self.transport.queue(kind, None)
            return queue if queue in ("compute", "comm") else "comm"
        return kind.lane

    def queues(self, rank):
        last = {}
        for key in [(rank, i) for i in range(len(self.program.rows[rank]))]:
            part = self.program.item_rows[key]
            if key != part[0]:
                continue
            queues = {self.queue(one) for one in part}
            for queue in queues | {"compute"}:
                if queue in last:
                    self.add_wait(key, [last[queue]])
            last.update((queue, key) for queue in queues)

    # What a row reads must be there.

    def inputs(self, key):
        """Of a row: slot, stage, microbatch of what it reads."""
        row = self.program.row(key)
        kind, pipe = row.kind, self.head.pipes[row.pipe]
        if kind.role == "send":
            return [(kind.fills, row.stage, row.mb)]
        if kind.role != "compute":
            return []
        found = [(slot, row.stage, row.mb) for slot in kind.reads]
        if OUTPUT in kind.fills:
            found += [(OUTPUT, stage, row.mb) for stage in pipe.sources(row.stage)]
            found += [(OUTPUT, row.stage, mb) for mb in [pipe.slice_before(row.mb)] if mb is not None]
        if GRADIENT in kind.fills:
            found += [(GRADIENT, stage, row.mb) for stage in pipe.readers(row.stage)]
            found += [(GRADIENT, row.stage, mb) for mb in [pipe.slice_after(row.mb)] if mb is not None]
        return found

    def data(self, key):
        row = self.program.row(key)
        for slot, stage, mb in self.inputs(key):
            there = self.head.pipes[row.pipe].ranks[stage]
            if there == key[0]:
                producers, delay = self.producers[there, slot, row.pipe, stage, mb, None], 0
            elif self.transport:
                producers, delay = self.producers[key[0], slot, row.pipe, stage, mb, row.stage], 0
            else:
                producers = self.producers[there, slot, row.pipe, stage, mb, None]
                delay = self.costs.edge_time(row.pipe, stage, row.stage, mb)
            if not producers:
                self.missing.append((key, slot, stage, mb))
            self.add_dependence(key, producers, delay)

    def add_dependence(self, key, others, delay=0):
        self.dependences += [(key, other) for other in others]
        self.add_wait(key, others, delay)

    # What declarations say.

    def rules(self, key):
        row = self.program.row(key)
        kind = row.kind
        for mnemonic in [one for choice in kind.after for one in choice]:
            self.add_dependence(key, self.rows_in_scope(key, mnemonic))
        for mnemonic in [one for choice in kind.before for one in choice]:
            for other in self.rows_in_scope(key, mnemonic):
                self.add_dependence(other, [key])

    def rows_in_scope(self, key, mnemonic):
        """The rows of a kind on its rank that share stage and microbatch with a row, as far as both have them."""
        row, other = self.program.row(key), self.head.kinds[mnemonic]
        found = []
        for one in self.rows_of[key[0], mnemonic]:
            there = self.program.row(one)
            if "rank" not in (row.kind.per, other.per) and (there.pipe, there.stage) != (row.pipe, row.stage):
                continue
            if min(row.mb, there.mb) < 0 or row.mb == there.mb:
                found.append(one)
        return found

    def add_in_flight_waits(self):
        """Of `in_flight n`: the next compute action waits for the one n before."""
        for r, rank in enumerate(self.program.rows):
            issued = collections.defaultdict(list)
            for i, row in enumerate(rank):
                if row.kind.lane == "compute" and not row.kind.is_message:
                    for mnemonic, keys in issued.items():
                        self.add_wait((r, i), keys[:-self.head.kinds[mnemonic].in_flight])
                if row.kind.in_flight:
                    issued[row.kind.mnemonic].append((r, i))

    # When rows end.

    def end(self, key):
        kind, row = self.program.row(key).kind, self.program.row(key)
        waits = self.predecessors[key, 1]
        if kind.is_message:
            waits += self.message_end_waits(key, kind.role)
        elif kind.is_collective and self.with_collectives:
            waits += [((other, 0), self.costs.time(row)) for other in {**self.collective(key), key[0]: key}.values()]
        else:
            waits.append(((key, 0), self.costs.group_time([self.program.row(one) for one in self.program.item_rows[key]])))

    def collective(self, key):
        """Who runs a collective together with this row, by rank. A rank that has several such rows joins with the first."""
        row, found = self.program.row(key), {}
        for other in self.program.row_ids:
            there = self.program.row(other)
            same = (there.kind, there.mb) == (row.kind, row.mb)
            if row.kind.is_transfer:
                same &= (there.pipe, there.stage) == (row.pipe, row.stage)
            elif row.kind.collective == "replicas":
                same &= there.stage == row.stage
            elif row.kind.collective == "all":
                same = same and self.number(other) == self.number(key)
            else:
                same &= there.pipe == row.pipe
            if same:
                found.setdefault(other[0], other)
        return found

    def number(self, key):
        """Of all actions of a kind on a rank, the n-th of one meets the n-th of another."""
        return self.rows_of[key[0], self.program.row(key).kind.mnemonic].index(key)

    def message_end_waits(self, key, role):
        pair, (_, pipe, source, reader, mb) = self.program.ends(key), self.program.label(key)
        sends, receives = self.messages[pair, "send"], self.messages[pair, "recv"]
        edge_time = self.costs.edge_time(pipe, source, reader, mb)
        number = (sends if role == "send" else receives).index(key)
        if number >= len(sends) or number >= len(receives):
            return [((key, 1), 0)]  # Never: nobody is at its other end.
        if self.transport.capacity is None:
            return [((sends[number], 0), edge_time), ((receives[number], 0), edge_time)]
        if role == "recv":
            return [((key, 0), 0), ((sends[number], 1), edge_time)]
        before = number - self.transport.capacity
        return [((key, 0), 0)] + ([((receives[before], 1), 0)] if before >= 0 else [])


def run(graph):
    """When each event happens; those that never happen are left out."""
    times, changed = {}, True
    while changed:
        changed = False
        for event, others in graph.predecessors.items():
            if event not in times and all(other in times for other, _ in others):
                times[event] = max([times[other] + delay for other, delay in others], default=0)
                changed = True
    return times


def is_deadlock_free(program, transport):
    """Whether all actions of a program end on a transport, however long they take."""
    graph = EventGraph(program, transport)
    return not graph.missing and len(run(graph)) == len(graph.predecessors)


def row_times(program, transport, costs):
    """From each row to its start and end on a transport, or by data alone for None; None when some never end. A batch ends when
    all of its messages have ended. A program without messages runs by data alone."""
    transport = transport if program.has_messages() else None
    graph = EventGraph(program if transport else program.without_messages(), transport, costs)
    times = run(graph)
    if graph.missing or len(times) < len(graph.predecessors):
        return None
    return {key: (times[key, 0], max(times[one, 1] for one in graph.program.item_rows[key])) for key in graph.program.row_ids}


def blocked_rows(program, transport):
    """The rows that have started, or could start but for their queue, and never end."""
    graph = EventGraph(program, transport)
    times = run(graph)
    return [key for key in program.row_ids if (key, 0) in times and (key, 1) not in times]
