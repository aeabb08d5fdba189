"""Reads a CSV as torch.distributed.pipelining does, by the form of its cells."""

import csv
import re
import sys

KINDS = ("WAIT_REDUCE_GRAD|WAIT_SEND_F|WAIT_SEND_B|REDUCE_GRAD|UNSHARD|RESHARD|SEND_F|RECV_F|SEND_B|RECV_B"
         "|F|I|B|W")
ACTION = re.compile(rf"(\d+)({KINDS})(\d*)")


def check(cell):
    if cell.startswith("("):
        members, kind = cell[1:].split(")")
        assert kind == "OVERLAP_F_B", cell
        assert [check(member) for member in members.split(";")] == ["F", "B"], cell
        return kind
    match = ACTION.fullmatch(cell)
    assert match, cell
    assert (match[3] == "") == match[2].endswith("REDUCE_GRAD"), cell
    return match[2]


with open(sys.argv[1], newline="") as file:
    rows = list(csv.reader(file))
for row in rows:
    for cell in row:
        check(cell)
print(f"{len(rows)} rows, {sum(map(len, rows))} cells")
