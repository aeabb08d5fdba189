"""Makes random small schedules in the language, most of them sound, some damaged on purpose."""

import itertools

from judge import Act, Defer, Drain, Group, Pipe, Shape


def random_pipe(rng, ranks, name, first, stages):
    count = rng.randint(1, max(1, min(4, 12 // len(stages))))
    padded = count + (rng.randint(1, 2) if rng.random() < 0.15 else 0)
    edges = ()
    if len(stages) > 2 and rng.random() < 0.3:
        low = rng.randrange(len(stages) - 2)
        edges = ((low, rng.randrange(low + 2, len(stages))),)
    return Pipe(name, first, first + count, padded, tuple(stages), edges)


def fold(ranks, chunks):
    """The wave placement: the stages turn round at each end."""
    return [s % ranks if s // ranks % 2 == 0 else ranks - 1 - s % ranks for s in range(ranks * chunks)]


def random_shape(rng):
    """A shape, and the lines that declare it."""
    ranks = rng.randint(1, 4)
    backward = rng.random() < 0.85
    if rng.random() < 0.7:
        chunks = rng.randint(1, 3)
        placement, stages = rng.choice([
            ("placement linear;", list(range(ranks))),
            (f"placement loop({chunks});", [s % ranks for s in range(ranks * chunks)]),
            ("placement v;", fold(ranks, 2)),
            (f"placement wave({chunks});", fold(ranks, chunks)),
            (None, [rng.randrange(ranks) for _ in range(rng.randint(1, 5))]),
        ])
        pipes = (random_pipe(rng, ranks, "", 0, stages),)
        lines = items(rng, pipes[0], placement)
    else:
        pipes, lines, first = [], [], 0
        for name in ["left", "right", "third"][:rng.randint(1, 3)]:
            stages = [rng.randrange(ranks) for _ in range(rng.randint(1, 4))]
            pipes.append(random_pipe(rng, ranks, name, first, stages))
            first = pipes[-1].end
            lines.append(f"pipe {name} {{ " + " ".join(items(rng, pipes[-1], None)) + " }")
        pipes = tuple(pipes)
    if not backward:
        lines.append("backward when false;")
    return Shape(ranks, pipes, backward), [f"ranks {spell(rng, ranks)};", *lines]


def items(rng, pipe, placement):
    bounds = spell(rng, pipe.end) if pipe.first == 0 else f"{spell(rng, pipe.first)} .. {spell(rng, pipe.end)}"
    pad = f" pad {spell(rng, pipe.padded)}" if pipe.padded > pipe.end - pipe.first else ""
    lines = [f"microbatches {bounds}{pad};"]
    if placement:
        lines.append(placement)
    else:
        table = "".join(f"s == {s} ? {r} : " for s, r in enumerate(pipe.ranks[:-1])) + str(pipe.ranks[-1])
        lines += [f"stages {spell(rng, len(pipe.ranks))};", f"stage s on rank {table};"]
    rng.shuffle(lines)
    return lines + [f"edge stage {a} -> stage {b};" for a, b in pipe.edges]


def walk(rng, shape):
    """The statements of each rank, in an order that some run of the whole program takes."""
    bodies = [[] for _ in range(shape.ranks)]
    chunks = [shape.chunks(rank) for rank in range(shape.ranks)]
    queues = [[] for _ in range(shape.ranks)]
    todo, named = {}, {}
    for rank, hosted in enumerate(chunks):
        for chunk, (p, stage) in enumerate(hosted):
            pipe = shape.pipes[p]
            for slot in "FI" if shape.backward else "F":
                todo[rank, chunk, slot] = list(range(pipe.first, pipe.first + pipe.padded))
                named[rank, chunk, slot] = rng.random() < 0.3
    ended = set()
    eager = rng.choice([0.3, 1, 3])

    def ready(rank, chunk, slot, mb):
        p, stage = chunks[rank][chunk]
        pipe = shape.pipes[p]
        if slot == "F":
            return all((p, s, "F", mb) in ended for s in pipe.before(stage))
        return (p, stage, "F", mb) in ended and all((p, s, "I", mb) in ended for s in pipe.after(stage))

    while any(todo.values()) or any(queues):
        rank = rng.randrange(shape.ranks)
        moves = []
        for (r, chunk, slot), mbs in todo.items():
            choice = mbs if named[r, chunk, slot] else mbs[:1]
            moves += [(slot, chunk, mb) for mb in choice if r == rank and ready(rank, chunk, slot, mb)]
        if queues[rank]:
            moves.append(("W", None, None))
        if not moves:
            continue
        slot, chunk, mb = rng.choices(moves, [1 if move[0] == "F" else eager for move in moves])[0]
        if slot == "W":
            chunk, mb = rng.choice(queues[rank])
            oldest = next(w for w in queues[rank] if w[0] == chunk)
            taken, act = rng.choice([
                (queues[rank][0], Act("W")), (oldest, Act("W", chunk)), ((chunk, mb), Act("W", chunk, mb))])
            queues[rank].remove(taken)
            bodies[rank].append(act)
            continue
        todo[rank, chunk, slot].remove(mb)
        ended.add((*chunks[rank][chunk], slot, mb))
        kind = "F" if slot == "F" else rng.choice("BI")
        if kind == "I":
            queues[rank].append((chunk, mb))
        bodies[rank].append(Act(kind, chunk, mb if named[rank, chunk, slot] else None))
    return bodies


def overlap_some(rng, body):
    """Puts neighbours into groups; not always such as can run together."""
    result, likely = [], rng.choice([0, 0, 0.1, 0.4])
    for act in body:
        last = result[-1] if result else None
        apart = isinstance(last, Act) and (last.kind, act.kind) in (("F", "B"), ("B", "F"), ("F", "I"), ("W", "F"))
        if isinstance(last, Act) and rng.random() < (likely if apart else likely / 15):
            result[-1] = Group((last, act))
        else:
            result.append(act)
    return result


def defer_some(rng, body):
    """The same program with `defer` and `drain` where they mean the same."""
    end = len(body)
    while end and body[end - 1] == Act("W"):
        end -= 1
    if end < len(body) and rng.random() < 0.7:
        body = body[:end] + [Drain()]
    start, stop = sorted(rng.randrange(len(body) + 1) for _ in range(2))
    region = body[start:stop]
    acts = list(itertools.chain(*(node.members if isinstance(node, Group) else [node] for node in region)))
    if rng.random() < 0.4 and not any(isinstance(a, Drain) or a.kind == "B" for a in acts) and acts:
        def plain(act):
            return act._replace(kind="B") if act.kind == "I" else act

        inner = [Group(tuple(map(plain, n.members))) if isinstance(n, Group) else plain(n) for n in region]
        body = body[:start] + [Defer(None, tuple(inner))] + body[stop:]
    return body


def damage(rng, shape, bodies):
    """One mistake of the kind that people make."""
    rank = rng.choice([r for r in range(shape.ranks) if bodies[r]])
    body = bodies[rank]
    index, other = rng.randrange(len(body)), rng.randrange(len(body))
    act = body[index]
    chunks = len(shape.chunks(rank))
    mistake = rng.choice(["drop", "double", "swap", "move", "reverse", "kind", "kind", "chunk", "microbatch", "take"])
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
        kind = rng.choice("FBI")
        body[index] = Act(kind, act.chunk if act.chunk is not None else rng.randrange(chunks), act.mb)
    elif mistake == "chunk":
        body[index] = act._replace(chunk=rng.randrange(chunks + 1))
    elif mistake == "microbatch" and act.chunk is not None:
        body[index] = act._replace(mb=rng.randrange(max(pipe.end for pipe in shape.pipes) + 1))
    else:
        body.insert(other, Act("W"))


def steady(rng):
    """One forward, one backward with warm-ups, lags and groups drawn by chance: it may well deadlock."""
    ranks, count = rng.randint(1, 4), rng.randint(1, 8)
    shape = Shape(ranks, (Pipe("", 0, count, count, tuple(range(ranks))),), True)
    lines = [f"ranks {ranks};", f"microbatches {count};", "placement linear;"]
    bodies = []
    mean = rng.random() < 0.3
    together = rng.random() < 0.4
    for rank in range(ranks):
        w = min(count, rng.randint(0, 3) if mean else (1 + together) * (ranks - 1 - rank) + together)
        pair = [Group((Act("F", 0), Act("B", 0)))] if together else [Act("F", 0), Act("B", 0)]
        tail = pair * (count - w) + [Act("B", 0)] * w
        if rng.random() < 0.5:
            lag = None if rng.random() < 0.3 else rng.randint(0, 3)
            tail = [Defer(lag, tuple(tail)), Drain(rng.choice([None, 0]))]
        bodies.append([Act("F", 0)] * w + tail)
    return shape, lines, bodies


def spell(rng, n):
    """An expression whose value is n."""
    a, b = rng.randint(-9, 9), rng.randint(1, 4)
    return rng.choice([str(n)] * 30 + [
        f"({a} + {n - a})".replace("+ -", "- "),
        f"({n * b + rng.randrange(b)} / {b})",
        f"({-n * b - rng.randrange(b)} / {-b})",
        f"({rng.randint(-2, 2) * (n + b) + n} % {n + b})" if n >= 0 else str(n),
        f"max({n}, {n - b})",
        f"abs({n})" if n >= 0 else str(n),
        f"({a} < {b} ? {n if a < b else b} : {b if a < b else n})",
    ])


class Printer:
    """Writes a rank's statements, with loops for what repeats."""

    def __init__(self, rng, shape, rank):
        self.rng, self.shape, self.rank = rng, shape, rank
        self.chunks = shape.chunks(rank)
        self.forwards = [0] * (len(self.chunks) + 1)

    def place(self, chunk):
        if len(self.chunks) == 1 and chunk == 0 and self.rng.random() < 0.7:
            return ""
        if chunk < len(self.chunks):
            pipe = self.chunks[chunk][0]
            name = self.shape.pipes[pipe].name
            if name and [p for p, _ in self.chunks].count(pipe) == 1 and self.rng.random() < 0.7:
                return name
        return spell(self.rng, chunk)

    def act(self, act, mb=None):
        mb = spell(self.rng, act.mb) if mb is None and act.mb is not None else mb
        words = [self.place(act.chunk)] if act.chunk is not None else []
        if act.kind == "W" and words == [""] and mb is None:
            words = [str(act.chunk)]
        words = [word for word in words if word] + ([f"mb: {mb}"] if mb is not None else [])
        return f"{act.kind}({', '.join(words)});" if words else f"{act.kind};"

    def node(self, node):
        if isinstance(node, Drain):
            return "drain W;" if node.chunk is None else f"drain W({spell(self.rng, node.chunk)});"
        if isinstance(node, Defer):
            lag = "" if node.lag is None else f" lag {spell(self.rng, node.lag)}"
            return f"defer W{lag} {{ {self.body(node.body)} }}"
        if isinstance(node, Group):
            return "overlap { " + " ".join(map(self.act, node.members)) + " }"
        return self.act(node)

    def run(self, nodes):
        """Equal statements in a row, or the same with microbatches that count up or down."""
        first, length = nodes[0], len(nodes)
        if length == 1:
            return self.node(first)
        if isinstance(first, Act) and first.mb is not None:
            if nodes[1].mb > first.mb:
                return f"for i in {first.mb} .. {spell(self.rng, first.mb + length)} {{ {self.act(first, 'i')} }}"
            return f"for i in 0 .. {length} {{ {self.act(first, f'{spell(self.rng, first.mb)} - i')} }}"
        if isinstance(first, Act) and first.kind == "F" and first.chunk < len(self.chunks):
            if self.forwards[first.chunk] is not None and self.rng.random() < 0.4:
                more = spell(self.rng, self.forwards[first.chunk] + length)
                return f"while issued(F, {first.chunk}) < {more} {{ {self.act(first)} }}"
        return self.rng.choice([f"repeat {length}", f"for k in 0 .. {spell(self.rng, length)}"]) + \
            f" {{ {self.node(first)} }}"

    def run_length(self, body):
        """How many of the first statements one loop can say."""
        length = 1
        if isinstance(body[0], Act) and body[0].mb is not None:
            numbered = len(body) > 1 and isinstance(body[1], Act) and body[1].mb is not None
            step = body[1].mb - body[0].mb if numbered else 0
            if step in (-1, 1):
                while length < len(body) and body[length] == body[0]._replace(mb=body[0].mb + length * step):
                    length += 1
            return length
        while length < len(body) and body[length] == body[0]:
            length += 1
        return length

    def count(self, nodes):
        for node in nodes:
            for act in node.members if isinstance(node, Group) else [node]:
                if isinstance(act, Act) and act.kind == "F":
                    self.forwards[act.chunk] += 1

    def body(self, nodes):
        nodes, parts = list(nodes), []
        while nodes:
            length = self.run_length(nodes)
            if self.rng.random() < 0.3:
                length = 1
            parts.append(self.run(nodes[:length]))
            self.count(nodes[:length])
            del nodes[:length]
        return " ".join(parts)

    def phases(self, nodes):
        cuts = sorted({0, len(nodes), *(self.rng.randrange(len(nodes) + 1) for _ in range(self.rng.randrange(4)))})
        lines = []
        for start, stop in itertools.pairwise(cuts):
            part = self.body(nodes[start:stop])
            name = self.rng.choice(["warmup", "steady", "cooldown", "tail", None])
            lines.append(f"phase {name} {{ {part} }}" if name else part)
        return lines


def source(rng, shape, lines, bodies):
    blocks, branches = [], []
    for rank, body in enumerate(bodies):
        written = Printer(rng, shape, rank).phases(body)
        if rng.random() < 0.2:
            blocks += [f"block rank{rank}() {{", *("  " + line for line in written), "}"]
            written = [f"rank{rank}();"]
        branches.append(f"if r == {rank} {{\n      " + "\n      ".join(written) + "\n    }")
    outside = not shape.pipes[0].name and rng.random() < 0.5
    joint = rng.choice([" else ", "\n    "])
    return "\n".join([
        *(blocks if outside else []),
        "schedule random() {",
        *("  " + line for line in lines),
        *("  " + line for line in ([] if outside else blocks)),
        "  on rank r {\n    " + joint.join(branches) + "\n  }\n}\n",
    ])


def generate(rng):
    """A random schedule: its shape, the statements of each rank, its text."""
    if rng.random() < 0.25:
        shape, lines, bodies = steady(rng)
    else:
        shape, lines = random_shape(rng)
        bodies = walk(rng, shape)
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            if any(bodies):
                damage(rng, shape, bodies)
        bodies = [defer_some(rng, overlap_some(rng, body)) for body in bodies]
    return shape, bodies, source(rng, shape, lines, bodies)
