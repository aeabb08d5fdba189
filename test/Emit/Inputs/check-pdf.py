#!/usr/bin/env python3
"""Reads what ppcc writes as PDF: each object lies where the table says, each stream is as long as it says, each fill that is used
is there. Prints the size of the page, the title, the fills and the texts. Usage: check-pdf.py FILE"""
import re
import sys
from pathlib import Path

data = Path(sys.argv[1]).read_bytes()
assert data.startswith(b"%PDF-1.4\n") and data.endswith(b"%%EOF\n")
start = int(re.search(rb"startxref\n(\d+)\n", data)[1])
count, places = re.match(rb"xref\n0 (\d+)\n((?:\d{10} \d{5} [nf] \n)+)", data[start:]).groups()
lines = places.splitlines()
assert len(lines) == int(count)
objects = {}
for number, line in enumerate(lines[1:], 1):
    at = int(line[:10])
    head = b"%d 0 obj\n" % number
    assert data[at:at + len(head)] == head, (number, data[at:at + 20])
    objects[number] = data[at + len(head):data.index(b"\nendobj\n", at)]
for body in objects.values():
    if length := re.match(rb"<<.*?/Length (\d+)>>\nstream\n", body, re.S):
        assert body[length.end() + int(length[1]):] == b"\nendstream"
page, content = objects[3], objects[4]
box = re.search(rb"/MediaBox\[0 0 ([\d.]+) ([\d.]+)\]", page)
fills = dict(re.findall(rb"/k(\d+) (\d+) 0 R", page))
used = set(re.findall(rb"/k(\d+) scn", content))
assert used <= set(fills), used
assert all(b"/PatternType 1" in objects[int(number)] for number in fills.values())
text = lambda literal: re.sub(rb"\\(.)", rb"\1", literal).decode("latin-1")
print(f"page {box[1].decode()} x {box[2].decode()}")
print("title", text(re.search(rb"/Title\((.*)\)/Creator", objects[6])[1]))
print("fills", len(used))
print("dotted", sum(b" 1.4 1.4 re f" in objects[int(fills[name])] for name in used))
for literal in re.findall(rb"\((.*)\) Tj", content):
    print("text", text(literal))
