#!/usr/bin/env python3
"""Runs programs on MPI with blocking sends: those that ppcc calls unsafe under `rendezvous` must hang, where the
oracle says, those that it calls safe must end, and those that it calls unmatched must deliver a wrong message."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

for folder in ("property", "utils"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import library  # noqa: E402
from comparisons.spin import by_ppcc  # noqa: E402
from mutate import delay_receives  # noqa: E402
from draw import Draw  # noqa: E402
from openmpi import mpirun  # noqa: E402
from oracle.check import message_violations  # noqa: E402
from oracle.program import Program, text  # noqa: E402
from oracle.run import is_deadlock_free, blocked_rows  # noqa: E402
from program_json import to_json  # noqa: E402
from tools import Tools  # noqa: E402

HANG, SECONDS = 4, 60
STUCK = re.compile(r"^rank (\d+) is stuck in (\S+)$", re.MULTILINE)


def library_cases(tools):
    """Names, JSON and programs."""
    for schedule, params in [("one_f_one_b", {"P": 3, "M": 3}), ("zb1p", {"P": 2, "M": 3}),
                             ("interleaved_1f1b", {"P": 2, "M": 2}), ("chimera", {"P": 2, "M": 2})]:
        name, data, program = library.compile_schedule(tools, schedule, params)
        yield name, data, program
        ranks = [list(rank) for rank in program.items]
        for number in range(len(ranks)):
            delay_receives(Draw(choices=[]), program, ranks, number, 0)
        yield f"{name}-late", data, Program(program.head, ranks)
    for schedule, params, options in library.FUSED:
        yield library.compile_schedule(tools, schedule, params, options)


def written_cases(tools):
    _, data, program = library.compile_schedule(tools, "one_f_one_b", {"P": 2, "M": 2})
    rows = {str(row): row for rank in program.rows for row in rank}
    for name, lists in {
        "wrong-message": [
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1", "1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1"],
        "batch": [
            "0F0 0SEND_F0 0F1 0SEND_F1;0RECV_B0 0B0 0RECV_B1 0B1", "1RECV_F0 1F0 1B0 1SEND_B0;1RECV_F1 1F1 1B1 1SEND_B1"],
        "no-batch": [
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1", "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"],
    }.items():
        yield name, data, Program(program.head, [[tuple(rows[cell] for cell in item.split(";")) for item in words.split()]
                                                 for words in lists])


def replay(launcher, replayer, program, path, seconds):
    with mpirun(len(program.rows), "--timeout", str(seconds), program=launcher) as command:
        done = subprocess.run([*command, replayer, path, "2"], capture_output=True, text=True, timeout=2 * SECONDS)
    return done.returncode, done.stdout, done.stderr


def fault(program, verdict, status, out, err):
    """What is wrong with a run of a program of which ppcc says `verdict`, or None."""
    if verdict == "safe":
        return None if status == 0 and "all ranks have ended" in out else f"status {status}\n{out}{err}"
    if verdict == "unmatched":
        return None if status == 3 and "gets" in err else f"status {status}\n{out}{err}"
    if status == 0 or "timeout" not in err.lower():
        return f"status {status} instead of a hang\n{out}{err}"
    wanted = {(key[0], str(program.row(program.item_rows[key][0]))) for key in blocked_rows(program, "rendezvous")}
    found = {(int(rank), cell) for rank, cell in STUCK.findall(out)}
    return None if wanted == found else f"stuck in {sorted(found)}, expected {sorted(wanted)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of ppcc and ppcc-replay")
    parser.add_argument("--mpirun", default="mpirun")
    options = parser.parse_args()
    tools = Tools(options.bin)
    cases = [*library_cases(tools), *written_cases(tools)]

    def check_case(case):
        name, data, program = case
        own = Tools(options.bin)
        own.file("random.json", json.dumps(to_json(program, data)))
        own.ppcc("random.json", "--passes=unroll", "--emit=ir", "-o", "random.ir")
        verdict = by_ppcc(own, "rendezvous")
        oracle = "unmatched" if message_violations(program) else "safe" if is_deadlock_free(program, "rendezvous") else "deadlock"
        if verdict != oracle:
            return verdict, f"the oracle says {oracle}"
        seconds = HANG if verdict == "deadlock" else SECONDS
        path = own.file("list.txt", re.sub(r"batch\[([^]]*)\]", r"(\1)BATCH", text(program)))
        return verdict, fault(program, verdict, *replay(options.mpirun, options.bin / "ppcc-replay", program, path, seconds))

    with ThreadPoolExecutor(2) as pool:
        checked = list(pool.map(check_case, cases))
    for (name, _, _), (verdict, wrong) in zip(cases, checked):
        print(f"{name}: {verdict}{', but ' + wrong if wrong else ''}")
    counts = {kind: sum(verdict == kind for verdict, _ in checked) for kind in ("safe", "deadlock", "unmatched")}
    failed = sum(wrong is not None for _, wrong in checked)
    print(", ".join(f"{kind} {count}" for kind, count in counts.items()) + f", {failed} failed")
    return 1 if failed or counts["safe"] < 3 or counts["deadlock"] < 3 or not counts["unmatched"] else 0


if __name__ == "__main__":
    sys.exit(main())
