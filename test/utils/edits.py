#!/usr/bin/env python3
"""Makes each edit that diagnostics suggest, of all schedules of some folders, and checks that it fixes them.

Usage: edits.py PPCC FOLDER..."""
import collections
import json
import re
import subprocess
import sys
from pathlib import Path

ppcc, *folders = sys.argv[1:]


def diagnostics(text, folder):
    command = [ppcc, "check", "-", "--max-errors=1000", "--diagnostics-format=json"]
    run = subprocess.run(command, input=text, capture_output=True, cwd=folder, timeout=100)
    return [json.loads(line) for line in run.stderr.splitlines() if line.startswith(b"{")]


def offset(text, line, column):
    return sum(map(len, text.split(b"\n")[: line - 1])) + line - 1 + column - 1


def key(one):
    return one["code"], one["message"]


def syntax_errors(found):
    return sum(one["code"].startswith("E02") for one in found)


edits, wrong = collections.Counter(), 0
for path in sorted(path for folder in folders for path in Path(folder).rglob("*.pp")):
    text = path.read_bytes()
    before = diagnostics(text, path.parent)
    for one in before:
        for edit in one.get("edits", []):
            if {edit["file"], one["file"]} != {"<stdin>"}:
                continue
            begin, end = offset(text, edit["line"], edit["column"]), offset(text, edit["end_line"], edit["end_column"])
            after = diagnostics(text[:begin] + edit["replacement"].encode() + text[end:], path.parent)
            edits[re.sub("`.*", "", edit["title"]).strip()] += 1
            same = collections.Counter(map(key, after))[key(one)] >= collections.Counter(map(key, before))[key(one)]
            if same or syntax_errors(after) > syntax_errors(before):
                wrong += 1
                print(f"{path}:{one['line']}:{one['column']}: still {one['code']} {one['message']} after: {edit['title']}")
print(dict(sorted(edits.items())), file=sys.stderr)
for title in ["Import", "Insert", "Remove", "Replace with"]:
    assert edits[title], f"no edit of this kind: {title}"
print(f"{wrong} edits do not fix what they are for")
