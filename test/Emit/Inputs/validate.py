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


schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    program = json.load(open(path))
    errors = [error.message for error in validator.iter_errors(program)]
    if errors:
        sys.exit(f"{path}: {errors[0][:200]}")
    check_numbers(program)
    print(f"{path} is valid: {sum(map(len, program['actions']))} actions")
