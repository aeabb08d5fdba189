"""times.py PPCC [SCHEDULE...]: how long a verdict for all numbers of microbatches takes, in seconds of one core, as the table of
docs/every-m.md: by ranks, the most of the transports."""
import argparse
import json
import resource
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("ppcc")
parser.add_argument("schedules", nargs="*", help="all of the library without one")
parser.add_argument("--ranks", default="2,4,8,16,32")
parser.add_argument("--transports", default="data,stream,rendezvous")
parser.add_argument("--limit", type=float, help="seconds that none may take")
options = parser.parse_args()


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


listed = subprocess.run([options.ppcc, "--list-schedules"], capture_output=True, text=True).stdout
names = options.schedules or [line.split()[0] for line in listed.splitlines()]
ranks = options.ranks.split(",")
print("| schedule |", " | ".join(f"P = {p}" for p in ranks), "|")
print("|" + "---|" * (len(ranks) + 1))
verdicts = open_ends = 0
for name in names:
    cells = []
    for p in ranks:
        most, notes = 0.0, set()
        for transport in options.transports.split(","):
            before = seconds()
            done = subprocess.run(
                [options.ppcc, "prove", name, f"-DP={p}", f"--transport={transport}", "--format=json"],
                capture_output=True,
                text=True,
            )
            most = max(most, seconds() - before)
            ranges = json.loads(done.stdout)["ranges"]
            verdicts += len(ranges)
            for one in ranges:
                if one["verdict"] in ("undecided", "wrong"):
                    notes.add(one["verdict"])
                elif one["to"] is None and one["verdict"] == "right" and not (one["makespan"] or {}).get("exact"):
                    notes.add("no exact makespan")
                    open_ends += 1
        assert options.limit is None or most <= options.limit, (name, p, most)
        cells.append(f"{most:.2f}" + (f" ({', '.join(sorted(notes))})" if notes else ""))
    print(f"| {name} |", " | ".join(cells), "|", flush=True)
print(f"{verdicts} ranges, {open_ends} without an exact makespan")
