"""Checks that the figures of reports fit together. Usage: report.py FILE..."""
import json
import sys
from decimal import Decimal

for name in sys.argv[1:]:
    with open(name) as file:
        report = json.load(file, parse_float=Decimal, parse_int=Decimal)
    assert report["format"] == "ppcc.report" and report["version"] == 1
    makespan, ranks = report["makespan"], report["ranks"]
    assert report["resource_bound"] <= report["bound"] <= makespan and report["why"]
    assert abs(report["gap"] * report["resource_bound"] - (makespan - report["resource_bound"])) < Decimal("1e-6")
    work = sum(rank["busy"] for rank in ranks) / len(ranks)
    longest = max(rank["span"] for rank in ranks)
    assert abs(report["bubble_rate"] - (longest - work) / longest) < Decimal("1e-9")
    assert abs(report["global_bubble_rate"] - (makespan - work) / makespan) < Decimal("1e-9")
    for number, rank in enumerate(ranks):
        assert rank["rank"] == number
        assert rank["span"] == rank["end"] - rank["begin"] and rank["idle"] == rank["span"] - rank["busy"]
        assert rank["busy"] + sum(bubble["time"] for bubble in rank["bubbles"]) == makespan
        assert all(bubble["waits_for"] != f"rank {number}" for bubble in rank["bubbles"])
        held = sum(part["memory"] for part in rank["peak_held"])
        assert rank["static_memory"] + held == rank["peak_memory"], (number, held)
        assert sum(part["microbatches"] for part in rank["peak_held"]) <= rank["peak_activations"]
    path = report["critical_path"]
    assert path[0]["begin"] == 0 and path[-1]["end"] == makespan
    assert all(one["end"] == other["begin"] for one, other in zip(path, path[1:]))
    assert sum(rank["actions"] for rank in ranks) == report["actions"]
    assert sum(rank["sends"] for rank in ranks) == report["messages"]
    print(f"{report['schedule']} on {report['transport']}: {report['actions']} actions")
