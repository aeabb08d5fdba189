"""Makes small programs, safe and unsafe, of the schedule library."""

import collections
import json
import random
import subprocess
from typing import NamedTuple

from checker import TRANSPORTS, MAKES, READS, Program, is_safe, item_text, parse_actions, parse_rank, unmatched

SMALL = [
    ("gpipe", {"P": 2, "M": 3}),
    ("gpipe", {"P": 3, "M": 2}),
    ("one_f_one_b", {"P": 2, "M": 3}),
    ("one_f_one_b", {"P": 3, "M": 3}),
    ("one_f_one_b", {"P": 4, "M": 2}),
    ("one_f_one_b", {"P": 4, "M": 3, "forward_only": "true"}),
    ("interleaved_1f1b", {"P": 2, "M": 2}),
    ("interleaved_1f1b", {"P": 3, "M": 3}),
    ("one_f_one_b_overlap", {"P": 2, "M": 4}),
    ("interleaved_1f1b_overlap", {"P": 2, "M": 2}),
    ("looped_bfs", {"P": 2, "M": 2, "V": 2}),
    ("zb1p", {"P": 3, "M": 3}),
    ("zb_h1", {"P": 2, "M": 3}),
    ("zb_h2", {"P": 2, "M": 3}),
    ("zero_bubble_v", {"P": 2, "M": 3}),
    ("zero_bubble_v", {"P": 3, "M": 2}),
    ("hanayo", {"P": 2, "M": 2}),
    ("chimera", {"P": 2, "M": 2}),
    ("chimera", {"P": 4, "M": 4}),
    ("dualpipe", {"P": 2, "M": 4}),
    ("dualpipe_v", {"P": 2, "M": 4}),
]


class Case(NamedTuple):
    name: str
    head: str  # `program { ... }` of the text of programs.
    ranks: list  # Of each rank its items, tuples of cells.

    def ir(self):
        """The text that ppcc-opt reads."""
        lines = [self.head]
        for number, rank in enumerate(self.ranks):
            items = [str(item[0]) if len(item) == 1 else f"({'; '.join(map(str, item))})" for item in rank]
            lines += [f"rank {number} {{", *(f"  {item}" for item in items), "}"]
        return "\n".join(lines) + "\n"

    def actions(self):
        """The text that --emit=actions writes."""
        return "".join(" ".join([f"rank {number}:", *map(item_text, rank)]) + "\n"
                       for number, rank in enumerate(self.ranks))

    def program(self):
        return Program(self.ranks)


FUSED = [
    ("one_f_one_b", {"P": 3, "M": 3}, ["--fuse=megatron"]),
    ("one_f_one_b", {"P": 3, "M": 3}, ["--fuse=megatron-even-odd"]),
    ("interleaved_1f1b", {"P": 2, "M": 2}, ["--fuse=megatron"]),
    ("interleaved_1f1b", {"P": 2, "M": 4}, ["--fuse=megatron-even-odd"]),
    ("one_f_one_b", {"P": 2, "M": 3}, ["--comm-order=late", "--fuse=batch"]),
    ("gpipe", {"P": 3, "M": 2}, ["--fuse=batch"]),
    ("zb1p", {"P": 2, "M": 3}, ["--fuse=batch"]),
    ("dualpipe_v", {"P": 2, "M": 4}, ["--fuse=batch"]),
]


def fused_cases(ppcc):
    """Small programs with their messages in batches."""
    for schedule, params, options in FUSED:
        yield compile_case(ppcc, schedule, params, options)


def compile_case(ppcc, schedule, params, options=("--comm-order=sweep",)):
    defines = [word for name, value in params.items() for word in ("-D", f"{name}={value}")]
    command = [ppcc, schedule, *defines, *options, "-o", "-"]
    ir, actions = (subprocess.run([*command, f"--emit={kind}"], capture_output=True, text=True, check=True).stdout
                   for kind in ("ir", "actions"))
    head = ir[:ir.index("\n}\n") + 2].splitlines()
    head = [line for line in head if line.split()[0] not in ("file", "site")]
    name = "-".join([schedule, *(f"{key}{value}" for key, value in params.items()),
                     *(option.split("=")[1] for option in options if option != "--comm-order=sweep")])
    return Case(name, "\n".join(head), parse_actions(actions))


def one_pipe_case(name, rows):
    """Of the rows of a program that has one pipe."""
    ranks = [parse_rank(row) for row in rows]
    computes = [(cell, r) for r, rank in enumerate(ranks) for item in rank for cell in item if not cell.is_message]
    home = {cell.stage: r for cell, r in computes}
    count = 1 + max(cell.mb for cell, _ in computes)
    backward = "true" if any(cell.kind != "F" for cell, _ in computes) else "false"
    places = " ".join(str(home[stage]) for stage in sorted(home))
    head = (f'program "{name}" {{\n  ranks {len(ranks)}\n  backward {backward}\n'
            f'  pipe "main" microbatches 0..{count} ranks [{places}]\n}}')
    return Case(name, head, ranks)


