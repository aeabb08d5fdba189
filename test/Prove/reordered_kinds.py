"""reordered_kinds.py FILE: prints programs for all M with the table of kinds turned around."""
import json
import sys

programs = json.load(open(sys.argv[1]))
assert "nodes" not in programs
programs["kinds"].reverse()
last = len(programs["kinds"]) - 1
for family in programs["families"]:
    for row in (row for rank in family.get("actions", []) for row in rank):
        row[0] = last - row[0]
print(json.dumps(programs))
