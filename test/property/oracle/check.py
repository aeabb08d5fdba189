"""Whether the rows of a program do all of the work, in an order that can be run: every reason why not, each by a word."""

import collections

from .program import GRADIENT, OUTPUT, WEIGHTS
from .run import Waits, run


def reasons_of(program, costs):
    """Of a program, but for its messages themselves."""
    alone = program.without_messages()
    reasons = completeness(alone) | declared(program)
    reasons |= {word for word, found in [("order", order(program)), ("group", groups(alone)), ("meetings", meetings(alone)),
                                         ("moved twice", moved_twice(alone, costs)),
                                         ("restores more", restores_more(alone, costs))] if found}
    waits = Waits(alone, meet=False)  # With collectives it is a question of the transport.
    if len(run(waits)) < len(waits.after):
        reasons.add("deadlock")
    return reasons


def needs(program):
    """Pairs of rows of which the first needs the second."""
    return Waits(program, "stream" if program.has_messages() else None).needs


def completeness(program):
    times = collections.Counter((row.pipe, row.stage, slot, row.mb) for rank in program.rows for row in rank
                                for slot in (row.kind.fills if row.kind.role == "compute" else ""))
    reasons = set()
    if not program.head.backward and any(slot != OUTPUT for _, _, slot, _ in times):
        reasons.add("backward")
    for p, pipe in enumerate(program.head.pipes):
        for stage, rank in enumerate(pipe.ranks):
            if len(pipe.ranks) > 1 and not pipe.sources(stage) + pipe.readers(stage):
                reasons.add("alone")
            for mb in range(pipe.first, pipe.end):
                for slot in [OUTPUT, GRADIENT, WEIGHTS] if program.head.backward else [OUTPUT]:
                    if times[p, stage, slot, mb] != 1:
                        reasons.add("twice" if times[p, stage, slot, mb] else "missing")
    return reasons


def declared(program):
    """What declared actions ask for."""
    reasons, waits = set(), Waits(program, "stream" if program.has_messages() else None)
    head, used = program.head, {row.kind.letters for rank in program.rows for row in rank}
    own = [key for key in program.keys if program.row(key).kind.role == "declared" and
           head.home(program.row(key)) == key[0]]
    times = collections.Counter(program.row(key)[:4] for key in own)
    for key in own:
        row = program.row(key)
        if times[row[:4]] > 1:
            reasons.add("twice")
        for choice in row.kind.after + row.kind.before:
            if not any(head.kinds[letters].is_message and not program.has_messages() or waits.shared(key, letters)
                       for letters in choice):
                reasons.add("lacks other")
        if row.kind.meets:
            wanted = ranks_of_meeting(head, row)
            if wanted is None:
                reasons.add("not a member")
            elif not wanted <= set(waits.meeting(key)):
                reasons.add("absent")
    for key in program.keys:  # A far end needs the near one.
        row = program.row(key)
        if row.kind.between_ranks and head.home(row) != key[0] and not ranks_of_meeting(head, row) <= set(waits.meeting(key)):
            reasons.add("absent")
    ends = collections.Counter((key[0], *program.row(key)[:4]) for key in program.keys if program.row(key).kind.between_ranks)
    if any(count > 1 for count in ends.values()):
        reasons.add("twice")
    for kind in head.kinds.values():
        if kind.required and kind.letters in used:
            there = {row[1:4] for rank in program.rows for row in rank if row.kind == kind}
            if kind.per == "rank":
                wanted = {(*head.chunks(r)[0], -1) for r in range(head.ranks) if head.chunks(r)}
            else:
                wanted = {(p, stage, mb) for p, pipe in enumerate(head.pipes) for stage in range(len(pipe.ranks))
                          for mb in (range(pipe.first, pipe.end) if kind.per == "microbatch" else [-1])}
            if wanted - there:
                reasons.add("required")
    return reasons


def ranks_of_meeting(head, row):
    """The ranks that have to join a collective; None when this one does not belong to it."""
    pipe, meeting = head.pipes[row.pipe], row.kind.collective
    if meeting == "all":
        return set(range(head.ranks))
    if row.kind.between_ranks:
        return {pipe.ranks[row.stage], pipe.ranks[row.peer]}
    if meeting == "replicas":
        return {other.ranks[row.stage] for other in head.pipes if row.stage < len(other.ranks)}
    stages = [s + len(pipe.ranks) if s < 0 else s for s in meeting]
    return {pipe.ranks[s] for s in stages if 0 <= s < len(pipe.ranks)} if row.stage in stages else None


def order(program):
    """Whether some action stands before another one of its rank that it needs."""
    return any(key[0] == other[0] and other[1] > key[1] and other not in program.part[key]
               for key, other in needs(program))


