#!/usr/bin/env python3
"""Compiles every schedule of the library with one model file and one cluster file in each form: all.py PPCC FOLDER."""
import json
import subprocess
import sys
from pathlib import Path

MODELS = ["llama", "t5", "vision_text", "megatron_moe", "deepseek_moe"]


def main():
    ppcc, folder = sys.argv[1], Path(sys.argv[2])

    def run(*words):
        done = subprocess.run([ppcc, *words], capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    sizes = ["-D", "P=4", "-D", "M=8", "-D", "layers=24", "-D", "gpu=1e12"]
    chosen = [*sizes, "--model", folder / "model.pp", "--cluster", folder / "cluster.pp"]
    names = [line.split()[0] for line in run("--list-schedules").splitlines()]
    for name in names:
        report = json.loads(run(name, *chosen, "--emit=report-json"))
        busy = sum(rank["busy"] for rank in report["ranks"])
        assert report["makespan"] > busy / 4 > 0, name
        assert "\nF forward" in run(name, *chosen, "--emit=timeline"), name
        program = json.loads(run(name, *chosen))
        assert "".join(program["layout"]) == "E" + 24 * "t" + "L", name
        assert "many" in run(name, *chosen, "--emit=cpp", "--cpp-symbol=many"), name
        for model in MODELS:
            run(name, *sizes, "--model", model, "--cluster", "ethernet", "--check")
    compared = run("compare", *names, *chosen, "--format=csv").splitlines()
    assert {line.split(",")[0] for line in compared} >= set(names), compared
    print(f"{len(names)} schedules, {len(MODELS) + 1} models: report, timeline, json, cpp; compared {len(names)}")


main()
