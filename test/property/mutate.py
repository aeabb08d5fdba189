"""Damages programs: rows elsewhere, in another order, left out, doubled, renamed, together."""

from oracle.program import Program


def mutated(draw, program, messages=False):
    """With some changes, most of which keep the messages matched; of messages alone if asked for."""
    ranks = [list(rank) for rank in program.items]
    for _ in draw.spans_of(draw.weighted([(1, 5), (2, 3), (3, 1), (0, 1)])):
        change = draw.weighted([(move, 8), (swap_messages, 4), (group, 4), (ungroup, 2), (delay_receives, 3), (drop, 1), (duplicate, 1), (rename, 1)])
        places = [(r, i) for r, rank in enumerate(ranks) for i in range(len(rank))]
        sent = [(r, i) for r, i in places if ranks[r][i][0].kind.is_message]
        if sent and (messages or draw.chance(0.85)):
            places = sent
        if places and (sent or not messages):
            change(draw, program, ranks, *draw.pick(places))
    return Program(program.head, ranks)


def move(draw, program, ranks, r, i):
    """To a place near by; a message mostly behind what makes its data, or before what reads it."""
    rank, low, high = ranks[r], max(0, i - 5), min(len(ranks[r]) - 1, i + 5)
    row = rank[i][0]
    if row.kind.is_message and draw.chance(0.8):
        others = [j for j, item in enumerate(rank) for other in item if other[1:4] == row[1:4] and other.kind.role == "compute" and
                  row.kind.fills in other.kind.fills]
        low, high = (max([low, *[j + 1 for j in others]]), high) if row.kind.role == "send" else (low, min([high, *[j - 1 for j in others]]))
    if low <= high:
        rank.insert(draw.integer(low, high), rank.pop(i))


def delay_receives(draw, program, ranks, r, i):
    """All receives of a rank, or of all ranks, directly before what reads them."""
    for rank in ranks if draw.chance(0.5) else [ranks[r]]:
        for item in [item for item in rank if item[0].kind.role == "recv" and len(item) == 1]:
            row, at = item[0], rank.index(item)
            user = next((j for j in range(at, len(rank)) for other in rank[j]
                         if row.kind.fills in other.kind.fills and other.kind.role == "compute" and other[1:4] == row[1:4]), None)
            if user is not None:
                rank.insert(user - 1, rank.pop(at))


def swap_messages(draw, program, ranks, r, i):
    """Two messages between the same ranks in another order, at both ends."""
    if not ranks[r][i][0].kind.is_message:
        return

    def label(rank, row):
        other = program.head.pipes[row.pipe].ranks[row.peer]
        ends = (rank, other) if row.kind.role == "send" else (other, rank)
        stages = (row.stage, row.peer) if row.kind.role == "send" else (row.peer, row.stage)
        return ends, (row.kind.fills, row.pipe, *stages, row.mb)

    pair, one = label(r, ranks[r][i][0])
    labels = [label(q, item[0])[1] for q, rank in enumerate(ranks) for item in rank
              if len(item) == 1 and item[0].kind.role == "send" and label(q, item[0])[0] == pair]
    if one not in labels or len(labels) < 2:
        return
    other = labels[(labels.index(one) + 1) % len(labels)]
    for rank in sorted(set(pair)):
        at = [next((j for j, item in enumerate(ranks[rank]) if len(item) == 1 and item[0].kind.is_message and
                    label(rank, item[0]) == (pair, wanted)), None) for wanted in (one, other)]
        if None not in at:
            ranks[rank][at[0]], ranks[rank][at[1]] = ranks[rank][at[1]], ranks[rank][at[0]]


def group(draw, program, ranks, r, i):
    """With its neighbour, or two, in one group."""
    for _ in range(draw.integer(1, 2)):
        if i + 1 < len(ranks[r]) and all(item[0].kind.is_message == ranks[r][i][0].kind.is_message for item in ranks[r][i:i + 2]):
            ranks[r][i:i + 2] = [ranks[r][i] + ranks[r][i + 1]]


def ungroup(draw, program, ranks, r, i):
    ranks[r][i:i + 1] = [(row,) for row in ranks[r][i]]


def drop(draw, program, ranks, r, i):
    del ranks[r][i]


def duplicate(draw, program, ranks, r, i):
    ranks[r].insert(draw.below(len(ranks[r]) + 1), ranks[r][i])


def rename(draw, program, ranks, r, i):
    """One of its rows another action, or of another microbatch."""
    item = list(ranks[r][i])
    j = draw.below(len(item))
    row = item[j]
    kinds = [kind for kind in program.head.kinds.values() if kind.is_message == row.kind.is_message and
             kind.role == row.kind.role and kind.per == row.kind.per and kind.is_transfer == row.kind.is_transfer]
    pipe = program.head.pipes[row.pipe]
    item[j] = row._replace(kind=draw.pick(kinds)) if row.mb < 0 or draw.chance(0.5) else \
        row._replace(mb=draw.integer(pipe.first, pipe.end - 1))
    ranks[r][i] = tuple(item)
