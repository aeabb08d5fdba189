"""Kills ppcc while it writes, and prints what is left: killed.py FOLDER"""
import os
import subprocess
import sys
import time

folder = os.path.abspath(sys.argv[1])
pipe = folder + "/pipe"
os.mkfifo(pipe)
# Its depfile is begun before the output, which waits for a reader.
run = subprocess.Popen(["ppcc", "gpipe", "-o", pipe, "--depfile", folder + "/x.d"])
fds = f"/proc/{run.pid}/fd"


def opened():
    try:
        return [os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds)]
    except FileNotFoundError:
        return []


while run.poll() is None and not any(path.startswith(folder + "/") for path in opened()):
    time.sleep(0.01)
run.kill()
print(run.wait(), os.listdir(folder))
