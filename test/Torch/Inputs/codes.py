#!/usr/bin/env python3
"""Runs pprun with each argument, split at blanks, and prints the exit code before what it prints."""
import subprocess
import sys

for arguments in sys.argv[1:]:
    done = subprocess.run(["pprun", *arguments.split()], capture_output=True, text=True)
    print(done.returncode, done.stdout + done.stderr, end="")
