#!/usr/bin/env python3
"""Gives the names of a program (JSON, from standard input) markup in them."""
import json
import sys

NAME = '</script><script>window.broken = 1</script><img src=x onerror="window.broken = 2">&amp;'
program = json.load(sys.stdin)
program["schedule"] = NAME
program["phases"] = [phase and NAME for phase in program["phases"]]
program["files"] = [NAME for _ in program["files"]]
for pipe in program["pipes"]:
    pipe["name"] = NAME
if nodes := program.get("nodes"):
    # Words, each of its own; costs are told by them.
    rename = lambda names: {name: f'</script>"<b>&amp;{i}\\' for i, name in enumerate(names)}
    names, lanes = rename(nodes["names"]), rename(nodes["lanes"])
    nodes["names"], nodes["lanes"] = list(names.values()), list(lanes.values())
    costs = program["costs"]["cost"]
    for key in list(costs):
        letters, _, name = key.partition(".")
        if name:
            costs[f"{letters}.{names[name]}"] = costs.pop(key)
json.dump(program, sys.stdout)
