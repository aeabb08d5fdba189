#!/usr/bin/env python3
"""Compiles files of 1 kB that ask for as much as they can: each ends in time, within its memory, with a schedule or an error."""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# Twice the processor time that docs/limits.md says: a machine with other work takes longer.
SECONDS, BYTES = 20, 2_000_000_000


def schedule(head="", body="F; B;", ranks="1", microbatches="1", place="placement linear;", top=""):
    return f"{top}schedule s() {{ ranks {ranks}; microbatches {microbatches}; {place} {head} on rank r {{ {body} }} }}\n"


def all_of(count):
    return f"repeat {count} {{ F; }} repeat {count} {{ B; }}"


def exponential_chain(first, again, count):
    """Declarations of which each uses the one before it twice."""
    return first + "".join(again.format(i, i - 1) for i in range(1, count))


ALL_ON_RANK_0 = "stages {0}; stage s on rank 0;".format
PIPES = "schedule s() {{ ranks {0}; for i in 0 .. 256 {{ pipe p {{ {1} microbatches i .. i + 1; }} }} {2} on rank r {{ {3} }} }}".format
FUNCTIONS = exponential_chain("fn f0(x) = x;\n", "fn f{0}(x) = f{1}(x) + f{1}(x);\n", 22)
LISTS = exponential_chain("fn f0(x: int[]) = [x[i % len(x)] for i in 0 .. len(x) * 2];\n", "fn f{0}(x: int[]) = f{1}(f{1}(x));\n", 8)
RULE = "action R { after F; before B; }\nrule a() { insert R before B; }\n"
COPY = "action A { to rank (r + 1) % ranks for rank r; lane x; after F; }\n"
LONG = "let x = [i for i in 0 .. 1000000];"
CHUNKS = "for c in 0 .. 3000 { repeat 500 { F(c); } } for c in 0 .. 3000 { repeat 500 { I(2999 - c); } }"
CASES = {
    "brackets": "[" * 1000,
    "operators": schedule("let x = " + "-" * 250 + "1;"),
    "conditions": schedule("let x = " + "true ? 1 : " * 80 + "1;"),
    "name": schedule("let " + "a" * 900 + " = 1;"),
    "integer": schedule("let x = " + "9" * 900 + ";"),
    "float": schedule("let x = 1e" + "9" * 900 + ";"),
    "escapes": schedule('require true, "' + "\\x" * 400 + '";'),
    "many unknown names": schedule(body="".join(f"x{i};" for i in range(150))),
    "import of itself": 'import "small.pp";\n' + schedule(),
    "import of a device": 'import "/dev/zero";\n' + schedule(),
    "schedule of itself": "schedule a() { import a(); }",
    "functions": schedule("let y = f21(1);", top=FUNCTIONS),
    "functions in a default": FUNCTIONS + "schedule s(P: int >= f21(1) = f21(2)) { ranks 1; microbatches 1; placement linear; on rank r { F; B; } }",
    "functions in costs": schedule("model { cost F stage s = f21(s); }", ranks="60000", top=FUNCTIONS),
    "blocks": schedule(body="b24();", top=exponential_chain("block b0() { F; }\n", "block b{0}() {{ b{1}(); b{1}(); }}\n", 25)),
    "blocks of nothing": schedule(body="b24();", top=exponential_chain("block b0() { }\n", "block b{0}() {{ b{1}(); b{1}(); }}\n", 25)),
    "lists of lists": schedule("let y = f7([1]);", top=LISTS),
    "long list": schedule("let x = [i for i in 0 .. 1000000000];"),
    "list literals": schedule(body="repeat 10000000 { let y = [" + "1, " * 200 + "1]; if y[0] == 2 { } } F; B;"),
    "sums": schedule(LONG, body="repeat 1000000 { let y = sum(x); } F; B;"),
    "least of a list": schedule(LONG, body="repeat 1000000 { if min(x) == 0 { } } F; B;"),
    "sums in conditions of ranks": "schedule s() { ranks 1000000; microbatches 1; " + ALL_ON_RANK_0(1) + LONG + " on rank r where sum(x) == r { } }",
    "sums in a default": "schedule s(a: int[] = [i for i in 0 .. 5000000], c: int[] = [sum(a) for i in 0 .. 100000]) "
                         "{ ranks 1; microbatches 1; placement linear; on rank r { F; B; } }",
    "sums in a placement": schedule(LONG, place="stages 60000; stage s on rank sum(x) * 0;", body=""),
    "sums in rules": schedule(LONG + " insert R before B for microbatch m when sum(x) == m;", all_of(1000000), "1", "1000000", top=RULE),
    "loops": schedule(body="repeat 1000000 { repeat 1000000 { repeat 1000000 { } } }"),
    "loop over edges": schedule("for i in 0 .. 100000 { for j in 0 .. 100000 { } }"),
    "loop over pipes": "schedule s() { ranks 1; for i in 0 .. 1000000000 { pipe p { placement linear; microbatches i .. i + 1; } } on rank r { } }",
    "endless": schedule(body="while true { let x = 1; }"),
    "actions": schedule(body="repeat 9000000000000000000 { F; }"),
    "microbatches": schedule(microbatches="0 .. 4294967294", body=""),
    "padding": schedule(microbatches="1 pad 4000000000"),
    "ranks": schedule(ranks="9000000000000000000"),
    "ranks without work": schedule(ranks="1048576", place=ALL_ON_RANK_0(1), body="if r == 0 { F; B; }"),
    "stages": schedule(place=ALL_ON_RANK_0(9000000000000000000)),
    "pipes": PIPES(1, ALL_ON_RANK_0(65534), "", ""),
    "edges": schedule("for a in 0 .. 2890 { for b in a + 2 .. 2890 { edge stage a -> stage b; } }", ranks="2890"),
    "costs of pipes": PIPES(1, ALL_ON_RANK_0(60000), "model { cost F stage s = s; cost I stage s = s; memory F stage s = s; static stage s = s; }", ""),
    "links": schedule("for a in 0 .. 1000 { for b in a + 2 .. 1000 { edge stage a -> stage b; } } cluster { link a, b { latency = a + b; } }", "", "1000"),
    "scales": schedule("model { scale microbatch m = 1.0 + m; scale F microbatch m = 2.0; }", all_of(2000000), "1", "2000000"),
    "layout": schedule('model { layout "E|(tt|)*1000000000"; }'),
    "layout of nothing": schedule('model { layout "((((()*1000000)*1000000)*1000000)*1000000)"; }'),
    "layout in layouts": schedule('model { layout "' + "(" * 50 + "t" + ")*9" * 50 + '"; }'),
    "layers": schedule("model { layer t { cost F = 1; } layers (t * 1000000, t) * 1000000; }"),
    "layers by cost": schedule("model { layer a { cost F = 1; } layer b { cost F = 2; } layers (a * 7, b) * 90000 by cost; }", "", "60000"),
    "layers of pipes by cost": PIPES(1000, "placement linear;", "model { layer a { cost F = 1; } layers a * 1000000 by cost; }", ""),
    "cuts of pipes": "schedule s() { ranks 1; for i in 0 .. 250 { pipe p { stages i + 1; stage s on rank 0; microbatches i .. i + 1; } } "
                     "model { layer t { cost F = 1; } layers t * 1000000; } on rank r { } }",
    "graphs": schedule("model { layer t { F: a @ comp -> b @ comm; B: x @ comp; } layers t * 200000; }", "", "20000"),
    "patterns": schedule("model { layer t { F: a @ comp -> b @ comm; B: x @ comp -> y @ comm; } layers t * 100000; "
                         "overlap F, B { each t { F.a; B.x; F.b; B.y; } } }", "F; repeat 9 { overlap { F; B; } } B;", microbatches="10"),
    "tensors": schedule("model { output stage s = " + ", ".join(f"t{i}[1] f32" for i in range(40)) + "; }", "", "60000"),
    "sizes of tensors": schedule("model { output stage s = t[" + ", ".join(["9000000000000000000"] * 30) + "] f32; }", ranks="3"),
    "rules": schedule("with a; " * 8, all_of(1000000), "1", "1000000", top=RULE),
    "distant insertions": schedule("insert R before B by 100000;", all_of(300000), "1", "300000", top=RULE),
    "moves": schedule(body="repeat 1500 { F; A; } repeat 1500 { B; }", ranks="1000", microbatches="1500", top=COPY),
    "pending by chunk": schedule(body=CHUNKS + " for c in 0 .. 3000 { repeat 500 { W(c); } }", microbatches="500", place=ALL_ON_RANK_0(3000)),
    "pending by microbatch": schedule(body="repeat 500000 { F; } repeat 500000 { I; } for i in 0 .. 500000 { W(0, mb: 499999 - i); }", microbatches="500000"),
    "filled": schedule("cluster { limit = 1000; }", "defer W fill { repeat 1000 { F; B; } }", "2000", "1000"),
    "filled ranks without work": "schedule s() { ranks 1000000; microbatches 3000000; " + ALL_ON_RANK_0(1) +
                                 " on rank r { if r == 0 { defer W fill { repeat 3000000 { F; B; } } } } }",
    "many rules": schedule("with a; " * 100, all_of(100000), "1", "100000", top=RULE),
    "rules of ranks": schedule("insert R after B; " * 30, all_of(10), "60000", "10", top="action R { per rank; after B; }\n"),
    "filled chunks": schedule("cluster { limit = 6000; }", "defer W fill { for c in 0 .. 3000 { repeat 1000 { F(c); } } "
                              "for c in 0 .. 3000 { repeat 1000 { B(2999 - c); } } }", microbatches="1000", place=ALL_ON_RANK_0(3000)),
    "large group": schedule(body="overlap { repeat 1000000 { F; } } overlap { repeat 1000000 { B; } }", ranks="2", microbatches="1000000"),
}


