"""Compares docs/costs.schema.json with the table of costs. Usage: costs_schema.py ROOT"""
import json
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
table = {}
for item, subject in re.findall(r'^COST\(\w+, "(\w+)", "([^"]*)"', (root / "include/ppcc/IR/Costs.def").read_text(), re.M):
    table.setdefault(item, set()).add(subject)
schema = json.loads((root / "docs/costs.schema.json").read_text())["properties"]
assert list(schema) == list(table), f"items are {list(schema)}, not {list(table)}"
for item, subjects in table.items():
    words = {subject for subject in subjects if subject.isalpha()}
    rest = schema[item].get("additionalProperties")
    assert set(schema[item].get("properties", {})) == words, f"`{item}` has {words}"
    assert subjects == {""} or (rest is False) == (words == subjects), f"additionalProperties of `{item}`"
print(len(table), "items")
