#!/usr/bin/env python3
"""Runs programs on MPI with blocking sends: those that ppcc calls unsafe under `rendezvous` must hang, where the slow
checker says, those that it calls safe must end, and those that it calls unmatched must deliver a wrong message."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

for folder in ("Spin", "utils"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
from checker import TRANSPORTS, Play  # noqa: E402
from openmpi import mpirun  # noqa: E402
from programs import Case, compile_case, fused_cases, late, parse_actions  # noqa: E402
from run import by_checker, by_ppcc  # noqa: E402

HANG, SECONDS = 4, 60
STUCK = re.compile(r"^rank (\d+) is stuck in (\S+)$", re.MULTILINE)


def library_cases(ppcc):
    for schedule, params in [("one_f_one_b", {"P": 3, "M": 3}), ("zb1p", {"P": 2, "M": 3}),
                             ("interleaved_1f1b", {"P": 2, "M": 2}), ("chimera", {"P": 2, "M": 2})]:
        case = compile_case(ppcc, schedule, params)
        yield case
        yield Case(f"{case.name}-late", case.head, late(case.ranks))
    yield from fused_cases(ppcc)


def written_cases():
    head = 'program "{}" {{ pipe "main" microbatches 0..2 ranks [0 1] }}'
    for name, text in {
        "wrong-message":
            "rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "rank 1: 1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n",
        "batch":
            "rank 0: 0F0 0SEND_F0 0F1 (0SEND_F1;0RECV_B0)X 0B0 0RECV_B1 0B1\n"
            "rank 1: 1RECV_F0 1F0 1B0 (1SEND_B0;1RECV_F1)X 1F1 1B1 1SEND_B1\n",
        "no-batch":
            "rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "rank 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n",
    }.items():
        yield Case(name, head.format(name), parse_actions(text))


def replay(launcher, program, case, path, seconds):
    with mpirun(len(case.ranks), "--timeout", str(seconds), program=launcher) as command:
        done = subprocess.run([*command, program, path, "2"], capture_output=True, text=True, timeout=2 * SECONDS)
    return done.returncode, done.stdout, done.stderr


def fault(case, verdict, status, out, err):
    """What is wrong with a run of a program of which ppcc says `verdict`, or None."""
    if verdict == "safe":
        return None if status == 0 and "all ranks have ended" in out else f"status {status}\n{out}{err}"
    if verdict == "unmatched":
        return None if status == 3 and "gets" in err else f"status {status}\n{out}{err}"
    if status == 0 or "timeout" not in err.lower():
        return f"status {status} instead of a hang\n{out}{err}"
    play = Play(case.program(), TRANSPORTS["rendezvous"])
    play.ends()
    wanted = {(rank, str(cells[0])) for (rank, _), cells in play.stuck().items()}
    found = {(int(rank), cell) for rank, cell in STUCK.findall(out)}
    return None if wanted == found else f"stuck in {sorted(found)}, expected {sorted(wanted)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of ppcc, ppcc-opt and ppcc-replay")
    parser.add_argument("--mpirun", default="mpirun")
    options = parser.parse_args()
    opt = str(options.bin / "ppcc-opt")
    cases = [*library_cases(str(options.bin / "ppcc")), *written_cases()]

    with tempfile.TemporaryDirectory() as name:
        def judge(numbered):
            number, case = numbered
            ir, actions = pathlib.Path(name, f"{number}.ir"), pathlib.Path(name, f"{number}.txt")
            ir.write_text(case.ir())
            actions.write_text(case.actions())
            verdict = by_ppcc(opt, ir, "rendezvous")
            if verdict != by_checker(case.program(), "rendezvous"):
                return verdict, f"the checker says {by_checker(case.program(), 'rendezvous')}"
            seconds = HANG if verdict == "deadlock" else SECONDS
            return verdict, fault(case, verdict, *replay(options.mpirun, options.bin / "ppcc-replay", case, actions,
                                                         seconds))

        with ThreadPoolExecutor(2) as pool:
            judged = list(pool.map(judge, enumerate(cases)))
    for case, (verdict, wrong) in zip(cases, judged):
        print(f"{case.name}: {verdict}{', but ' + wrong if wrong else ''}")
    counts = {kind: sum(verdict == kind for verdict, _ in judged) for kind in ("safe", "deadlock", "unmatched")}
    failed = sum(wrong is not None for _, wrong in judged)
    print(", ".join(f"{kind} {count}" for kind, count in counts.items()) + f", {failed} failed")
    return 1 if failed or counts["safe"] < 3 or counts["deadlock"] < 3 or not counts["unmatched"] else 0


if __name__ == "__main__":
    sys.exit(main())
