"""Tries each limit at its edge: the most that is allowed is accepted, one more is refused by its own message."""
import itertools
import json
import subprocess
import sys

ppcc = sys.argv[1]
BODY = "on rank r { F; B; }"
LINEAR = "microbatches 1; placement linear;"
NAMES = ["K_" + a + b for a, b in itertools.product("ABCDEFGHIJKLMNOP", repeat=2)]


def schedule(head, body=BODY):
    return f"schedule s() {{ {head} {body} }}"


def ir(pipes, rows="", ranks=1, kinds=()):
    """A pipe is a name, its first microbatch, their end, and the ranks of its stages."""
    head = {"ranks": ranks, "kinds": [{"mnemonic": name, "class": "declared"} for name in kinds],
            "pipes": [{"name": name, "microbatches": ends, "rank_of_stage": places, "skip_edges": []} for name, *ends, places in pipes]}
    return f"program {json.dumps(head)} {rows}"


def pipes(n):
    declared = "".join(f"pipe p{i} {{ placement linear; microbatches {i} .. {i + 1}; }}" for i in range(n))
    work = "".join(f"F(p{i});" for i in range(n))
    return schedule("ranks 1; backward when false;" + declared, f"on rank r {{ {work} }}")


def nested_json(n):
    """The object around it is one level."""
    text = subprocess.run([ppcc, "gpipe", "-D", "P=1", "-D", "M=1"], capture_output=True, text=True, check=True).stdout
    return text.replace("{", '{"x": ' + "[" * (n - 1) + "]" * (n - 1) + ",", 1)


# What is limited, the most, the program with n of it, what refuses it.
LIMITS = [
    ("ranks of a schedule", 1 << 20, lambda n: schedule(
        f"ranks {n}; microbatches 1; stages 1; stage s on rank s; backward when false;", "on rank r { if r == 0 { F; } }"),
     "the number of ranks is 1048577"),
    ("ranks of IR", 1 << 20, lambda n: ir([], ranks=n), "`ranks` must be an integer from 1 to 1048576"),
    ("a rank of IR", (1 << 20) - 1, lambda n: ir([("p", 0, 0, [n])], f"rank {n} {{ }}", 1 << 20),
     "`rank_of_stage` must be an integer from 0 to 1048575"),
    ("stages", 65534, lambda n: schedule(f"ranks {n}; {LINEAR}"), "the number of stages is 65535"),
    ("stages of IR", 65534, lambda n: ir([("p", 0, 0, [0] * n)]), "more than 65534 stages in a pipe"),
    ("pipes", 256, pipes, "the number of pipes is 257"),
    ("pipes of IR", 256, lambda n: ir([(f"p{i}", i, i, [0]) for i in range(n)]), "more than 256 pipes"),
    ("phases", 32767, lambda n: schedule(
        "ranks 1; " + LINEAR, "on rank r {" + "".join(f"phase p{i} {{}}\n" for i in range(n)) + "F; B; }"),
     "the number of phases is 32768"),
    ("phases of IR", 32767, lambda n: ir(
        [("p", 0, 0, [0])], "rank 0 {" + "".join(f'phase "{i}"\n' for i in range(n)) + "}"),
     "more than 32767 phases"),
    ("microbatches", 4294967294, lambda n: schedule(
        f"ranks 1; pipe p {{ placement linear; microbatches 4294967293 .. {n}; }}"),
     "the end of the microbatches is 4294967295"),
    ("microbatches of IR", 4294967294, lambda n: ir(
        [("p", 4294967293, n, [0])], "rank 0 { 0F4294967293 0B4294967293 }"), "`microbatches` must be the first, and one past the last"),
    ("kinds", 248, lambda n: "".join(f"action {name} {{ }}" for name in NAMES[:n]) + schedule("ranks 1; " + LINEAR),
     "more than 256 kinds of actions"),
    ("kinds of IR", 248, lambda n: ir([], kinds=NAMES[:n]),
     "more than 256 kinds of actions"),
    ("nested brackets", 256, lambda n: f"fn f() = {'(' * n}1{')' * n};" + schedule("ranks 1; " + LINEAR),
     "more than 256 levels of nesting"),
    ("nested statements", 254, lambda n: schedule(
        "ranks 1; " + LINEAR, "on rank r { " + "if true { " * n + "F; B;" + " }" * n + "}"), "more than 256 levels of nesting"),
    ("nested JSON", 64, nested_json, "it has more than 64 levels of nesting"),
]


def run(text, *args):
    tool = [ppcc, "-", "--check", "--passes=verify"] if text.startswith("program") else [ppcc, "-", "--check"]
    return subprocess.run([*tool, *args], input=text, capture_output=True, text=True)


def expect(name, done, error):
    if done.returncode != (1 if error else 0) or error not in done.stderr:
        sys.exit(f"{name}: {done.stderr[:1000]}")


for name, most, make, error in LIMITS:
    expect(f"{most} {name}", run(make(most)), "")
    expect(f"{most + 1} {name}", run(make(most + 1)), error)

# Of bytes and errors.
text = schedule("ranks 1; " + LINEAR)
expect("all bytes", run(text, f"--max-source-bytes={len(text)}"), "")
expect("a byte too many", run(text, f"--max-source-bytes={len(text) - 1}"), "it is larger than")
two_wrong = f"schedule s() {{ ranks x + y; {LINEAR} {BODY} }}"
for most in 1, 2, 3:
    shown = run(two_wrong, f"--max-errors={most}").stderr
    if shown.count("unknown name") != min(most, 2) or ("stopped after" in shown) != (most < 2):
        sys.exit(f"--max-errors={most}: {shown}")
print(f"{len(LIMITS)} limits")
