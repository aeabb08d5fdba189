"""every_p.py PPCC: what is said of all P and M, held against the prover of one P and against the ordinary compiler."""
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

ppcc = sys.argv[1]
LIBRARY = ["gpipe", "one_f_one_b", "one_f_one_b_overlap", "eager_1f1b", "looped_bfs", "zb_h1", "zb_h2", "dualpipe", "dualpipe_v"]
SCHEDULES = Path(__file__).parents[2] / "lib" / "schedules"
# DualPipe with one change, and whether all is right.
CHANGES = {
    "one turn more": ("M / 2 - P + h + 1", "M / 2 - P + h + (P >= 10 ? 2 : 1)", False),
    "the other side first": ("(i % 2 == 0 ? far : near); }\n    defer", "((i + (P >= 10 ? 1 : 0)) % 2 == 0 ? far : near); }\n    defer", False),
    "gradients of weights later": ("repeat n { W; I(near); }", "repeat n { I(near); W; }", True),
    "one left": ("drain W;", "repeat h + (P == 12 ? 0 : 1) { W; }", False),
    "a warm-up too deep": ("repeat n     { I(far); W; F(far); }", "repeat n     { F(far); I(far); W; }", None),
    "by threes": ("(i % 2 == 0 ? far : near); }\n    defer", "(i % 3 == 0 ? far : near); }\n    defer", False),
    "an odd rank's own": ("repeat 2 * n { F(near); }", "repeat 2 * n - (r % 2 == 1 and n > 2 ? 1 : 0) { F(near); }", False),
}
PIPE = "repeat M { F; } repeat M { B; }"
# The body of `on rank r`, what stands before it, and whether all P and M are right. Those that are wrong are so for P >= 7 only,
# or for M that grow with P.
CASES = {
    "one rank runs ahead": ("let w = min(r == 6 ? 2 * P : P - 1 - r, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; }", "", False),
    "the first seven wait": ("let w = min(r < 7 ? P - 1 - r : P, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; }", "", False),
    "less than a warm-up": ("let w = min(P - 1 - r, 6, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; }", "", None),
    "one too many": (PIPE + " if P >= 7 and r == 3 { F; }", "", False),
    "one too few": ("repeat M { F; } repeat M - (P >= 8 and M > 5 and r == P - 1 ? 1 : 0) { B; }", "", False),
    "twice the last": ("repeat M { F; } for i in 0 .. M { B(mb: P >= 9 ? min(i, max(M - 2, 0)) : i); }", "", False),
    "a cycle of two": ("if P >= 7 and r == 5 { repeat M { B; F; } } else { " + PIPE + " }", "", False),
    "a cycle at the end": ("if r == P - 1 and P > 10 { repeat M { B; } repeat M { F; } } else { " + PIPE + " }", "", False),
    "backwards": ("for i in 0 .. M { F(mb: M - 1 - i); } for i in 0 .. M { B(mb: M - 1 - i); }", "", True),
    "half of the ranks": ("if 2 * r < P { for i in 0 .. M { F(mb: M - 1 - i); } } else { for i in 0 .. M { F(mb: M - 1 - i); } } repeat M { B; }", "", True),
    "the wrong way round": ("if 2 * r < P { repeat M { F; } } else { for i in 0 .. M { F(mb: M - 1 - i); } } repeat M { B; }", "", True),
    "deeper than microbatches": ("let w = min(P - 1 - r, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; }", "require M >= P;", True),
    "what is left": ("repeat M { F; } defer W lag r { repeat M { B; } } repeat r { W; }", "require M >= P;", True),
    "what is lost": ("repeat M { F; } defer W lag r { repeat M { B; } } repeat min(r, 6) { W; }", "require M >= P;", False),
    "six forwards and no more": ("let w = min(P - 1 - r, 6, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; }", "require P <= 6;", True),
}


def run(arguments):
    return subprocess.run([ppcc, *arguments], capture_output=True, text=True)


def ranges_of(schedule):
    result = run(["prove", schedule, "--for", "P,M", "--format=json"])
    assert result.returncode in (0, 1), result.stderr
    return json.loads(result.stdout)["ranges"] if result.stdout else None


