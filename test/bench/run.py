#!/usr/bin/env python3
"""Measures ppcc: from text to JSON on disk as programs grow, its phases, and its parts.

Usage: run.py BIN [OPTIONS of ppcc-bench]. Times come from hyperfine; each figure is the mean of its runs. Beside ppcc runs
python_baseline.py, the same lists made by plain Python, so that the ratio means something on any machine; beside the engine, its
transport in a loop written by hand."""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "utils"))
from openmpi import mpirun  # noqa: E402

P, V = 128, 2


def schedule(ppcc, M):
    return [ppcc, "interleaved_1f1b", "-D", f"P={P}", "-D", f"V={V}", "-D", f"M={M}"]


def mean(command, folder):
    """Seconds."""
    report = folder / "hyperfine.json"
    subprocess.run(
        ["hyperfine", "-N", "--style=none", "--warmup=1", "--min-runs=3", f"--export-json={report}", " ".join(command)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return json.loads(report.read_text())["results"][0]["mean"]


def peak(command):
    """Bytes held at most by one run."""
    child = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_maxrss * 1024


def rows(ppcc, M):
    """Actions with communication."""
    text = subprocess.run(schedule(ppcc, M) + ["--emit=actions"], check=True, capture_output=True, text=True).stdout
    return text.count(" ") - P  # A blank before each cell, and one in each `rank R:`.


def growth(ppcc, folder):
    out = folder / "program.json"
    print("text to JSON on disk, interleaved_1f1b with P=128 and V=2")
    print(f"{'M':>7} {'actions':>10} {'seconds':>9} {'actions/s':>10} {'ns/action':>10} {'peak MB':>8} {'file MB':>8}")
    for M in [20, 128, 640, 2048, 6400, 12800]:
        command = schedule(ppcc, M) + ["-o", str(out)]
        seconds, bytes_held, n = mean(command, folder), peak(command), rows(ppcc, M)
        print(
            f"{M:7} {n:10} {seconds:9.3f} {n / seconds:10.3g} {seconds / n * 1e9:10.1f}"
            f" {bytes_held / 1e6:8.0f} {out.stat().st_size / 1e6:8.1f}"
        )


def phases(ppcc, folder):
    command = schedule(ppcc, 2048) + ["--time-passes", "-o", str(folder / "program.json")]
    print("\nphases, M=2048")
    print(subprocess.run(command, check=True, capture_output=True, text=True).stderr, end="")


LOAD = """
import sys, time, ppcc
def peak():
    return 1024 * int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
ppcc.compile("gpipe", P=1, M=1)
before, start = peak(), time.perf_counter()
ppcc.Program.load(sys.argv[1], rank=int(sys.argv[2]))
print(f"{time.perf_counter() - start:9.3f} {(peak() - before) / 1e6:8.0f}")
"""


def loading(tools, folder):
    """Reads what `growth` writes: by the compiler, and by Python on rank 0, which reads all ranks, and on rank 1."""
    path, ppcc = folder / "program.json", str(tools / "ppcc")
    subprocess.run(schedule(ppcc, 2048) + ["-o", path], check=True)
    print(f"\nreading {path.stat().st_size / 1e6:.0f} MB of JSON, M=2048")
    print(f"{'':22} {'seconds':>9} {'peak MB':>8}")
    check = [ppcc, "check", str(path)]
    print(f"{'ppcc check':22} {mean(check, folder):9.3f} {peak(check) / 1e6:8.0f}", flush=True)
    module = os.pathsep.join([str(here.parents[1] / "python" / "src"), str(tools.parent / "python")])
    for rank in "0", "1":
        print(f"Program.load, rank {rank}   ", end="", flush=True)
        subprocess.run([sys.executable, "-c", LOAD, path, rank], check=True, env={**os.environ, "PYTHONPATH": module})


def python_baseline(ppcc, folder):
    M = 256
    ours = mean(schedule(ppcc, M) + ["-o", str(folder / "program.json")], folder)
    python = mean([sys.executable, str(here / "python_baseline.py"), str(P), str(V), str(M)], folder)
    made = subprocess.run(
        [sys.executable, here / "python_baseline.py", str(P), str(V), str(M)], check=True, capture_output=True, text=True
    ).stdout
    assert int(made) == rows(ppcc, M), "the two do not make the same lists"
    print(f"\nthe same lists in plain Python (unverified, not written), M={M}: {python:.2f} s; ppcc {ours:.3f} s,")
    print(f"ratio {python / ours:.0f}")


# What another simulator of schedules takes (github.com/Victarry/PP-Schedule-Visualization, commit 1dd92bf, as for
# test/conformance/pp.jsonl).
OTHER = "PP-Schedule-Visualization (commit 1dd92bf): 219 s for a million operations"


def simulation(bench):
    """Simulation alone, as programs grow tenfold."""
    command = [bench, "--benchmark_filter=simulation/stream/(256|2048|20480)/", "--benchmark_format=json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print("\nsimulation on one stream a rank, interleaved_1f1b with messages")
    print(f"{'actions':>10} {'seconds':>9} {'ns/action':>10}")
    for row in report["benchmarks"]:
        seconds, n = row["cpu_time"] / 1e3, int(row["actions"])
        print(f"{n:10} {seconds:9.3f} {seconds / n * 1e9:10.1f}")
    print(OTHER)


def engine(tools, folder):
    """Runs 10^6 actions on each transport, with stages that compute nothing."""
    M = 22727  # 44 actions a microbatch.
    flat, rolled = folder / "program.json", folder / "rolled.json"
    schedule = [tools / "ppcc", "one_f_one_b", "-D", "P=8", "-D", f"M={M}"]
    subprocess.run([*schedule, "-o", flat], check=True)
    subprocess.run([*schedule, "--rolled", "-o", rolled], check=True)
    for what, program in ("", flat), (", with loops", rolled):
        print(f"\nthe engine, one_f_one_b with P=8: 10^6 actions{what}", flush=True)
        subprocess.run([tools / "ppcc-bench-engine", program], check=True)
    for ranks in 2, 8:
        schedule = [tools / "ppcc", "one_f_one_b", "-D", f"P={ranks}", "-D", f"M={4000 // ranks}", "-o", flat]
        subprocess.run(schedule, check=True)
        print(f"\nthe engine on MPI, one_f_one_b with P={ranks} on {os.cpu_count()} cores", flush=True)
        with mpirun(ranks) as command:
            subprocess.run([*command, tools / "ppcc-bench-engine-mpi", flat], check=True)


WRITTEN_OUT = "--passes=verify,inject-comm,verify"  # Nothing rolls at its end.


def viewer(ppcc, folder):
    """Frames of the viewer while the mouse drags 100,000 compute actions."""
    page = folder / "program.html"
    subprocess.run([ppcc, "one_f_one_b", "-D", "P=8", "-D", "M=6250", "--emit=html", "-o", str(page)], check=True)
    print("\nthe viewer, one_f_one_b with P=8", flush=True)
    subprocess.run([sys.executable, here.parent / "Browser" / "page.py", "drag", page], check=True)


def emitted(tools, folder):
    """Size of the C++ and time to compile it: with loops, and with all rows written out where that is feasible."""
    print("\nemitted C++, one_f_one_b with P=8: with loops, and written out")
    print(f"{'M':>8} {'actions':>10} {'ppcc s':>8} {'file KB':>9} {'g++ -O2 s':>10}  {'file KB':>9} {'g++ -O2 s':>10}")
    source, include = folder / "program.cpp", here.parents[1] / "include"
    compiler = ["g++", "-std=c++20", "-O2", f"-I{include}", "-c", str(source), "-o", str(folder / "program.o")]

    def measured(M, *options):
        start = time.monotonic()
        command = [tools / "ppcc", "one_f_one_b", "-D", "P=8", "-D", f"M={M}", "--emit=cpp", *options, "-o", source]
        subprocess.run(command, check=True)
        seconds = time.monotonic() - start
        return seconds, f"{source.stat().st_size / 1e3:9.1f} {mean(compiler, folder):10.2f}"

    for M in [100, 1000, 10000, 100000, 1000000]:
        seconds, loops = measured(M)
        flat = measured(M, WRITTEN_OUT)[1] if M <= 100000 else f"{'-':>9} {'-':>10}"
        print(f"{M:8} {44 * M:10} {seconds:8.2f} {loops}  {flat}", flush=True)


def main():
    folder_of_tools = Path(sys.argv[1]).resolve()
    ppcc = str(folder_of_tools / "ppcc")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        growth(ppcc, folder)
        phases(ppcc, folder)
        loading(folder_of_tools, folder)
        python_baseline(ppcc, folder)
        engine(folder_of_tools, folder)
        emitted(folder_of_tools, folder)
        viewer(ppcc, folder)
    simulation(folder_of_tools / "ppcc-bench")
    print("\norders of communication", flush=True)
    subprocess.run([folder_of_tools / "ppcc-orders"], check=True)
    print("\noverlapped nodes: costs of attention 1.0, dispatch 0.5, mlp 1.2, combine 0.5; backward twice", flush=True)
    subprocess.run([sys.executable, here / "overlap.py", ppcc], check=True)
    print("\nsends and receives damaged one at a time", flush=True)
    missed = subprocess.run([sys.executable, here / "mutations.py", folder_of_tools]).returncode
    print("\nparts", flush=True)
    return subprocess.run([folder_of_tools / "ppcc-bench", *sys.argv[2:]]).returncode or missed


sys.exit(main())
