"""Lays out and judges small programs, slowly and plainly, without a line of the compiler."""

import collections
import re
from typing import NamedTuple, Optional


class Pipe(NamedTuple):
    name: str
    first: int  # Its microbatches are first .. end, ordered as if there were `padded`.
    end: int
    padded: int
    ranks: tuple  # The rank of each stage.
    edges: tuple = ()  # Skip edges, as pairs of stages.

    def before(self, stage):
        return [s for s in range(stage) if s + 1 == stage or (s, stage) in self.edges]

    def after(self, stage):
        return [s for s in range(stage + 1, len(self.ranks)) if stage + 1 == s or (stage, s) in self.edges]


class Shape(NamedTuple):
    ranks: int
    pipes: tuple
    backward: bool

    def chunks(self, rank):
        """The stages that a rank hosts, as (pipe, stage)."""
        return [(p, s) for p, pipe in enumerate(self.pipes) for s, r in enumerate(pipe.ranks) if r == rank]


# The statements of a rank.
class Act(NamedTuple):
    kind: str
    chunk: Optional[int] = None  # None: a W of any chunk.
    mb: Optional[int] = None  # None: the next one.


class Group(NamedTuple):
    members: tuple


class Defer(NamedTuple):
    lag: Optional[int]
    body: tuple


class Drain(NamedTuple):
    chunk: Optional[int] = None


# One action of a laid-out program.
class Step(NamedTuple):
    pipe: int
    stage: int
    kind: str
    mb: int

    def __str__(self):
        return f"{self.stage}{self.kind}{self.mb}"


class Refused(Exception):
    """The reason why a rank's statements mean nothing."""


class Layout:
    """Runs the statements of one rank."""

    def __init__(self, shape, rank):
        self.shape = shape
        self.chunks = shape.chunks(rank)
        self.issued = {(kind, chunk): 0 for kind in "FB" for chunk in range(len(self.chunks))}
        self.queue = []  # Of the W's that wait: (chunk, microbatch), oldest first.
        self.groups = []

    def run(self, body, lag=None, deferring=False):
        for node in body:
            if isinstance(node, Defer):
                self.run(node.body, node.lag, deferring=True)
            elif isinstance(node, Drain):
                while [c for c, _ in self.queue if node.chunk in (None, c)]:
                    self.add([self.take(node.chunk)])
            else:
                acts = node.members if isinstance(node, Group) else [node]
                self.add([self.step(act, deferring) for act in acts])
                while lag is not None and len(self.queue) > lag:
                    self.add([self.take(None)])

    def add(self, steps):
        kept = tuple(step for step in steps if step.mb < self.shape.pipes[step.pipe].end
                     and (self.shape.backward or step.kind == "F"))
        if kept:
            self.groups.append(kept)

    def step(self, act, deferring):
        if act.chunk is not None and act.chunk >= len(self.chunks):
            raise Refused("chunk")
        if act.kind == "W":
            return self.take(act.chunk, act.mb)
        kind = "I" if deferring and act.kind == "B" else act.kind
        pipe, stage = self.chunks[act.chunk]
        first, padded = self.shape.pipes[pipe].first, self.shape.pipes[pipe].padded
        count = ("F" if kind == "F" else "B", act.chunk)
        mb = first + self.issued[count] if act.mb is None else act.mb
        if not first <= mb < first + padded:
            raise Refused("none left" if act.mb is None else "microbatch")
        self.issued[count] += 1
        if kind == "I":
            self.queue.append((act.chunk, mb))
        return Step(pipe, stage, kind, mb)

    def take(self, chunk, mb=None):
        for waiting in self.queue:
            if chunk in (None, waiting[0]) and mb in (None, waiting[1]):
                self.queue.remove(waiting)
                return Step(*self.chunks[waiting[0]], "W", waiting[1])
        raise Refused("empty queue" if mb is None else "not waiting")


def lay_out(shape, bodies):
    """The groups of each rank, and the reasons why there are none."""
    ranks, reasons = [], set()
    for rank, body in enumerate(bodies):
        layout = Layout(shape, rank)
        try:
            layout.run(body)
            if layout.queue:
                raise Refused("left over")
        except Refused as reason:
            reasons.add(str(reason))
        ranks.append(layout.groups)
    return ranks, reasons


def needs(shape, step):
    """What must have ended before a step: (pipe, stage, slot, microbatch)."""
    pipe, stage, kind, mb = step
    if kind == "F":
        return [(pipe, s, "F", mb) for s in shape.pipes[pipe].before(stage)]
    if kind == "W":
        return [(pipe, stage, "I", mb)]
    return [(pipe, stage, "F", mb)] + [(pipe, s, "I", mb) for s in shape.pipes[pipe].after(stage)]


def gives(step):
    return {(step.pipe, step.stage, slot, step.mb) for slot in step.kind.replace("B", "IW")}


