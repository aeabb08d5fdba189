"""Writes schedules of the library in every format, and compares what ppcc reads back. Usage: round_trip.py PPCC"""
import itertools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Values for the parameters that schedules share; a schedule refuses what does not suit it.
SIZES = {"P": [1, 4], "M": [8, 11], "V": [2]}
# Format, extension, and the options that bring it back to the program with communication.
FORMATS = [
    ("torch-csv", "csv", ["--from=torch-csv"]),
    ("torch-csv-compute", "csv", ["--from=torch-csv-compute"]),
    ("actions", "actions", []),
    ("json", "json", []),
    ("ir", "ir", []),
]

ppcc, folder = sys.argv[1], Path(tempfile.mkdtemp())


def run(*args):
    return subprocess.run([ppcc, *args], capture_output=True, text=True, timeout=60)


def settings(schedule):
    """The -D options of each size that the schedule has parameters for."""
    known = re.findall(r"^(\w+):", run(schedule, "--list-params").stdout, re.M)
    names = [name for name in SIZES if name in known]
    for values in itertools.product(*(SIZES[name] for name in names)):
        yield [option for name, value in zip(names, values) for option in ("-D", f"{name}={value}")]


compared = failed = 0
for schedule in [line.split()[0] for line in run("--list-schedules").stdout.splitlines()]:
    read = 0
    for options in settings(schedule):
        wanted = run(schedule, *options, "--emit=actions")
        if wanted.returncode != 0:
            continue
        declares = '"class": "declared"' in run(schedule, *options).stdout
        for form, extension, reading in FORMATS:
            if form == "actions" and declares:
                continue  # Lists of actions have no table of kinds.
            path = folder / f"program.{extension}"
            if run(schedule, *options, f"--emit={form}", "-o", path).returncode != 0:
                assert form.startswith("torch"), f"{schedule} {options} has no {form}"
                continue
            found = run(path, *reading, "--emit=actions")
            compared, read = compared + 1, read + 1
            if found.stdout != wanted.stdout or found.stderr:
                failed += 1
                print(f"{schedule} {' '.join(options)} {form}: exit status {found.returncode}\n{found.stderr[:500]}")
            if form == "json" and run(path, "--emit=json").stdout != path.read_text():
                failed += 1
                print(f"{schedule} {' '.join(options)}: JSON differs")
    assert read > 0, f"{schedule} was never read"
print(f"{compared} compared, {failed} failed")
sys.exit(failed != 0)
