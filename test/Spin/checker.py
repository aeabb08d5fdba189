"""Judges the communication of small programs by playing them, slowly and plainly, without a line of the compiler."""

import collections
import re
from typing import NamedTuple, Optional

CELL = re.compile(r"(\d+)([A-Z_]+?)(\d+)(?:[<>](\d+))?$")
ITEM = re.compile(r"\([^)]*\)\S*|\S+")

# What a stage's work on a microbatch makes, and what of the same stage it reads.
MAKES = {"F": "F", "B": "GW", "I": "G", "W": "W"}
READS = {"F": "", "B": "F", "I": "F", "W": "G"}


class Cell(NamedTuple):
    stage: int
    kind: str
    mb: int
    peer: Optional[int] = None

    @property
    def is_send(self):
        return self.kind.startswith("SEND")

    @property
    def is_receive(self):
        return self.kind.startswith("RECV")

    @property
    def is_message(self):
        return self.is_send or self.is_receive

    @property
    def slot(self):
        """Of a message: what it carries."""
        return "F" if self.kind.endswith("_F") else "G"

    @property
    def other(self):
        """Of a message: the stage at its other end."""
        if self.peer is not None:
            return self.peer
        return self.stage + (1 if self.is_send == (self.slot == "F") else -1)

    @property
    def label(self):
        """Equal at both ends of a message: what is carried, from where, to where, of which microbatch."""
        ends = (self.stage, self.other) if self.is_send else (self.other, self.stage)
        return (self.slot, *ends, self.mb)

    def __str__(self):
        mark = "" if self.peer is None else f"{'>' if self.is_send else '<'}{self.peer}"
        return f"{self.stage}{self.kind}{self.mb}{mark}"


def parse_cell(text):
    stage, kind, mb, peer = CELL.match(text).groups()
    return Cell(int(stage), kind, int(mb), None if peer is None else int(peer))


def parse_rank(text):
    """The items of a rank, each a tuple of cells: one, or the members of a group."""
    return [tuple(map(parse_cell, members(item))) for item in ITEM.findall(text)]


def members(item):
    """The cells of `(0F1;1B0)OVERLAP_F_B`, of `send_forward[0SEND_F0]`, or of an action by itself."""
    for opened, closed in ("()", "[]"):
        if opened in item:
            return item[item.index(opened) + 1:item.index(closed)].split(";")
    return [item]


def parse_actions(text):
    """What --emit=actions writes."""
    return [parse_rank(line.split(":", 1)[1]) for line in text.splitlines()]


def item_text(item):
    if len(item) == 1:
        return str(item[0])
    return f"({';'.join(map(str, item))})OVERLAP_{'_'.join(cell.kind for cell in item)}"


class Transport(NamedTuple):
    queue: object  # From a message and the rank at its other end to the queue of its rank that it runs in.
    capacity: Optional[int]  # Messages under way on a pair before a send waits; None: it waits for its receive to start.
    computes_first: bool  # A message also waits for the compute actions before it in program order.


UNBOUNDED = 10**9
TRANSPORTS = {
    "buffered": Transport(lambda cell, peer: "", UNBOUNDED, False),
    "buffered:1": Transport(lambda cell, peer: "", 1, False),
    "buffered:2": Transport(lambda cell, peer: "", 2, False),
    "rendezvous": Transport(lambda cell, peer: "", None, False),
    "posted": Transport(lambda cell, peer: f"{'to' if cell.is_send else 'from'} {peer}", UNBOUNDED, True),
    "stream": Transport(lambda cell, peer: "comm", None, True),
    "stream-per-peer": Transport(lambda cell, peer: f"comm {peer}", None, True),
    "stream-per-edge": Transport(lambda cell, peer: f"{'to' if cell.is_send else 'from'} {peer}", None, True),
}


