#!/usr/bin/env python3
"""Checks that the last loss of a run of pprun, read from standard input, is well below the first."""
import re
import sys

losses = [float(text) for text in re.findall(r"^step \d+: loss (\S+)$", sys.stdin.read(), re.M)]
assert len(losses) >= 20, losses
assert losses[-1] < 0.8 * losses[0], f"from {losses[0]} to {losses[-1]}"
