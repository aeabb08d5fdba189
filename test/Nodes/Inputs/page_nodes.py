"""Prints the nodes of the first run of a page. Usage: page_nodes.py PAGE"""
import base64
import json
import re
import struct
import sys

run = json.loads(re.search(r'<script type="application/json">(\{.*?)</script>', open(sys.argv[1]).read(), re.S)[1])
TYPES = {"kind": "B", "lane": "B", "start": "d", "end": "d"}


def column(name):
    data = base64.b64decode(run["nodes"][name])
    kind = TYPES.get(name, "I")
    return struct.unpack(f"<{len(data) // struct.calcsize(kind)}{kind}", data)


print("rows", *run["rowStarts"])
print("order", *(-1 if order == 0xFFFFFFFF else order for order in column("order")))
print("begin", *column("begin"))
for node in zip(*map(column, ["member", "kind", "lane", "name", "layer", "start", "end"])):
    print("node", *(f"{value:g}" for value in node))
