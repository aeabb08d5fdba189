"""Programs as docs/program-format.md describes their JSON."""

from oracle.program import KINDS, Head, Kind, Pipe, Program, Row


def kind_from_json(one):
    if one["class"] != "declared":
        return KINDS[one["mnemonic"]]
    stages = one.get("collective")
    return Kind(one["mnemonic"], role="declared", per=one["per"], lane=one["lane"], after=tuple(map(tuple, one["after"])),
                before=tuple(map(tuple, one["before"])), required=one.get("required", False),
                restores=one.get("restores"), in_flight=one.get("in_flight"),
                collective=tuple(stages) if isinstance(stages, list) else stages)


def from_json(data):
    """The program of a file without loops."""
    kinds = [kind_from_json(one) for one in data["kinds"]]
    pipes = tuple(
        Pipe(one["name"], *one["microbatches"], one["microbatches"][1] - one["microbatches"][0], tuple(one["rank_of_stage"]),
             tuple(map(tuple, one["skip_edges"])), tuple(one.get("gaps", ())), one.get("slices", 1))
        for one in data["pipes"])
    items = []
    for rank in data["actions"]:
        items.append([])
        group = -1
        for kind, pipe, stage, mb, peer, phase, number, _ in rank:
            row = Row(kinds[kind], pipe, stage, mb, peer, data["phases"][phase])
            if number >= 0 and number == group:
                items[-1][-1] += (row,)
            else:
                items[-1].append((row,))
            group = number
    return Program(Head(data["ranks"], pipes, data["backward"], {kind.mnemonic: kind for kind in kinds}), items)


def to_json(program, base):
    """The rows in the head of another program; nothing that would be claimed of them."""
    numbers = {one["mnemonic"]: i for i, one in enumerate(base["kinds"])}
    drop = ("digest", "transports", "buffers", "peak_activations", "edge_buffers", "waits", "calls", "preconnect")
    data = {key: value for key, value in base.items() if key not in drop}
    actions = []
    for rank in program.items:
        rows, group = [], -1
        for item in rank:
            group += len(item) > 1
            rows += [[numbers[row.kind.mnemonic], row.pipe, row.stage, row.mb, row.peer, base["phases"].index(row.phase),
                      group if len(item) > 1 else -1, 0] for row in item]
        actions.append(rows)
    return {**data, "actions": actions}


def numbered(program):
    """The number of each row's group on its rank, as text; nothing for a row by itself."""
    result = []
    for rank in program.items:
        group = -1
        for item in rank:
            group += len(item) > 1
            result += [str(group) if len(item) > 1 else ""] * len(item)
    return result
