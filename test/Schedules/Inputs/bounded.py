"""Bounds the receives of every schedule of the library: the programs are safe on a stream and on a blocking network.

Usage: bounded.py PPCC
"""
import subprocess
import sys

ppcc = sys.argv[1]
listing = subprocess.run([ppcc, "--list-schedules"], capture_output=True, text=True, check=True).stdout
names = [line.split()[0] for line in listing.splitlines()]
# One is for one rank.
params = {name: subprocess.run([ppcc, name, "--list-params"], capture_output=True, text=True).stdout.split() for name in names}
safe = 0
for name in names:
    for size in [[], (["-D", "P=8"] if "P:" in params[name] else []) + ["-D", "M=24"]]:
        for order in ["sweep", "ready-time"]:
            for bound in [1, 2]:
                command = [ppcc, name, *size, f"--comm-order={order}", f"--prefetch={bound}", "--check"]
                done = subprocess.run([*command, "--transport=stream,rendezvous"], capture_output=True, text=True, timeout=60)
                assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
                safe += 1
assert len(names) > 10
print(f"{safe} of {len(names) * 8} programs are safe")
