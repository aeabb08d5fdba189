"""Programs: placement, rows and costs. The words are those of docs/program-format.md and docs/language.md."""

from fractions import Fraction
from typing import NamedTuple

# Slots of a stage and microbatch: its output, the gradient of its input, the gradients of its weights.
OUTPUT, GRADIENT, WEIGHTS = "F", "G", "W"


class Kind(NamedTuple):
    mnemonic: str
    fills: str = ""
    reads: str = ""  # Slots of its own stage and microbatch.
    role: str = "declared"  # compute, send, recv or declared
    per: str = "microbatch"  # or stage, rank
    lane: str = "compute"
    after: tuple = ()  # Of tuples of mnemonics.
    before: tuple = ()
    required: bool = False
    restores: str = None
    in_flight: int = None
    collective: object = None  # all, replicas, to, from, "outside NAME", or a tuple of stages
    cost: Fraction = 0  # Both in units of what the F of its stage takes.
    memory: Fraction = None  # Nothing for 0, or for all that it restores.
    peer_rank: object = None  # Of one to or from a rank: which, an expression.

    @property
    def is_message(self):
        return self.role in ("send", "recv")

    @property
    def waits_for_message(self):
        return any(name in KINDS and KINDS[name].is_message for group in self.after for name in group)

    @property
    def stores_activation(self):
        return self.role == "compute" and OUTPUT in self.fills

    @property
    def is_collective(self):
        """Whether ranks of the program run it together."""
        return self.collective is not None and not str(self.collective).startswith("outside")

    @property
    def is_transfer(self):
        return self.collective in ("to", "from")


KINDS = {
    kind.mnemonic: kind
    for kind in [
        Kind("F", OUTPUT, "", "compute"), Kind("B", GRADIENT + WEIGHTS, OUTPUT, "compute"),
        Kind("I", GRADIENT, OUTPUT, "compute"), Kind("W", WEIGHTS, GRADIENT, "compute"),
        Kind("SEND_F", OUTPUT, role="send"), Kind("RECV_F", OUTPUT, role="recv"),
        Kind("SEND_B", GRADIENT, role="send"), Kind("RECV_B", GRADIENT, role="recv"),
    ]
}


class Pipe(NamedTuple):
    name: str
    first: int  # Its microbatches are first .. end, laid out as if there were `padded`.
    end: int
    padded: int
    ranks: tuple  # The rank of each stage.
    skips: tuple = ()  # Edges beside those between neighbours, as pairs of stages.
    gaps: tuple = ()  # Stages without an edge to the next.
    slices: int = 1

    def edges(self):
        return [(s, s + 1) for s in range(len(self.ranks) - 1) if s not in self.gaps] + list(self.skips)

    def sources(self, stage):
        return sorted(low for low, high in self.edges() if high == stage)

    def readers(self, stage):
        return sorted(high for low, high in self.edges() if low == stage)

    def peer_stages(self, stage, kind):
        """The stages at the other ends of a stage's messages."""
        return self.readers(stage) if (kind.role == "send") == (kind.fills == OUTPUT) else self.sources(stage)

    def slice_before(self, mb):
        """The slice of the same sequence that this one attends to, or None."""
        return mb - 1 if (mb - self.first) % self.slices else None

    def slice_after(self, mb):
        return mb + 1 if (mb - self.first + 1) % self.slices else None


class Head(NamedTuple):
    ranks: int
    pipes: tuple
    backward: bool = True
    kinds: dict = KINDS

    def chunks(self, rank):
        """The stages that a rank hosts, as (pipe, stage)."""
        return [(p, s) for p, pipe in enumerate(self.pipes) for s, r in enumerate(pipe.ranks) if r == rank]

    def home(self, row):
        return self.pipes[row.pipe].ranks[row.stage]


class Row(NamedTuple):
    kind: Kind
    pipe: int
    stage: int
    mb: int = -1  # -1: a declared action that is not of one.
    peer: int = -1  # The stage at the other end of a message, or of an action between ranks.
    phase: str = ""

    def __str__(self):
        """The cell, as in docs/program-format.md."""
        if self.kind.per == "rank":
            return self.kind.mnemonic
        mark, near = "", None
        if self.kind.is_message:
            near = self.stage + (1 if (self.kind.role == "send") == (self.kind.fills == OUTPUT) else -1)
        if self.peer not in (-1, near):
            mark = f"{'>' if self.kind.role == 'send' or self.kind.collective == 'to' else '<'}{self.peer}"
        return f"{self.stage}{self.kind.mnemonic}{'' if self.mb < 0 else self.mb}{mark}"


class Program:
    """What each rank does: items, each a tuple of rows that run together, mostly of one. A row is known by (rank, index)."""

    def __init__(self, head, items):
        self.head, self.items = head, items
        self.rows = [[row for item in rank for row in item] for rank in items]
        self.row_ids = [(r, i) for r, rank in enumerate(self.rows) for i in range(len(rank))]
        self.item_rows = {}  # From a row to the rows of its item.
        for r, rank in enumerate(items):
            index = 0
            for item in rank:
                part = [(r, i) for i in range(index, index + len(item))]
                self.item_rows.update((key, part) for key in part)
                index += len(item)

    def row(self, key):
        return self.rows[key[0]][key[1]]

    def without_messages(self):
        """The same for data alone."""
        return Program(self.head, [[item for item in rank if not item[0].kind.is_message] for rank in self.items])

    def has_messages(self):
        return any(row.kind.is_message for rank in self.rows for row in rank)

    def ends(self, key):
        """The ranks that a message goes from and to."""
        row = self.row(key)
        other = self.head.pipes[row.pipe].ranks[row.peer]
        return (key[0], other) if row.kind.role == "send" else (other, key[0])

    def label(self, key):
        """What a message carries: equal at both ends."""
        row = self.row(key)
        stages = (row.stage, row.peer) if row.kind.role == "send" else (row.peer, row.stage)
        return (row.kind.fills, row.pipe, *stages, row.mb)


