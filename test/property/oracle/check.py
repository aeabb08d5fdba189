"""Whether the rows of a program do all of the work, in an order that can be run: every reason why not, each by a word."""

import collections

from .program import GRADIENT, OUTPUT, WEIGHTS
from .run import EventGraph, run


def violations(program, costs):
    """Of a program, but for its messages themselves."""
    without_messages = program.without_messages()
    reasons = completeness(without_messages) | declared_violations(program)
    reasons |= {word for word, found in [("order", violates_order(program)), ("group", violates_grouping(without_messages)), ("collective order", collectives_out_of_order(without_messages)),
                                         ("offloaded twice", moved_twice(without_messages, costs)),
                                         ("restores too much", restores_too_much(without_messages, costs))] if found}
    graph = EventGraph(without_messages, with_collectives=False)  # With collectives it is a question of the transport.
    if len(run(graph)) < len(graph.predecessors):
        reasons.add("deadlock")
    return reasons


def dependences(program):
    """Pairs of rows of which the first needs the second."""
    return EventGraph(program, "stream" if program.has_messages() else None).dependences


def completeness(program):
    times = collections.Counter((row.pipe, row.stage, slot, row.mb) for rank in program.rows for row in rank
                                for slot in (row.kind.fills if row.kind.role == "compute" else ""))
    reasons = set()
    if not program.head.backward and any(slot != OUTPUT for _, _, slot, _ in times):
        reasons.add("backward")
    for p, pipe in enumerate(program.head.pipes):
        for stage, rank in enumerate(pipe.ranks):
            if len(pipe.ranks) > 1 and not pipe.sources(stage) + pipe.readers(stage):
                reasons.add("isolated stage")
            for mb in range(pipe.first, pipe.end):
                for slot in [OUTPUT, GRADIENT, WEIGHTS] if program.head.backward else [OUTPUT]:
                    if times[p, stage, slot, mb] != 1:
                        reasons.add("duplicate" if times[p, stage, slot, mb] else "missing")
    return reasons


def declared_violations(program):
    """What declared actions ask for."""
    reasons, graph = set(), EventGraph(program, "stream" if program.has_messages() else None)
    head, used = program.head, {row.kind.mnemonic for rank in program.rows for row in rank}
    own = [key for key in program.row_ids if program.row(key).kind.role == "declared" and
           head.home(program.row(key)) == key[0]]
    times = collections.Counter(program.row(key)[:4] for key in own)
    for key in own:
        row = program.row(key)
        if times[row[:4]] > 1:
            reasons.add("duplicate")
        for choice in row.kind.after + row.kind.before:
            if not any(head.kinds[mnemonic].is_message and not program.has_messages() or graph.rows_in_scope(key, mnemonic)
                       for mnemonic in choice):
                reasons.add("related action missing")
        if row.kind.is_collective:
            wanted = collective_ranks(head, row)
            if wanted is None:
                reasons.add("not a member")
            elif not wanted <= set(graph.collective(key)):
                reasons.add("far end" if row.kind.is_transfer else "absent")
    for key in program.row_ids:  # A far end needs the near one.
        row = program.row(key)
        if row.kind.is_transfer and head.home(row) != key[0] and not collective_ranks(head, row) <= set(graph.collective(key)):
            reasons.add("far end")
    ends = collections.Counter((key[0], *program.row(key)[:4]) for key in program.row_ids if program.row(key).kind.is_transfer)
    if any(count > 1 for count in ends.values()):
        reasons.add("duplicate")
    for kind in head.kinds.values():
        if kind.required and kind.mnemonic in used:
            there = {row[1:4] for rank in program.rows for row in rank if row.kind == kind}
            if kind.per == "rank":
                wanted = {(*head.chunks(r)[0], -1) for r in range(head.ranks) if head.chunks(r)}
            else:
                wanted = {(p, stage, mb) for p, pipe in enumerate(head.pipes) for stage in range(len(pipe.ranks))
                          for mb in (range(pipe.first, pipe.end) if kind.per == "microbatch" else [-1])}
            if wanted - there:
                reasons.add("required")
    return reasons


def collective_ranks(head, row):
    """The ranks that have to join a collective; None when this one does not belong to it."""
    pipe, collective = head.pipes[row.pipe], row.kind.collective
    if collective == "all":
        return set(range(head.ranks))
    if row.kind.is_transfer:
        return {pipe.ranks[row.stage], pipe.ranks[row.peer]}
    if collective == "replicas":
        return {other.ranks[row.stage] for other in head.pipes if row.stage < len(other.ranks)}
    stages = [s + len(pipe.ranks) if s < 0 else s for s in collective]
    return {pipe.ranks[s] for s in stages if 0 <= s < len(pipe.ranks)} if row.stage in stages else None


def violates_order(program):
    """Whether some action stands before another one of its rank that it needs."""
    return any(key[0] == other[0] and other[1] > key[1] and other not in program.item_rows[key]
               for key, other in dependences(program))


def violates_grouping(program):
    """Whether members of a group need each other, or must not be in one."""
    return any(other in program.item_rows[key] for key, other in dependences(program)) or \
        any(len(item) > 1 and (row.kind.lane != "compute" or row.kind.collective)
            for rank in program.items for item in rank for row in item)


