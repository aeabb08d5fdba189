"""The one generator of random schedules, models and clusters. Most are sound, some are damaged on purpose."""

import json
import pathlib
import re
from fractions import Fraction

from oracle.expand import (ActionStmt, Defer, Drain, For, If, Insert, Let, Overlap, Phase, Repeat, While, expand, value_of)
from oracle.program import GRADIENT, KINDS, OUTPUT, Costs, Head, Kind, Pipe, Setting


class Case:
    """A schedule: what the oracle needs of it, and its text."""

    def __init__(self, draw, head, lines):
        self.draw, self.head, self.lines = draw, head, lines  # Lines of the schedule before the bodies.
        self.bodies = [()] * head.ranks
        self.rules, self.names = [], {}  # Names of parameters, with their values.
        self.settings = []  # Of costs, each with how much it beats.
        self.model, self.cluster, self.link, self.file, self.options = [], [], [], {}, []  # Where they are written.
        self.style = "rank"  # How the bodies of ranks are written: each by itself, as blocks, or in one.

    def at(self, names):
        """The head, for values of the parameters."""
        def number(pipe, name):
            return pipe._replace(**{name: value_of(getattr(pipe, name), names)})

        pipes = self.head.pipes
        for name in ("first", "end", "padded"):
            pipes = tuple(number(pipe, name) for pipe in pipes)
        return self.head._replace(pipes=pipes)

    def expand(self, **names):
        names = {**self.names, **names}
        return expand(self.at(names), self.bodies, self.rules, names)

    def costs(self):
        return Costs(self.head, [setting for _, setting in sorted(self.settings, key=lambda note: note[0])])

    def source(self):
        return source(self)

    def arguments(self, folder):
        """Options of the command line for its costs; leaves a file in the folder."""
        if not self.file:
            return list(self.options)
        path = folder / "costs.json"
        path.write_text(json.dumps(self.file))
        return [f"--costs={path}", *self.options]


# Placements.

