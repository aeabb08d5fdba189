"""Lets a command on a terminal wait for its input until it says that it is at work. Usage: working.py COMMAND..."""
import os
import pty
import select
import subprocess
import sys

ours, terminal = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=terminal, stderr=terminal)
os.close(terminal)
shown = b""
while b"working" not in shown:
    if not select.select([ours], [], [], 60)[0]:
        process.kill()
        sys.exit(f"in a minute it said {shown!r}")
    shown += os.read(ours, 65536)
process.stdin.write(b"schedule s() { ranks 1; microbatches 1; placement linear; on rank r { F; B; } }\n")
process.stdin.close()
try:
    while chunk := os.read(ours, 65536):
        shown += chunk
except OSError:  # How a terminal says that its last user has left.
    pass
print(repr(shown.decode()), process.wait())
