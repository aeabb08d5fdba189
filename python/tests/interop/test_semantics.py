"""The semantic suite: each case comes to what semantics_expected.json says of the network without a pipeline."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ppcc.torch import Checkpoint, Runtime
from torch import Tensor, nn

from . import semantics, spawn
from .semantics import SUITE, Block, Case, Stage

EXPECTED: dict[str, Any] = json.loads((semantics.FOLDER / "semantics_expected.json").read_text())


def off(found: float, wanted: float) -> float:
    difference = abs(found - wanted) / abs(wanted)
    return math.inf if math.isnan(difference) else difference


def tolerance(case: Case) -> float:
    return float(case.get("tolerance", 1e-9))


def name_of(per_stage: int) -> Any:
    def name(stage: int, name: str) -> str:
        number, _, rest = name.partition(".")
        return f"blocks.{stage * per_stage + int(number)}.{rest}"

    return name


def run_part(process: int, case: Case, text: str, number: int, folder: str) -> None:
    """One of the runs of a case: from the checkpoint of that before it, to one of its own."""
    program = ppcc.Program.from_json(text)
    copies = case.get("copies", 1)
    rank, copy = process % program.num_ranks, process // program.num_ranks
    options: dict[str, Any] = {}
    if copies > 1:
        pipelines = [dist.new_group(list(range(i * program.num_ranks, (i + 1) * program.num_ranks))) for i in range(copies)]
        replicas = [dist.new_group(list(range(i, copies * program.num_ranks, program.num_ranks))) for i in range(program.num_ranks)]
        options = {"group": pipelines[copy], "groups": {"data_parallel": replicas[rank]}}
    log: list[str] = []
    blocks = semantics.blocks(case, log)
    per_stage = len(blocks) // program.pipes[0].num_stages
    kind = Stage if case.get("overlaps") else nn.Sequential
    mine = {stage: kind(*blocks[stage * per_stage : (stage + 1) * per_stage]) for _, stage in program.local_stages(rank)}
    weights = list(dict.fromkeys(weight for module in mine.values() for weight in module.parameters()))
    runtime = Runtime(
        program,
        mine,
        loss_fn=nn.functional.mse_loss,
        tied=[{0: "0.weight", -1: f"{per_stage - 1}.weight"}] if case.get("tied") else [],
        optimizer=torch.optim.Adam(weights, lr=SUITE["rate"]),
        scaler=semantics.scaler() if case.get("scales") else None,
        max_norm=SUITE["max_norm"] if case.get("clips") else None,
        **options,
    )
    state = Checkpoint(runtime, name_of(per_stage))
    steps, runs, batches = SUITE["steps"], len(case["runs"]), case.get("batches", 1)
    if number > 0:
        with torch.no_grad():
            weights[0].zero_()
        dcp.load({"train": state}, checkpoint_id=f"{folder}/{number}")
    results: dict[str, Any] = {"losses": [], "norms": [], "left_out": []}
    for step in range(number * steps // runs, (number + 1) * steps // runs):
        assert runtime.optimizer is not None
        runtime.optimizer.zero_grad()
        blocks[0].overflows = semantics.has_overflow(case, step)
        total = 0.0
        for part in range(batches):
            x, target = semantics.data(case, step, part, copy)
            result = runtime.step(x, target=target, reduce_grads=part + 1 == batches, share_losses=True)
            total += float(sum(result.losses.values()))
        stepped = runtime.step_optimizer() if result.optimizer_stepped is None else result.optimizer_stepped
        if not stepped:
            results["left_out"].append(step)
        results["losses"].append(total / (program.num_microbatches * copies))
        results["norms"].append(None if runtime.grad_norm is None else float(runtime.grad_norm))
        results.setdefault("exchanges", list(log))
    dcp.save({"train": state}, checkpoint_id=f"{folder}/{number + 1}")
    if case.get("evaluates") and number + 1 == runs:
        x, target = semantics.batch(case, semantics.EVALUATED)
        evaluated = runtime.eval(x, target=target, share_losses=True).losses
        forward = ppcc.compile(program.schedule, P=program.num_ranks, M=program.num_microbatches, forward_only=True)
        runtime.set_program(forward)
        again = runtime.step(x, target=target, share_losses=True).losses
        assert all(map(torch.equal, evaluated.values(), again.values()))
        results["evaluated"] = float(sum(evaluated.values())) / program.num_microbatches
    Path(folder, f"results{number}-{process}").write_text(json.dumps(results))


@pytest.mark.parametrize("case", SUITE["cases"], ids=lambda case: case["name"])
def test_case_matches_expected(case: Case) -> None:
    expected, copies = EXPECTED[case["name"]], case.get("copies", 1)
    losses: list[float] = []
    norms: list[float | None] = []
    left_out: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(len(case["runs"])):
            program = semantics.compiled(case, number)
            processes = program.num_ranks * copies
            spawn.run(run_part, processes, case, program.json, number, folder)
            results = [json.loads(Path(folder, f"results{number}-{process}").read_text()) for process in range(processes)]
            # All ranks of a copy have all of its losses.
            losses += map(sum, zip(*(results[copy * program.num_ranks]["losses"] for copy in range(copies)), strict=True))
            norms += results[0]["norms"]
            left_out += results[0]["left_out"]
            assert all(one["left_out"] == results[0]["left_out"] for one in results)
            if case.get("overlaps"):
                assert [one["exchanges"] for one in results] == expected["exchanges"][number], program.name
    assert left_out == [step for step in range(SUITE["steps"]) if semantics.has_overflow(case, step)]
    for step, (got, want) in enumerate(zip(losses, expected["losses"], strict=True)):
        assert off(got, want) <= tolerance(case), f"step {step}: {got}, but {want}"
    for step, (norm, wanted) in enumerate(zip(norms, expected["norms"], strict=True)):
        if case.get("clips") and wanted is not None:
            assert norm is not None and off(norm, wanted) <= tolerance(case), f"norm of step {step}: {norm}, but {wanted}"
    if case.get("evaluates"):
        assert off(results[0]["evaluated"], expected["evaluated"]) <= tolerance(case)


@pytest.mark.parametrize("case", SUITE["cases"], ids=lambda case: case["name"])
def test_expected_values_match_the_model(case: Case) -> None:
    found, expected = semantics.expected(case), EXPECTED[case["name"]]
    assert expected["losses"][-1] < expected["losses"][0] / 2
    for key in ("losses", "norms"):
        for got, want in zip(found[key], expected[key], strict=True):
            assert (got is None) == (want is None)
            assert want is None or off(got, want) <= tolerance(case)
    assert off(found["evaluated"], expected["evaluated"]) <= tolerance(case)
    assert found.get("exchanges") == expected.get("exchanges")


def test_model_is_the_same_in_both_runtimes() -> None:
    """Its numbers need no generator."""
    block: Any = Block(SUITE["cases"][0], 1, [])
    first: Tensor = block.weight.detach()
    assert [round(float(value) / 0.75 * 1009 + 504.5) for value in first[0, :2]] == [277 * 7919 % 1009, 278 * 7919 % 1009]
