"""times.py PPCC [SCHEDULE...]: how long a verdict for all numbers of microbatches takes, in seconds of one core, as the table of
docs/every-m.md: by ranks, the most of the transports. `u` where numbers stay undecided, `w` where some are wrong, `m` where a
range without an end has no exact makespan on one of them."""
import argparse
import json
import resource
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("ppcc")
parser.add_argument("schedules", nargs="*", help="all of the library without one")
parser.add_argument("--ranks", default="2,4,8,16,32")
parser.add_argument("--transports", default="data,stream,rendezvous")
parser.add_argument("--limits", default="", help="ranks:seconds,... that none may take")
options = parser.parse_args()
limits = {p: float(seconds) for p, seconds in (one.split(":") for one in options.limits.split(",") if one)}


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def notes(ranges):
    for one in ranges:
        if one["verdict"] in ("undecided", "invalid"):
            yield one["verdict"][0]
        elif one["to"] is None and one["verdict"] == "valid" and not (one["makespan"] or {}).get("exact"):
            yield "m"


listed = subprocess.run([options.ppcc, "--list-schedules"], capture_output=True, text=True).stdout
names = options.schedules or [line.split()[0] for line in listed.splitlines()]
ranks = options.ranks.split(",")
print("| seconds |", " | ".join(f"P = {p}" for p in ranks), "|")
print("|" + "---|" * (len(ranks) + 1))
verdicts, slow = 0, []
for name in names:
    cells = []
    for p in ranks:
        taken, seen = {}, set()
        for transport in options.transports.split(","):
            before = seconds()
            command = [options.ppcc, "prove", name, f"-DP={p}", f"--transport={transport}", "--format=json"]
            ranges = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["ranges"]
            taken[transport] = seconds() - before
            verdicts += len(ranges)
            seen.update(notes(ranges))
        most = max(taken.values())
        if most > limits.get(p, float("inf")):
            slow.append(f"{name}, P = {p}: {most:.2f} s")
        cells.append(" ".join([f"{most:.2f}", *sorted(seen)]))
    print(f"| `{name}` |", " | ".join(cells), "|", flush=True)
print(f"{verdicts} ranges; too slow: {'; '.join(slow) or 'none'}")
