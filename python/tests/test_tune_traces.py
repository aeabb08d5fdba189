"""The program ppcc-tune, on traces of simulated runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import ppcc
import pytest
from ppcc import tune
from ppcc._choose import without_costs

COSTS = {"cost": {"F": [10, 14, 10, 24], "I": [0.5, 16, 12, 12], "W": [22, 14, 8, 10]}, "latency": [1, 1, 1, 0]}
P, M = 4, 8


def events_of(program: ppcc.Program, costs: Path, steps: int = 1) -> list[list[dict[str, Any]]]:
    """The events of each rank in steps that follow each other."""
    document = json.loads(program.emit("trace", f"--costs={costs}"))
    found: list[list[dict[str, Any]]] = [[] for _ in range(P)]
    length = max(event["ts"] + event["dur"] for event in document["traceEvents"] if event["ph"] == "X")
    for step in range(steps):
        for event in document["traceEvents"]:
            if event["ph"] == "X":
                found[event["pid"]].append(event | {"ts": event["ts"] + step * length})
    return found


@pytest.fixture
def costs(tmp_path: Path) -> Path:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(COSTS))
    return path


def write(folder: Path, ranks: list[list[dict[str, Any]]]) -> list[str]:
    paths = []
    for rank, events in enumerate(ranks):
        paths.append(str(folder / f"rank{rank}.json"))
        Path(paths[-1]).write_text(json.dumps({"traceEvents": events}))
    return paths


def test_the_order_that_ran_and_a_better_one(costs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = ppcc.compile("zb_h1", P=P, M=M)
    paths = write(tmp_path, events_of(program, costs, 3))
    run = tune.read_traces(paths[::-1])
    assert [[str(action) for action in own if action.kind.is_compute] for own in run.program.actions] == [
        [str(action) for action in own if action.kind.is_compute] for own in program.actions
    ]
    assert run.steps == 3 and len(run.profile.times["F"][0]) == 2 * M  # The first step is left out.
    assert run.step == pytest.approx(program.simulate(costs).makespan, abs=1e-6)

    output, model, page = (str(tmp_path / name) for name in ("tuned.json", "measured.pp", "run.html"))
    assert tune.main([*paths, "--limit=6", "-o", output, "--model", model, "--page", page]) == 0
    text = capsys.readouterr().out
    assert text.startswith("order        synthesized: ") and "prediction   of the order that ran: +0.0 % off" in text and "traces       4 ranks, 4 stages, 8 microbatches, 3 steps" in text
    found = ppcc.Program.load(output)
    assert found.simulate(costs).makespan < program.simulate(costs).makespan and found.simulate().peak_memory <= 6
    same = ppcc.compile("zb_h1", P=P, M=M, model=model, cluster=model).simulate()
    assert same.makespan == ppcc.compile("zb_h1", P=P, M=M, costs=costs).simulate().makespan
    assert Path(page).read_text().startswith("<!doctype html>")

    # Memory as it was given: what the order that ran holds is the limit.
    assert tune.main([*paths, "--memory=100,100,100,50", "--static=1000"]) == 0
    text = capsys.readouterr().out
    assert "memory limit 1400 a rank" in text
    assert tune.main([*paths, "--limit=1e15", "--model", model]) == 0 and "limit = 1000000000000;" in Path(model).read_text()
    capsys.readouterr()
    assert tune.main([*paths, "--limit=1"]) == 0
    assert "1f1b" not in [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.endswith("yes")]


def test_other_forms(costs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = ppcc.compile("interleaved_1f1b", P=P, M=M, V=2)
    (tmp_path / "costs.json").write_text(json.dumps({"cost": {"F": 3, "B": 7}}))
    ranks = events_of(program, costs, 2)
    # One trace of all ranks, compressed.
    path = tmp_path / "all.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": sum(ranks, [])}).encode()))
    run = tune.read_traces([str(path)])
    assert run.program.pipes[0].rank_of_stage == program.pipes[0].rank_of_stage and run.program.num_ranks == P
    # Other names, and ranges of the host beside those of a GPU.
    renamed = []
    for event in sum(ranks, []):
        if "RECV" not in event["name"] and "SEND" not in event["name"]:
            kind = {"F": "Forward", "B": "Backward"}[event["cat"]]
            name = f"{kind} {event['args']['microbatch']} of {event['args']['stage']}"
            renamed += [event | {"name": name, "cat": "gpu_user_annotation"}, event | {"name": name, "cat": "user_annotation", "dur": 1, "ts": event["ts"] / 10}]
    path = tmp_path / "named.json"
    path.write_text(json.dumps(renamed))
    options = ["--match=^([A-Z][a-z]+) ([0-9]+) of ([0-9]+)$", "--groups=kind,microbatch,stage", "--kind=Forward=F", "--kind=Backward=B"]
    assert tune.main([str(path), *options]) == 0
    assert "prediction   of the order that ran: +0.0 % off" in capsys.readouterr().out


def test_errors(costs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ranks = events_of(ppcc.compile("zb_h1", P=P, M=M), costs, 2)

    def refused(match: str, *arguments: str) -> None:
        assert tune.main(arguments) == 1
        error = capsys.readouterr().err
        assert error.startswith("ppcc-tune: error: ") and match in error, error

    paths = write(tmp_path, ranks)
    last = [event for event in ranks[0] if event["name"] == "0W7"][-1]
    refused("No such file", str(tmp_path / "none.json"))
    refused("no event is F of stage 0", paths[1])
    refused("--groups: `microbatch` is missing", *paths, "--groups=stage,kind")
    refused("--match: `(`: missing )", *paths, "--match=(")
    refused("has 1 groups", *paths, "--match=([0-9]+)")
    refused("--memory: there are 4 stages, but 2 numbers", *paths, "--memory=1,2")
    refused("--static: `x` is not a list of numbers", *paths, "--static=x")
    refused("memory limit of rank 0, 0.5, is less than the search needs", *paths, "--limit=0.5")
    refused("no event is a forward or backward", *write(tmp_path, [[event for event in ranks[0] if "SEND" in event["name"]]]))
    refused("in another order than the one before", *write(tmp_path, [[event for event in ranks[0] if event is not last], *ranks[1:]]))
    refused("the traces have 1, 2 steps", *write(tmp_path, [ranks[0][: len(ranks[0]) // 2], *ranks[1:]]))
    refused("it has no `ts`", *write(tmp_path, [[{key: value for key, value in event.items() if key != "ts"} for event in ranks[0]], *ranks[1:]]))
    with pytest.raises(SystemExit):
        tune.main([])
    assert tune.main(["--version"]) == 0 and capsys.readouterr().out.splitlines()[-1] == ppcc.version()


def test_measured_costs_are_not_in_the_units_of_a_model() -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=2, model="gpt", layers=4)
    assert program.simulate().time_unit == "ms" and without_costs(program).simulate({"F": 1}).time_unit is None


def test_the_last_ranks_are_missing(costs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their stages show in the messages of the others."""
    paths = write(tmp_path, events_of(ppcc.compile("zb_h1", P=P, M=M), costs))
    assert tune.main(paths[:3]) == 1
    assert "a message is of stage 3, but no other event is; give the traces of all ranks" in capsys.readouterr().err