def wave_placement(ranks, chunks):
    """The wave placement: the stages turn round at each end."""
    return [s % ranks if s // ranks % 2 == 0 else ranks - 1 - s % ranks for s in range(ranks * chunks)]


def random_pipe(draw, name, first, stages, slices=1):
    count = draw.integer(1, max(1, min(4, 12 // len(stages)))) * slices
    padded = count + (draw.integer(1, 2) * slices if draw.chance(0.15) else 0)
    skips, gaps = (), ()
    if len(stages) > 2 and draw.chance(0.3):
        low = draw.below(len(stages) - 2)
        skips = ((low, draw.integer(low + 2, len(stages) - 1)),)
        gaps = tuple(s for s in range(low, skips[0][1]) if draw.chance(0.2))
    return Pipe(name, first, first + count, padded, tuple(stages), skips, gaps, slices)


def random_placement(draw, ranks):
    """The ranks of stages, and how the language calls it."""
    chunks = draw.integer(1, 3)
    return draw.pick([
        (list(range(ranks)), "placement linear;"),
        ([s % ranks for s in range(ranks * chunks)], f"placement loop({chunks});"),
        (wave_placement(ranks, 2), "placement v;"),
        (wave_placement(ranks, chunks), f"placement wave({chunks});"),
        ([draw.below(ranks) for _ in range(draw.integer(1, 5))], None),
        ([s // chunks for s in range(ranks * chunks)], f"placement blocks({chunks});"),
    ])


def pipe_lines(draw, pipe, placement):
    high = expr_text(obfuscate(draw, pipe.end))
    bounds = high if pipe.first == 0 else f"{expr_text(obfuscate(draw, pipe.first))} .. {high}"
    known = all(isinstance(number, int) for number in (pipe.first, pipe.end, pipe.padded))
    pad = f" pad {expr_text(obfuscate(draw, pipe.padded))}" if not known or pipe.padded > pipe.end - pipe.first else ""
    lines = [f"microbatches {bounds}{pad};"]
    if pipe.slices > 1:
        lines.append(f"slices {pipe.slices};")
    if placement:
        lines.append(placement)
    else:
        lines += [f"stages {expr_text(obfuscate(draw, len(pipe.ranks)))};", f"stage s on rank {list(pipe.ranks)}[s];"]
    return lines + [f"edge stage {a} -> stage {b};" for a, b in pipe.skips] + \
        [f"no edge stage {s} -> stage {s + 1};" for s in pipe.gaps]


def random_case(draw):
    """A head, without bodies."""
    ranks = draw.integer(1, 4)
    if not draw.chance(0.3):
        stages, placement = random_placement(draw, ranks)
        pipes = (random_pipe(draw, "main", 0, stages, draw.weighted([(1, 8), (2, 1), (3, 1)])),)
        lines = pipe_lines(draw, pipes[0], placement)
    else:
        pipes, lines, first = (), [], 0
        for name in ["left", "right", "third"][:draw.integer(1, 3)]:
            stages = [draw.below(ranks) for _ in range(draw.integer(1, 4))]
            pipes += (random_pipe(draw, name, first, stages),)
            first = pipes[-1].end
            lines.append(f"pipe {name} {{ " + " ".join(pipe_lines(draw, pipes[-1], None)) + " }")
    backward = not draw.chance(0.12)
    lines = [f"ranks {expr_text(obfuscate(draw, ranks))};", *lines, *([] if backward else ["backward when false;"])]
    return Case(draw, Head(ranks, pipes, backward, dict(KINDS)), lines)


# Bodies.

def random_bodies(draw, head):
    """The statements of each rank, in an order that some run of the whole program takes."""
    bodies = [[] for _ in range(head.ranks)]
    chunks = [head.chunks(rank) for rank in range(head.ranks)]
    queues = [[] for _ in range(head.ranks)]
    remaining, named = {}, {}
    for rank, hosted in enumerate(chunks):
        for chunk, (p, _) in enumerate(hosted):
            pipe = head.pipes[p]
            mbs = list(range(pipe.first, pipe.first + pipe.padded))
            reversed_slices = [mb for at in range(0, len(mbs), pipe.slices) for mb in reversed(mbs[at:at + pipe.slices])]
            for slot in (OUTPUT, GRADIENT)[:1 + head.backward]:
                remaining[rank, chunk, slot] = list(mbs if slot == OUTPUT else reversed_slices)
                named[rank, chunk, slot] = draw.chance(0.3)
    ended = set()
    eager = draw.pick([1, 3, 10])

    def ready(rank, chunk, slot, mb):
        p, stage = chunks[rank][chunk]
        pipe = head.pipes[p]
        if slot == OUTPUT:
            needs = [(p, s, OUTPUT, mb) for s in pipe.sources(stage)] + [(p, stage, OUTPUT, pipe.slice_before(mb))]
        else:
            needs = [(p, stage, OUTPUT, mb), (p, stage, GRADIENT, pipe.slice_after(mb))] + \
                [(p, s, GRADIENT, mb) for s in pipe.readers(stage)]
        return all(need[3] is None or need in ended for need in needs)

    while any(remaining.values()) or any(queues):
        moves = []
        for (rank, chunk, slot), mbs in remaining.items():
            for mb in mbs if named[rank, chunk, slot] else mbs[:1]:
                if ready(rank, chunk, slot, mb):
                    moves.append(((rank, slot, chunk, mb), eager if slot == GRADIENT else 3))
        moves += [((rank, "W", *draw.pick(queue)), 3) for rank, queue in enumerate(queues) if queue]
        rank, slot, chunk, mb = draw.weighted(moves)
        if slot == "W":
            oldest = next(w for w in queues[rank] if w[0] == chunk)
            taken, act = draw.pick([
                (queues[rank][0], ActionStmt("W")), (oldest, ActionStmt("W", chunk)), ((chunk, mb), ActionStmt("W", chunk, mb))])
            queues[rank].remove(taken)
            bodies[rank].append(act)
            continue
        remaining[rank, chunk, slot].remove(mb)
        ended.add((*chunks[rank][chunk], slot, mb))
        kind = "F" if slot == OUTPUT else draw.pick("BI")
        if kind == "I":
            queues[rank].append((chunk, mb))
        bodies[rank].append(ActionStmt(kind, chunk, mb if named[rank, chunk, slot] else None))
    return bodies


def overlap_some(draw, body):
    """Puts neighbours into groups; not always such as can run together."""
    result, likely = [], draw.pick([0, 0, 0.1, 0.4])
    for act in body:
        last = result[-1] if result else None
        apart = isinstance(last, ActionStmt) and (last.kind, act.kind) in (("F", "B"), ("B", "F"), ("F", "I"), ("W", "F"))
        if isinstance(last, ActionStmt) and draw.chance(likely if apart else likely / 15):
            result[-1] = Overlap((last, act))
        else:
            result.append(act)
    return result


def defer_some(draw, body):
    """The same program with `defer` and `drain` where they mean the same."""
    end = len(body)
    while end and body[end - 1] == ActionStmt("W"):
        end -= 1
    if end < len(body) and draw.chance(0.7):
        body = body[:end] + [Drain()]
    if draw.chance(0.4):
        start = draw.below(len(body) + 1)
        stop = draw.integer(start, len(body))
        region = body[start:stop]
        acts = [act for node in region for act in (node.body if isinstance(node, Overlap) else [node])]
        if acts and not any(isinstance(act, Drain) or act.kind == "B" for act in acts):
            def plain(act):
                return act._replace(kind="B") if act.kind == "I" else act

            inner = [Overlap(tuple(map(plain, n.body))) if isinstance(n, Overlap) else plain(n) for n in region]
            body = body[:start] + [Defer(None, tuple(inner))] + body[stop:]
    return body


def mutate(draw, head, bodies):
    """One mistake of the kind that people make."""
    rank = draw.pick([r for r, body in enumerate(bodies) if body])
    body = bodies[rank]
    index, other = draw.below(len(body)), draw.below(len(body))
    act = body[index]
    chunks = len(head.chunks(rank))
    mistake = draw.pick(["drop", "double", "swap", "move", "reverse", "kind", "kind", "chunk", "microbatch", "take"])
    if mistake == "drop":
        del body[index]
    elif mistake == "double":
        body.insert(other, act)
    elif mistake == "swap":
        body[index], body[other] = body[other], body[index]
    elif mistake == "move":
        body.insert(other, body.pop(index))
    elif mistake == "reverse":
        body[index:other] = body[index:other][::-1]
    elif mistake == "kind":
        body[index] = ActionStmt(draw.pick("FBI"), act.chunk if act.chunk is not None else draw.below(chunks), act.mb)
    elif mistake == "chunk":
        body[index] = act._replace(chunk=draw.below(chunks + 1))
    elif mistake == "microbatch" and act.chunk is not None:
        body[index] = act._replace(mb=draw.below(max(pipe.end for pipe in head.pipes) + 1))
    else:
        body.insert(other, ActionStmt("W"))


def random_1f1b(draw):
    """One forward, one backward with warm-ups, lags and groups drawn by chance: it may well deadlock."""
    ranks, count = draw.integer(1, 4), draw.integer(1, 8)
    case = Case(draw, Head(ranks, (Pipe("main", 0, count, count, tuple(range(ranks))),), True, dict(KINDS)),
                [f"ranks {ranks};", f"microbatches {count};", "placement linear;"])
    skewed, overlaps = draw.chance(0.3), draw.chance(0.4)
    for rank in range(ranks):
        w = min(count, draw.integer(0, 3) if skewed else (1 + overlaps) * (ranks - 1 - rank) + overlaps)
        pair = (Overlap((ActionStmt("F"), ActionStmt("B"))),) if overlaps else (ActionStmt("F"), ActionStmt("B"))
        tail = (Repeat(count - w, pair), Repeat(w, (ActionStmt("B"),)))
        if draw.chance(0.5):
            lag = None if draw.chance(0.3) else draw.integer(0, 3)
            tail = (Defer(lag, tail), Drain(draw.pick([None, 0])))
        case.bodies[rank] = (Repeat(w, (ActionStmt("F"),)), *tail)
    return case


# Declared actions.

def declare(draw, case):
    """Some declared actions, with rules that place them."""
    head, kinds = case.head, case.head.kinds

    def lane(*more):
        return draw.pick([*more, "compute", "comm", "none", "x", "y"])

    def put(kind, *inserts):
        kinds[kind.mnemonic] = kind if kind.lane != "none" else kind._replace(cost=0)
        case.rules += inserts

    def cost():
        return Fraction(draw.pick([0, 1, 2]), draw.pick([1, 2]))

    condition = draw.pick([True, True, True, ("==", ("%", "m", 2), 1), ("<", "r", 1), (">=", "k", 1)])
    distance = draw.pick([0, 0, 1, 2, "r"])
    wanted = draw.weighted([("recompute", 3), ("offload", 3), ("reduce", 4), ("sent", 2), ("gather", 2)])
    if wanted == "recompute":
        put(Kind("R", lane=draw.pick(["compute", "x"]), after=(("F",),), before=(("B", "I"),), cost=cost(), memory=draw.pick([None, 0, 1]),
                 restores="F"),
            Insert("R", "before", ("B", "I"), distance=distance, condition=condition))
    elif wanted == "offload":
        memory, max_in_flight = draw.integer(0, 1), draw.pick([None, 1, 2])
        put(Kind("OFF", lane=lane("d2h"), after=(("F",),), before=(("ON",),), cost=cost(), memory=-memory, in_flight=max_in_flight),
            Insert("OFF", "after", ("F",), condition=condition))
        put(Kind("ON", lane=lane("h2d"), after=(("OFF",),), before=(("B", "I"),), cost=cost(), memory=memory, in_flight=max_in_flight),
            Insert("ON", "before", ("B", "I"), distance=distance, condition=condition))
    elif wanted == "reduce":
        collective = draw.pick([None, "replicas", "outside data", (0, -1), (-1,)])
        put(Kind("GRAD", per="stage", lane=lane("reduce"), after=(("B", "W"),), required=draw.chance(0.4), cost=cost(),
                 collective=collective),
            Insert("GRAD", "after", ("B", "W"), per_rank=draw.chance(0.4), distance=draw.pick([0, 0, 1, "r"]),
                   condition=draw.pick([True, True, (">", "s", 0)])))
        if draw.chance(0.6):
            put(Kind("STEP", per="rank", lane=lane("compute"), after=(("B", "W", "GRAD"),), required=draw.chance(0.5), cost=cost(),
                     collective=draw.pick([None, "all"])),
                Insert("STEP", "after", ("B", "W", "GRAD")))
    elif wanted == "sent":
        put(Kind("SENT", lane=lane("none"), after=((draw.pick(["SEND_F", "SEND_B", "RECV_F"]),),), cost=cost()),
            Insert("SENT", "after", (draw.pick(["F", "B"]),), condition=condition))
    elif wanted == "gather":
        put(Kind("GET", per="stage", lane=lane("gather"), before=(("F",),), cost=cost(),
                 collective=draw.pick([None, "outside data"]), in_flight=draw.pick([None, None, 1])),
            Insert("GET", "before", ("F",), per_rank=draw.chance(0.3), distance=distance))
        put(Kind("PUT", per="stage", lane=lane("none"), after=(("B", "W"),), memory=-draw.integer(0, 1)),
            Insert("PUT", "after", ("B", "W")))


def insert_probes(draw, case, bodies):
    """A declared action that stands in the statements themselves, mostly behind what it follows."""
    per = draw.pick(["microbatch", "stage", "rank"])
    lane = draw.pick(["compute", "disk", "comm", "none"])
    collective = {"microbatch": [None, (0, -1)], "stage": [None, "all", "replicas"], "rank": [None, "all"]}[per]
    kind = Kind("PROBE", per=per, lane=lane, after=(("F",),), required=draw.chance(0.5), cost=Fraction(draw.integer(0, 2)) if lane != "none" else 0,
                collective=draw.pick(collective))
    case.head.kinds["PROBE"] = kind
    for rank, body in enumerate(bodies):
        chunks = case.head.chunks(rank)
        last = {act.chunk: i for i, act in enumerate(body) if act.kind == "F"}
        if per == "rank":
            places = [(draw.integer(max(last.values(), default=0), len(body)), ActionStmt("PROBE"))] if chunks else []
        elif per == "stage":
            places = [(draw.integer(last[chunk] + 1, len(body)), ActionStmt("PROBE", chunk)) for chunk in sorted(last)]
        else:
            places = [(draw.integer(i + 1, min(len(body), i + 3)), ActionStmt("PROBE", act.chunk, act.mb)) for i, act in enumerate(body)
                      if act.kind == "F"]
        for at, act in sorted(places, key=lambda place: -place[0]):
            body.insert(at, act)


def add_transfers(draw, case):
    """Activations that move to another rank and back, where each rank has a stage of the pipe."""
    if len(case.head.pipes) > 1 or set(case.head.pipes[0].ranks) != set(range(case.head.ranks)) or case.head.ranks == 1:
        return
    memory, peer_rank = draw.integer(0, 2), draw.pick([("-", ("-", "ranks", 1), "r"), ("%", ("+", "r", 1), "ranks")])
    case.names["ranks"] = case.head.ranks
    condition = draw.pick([("==", "r", 0), ("and", ("==", ("%", "m", 2), 0), ("<", "r", draw.pick([1, 9])))])
    case.head.kinds["EVICT"] = Kind("EVICT", lane=draw.pick(["peer", "comm"]), after=(("F",),), cost=Fraction(1, 2),
                                    memory=-memory, collective="to", peer_rank=peer_rank)
    case.head.kinds["LOAD"] = Kind("LOAD", lane=draw.pick(["peer", "back"]), after=(("EVICT",),), before=(("B", "I"),),
                                   cost=Fraction(1, 2), memory=memory, collective="from", peer_rank=peer_rank)
    case.rules += [Insert("EVICT", "after", ("F",), condition=condition),
                   Insert("LOAD", "before", ("B", "I"), distance=draw.integer(0, 1), condition=condition)]


# Models whose layers say what their actions are made of.

class Layer:
    """A layer: by kind its chains, each a list of nodes. A node is (mnemonic, name); `lanes` and `costs` are by node."""

    def __init__(self, draw, name, kinds):
        self.name, self.chains, self.lanes, self.costs = name, {}, {}, {}
        for kind in kinds:
            names = draw.subset(["p", "q", "r", "t"], 0.5) or ["p"]
            nodes = [(kind, one + name) for one in (names if draw.chance(0.5) else names[::-1])]
            self.chains[kind] = [nodes]
            if kind == "B" and draw.chance(0.4):  # The weights' part hangs on some node.
                self.chains[kind].append([draw.pick(nodes), ("W", "w" + name)])
            for chain in self.chains[kind]:
                for node in chain:
                    self.lanes.setdefault((kind, node), draw.pick(["comp", "comm", "comp"]))
                    if draw.chance(0.8):
                        self.costs[node] = Fraction(draw.integer(1, 5), draw.pick([1, 2, 4]))

    def text(self):
        lines, known = [], set()
        for kind, chains in self.chains.items():
            for chain in chains:
                words = []
                for node in chain:
                    name = node[1] if node[0] == kind else f"{node[0]}.{node[1]}"
                    words.append(name if (kind, node) in known else f"{name} @ {self.lanes[kind, node]}")
                    known.add((kind, node))
                lines.append(f"{kind}: {' -> '.join(words)};")
        lines += [f"cost {mnemonic}.{name} = {decimal(cost)};" for (mnemonic, name), cost in self.costs.items()]
        return f"layer {self.name} {{ {' '.join(lines)} }}"


def add_layers(draw, case):
    """Gives the case a model of layers; the layers of each stage."""
    layers = [Layer(draw, name, "FBIW") for name in "abc"[:draw.integer(1, 3)]]
    if not any(layer.costs for layer in layers):
        layers[0].costs[layers[0].chains["F"][0][0]] = Fraction(1)
    stages = [[draw.pick(layers) for _ in range(draw.integer(1, 3))] for _ in case.head.pipes[0].ranks]
    used = [layer for layer in layers if any(layer in stage for stage in stages)]
    case.model += [*(layer.text() for layer in used), f"layers {', '.join(layer.name for stage in stages for layer in stage)};",
                   f'layout "{"|".join("".join(layer.name for layer in stage) for stage in stages)}";']
    for node in draw.subset(sorted({node for layer in used for _, node in layer.lanes}), 0.15):  # What the model says of all layers.
        cost = Fraction(draw.integer(0, 5))
        case.model.append(f"cost {'.'.join(node)} = {decimal(cost)};")
        for layer in used:
            layer.costs[node] = cost
    return stages


# `defer W fill`, where the compiler places W's.

def fill_case(draw):
    """A case whose bodies say the order of forwards and backwards; its text lets the compiler place each W. With it the cap of each
    rank and the lag, if there are."""
    ranks, count, chunks = draw.integer(1, 5), draw.integer(1, 10), draw.integer(1, 3)
    stages = draw.pick([[s % ranks for s in range(ranks * chunks)], wave_placement(ranks, chunks),
                        list(range(ranks)) + [draw.below(ranks) for _ in range(ranks * (chunks - 1))]])
    pipe = Pipe("main", 0, count, count, tuple(stages))
    case = Case(draw, Head(ranks, (pipe,), True, dict(KINDS)),
                [f"ranks {ranks};", f"microbatches {count};", f"stages {len(stages)};", f"stage s on rank {stages}[s];"])
    activation_memory = [draw.pick([1, 1, 2, 3, 5]) for _ in stages]
    freed_by_i = [draw.integer(0, one) for one in activation_memory]  # Of it, with the input gradient.
    for kind in "FIW":
        values = {("stage", s): Fraction(draw.integer(0, 9)) for s in range(len(stages))}
        add_setting(case, "cost", kind, values)
    add_setting(case, "memory", "F", {("stage", s): Fraction(one) for s, one in enumerate(activation_memory)})
    add_setting(case, "memory", "I", {("stage", s): Fraction(-one) for s, one in enumerate(freed_by_i)})
    add_setting(case, "memory", "W", {("stage", s): Fraction(one - all) for s, (one, all) in enumerate(zip(freed_by_i, activation_memory))})
    if draw.chance(0.7):
        min_limit = max(sum(one for one, home in zip(activation_memory, stages) if home == rank) for rank in range(ranks))
        add_setting(case, "limit", None, {(): Fraction(min_limit + draw.pick([0, 0, 1, 2, 3, 5, 8, 100]))})
    if draw.chance(0.4):
        add_setting(case, "latency", None, {(): Fraction(draw.pick([1, 4]))})
    caps = [stages.count(rank) + draw.pick([0, 1, 4]) for rank in range(ranks)] if draw.chance(0.3) else None
    lag = draw.integer(0, 3) if draw.chance(0.25) else None
    order = draw.pick(["each", "all", "chunks"])
    for rank in range(ranks):
        own = range(stages.count(rank))
        if order == "each":
            body = (Repeat(count, tuple([ActionStmt("F", c) for c in own] + [ActionStmt("B", c) for c in reversed(own)])),)
        elif order == "all":
            body = (Repeat(count, tuple(ActionStmt("F", c) for c in own)), Repeat(count, tuple(ActionStmt("B", c) for c in reversed(own))))
        else:
            body = (*(Repeat(count, (ActionStmt("F", c),)) for c in own), *(Repeat(count, (ActionStmt("B", c),)) for c in reversed(own)))
        case.bodies[rank] = (Defer(None, body), Drain())
    return case, caps, lag


def add_setting(case, item, subject, values):
    """A cost that stands in the schedule."""
    case.settings += [(0, Setting(item, subject, amount, dict(zip(key[::2], key[1::2])))) for key, amount in values.items()]
    in_text(case, item, subject, "stage" if () not in values else "all", values)


def fill_source(case, caps, lag):
    """Its text, with W's left to the compiler."""
    text = source(case).replace("    drain W;\n", "")
    for rank in range(case.head.ranks):
        words = "fill" + (f" lag {lag}" if lag is not None else "") + (f" cap {caps[rank]}" if caps else "")
        text = text.replace(f"on rank {rank} {{\n    defer W {{", f"on rank {rank} {{\n    defer W {words} {{")
    return text


# Costs.

def add_costs(draw, case, memory=False):
    """Costs in all forms, each by chance in the schedule, in a file or on the command line."""
    # Files and options can only speak of declared actions that some rank runs.
    used = {row.kind.mnemonic: row.kind for rank in case.expand()[0].rows for row in rank}
    declared = [mnemonic for mnemonic in case.head.kinds if mnemonic in used and mnemonic not in KINDS]

    def positive():
        return Fraction(draw.integer(1, 5), draw.pick([1, 2]))

    def amount():
        return Fraction(draw.pick([1, 2, 3, 0, 5, 7]), draw.pick([1, 1, 2, 4, 10]))

    for mnemonic in draw.subset([*"FBIW", *(mnemonic for mnemonic in declared if used[mnemonic].lane != "none")], 0.4):
        write_cost(draw, case, "cost", mnemonic, amount)
    rule = draw.weighted([(None, 5), ("overlap", 1), ("sum", 1), ("max", 1)])
    if rule:
        write_cost(draw, case, "cost" if rule == "overlap" else "group", rule, amount, ["all"])
    if draw.chance(0.6):
        write_cost(draw, case, "latency", None, amount, ["all", "stage", "pipe", "link"])
    if draw.chance(0.3):
        write_cost(draw, case, "bytes", None, amount)
        write_cost(draw, case, "bandwidth", None, positive, ["all", "stage", "pipe", "link"])
    if draw.chance(0.8 if memory else 0.3):
        given = draw.subset([*"FIBW", *declared], 0.4)
        for mnemonic in given:
            sign = 1 if mnemonic == "F" else draw.pick([-1, 1])
            write_cost(draw, case, "memory", mnemonic, lambda: sign * amount())
    if draw.chance(0.3):
        write_cost(draw, case, "static", None, amount)
    for subject in draw.subset(["all", "time", "memory", "bytes", *"FBIW"], 0.08):
        write_cost(draw, case, "scale", subject, lambda: draw.pick([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(0)]), ["microbatch"])


def write_cost(draw, case, item, subject, value, forms=("all", "stage", "pipe")):
    """Writes a cost somewhere in one of the forms, and notes what it says."""
    head, place, form = case.head, draw.pick(["model", "file", "option"]), draw.pick(forms)
    if place == "option" and form != "microbatch" or form == "stage" and len({len(pipe.ranks) for pipe in head.pipes}) > 1:
        form = "all"
    if form == "pipe" and place == "model" and head.pipes[0].name == "main":
        form = "stage"  # Without `pipe` it has no name in schedules.
    if form == "all":
        values = {(): value()}
    elif form == "link":
        values = {("link", (a, b)): value() for a in range(head.ranks) for b in range(head.ranks) if a != b}
    elif form == "microbatch" and all(isinstance(pipe.end, int) for pipe in head.pipes):
        place = "model" if place == "option" else place
        values = {("microbatch", m): value() for m in range(max(pipe.end for pipe in head.pipes))}
    elif form == "microbatch":  # For all M the same again and again.
        period = [value() for _ in range(draw.integer(1, 3))]
        place, values = "model", {("microbatch", m): period[m % len(period)] for m in range(200)}
    elif form == "stage":
        values = {("stage", s): value() for s in range(len(head.pipes[0].ranks))}
    elif form == "rank":
        values = {("rank", r): value() for r in range(head.ranks)}
    else:
        chosen = draw.subset(range(len(head.pipes)), 0.7) or [0]
        values = {("pipe", p, "stage", s): value() for p in chosen for s in range(len(head.pipes[p].ranks))}
    if not values:
        return
    case.settings += [(["model", "file", "option"].index(place), Setting(item, subject, amount, dict(zip(key[::2], key[1::2]))))
                   for key, amount in values.items()]
    {"model": in_text, "file": in_file, "option": in_option}[place](case, item, subject, form, values)


def in_option(case, item, subject, form, values):
    name = {"cost": subject, "group": f"group.{subject}", "memory": f"memory.{subject}"}.get(item, item)
    case.options.append(f"--cost={name}={decimal(values[()])}")


def in_file(case, item, subject, form, values):
    numbers = {key: float(amount) for key, amount in values.items()}
    written = next(iter(numbers.values()))
    if form in ("stage", "rank", "microbatch"):
        written = list(numbers.values())
    elif form == "link":
        written = {f"{a}-{b}": amount for (_, (a, b)), amount in numbers.items()}
    elif form == "pipe":
        written = {}
        for (_, p, _, _), amount in numbers.items():
            written.setdefault(case.head.pipes[p].name, []).append(amount)
    place = case.file if subject is None else case.file.setdefault(item, {})
    place[item if subject is None else subject] = written


def in_text(case, item, subject, form, values):
    section = case.cluster if item in ("latency", "bandwidth", "limit") else case.model
    words = item if subject in (None, "all") else f"{item} {subject}"
    if form == "link":
        case.link.append(f"{item} = {conditional_text([(f'a == {a} and b == {b}', x) for (_, (a, b)), x in values.items()])};")
    elif form == "microbatch":
        period = 6 if len(values) == 200 else len(values)
        section.append(f"{words} microbatch m = {conditional_text([(f'm % {period} == {m}', values['microbatch', m]) for m in range(period)])};")
    elif form in ("stage", "rank"):
        section.append(f"{words} {form} i = {conditional_text([(f'i == {i}', x) for (_, i), x in values.items()])};")
    elif form == "pipe":
        for p in sorted({key[1] for key in values}):
            rows = [(f"s == {key[3]}", x) for key, x in values.items() if key[1] == p]
            section.append(f"{words} pipe {case.head.pipes[p].name} stage s = {conditional_text(rows)};")
    else:
        section.append(f"{words} = {decimal(values[()])};")


def conditional_text(pairs):
    """The value of the first condition that holds."""
    return "".join(f"{condition} ? {decimal(amount)} : " for condition, amount in pairs) + decimal(pairs[-1][1])


def decimal(value):
    return f"{float(value):.9f}".rstrip("0").rstrip(".")


# Text.

def obfuscate(draw, n):
    """An expression whose value is n."""
    if not isinstance(n, int) or not draw.chance(0.2):
        return n
    a, b = draw.integer(-9, 9), draw.integer(1, 4)
    return draw.pick([
        n, ("+", a, n - a), ("/", n * b + draw.below(b), b), ("/", -n * b - draw.below(b), -b), ("max", n, n - b),
        ("%", draw.integer(-2, 2) * (n + b) + n, n + b) if n >= 0 else n, ("abs", n) if n >= 0 else n,
        ("?", ("<", a, b), n if a < b else b, b if a < b else n)])


def expr_text(expr):
    """An expression in the language."""
    if isinstance(expr, bool):
        return str(expr).lower()
    if not isinstance(expr, tuple):
        return f"({expr})" if isinstance(expr, int) and expr < 0 else str(expr)
    name, args = expr[0], expr[1:]
    if name == "pipe":
        return args[0]
    if name == "issued":
        return f"issued({', '.join([args[0], *map(expr_text, args[1:])])})"
    if name in ("pending", "padded"):
        return f"{name}({expr_text(args[0])})" if args else name
    words = [expr_text(arg) for arg in args]
    if name == "list":
        return f"[{', '.join(words)}]"
    if name in ("min", "max", "abs"):
        return f"{name}({', '.join(words)})"
    if name == "not":
        return f"(not {words[0]})"
    if name == "?":
        return f"({words[0]} ? {words[1]} : {words[2]})"
    if name == "[]":
        return f"{words[0]}[{words[1]}]"
    return f"({words[0]} {name} {words[1]})"


def statement(node):
    def block(body):
        return "{ " + " ".join(map(statement, body)) + " }"

    if isinstance(node, ActionStmt):
        words = [] if node.chunk is None else [expr_text(node.chunk)]
        words += [] if node.mb is None else [f"mb: {expr_text(node.mb)}"]
        return f"{node.kind}({', '.join(words)});" if words else f"{node.kind};"
    if isinstance(node, Overlap):
        return f"overlap {block(node.body)}"
    if isinstance(node, Defer):
        return f"defer W{'' if node.lag is None else f' lag {expr_text(node.lag)}'} {block(node.body)}"
    if isinstance(node, Drain):
        return f"drain W{'' if node.chunk is None else f'({expr_text(node.chunk)})'};"
    if isinstance(node, Repeat):
        return f"repeat {expr_text(node.count)} {block(node.body)}"
    if isinstance(node, For):
        return f"for {node.name} in {expr_text(node.low)} .. {expr_text(node.high)} {block(node.body)}"
    if isinstance(node, While):
        return f"while {expr_text(node.condition)} {block(node.body)}"
    if isinstance(node, If):
        return f"if {expr_text(node.condition)} {block(node.then)}" + (f" else {block(node.other)}" if node.other else "")
    if isinstance(node, Phase):
        return f"phase {node.name} {block(node.body)}"
    return f"let {node.name} = {expr_text(node.value)};"


def with_loops(draw, case, rank, nodes):
    """The same statements with loops for what repeats."""
    nodes, result, forwards = list(nodes), [], {}
    chunks = len(case.head.chunks(rank))
    while nodes:
        first, length = nodes[0], 1
        step = None
        if isinstance(first, ActionStmt) and isinstance(first.mb, int) and len(nodes) > 1 and isinstance(nodes[1], ActionStmt) and \
                isinstance(nodes[1].mb, int):
            step = nodes[1].mb - first.mb
        if step in (-1, 1):
            while length < len(nodes) and nodes[length] == first._replace(mb=first.mb + length * step):
                length += 1
        else:
            while length < len(nodes) and nodes[length] == first:
                length += 1
        if draw.chance(0.3):
            length = 1
        if length == 1:
            result.append(first)
        elif step == 1:
            result.append(For("i", first.mb, obfuscate(draw, first.mb + length), (first._replace(mb="i"),)))
        elif step == -1:
            result.append(For("i", 0, length, (first._replace(mb=("-", first.mb, "i")),)))
        elif isinstance(first, ActionStmt) and first.kind == "F" and isinstance(first.chunk, int) and first.chunk < chunks and \
                draw.chance(0.3):
            more = forwards.get(first.chunk, 0) + length
            result.append(While(("<", ("issued", "F", first.chunk), obfuscate(draw, more)), (first,)))
        else:
            result.append(Repeat(obfuscate(draw, length), (first,)))
        for node in nodes[:length]:
            for act in node.body if isinstance(node, (Overlap, Defer)) else [node]:
                if isinstance(act, ActionStmt) and act.kind == "F":
                    forwards[act.chunk] = forwards.get(act.chunk, 0) + 1
        del nodes[:length]
    return result


def with_phases(draw, nodes):
    cuts = sorted({0, len(nodes), *(draw.below(len(nodes) + 1) for _ in range(draw.below(4)))})
    result = []
    for start, stop in zip(cuts, cuts[1:]):
        name = draw.pick([None, "warmup", "steady", "cooldown", "tail"])
        result += [Phase(name, tuple(nodes[start:stop]))] if name else nodes[start:stop]
    return tuple(result)


def with_chunk_names(draw, case, rank, node):
    """The same with other words for chunks."""
    if isinstance(node, tuple) and not isinstance(node, (ActionStmt, Drain)) and hasattr(node, "body"):
        return node._replace(body=tuple(with_chunk_names(draw, case, rank, one) for one in node.body))
    chunks = case.head.chunks(rank)
    if not isinstance(node, (ActionStmt, Drain)) or not isinstance(node.chunk, int) or node.chunk >= len(chunks):
        return node
    name = case.head.pipes[chunks[node.chunk][0]].name
    if len(chunks) == 1 and draw.chance(0.7) and not (isinstance(node, Drain) or node.kind == "W"):
        return node._replace(chunk=None)
    if name != "main" and [p for p, _ in chunks].count(chunks[node.chunk][0]) == 1 and draw.chance(0.7):
        return node._replace(chunk=("pipe", name))
    return node._replace(chunk=obfuscate(draw, node.chunk))


def kind_text(kind):
    words = {"microbatch": "", "stage": "per stage; ", "rank": "per rank; "}[kind.per]
    words += f"lane {kind.lane}; "
    words += "".join(f"after {', '.join(choice)}; " for choice in kind.after)
    words += "".join(f"before {', '.join(choice)}; " for choice in kind.before)
    words += f"cost {decimal(kind.cost)}; " if kind.cost else ""
    words += f"memory {decimal(kind.memory)}; " if kind.memory is not None else ""
    words += "required; " if kind.required else ""
    words += f"restores {kind.restores}; " if kind.restores else ""
    words += f"in_flight {kind.in_flight}; " if kind.in_flight else ""
    if kind.collective in ("to", "from"):
        words += f"{kind.collective} rank {expr_text(kind.peer_rank)} for rank r; "
    elif isinstance(kind.collective, tuple):
        words += f"collective stages({', '.join(map(str, kind.collective))}); "
    elif kind.collective:
        words += f"collective {kind.collective.removeprefix('outside ')}; "
    return f"action {kind.mnemonic} {{ {words}}}"


def insert_text(rule):
    named = []
    text = f"insert {rule.action} {rule.side} {', '.join(rule.anchors)}{' per rank' if rule.per_rank else ''}"
    if rule.distance != 0:
        text += f" by {expr_text(rule.distance)}"
    used = f" {expr_text(rule.condition)} {expr_text(rule.distance)} ".replace("(", " ").replace(")", " ").split()
    for name, word in (("m", "microbatch m"), ("s", "stage s"), ("r", "rank r"), ("k", "F k")):
        if name in used:
            named.append(word)
    text += f" for {', '.join(named)}" if named else ""
    return text + (f" when {expr_text(rule.condition)};" if rule.condition is not True else ";")


def source(case):
    """The schedule as a file."""
    head = case.head
    lines = [kind_text(kind) for mnemonic, kind in head.kinds.items() if mnemonic not in KINDS]
    if case.rules:
        lines += ["rule all() {", *("  " + insert_text(rule) for rule in case.rules), "}"]
    if any("blocks(" in line for line in case.lines):
        lines.append("placement blocks(n: int >= 1) { stages ranks * n; stage s on rank s / n; }")
    params = ", ".join(f"{name}: int = {value}" for name, value in case.names.items() if name != "ranks")
    lines += [f"schedule random({params}) {{", *("  " + line for line in case.lines)]
    lines += ["  with all;"] if case.rules else []
    lines += [f"  model {{ {' '.join(case.model)} }}"] if case.model else []
    links = [f"link a, b {{ {' '.join(case.link)} }}"] if case.link else []
    lines += [f"  cluster {{ {' '.join(case.cluster + links)} }}"] if case.cluster + links else []
    same = case.style == "one" and case.bodies.count(case.bodies[0]) == head.ranks
    for rank, body in enumerate(case.bodies[:1] if same else case.bodies):
        written = ["    " + statement(node) for node in body]
        if case.style == "block":
            lines += [f"  block rank{rank}() {{", *written, "  }"]
            written = [f"    rank{rank}();"]
        start = f"  on rank {rank} {{" if case.style != "one" else ("  on rank r {\n    " if rank == 0 else "    else ") + f"if r == {rank} {{"
        start = "  on rank r {" if same else start
        lines += [start, *written, "  }" if same or case.style != "one" else "    }"]
    lines += ["  }"] if case.style == "one" and not same else []
    return "\n".join([*lines, "}\n"])


# Schedules for every number of microbatches, the parameter M.

def for_all(draw, costed=True):
    """A schedule whose loops grow with M; some are damaged, mostly for some M alone."""
    case = draw.weighted([(for_all_two_pipes, 1), (for_all_gpipe, 2), (for_all_1f1b, 3), (by_formula, 2)])(draw)
    case.names["M"] = 4
    for _ in draw.repeatedly(0.35):
        mutate_for_all(draw, case)
    for _ in draw.repeatedly(0.15):
        declare(draw, case)
    case.require = draw.weighted([(True, 8), ((">=", "M", draw.integer(2, 5)), 1), (("==", ("%", "M", draw.integer(2, 4)), draw.below(2)), 1)])
    if case.require is not True:
        case.lines.insert(0, f'require {expr_text(case.require)}, "asked for";')
        case.names["M"] = next(m for m in range(4, 9) if value_of(case.require, {"M": m}))
    if costed:
        add_costs(draw, case)
        if draw.chance(0.15):
            write_cost(draw, case, "limit", None, lambda: Fraction(draw.integer(2, 8)), ["all", "rank"])
    return case


def free_case(draw, ranks, stages, placement, slices=1):
    end = ("*", slices, "M") if slices > 1 else draw.weighted([("M", 8), (("*", 2, "M"), 1), (("+", "M", 1), 1)])
    padded = ("max", end, draw.integer(2, 6)) if slices == 1 and draw.chance(0.1) else end
    pipe = Pipe("main", 0, end, padded, tuple(stages), (), (), slices)
    lines = [f"ranks {ranks};", f"microbatches {expr_text(end)}{'' if padded == end else f' pad {expr_text(padded)}'};", placement]
    return Case(draw, Head(ranks, (pipe,), True, dict(KINDS)), lines + [f"slices {slices};"] * (slices > 1))


def backward(draw, chunk=None):
    """What does the whole backward of the next microbatch, at once or in two."""
    return draw.weighted([((ActionStmt("B", chunk),), 3), ((ActionStmt("I", chunk), ActionStmt("W", chunk)), 1)])


def for_all_1f1b(draw):
    """One forward, one backward on each rank, behind a warm-up."""
    ranks = draw.integer(1, 4)
    case = free_case(draw, ranks, range(ranks), "placement linear;", draw.weighted([(1, 9), (2, 1)]))
    count, overlaps, defers = case.head.pipes[0].padded, draw.chance(0.2), draw.chance(0.3)
    depth, lag = draw.pick([1, 2]), draw.pick([0, None, 1, 2])
    skewed, back = draw.chance(0.2), backward(draw)
    for rank in range(ranks):
        first = ("min", draw.integer(0, 3) if skewed else depth * (ranks - 1 - rank) + overlaps, count)
        pair = (Overlap((ActionStmt("F"), ActionStmt("B"))),) if overlaps else (ActionStmt("F"), *back)
        rest = draw.weighted([
            ((Repeat(("-", count, "w"), pair), Repeat("w", back)), 5),
            ((While(("<", ("issued", "B", 0), count),
                    (If(("and", ("<", ("issued", "F", 0), count), ("<", ("-", ("issued", "F", 0), ("issued", "B", 0)), ("max", "w", 1))),
                        (ActionStmt("F"),), back),)),), 1)])
        body = (Phase("steady", (rest[0],)), Phase("cooldown", rest[1:])) if len(rest) > 1 else rest
        if defers and back == (ActionStmt("B"),):
            body = (Defer(lag, body), Drain())
        case.bodies[rank] = (Let("w", first), Phase("warmup", (Repeat("w", (ActionStmt("F"),)),)), *body)
    return case


def by_formula(draw):
    """One text for all ranks, whose warm-up is some function of rank, ranks and M, mostly such that no rank waits for itself."""
    ranks = draw.integer(1, 5)
    case = free_case(draw, ranks, range(ranks), "placement linear;")
    case.names["P"], case.style, count = ranks, "one", case.head.pipes[0].padded
    case.lines[0] = "ranks P;"
    behind = ("-", ("-", "P", 1), "r")
    conditions = [("==", ("%", "M", 3), 1), ("==", ("%", "M", 2), 0), (">", "M", 20), ("==", "M", 17), ("==", "r", 0),
                  ("and", ("==", behind, 0), ("==", ("%", "M", 4), 1)), ("<", "M", 9)]
    first = behind
    if draw.chance(0.5):
        first = ("max", behind, draw.pick([0, 1, 2, "r", ("*", 2, behind), ("/", "M", 3), ("%", "M", 2), ("%", "M", 3), ("-", 20, "M"),
                                           ("-", "M", 12), "P"]))
    if draw.chance(0.5):
        first = ("+", first, ("?", draw.pick(conditions), draw.integer(1, 2), 0))
    back = draw.pick([(ActionStmt("B"),), (ActionStmt("B"),), (ActionStmt("I"), ActionStmt("W")), (ActionStmt("I"),)])
    steady, cooldown = (ActionStmt("F"), *back), Repeat("w", back)
    if draw.chance(0.5):
        steady = (If(("==", ("%", "i", 2), 0), steady, steady),)
    if len(back) == 1 and back[0].kind == "B" and draw.chance(0.3):
        steady = (Overlap((ActionStmt("F"), ActionStmt("B"))),)
    if len(back) == 1 and back[0].kind == "I" and draw.chance(0.5):
        cooldown = Defer(draw.pick(["r", 2, "P"]), (Repeat("w", (ActionStmt("B"),)),))
    body = (Let("w", count if draw.chance(0.25) else ("min", first, count)), Repeat("w", (ActionStmt("F"),)),
            For("i", 0, ("-", count, "w"), steady), cooldown, Drain())
    if draw.chance(0.1):
        body = tuple(For("i", 0, count, (ActionStmt(kind, None, ("-", ("-", count, 1), "i")),)) for kind in "FB")
    case.bodies = [body] * ranks
    return case


def for_all_gpipe(draw):
    """All forwards of a rank and then all backwards, in one of many orders."""
    ranks = draw.integer(1, 3)
    stages, placement = random_placement(draw, ranks)
    if placement is None:
        stages, placement = list(range(ranks)), "placement linear;"
    case = free_case(draw, ranks, stages, placement)
    count, back = case.head.pipes[0].padded, draw.chance(0.3)
    split, backward_reversed, blocks, in_turn = draw.chance(0.3), draw.chance(0.3), draw.pick([None, 2, 3, 4]), draw.chance(0.2)

    def run(acts, index):
        if blocks:
            return (For("i", 0, ("/", count, blocks), (Repeat(blocks, acts),)), Repeat(("%", count, blocks), acts))
        return (For(index, 0, count, acts),)

    for rank in range(ranks):
        body, chunks = [], range(len(case.head.chunks(rank)))
        forwards = tuple(ActionStmt("F", c) for c in chunks)
        for acts in (forwards,) if in_turn else ((act,) for act in forwards):
            body += run(acts, "i")
        for c in reversed(chunks):
            kind = "I" if split else "B"
            body += (For("i", 0, count, (ActionStmt(kind, c, ("-", ("-", count, 1), "i")),)),) if backward_reversed else run((ActionStmt(kind, c),), "i")
            body += [Drain(c)] if split and back else []
        case.bodies[rank] = (*body, Drain()) if split and not back else tuple(body)
    return case


def for_all_two_pipes(draw):
    """Some of the microbatches down the ranks, the others up."""
    ranks = draw.integer(1, 4)
    half = draw.pick([("*", 2, "M"), ("/", "M", 2), ("/", ("+", "M", 1), 2), ("+", ("/", "M", 3), 1), ("max", ("-", "M", 4), 1)])
    first, end = ("M", ("*", 2, "M")) if half[0] == "*" else (half, "M")
    pipes = (Pipe("down", 0, first, first, tuple(range(ranks))), Pipe("up", first, end, ("-", end, first), tuple(reversed(range(ranks)))))
    lines = [f"ranks {ranks};"] + [
        f"pipe {pipe.name} {{ microbatches {expr_text(pipe.first)} .. {expr_text(pipe.end)}; stages {ranks}; "
        f"stage s on rank {list(pipe.ranks)}[s]; }}" for pipe in pipes]
    case = Case(draw, Head(ranks, pipes, True, dict(KINDS)), lines)
    acts = {kind: [ActionStmt(kind, ("pipe", pipe.name)) for pipe in pipes] for kind in "FB"}
    loops = {kind: [Repeat(pipe.padded, (act,)) for pipe, act in zip(pipes, both)] for kind, both in acts.items()}
    pair = (acts["F"][1], acts["B"][1])
    order = draw.weighted([("all", 2), ("together", 2), ("pipes", 1), ("pairs", 1), ("groups", 1)])
    if order == "together" and half[0] == "*":
        body = tuple(Repeat("M", tuple(both)) for both in acts.values())
    elif order in ("all", "together"):
        body = (*loops["F"], *loops["B"])
    elif order == "pipes":
        body = (loops["F"][0], loops["B"][0], loops["F"][1], loops["B"][1])
    else:
        body = (loops["F"][0], loops["B"][0], Repeat(pipes[1].padded, pair if order == "pairs" else (Overlap(pair[:1]), pair[1])))
    case.bodies = [body] * ranks
    return case


def mutate_for_all(draw, case):
    """One mistake, or one detour, for all M or for some."""
    rank = draw.below(case.head.ranks)
    places = list(nodes_in(case.bodies[rank]))
    if not places:
        return
    path, node = draw.pick(places)
    condition = draw.pick([("==", ("%", "M", draw.integer(2, 7)), draw.below(3)), ("==", "M", draw.integer(1, 30)), (">", "M", draw.integer(3, 25)),
                           ("<", "M", draw.integer(3, 25)), ("and", (">", "M", draw.integer(2, 9)), ("==", ("%", "M", 3), 1))])
    change = draw.weighted([("when", 4), ("double", 2), ("drop", 1), ("count", 3), ("swap", 2), ("phase", 2), ("first", 2), ("kind", 1)])
    if change == "when":
        new = (If(condition, (node,)),)
    elif change == "double":
        new = (node, If(condition, (node,)))
    elif change == "drop":
        new = ()
    elif change == "count" and isinstance(node, Repeat):
        new = (node._replace(count=draw.pick([("+", node.count, 1), ("-", node.count, 1), ("max", node.count, 2), ("min", node.count, "M")])),)
    elif change == "phase":
        new = (Phase(draw.pick(["warmup", "tail"]), (node,)),)
    elif change == "first" and isinstance(node, Repeat):  # The same, said in two loops.
        some = ("min", draw.integer(1, 3), ("max", node.count, 0))
        new = (node._replace(count=some), node._replace(count=("-", node.count, some)))
    elif change == "kind" and isinstance(node, ActionStmt):
        new = (If(condition, (node._replace(kind=draw.pick("FBI")),), (node,)),)
    elif change == "swap" and isinstance(node, Repeat):
        new = (If(condition, (node._replace(body=tuple(reversed(node.body))),), (node,)),)
    else:
        new = (node,)
    case.bodies[rank] = replaced(case.bodies[rank], path, new)


def nodes_in(body, path=()):
    for i, node in enumerate(body):
        if not isinstance(node, Let):
            yield (*path, i), node
        if isinstance(node, (Repeat, For, Phase, Defer, While)):
            yield from nodes_in(node.body, (*path, i))


def replaced(body, path, new):
    i = path[0]
    if len(path) == 1:
        return (*body[:i], *new, *body[i + 1:])
    return (*body[:i], body[i]._replace(body=replaced(body[i].body, path[1:], new)), *body[i + 1:])


# Schedules of the library, for every number of microbatches M.

LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "lib" / "schedules"
NAMES = """gpipe one_f_one_b one_f_one_b_overlap eager_1f1b zb_h1 zb_h2 zb1p seq1f1b looped_bfs zero_bubble_v dualpipe dualpipe_v chimera hanayo
    interleaved_1f1b interleaved_1f1b_overlap v_half v_min breadth_first_fsdp slimpipe gis bitpipe""".split()
ACTION = r"\b(?:F|B|I|W)(?:\([^;(){}]*(?:\([^()]*\)[^;(){}]*)*\))?;"


def of_library(draw):
    """The text of a schedule of the library, perhaps with one change, and options for it."""
    name = draw.pick(NAMES)
    text = (LIBRARY / f"{name}.pp").read_text(encoding="utf-8")
    if draw.chance(0.7):
        text = changed(draw, text)
    options = [f"-DP={draw.pick([2, 4, 2, 4, 3, 6])}"]
    if draw.chance(0.5):
        return text, options
    costs = {kind: draw.pick([1, 2, 3, 0.25, 0.5, 1.25]) for kind in draw.pick(["", "F", "FB", "FIW", "FBIW"])}
    if draw.chance(0.35):
        costs["latency"] = draw.pick([1, 3, 0.05, 0.1, 0.3])
    if draw.chance(0.3):
        costs |= {"bytes": draw.pick([1, 8, 10]), "bandwidth": draw.pick([10, 64, 3])}
    if draw.chance(0.3):
        costs |= draw.pick([{"group.sum": 0.8}, {"group.max": 1}, {"overlap": 2.5}])
    if draw.chance(0.3):
        costs |= {"memory.F": draw.pick([1, 2, 0.5]), "static": draw.pick([0, 1, 3])}
        costs |= draw.pick([{}, {"memory.I": -0.5, "memory.W": -0.25}])
    if draw.chance(0.2):
        costs["limit"] = draw.pick([2, 4, 8, 30, 100])
    return text, [*options, *(f"--cost={item}={value}" for item, value in costs.items())]


def rules(draw):
    """Options for rules of std.pp."""
    some = ["recompute", f"recompute({draw.integer(1, 3)}, {draw.integer(1, 2)})", f"offload({draw.integer(1, 2)})", "release", "fsdp", "reduce_grads", "step"]
    return [f"--with={rule}" for rule in draw.subset(some, draw.pick([0, 0, 0.2]))]


def changed(draw, text):
    """The text with one change in what ranks do, where there is a place for it."""
    condition = draw.pick(["M % 3 == 1", "M == 57", "M > 40", "r == 1 and M % 5 == 2", "M < 30", "r == 0", "M % 4 == 0 and r > 0"])
    pattern, change = draw.pick([
        (ACTION, lambda act: f"if {condition} {{ {act} }}"),
        (ACTION, lambda act: f"if {condition} {{ {act} }} else {{ {act} }}"),
        (r"(?<![\w.])\d+(?![\w.])", lambda number: str(max(0, int(number) + draw.pick([-1, 1])))),
        (r" [+-] ", lambda sign: " - " if sign == " + " else " + "),
        (ACTION, lambda act: ""),
        (ACTION, lambda act: act + " " + act),
        (ACTION, lambda act: {"F": "B", "B": draw.pick("FI"), "I": "B", "W": "F"}[act[0]] + act[1:]),
        (r" (?:<|>|<=|>=|==) ", lambda sign: f" {draw.pick(['<', '<=', '>', '>=', '==', '!='])} "),
        (r"\bM\b", lambda name: draw.pick(["(M - 1)", "(M + 1)", "(M / 2)", "max(M - 3, 1)"])),
    ])
    begin = text.find("on rank")
    places = list(re.finditer(pattern, text[begin:]))
    if not places:
        return text
    place = draw.pick(places)
    return text[:begin + place.start()] + change(place[0]) + text[begin + place.end():]


def schedule(draw, sound=False, costed=True, memory=False, has_transfers=False, plain=False):
    """A random schedule; mostly one that is right if `sound`, with memory of all kinds if `memory`, and perhaps with moves;
    without declared actions if `plain`."""
    if draw.chance(0.25):
        case = random_1f1b(draw)
    else:
        case = random_case(draw)
        bodies = random_bodies(draw, case.head)
        for _ in draw.spans_of(0 if sound else draw.pick([0, 0, 0, 1, 1, 2])):
            if any(bodies):
                mutate(draw, case.head, bodies)
        if not plain and draw.chance(0.15):
            insert_probes(draw, case, bodies)
        for rank, body in enumerate(bodies):
            body = defer_some(draw, body if sound else overlap_some(draw, body))
            body = with_loops(draw, case, rank, [with_chunk_names(draw, case, rank, node) for node in body])
            case.bodies[rank] = with_phases(draw, body)
    for _ in draw.repeatedly(0 if plain else 0.3):
        declare(draw, case)
    if has_transfers and not plain and not case.rules and draw.chance(0.2):
        add_transfers(draw, case)
    if costed:
        add_costs(draw, case, memory)
    case.style = draw.weighted([("rank", 4), ("block", 1), ("one", 1)])
    return case
