#!/usr/bin/env python3
"""Lets a stage throw in each program, and checks that all ranks end within 10 s and say where they stood, and why:
all-ranks-stop.py PROGRAMS -- COMMAND... The command comes with ` throw PROGRAM` behind it."""
import re
import subprocess
import sys
from pathlib import Path

place = r"\(<library>/\w+\.pp:\d+:\d+\)"
cause = rf"rank 1, [^ ]+ {place}: the stage threw: out of luck"
end = sys.argv.index("--")
programs = [Path(name) for name in sys.argv[1:end]]
for program in programs:
    reported = subprocess.run([*sys.argv[end + 1 :], "throw", program], capture_output=True, text=True).stdout.splitlines()
    output = [line for line in reported if line.startswith("rank ")]
    assert any(re.fullmatch(r"(all threads|\d+) ended within 10 s", line) for line in reported), f"{program}: {reported}"
    stopped = [line for line in output if not re.fullmatch(r"rank \d+ ended", line)]  # One that had done its part.
    for line in stopped:
        match = re.fullmatch(r"rank (\d+) stopped at `(.*?)` of `.*?`: (.*)", line)
        assert match, f"{program}: {line}"
        rank, at, text = match.groups()
        own = cause if rank == "1" else rf"rank {rank}(, [^ ]+ {place})?(: [^:]+)?: stopped, because {cause}"
        assert re.fullmatch(own, text) and (rank != "1" or at), f"{program}: {line}"
    assert len(output) == int(program.stem.split("-")[1]), f"{program}: {reported}"
    assert any(line.startswith("rank 1 stopped") for line in stopped), f"{program}: {reported}"
print(f"{len(programs)} programs end")