def groups(program):
    """Whether members of a group need each other, or must not be in one."""
    return any(other in program.part[key] for key, other in needs(program)) or \
        any(len(item) > 1 and (row.kind.lane != "compute" or row.kind.collective)
            for rank in program.items for item in rank for row in item)


def meetings(program):
    """Whether the ranks do not have the collectives of some lane in one order."""
    waits = Waits(program)
    for lane in {row.kind.lane for rank in program.rows for row in rank}:
        lists = [[] for _ in program.rows]
        for key in program.keys:
            kind = program.row(key).kind
            if kind.lane == lane and kind.meets and waits.meeting(key)[key[0]] == key:
                lists[key[0]].append(waits.meeting(key))
        while any(lists):
            ready = [members for first in lists for members in first[:1]
                     if all(lists[rank][:1] == [members] for rank in members)]
            if not ready:
                return True
            lists = [[one for one in rank if one not in ready] for rank in lists]
    return False


def restores_more(program, costs):
    """Whether an action restores more than the other one took."""
    return any(costs.amount(row) > max(0, costs.amount(row._replace(kind=program.head.kinds[row.kind.restores])))
               for rank in program.rows for row in rank if row.kind.restores)


def moved_twice(program, costs):
    """Whether actions move away more than a stage keeps of a microbatch, before something brings it back."""
    for number, rank in enumerate(program.rows):
        taken, away = collections.Counter(), collections.Counter()
        for row in rank:
            amount = costs.amount(row)
            if row.kind.is_message or row.mb < 0 or program.head.home(row) != number:
                continue
            if row.kind.role == "compute":
                taken[row[1:4]] += max(0, amount)
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


def message_reasons(program):
    """What is wrong with the messages of a program whose rows are right without them."""
    reasons, head = set(), program.head
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    for key in program.keys:
        row = program.row(key)
        if row.kind.is_message:
            (sent if row.kind.role == "send" else received)[program.ends(key)].append(program.label(key))
    for pair in sorted({*sent, *received}):
        if sent[pair] != received[pair] or len(set(sent[pair])) < len(sent[pair]) or pair[0] == pair[1]:
            reasons.add("unmatched")
    wanted = messages_of(head)
    if wanted != {label for labels in sent.values() for label in labels}:
        reasons.add("other messages")
    for rank in program.items:
        there = set()  # What the rank has made or received so far.
        for item in rank:
            for row in item:
                if row.kind.role == "send" and (row.kind.fills, row.pipe, row.stage, row.mb) not in there:
                    reasons.add("nothing to send")
                if row.kind.role == "compute":
                    far = [(slot, stage) for slot, stages in [(OUTPUT, head.pipes[row.pipe].sources(row.stage)),
                                                              (GRADIENT, head.pipes[row.pipe].readers(row.stage))]
                           for stage in stages if slot in row.kind.fills and
                           head.pipes[row.pipe].ranks[stage] != head.home(row)]
                    if any((slot, row.pipe, stage, row.mb, row.stage) not in there for slot, stage in far):
                        reasons.add("runs without")
            for row in item:
                if row.kind.role == "recv":
                    there.add((row.kind.fills, row.pipe, row.peer, row.mb, row.stage))
                elif row.kind.role == "compute":
                    there |= {(slot, row.pipe, row.stage, row.mb) for slot in row.kind.fills}
    return reasons


def readers(items):
    """Of a rank: from each receive, by item and place in it, to the item that reads it first; the end for one that nobody reads."""
    reading = {}
    for i, item in enumerate(items):
        for row in item:
            for slot in row.kind.fills if row.kind.role == "compute" else "":
                reading.setdefault((slot, row.pipe, row.stage, row.mb), i)
    return {(i, j): reading.get((row.kind.fills, row.pipe, row.stage, row.mb), len(items))
            for i, item in enumerate(items) for j, row in enumerate(item) if row.kind.role == "recv"}


def posted(items):
    """Of a rank, at each item with receives: those that are posted and not yet read, as pairs of the row and the item that reads."""
    reads = readers(items)
    for i in sorted({at for at, _ in reads}):
        yield [(items[at][j], reader) for (at, j), reader in reads.items() if at <= i < reader]


def buffers(program):
    """The most receives that are posted and not yet read: by rank; by rank and edge; and by edge, where those that one item reads
    count as one."""
    ranks, edges, ahead = [0] * len(program.items), collections.Counter(), 0
    for r, items in enumerate(program.items):
        for now in posted(items):
            ranks[r] = max(ranks[r], len(now))
            of_edge = collections.defaultdict(list)
            for row, reader in now:
                of_edge[row.kind.letters, row.pipe, row.stage, row.peer].append(reader)
            for edge, found in of_edge.items():
                edges[edge] = max(edges[edge], len(found))
                ahead = max(ahead, len(set(found)))
    return ranks, edges, ahead
