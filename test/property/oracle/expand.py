"""What a schedule means: its statements and rules, laid out to rows as docs/language.md says.

Expressions are numbers, names, or tuples of an operator and what it takes, such as ("min", "r", ("+", "M", 1)).
Counters are ("issued", mnemonic, chunk), ("pending", chunk or None) and ("padded", chunk)."""

from typing import NamedTuple

from .program import GRADIENT, OUTPUT, WEIGHTS, Program, Row


class ActionStmt(NamedTuple):
    kind: str
    chunk: object = None  # None: the only one, or, of a W, any
    mb: object = None  # None: the next one


class Overlap(NamedTuple):
    body: tuple


class Defer(NamedTuple):
    lag: object
    body: tuple


class Drain(NamedTuple):
    chunk: object = None


class Repeat(NamedTuple):
    count: object
    body: tuple


class For(NamedTuple):
    name: str
    low: object
    high: object
    body: tuple


class While(NamedTuple):
    condition: object
    body: tuple


class If(NamedTuple):
    condition: object
    then: tuple
    other: tuple = ()


class Let(NamedTuple):
    name: str
    value: object


class Phase(NamedTuple):
    name: str
    body: tuple


class Insert(NamedTuple):
    """`insert action SIDE anchors [per rank] by distance when condition`, which may use m, s, r, and k for F."""

    action: str
    side: str  # before or after
    anchors: tuple
    per_rank: bool = False
    distance: object = 0
    condition: object = True


class Rejected(Exception):
    """The reason why a rank's statements mean nothing."""


OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b,
    "%": lambda a, b: a % b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "and": lambda a, b: a and b,
    "or": lambda a, b: a or b, "not": lambda a: not a, "?": lambda a, b, c: b if a else c,
    "min": min, "max": max, "abs": abs, "[]": lambda values, i: values[i],
}


def value_of(expr, names, counter=None):
    if isinstance(expr, str):
        return names[expr]
    if not isinstance(expr, tuple):
        return expr
    if expr[0] == "list":
        return [value_of(one, names, counter) for one in expr[1:]]
    if expr[0] in ("issued", "pending", "padded"):
        return counter(*expr)
    return OPERATORS[expr[0]](*[value_of(one, names, counter) for one in expr[1:]])