class Program:
    """Rows by rank, with the rank at the other end of each message."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.stages = 1 + max((cell.stage for rank in ranks for item in rank for cell in item), default=0)
        # A stage may be on another rank in another pipe, and a microbatch belongs to one pipe.
        self.home = {(cell.stage, cell.mb): r for r, rank in enumerate(ranks) for item in rank for cell in item
                     if not cell.is_message}
        self.edges = {pair for rank in ranks for item in rank for cell in item if cell.is_message
                      for pair in [(min(cell.stage, cell.other), max(cell.stage, cell.other))]}
        self.edges |= {(stage, stage + 1) for stage in range(self.stages - 1)}

    def pair(self, rank, cell):
        """The ranks that a message of `rank` goes from and to; None when nobody hosts the other stage."""
        other = self.home.get((cell.other, cell.mb))
        if other is None:
            return None
        return (rank, other) if cell.is_send else (other, rank)

    def inputs(self, cell):
        """What a compute action reads: (slot, stage that makes it)."""
        wanted = [(slot, cell.stage) for slot in READS[cell.kind]]
        for slot in MAKES[cell.kind]:
            for low, high in sorted(self.edges):
                if slot == "F" and high == cell.stage and (low, cell.mb) in self.home:
                    wanted.append((slot, low))
                if slot == "G" and low == cell.stage and (high, cell.mb) in self.home:
                    wanted.append((slot, high))
        return wanted


def unmatched(program):
    """Why some message is not received as it is sent, or None."""
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    for r, rank in enumerate(program.ranks):
        for item in rank:
            for cell in item:
                if cell.is_message:
                    pair = program.pair(r, cell)
                    if pair is None or pair[0] == pair[1]:
                        return f"{cell} of rank {r} has nobody at its other end"
                    (sent if cell.is_send else received)[pair].append(cell.label)
    for pair in sorted({*sent, *received}):
        if sent[pair] != received[pair]:
            return f"rank {pair[0]} sends {sent[pair]}, rank {pair[1]} receives {received[pair]}"
        if len(set(sent[pair])) != len(sent[pair]):
            return f"rank {pair[0]} sends something twice to rank {pair[1]}"
    return None


def fits_labels(program):
    """Whether all messages that are sent are received, in whatever order."""
    sent, received = collections.Counter(), collections.Counter()
    for rank in program.ranks:
        for item in rank:
            for cell in item:
                if cell.is_message:
                    (sent if cell.is_send else received)[cell.label] += 1
    return sent == received and all(times == 1 for times in sent.values())


class Play:
    """One run of a program under a transport. What can happen never stops being possible, so one run tells for all."""

    def __init__(self, program, transport):
        self.program, self.transport = program, transport
        self.started, self.ended = set(), set()  # Of (rank, item, member).
        self.queues = collections.defaultdict(list)  # The parts of items that a queue of a rank runs, in order.
        self.queues_of = {}  # From the first action of a part to its queues: a batch may take several.
        self.part_of = {}  # From an action to its part.
        self.sends, self.receives = collections.defaultdict(list), collections.defaultdict(list)
        self.made = collections.defaultdict(list)  # From (rank, slot, stage, microbatch) to who brings it there.
        self.has_messages = False
        for r, rank in enumerate(program.ranks):
            for i, item in enumerate(rank):
                parts, queues = collections.defaultdict(list), collections.defaultdict(dict)
                for m, cell in enumerate(item):
                    name = transport.computes_first and cell.is_message
                    queues[name][r, self.enter((r, i, m), cell)] = True
                    parts[name].append((r, i, m))
                for name, part in parts.items():
                    self.queues_of[part[0]] = list(queues[name])
                    self.part_of.update((key, part) for key in part)
                    for queue in queues[name]:
                        self.queues[queue].append(part)

    def enter(self, key, cell):
        """Books an action, and says which queue of its rank runs it."""
        rank = key[0]
        if not cell.is_message:
            for slot in MAKES[cell.kind]:
                self.made[rank, slot, cell.stage, cell.mb].append(key)
            return ""
        self.has_messages = True
        pair = self.program.pair(rank, cell)
        (self.sends if cell.is_send else self.receives)[pair].append(key)
        if cell.is_receive:
            self.made[rank, cell.slot, cell.other, cell.mb].append(key)
        return self.transport.queue(cell, pair and pair[cell.is_send])

    def cell(self, key):
        rank, item, member = key
        return self.program.ranks[rank][item][member]

    def has_data(self, key):
        rank, cell = key[0], self.cell(key)
        if cell.is_message:
            inputs = [(cell.slot, cell.stage)] if cell.is_send else []
        else:
            inputs = self.program.inputs(cell)
        for slot, stage in inputs:
            there = rank if self.has_messages else self.program.home[stage, cell.mb]
            if not any(self.released(maker) for maker in self.made[there, slot, stage, cell.mb]):
                return False
        return True

    def released(self, key):
        """What an action makes is there when all of its part have ended."""
        return all(other in self.ended for other in self.part_of[key])

    def may_start(self, key):
        if not self.has_data(key):
            return False
        if not (self.transport.computes_first and self.cell(key).is_message):
            return True
        rank, index, _ = key
        return all((rank, i, m) in self.ended for i, item in enumerate(self.program.ranks[rank][:index])
                   for m, cell in enumerate(item) if not cell.is_message)

    def may_end(self, key):
        cell = self.cell(key)
        if not cell.is_message:
            return True
        pair = self.program.pair(key[0], cell)
        sends, receives, capacity = self.sends[pair], self.receives[pair], self.transport.capacity
        number = (sends if cell.is_send else receives).index(key)
        if cell.is_receive:
            return number < len(sends) and sends[number] in self.started
        if capacity is None:
            return number < len(receives) and receives[number] in self.started
        before = number - capacity
        return before < 0 or (before < len(receives) and receives[before] in self.ended)

    def head(self, queue):
        """The first part that has not ended, or None."""
        return next((part for part in self.queues[queue] if not all(key in self.ended for key in part)), None)

    def step(self, part):
        """Whether anything new happens in this part of an item."""
        if not all(key in self.started for key in part):
            if not all(self.may_start(key) for key in part):
                return False
            if any(self.head(queue) is not part for queue in self.queues_of[part[0]]):
                return False
            self.started.update(part)
            return True
        now = {key for key in part if key not in self.ended and self.may_end(key)}
        self.ended |= now
        return bool(now)

    def ends(self):
        """Whether all actions end."""
        moved = True
        while moved:
            moved = False
            for queue in self.queues:
                part = self.head(queue)
                moved |= part is not None and self.step(part)
        return not self.stuck()

    def stuck(self):
        """From each queue that does not come to its end to the cells where it is."""
        heads = {queue: self.head(queue) for queue in self.queues}
        return {queue: [self.cell(key) for key in part] for queue, part in heads.items() if part is not None}


def is_safe(program, transport):
    """Whether the program never hangs under a transport, whatever the messages hold."""
    return Play(program, TRANSPORTS[transport]).ends()
