"""Reads PyTorch's own lowering, which moves parameters too. Usage: lowered.py PPCC pytorch.jsonl"""
import json
import subprocess
import sys

count = 0
for line in open(sys.argv[2]):
    case = json.loads(line)
    text = "".join(row.replace(" ", ",") + "\r\n" for row in case["lowered"])
    done = subprocess.run([sys.argv[1], "-", "--emit=actions"], input=text, capture_output=True, text=True)
    kept = [[cell for cell in row.split() if not cell.endswith(("SHARD", "REDUCE_GRAD"))] for row in case["lowered"]]
    wanted = "".join(f"rank {rank}: {' '.join(cells)}\n" for rank, cells in enumerate(kept))
    assert done.returncode == 0 and done.stdout == wanted, f"{case['id']}: {done.stderr}"
    assert "[E0656]" in done.stderr, f"{case['id']}: no warning that UNSHARD and RESHARD are left out"
    count += 1
print(f"{count} read")
assert count > 0
