"""Tries schedules of the library with many values of their parameters: each run ends well or is refused by `require`. Where
that is because ranks would wait in a cycle, they do without it."""

import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIBRARY = pathlib.Path(sys.argv[1])
CYCLE = re.compile(r'  require [^;"]*"ranks would wait in a cycle[^"]*";\n')
VALUES = {"P": range(1, 6), "M": range(1, 10), "V": range(1, 4), "G": range(1, 10), "n": range(1, 4), "layers": [1]}
MAX_VALUE = 120  # Of each schedule.


def verdict(schedule, values):
    defines = [f"-D{name}={value}" for name, value in values]
    done = subprocess.run(["ppcc", schedule, *defines, "--check"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return "" if done.returncode == 0 else done.stderr


def cases(name):
    """The values that are tried, thinned out: every so many of all."""
    reported = subprocess.run(["ppcc", name, "--list-params"], capture_output=True, text=True, check=True).stdout
    types = dict(re.findall(r"^(\w+): (\w+)", reported, re.M))
    ranges = {param: VALUES[param] if kind == "int" else ["false", "true"]
              for param, kind in types.items() if kind == "bool" or param in VALUES}
    sets = [values for values in itertools.product(*([(param, value) for value in ranges[param]] for param in ranges))
            if "G" not in ranges or dict(values)["G"] <= dict(values)["M"]]
    return sets[:: len(sets) // MAX_VALUE + 1]


def problem(case):
    name, values = case
    error = verdict(name, values)
    if not error:
        return "admitted", None
    if not re.search(r"\[E04(04|80)\]", error):
        return "wrong", f"{name} {values}: {error.splitlines()[0]}"
    if "in a cycle" not in error:
        return "refused", None
    good = not re.search(r"wait for each other \[E0742\]", verdict(str(folder / f"{name}.pp"), values))
    return ("wrong", f"{name} {values}: refused, but works") if good else ("cycles", None)


with tempfile.TemporaryDirectory() as made:
    folder = pathlib.Path(made)
    for file in LIBRARY.glob("*.pp"):
        (folder / file.name).write_text(CYCLE.sub("", file.read_text()))
    names = [line.split()[0] for line in subprocess.run(["ppcc", "--list-schedules"], capture_output=True, text=True, check=True).stdout.splitlines()]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(problem, [(name, values) for name in names for values in cases(name)]))
for _, text in results:
    if text:
        print(text)
count = {what: sum(result == what for result, _ in results) for what in ("admitted", "refused", "cycles", "wrong")}
print(count)
sys.exit(count["wrong"] != 0 or min(count["admitted"], count["cycles"]) < 30)
