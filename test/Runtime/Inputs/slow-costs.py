#!/usr/bin/env python3
"""Checks the costs of a run with --slow of run.cpp on two stages. A sleep is never shorter than asked for; how much longer is the
machine's affair. Usage: slow-costs.py COSTS"""
import json
import sys

costs = json.load(open(sys.argv[1]))
assert costs["cost"].keys() == {"F", "B"}, costs
(f0, f1), (b0, b1) = costs["cost"]["F"], costs["cost"]["B"]
assert f0 >= 3 and f1 >= 15 and b0 >= 6 and b1 >= 30, costs
assert f0 < f1 and b0 < b1 and f1 < b1, costs
# Stage 1 leads nowhere. Nobody waits for a message as long as for a forward of stage 1.
between, beyond = costs["latency"]
assert 0 < between < f1 and beyond == 0, costs