class RankExpander:
    """Runs the statements of one rank. Afterwards `items` are its rows."""

    def __init__(self, head, number, names):
        self.head, self.number, self.chunks, self.names = head, number, head.chunks(number), {**names, "r": number}
        self.issued = {}  # By chunk, and by the slot that counts, or the mnemonic of a declared kind.
        self.pending = []  # The W's that wait: (chunk, index), oldest first.
        self.items, self.phase = [], ""
        self.deferring, self.lag = False, None
        self.group = None  # The rows of the group that is being made, if one is.

    def run(self, body, **overrides):
        """Runs statements, while something else holds."""
        before = {"names": self.names, **{name: getattr(self, name) for name in overrides}}
        vars(self).update(overrides)
        for node in body:
            getattr(self, "run_" + type(node).__name__)(node)
        vars(self).update(before)

    def value(self, expr):
        return value_of(expr, self.names, self.count)

    def run_Let(self, node):
        self.names = {**self.names, node.name: self.value(node.value)}

    def run_Phase(self, node):
        self.run(node.body, phase=node.name)

    def run_Repeat(self, node):
        for _ in range(self.value(node.count)):
            self.run(node.body)

    def run_For(self, node):
        for i in range(self.value(node.low), self.value(node.high)):
            self.run(node.body, names={**self.names, node.name: i})

    def run_While(self, node):
        while self.value(node.condition):
            before = dict(self.issued)
            self.run(node.body)
            if before == self.issued:
                raise Rejected("infinite loop")

    def run_If(self, node):
        self.run(node.then if self.value(node.condition) else node.other)

    def run_Defer(self, node):
        self.run(node.body, deferring=True, lag=None if node.lag is None else self.value(node.lag))

    def run_Overlap(self, node):
        rows = []
        self.run(node.body, group=rows)
        self.add(rows)
        self.issue_overdue()

    def run_Drain(self, node):
        chunk = None if node.chunk is None else self.chunk(node.chunk)
        while [c for c, _ in self.pending if chunk in (None, c)]:
            self.put(self.pop_pending(chunk))

    # Actions.

    def count(self, what, *args):
        if what == "issued":
            kind, chunk = self.head.kinds[args[0]], None if len(args) < 2 else args[1]
            return self.issued.get((self.chunk(chunk), self.slot(kind)), 0)
        if what == "padded":
            return self.head.pipes[self.chunks[self.chunk(*args)][0]].padded
        chunk = None if not args else self.chunk(args[0])
        return len([c for c, _ in self.pending if chunk in (None, c)])

    def chunk(self, expr=None):
        """Chunks are numbered pipe after pipe; ("pipe", name) is the rank's stage of a pipe."""
        if expr is None or isinstance(expr, tuple) and expr[0] == "pipe":
            found = [c for c, (p, _) in enumerate(self.chunks) if expr is None or self.head.pipes[p].name == expr[1]]
            if len(found) != 1:
                raise Rejected("which chunk" if found else "no chunk")
            return found[0]
        number = self.value(expr)
        if not 0 <= number < len(self.chunks):
            raise Rejected("chunk")
        return number

    @staticmethod
    def slot(kind):
        """What counts together: B and I."""
        return kind.mnemonic if kind.role == "declared" else kind.fills[0]

    def run_ActionStmt(self, node):
        self.put(self.row(node))
        if self.group is None:
            self.issue_overdue()

    def row(self, node):
        kind = self.head.kinds[node.kind]
        mb = None if node.mb is None else self.value(node.mb)
        if node.kind == "W":
            return self.pop_pending(None if node.chunk is None and mb is None else self.chunk(node.chunk), mb)
        if self.deferring and node.kind == "B":
            kind = self.head.kinds["I"]
        if kind.per == "rank" and not self.chunks:
            raise Rejected("no chunk")
        chunk = 0 if kind.per == "rank" else self.chunk(node.chunk)
        pipe = self.head.pipes[self.chunks[chunk][0]]
        number = self.issued.get((chunk, self.slot(kind)), 0) if kind.per == "microbatch" else 0
        if mb is not None:
            index = mb - pipe.first
            if not 0 <= index < pipe.padded:
                raise Rejected("microbatch")
        else:
            if number >= pipe.padded:
                raise Rejected("none left")
            slice_ = number % pipe.slices
            reversed_slice = pipe.slices - 1 - slice_ if GRADIENT in kind.fills else slice_
            index = number - slice_ + reversed_slice  # Gradients come from the last slice of a sequence to its first.
        self.issued[chunk, self.slot(kind)] = self.issued.get((chunk, self.slot(kind)), 0) + 1
        if kind.fills == GRADIENT:
            self.pending.append((chunk, index))
        return kind, chunk, index

    def pop_pending(self, chunk, mb=None):
        """The oldest W that waits, of a chunk and microbatch if they are given."""
        for one, index in self.pending:
            first = self.head.pipes[self.chunks[one][0]].first
            if chunk in (None, one) and mb in (None, first + index):
                self.pending.remove((one, index))
                self.issued[one, WEIGHTS] = self.issued.get((one, WEIGHTS), 0) + 1
                return self.head.kinds["W"], one, index
        raise Rejected("nothing pending" if mb is None else "not pending")

    def issue_overdue(self):
        while self.lag is not None and self.pending and len(self.pending) > self.lag:
            self.put(self.pop_pending(None))

    def put(self, row):
        if self.group is None:
            self.add([row])
        else:
            self.group.append(row)

    def add(self, rows):
        """An item, without what is only padding, or of the backward of a forward-only program."""
        item = []
        for kind, chunk, index in rows:
            p, stage = self.chunks[chunk]
            pipe = self.head.pipes[p]
            if pipe.first + index < pipe.end and (self.head.backward or kind.role == "declared" or kind.fills == OUTPUT):
                item.append(Row(kind, p, stage, pipe.first + index if kind.per == "microbatch" else -1,
                                peer_stage(self.head, kind, self.number, p), self.phase))
        if item:
            self.items.append(tuple(item))


