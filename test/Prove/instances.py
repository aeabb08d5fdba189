"""instances.py PPCC NAME:P...: large programs, with families and without. For all of the library, as in docs/every-m.md:
    instances.py build/bin/ppcc --each=20 --most=10000 $(build/bin/ppcc --list-schedules | sed 's/ .*/:4/')"""
import argparse
import random
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("ppcc")
parser.add_argument("schedules", nargs="+")
parser.add_argument("--each", type=int, default=1, help="how many numbers of microbatches of each")
parser.add_argument("--most", type=int, default=10000)
options = parser.parse_args()
rng = random.Random(7)
same = 0
for schedule in options.schedules:
    name, p = schedule.split(":")
    for _ in range(options.each):
        for more in [[], ["--rolled"], ["--emit=cpp"]] if options.each == 1 else [[]]:
            m = 4 * rng.randint(500, 900) if options.each == 1 else rng.randint(1, options.most)
            command = [options.ppcc, name, "-D", f"P={p}", "-D", f"M={m}", *more]
            quick, slow = (subprocess.run([*command, *way], capture_output=True) for way in ([], ["--no-families"]))
            assert slow.returncode == 0 or options.each != 1, slow.stderr
            assert quick.stdout == slow.stdout and quick.stderr == slow.stderr, command
            same += 1
print(f"{same} outputs are the same")
