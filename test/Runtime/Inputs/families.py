"""families.py PPCC FOLDER NAME:P...: a file for all M of each schedule, and on standard output FILE@M for some M of each."""
import argparse
import json
import pathlib
import random
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("ppcc")
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("schedules", nargs="+")
parser.add_argument("--each", type=int, default=2, help="how many numbers of microbatches of each")
parser.add_argument("--most", type=int, default=300)
options = parser.parse_args()
rng = random.Random(11)
options.folder.mkdir(parents=True, exist_ok=True)
for schedule in options.schedules:
    name, p = schedule.split(":")
    file = options.folder / f"{name}-{p}.json"
    subprocess.run([options.ppcc, name, "-D", f"P={p}", "--for", "M", "-o", file], check=True)
    right = [one for one in json.loads(file.read_text())["families"] if one["verdict"] == "valid"]
    numbers = sorted({m for one in right for m in range(one["from"], min(one["to"] or options.most, options.most) + 1, one["modulus"])})
    assert len(numbers) >= options.each, schedule
    # The first, the last, and what lies between.
    for m in sorted({numbers[0], numbers[-1], *rng.sample(numbers[1:-1], options.each - 2)}):
        print(f"{file}@{m}")
