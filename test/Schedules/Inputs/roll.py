"""Rolls the schedules of the library, P = 4 and 8, and writes the loops out again."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CELL = re.compile(r"\b\d+[A-Z_]+\d+")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def flat_and_rolled(schedule, P, M, folder):
    """The program as text, and the number of actions in its rolled text."""
    flat, rolled, back = folder / "flat.ir", folder / "rolled.ir", folder / "back.ir"
    run("ppcc", schedule, "-D", f"P={P}", "-D", f"M={M}", "--emit=ir", "-o", str(flat))
    run("ppcc", str(flat), "--passes=roll", "--emit=ir", "-o", str(rolled), "--verify-each")
    run("ppcc", str(rolled), "--passes=unroll,verify-transport", "--emit=ir", "-o", str(back))
    assert flat.read_text() == back.read_text(), f"{schedule} P={P} M={M} differs when written out"
    return len(CELL.findall(flat.read_text())), len(CELL.findall(rolled.read_text()))


def main():
    schedules = [line.split()[0] for line in run("ppcc", "--list-schedules").splitlines()]
    schedules = [schedule for schedule in schedules if "P:" in run("ppcc", schedule, "--list-params").split()]
    with tempfile.TemporaryDirectory() as name:
        for schedule in schedules:
            for P in (4, 8):
                sizes = [flat_and_rolled(schedule, P, M, Path(name)) for M in (12 * P, 24 * P)]
                (flat, rolled), (flat_double, rolled_double) = sizes
                assert flat_double > 1.8 * flat, (schedule, P, sizes)
                # The messages of v_min settle in one of several ways, of nearly the same length.
                most = 1.2 * rolled
                assert (rolled_double == rolled or schedule == "v_min") and rolled_double <= most < flat, f"{schedule} P={P} grows with M: {sizes}"
    print(f"{len(schedules)} schedules")


sys.exit(main())
