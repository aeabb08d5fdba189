#!/usr/bin/env python3
"""The shared libraries that a program names must be those that a page lists. Usage: shared_libraries.py PROGRAM PAGE."""
import re
import subprocess
import sys
from pathlib import Path

program, page = sys.argv[1:]
text = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout
# The loader belongs to libc.
needed = {name for name in re.findall(r"NEEDED +(\S+)", text) if not name.startswith("ld-")}
reported = set(re.findall(r"`(\S+\.so[.\d]*)`", Path(page).read_text()))
assert needed, "no shared libraries"
assert needed <= reported, f"{page} does not tell of {', '.join(sorted(needed - reported))}"
