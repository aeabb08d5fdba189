#!/usr/bin/env python3
"""Compares ppcc's verdict on random small schedules with that of a slow judge of our own."""

import argparse
import collections
import pathlib
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Spin"))
from checker import Program, is_safe, parse_actions, unmatched  # noqa: E402
from generate import generate
from judge import bound_fault, judge, lay_out, message_fault, order_fault, text

# The diagnostics that speak of what the judge calls by one word.
CODES = {
    "chunk": ["E0501"],
    "none left": ["E0504"],
    "microbatch": ["E0505"],
    "empty queue": ["E0506"],
    "not waiting": ["E0507"],
    "left over": ["E0508"],
    "missing": ["E0701", "E0705"],
    "twice": ["E0702", "E0703"],
    "order": ["E0721"],
    "group": ["E0731"],
    "deadlock": ["E0741", "E0742"],
}
CODE = re.compile(r"\berror: .*\[(E\d{4})\]")
BATCH = re.compile(r"[a-z_]+\[([^]]*)\]")
SECONDS = 20
BATCHES = []  # In each program that was fused.


def compile_text(ppcc, source, order, *options):
    command = [ppcc, "-", f"--comm-order={order}", "--emit=actions", "-o", "-", *options]
    return subprocess.run(command, input=source, capture_output=True, text=True, timeout=SECONDS)


def comm_fault(ppcc, shape, ranks, source):
    """What is wrong with the communication that the compiler adds, and the program, or None."""
    for order in ["sweep", "ready-time"]:
        free = compile_text(ppcc, source, order)
        for bound in [None, 1, 2]:
            done = compile_text(ppcc, source, order, f"--prefetch={bound}") if bound else free
            if done.returncode != 0:
                return f"{order}, {bound}: {done.stderr}"
            fault = message_fault(shape, ranks, done.stdout) or order_fault(shape, done.stdout)
            if bound and not fault:
                fault = bound_fault(shape, ranks, done.stdout, bound)
                if [sorted(line.split()) for line in free.stdout.splitlines()] != \
                        [sorted(line.split()) for line in done.stdout.splitlines()]:
                    fault = "other messages than without a bound"
            if fault:
                return f"{order}, {bound}: {fault}\n{done.stdout}"
    return None


def fusion_fault(ppcc, seed, source):
    """What is wrong with the messages in batches, or None; and how many batches there are."""
    rng = random.Random(seed)
    order = rng.choice(["sweep", "ready-time", "late", "late"])
    transport = rng.choice(["stream", "stream-per-peer", "stream-per-edge", "posted", "rendezvous", "buffered:1"])
    on = f"--transport={transport}"
    single = compile_text(ppcc, source, order, "--transport=buffered")
    fused = compile_text(ppcc, source, order, "--fuse=batch", on)
    if fused.returncode != 0:
        plain = compile_text(ppcc, source, order, on)  # `late` is not safe for each program.
        same = plain.returncode == fused.returncode and CODE.findall(plain.stderr) == CODE.findall(fused.stderr)
        return (None if same else f"fusing breaks it\n{fused.stderr}"), 0
    program = Program(parse_actions(fused.stdout))
    if BATCH.sub(lambda match: match[1].replace(";", " "), fused.stdout) != single.stdout:
        return f"other rows\n{single.stdout}", 0
    if unmatched(program) or not is_safe(program, transport):
        return f"it hangs under {transport}", 0
    return None, len(BATCH.findall(fused.stdout))


def verdict(ppcc, seed):
    """The judge's reasons, the source, and what is wrong with the compiler's answer."""
    shape, bodies, source = generate(random.Random(seed))
    ranks, reasons = lay_out(shape, bodies)
    if not reasons:
        reasons = judge(shape, ranks)
    try:
        done = compile_text(ppcc, source, "none")
        if reasons:
            codes = CODE.findall(done.stderr)
            if done.returncode != 1 or not codes:
                return reasons, source, f"exit status {done.returncode}; the judge says: {sorted(reasons)}"
            if codes[0] not in [code for reason in reasons for code in CODES[reason]]:
                return reasons, source, f"the judge says: {sorted(reasons)}\n{done.stderr}"
            return reasons, source, None
        if done.returncode != 0:
            return reasons, source, f"the judge accepts it\n{done.stderr}"
        if done.stdout != text(ranks):
            return reasons, source, f"the judge's actions:\n{text(ranks)}ppcc's actions:\n{done.stdout}"
        fault = comm_fault(ppcc, shape, ranks, source)
        if fault:
            return reasons, source, f"with communication: {fault}"
        fault, count = fusion_fault(ppcc, seed, source)
        if fault:
            return reasons, source, f"with batches: {fault}"
        BATCHES.append(count)
    except subprocess.TimeoutExpired:
        return reasons, source, f"no end after {SECONDS} s"
    return reasons, source, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ppcc", help="the compiler to test")
    parser.add_argument("--count", type=int, default=400, help="how many schedules")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--show", action="store_true", help="print the schedule of the first seed instead")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="compilers at a time")
    options = parser.parse_args()
    if options.show:
        print(generate(random.Random(options.seed))[2], end="")
        return 0

    seeds = range(options.seed, options.seed + options.count)
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda seed: verdict(options.ppcc, seed), seeds))

    failed = 0
    tally = collections.Counter()
    for seed, (reasons, source, wrong) in zip(seeds, verdicts):
        tally.update(reasons or ["accepted"])
        if wrong:
            failed += 1
            print(f"--- seed {seed}: {wrong}\n{source}")
    print(", ".join(f"{name} {tally[name]}" for name in ["accepted", *CODES]))
    print(f"{sum(BATCHES)} batches in {len(BATCHES)} programs")
    if sum(BATCHES) < len(BATCHES):
        failed += 1
        print("that is too few")
    scarce = [name for name in CODES if tally[name] < options.count // 200]
    if tally["accepted"] < options.count // 4 or tally["accepted"] > options.count * 3 // 4 or scarce:
        failed += 1
        print(f"the generator makes too few of some class: {scarce or 'accepted or refused'}")
    print(f"{options.count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
