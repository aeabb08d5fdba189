"""each_m.py PPCC [SCHEDULE...]: what is said of all numbers of microbatches against single ones on the long way: verdicts,
makespans, and each row and message of the programs. For all of the library, as in docs/every-m.md:
    each_m.py build/bin/ppcc --each=20 --ranks=2,4,8,16"""
import argparse
import json
import random
import subprocess
from fractions import Fraction

parser = argparse.ArgumentParser()
parser.add_argument("ppcc")
parser.add_argument("schedules", nargs="*", help="all of the library without one")
parser.add_argument("--each", type=int, default=2, help="how many numbers of each schedule and number of ranks")
parser.add_argument("--ranks", default="4")
parser.add_argument("--most", type=int, default=10000, help="the largest number,")
parser.add_argument("--product", type=int, default=40000, help="and the largest of its products with the ranks")
parser.add_argument("--with", dest="rules", action="append", default=[], help="rules to follow")
parser.add_argument("--transport", default="stream")
options = parser.parse_args()
rng = random.Random(11)
judged = exact = programs = undecided = 0


def run(*args):
    return subprocess.run([options.ppcc, *args], capture_output=True, text=True)


def holds(one, m):
    return one["from"] <= m and (one["to"] is None or m <= one["to"]) and m % one["modulus"] == one["residue"]


names = options.schedules or [line.split()[0] for line in run("--list-schedules").stdout.splitlines()]
for name in names:
    for p in map(int, options.ranks.split(",")):
        given = [name, f"-DP={p}", f"--transport={options.transport}", *[f"--with={rule}" for rule in options.rules]]
        proof = json.loads(run("prove", *given, "--format=json").stdout)
        family = run(*given, "--for", "M", "-o", "family.json").returncode == 0
        for _ in range(options.each):
            # Most are small, where the beginning and the end of a run meet.
            m = rng.randint(1, min(options.most, options.product // p) if rng.random() < 0.5 else 12 * p)
            (one,) = [one for one in proof["ranges"] if holds(one, m)]
            compiled = run(*given, f"-DM={m}", "--no-families", "--emit=report-json")
            refused = any(code in compiled.stderr for code in ("[E0404]", "[E0480]"))
            said = "valid" if compiled.returncode == 0 else "excluded" if refused else "invalid"
            if one["verdict"] == "undecided":
                undecided += 1
                continue
            assert one["verdict"] == said, (given, m, one, compiled.stderr)
            judged += 1
            if span := said == "valid" and one["makespan"]:
                shown = m * Fraction(span["slope"]) + Fraction(span["intercept"])
                real = Fraction(str(json.loads(compiled.stdout)["makespan"]))
                assert abs(shown - real) < 1e-5 if span["exact"] else shown >= real, (given, m, shown, real)
                exact += span["exact"]
            if family:
                of_family, of_schedule = run("family.json", f"-DM={m}"), run(*given, f"-DM={m}", "--no-families")
                assert of_family.returncode == of_schedule.returncode, (given, m, of_family.stderr, of_schedule.stderr)
                assert of_family.stdout == of_schedule.stdout, (given, m)
                programs += said == "valid"
        print(f"# {name} P={p}", flush=True)
print(f"{judged} numbers agree, {exact} makespans and {programs} programs are the same, {undecided} undecided")
