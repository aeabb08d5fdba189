#!/usr/bin/env python3
"""Copies a program.json with the first two compute actions of rank 0 that are a forward and a backward of one microbatch the
other way round: swap.py FROM TO."""
import json
import sys

with open(sys.argv[1]) as file:
    program = json.load(file)
mnemonics = [kind["mnemonic"] for kind in program["kinds"]]
rows = program["actions"][0]
column = {name: i for i, name in enumerate(program["columns"])}
forward, backward = (
    next(i for i, row in enumerate(rows) if mnemonics[row[column["kind"]]] == name and row[column["microbatch"]] == 0)
    for name in "FB"
)
rows.insert(0, rows.pop(backward))
with open(sys.argv[2], "w") as file:
    json.dump(program, file)