def find_failure(ppcc, name, sanitized):
    """What is wrong with how a case ends, or None."""
    text = CASES[name]
    if len(text) > 1024:
        return f"{len(text)} bytes"

    def limit():
        seconds = SECONDS * (10 if sanitized else 1)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if not sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    environment = dict(os.environ)
    if sanitized:  # Which ends what takes more, by itself.
        environment["ASAN_OPTIONS"] = f"{environment.get('ASAN_OPTIONS', '')}:hard_rss_limit_mb={4 * BYTES // 1_000_000}"

    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/small.pp", "w", encoding="utf-8") as file:
            file.write(text)
        command = [ppcc, "small.pp", "--comm-order=none", "--check"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=limit, env=environment)
    if done.returncode not in (0, 1) or "out of memory" in done.stderr:
        return f"exit status {done.returncode}: {done.stderr[-300:]}"
    if done.returncode and not re.search(r"\berror: .*\[E\d{4}\]", done.stderr):
        return f"no error: {done.stderr}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ppcc", help="the compiler to test")
    parser.add_argument("names", nargs="*", help="the cases; all without any")
    parser.add_argument("--sanitized", action="store_true", help="allow ten times as long and four times as much: the sanitizers take that")
    options = parser.parse_args()
    names = options.names or list(CASES)
    with ThreadPoolExecutor(2) as pool:
        faults = list(pool.map(lambda name: find_failure(options.ppcc, name, options.sanitized), names))
    for name, wrong in zip(names, faults):
        if wrong:
            print(f"{name}: {wrong}")
    print(f"{len(names)} small files, {sum(map(bool, faults))} with faults")
    return any(faults)


if __name__ == "__main__":
    sys.exit(main())
