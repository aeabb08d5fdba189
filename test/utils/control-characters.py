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
json.dump(program, sys.stdout)