def transport_cases(path, most):
    """The programs of transport.jsonl with at most so many actions, with their verdicts."""
    for line in path.read_text().splitlines():
        case = json.loads(line)
        if sum(len(row.split()) for row in case["rows"]) <= most:
            yield one_pipe_case(case["id"], case["rows"]), case["verdict"]


def user_of(rank, index):
    """Where on its rank the data of the receive at `index` is first used."""
    receive = rank[index][0]
    for later in range(len(rank)):
        for cell in rank[later]:
            if not cell.is_message and (cell.stage, cell.mb) == (receive.stage, receive.mb) and \
                    receive.slot in MAKES[cell.kind]:
                return later
    return len(rank)


def maker_of(rank, index):
    """Where on its rank the data of the send at `index` is made."""
    send = rank[index][0]
    for before in range(len(rank)):
        for cell in rank[before]:
            if not cell.is_message and (cell.stage, cell.mb) == (send.stage, send.mb) and \
                    send.slot in MAKES[cell.kind]:
                return before
    return -1


def messages(ranks):
    return [(r, i) for r, rank in enumerate(ranks) for i, item in enumerate(rank) if item[0].is_message]


def late(ranks):
    """Each receive directly before its user."""
    ranks = [list(rank) for rank in ranks]
    for rank in ranks:
        for item in [item for item in rank if item[0].is_receive]:
            index = rank.index(item)
            user = user_of(rank, index)
            rank.insert(user - 1, rank.pop(index))
    return ranks


def moved(ranks, rng, times):
    """Some messages elsewhere, behind their maker or before their user."""
    ranks = [list(rank) for rank in ranks]
    for _ in range(times):
        r, index = rng.choice(messages(ranks))
        rank = ranks[r]
        if rank[index][0].is_send:
            low, high = maker_of(rank, index) + 1, len(rank) - 1
        else:
            low, high = 0, user_of(rank, index) - 1
        low, high = max(low, index - 4), min(high, index + 4)
        if low <= high:
            rank.insert(rng.randint(low, high), rank.pop(index))
    return ranks


def reordered(ranks, rng):
    """Two messages between the same ranks in another order, at both ends."""
    ranks = [list(rank) for rank in ranks]
    program = Program(ranks)
    r, index = rng.choice([(r, i) for r, i in messages(ranks) if ranks[r][i][0].is_send])
    pair = program.pair(r, ranks[r][index][0])
    sends = [i for q, i in messages(ranks) if q == r and ranks[q][i][0].is_send
             and program.pair(q, ranks[q][i][0]) == pair]
    place = sends.index(index)
    if place + 1 == len(sends):
        return ranks
    labels = [ranks[r][i][0].label for i in (index, sends[place + 1])]
    there = ranks[pair[1]]
    i, j = (next(i for i, item in enumerate(there) if item[0].is_receive and item[0].label == label)
            for label in labels)
    there[i], there[j] = there[j], there[i]
    rank = ranks[r]
    rank.insert(sends[place + 1], rank.pop(index))
    return ranks


def batched(ranks, rng):
    """Some neighbouring messages of a rank start together."""
    result = []
    for rank in ranks:
        items = []
        for item in rank:
            if items and item[0].is_message and items[-1][0].is_message and len(items[-1]) < 3 and rng.random() < 0.4:
                items[-1] += item
            else:
                items.append(item)
        result.append(items)
    return result


def variants(case, rng):
    """Endless programs made of one."""
    yield "sweep", case.ranks
    yield "late", late(case.ranks)
    while True:
        times = rng.randint(1, 3)
        yield f"moved{times}", moved(case.ranks, rng, times)
        yield "late-moved", moved(late(case.ranks), rng, rng.randint(1, 2))
        yield "reordered", reordered(moved(case.ranks, rng, rng.randint(0, 2)), rng)
        yield "batched", batched(moved(case.ranks, rng, rng.randint(0, 2)), rng)


def verdict_of(program):
    """Matched, then safe under each transport."""
    if unmatched(program):
        return (False,)
    return (True, *(is_safe(program, transport) for transport in TRANSPORTS))


def small_cases(ppcc, each=3, seed=1):
    """Programs of all schedules in SMALL, `each` of one. The rarer its verdict so far, the sooner one is taken; those
    that are safe under everything count as rarer than they are."""
    seen = collections.Counter()
    always_safe = (True,) * (1 + len(TRANSPORTS))
    for schedule, params in SMALL:
        base = compile_case(ppcc, schedule, params)
        rng = random.Random(f"{seed} {base.name}")
        pool = []
        for number, (how, ranks) in enumerate(variants(base, rng)):
            if number == 20:
                break
            case = Case(f"{base.name}-{how}-{number}", base.head, ranks)
            pool.append((case, verdict_of(case.program())))
        for _ in range(each):
            chosen = min(pool, key=lambda entry: seen[entry[1]] / (3 if entry[1] == always_safe else 1))
            pool.remove(chosen)
            seen[chosen[1]] += 1
            yield chosen