def range_containing(ranges, p, m):
    """The one range that speaks of these numbers."""
    found = []
    for one in ranges:
        ranks, numbers = one["P"], one["M"]
        line = lambda bound: Fraction(bound["slope"]) * p + Fraction(bound["intercept"])
        if (
            ranks["from"] <= p <= (ranks["to"] or p)
            and p % ranks["modulus"] == ranks["residue"]
            and all(m >= line(bound) for bound in numbers["from"])
            and all(m <= line(bound) for bound in numbers["to"])
            and m % numbers["modulus"] == numbers["residue"]
        ):
            found.append(one)
    assert len(found) == 1, (p, m, found)
    return found[0]


def makespan_of(one, p, m):
    value = one["makespan"]
    return Fraction(value["slopes"]["P"]) * p + Fraction(value["slopes"]["M"]) * m + Fraction(value["intercept"])


agreed = runs = formulas = 0


def compare(schedule, ranges):
    global agreed, runs, formulas
    for p in range(2, 13):
        single = json.loads(run(["prove", schedule, "-D", f"P={p}", "--transport=data", "--format=json"]).stdout)["ranges"]
        for m in [*range(1, 3 * p + 4), 100, 1001]:
            known = next(
                one for one in single if one["from"] <= m <= (one["to"] or m) and m % one["modulus"] == one["residue"]
            )
            claimed = range_containing(ranges, p, m)
            if claimed["verdict"] == "undecided":
                continue
            assert claimed["verdict"] == known["verdict"], (schedule, p, m, claimed, known)
            agreed += 1
            if claimed["makespan"] and known["makespan"] and known["makespan"]["exact"]:
                value = Fraction(known["makespan"]["slope"]) * m + Fraction(known["makespan"]["intercept"])
                bound = makespan_of(claimed, p, m)
                assert value == bound if claimed["makespan"]["exact"] else value <= bound, (schedule, p, m, value, bound)
                formulas += 1
    for p in [1, 3, 8, 14]:
        for m in [1, 4, 9, 31, 32]:
            claimed = range_containing(ranges, p, m)
            if claimed["verdict"] == "undecided":
                continue
            transport = ["stream", "rendezvous"][(p + m) % 2]
            result = run([schedule, "-D", f"P={p}", "-D", f"M={m}", f"--transport={transport}", "--emit=report-json"])
            assert (result.returncode == 0) == (claimed["verdict"] == "valid"), (schedule, p, m, transport, result.stderr)
            runs += 1
            if transport == "stream" and claimed["verdict"] == "valid" and claimed["makespan"]:
                value = Fraction(str(json.loads(result.stdout)["makespan"]))
                assert value <= makespan_of(claimed, p, m), (schedule, p, m, value)


for schedule in LIBRARY:
    ranges = ranges_of(schedule)
    assert all(one["verdict"] in ("valid", "excluded") for one in ranges), (schedule, ranges)
    compare(schedule, ranges)
print(f"{len(LIBRARY)} schedules, {agreed} numbers agree, {formulas} of them with a makespan, {runs} runs")

proven = 0
texts = {
    name: ("schedule s(P: int >= 1, M: int >= 1) { ranks P; microbatches M; %s placement linear; on rank r { %s } }" % (head, body), is_right)
    for name, (body, head, is_right) in CASES.items()
}
dualpipe = (SCHEDULES / "dualpipe.pp").read_text()
for name, (old, new, is_right) in CHANGES.items():
    assert dualpipe.count(old) == 1, name
    texts[name] = (dualpipe.replace(old, new), is_right)
for name, (text, is_right) in texts.items():
    Path("case.pp").write_text(text)
    ranges = ranges_of("case.pp")
    all_right = ranges is not None and all(one["verdict"] in ("valid", "excluded") for one in ranges)
    assert all_right <= (is_right is not False), name
    if ranges:
        compare("case.pp", ranges)
    proven += all_right
    if is_right and not all_right:
        print("not proven:", name)
print(f"{len(texts)} cases, {proven} proven")
