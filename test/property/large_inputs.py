#!/usr/bin/env python3
"""Gives each reader 1 MB of one thing: it ends in time, within its memory, with a result or an error."""

import argparse
import itertools
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

# Four times the processor time that docs/limits.md says: a machine with other work takes longer.
SECONDS, BYTES, SIZE = 40, 2_000_000_000, (1 << 20) - 1000


def many(item, head="", tail="", between=""):
    """Items until there is 1 MB; `#` is the number of each."""
    size, parts = len(head) + len(tail), []
    for i in itertools.count():
        part = item.replace("#", str(i))
        size += len(part) + len(between)
        if size > SIZE:
            return head + between.join(parts) + tail
        parts.append(part)


def nested(begin, end="", head="", tail=""):
    depth = (SIZE - len(head) - len(tail)) // len(begin + end)
    return head + begin * depth + end * depth + tail


SCHEDULE = "schedule s() { ranks 2; microbatches 2; placement linear;\n"
BODY = "on rank r { repeat 2 { F; } repeat 2 { B; } }"
RANK = SCHEDULE + "on rank r {\n"
PROGRAM = 'program {"ranks": 2, "pipes": [{"name": "p", "microbatches": [0, 2], "rank_of_stage": [0, 1], "skip_edges": []}]}\n'


def in_schedule(item, top=""):
    return many(item, top + SCHEDULE, BODY + "}", "\n")


def at_top(item):
    return many(item, "", "\n" + SCHEDULE + BODY + "}", "\n")


def in_rank(item, top=""):
    return many(item, top + RANK, "\n} }", "\n")


def in_expression(item, tail="1", between=""):
    return many(item, SCHEDULE + "let x = ", tail + "; " + BODY + "}", between)


def in_model(item):
    return many(item, SCHEDULE + "model {\n", "\n}\n" + BODY + "}", "\n")


def in_cluster(item):
    return many(item, SCHEDULE + "cluster {\n", "\n}\n" + BODY + "}", "\n")


def in_json(key, item):
    """In place of a list of a small program."""
    text = subprocess.run(["ppcc", "gpipe", "-DP=2", "-DM=2"], capture_output=True, text=True, check=True).stdout
    head, tail = json.dumps({**json.loads(text), key: ["here"]}).split('"here"')
    return many(item, head, tail, ",")