def omitted_kinds(head):
    """The actions that a forward-only program lacks: those of gradients, and those that follow or precede only such ones."""
    found = set()
    while not head.backward:
        more = {kind.mnemonic for kind in head.kinds.values() if
                (any(found.issuperset(choice) for choice in kind.after + kind.before) if kind.role == "declared" else OUTPUT not in kind.fills)}
        if more == found:
            break
        found = more
    return found


def is_applicable(head, kind, row):
    """Whether what an action of this stage follows, or meets, can be there."""
    pipe, omitted = head.pipes[row.pipe], omitted_kinds(head)
    if isinstance(kind.collective, tuple) and row.stage not in [s % len(pipe.ranks) for s in kind.collective]:
        return False

    def may_exist(other):
        return other.mnemonic not in omitted and \
            (not other.is_message or any(pipe.ranks[s] != pipe.ranks[row.stage] for s in pipe.peer_stages(row.stage, other)))

    return all(any(may_exist(head.kinds[mnemonic]) for mnemonic in choice) for choice in kind.after + kind.before)


def peer_stage(head, kind, rank, pipe):
    """The stage that stands for the other rank of an action between two: its first of the same pipe."""
    if not kind.is_transfer:
        return -1
    other = value_of(kind.peer_rank, {"r": rank, "ranks": head.ranks})
    stages = [s for p, s in head.chunks(other) if p == pipe]
    if other == rank or not stages:
        raise Rejected("no peer rank")
    return stages[0]


def insert(head, items, number, rule):
    """The items of a rank, with what a rule inserts."""
    kind = head.kinds[rule.action]

    def key(row):
        return () if kind.per == "rank" else (row.pipe, row.stage) + ((row.mb,) if kind.per == "microbatch" else ())

    def positions_of(mnemonic):
        return [(i, row) for i, item in enumerate(items) for row in item if row.kind.mnemonic in mnemonic]

    anchors, placed = positions_of(rule.anchors), []
    chosen = {key(row): (at, row) for at, row in (anchors if rule.side == "after" else reversed(anchors))}
    forwards = [row[1:4] for _, row in positions_of(["F"])]
    for at, row in sorted(chosen.values(), key=lambda one: anchors.index(one)):
        names = {"m": row.mb, "s": row.stage, "r": number, "k": forwards.index(row[1:4]) if row[1:4] in forwards else -1}
        if not is_applicable(head, kind, row) or not value_of(rule.condition, names):
            continue
        if rule.per_rank:
            at = anchors[0][0] if rule.side == "before" else anchors[-1][0]
        distance = max(0, value_of(rule.distance, names))
        # Not past what it must follow, or stand in front of.
        barriers = [i for choice in (kind.after if rule.side == "before" else kind.before) for i, one in positions_of(choice)
                  if key(one) == key(row)]
        if rule.side == "before":
            position = min(at, max([at - distance, 0, *[i + 1 for i in barriers]]))
        else:
            position = max(at + 1, min([at + 1 + distance, len(items), *barriers]))
        location = head.chunks(number)[0] if kind.per == "rank" else row[1:3]
        mb = row.mb if kind.per == "microbatch" else -1
        placed.append((position, Row(kind, *location, mb, peer_stage(head, kind, number, location[0]), row.phase)))
    if rule.per_rank:
        placed.sort(key=lambda one: one[1][1:4])  # In one order on all ranks.
    result = []
    for i in range(len(items) + 1):
        result += [(row,) for position, row in placed if position == i]
        result += items[i:i + 1]
    return result


def expand(head, bodies, rules=(), names=None):
    """The program without the far ends of actions between ranks, and the reasons why there is none."""
    reasons, items = {"no microbatch"} if any(pipe.end <= pipe.first for pipe in head.pipes) else set(), []
    for number, body in enumerate(bodies):
        rank = RankExpander(head, number, names or {})
        try:
            rank.run(body)
            if rank.pending:
                raise Rejected("pending left")
            for rule in rules:
                rank.items = insert(head, rank.items, number, rule)
        except Rejected as reason:
            reasons.add(str(reason))
        items.append(rank.items)
    return Program(head, items), reasons
