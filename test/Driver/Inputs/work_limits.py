"""Runs short schedules within 40 seconds of a processor, and 2 GB; with --sanitized, within 400 seconds, and 8 GB."""
import random
import resource
import subprocess
import sys

SECONDS, GIBIBYTES = (400, 8) if "--sanitized" in sys.argv else (40, 2)
ALL = "for a in 0 .. P { for b in a + 2 .. P { edge stage a -> stage b; } }"
CASES = {
    "too many edges": (f"schedule s(P: int = 2890, M: int = 1) {{ ranks P; microbatches M; placement linear; {ALL} on rank r {{ F; B; }} }}", []),
    "many edges": (f"schedule s(P: int = 1448, M: int = 1) {{ ranks P; microbatches M; placement linear; {ALL} on rank r {{ F; B; }} }}", []),
    "edges of many microbatches": (
        "schedule s(P: int = 1000, M: int = 4000) { ranks P; microbatches M; placement linear; for b in 2 .. P { edge stage 0 -> stage b; }"
        " on rank r { repeat M { F; } repeat M { B; } } }",
        [],
    ),
    "all ranks meet": (
        "action A { per stage; collective all; after B; lane net; } schedule s() { ranks 60000; microbatches 1; placement linear; on rank r { F; B; A; } }",
        [],
    ),
    "best of many": ("schedule s(M: int = 1000000) { ranks 2; microbatches M; placement linear; on rank r { repeat M { F; } repeat M { B; } } }", ["--comm-order=best"]),
    "no order asked for": (
        "schedule s(M: int = 600000) { ranks 2; microbatches M; placement linear; on rank r { repeat M { F; } repeat M { B; } } }",
        ["--transport=rendezvous"],
    ),
    "many transports": (
        "schedule s(M: int = 1000000) { ranks 2; microbatches M; placement linear; on rank r { repeat M { F; } repeat M { B; } } }",
        ["--transport=stream,rendezvous,buffered,posted,buffered:2,buffered:3,buffered:4"],
    ),
}


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run(name, *command):
    done = subprocess.run(["ppcc", *command], capture_output=True, text=True, preexec_fn=limit)
    print(f"{name}: {'good' if done.returncode == 0 else done.stderr.splitlines()[0] if done.returncode == 1 else done}")


for name, (text, options) in CASES.items():
    open("s.pp", "w").write(text)
    run(name, "s.pp", "--check", *options)

# Ranks that begin what they can in no order, which no loop is shorter than.
RANKS, MICROBATCHES = 64, 700
draw, rows, issued = random.Random(1), [[] for _ in range(RANKS)], [{kind: 0 for kind in "FIW"} for _ in range(RANKS)]
while min(one["W"] for one in issued) < MICROBATCHES:
    rank = draw.randrange(RANKS)
    own = issued[rank]
    until = {
        "F": issued[rank - 1]["F"] if rank else MICROBATCHES,
        "I": issued[rank + 1]["I"] if rank + 1 < RANKS else own["F"],
        "W": own["I"],
    }
    kind = draw.choice("FIW")
    if own[kind] < min(until[kind], own["F"] if kind != "F" else MICROBATCHES):
        rows[rank].append(f"{rank}{kind}{own[kind]}")
        own[kind] += 1
open("random.csv", "w").write("\n".join(map(",".join, rows)))
run("decompiled without loops", "decompile", "random.csv", "-o", "random.pp")
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < GIBIBYTES << 20
