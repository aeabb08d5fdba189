#!/usr/bin/env python3
"""Compares what ppcc makes of the schedule library with what other systems produce (see README.md)."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from cases import print_summary, failures

HERE = pathlib.Path(__file__).resolve().parent
CELL = re.compile(r"\([^)]*\)\S*|[^\s(]+")
SECONDS = 60
UNMATCHED_CODES = {"seed_int_pp2_v2_m8"}  # Megatron takes gradients for activations there.


def defines(params):
    """The -D options for a case's parameters."""
    for name, value in params.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield from ("-D", f"{name}={text}")


def compile_case(ppcc, case, *options):
    command = [ppcc, case["schedule"], *defines(case["params"]), *options, "-o", "-"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, "", f"no end after {SECONDS} s"
    return done.returncode, done.stdout, done.stderr


def first_difference(expected, text):
    """The first cell that differs, in words; nothing when all are equal."""
    got = text.splitlines()
    for rank, cells in enumerate(expected):
        prefix = f"rank {rank}: "
        if rank >= len(got) or not got[rank].startswith(prefix.rstrip()):
            return f"rank {rank} is missing"
        wanted, found = CELL.findall(cells), CELL.findall(got[rank][len(prefix):])
        for index in range(max(len(wanted), len(found))):
            want = wanted[index] if index < len(wanted) else "nothing"
            have = found[index] if index < len(found) else "nothing"
            if want != have:
                return f"rank {rank}, action {index}: expected {want}, got {have}"
    if len(got) > len(expected):
        return f"{len(got)} ranks instead of {len(expected)}"
    return None


def check_program(ppcc, case):
    for field, order in (("compute", "none"), ("comms", "sweep")):
        if field not in case:
            continue
        status, out, err = compile_case(ppcc, case, f"--comm-order={order}", "--emit=actions")
        if status != 0:
            return f"{field}: exit status {status}: {err.strip().splitlines()[:1]}"
        difference = first_difference(case[field], out)
        if difference:
            return f"{field}: {difference}"
    return check_lowering(ppcc, case) or (check_calls(ppcc, case) if has_calls(case) else None)


LOWERING = ("--comm-order=sweep", "--emit=torch-csv", "--torch-fsdp", "--torch-version=2.10")


def check_lowering(ppcc, case):
    """What PyTorch makes of the compute actions: messages, and what FSDP does with parameters."""
    if "lowered" not in case:
        return None
    status, out, err = compile_case(ppcc, case, *LOWERING)
    if status != 0:
        return f"lowered: exit status {status}: {err.strip().splitlines()[:1]}"
    rows = "".join(f"rank {rank}: {row.replace(',', ' ')}\n" for rank, row in enumerate(out.splitlines()))
    difference = first_difference(case["lowered"], rows)
    return f"lowered: {difference}" if difference else None


def has_calls(case):
    """Whether the case tells Megatron's calls, and not those of its overlapped mode, which ppcc does not have."""
    return "p2p" in case and "ovl" not in case["case"]


def check_calls(ppcc, case):
    status, out, err = compile_case(ppcc, case, "--fuse=megatron", "--emit=actions")
    if case["case"] in UNMATCHED_CODES:
        if status != 1 or "receives the gradient" not in err:
            return f"p2p: exit status {status}, but a gradient is taken for an activation"
        passes = "verify,fuse-comm,verify"
        status, out, err = compile_case(ppcc, case, f"--passes={passes}", "--fuse=megatron", "--emit=actions")
    if status != 0:
        return f"p2p: exit status {status}: {err.strip().splitlines()[:1]}"
    difference = first_difference(case["p2p"], out)
    return f"p2p: {difference}" if difference else None


KINDS = {"forward": "F", "backward": "B", "backward_D": "I", "backward_W": "W"}
TOLERANCE = 1e-9


def costs_of(sim, stages):
    """A file of costs; those that differ between stages as lists."""
    costs = {"cost": {}}
    for name, value in sim["cost"].items():
        if isinstance(value, dict):
            value = [value[str(stage)] for stage in range(stages)]
        costs["cost"][KINDS.get(name, "overlap")] = value
    return costs


def exceeds_tolerance(expected, got):
    return len(expected) != len(got) or any(abs(a - b) > TOLERANCE for a, b in zip(expected, got))


def check_report(ppcc, case, options, wanted):
    """Compares figures of the report, each given as its name, what is expected, and how it is found."""
    status, out, err = compile_case(ppcc, case, "--comm-order=none", "--emit=report-json", *options)
    if status != 0:
        return f"report: exit status {status}: {err.strip().splitlines()[:1]}"
    report = json.loads(out)
    for name, expected, find in wanted:
        if exceeds_tolerance(expected, find(report)):
            return f"{name}: expected {expected}, got {find(report)}"
    return None


def makespan_of(report):
    return [report["makespan"]]


def check_times(ppcc, case, options):
    status, out, err = compile_case(ppcc, case, "--comm-order=none", "--emit=times", *options)
    if status != 0:
        return f"times: exit status {status}: {err.strip().splitlines()[:1]}"
    rows = [line.split(",") for line in out.splitlines()[1:]]
    got = {f"{rank}:{action}": (float(start), float(end)) for rank, action, _, start, end in rows}
    expected = {f"{rank}:{cell}": times for item, times in case["sim"]["times"].items()
                for rank, cells in [item.split(":")] for cell in re.findall(r"\d+[A-Z]+\d+", cells)}
    if sorted(got) != sorted(expected):
        return f"times: other actions: {sorted(set(got) ^ set(expected))[:4]}"
    for action, times in expected.items():
        if exceeds_tolerance(times, got[action]):
            return f"times: {action}: expected {times}, got {got[action]}"
    return None


def check_sim(ppcc, case):
    sim = case["sim"]
    stages = 1 + max(int(stage) for row in case["compute"] for stage in re.findall(r"(\d+)[A-Z]+\d", row))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(costs_of(sim, stages), file)
        file.flush()
        options = [f"--costs={file.name}"]
        wrong = check_report(ppcc, case, options, [
            ("makespan", [sim["makespan"]], makespan_of),
            ("busy", sim["busy"], lambda report: [rank["busy"] for rank in report["ranks"]])])
        return wrong or ("times" in sim and check_times(ppcc, case, options)) or None


def check_figures(ppcc, case):
    """What other systems say of the run of a program: its times, its makespan, its activations."""
    if "sim" in case:
        return check_sim(ppcc, case)
    wanted = [(name, case[name], lambda report: [rank["peak_activations"] for rank in report["ranks"]])
              for name in ("peak_inflight", "peak_activations") if name in case]
    if "makespan_F1_B2_comm0" in case:
        wanted.append(("makespan", [case["makespan_F1_B2_comm0"]], makespan_of))
    return check_report(ppcc, case, ["--cost=F=1", "--cost=B=2"], wanted) if wanted else None


def check_feasibility(ppcc, case):
    status, _, err = compile_case(ppcc, case, "--comm-order=none", "--emit=actions")
    if case["feasible"]:
        return None if status == 0 else f"exit status {status}: {err.strip().splitlines()[:1]}"
    if status != 1:
        return f"exit status {status} instead of 1: ranks wait in a cycle"
    return None if "in a cycle" in err else f"refused, but not for the cycle: {err.strip().splitlines()[:1]}"


def check(ppcc, case):
    if "feasible" in case:
        return check_feasibility(ppcc, case)
    return check_program(ppcc, case) or check_figures(ppcc, case)


def title(case):
    name = case.get("id") or "feasibility of " + case["schedule"]
    return f"{name} {' '.join(defines(case['params']))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ppcc", help="the compiler to test")
    parser.add_argument("files", nargs="*", help="case files of this folder; all of them by default")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="compilers at a time")
    options = parser.parse_args()

    files = [HERE / name for name in options.files] or sorted(HERE.glob("*.jsonl"))
    cases = [json.loads(line) for file in files for line in file.read_text().splitlines() if line]
    cases = [case for case in cases if "schedule" in case]
    failed = failures(cases, lambda case: check(options.ppcc, case), options.jobs, title)
    reported = [case for case in cases if "p2p" in case]
    if reported:
        left = sum(not has_calls(case) for case in reported)
        print(f"calls of {len(reported) - left} cases compared; NOT COVERED: {left} cases of Megatron's overlapped mode")
    return print_summary(cases, failed)


if __name__ == "__main__":
    sys.exit(main())
