"""Figures: measure.py overlap|memory|runtimes|block|trace|graph."""

from __future__ import annotations

import copy
import gzip
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ppcc
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, _step, _streams, load_torch_runtime
from tests.interop import spawn
from tests.interop.where import DEVICE, become_rank
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage

from results import check, failed, figure, passed, seconds_left, skipped

ON_GPU = DEVICE.type == "cuda"
WIDTH, HEADS, LENGTH, ROWS = (2048, 16, 1024, 2) if ON_GPU else (128, 4, 32, 1)
DTYPE = torch.bfloat16 if ON_GPU else torch.float32
MEBIBYTE = float(1 << 20)


class Layer(nn.Module):
    """Of a transformer."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        split = self.qkv(self.first(x)).view(rows, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*split.unbind(), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


def layers(count: int) -> list[nn.Module]:
    torch.manual_seed(3)
    return [Layer().to(DEVICE, DTYPE) for _ in range(count)]


def numbers(microbatches: int, rows: int = ROWS) -> Tensor:
    generator = torch.Generator().manual_seed(microbatches)
    return torch.randn(microbatches * rows, LENGTH, WIDTH, generator=generator, device="cpu").to(DEVICE, DTYPE)


def loss_fn(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.mse_loss(output.float(), target.float())


def wait() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def milliseconds(run: Callable[[], object], times: int = 5) -> float:
    found = []
    for _ in range(times):
        wait()
        if dist.is_initialized():
            dist.barrier()
        began = time.perf_counter()
        run()
        wait()
        found.append(1e3 * (time.perf_counter() - began))
    return statistics.median(found)


def prepare(program: ppcc.Program, rank: int, **options: Any) -> tuple[Runtime, Callable[[], object]]:
    """A Runtime, and its step."""
    modules = layers(max(pipe.num_stages for pipe in program.pipes))
    mine = {stage: modules[stage] for _, stage in program.local_stages(rank)}
    runtime = Runtime(program, mine, loss_fn=loss_fn, **options)
    batch = numbers(program.num_microbatches)
    target = batch.tanh()
    return runtime, lambda: runtime.step(batch, target=target)


def gradients(runtime: Runtime) -> list[Tensor]:
    return [weight.grad.clone() for module in runtime.stages.values() for weight in module.parameters() if weight.grad is not None]


def zero(runtime: Runtime) -> None:
    for module in runtime.stages.values():
        module.zero_grad(set_to_none=False)


@contextmanager
def timed() -> Iterator[dict[tuple[str, int], list[Callable[[], float]]]]:
    """By kind and stage of actions what gives the milliseconds of each, once the device has ended."""
    found = defaultdict(list)
    perform = _step.Step._perform

    def moment() -> Any:
        if not ON_GPU:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end)) if ON_GPU else 1e3 * (end - begin)

    def noted(self: _step.Step, action: ppcc.Action) -> None:
        begin = moment()
        perform(self, action)
        end = moment()
        found[action.op, action.stage].append(lambda: between(begin, end))

    _step.Step._perform = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        _step.Step._perform = perform  # type: ignore[method-assign]


def best(found: dict[tuple[str, int], list[Callable[[], float]]]) -> dict[tuple[str, int], float]:
    wait()
    return {key: min(one() for one in times) for key, times in found.items()}


# Two streams against one.


def overlap_on(rank: int, text: str) -> None:
    torch.use_deterministic_algorithms(True)
    program = ppcc.Program.from_json(text)
    results = []
    for two in (False, True):
        of = _streams.Streams.of
        if not two:
            _streams.Streams.of = staticmethod(lambda device: None)  # type: ignore[assignment]
        runtime, step = prepare(program, rank)
        _streams.Streams.of = of  # type: ignore[method-assign]
        step()
        zero(runtime)
        step()
        found = gradients(runtime)
        torch.cuda.reset_peak_memory_stats()
        took = milliseconds(step)
        results.append(found)
        if rank == 0:
            name = f"{program.schedule}, {program.num_ranks} ranks, {'two streams' if two else 'one stream'}"
            figure(f"{name}: step", took, "ms")
            figure(f"{name}: peak memory", torch.cuda.max_memory_allocated() / MEBIBYTE, "MiB")
        del runtime, step
    same = len(results[0]) == len(results[1]) > 0 and all(map(torch.equal, *results))
    check(f"{program.schedule}, rank {rank}: gradients on two streams are those on one, to the bit", same, "they differ")


def overlap() -> None:
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    for name, ranks in (("one_f_one_b_overlap", 1), ("dualpipe", 2), ("dualpipe_v", 2)):
        attempt(name, lambda: spawn.run(overlap_on, ranks, ppcc.compile(name, P=ranks, M=8).json))


# Bytes.


def allocated() -> int:
    wait()
    return int(torch.cuda.memory_allocated())


def memory() -> None:
    become_rank(0, 1)
    (layer,), x = layers(1), numbers(1)
    loss_fn(layer(x), x).backward()  # Gradients, workspaces.
    before = allocated()
    loss = loss_fn(layer(x), x)
    kept = allocated() - before
    del loss
    figure("an activation", kept / MEBIBYTE, "MiB")
    peaks: dict[str, float] = {}
    for rule in ("", "offload", "recompute", "release"):
        program = ppcc.compile("gpipe", P=1, M=6, rules=[rule] if rule else [])
        # Of what F keeps R restores all: the input is the batch.
        sizes = {"F": kept, "R": kept - 1, "OFFLOAD": -kept, "RELOAD": kept}
        kinds = [kind.mnemonic for kind in program.kinds]
        told = program.simulate({f"memory.{kind}": size for kind, size in sizes.items() if kind in kinds})
        runtime, step = prepare(program, 0)
        step()
        zero(runtime)
        before = allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        wait()
        peaks[rule] = torch.cuda.max_memory_allocated() - before
        name = rule or "without a rule"
        figure(f"{name}: peak of a step", peaks[rule] / MEBIBYTE, "MiB")
        figure(f"{name}: peak by the report", told.peak_memory / MEBIBYTE, "MiB")
        # A backward takes memory of its own, at most as much as it gives back.
        near = told.peak_memory <= 1.1 * peaks[rule] and peaks[rule] <= told.peak_memory + 2 * kept
        check(f"{name}: the peak is that of the report, and of a backward", near, f"{peaks[rule]} bytes, {told.peak_memory} by the report")
        del runtime, step
    check("offload and recompute keep less", max(peaks["offload"], peaks["recompute"]) < 0.8 * peaks[""], peaks)


# PyTorch's runtime.


def runtimes_on(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)
    (pipe,) = program.pipes
    runtime, step = prepare(program, rank)
    step()
    zero(runtime)
    step()
    wanted = gradients(runtime)
    ours = milliseconds(step, 3)
    with timed() as times:
        step()
    costs: list[Any] = [None] * program.num_ranks
    dist.all_gather_object(costs, best(times))
    told = {key: value for one in costs for key, value in one.items()}

    modules = {stage: copy.deepcopy(module) for stage, module in runtime.stages.items()}
    batch = numbers(program.num_microbatches)
    stages = [PipelineStage(module, stage, pipe.num_stages, batch.device) for stage, module in modules.items()]
    for stage in stages if dist.get_backend() == "gloo" else ():
        if hasattr(stage, "_get_init_p2p_neighbors_ops"):  # Before 2.15 ranks greet themselves, which gloo cannot.
            stage._get_init_p2p_neighbors_ops = lambda: []
    theirs = load_torch_runtime(program, stages, loss_fn=loss_fn, scale_grads=True)
    options: dict[str, Any] = {"target": batch.tanh(), "losses": []} if pipe.rank_of_stage[-1] == rank else {}

    def their_step() -> None:
        for module in modules.values():
            module.zero_grad()
        theirs.step(*([batch] if pipe.rank_of_stage[0] == rank else []), **options)

    their_step()
    their_step()
    found = [weight.grad for module in modules.values() for weight in module.parameters() if weight.grad is not None]
    near = len(found) == len(wanted) and all(torch.allclose(a, b, rtol=1e-2, atol=1e-2 if ON_GPU else 1e-5) for a, b in zip(found, wanted, strict=True))
    check(f"{program.schedule}, rank {rank}: gradients are those of PyTorch's runtime", near, "they differ")
    took = milliseconds(their_step, 3)
    if rank == 0:
        busy = sum(told[action.op, action.stage] for row in program.actions for action in row if (action.op, action.stage) in told)
        kinds = sorted({op for op, _ in told})
        file = Path(os.environ["PPCC_WORK"], f"{program.schedule}.costs.json")
        file.write_text(json.dumps({"cost": {op: [told.get((op, stage), 0.0) for stage in range(pipe.num_stages)] for op in kinds}}))
        report = program.simulate(file)
        figure(f"{program.schedule}: step of our Runtime", ours, "ms")
        figure(f"{program.schedule}: step of PyTorch's", took, "ms")
        figure(f"{program.schedule}: step as simulated", report.makespan, "ms")
        figure(f"{program.schedule}: bubble", 100 * (1 - busy / (program.num_ranks * ours)), "%")
        figure(f"{program.schedule}: bubble as simulated", 100 * (1 - busy / (program.num_ranks * report.makespan)), "%")


def runtimes() -> None:
    if ON_GPU and torch.cuda.device_count() < 2:
        figure("GPUs that two ranks share, so that no bubble is idle", 1)
    # Before 2.13 PyTorch's I and W may count gradients twice, so that load_torch_runtime refuses them.
    splits = ("zb1p",) if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13) else ()
    for name in ("one_f_one_b", "interleaved_1f1b", *splits):
        attempt(name, lambda: spawn.run(runtimes_on, 2, ppcc.compile(name, P=2, M=8).json))


# What a block takes.


def block() -> None:
    """Of the second of two stages: the first has no I."""
    become_rank(0, 1)
    found: dict[str, list[Tensor]] = {}
    for name, kinds in (("interleaved_1f1b", "FB"), ("zero_bubble_v", "IW")):
        runtime, step = prepare(ppcc.compile(name, P=1, M=8, V=2) if kinds == "FB" else ppcc.compile(name, P=1, M=8), 0)
        for _ in range(3):
            step()
        zero(runtime)
        with timed() as times:
            step()
        took = best(times)
        for kind in kinds:
            figure(f"{kind} of a block of width {WIDTH}, {ROWS} x {LENGTH} tokens, {DTYPE}", took[kind, 1], "ms")
        found[name] = gradients(runtime)
    off = max(float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-12)) for a, b in zip(*found.values(), strict=True))
    check("I and W give the gradients of B", off < (2e-2 if ON_GPU else 1e-5), f"off by {off} of their norm")


# A trace.


def trace_on(rank: int, text: str, folder: str) -> None:
    runtime, _ = prepare(ppcc.Program.from_json(text), rank, profile=True)
    batch = numbers(runtime.program.num_microbatches)
    runtime.step(batch, target=batch)
    kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * ON_GPU
    with torch.profiler.profile(activities=kinds) as profile:
        dist.barrier()
        runtime.step(batch, target=batch)
        wait()
    path = Path(folder, f"trace-rank{rank}.json.gz")
    profile.export_chrome_trace(str(path))
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    names = {event.get("name") for event in events}
    wanted = {str(action) for action in runtime.program.actions[rank] if not action.kind.is_message}
    check(f"rank {rank}: the trace has all actions", wanted <= names, wanted - names)
    if ON_GPU:
        kinds_found = {event.get("cat") for event in events}
        check(f"rank {rank}: the trace has kernels and copies", {"kernel", "gpu_memcpy"} <= kinds_found, kinds_found)
        streams = {event["tid"] for event in events if event.get("cat") == "kernel"}
        figure(f"rank {rank}: streams with kernels", len(streams))


def trace() -> None:
    program = ppcc.compile("dualpipe", P=2, M=8, rules=["offload"])
    attempt("dualpipe", lambda: spawn.run(trace_on, 2, program.json, os.environ["OUT"]))
    if not ON_GPU:
        skipped("kernels and copies in the trace", "no GPU", 2)


# A step as a graph.


def graph_on(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)
    runtime, step = prepare(program, rank)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
        zero(runtime)
        step()
    torch.cuda.current_stream().wait_stream(aside)
    wanted = gradients(runtime)
    eager = milliseconds(step)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        step()
    for _ in range(2):
        zero(runtime)
        graph.replay()
    wait()
    near = all(torch.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in zip(gradients(runtime), wanted, strict=True))
    check(f"{program.schedule}, rank {rank} of {program.num_ranks}: gradients of the graph", near, "they differ from those of a step")
    if rank == 0:
        figure(f"{program.schedule}, {program.num_ranks} ranks: step", eager, "ms")
        figure(f"{program.schedule}, {program.num_ranks} ranks: graph", milliseconds(graph.replay), "ms")


def graph() -> None:
    become_rank(0, 1)
    for name in ("one_f_one_b", "zb_h1"):
        attempt(f"{name}, 1 rank", lambda: graph_on(0, ppcc.compile(name, P=1, M=8).json))
    attempt("one_f_one_b, 2 ranks", lambda: spawn.run(graph_on, 2, ppcc.compile("one_f_one_b", P=2, M=8).json))


def attempt(name: str, run: Callable[[], None]) -> None:
    """The next one is tried, too."""
    if seconds_left() < 10:
        return skipped(name, "the time of the step is over")
    try:
        run()
    except Exception as error:
        failed(name, f"{type(error).__name__}: {error}")
    else:
        passed(f"{name} ends")


if __name__ == "__main__":
    torch.set_num_threads(1)
    {function.__name__: function for function in (overlap, memory, runtimes, block, trace, graph)}[sys.argv[1]]()