def judge(shape, ranks):
    """Every reason to refuse a laid-out program; none for a good one."""
    reasons = set()
    steps = [step for groups in ranks for group in groups for step in group]
    for p, pipe in enumerate(shape.pipes):
        for stage in range(len(pipe.ranks)):
            for mb in range(pipe.first, pipe.end):
                for slot in "FIW" if shape.backward else "F":
                    times = sum((p, stage, slot, mb) in gives(step) for step in steps)
                    if times != 1:
                        reasons.add("twice" if times else "missing")

    for groups in ranks:
        for index, group in enumerate(groups):
            later = set().union(*(gives(step) for g in groups[index + 1:] for step in g))
            together = set().union(*(gives(step) for step in group))
            needed = {need for step in group for need in needs(shape, step)}
            if needed & later:
                reasons.add("order")
            if needed & together:
                reasons.add("group")

    ended, position, moved = set(), [0] * len(ranks), True
    while moved:
        moved = False
        for rank, groups in enumerate(ranks):
            if position[rank] == len(groups):
                continue
            group = groups[position[rank]]
            if all(need in ended for step in group for need in needs(shape, step)):
                ended.update(*(gives(step) for step in group))
                position[rank] += 1
                moved = True
    if any(position[rank] < len(groups) for rank, groups in enumerate(ranks)):
        reasons.add("deadlock")
    return reasons


MESSAGE = re.compile(r"(\d+)(SEND|RECV)_([FB])(\d+)(?:[<>](\d+))?$")


class Message(NamedTuple):
    sends: bool
    pipe: int
    source: int  # The stage that makes the data.
    reader: int
    slot: str  # F, or I for a gradient.
    mb: int

    @property
    def edge(self):
        return self.pipe, self.source, self.reader, self.slot


def message_of(shape, cell):
    """The message that a cell sends or receives, or None."""
    match = MESSAGE.match(cell)
    if not match:
        return None
    stage, mb, sends = int(match[1]), int(match[4]), match[2] == "SEND"
    slot = "F" if match[3] == "F" else "I"
    peer = int(match[5]) if match[5] else stage + (1 if (slot == "F") == sends else -1)
    number = next(p for p, pipe in enumerate(shape.pipes) if pipe.first <= mb < pipe.end)
    return Message(sends, number, stage if sends else peer, peer if sends else stage, slot, mb)


def cells_of(program):
    """The cells of each rank of a printed program."""
    return [line.split(" ")[2:] for line in program.splitlines()]


def message_fault(shape, ranks, program):
    """What is wrong with the sends and receives in a printed program, or None."""
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    for rank, row in enumerate(cells_of(program)):
        have, groups = set(), iter(ranks[rank])
        for cell in row:
            message = message_of(shape, cell)
            if not message:
                group = next(groups, ())
                if not group or cell != cells(group):
                    return f"rank {rank}: {cell} is out of place"
                missing = [need for step in group for need in needs(shape, step) if need not in have]
                if missing:
                    return f"rank {rank}: {cell} runs without {missing[0]}"
                have.update(*(gives(step) for step in group))
                continue
            data = (message.pipe, message.source, message.slot, message.mb)
            label = message._replace(sends=True)
            if message.sends:
                if data not in have:
                    return f"rank {rank}: {cell} has nothing to send"
                sent[rank, shape.pipes[message.pipe].ranks[message.reader]].append(label)
            else:
                have.add(data)
                received[shape.pipes[message.pipe].ranks[message.source], rank].append(label)
        if next(groups, None):
            return f"rank {rank} ends too early"
    for pair, labels in (sent | received).items():
        if sent[pair] != received[pair] or len(set(labels)) != len(labels) or pair[0] == pair[1]:
            return f"rank {pair[0]} sends {sent[pair]}, rank {pair[1]} receives {received[pair]}"
    return None


def order_fault(shape, program):
    """Where the lists stop when each runs strictly in order and both ends of a message at one moment, or None.

    Lists that come to their end so are parts of one order of all actions and messages: no transport makes them hang."""
    rows = cells_of(program)
    next_cell, moved = [0] * len(rows), True

    def head(rank):
        return rows[rank][next_cell[rank]] if next_cell[rank] < len(rows[rank]) else None

    while moved:
        moved = False
        for rank in range(len(rows)):
            while head(rank):
                message = message_of(shape, head(rank))
                if message:
                    other = shape.pipes[message.pipe].ranks[message.reader if message.sends else message.source]
                    there = head(other)
                    if not there or message_of(shape, there) != message._replace(sends=not message.sends):
                        break
                    next_cell[other] += 1
                next_cell[rank] += 1
                moved = True
    stuck = [f"rank {rank} at {head(rank)}" for rank in range(len(rows)) if head(rank)]
    return "hangs: " + ", ".join(stuck) if stuck else None


def bound_fault(shape, ranks, program, bound):
    """The first receive that is one too many ahead of the groups that read its edge, or None."""
    for rank, row in enumerate(cells_of(program)):
        reader = {}
        for index, group in enumerate(ranks[rank]):
            for step in group:
                for slot in {"F": "F", "B": "I", "I": "I"}.get(step.kind, ""):
                    reader[step.pipe, step.stage, slot, step.mb] = index
        posted, done = collections.defaultdict(set), 0
        for cell in row:
            message = message_of(shape, cell)
            if not message:
                done += 1
            elif not message.sends:
                posted[message.edge].add(reader[message.pipe, message.reader, message.slot, message.mb])
                if len([index for index in posted[message.edge] if index >= done]) > bound:
                    return f"rank {rank}: {cell} is more than {bound} ahead"
    return None


def cells(group):
    if len(group) == 1:
        return str(group[0])
    return "(" + ";".join(map(str, group)) + ")OVERLAP_" + "_".join(step.kind for step in group)


def text(ranks):
    """The program as --emit=actions prints it."""
    return "".join(" ".join([f"rank {r}:", *map(cells, groups)]) + "\n" for r, groups in enumerate(ranks))
