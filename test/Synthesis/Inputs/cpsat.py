"""Compares what `ppcc synthesize` finds for small random problems with the optimum that CP-SAT proves, and both with the bound
and its certificate.

Usage: cpsat.py PPCC FOLDER PROBLEMS [SECONDS]
"""
import json
import random
import subprocess
import sys
from pathlib import Path

from ortools.sat.python import cp_model
from small_problems import options_of, problem


def optimum(rank_of, microbatches, times, latency, memory, limits, fused, horizon, seconds):
    """The least makespan as CP-SAT knows it, and whether it is proven. Microbatches are alike, so they keep one order."""
    model = cp_model.CpModel()
    parts = "FI" if fused else "FIW"
    start, on_rank, held = {}, {}, {}
    for s, rank in enumerate(rank_of):
        for m in range(microbatches):
            for p, part in enumerate(parts):
                at = start[part, s, m] = model.NewIntVar(0, horizon, "")
                on_rank.setdefault(rank, []).append(model.NewIntervalVar(at, times[s][p], at + times[s][p], ""))
                if m:
                    model.Add(at >= start[part, s, m - 1] + times[s][p])
    for intervals in on_rank.values():
        model.AddNoOverlap(intervals)

    def hold(s, begin, end, amount):
        length = model.NewIntVar(0, horizon, "")
        held.setdefault(rank_of[s], []).append((model.NewIntervalVar(begin, length, end, ""), amount))

    for s, rank in enumerate(rank_of):
        for m in range(microbatches):
            forward, gradient = start["F", s, m], start["I", s, m]
            model.Add(gradient >= forward + times[s][0])
            if s:
                edge_latency = latency if rank_of[s - 1] != rank else 0
                model.Add(forward >= start["F", s - 1, m] + times[s - 1][0] + edge_latency)
                model.Add(start["I", s - 1, m] >= gradient + times[s][1] + edge_latency)
            hold(s, forward, gradient + times[s][1], memory[0])
            if not fused:
                weight = start["W", s, m]
                model.Add(weight >= gradient + times[s][1])
                hold(s, gradient + times[s][1], weight + times[s][2], memory[1])
    for rank, parts_held in held.items():
        model.AddCumulative([one for one, _ in parts_held], [amount for _, amount in parts_held], limits[rank])
    makespan = model.NewIntVar(0, horizon, "")
    for s in range(len(rank_of)):
        model.Add(makespan >= start[parts[-1], s, microbatches - 1] + times[s][len(parts) - 1])
    model.Minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.Solve(model)
    known = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return (round(solver.ObjectiveValue()) if known else None), status == cp_model.OPTIMAL


def main():
    ppcc, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 10
    rng, optimal, certified, agreed = random.Random(1), 0, 0, 0
    for _ in range(count):
        placement, rank_of, microbatches, times, latency, memory, limits, fused = problem(rng)
        costs, options = options_of(placement, rank_of, microbatches, times, latency, memory, limits, fused)
        (folder / "costs.json").write_text(json.dumps(costs))
        found = json.loads(
            subprocess.run(
                [ppcc, "synthesize", *options, f"--costs={folder / 'costs.json'}", "--comm-order=none", "--format=json",
                 f"--certificate={folder / 'proof.json'}"],
                capture_output=True, text=True, check=True,
            ).stdout
        )
        best, proven = optimum(
            rank_of, microbatches, times, latency, memory, limits, fused, round(found["makespan"]) + 1, seconds
        )
        assert found["bound"] <= found["makespan"]
        assert best is None or found["bound"] <= best, (placement, costs, found, best)
        assert best is None or found["makespan"] <= best, (placement, costs, found["makespan"], best)
        shown = subprocess.run([f"{ppcc}-check-proof", folder / "proof.json"], capture_output=True, text=True, check=True).stdout
        proof = json.loads((folder / "proof.json").read_text())
        for key in ("makespan", "bound"):
            assert proof[key] * float(proof["time_unit"]) == found[key] and f"\n{key} {proof[key]}" in shown, (key, shown, found)
        certified += shown.endswith("is optimal\n")
        optimal += found["optimal"]
        agreed += proven
    print(f"{count} of {count} equal, {optimal} told to be optimal, {certified} certified, {agreed} proven by CP-SAT")


main()
