"""ppcc.torch.tune: what it measures, predicts and chooses, on stages that sleep for known times."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import re
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import ppcc.tune
import pytest
import torch
import torch.distributed as dist
from ppcc._choose import Chooser
from ppcc._profile import Event, Profile, new_profile
from ppcc._report import Report
from ppcc.torch import Runtime, TuneOptions, UsageError, _linked, _measure, _tuning, tune
from ppcc.torch._tune import RuntimeJob
from torch import Tensor, nn

from . import spawn
from .models import ROWS, WIDTH, Plain, loss_fn, make_batch, make_stages, train_alone
from .sleeping import Seconds, Sleeper
from .where import DEVICE

pytestmark = pytest.mark.skipif(DEVICE.type != "cpu", reason="tune() refuses other devices")

UNEVEN: list[Seconds] = [(0.010, 0.012, 0.010), (0.014, 0.016, 0.014), (0.010, 0.012, 0.008), (0.024, 0.012, 0.010)]
M = 8


def sleepers(program: ppcc.Program, rank: int, scale: float = 1.0) -> dict[int, nn.Module]:
    return {stage: Sleeper(stage, WIDTH, tuple(scale * one for one in UNEVEN[stage % 4])) for _, stage in program.local_stages(rank)}  # type: ignore[arg-type]


def assert_trains(runtime: Runtime) -> None:
    """A step has the gradients of the model without a pipeline."""
    pipe = runtime.program.pipes[0]
    batch, target = make_batch(M)
    wanted = [Sleeper(stage, WIDTH, (0, 0, 0)) for stage in range(pipe.num_stages)]
    train_alone(wanted, batch, target, M)
    runtime.step(batch, target=target)
    for number, module in runtime.stages.items():
        weight, same = module.weight, wanted[number].weight
        assert weight.grad is not None and same.grad is not None
        torch.testing.assert_close(weight.grad, same.grad, rtol=0, atol=1e-12)


def run_tuned(rank: int, text: str, folder: str) -> None:
    program = ppcc.Program.from_json(text)
    runtime = Runtime(program, sleepers(program, rank), loss_fn=loss_fn)
    batch, target = make_batch(M)
    torch.manual_seed(rank)
    random = torch.get_rng_state()
    result = tune(runtime, batch, target=target, output=folder)
    assert torch.equal(torch.get_rng_state(), random)
    for module in runtime.stages.values():
        assert float(module.forwards) == 0 and module.weight.grad is None

    assert all(text == str(result) for text in runtime._setup.groups.all_gather(str(result)))
    digests = runtime._setup.groups.all_gather(runtime.program.digest)
    assert set(digests) == {ppcc.Program.load(Path(folder) / "tuned.json").digest}
    assert result.steps < 20 and result.processor_seconds < 10
    # Simulated claims are exact: the model that was written predicts what the costs did.
    measured = Path(folder) / "measured.pp"
    assert measured.read_text() == result.measured
    same = ppcc.compile("one_f_one_b", P=4, M=M, model=measured, cluster=measured, transport="posted").simulate()
    orders = {order.name: order for order in result.orders}
    assert orders["one_f_one_b"].makespan == same.makespan and orders["one_f_one_b"].memory == same.peak_memory
    assert all(order.makespan >= result.bound for order in result.orders if order.fits)
    assert all(order.memory <= result.memory_limit for order in result.orders if order.fits)
    best = result.orders[0]
    assert best.expected == min(order.expected for order in result.orders if order.expected is not None and order.fits)
    assert all(order.expected is None for order in result.orders if not order.fits)
    assert result.memory_limit == orders["given"].memory == orders["gpipe"].memory
    # The stages sleep for known times, at least.
    assert orders["synthesized"].makespan == min(order.makespan for order in result.orders if order.fits)
    assert best.expected < 0.95 * orders["given"].expected
    longest = UNEVEN[3]
    assert result.bound >= 1000 * M * sum(longest)
    # The machine may be busy: what was kept is what was faster.
    if result.order == "given":
        assert runtime.program.digest == program.digest and any("was not faster" in remark for remark in result.remarks)
    else:
        assert result.order == best.name and result.after < result.before and runtime.program.digest != program.digest
        assert 0.8 < result.after / result.predicted < 1.5
    assert_trains(runtime)


def test_tunes_uneven_stages(tmp_path: Path) -> None:
    spawn.run(run_tuned, 4, ppcc.compile("gpipe", P=4, M=M).json, str(tmp_path))
    report = (tmp_path / "report.html").read_text()
    assert report.count("<iframe") == 2 and "synthesized" in report
    assert "units ms, bytes;" in (tmp_path / "measured.pp").read_text()


def hooked(forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def call(x: Tensor) -> Tensor:
        product = forward(x) * torch.ones(WIDTH, dtype=x.dtype, requires_grad=True)
        assert product.grad_fn is not None
        product.grad_fn.register_hook(lambda found, entering: None)
        return product

    return call


def run_failing(rank: int, text: str, folder: str) -> None:
    program = ppcc.Program.from_json(text)
    batch, target = make_batch(M)

    # Rank 2 has a stage that cannot be split.
    stages = sleepers(program, rank, 0.2)
    if rank == 2:
        stages[2].register_backward_hook(lambda module, inputs, outputs: None)
    runtime = Runtime(program, stages, loss_fn=loss_fn)
    result = tune(runtime, batch, target=target, steps=1)
    assert re.search("orders with I and W were left out: rank 2: stage 2 has a hook that I and W would not call", result.remarks[0]), result
    assert {order.name for order in result.orders} >= {"given", "one_f_one_b", "synthesized with B"} and "I" not in result.measured
    assert_trains(runtime)

    # Only the forward of rank 2 shows that it cannot be split.
    stages = sleepers(program, rank, 0.2)
    if rank == 2:
        stages[2].forward = hooked(stages[2].forward)
    runtime = Runtime(program, stages, loss_fn=loss_fn)
    result = tune(runtime, batch, target=target, steps=1)
    assert re.search("orders with I and W were left out: rank 2: stage 2 .*hook", result.remarks[0]), result
    assert_trains(runtime)

    # Rank 1 can build no other program than the first.
    runtime = Runtime(program, sleepers(program, rank, 0.2), loss_fn=loss_fn)
    check = _linked.LinkedProgram._check

    def fail(*args: Any) -> None:
        raise MemoryError("no room")

    if rank == 1:
        _linked.LinkedProgram._check = fail  # type: ignore[method-assign]
    result = tune(runtime, batch, target=target, steps=1)
    assert result.order == "given" and runtime.program is program and result.before == result.after
    assert "orders with I and W were left out: rank 1: MemoryError: no room" in result.remarks
    assert any(remark.endswith("was left out: rank 1: MemoryError: no room") for remark in result.remarks[1:]), result
    assert all(text == str(result) for text in runtime._setup.groups.all_gather(str(result)))
    limit = next(order.memory for order in result.orders if order.name == "one_f_one_b")
    with pytest.raises(UsageError, match="no order within the memory limit of [0-9]+ bytes can run: .*no room"):
        tune(runtime, batch, target=target, steps=1, memory_limit=limit)
    assert runtime.program is program
    _linked.LinkedProgram._check = check  # type: ignore[method-assign]
    assert_trains(runtime)
    run_recomputed(rank, program, folder)


def run_recomputed(rank: int, program: ppcc.Program, folder: str) -> None:
    """Two microbatches do not fit, unless stages keep only what they have received."""
    batch, target = make_batch(M)
    modules = [nn.Sequential(*(Sleeper(3 * stage + one, WIDTH, (0.002, 0.002, 0.002)) for one in range(3))) for stage in range(4)]
    runtime = Runtime(program, {rank: modules[rank]}, loss_fn=loss_fn)
    free = tune(runtime, batch, target=target, steps=1)
    runtime.set_program(program)
    limit = int(0.27 * next(order.memory for order in free.orders if order.name == "gpipe"))
    result = tune(runtime, batch, target=target, steps=1, memory_limit=limit, recompute=True, output=folder)
    orders = {order.name: order for order in result.orders if order.fits}
    recomputing = min((order for order in orders.values() if order.name.endswith(", recomputing")), key=lambda order: order.makespan)
    assert recomputing.makespan < 0.8 * min(order.makespan for order in orders.values() if not order.name.endswith(", recomputing"))
    assert result.order.endswith(", recomputing") and "R" in {action.op for own in runtime.program.actions for action in own}
    assert orders[result.order].memory <= limit == result.memory_limit and result.bound <= recomputing.makespan, result
    assert all(float(module.forwards) == 0 for module in modules[rank])
    wanted = copy.deepcopy(modules)
    runtime.step(batch, target=target)
    train_alone(wanted, batch, target, M)
    for mine, same in zip(modules[rank], wanted[rank], strict=True):
        torch.testing.assert_close(mine.weight.grad, same.weight.grad, rtol=0, atol=1e-12)
        mine.weight.grad = None
    with pytest.raises(UsageError, match="only programs of F, B, I and W; this has R"):
        tune(runtime, batch, target=target)


def test_a_rank_that_fails_leaves_the_program(tmp_path: Path) -> None:
    """Also recomputes, for which it needs as many ranks."""
    spawn.run(run_failing, 4, ppcc.compile("gpipe", P=4, M=M).json, str(tmp_path))
    assert (tmp_path / "report.html").read_text().count("<iframe") == 2


def run_limited(rank: int, path: str) -> None:
    program = ppcc.Program.load(path, rank=rank)
    pipe = program.pipes[0]
    runtime = Runtime(program, sleepers(program, rank, 0.2), loss_fn=loss_fn)
    batch, target = make_batch(M)
    free = tune(runtime, batch, target=target, steps=1)
    orders = {order.name: order for order in free.orders}
    assert {"interleaved_1f1b", "looped_bfs", "zb1p", "synthesized", "synthesized with B"} <= orders.keys()
    assert orders.keys().isdisjoint({"gpipe", "zero_bubble_v", "interleaved_1f1b_overlap"})
    assert runtime.program.pipes[0].rank_of_stage == pipe.rank_of_stage
    assert_trains(runtime)

    for module in runtime.stages.values():
        module.weight.grad = None
    runtime.set_program(program)
    with pytest.raises(UsageError, match="memory limit of rank 0, 1, is less than the search needs.*; say recompute=True if stages may"):
        tune(runtime, batch, target=target, steps=1, memory_limit=1)
    assert runtime.program is program and runtime._observer.__class__ is _measure.Observer
    limit = orders["interleaved_1f1b"].memory
    limited = tune(runtime, batch, target=target, steps=1, memory_limit=limit)
    orders = {order.name: order for order in limited.orders}
    assert not orders["given"].fits and orders["looped_bfs"].expected is None and limited.memory_limit == limit
    assert limited.order != "given" and orders[limited.order].fits and orders[limited.order].memory <= limit
    assert_trains(runtime)


def test_orders_keep_the_placement_and_the_memory_limit(tmp_path: Path) -> None:
    """Two stages a rank; each rank has loaded its part of the program."""
    ppcc.compile("looped_bfs", P=2, M=M, V=2).save(tmp_path / "program.json")
    spawn.run(run_limited, 2, str(tmp_path / "program.json"))


def run_measured(rank: int, text: str) -> None:
    if rank == 1:  # A machine that was started a quarter of an hour before.
        def ahead() -> int:
            return time.perf_counter_ns() + 900 * 10**9

        _measure.now = _tuning.now = ahead
    program = ppcc.Program.from_json(text)
    modules = make_stages(3, Plain)
    runtime = Runtime(program, {rank: modules[rank]}, loss_fn=loss_fn, optimizer=torch.optim.Adam(modules[rank].parameters()))
    batch, target = make_batch(4)
    runtime.step(batch, target=target)
    runtime.step_optimizer()
    runtime.optimizer.zero_grad()
    tuning = _tuning.Tuning(RuntimeJob(runtime), TuneOptions(steps=1))
    for steps in (tuning._step(tuning.meter), tuning._measure()):
        runtime._observer = next(steps)
        runtime.step(batch, target=target, reduce_grads=False)
        with pytest.raises(StopIteration):
            steps.send(0.0)
    # 3 positions, ROWS rows and WIDTH numbers of 8 bytes: the input, the result of tanh; at W the gradient of the product.
    size = 3 * ROWS * WIDTH * 8
    assert tuning.profile.memory["F"][0] == size and tuning.profile.memory["F"][1] == 2 * size
    assert tuning.profile.memory["I"] == {0: size, 1: size, 2: size}, tuning.profile.memory
    weights = 8 * WIDTH * (WIDTH + 1)
    assert tuning.profile.memory["static"][1] == 4 * weights + 2 * 4  # Weights, gradients, two moments; the steps of two weights.
    # Before it has stepped, what is expected counts: two moments.
    assert RuntimeJob(Runtime(program, {rank: Plain().double()}, loss_fn=loss_fn)).static_memory(2) == {rank: 4 * weights}
    assert all(0 <= float(latency) < 1000 for latency in tuning.profile.latencies()), tuning.profile.latencies()
    offset = _measure.clock_offsets(tuning.groups)
    assert offset[0] == offset[2] == 0 and abs(offset[1] - 900 * 10**9) < 10**9, offset


def test_memory_and_clocks() -> None:
    spawn.run(run_measured, 3, ppcc.compile("zb_h1", P=3, M=4).json)


def run_profiled(rank: int, text: str, folder: str) -> None:
    program = ppcc.Program.from_json(text)
    runtime = Runtime(program, {rank: Sleeper(rank, WIDTH, UNEVEN[rank])}, loss_fn=loss_fn, profile=True)
    batch, target = make_batch(M)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(3):
            dist.barrier()
            runtime.step(batch, target=target)
        runtime.eval(batch)
    profiler.export_chrome_trace(f"{folder}/rank{rank}.json")


def test_traces_of_the_profiler_are_a_run(tmp_path: Path) -> None:
    """Ranges of actions do not include the time in which the rank waits; messages have latencies."""
    program = ppcc.compile("zb_h1", P=4, M=M)
    spawn.run(run_profiled, 4, program.json, str(tmp_path))
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    for path in paths:  # The forwards of eval() are no step.
        document = json.loads(Path(path).read_text())
        events = [event for event in document["traceEvents"] if event.get("ph") == "X" and re.fullmatch("[0-9]F[0-9]+", event["name"])]
        evaluated = sorted(event["ts"] for event in events)[3 * M]
        document["traceEvents"] = [event for event in document["traceEvents"] if event.get("ts", 0) < evaluated]
        Path(path).write_text(json.dumps(document))
    run = ppcc.tune.read_traces(paths)
    for mine, theirs in zip(run.program.actions, program.actions, strict=True):
        assert [str(one) for one in mine if one.kind.is_compute] == [str(one) for one in theirs if one.kind.is_compute]
    for stage, seconds in enumerate(UNEVEN):
        forward = float(run.profile.median(run.profile.times["F"][stage]))
        assert 1000 * seconds[0] <= forward < 1000 * seconds[0] + 15, (stage, forward)  # The machine may be busy.
    assert len(run.profile.latencies()) == 4 and all(float(one) >= 0 for one in run.profile.latencies())
    assert run.step >= 1000 * M * sum(UNEVEN[3]) - 1


def profile_of(stages: int, times: Callable[[str, int], list[float]]) -> Profile:
    profile = new_profile()
    for kind in "FBIW":
        for stage in range(stages):
            for milliseconds in times(kind, stage):
                profile.add(Event(f"{stage}{kind}0", Decimal(1000 * milliseconds), Decimal(0), None, ""))
    return profile


LENGTHS = {"F": 3, "B": 7, "I": 4, "W": 2}


def test_jitter_is_measured(tmp_path: Path) -> None:
    """Of two ranks that wait for each other one is late, so that both are later than on average."""
    program = ppcc.compile("one_f_one_b", P=4, M=8)

    def simulate(profile: Profile) -> Report:
        (tmp_path / "costs.json").write_text(profile.costs())
        (tmp_path / "measured.pp").write_text(profile.model())
        report = program.simulate(tmp_path / "costs.json")
        told = ppcc.compile("one_f_one_b", P=4, M=8, model=tmp_path / "measured.pp").simulate()
        assert (told.makespan, told.jitter_mean, told.jitter_p95) == (report.makespan, report.jitter_mean, report.jitter_p95)
        return report

    constant = simulate(profile_of(4, lambda kind, stage: [LENGTHS[kind] + stage]))
    assert constant.jitter_mean == constant.makespan == constant.jitter_p95
    varying = simulate(profile_of(4, lambda kind, stage: [LENGTHS[kind] + stage - 2, LENGTHS[kind] + stage + 2]))
    assert varying.makespan == constant.makespan and 1.02 < varying.jitter_mean / varying.makespan < 1.5
    assert varying.jitter_p95 > varying.jitter_mean
    skewed = profile_of(1, lambda kind, stage: [1, 1, 7])  # The mean is 3, the deviation 2.83.
    assert json.loads(skewed.costs())["cost"]["F"] == [3] and skewed.jitter()["F"] == [0.943]
    assert "cost F = 3;" in skewed.model() and "jitter F stage s = 0.943;" in skewed.model()
    assert profile_of(1, lambda kind, stage: [0] * 9 + [9]).jitter()["F"] == [1.0]  # The most that the compiler takes.
    assert profile_of(1, lambda kind, stage: [0]).jitter()["F"] == [0.0]


def test_a_difference_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = _tuning.Tuning.__new__(_tuning.Tuning)
    tuning.base_name = "given"
    tuning.profile = profile_of(2, lambda kind, stage: [1, 1, 9] if (kind, stage) == ("F", 1) else [2])
    text = "the given program took 30 ms a step, but 20 ms are predicted; what varies most is F of stage 1: 1 ms in the median, 9 ms or more in one of ten"
    for load, more in ((0.5, ""), (900.0, f"; the machine of rank 0 has a load of 900.0 on {os.cpu_count()} cores")):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, load, load))
        assert tuning._explain(30, 20) == text + more


BLOCKS = """
schedule blocks(M: int = 4) {
  ranks 2; microbatches M; stages 4; stage s on rank s / 2;
  on rank r { repeat M { F(0); F(1); } repeat M { B(1); B(0); } }
}
"""


def test_recomputation_needs_a_placement_that_synthesis_knows() -> None:
    profile = profile_of(4, lambda kind, stage: [LENGTHS[kind]] if kind in "FB" else [])
    profile.memory = {"F": dict.fromkeys(range(4), 10)}
    chooser = Chooser(ppcc.compile_source(BLOCKS), profile, ["posted"], 1, dict.fromkeys(range(4), 9))
    with pytest.raises(ppcc.UsageError, match="stages can recompute only in the placements linear, v, loop and wave"):
        chooser.choose({"given": chooser.placement}, 1000, 0.0)


def refused(match: str, schedule: str = "gpipe", options: dict[str, Any] | None = None, **arguments: Any) -> None:
    program = ppcc.compile(schedule, P=1, M=4, **arguments)
    module = nn.Linear(WIDTH, WIDTH).double()
    runtime = Runtime(program, {stage: module for _, stage in program.local_stages(0)}, loss_fn=loss_fn, **options or {})
    with pytest.raises(UsageError, match=match):
        tune(runtime, *make_batch(4)[:1], target=make_batch(4)[1])


def test_refusals() -> None:
    with pytest.raises(UsageError, match="only programs of whole sequences, without slices"):
        _tuning.check_program(ppcc.compile("seq1f1b", P=2, M=4), 0)
    refused("only training programs", "one_f_one_b", forward_only=True)
    refused("only programs of F, B, I and W; this has R", rules="recompute(1, 1)")
    refused("only programs without overlap groups", "one_f_one_b_overlap")
    refused("only microbatches of one shape", options={"variable_shapes": True})
    refused("only shapes that are inferred", options={"shapes": {0: torch.empty(ROWS, 3, WIDTH, device="meta")}})
    runtime = Runtime(ppcc.compile("gpipe", P=1, M=4), {0: Plain().double()}, loss_fn=loss_fn)
    batch, target = make_batch(4)
    with pytest.raises(UsageError, match="steps is 0, but must be at least 1"):
        tune(runtime, batch, target=target, steps=0)
    with pytest.raises(UsageError, match="state_per_weight is -1, but must not be negative"):
        tune(runtime, batch, target=target, state_per_weight=-1)
    with pytest.raises(UsageError, match="without reduce_grads, return_outputs and share_losses"):
        tune(runtime, batch, target=target, reduce_grads=True)
    setup, runtime._setup = runtime._setup, dataclasses.replace(runtime._setup, device=torch.device("cuda"))
    with pytest.raises(UsageError, match="only stages on the CPU"):
        tune(runtime, batch, target=target)
    runtime._setup = setup
    runtime.step(batch, target=target)
    with pytest.raises(UsageError, match="call zero_grad"):
        tune(runtime, batch, target=target)


def run_refused(rank: int, texts: list[str], matches: list[str]) -> None:
    batch, target = make_batch(8)
    for text, match in zip(texts[:-1], matches, strict=True):
        program = ppcc.Program.from_json(text)
        stages = {stage: Plain().double() for _, stage in program.local_stages(rank)}
        with pytest.raises(UsageError, match=match):
            tune(Runtime(program, stages, loss_fn=loss_fn), batch, target=target)
    program = ppcc.Program.from_json(texts[-1])
    copies = dist.new_group([0, 1])
    runtime = Runtime(program, {rank: Plain().double()}, loss_fn=loss_fn, groups={"data_parallel": copies})
    with pytest.raises(UsageError, match="one pipeline, without data-parallel copies"):
        tune(runtime, batch, target=target)
    wrapped = nn.parallel.DistributedDataParallel(Plain().double(), process_group=[dist.new_group([one]) for one in (0, 1)][rank])
    with pytest.raises(UsageError, match="not in fully_shard or DistributedDataParallel"):
        tune(Runtime(program, {rank: wrapped}, loss_fn=loss_fn), batch, target=target)


SOME_SPLIT = """
schedule some(M: int = 8) {
  ranks 2; microbatches M; placement linear;
  on rank r { repeat M { F; if r == 0 { B; } else { I; W; } } }
}
"""


def test_refusals_of_two_ranks() -> None:
    programs = [ppcc.compile("dualpipe", P=2, M=8), ppcc.compile_source(SOME_SPLIT), ppcc.compile("gpipe", P=2, M=8)]
    matches = ["only programs of one pipe", "all have the same kinds of backward"]
    spawn.run(run_refused, 2, [program.json for program in programs], matches)
