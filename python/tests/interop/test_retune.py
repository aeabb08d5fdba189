"""ppcc.torch.Retuner: what it notices, and what the Runtime then runs, on stages that sleep for known times."""

from __future__ import annotations

from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import Drift, Retuner, Runtime, UsageError, _linked


from . import spawn
from .models import WIDTH, Plain, loss_fn, make_batch
from .sleeping import Seconds, Sleeper
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
    assert none.program is None and "too small" in none.why and "The order stays" in str(none)


SPLIT_GPIPE = """
schedule split(P: int = 4, M: int = 6) {
  ranks P; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { I; W; } }
}
"""


def test_a_rank_that_becomes_slow() -> None:
    spawn.run(run_slowed, 4, ppcc.compile_source(SPLIT_GPIPE).json)


def test_a_new_order_that_is_slower_is_left_again() -> None:
    runtime = Runtime(ppcc.compile("gpipe", P=1, M=M), {0: Sleeper(0, WIDTH, (0.001, 0.001, 0.001))}, loss_fn=loss_fn)
    retuner = Retuner(runtime, every=4, steps=1)
    before, other = runtime.program, ppcc.compile("one_f_one_b", P=1, M=M)
    drift = Drift(1, (1.5,), 1.0, 2.0, "one_f_one_b", 1.0, 1.0, "", other, applied=True)
    runtime.set_program(other)
    retuner._trial, retuner._before, retuner._due = (before, drift), None, 3
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