def item_text(item):
    """As --emit=actions writes it, but for the names of calls."""
    if len(item) == 1:
        return str(item[0])
    cells = ";".join(map(str, item))
    return f"batch[{cells}]" if item[0].kind.is_message else f"({cells})OVERLAP_{'_'.join(row.kind.mnemonic for row in item)}"


def text(program):
    return "".join(" ".join([f"rank {r}:", *map(item_text, rank)]) + "\n" for r, rank in enumerate(program.items))


class Setting(NamedTuple):
    """One cost. `where` is a dict of some of pipe, stage, rank, link and microbatch; it speaks of all others."""

    item: str  # cost, group, latency, bandwidth, bytes, memory, static, limit, scale
    subject: str  # A kind's mnemonic, overlap, sum, max, time, ...; or None
    value: Fraction
    where: dict = {}


class Costs:
    """What things take. Of settings that speak of the same the last counts."""

    def __init__(self, head, settings=()):
        self.head, self.settings = head, list(settings)

    def find(self, items, subjects=(None,), **where):
        """The last setting that speaks of this, or None."""
        for setting in reversed(self.settings):
            if setting.item in items and setting.subject in subjects and \
                    all(where.get(key) == value for key, value in setting.where.items()):
                return setting
        return None

    def value(self, item, subject, default, **where):
        setting = self.find([item], [subject], **where)
        return default if setting is None else setting.value

    def scale(self, mb, *subjects):
        """By how much more a microbatch takes."""
        return self.value_of(self.find(["scale"], ["all", *subjects], microbatch=mb), 1) if mb >= 0 else 1

    @staticmethod
    def value_of(setting, default):
        return default if setting is None else setting.value

    def kind_time(self, mnemonic, pipe, stage):
        """The time of an action, for a microbatch like others."""
        default = 1
        if mnemonic == "B":
            default = self.kind_time("I", pipe, stage) + self.kind_time("W", pipe, stage)
        elif mnemonic in ("I", "W") and (whole := self.value("cost", "B", None, pipe=pipe, stage=stage)) is not None:
            other = self.value("cost", "W" if mnemonic == "I" else "I", None, pipe=pipe, stage=stage)
            half = Fraction(int(whole * 10**9) // 2, 10**9)
            default = max(whole - other, 0) if other is not None else half if mnemonic == "I" else whole - half
        elif mnemonic not in KINDS:
            kind = self.head.kinds[mnemonic]
            if kind.lane == "none":
                return 0
            default = kind.cost * self.kind_time("F", pipe, stage) if kind.cost else 0
        return self.value("cost", mnemonic, default, pipe=pipe, stage=stage)

    def time(self, row):
        return quantize(self.kind_time(row.kind.mnemonic, row.pipe, row.stage) * self.scale(row.mb, "time", row.kind.mnemonic))

    def group_time(self, rows):
        """What compute actions take that run together."""
        times = [self.time(row) for row in rows]
        if len(times) < 2:
            return sum(times)
        rule = self.find(["cost", "group"], ["overlap", "sum", "max"])
        if rule is None:
            return sum(times)
        return {"overlap": rule.value, "sum": quantize(rule.value * sum(times)), "max": quantize(rule.value * max(times))}[rule.subject]

    def memory_delta(self, row):
        """What an action takes of memory, or gives back when it is negative, on the rank of its stage."""
        value = self.value("memory", row.kind.mnemonic, None, pipe=row.pipe, stage=row.stage)
        if value is None and row.kind.role == "declared":
            kind = self.head.kinds[row.kind.mnemonic]
            default = 1 if kind.restores else 0
            value = (default if kind.memory is None else kind.memory) * self.activation_memory(row.pipe, row.stage)
        elif value is None:
            value = self.activation_memory(row.pipe, row.stage) if row.kind.stores_activation else 0
        return value * self.scale(row.mb, "memory")

    def activation_memory(self, pipe, stage):
        """1, unless something is said of the memory of F, B, I or W."""
        is_specified = any(setting.item == "memory" and setting.subject in KINDS for setting in self.settings)
        return self.value("memory", "F", 0 if is_specified else 1, pipe=pipe, stage=stage)

    def edge_time(self, pipe, source, reader, mb):
        """What the data of an edge takes from rank to rank."""
        ranks = self.head.pipes[pipe].ranks
        where = {"pipe": pipe, "stage": min(source, reader), "link": (ranks[source], ranks[reader])}
        latency = self.value("latency", None, 0, **where)
        bandwidth = self.value("bandwidth", None, None, **where)
        return latency + (quantize(self.size(pipe, source, reader, mb) / Fraction(bandwidth)) if bandwidth else 0)

    def size(self, pipe, source, reader, mb):
        """The bytes of a message."""
        return self.value("bytes", None, 0, pipe=pipe, stage=min(source, reader)) * self.scale(mb, "bytes")


def quantize(value):
    """Times are kept to nine decimal places."""
    return Fraction(round(Fraction(value) * 10**9), 10**9)
