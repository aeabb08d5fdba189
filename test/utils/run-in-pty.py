#!/usr/bin/env python3
"""Runs a command on a terminal of its own, and prints what it shows there. Usage: run-in-pty.py COLUMNS COMMAND..."""
import fcntl
import os
import pty
import struct
import sys
import termios

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
try:
    while chunk := os.read(terminal, 65536):
        shown += chunk
except OSError:  # How a terminal says that its last user has left.
    pass
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
