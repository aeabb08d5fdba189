#!/usr/bin/env python3
"""Compares reports with the tables of the zero-bubble paper, and with closed forms (see README.md)."""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
from fractions import Fraction

HERE = pathlib.Path(__file__).resolve().parent
SCHEDULES = {"1F1B": "one_f_one_b", "ZB-H1": "zb_h1", "ZB-H2": "zb_h2"}


def report(ppcc, schedule, params, costs):
    """The report of a run with costs as exact decimals."""
    command = [ppcc, schedule, "--comm-order=none", "--emit=report-json",
               *(f"-D{name}={value}" for name, value in params.items()),
               *(f"--cost={name}={value}" for name, value in costs.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout, parse_float=Fraction, parse_int=Fraction)


def rows(table):
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def check_tables(ppcc, paper):
    """The rates of the tables, to four digits. A full backward takes what its parts take."""
    agreed, wrong = 0, []
    for times, rates in zip(rows(paper["times"]), rows(paper["bubble_rates"])):
        params = {"P": times["p"], "M": times["m"]}
        costs = {"F": times["T_F"], "I": times["T_B"], "W": times["T_W"], "latency": times["T_comm"]}
        for name, schedule in SCHEDULES.items():
            got = report(ppcc, schedule, params, costs)["bubble_rate"]
            if f"{float(got):.4f}" == f"{rates[name]:.4f}":
                agreed += 1
            else:
                wrong.append(f"{name} of {times['model']}, {params}: expected {rates[name]}, got {float(got)}")
    print(f"tables: {agreed} rates agree")
    return wrong


# Costs as (F, I, W, overlap); equal ones where the form is exact for these alone.
COSTS = [(1, 1, 1, 2), (2, 3, 1, 5), (3, 4, 2, 7)]
EQUAL = [(1, 1, 1, 3), (2, 2, 2, 5), (3, 3, 3, 7)]


def one_f_one_b(P, M, F, B, W, overlap):
    return {"makespan": (M + P - 1) * (F + B), "peak": [min(P - r, M) for r in range(P)]}


def interleaved(P, M, V, G, F, B, W, overlap):
    warmups = [min((P - r - 1) * 2 + (V - 1) * P, M * V) for r in range(P)]
    return {"makespan": (M * V + P - 1) * (F + B), "peak": [min(w + 1, M * V) for w in warmups]}


def zb1p(P, M, V, F, B, W, overlap):
    return {"makespan": M * (F + B) + (P - 1) * (F + B - 2 * W)}


def one_f_one_b_overlap(P, M, F, B, W, overlap):
    return {"makespan": P * (F + B) + (M - 1) * overlap}


def dualpipe(P, M, F, B, W, overlap):
    return {"bubble": (P // 2 - 1) * (overlap + B - 3 * W), "peak": [P + 1] * P}


def dualpipe_v(P, M, F, B, W, overlap):
    return {"bubble": (P - 1) * (overlap + B - 3 * W), "peak": [2 * P + 1] * P}


def sizes(**ranges):
    return [dict(zip(ranges, values)) for values in itertools.product(*ranges.values())]


FORMS = [
    ("one_f_one_b", one_f_one_b, sizes(P=[1, 2, 3, 4, 8], M=[1, 2, 5, 16]), COSTS),
    ("interleaved_1f1b", interleaved,
     [{"P": P, "M": P * k, "V": V, "G": P} for P in [2, 3, 4] for V in [2, 3] for k in range(1, 5)], COSTS),
    ("zb1p", zb1p, [{"P": P, "M": P * k + 1, "V": 1} for P in [2, 3, 4, 6, 8] for k in range(2, 6)], COSTS),
    ("one_f_one_b_overlap", one_f_one_b_overlap, sizes(P=[2, 3, 4, 6], M=[8, 12, 13, 16, 24]), COSTS),
    ("dualpipe", dualpipe, [{"P": P, "M": 2 * P + 2 * k} for P in [2, 4, 6, 8, 10] for k in range(4)], EQUAL),
    ("dualpipe_v", dualpipe_v, [{"P": P, "M": 2 * P + k} for P in [2, 3, 4, 5, 6] for k in range(4)], EQUAL),
]


def check_form(ppcc, name, form, params, costs):
    F, I, W, overlap = costs
    expected = form(**params, F=F, B=I + W, W=W, overlap=overlap)
    got = report(ppcc, name, params, {"F": F, "I": I, "W": W, "overlap": overlap})
    found = {"makespan": got["makespan"], "peak": [rank["peak_activations"] for rank in got["ranks"]],
             "bubble": max(got["makespan"] - rank["busy"] for rank in got["ranks"])}
    return [f"{name} {params}, F, I, W, overlap = {costs}: {key}: expected {value}, got {found[key]}"
            for key, value in expected.items() if found[key] != value]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ppcc", help="the compiler to test")
    options = parser.parse_args()

    wrong = check_tables(options.ppcc, json.loads((HERE / "paper.json").read_text()))
    for name, form, params, costs in FORMS:
        found = [check_form(options.ppcc, name, form, size, costs[i % len(costs)]) for i, size in enumerate(params)]
        print(f"{name}: {sum(not texts for texts in found)} sizes agree")
        wrong += [text for texts in found for text in texts]
        if len(params) < 20:
            wrong.append(f"{name}: only {len(params)} sizes")
    for text in wrong:
        print(text)
    print(f"{len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
