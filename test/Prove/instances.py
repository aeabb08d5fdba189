"""instances.py PPCC NAME:P...: large programs, with families and without."""
import random
import subprocess
import sys

ppcc, *schedules = sys.argv[1:]
rng = random.Random(7)
same = 0
for schedule in schedules:
    name, p = schedule.split(":")
    for options in [], ["--rolled"], ["--emit=cpp"]:
        m = 4 * rng.randint(500, 900)
        command = [ppcc, name, "-D", f"P={p}", "-D", f"M={m}", *options]
        quick, slow = (subprocess.run([*command, *more], capture_output=True) for more in ([], ["--no-families"]))
        assert slow.returncode == 0, slow.stderr
        assert quick.stdout == slow.stdout and quick.stderr == slow.stderr, command
        same += 1
print(f"{same} outputs are the same")
