"""Checks programs against the JSON Schema, and that each number leads into its table."""

import json
import sys

import jsonschema


def check_numbers(program):
    columns = program["columns"]
    assert len(program["actions"]) == program["ranks"]
    for site in program["sites"][1:]:
        assert 0 <= site[0] < len(program["files"]) and site[1] >= 1 and site[2] >= 1
        assert site[3] < len(program["sites"])
    for rank, actions in enumerate(program["actions"]):
        groups = []
        for row in actions:
            action = dict(zip(columns, row))
            pipe = program["pipes"][action["pipe"]]
            kind = program["kinds"][action["kind"]]
            assert pipe["rank_of_stage"][action["stage"]] == rank
            assert pipe["microbatches"][0] <= action["microbatch"] < pipe["microbatches"][1]
            assert (action["peer"] >= 0) == (kind["class"] != "compute")
            assert action["peer"] < len(pipe["rank_of_stage"])
            assert action["phase"] < len(program["phases"])
            assert action["site"] < len(program["sites"])
            groups.append(action["group"])
        numbers = [group for group in groups if group >= 0]
        assert numbers == sorted(numbers)
        for number in set(numbers):
            first = groups.index(number)
            count = groups.count(number)
            assert count > 1 and groups[first : first + count] == [number] * count
        assert set(numbers) == set(range(len(set(numbers))))


def check_communication(program):
    pairs = [tuple(pair) for pair in program["preconnect"]]
    assert len(pairs) == len(set(pairs)) and all(0 <= low < high < program["ranks"] for low, high in pairs)
    used, posted = set(), [0] * program["ranks"]
    for rank, actions in enumerate(program["actions"]):
        classes = [program["kinds"][row[0]]["class"] for row in actions]
        for row, kind in zip(actions, classes):
            if kind != "compute":
                peer = program["pipes"][row[1]]["rank_of_stage"][row[4]]
                used.add((min(rank, peer), max(rank, peer)))
        receives = [position for position, kind in enumerate(classes) if kind == "recv"]
        waits = program["waits"][rank]
        assert len(waits) == len(receives)
        for receive, wait in zip(receives, waits):
            assert receive < wait < len(actions) and classes[wait] == "compute"
            held = [r for r, w in zip(receives, waits) if r <= receive < w]
            posted[rank] = max(posted[rank], len(held))
    assert not pairs or set(pairs) == used
    assert program["buffers"] == posted
    for kind, pipe, stage, peer, count in program["edge_buffers"]:
        assert program["kinds"][kind]["class"] == "recv" and count >= 1
        assert max(stage, peer) < len(program["pipes"][pipe]["rank_of_stage"])


schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    program = json.load(open(path))
    errors = [error.message for error in validator.iter_errors(program)]
    if errors:
        sys.exit(f"{path}: {errors[0][:200]}")
    check_numbers(program)
    if "loops" not in program:
        check_communication(program)
    print(f"{path} is valid: {sum(map(len, program['actions']))} actions")
