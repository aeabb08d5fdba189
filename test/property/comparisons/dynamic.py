"""Whether ranks that start whatever is ready can hang, against a search of all that can happen."""

import itertools
import json

from tools import diagnostic_codes, expect

COVERAGE = {"safe": 4, "deadlock": 4}
MOST_STATES = 30_000


def compare(draw, tools, tally):
    ranks, microbatches = draw.integer(1, 3), draw.integer(1, 4)
    stages = draw.integer(ranks, 5)
    homes = [*range(ranks), *(draw.below(ranks) for _ in range(stages - ranks))]
    if draw.chance(0.5):
        homes = draw.pick([sorted(homes), homes, [*homes[1:], homes[0]]])
    edges = {(stage, stage + 1) for stage in range(stages - 1)}
    gaps = {edge for edge in edges if draw.chance(0.1)}
    skips = {edge for edge in itertools.combinations(range(stages), 2) if edge not in edges and draw.chance(0.1)}
    split = draw.chance(0.4)
    forward = [draw.integer(1, 3) for _ in range(stages)]
    inputs = [draw.weighted([(0, 4), (-1, 2), (1, 1)]) if split else 0 for _ in range(stages)]
    limits = [max(forward) + draw.below(8) for _ in range(ranks)]
    at_rest = [draw.weighted([(0, 8), (1, 1), (4, 1)]) for _ in range(stages)]
    room = [limit - sum(size for size, home in zip(at_rest, homes) if home == rank) for rank, limit in enumerate(limits)]

    backward = "I" if split else "B"
    kinds = ["F", backward, *(["W"] if split else [])]
    needs = {("F", stage): [("F", before) for before, after in edges - gaps | skips if after == stage] for stage in range(stages)}
    for stage in range(stages):
        needs[backward, stage] = [("F", stage), *((backward, after) for before, after in edges - gaps | skips if before == stage)]
        if split:
            needs["W", stage] = [(backward, stage)]

    connected = {stage for edge in edges - gaps | skips for stage in edge}
    if stages > 1 and len(connected) != stages:
        return  # A stage stands apart.
    orders = [[] for _ in range(ranks)]
    for microbatch in range(microbatches):
        for kind in kinds:
            for stage in range(stages) if kind == "F" else reversed(range(stages)):
                orders[homes[stage]].append(f"{stage}{kind}{microbatch}")
    pipe = {"name": "main", "microbatches": [0, microbatches], "rank_of_stage": homes, "skip_edges": sorted(skips), "gaps": sorted(a for a, _ in gaps)}
    text = f'program {json.dumps({"ranks": 1 + max(homes), "pipes": [pipe]})}\n' + "".join(f"rank {rank} {{ {' '.join(order)} }}\n" for rank, order in enumerate(orders))
    tools.file("random.ir", text)
    tools.file("costs.json", json.dumps({"memory": {"F": forward, **({"I": inputs} if split else {})}, "static": at_rest, "limit": limits}))

    verdict = search(kinds, homes, needs, forward, inputs, room, microbatches, backward)
    if verdict is None:
        return
    done = tools.ppcc("check", "random.ir", "--costs", "costs.json", "--passes=verify,verify-dynamic", "--dynamic=ready")
    codes = diagnostic_codes(done)
    if codes == ["E0774"]:
        tally["undecided"] += 1
        return
    tally[verdict] += 1
    tally[f"{len(set(homes))} ranks: {verdict}"] += 1
    expect(codes in ([], ["E0772"]), "another error", done.stderr)
    expect((verdict == "safe") == (not codes), "another verdict", f"all that can happen: {verdict}\n{done.stderr}")


def search(kinds, homes, needs, forward, inputs, limits, microbatches, backward):
    """Runs actions in every order; None where there are too many states."""
    actions = [(kind, stage) for kind in kinds for stage in range(len(homes))]
    last = kinds[-1]

    def held(done):
        """By rank, of one microbatch."""
        sums = [0] * len(limits)
        for kind, stage in done:
            if (last, stage) not in done:
                sums[homes[stage]] += forward[stage] if kind == "F" else inputs[stage] if kind == "I" else 0
        return sums

    start = (frozenset(),) * microbatches
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        sums = [sum(column) for column in zip(*map(held, state))]
        moved = False
        for number, done in enumerate(state):
            for action in actions:
                kind, stage = action
                if action in done or any(need not in done for need in needs[action]):
                    continue
                taken = forward[stage] if kind == "F" else max(inputs[stage], 0) if kind == "I" else 0
                if sums[homes[stage]] + taken > limits[homes[stage]]:
                    continue
                moved = True
                after = tuple(sorted([*state[:number], done | {action}, *state[number + 1:]], key=lambda one: sorted(one)))
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        if not moved and any(len(done) != len(actions) for done in state):
            return "deadlock"
        if len(seen) > MOST_STATES:
            return None
    return "safe"
