"""ppcc.torch.Retuner: what it notices, and what the Runtime then runs, on stages that sleep for known times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import Drift, Retuner, Runtime, UsageError, _linked, tune
from ppcc.torch._layers import Move
from torch import nn

from . import spawn
from .models import WIDTH, Plain, loss_fn, make_batch, train_alone
from .sleeping import RankSleeper, Seconds, Sleeper
from .where import DEVICE

pytestmark = pytest.mark.skipif(DEVICE.type != "cpu", reason="tune() refuses other devices")

M = 6
EVEN: Seconds = (0.008, 0.008, 0.008)


def train(runtime: Runtime, retuner: Retuner, steps: int, slow: tuple[int, int] | None = None) -> list[Drift]:
    """Trains with an optimizer; a rank becomes 1.5 times slower before a step. Also evaluates."""
    batch, target = make_batch(M)
    (module,) = runtime.stages.values()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    found = []
    for step in range(1, steps + 1):
        if slow == (runtime.rank, step):
            module.seconds = tuple(1.5 * time for time in module.seconds)
        optimizer.zero_grad()
        runtime.step(batch, target=target)
        optimizer.step()
        if (drift := retuner.step()) is not None:
            found.append(drift)
        if step == 2:
            runtime.eval(batch, target=target)
    assert all(texts == list(map(str, found)) for texts in runtime._setup.groups.all_gather(list(map(str, found))))
    return found


def run_slowed(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)

    def made() -> Runtime:
        return Runtime(program, {rank: Sleeper(rank, WIDTH, EVEN)}, loss_fn=loss_fn)

    # GPipe with I and W is not the best order, so that there is something to gain.
    runtime = made()
    weights = [weight.detach().clone() for weight in runtime.stages[rank].parameters()]
    retuner = Retuner(runtime, every=6, steps=2, memory_limit=10**6)
    assert train(runtime, retuner, 4) == []
    assert any(not torch.equal(*pair) for pair in zip(weights, runtime.stages[rank].parameters(), strict=True))
    found = train(runtime, retuner, 14, (2, 2))
    assert len(found) == 2, found
    first, last = found
    assert first.step == 10 and first.applied and first.after is None and first.program is not None
    assert 1.3 < first.work[2] < 1.9 and all(0.6 < first.work[one] < 1.3 for one in (0, 1, 3)), first
    assert first.before < first.drifted and first.predicted < first.drifted and first.bound >= 1000 * M * 1.5 * 0.024
    assert last.step == 10 and last.after is not None and "ms measured" in str(last)
    if last.applied:
        assert last.after < last.drifted and runtime.program.digest == first.program.digest != program.digest
    else:  # The machine may be busy.
        assert last.remarks[-1].endswith("was not faster") and runtime.program.digest == program.digest

    # It only proposes.
    runtime = made()
    retuner = Retuner(runtime, every=4, steps=1, memory_limit=10**6, apply=False)
    (only,) = train(runtime, retuner, 7, (1, 4))
    assert not only.applied and only.program is not None and runtime.program is program and "it does not run" in str(only)

    # Rank 3 cannot build another program.
    runtime = made()
    retuner = Retuner(runtime, every=4, steps=1, memory_limit=10**6)
    check = _linked.LinkedProgram._check

    def fail(*args: Any) -> None:
        raise MemoryError("no room")

    if rank == 3:
        _linked.LinkedProgram._check = fail  # type: ignore[method-assign]
    (failed,) = train(runtime, retuner, 8, (1, 4))
    assert not failed.applied and runtime.program is program
    assert failed.remarks[-1].endswith("was left out: rank 3: MemoryError: no room"), failed.remarks
    _linked.LinkedProgram._check = check  # type: ignore[method-assign]

    # No order keeps the limit.
    runtime = made()
    (none,) = train(runtime, Retuner(runtime, every=4, steps=1, memory_limit=1), 7, (1, 4))
    assert none.program is None and "less than the search needs" in none.why and "The order stays" in str(none)


SPLIT_GPIPE = """
schedule split(P: int = 4, M: int = 6) {
  ranks P; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { I; W; } }
}
"""


def test_a_rank_that_becomes_slow() -> None:
    spawn.run(run_slowed, 4, ppcc.compile_source(SPLIT_GPIPE).json)


def run_moved(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)
    batch, target = make_batch(M)
    RankSleeper.factor = 1.0
    stage = nn.Sequential(*(RankSleeper(4 * rank + one, WIDTH, (0.003, 0.003, 0.003)) for one in range(4)))
    runtime = Runtime(program, {rank: stage}, loss_fn=loss_fn)
    result = tune(runtime, batch, target=target, layers=True, memory_limit=10**6)
    assert result.layout is not None
    optimizer = torch.optim.AdamW([{"params": []}, {"params": stage.parameters(), "lr": 1e-2}], lr=1e-3)
    retuner = Retuner(runtime, every=6, steps=2, memory_limit=10**6, layers=True, result=result, optimizer=optimizer, min_drift=0.2)
    before = {number: stage[at] for at, number in enumerate(result.layout[rank])}
    found = []
    for step in range(1, 18):
        if step == 5 and rank == 1:
            RankSleeper.factor = 2.0
        optimizer.zero_grad()
        runtime.step(batch, target=target)
        optimizer.step()
        if (drift := retuner.step()) is not None:
            found.append(drift)
    assert len(found) == 2 and found[0].layout is not None and "layers " in str(found[0]), found
    assert len(found[0].layout[1]) < len(result.layout[1]), found
    layout = retuner._layout
    if found[1].applied:
        assert found[1].after is not None and found[1].after < found[1].drifted and layout == found[0].layout
    else:  # The machine may be busy; then layers are back.
        assert layout == result.layout
    assert len(stage) == len(layout[rank])
    assert {id(weight) for group in optimizer.param_groups for weight in group["params"]} == set(map(id, stage.parameters()))
    assert set(map(id, optimizer.state)) == set(map(id, stage.parameters())) and optimizer.param_groups[0]["params"] == []

    # Weights and the state of the optimizer are those of a run without a pipeline.
    layers = [Sleeper(number, WIDTH, (0, 0, 0)) for number in range(16)]
    whole = torch.optim.AdamW(nn.Sequential(*layers).parameters(), lr=1e-2)
    for _ in range(17):
        whole.zero_grad()
        train_alone(layers, batch, target, M)
        whole.step()
    for number, moved in zip(layout[rank], stage, strict=True):
        torch.testing.assert_close(moved.weight, layers[number].weight, rtol=0, atol=1e-10)
        mine, same = optimizer.state[moved.weight], whole.state[layers[number].weight]
        assert mine.keys() == same.keys() and float(mine["step"]) == 17
        torch.testing.assert_close(mine["exp_avg"], same["exp_avg"], rtol=0, atol=1e-10)
        assert number not in before or moved is before[number] or not found[1].applied

    # What is asked for has to fit.
    for match, options in (
        ("give the optimizer, and the result of tune", {"result": result}),
        ("give the optimizer, and the result of tune", {"optimizer": optimizer}),
        ("stages have other layers than tune", {"optimizer": optimizer, "result": replace(result, layout=((0,), (1,), (2,), (3,)))}),
    ):
        with pytest.raises(UsageError, match="layers cannot move: " + match):
            Retuner(runtime, layers=True, **options)  # type: ignore[arg-type]
    if found[1].applied:
        other = torch.optim.SGD([{"params": stage.parameters()}, *({"params": []} for _ in range(rank))])
        with pytest.raises(UsageError, match="the optimizers of ranks have 1, 2, 3, 4 groups of weights"):
            Move(runtime, {rank: stage}, layout, result.layout, other)


def test_layers_leave_a_rank_that_becomes_slow() -> None:
    spawn.run(run_moved, 4, ppcc.compile("zb_h1", P=4, M=M).json)


def test_a_new_order_that_is_slower_is_left_again() -> None:
    runtime = Runtime(ppcc.compile("gpipe", P=1, M=M), {0: Sleeper(0, WIDTH, (0.001, 0.001, 0.001))}, loss_fn=loss_fn)
    retuner = Retuner(runtime, every=4, steps=1)
    before, other = runtime.program, ppcc.compile("one_f_one_b", P=1, M=M)
    drift = Drift(1, (1.5,), 1.0, 2.0, "one_f_one_b", 1.0, 1.0, "", other, applied=True)
    runtime.set_program(other)
    retuner._trial, retuner._before, retuner._due = (before, (), drift), None, 3
    (found,) = train(runtime, retuner, 4)
    assert not found.applied and found.after is not None and found.remarks == ("one_f_one_b was not faster",)
    assert runtime.program is before


def test_refusals() -> None:
    def runtime(name: str = "gpipe", **arguments: Any) -> Runtime:
        program = ppcc.compile(name, P=1, M=M, **arguments)
        return Runtime(program, {0: Plain().double()}, loss_fn=loss_fn)

    with pytest.raises(UsageError, match="steps=0, every=1000: at least 1 step must be measured"):
        Retuner(runtime(), steps=0)
    with pytest.raises(UsageError, match="steps=3, every=3"):
        Retuner(runtime(), every=3)
    with pytest.raises(UsageError, match="only training programs"):
        Retuner(runtime("one_f_one_b", forward_only=True))
    own = runtime()
    observer = own._observer
    retuner = Retuner(own)
    retuner.close()
    assert own._observer is observer


def test_costs_that_stay_are_no_drift() -> None:
    program = ppcc.compile("gpipe", P=1, M=M)
    runtime = Runtime(program, {0: Sleeper(0, WIDTH, (0.004, 0.004, 0.004))}, loss_fn=loss_fn)
    assert train(runtime, Retuner(runtime, every=4, steps=2, min_drift=0.5), 12) == [] and runtime.program is program