SCHEDULES = {
    "brackets": nested("("),
    "brackets around a value": nested("(", ")", SCHEDULE + "let x = ", ";" + BODY + "}"),
    "lists in lists": nested("[", "]", SCHEDULE + "let x = ", ";" + BODY + "}"),
    "ifs in ifs": nested("if true {", "}", RANK, "}}"),
    "braces": nested("{"),
    "closing braces": nested("}"),
    "words": many("word "),
    "one word": "x" * SIZE,
    "digits": many("9", SCHEDULE + "let x = ", "; }"),
    "float": many("9", SCHEDULE + "let x = 0.", "; }"),
    "exponent": many("9", SCHEDULE + "let x = 1e", "; }"),
    "comment": "//" + "x" * SIZE,
    "comments": many("// #\n"),
    "spaces": " " * SIZE,
    "lines": "\n" * SIZE,
    "carriage returns": "\r" * SIZE,
    "string": many("x", 'import "', '";'),
    "escapes": many("\\\\", SCHEDULE + 'require true, "', '"; }'),
    "open strings": many('"x\n'),
    "zero bytes": "\0" * SIZE,
    "letters of other languages": "ж" * (SIZE // 2),
    "symbols": "@#$~" * (SIZE // 4),
    "semicolons": ";" * SIZE,
    "sums": in_expression("1+"),
    "negations": in_expression("-"),
    "nots": in_expression("not ", "true"),
    "conditions": in_expression("true ? 1 : "),
    "conditions in conditions": in_expression("true ? ", "1"),
    "comparisons": in_expression("1 < "),
    "elements": in_expression("#", "]", ",").replace("let x = ", "let x = [", 1),
    "indices": in_expression("[0]", "").replace("let x = ", "let x = [1]", 1),
    "arguments": in_expression("1", ")", ",").replace("let x = ", "let x = min(", 1),
    "calls": nested("min(1,", ")", SCHEDULE + "let x = ", "; }"),
    "names": in_schedule("let x# = #;"),
    "names that read each other": in_schedule("let x# = x0 + x#;"),
    "unknown names": in_rank("x#;"),
    "unknown values": in_schedule("let x# = y#;"),
    "one name": in_schedule("let x = 1;"),
    "requirements": in_schedule("require true;"),
    "counts of ranks": in_schedule("ranks 2;"),
    "pipes": in_schedule("pipe p# { placement linear; microbatches #; }"),
    "edges": in_schedule("edge stage 0 -> stage #;"),
    "loops": in_schedule("for i in 0 .. 2 { }"),
    "rank bodies": in_schedule("on rank r { }"),
    "ranks of bodies": in_schedule("on rank # { F; B; }"),
    "communication": in_schedule("comm { order late; }"),
    "insertions": in_schedule("insert R after B;", "action R { }\n"),
    "rules applied": in_schedule("with a;", "action R { }\nrule a() { insert R after B; }\n"),
    "models": in_schedule("model { }"),
    "schedules imported": in_schedule("import t();", "schedule t() { }\n"),
    "functions": at_top("fn f#(x) = x;"),
    "functions that call": at_top("fn f#(x) = f0(x);"),
    "parameters": many("x#: int = #", "schedule s(", ") { ranks 1; }", ", "),
    "blocks": at_top("block b#() { F; }"),
    "declared actions": at_top("action A# { after F; }"),
    "one declared action": at_top("action A { after F; }"),
    "properties": many("after F;\n", "action A {", "}"),
    "rules": at_top("rule a#() { insert F after B; }"),
    "placements": at_top("placement p# { stages 1; }"),
    "named models": at_top("model m#() { cost F = #; }"),
    "clusters": at_top("cluster c#() { latency = #; }"),
    "schedules": at_top("schedule t#() { ranks 1; }"),
    "imports": at_top('import "std.pp";'),
    "imports of nothing": at_top('import "none#.pp";'),
    "actions": in_rank("F;"),
    "microbatches": in_rank("F(mb: #);"),
    "phases": in_rank("phase p# { F; }"),
    "groups": in_rank("overlap { F; }"),
    "ifs": in_rank("if r == # { F; }"),
    "else ifs": many("else if r == # { F; }\n", RANK + "if false { }", "} }"),
    "repeats": in_rank("repeat 1 { F; }"),
    "whiles": in_rank("while false { F; }"),
    "deferred": in_rank("defer W { F; }"),
    "filled": in_rank("defer W fill { }"),
    "drained": in_rank("drain W;"),
    "values": in_rank("let x# = r;"),
    "calls of blocks": in_rank("b();", "block b() { F; }\n"),
    "costs": in_model("cost F stage s = #;"),
    "costs of nodes": in_model("cost F.n# = #;"),
    "layers": in_model("layer l# { cost F = #; }"),
    "layers in a row": many("l", SCHEDULE + "model { layer l { cost F = 1; } layers ", "; }" + BODY + "}", ","),
    "a layout": many("l", SCHEDULE + 'model { layer l { cost F = 1; } layout "', '"; }' + BODY + "}", "|"),
    "a layout in a layout": nested("(", ")*2", SCHEDULE + 'model { layer l { cost F = 1; } layout "', '"; }' + BODY + "}"),
    "nodes": many("n#", SCHEDULE + "model { F: ", "; }" + BODY + "}", " -> "),
    "tensors": many("t#[1] f32", SCHEDULE + "model { output stage s = ", "; }" + BODY + "}", ", "),
    "sizes": many("2", SCHEDULE + "model { output stage s = t[", "] f32; }" + BODY + "}", ", "),
    "sections": nested("layer l {", "}", SCHEDULE + "model {", "}" + BODY + "}"),
    "settings of models": in_model("x# = #;"),
    "links": in_cluster("latency stage s = #;"),
    "topologies": in_cluster("link a, b { latency = #; }"),
}
PROGRAMS = {
    "words": many("word "),
    "braces": nested("{"),
    "ranks": many("rank # { }\n", PROGRAM),
    "one rank": many("rank 0 { }\n", PROGRAM),
    "rows": many("0F0 ", PROGRAM + "rank 0 { ", "}"),
    "rows of many microbatches": many("0F# ", PROGRAM + "rank 0 { ", "}"),
    "groups": many("(0F0 0B0) ", PROGRAM + "rank 0 { ", "}"),
    "phases": many('phase "#"\n', PROGRAM + "rank 0 { ", "}"),
    "loops": many("loop 2 advance 1 { 0F0 }\n", PROGRAM + "rank 0 {\n", "}"),
    "loops in loops": nested("loop 2 advance 1 {\n", "}\n", PROGRAM + "rank 0 {\n", "}"),
    "many turns": many("loop 4000000000 advance 1 { 0F0 }\n", PROGRAM + "rank 0 {\n", "}"),
}
JSON = {
    "lists": nested("["),
    "objects": nested('{"a":'),
    "objects around nothing": nested('{"a":', "}", '{"families": ', "}"),
    "keys": many('"k#": #', "{", "}", ",\n"),
    "one key": many('"ranks": #', "{", "}", ",\n"),
    "digits": many("9", '{"ranks": ', "}"),
    "string": many("x", '{"schedule": "', '"}'),
    "escapes": many("\\u0000", '{"schedule": "', '"}'),
    "spaces": "{" + " " * SIZE + "}",
    "rows": in_json("actions", "[[0,0,0,0,-1,0,-1,0]]"),
    "rows of a rank": many("[0,0,0,#,-1,0,-1,0]", '{"actions": [[', "]]}", ","),
    "kinds": in_json("kinds", '{"mnemonic": "A#", "class": "declared"}'),
    "pipes": in_json("pipes", '{"name": "p#", "microbatches": [#,#], "rank_of_stage": [0]}'),
    "sites": in_json("sites", "[0,#,#,0]"),
    "phases": in_json("phases", '"#"'),
    "files": in_json("files", '"#"'),
    "columns": in_json("columns", '"#"'),
    "connections": in_json("preconnect", "[0,#]"),
}
LISTS = {
    "one line": many("0F0", between=","),
    "many microbatches": many("0F#", between=","),
    "many stages": many("#F0", between=","),
    "lines": many("0F0\n"),
    "empty lines": "\n" * SIZE,
    "commas": "," * SIZE,
    "one cell": "0F" + "9" * SIZE,
    "other cells": many("x#", between=","),
    "quotes": '"' * SIZE,
}
COSTS = {
    "list": many("1", '{"cost": {"F": [', "]}}", ","),
    "kinds": many('"A#": 1', '{"cost": {', "}}", ","),
    "digits": many("9", '{"latency": ', "}"),
    "decimals": many("9", '{"latency": 0.', "}"),
    "exponent": many("9", '{"latency": 1e', "}"),
    "lists": nested("["),
    "nodes": many('"F.n#": 1', '{"cost": {', "}}", ","),
    "links": many("[0,1,#]", '{"link": [', "]}", ","),
}


def commands():
    """What is run, by the name of a case: the files of 1 MB, and the arguments."""
    for name, text in SCHEDULES.items():
        yield f"schedule of {name}", text, ["ppcc", "large", "--check"]
    for name in ("brackets around a value", "words", "one word", "sums", "names", "comments", "open strings", "actions", "phases", "spaces"):
        yield f"style of {name}", SCHEDULES[name], ["ppcc", "fmt", "--check", "large"]
    for name in ("names", "ifs", "costs", "actions", "phases", "layers", "functions"):
        yield f"proof of {name}", SCHEDULES[name].replace("schedule s()", "schedule s(M: int = 2)").replace("microbatches 2", "microbatches M"), ["ppcc", "prove", "large"]
    for name, text in PROGRAMS.items():
        yield f"program of {name}", text, ["ppcc", "large", "--from=ir", "--passes=verify", "--emit=ir", "-o", "out"]
    for name, text in JSON.items():
        yield f"JSON of {name}", text, ["ppcc", "large", "--from=json", "--check"]
        yield f"certificate of {name}", text, ["ppcc-check-proof", "large"]
    for name, text in LISTS.items():
        for form in ("csv", "actions"):
            yield f"{form} of {name}", text, ["ppcc", "large", f"--from={form}", "--check"]
        yield f"decompiled {name}", text, ["ppcc", "decompile", "--from=csv", "large"]
    for name, text in COSTS.items():
        yield f"costs of {name}", text, ["ppcc", "gpipe", "-DP=2", "-DM=2", "--costs=large", "--emit=report"]


def find_failure(text, command, sanitized):
    """What is wrong with how a case ends, or None."""
    def limit():
        seconds = SECONDS * (10 if sanitized else 1)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if not sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    environment = dict(os.environ)
    if sanitized:  # Which ends what takes more, by itself.
        environment["ASAN_OPTIONS"] = f"{environment.get('ASAN_OPTIONS', '')}:hard_rss_limit_mb={4 * BYTES // 1_000_000}"
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "large").write_text(text)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", preexec_fn=limit, env=environment)
    if done.returncode not in (0, 1) or "out of memory" in done.stderr:
        return f"exit status {done.returncode}: {done.stderr[-300:]}"
    if command[1] not in ("fmt", "prove") and done.returncode and not re.search(r"\berror: ", done.stderr):
        return f"no error: {done.stdout[-300:]}"
    return None


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sanitized", action="store_true", help="allow ten times as long and four times as much: the sanitizers take that")
    parser.add_argument("--times", action="store_true", help="say how long each takes")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th case")
    parser.add_argument("--match", default="", help="only the cases whose name this regular expression finds")
    options = parser.parse_args()
    count = faults = 0
    for name, text, command in itertools.islice(commands(), 0, None, options.every):
        if not re.search(options.match, name):
            continue
        assert SIZE - 2000 < len(text.encode()) <= 1 << 20, (name, len(text.encode()))
        begin = processor_seconds()
        wrong = find_failure(text, command, options.sanitized)
        count += 1
        if options.times:
            print(f"{processor_seconds() - begin:7.2f} s  {name}", flush=True)
        if wrong:
            faults += 1
            print(f"{name}: {wrong}")
    print(f"{count} inputs of 1 MB, {faults} with faults")
    return faults != 0


if __name__ == "__main__":
    sys.exit(main())
