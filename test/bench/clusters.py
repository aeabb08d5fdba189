#!/usr/bin/env python3
"""Schedules of the library and synthesized orders where links between nodes are slower than inside, and ranks in other places.

A table in Markdown of docs/synthesis.md: 32 ranks on 4 nodes, F, I and W of 1, messages of 0.05 inside a node and of 0.5 between two. Ranks stand on the nodes one after
another (`in order`), or dealt out to them (`dealt`: neighbours are on different nodes). Makespans by data alone.

    python3 test/bench/clusters.py build/bin
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

RANKS, NODES, MICROBATCHES, INSIDE, BETWEEN = 32, 4, 64, 0.05, 0.5
LIBRARY = {"one_f_one_b": ("linear", ["--fused-backward"]), "zb_h1": ("linear", []), "interleaved_1f1b": ("loop:2", ["--fused-backward"]), "zero_bubble_v": ("v", [])}


def node_of(rank, places):
    return rank * NODES // RANKS if places == "in order" else rank % NODES


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=Path)
    ppcc = parser.parse_args().bin / "ppcc"
    size = ["-D", f"P={RANKS}", "-D", f"M={MICROBATCHES}"]
    print("| schedule | ranks | its makespan | the best order for its memory | less | bound |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (placement, backward) in LIBRARY.items():
            for places in ("in order", "dealt"):
                pairs = [(a, b) for a in range(RANKS) for b in range(RANKS) if a != b]
                latency = {f"{a}-{b}": INSIDE if node_of(a, places) == node_of(b, places) else BETWEEN for a, b in pairs}
                costs = Path(folder, "costs.json")
                costs.write_text(json.dumps({"latency": latency}))

                def run(*words):
                    return subprocess.run([ppcc, *words, "--comm-order=none"], check=True, capture_output=True, text=True).stdout

                report = json.loads(run("report", name, *size, "--costs", costs, "--format=json"))
                limits = Path(folder, "limits.json")
                limits.write_text(json.dumps({"limit": [rank["peak_memory"] for rank in report["ranks"]]}))
                found = json.loads(run("synthesize", f"--placement={placement}", *size, "--costs", costs, "--costs", limits, *backward, "--format=json"))
                before, after = report["makespan"], found["makespan"]
                print(f"| `{name}` | {places} | {before:g} | {after:g} | {1 - after / before:.1%} | {found['bound']:g} |", flush=True)


if __name__ == "__main__":
    main()