def collectives_out_of_order(program):
    """Whether the ranks do not have the collectives of some lane in one order."""
    graph = EventGraph(program)
    for lane in {row.kind.lane for rank in program.rows for row in rank}:
        lists = [[] for _ in program.rows]
        for key in program.row_ids:
            kind = program.row(key).kind
            if kind.lane == lane and kind.is_collective and graph.collective(key)[key[0]] == key:
                lists[key[0]].append(graph.collective(key))
        while any(lists):
            ready = [members for first in lists for members in first[:1]
                     if all(lists[rank][:1] == [members] for rank in members)]
            if not ready:
                return True
            lists = [[one for one in rank if one not in ready] for rank in lists]
    return False


def restores_too_much(program, costs):
    """Whether an action restores more than the other one took."""
    return any(costs.memory_delta(row) > max(0, costs.memory_delta(row._replace(kind=program.head.kinds[row.kind.restores])))
               for rank in program.rows for row in rank if row.kind.restores)


def moved_twice(program, costs):
    """Whether actions move away more than a stage keeps of a microbatch, before something brings it back."""
    for number, rank in enumerate(program.rows):
        taken, away = collections.Counter(), collections.Counter()
        restored = {row[1:4]: row for row in rank if row.kind.restores}  # What is restored is given up first.
        for row in rank:
            amount = costs.memory_delta(row)
            if row.kind.is_message or row.mb < 0 or program.head.home(row) != number:
                continue
            if row.kind.role == "compute":
                taken[row[1:4]] += max(0, amount)
                if row[1:4] in restored and restored[row[1:4]].kind.restores == row.kind.mnemonic:
                    away[row[1:4]] += max(0, costs.memory_delta(restored[row[1:4]]))
            elif amount < 0 and away[row[1:4]] and away[row[1:4]] - amount > taken[row[1:4]]:
                return True
            else:
                away[row[1:4]] = max(0, away[row[1:4]] - amount)
    return False


def messages_of(head):
    """What messages there have to be: what they carry, the pipe, the stages that send and receive, and the microbatch."""
    return {(slot, p, *((low, high) if slot == OUTPUT else (high, low)), mb) for p, pipe in enumerate(head.pipes)
            for low, high in pipe.edges() if pipe.ranks[low] != pipe.ranks[high]
            for slot in (OUTPUT, GRADIENT)[:1 + head.backward] for mb in range(pipe.first, pipe.end)}


def message_violations(program):
    """What is wrong with the messages of a program whose rows are right without them."""
    reasons, head = set(), program.head
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    for key in program.row_ids:
        row = program.row(key)
        if row.kind.is_message:
            (sent if row.kind.role == "send" else received)[program.ends(key)].append(program.label(key))
    for pair in sorted({*sent, *received}):
        if sent[pair] != received[pair] or len(set(sent[pair])) < len(sent[pair]) or pair[0] == pair[1]:
            reasons.add("unmatched")
    wanted = messages_of(head)
    if wanted != {label for labels in sent.values() for label in labels}:
        reasons.add("wrong messages")
    for rank in program.items:
        available = set()  # What the rank has made or received so far.
        for item in rank:
            for row in item:
                if row.kind.role == "send" and (row.kind.fills, row.pipe, row.stage, row.mb) not in available:
                    reasons.add("no value to send")
                if row.kind.role == "compute":
                    remote_inputs = [(slot, stage) for slot, stages in [(OUTPUT, head.pipes[row.pipe].sources(row.stage)),
                                                              (GRADIENT, head.pipes[row.pipe].readers(row.stage))]
                           for stage in stages if slot in row.kind.fills and
                           head.pipes[row.pipe].ranks[stage] != head.home(row)]
                    if any((slot, row.pipe, stage, row.mb, row.stage) not in available for slot, stage in remote_inputs):
                        reasons.add("input missing")
            for row in item:
                if row.kind.role == "recv":
                    available.add((row.kind.fills, row.pipe, row.peer, row.mb, row.stage))
                elif row.kind.role == "compute":
                    available |= {(slot, row.pipe, row.stage, row.mb) for slot in row.kind.fills}
    return reasons


def first_readers(items):
    """Of a rank: from each receive, by item and place in it, to the item that reads it first; the end for one that nobody reads."""
    reading = {}
    for i, item in enumerate(items):
        for row in item:
            for slot in row.kind.fills if row.kind.role == "compute" else "":
                reading.setdefault((slot, row.pipe, row.stage, row.mb), i)
    return {(i, j): reading.get((row.kind.fills, row.pipe, row.stage, row.mb), len(items))
            for i, item in enumerate(items) for j, row in enumerate(item) if row.kind.role == "recv"}


def outstanding_receives(items):
    """Of a rank, at each item with receives: those that are posted and not yet read, as pairs of the row and the item that reads."""
    reads = first_readers(items)
    for i in sorted({at for at, _ in reads}):
        yield [(items[at][j], reader) for (at, j), reader in reads.items() if at <= i < reader]


def peak_receive_buffers(program):
    """The most receives that are posted and not yet read: by rank; by rank and edge; and by edge, where those that one item reads
    count as one."""
    ranks, edges, ahead = [0] * len(program.items), collections.Counter(), 0
    for r, items in enumerate(program.items):
        for now in outstanding_receives(items):
            ranks[r] = max(ranks[r], len(now))
            of_edge = collections.defaultdict(list)
            for row, reader in now:
                of_edge[row.kind.mnemonic, row.pipe, row.stage, row.peer].append(reader)
            for edge, found in of_edge.items():
                edges[edge] = max(edges[edge], len(found))
                ahead = max(ahead, len(set(found)))
    return ranks, edges, ahead
