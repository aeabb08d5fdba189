#!/usr/bin/env python3
"""Holds makespans that ppcc tells against runs: threads and MPI (ppcc-run, ppcc-run-mpi), and PyTorch on gloo where it is installed.

Stages sleep, so that the load of the machine hardly counts; messages take no time. A run is
printed beside what its transport takes: `posted`, and, where ranks wait at messages instead (`--wait-here`), `rendezvous`."""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "utils"))
from openmpi import mpirun  # noqa: E402

P, M = 4, 8
FUSED = ["gpipe", "one_f_one_b", "interleaved_1f1b", "hanayo"]
SCHEDULES = [*FUSED, "zb_h1", "zero_bubble_v"]
ORDERS = ["sweep", "late", "ready-time"]


def seconds(stage, times=1):
    """What a stage of Runtime/Slow.h sleeps."""
    return times * (1 + 4 * stage) * 3e-3


def span(trace):
    slices = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    return (max(e["ts"] + e["dur"] for e in slices) - min(e["ts"] for e in slices)) / 1e6


class Bench:
    def __init__(self, tools, python, folder):
        self.tools, self.python = tools, python
        self.costs, self.program, self.trace = folder / "costs.json", folder / "program.json", folder / "trace.json"

    def planned(self, schedule, order, transport):
        """Makespan in seconds, the program stays; nothing where ranks would wait for each other."""
        command = [self.tools / "ppcc", schedule, "-D", f"P={P}", "-D", f"M={M}", f"--comm-order={order}"]
        command += [f"--transport={transport}", "-o", self.program]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
            return None
        stages = range(len(json.loads(self.program.read_text())["pipes"][0]["rank_of_stage"]))
        once, twice = [[seconds(stage, times) for stage in stages] for times in (1, 2)]
        self.costs.write_text(json.dumps({"cost": {"F": once, "B": twice, "I": once, "W": once}}))
        report = subprocess.run(
            [self.tools / "ppcc", self.program, f"--costs={self.costs}", f"--transport={transport}", "--emit=report-json"],
            check=True, capture_output=True, text=True)
        return json.loads(report.stdout)["makespan"]

    def threads(self, *options):
        command = [self.tools / "ppcc-run", "--slow", "--transport=threads", f"--trace={self.trace}", *options]
        subprocess.run([*command, self.program], check=True, stdout=subprocess.DEVNULL)
        return span(self.trace)

    def mpi(self):
        with mpirun(P) as command:
            command += [self.tools / "ppcc-run-mpi", "slow", f"--trace={self.trace}", self.program]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return span(self.trace)

    def gloo(self):
        """By ppcc.torch, and by PyTorch's runtime."""
        command = [self.python, here / "measured_gloo.py", self.program]
        return map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())

    def row(self, schedule, order):
        met, ran = self.planned(schedule, order, "rendezvous"), []
        if met:
            ran.append(self.threads("--wait-here") / met)
        posted = self.planned(schedule, order, "posted")
        ran += [self.threads() / posted, self.mpi() / posted]
        if self.python and schedule in FUSED:
            ran += [seconds / posted for seconds in self.gloo()]
        cells = [f"{ratio:8.3f}" for ratio in ran]
        first = f"{met:10.3f} {cells.pop(0)}" if met else f"{'hangs':>10} {'':8}"
        print(f"{schedule:18} {order:11} {first} {posted:8.3f} {' '.join(cells)}", flush=True)
        return ran


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--python", type=Path, help="one with PyTorch, for runs on gloo")
    parser.add_argument("--schedules", nargs="*", default=SCHEDULES)
    asked = parser.parse_args()
    print(f"makespans of stages that sleep, P={P} and M={M}: as simulated, in seconds; as run, over what was simulated")
    print(f"{'':30} {'rendezvous':>10} {'':>8} {'posted':>8} {'':>8} {'':>8} {'':>8} {'':>8}")
    print(f"{'':30} {'simulated':>10} {'threads':>8} {'sim.':>8} {'threads':>8} {'MPI':>8} {'gloo':>8} {'PyTorch':>8}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.bin.resolve(), asked.python, Path(folder))
        worst = max(abs(ratio - 1) for schedule in asked.schedules for order in ORDERS for ratio in bench.row(schedule, order))
    print(f"at most {100 * worst:.1f} % apart")


main()
