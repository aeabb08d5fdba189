"""adversarial.py PPCC: schedules made to fool a prover, judged at each M of interest as the ordinary compiler judges them."""
import json
import random
import subprocess
import sys

ppcc = sys.argv[1]
GPIPE = "repeat M { F; } repeat M { B; }"
ONE = "let w = min(1 - r, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; }"
# The body of `on rank r` of two ranks, what stands before it, and the numbers to look at.
CASES = {
    "one M is wrong": (GPIPE + " if M == 1234 and r == 0 { B; }", "", [1233, 1234, 1235]),
    "wrong from some on": (GPIPE + " if M >= 3000 { F; }", "", [2999, 3000, 3001, 9000]),
    "one remainder": (GPIPE + " if M % 11 == 7 { F; }", "", [1000, 1008, 1107]),
    "some in the middle": (GPIPE + " if M >= 500 and M <= 520 { B; }", "", [499, 500, 520, 521]),
    "halves": ("repeat M / 2 { F; F; } repeat M % 2 { F; } repeat M { B; }", "", [777, 778]),
    "a half is lost": ("repeat M / 2 { F; F; } repeat M { B; }", "", [777, 778]),
    "a long warm-up": ("let w = min(100, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; }", "", [99, 100, 101, 500]),
    "a cycle from six on": (
        "if r == 0 { repeat min(5, M) { F; } repeat min(5, M) { B; } repeat max(M - 5, 0) { F; B; } } else { " + GPIPE + " }",
        "",
        [5, 6, 7, 300],
    ),
    "a cycle now and then": (
        "if r == 0 and M % 5 == 0 and M > 20 { repeat M { F; B; } } else { " + GPIPE + " }",
        "",
        [20, 25, 26, 500, 501],
    ),
    "two remainders meet": (GPIPE + " if M % 7 == 3 and M % 5 == 2 and M > 100 { F; }", "", [17, 122, 157, 192]),
    "blocks of four": ("for i in 0 .. M / 4 { repeat 4 { F; } } repeat M % 4 { F; } repeat M { B; }", "", [400, 401, 403]),
    "every other ten": (GPIPE + " if (M / 10) % 2 == 1 { B; }", "", [109, 110, 119, 120, 510]),
    "what is excluded": (GPIPE + " if M % 2 == 1 { F; }", 'require M % 2 == 0, "even";', [101, 102]),
    "what is admitted is wrong": (GPIPE + " if M % 6 == 4 { F; }", 'require M % 2 == 0, "even";', [100, 102, 106]),
    "pending work": ("repeat M { F; } repeat M { I; } repeat M - M % 3 { W; } if M % 3 == 1 { W; }", "", [99, 100, 101]),
    "work at the end": ("repeat M { F; } repeat M { I; } drain W;", "", [64, 65]),
    "backwards": ("for i in 0 .. M { F(mb: M - 1 - i); } for i in 0 .. M { B(mb: M - 1 - i); }", "", [50]),
    "one twice": ("for i in 0 .. M { F(mb: min(i, M - 2)); } repeat M { B; }", "", [2, 50]),
    "by strides": (
        "for k in 0 .. 3 { for i in 0 .. (M - k + 2) / 3 { F(mb: 3 * i + k); } } repeat M { B; }",
        "",
        [90, 91, 92],
    ),
    "shorter with M": (ONE + " repeat max(40 - M, 0) { if M == 13 { F; } }", "", [13, 39, 40, 41]),
    "a square": (GPIPE + " if M * M == 1024 { F; }", "", [31, 32, 33]),
    "a counter": ("let i = 0; while i < M { F; i = i + 1; } repeat M { B; }", "", [88]),
}
MAY_BE_UNDECIDED = {"one twice", "a square", "backwards", "a counter", "by strides", "pending work"}
rng = random.Random(2)
undecided = judged = 0
for name, (body, before, numbers) in CASES.items():
    source = f"schedule s(M: int = 4) {{ ranks 2; microbatches M; placement linear; {before} on rank r {{ {body} }} }}"
    with open("s.pp", "w", encoding="utf-8") as file:
        file.write(source + "\n")
    proof = subprocess.run([ppcc, "prove", "s.pp", "--format=json"], capture_output=True, text=True)
    if not proof.stdout:
        assert name == "a counter", (name, proof.stderr)  # The language has no such loop.
        continue
    ranges = json.loads(proof.stdout)["ranges"]
    unknown = [one for one in ranges if one["verdict"] == "undecided"]
    undecided += bool(unknown)
    assert not unknown or name in MAY_BE_UNDECIDED, (name, unknown[0]["reason"])
    for m in [1, 2, 3, 4, 5, 7, 12, *numbers, rng.randint(13, 2000)]:
        (one,) = (
            one
            for one in ranges
            if one["from"] <= m and (one["to"] is None or m <= one["to"]) and m % one["modulus"] == one["residue"]
        )
        run = subprocess.run([ppcc, "s.pp", f"-DM={m}", "--no-families", "--emit=report-json"], capture_output=True, text=True)
        excluded = any(code in run.stderr for code in ("[E0404]", "[E0480]"))
        verdict = "valid" if run.returncode == 0 else "excluded" if excluded else "invalid"
        judged += 1
        assert one["verdict"] in (verdict, "undecided"), (name, m, one, run.stderr)
        if verdict == one["verdict"] == "valid" and one["makespan"] and one["makespan"]["exact"]:
            span = one["makespan"]
            assert m * float(span["slope"]) + float(span["intercept"]) == json.loads(run.stdout)["makespan"], (name, m)
print(f"{len(CASES)} schedules, {judged} numbers agree, {undecided} undecided in part")
