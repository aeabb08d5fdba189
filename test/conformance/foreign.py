#!/usr/bin/env python3
"""Checks that ppcc refuses the programs of foreign.jsonl, each for its own reason.

Every program is read as PyTorch's CSV, and, where that says as much, as action lists.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# What each refusal must say: codes, and words of their messages.
EXPECTED = {
    "lost-weight-gradient": [("E0703", "`0B0` and `0I0`"), ("E0701", "microbatch 1 of stage 0 has no `W`")],
    "double-weight-gradient": [("E0702", "`0W0` runs twice")],
    "double-forward": [("E0702", "`0F0` runs twice")],
    "double-backward": [("E0702", "`0B0` runs twice")],
    "microbatch-out-of-range": [("E0663", "`0F2` is beyond"), ("E0662", "no action is of microbatch 0")],
    "split-and-full": [("E0703", "`0B0` and `0I0`"), ("E0701", "microbatch 1 of stage 0 has no `B`")],
    "backward-before-next-forward": [("E0721", "`0B1` runs before `0F1`")],
    "stage-on-two-ranks": [("E0660", "stage 0 is on rank 0 and on rank 1")],
    "missing-stage": [("E0661", "stage 1 computes on no rank")],
    "swapped-receives": [("E0762", "`0SEND_F0` where rank 1 receives `1RECV_F1`")],
    "head-to-head-sends": [("E0766", "deadlock under `stream`: ranks 0 and 1 wait for each other")],
    "receive-after-use": [("E0756", "`1RECV_F0` is not before `1F0`")],
    "send-before-producer": [("E0757", "`0SEND_F0` is not after `0F0`")],
    "no-communication": [("E0666", "sends nothing")],
    "message-within-a-rank": [("E0753", "`0SEND_F0` would send from rank 0 to itself")],
    "first-stage-order": [("E0663", "`1F2` is beyond")],
    "overlap-on-itself": [("E0731", "`0B0` cannot overlap with `0F0`")],
    "trailing-garbage": [("E0650", "`0F0xyz`")],
    "no-microbatch": [("E0651", "`0F`")],
}
# Action lists leave open whether communication is still to be added.
CSV_ONLY = {"no-communication"}
CSV_FORMATS = {"compute": "torch-csv-compute", "comms": "torch-csv"}


def texts(case):
    """(format, text) of each way to write the program."""
    yield CSV_FORMATS[case["kind"]], "".join(row.replace(" ", ",") + "\n" for row in case["rows"])
    if case["id"] not in CSV_ONLY:
        yield "actions", "".join(f"rank {rank}: {row}\n" for rank, row in enumerate(case["rows"]))


def problem(ppcc, case, form, text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "program")
        path.write_text(text)
        command = [ppcc, path, "--check", f"--from={form}", f"--microbatches={case['microbatches']}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 1:
        return f"exit status {done.returncode}"
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    for code, words in EXPECTED[case["id"]]:
        if not any(f"[{code}]" in line and words in line for line in errors):
            return f"no {code} with `{words}` in:\n" + "\n".join(errors)
    return None


def main():
    cases = [json.loads(line) for line in (HERE / "foreign.jsonl").read_text().splitlines()]
    assert {case["id"] for case in cases} == set(EXPECTED), "the cases and their expectations differ"
    failed = 0
    for case in cases:
        for form, text in texts(case):
            if found := problem(sys.argv[1], case, form, text):
                failed += 1
                print(f"{case['id']} as {form}: {found}")
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
