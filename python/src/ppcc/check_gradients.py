"""Train one step by a schedule, and compare its gradients with those of the network without a pipeline.

    python -m ppcc.check_gradients zb1p -D P=4 -D M=8
    python -m ppcc.check_gradients mine.pp --with recompute --dtype float32
    python -m ppcc.check_gradients program.json --seed 3

A process for each rank, on gloo, runs a small transformer with `ppcc.torch.Runtime`: causal attention, a gated dense block, norms
and residuals, so that several paths lead through a stage and weights lie on all of them. Every parameter's gradient is compared
with that which autograd finds in float64 without a pipeline.

The exit code is 0 if all agree. It is 1 if one differs, which is named, or if the program cannot be compiled or run; 2 for wrong
arguments. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from . import Error, Pipe, Program, compile, load
from .torch import Runtime, SliceCache

WIDTH, HEADS, LENGTH, ROWS = 8, 2, 5, 2
TOLERANCES = {"float64": 1e-10, "float32": 1e-4}
"""The difference that rounding may make, relative to the largest gradient of the parameter."""
START_METHOD = "forkserver"
"""How processes start; see multiprocessing."""

StageKey = int | tuple[str, int]


class Block(nn.Module):
    """A stage: a layer of a transformer, which takes the outputs of one or several others."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.merge = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(inputs - 1))
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.cache = SliceCache()
        self.out = nn.Linear(WIDTH, WIDTH)
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        for merge, other in zip(self.merge, others, strict=True):
            x = x + merge(other)
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        k, v = self.cache(k, v)
        new, known = q.shape[-2], k.shape[-2]
        mask = torch.ones(new, known, dtype=torch.bool).triu(known - new + 1)
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(mask, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))
        x = x + self.down(torch.tanh(self.up(x * self.scale)))
        return x


def loss_fn(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().mean()


def _modules(program: Program, seed: int) -> dict[StageKey, nn.Module]:
    """The stages in float64, the same on every rank. Pipes with the same stages share them."""
    torch.manual_seed(seed)
    modules: dict[StageKey, nn.Module] = {}
    for pipe in program.pipes:
        for stage in range(pipe.num_stages):
            key = _key(program, pipe, stage)
            if key not in modules:
                modules[key] = Block(len(pipe.sources(stage))).double()
    return modules


def _key(program: Program, pipe: Pipe, stage: int) -> StageKey:
    shapes = {(other.num_stages, other.skip_edges, other.gaps) for other in program.pipes}
    return stage if len(shapes) == 1 else (pipe.name, stage)


def _train_unpipelined(program: Program, modules: dict[StageKey, nn.Module], batch: Tensor, target: Tensor) -> None:
    """Leaves the gradients of the mean of the losses in the modules."""
    sequences = iter(zip(*(tensor.chunk(len(tensor) // ROWS) for tensor in (batch, target)), strict=True))
    for pipe in sorted(program.pipes, key=lambda pipe: pipe.microbatches.start):
        for _ in pipe.microbatches[:: pipe.slices]:
            x, y = next(sequences)
            outputs: list[Tensor] = []
            for stage in range(pipe.num_stages):
                read = [outputs[source] for source in pipe.sources(stage)] or [x]
                outputs.append(modules[_key(program, pipe, stage)](*read))
            last = [stage for stage in range(pipe.num_stages) if not pipe.readers(stage)]
            loss = torch.stack([loss_fn(outputs[stage], y) for stage in last]).sum()
            torch.autograd.backward(loss * pipe.slices / program.num_microbatches)


def _compare(rank: int, program: Program, seed: int, dtype: str) -> tuple[list[tuple[str, float]], int]:
    """The differences of this rank that are too large, and how many gradients it has compared."""
    plain = _modules(program, seed)
    generator = torch.Generator().manual_seed(seed)
    sequences = sum(len(pipe.microbatches) // pipe.slices for pipe in program.pipes)
    shape = (sequences * ROWS, LENGTH * max(pipe.slices for pipe in program.pipes), WIDTH)
    batch, target = (torch.randn(shape, dtype=torch.float64, generator=generator) for _ in range(2))
    local = {_key(program, pipe, stage) for pipe, stage in program.local_stages(rank)}
    stages = {key: copy.deepcopy(plain[key]).to(getattr(torch, dtype)) for key in sorted(local, key=str)}
    _train_unpipelined(program, plain, batch, target)

    weights = [weight for module in stages.values() for weight in module.parameters()]
    optimizer = torch.optim.SGD(weights, lr=0) if weights else None  # For STEP.
    runtime = Runtime(program, stages, loss_fn=loss_fn, optimizer=optimizer)  # type: ignore[arg-type]
    runtime.step(batch.to(getattr(torch, dtype)), target=target.to(getattr(torch, dtype)))

    differences = []
    for key, module in stages.items():
        wanted = dict(plain[key].named_parameters())
        for name, weight in module.named_parameters():
            expected = wanted[name].grad
            assert expected is not None
            off = (
                float("inf")
                if weight.grad is None
                else float((weight.grad.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-30))
            )
            differences.append((f"`{name}` of stage {key if isinstance(key, int) else f'{key[1]} of pipe {key[0]}'}", off))
    return [(name, off) for name, off in differences if not off <= TOLERANCES[dtype]], len(differences)


def _worker(rank: int, folder: str, text: str, seed: int, dtype: str) -> None:
    program = Program.from_json(text)
    torch.set_num_threads(1)
    report: dict[str, object] = {}
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=program.num_ranks,
            timeout=timedelta(minutes=5),
        )
        report["differences"], report["count"] = _compare(rank, program, seed, dtype)
        dist.destroy_process_group()
    except Error as error:
        report["error"] = str(error)
    except Exception:
        report["error"] = traceback.format_exc()
    Path(folder, f"rank{rank}.json").write_text(json.dumps(report))


def check_gradients(program: Program, *, seed: int = 0, dtype: str = "float64") -> str | None:
    """Train one step by a program, a process for each rank, and compare with the network without a pipeline.

    Args:
        program: A program with a backward.
        seed: Of the weights and the data.
        dtype: The type in which the pipeline computes, `"float64"` or `"float32"`. The network without a pipeline computes in
            float64.

    Returns:
        None if all gradients agree; otherwise the first parameter that differs, in words.

    Raises:
        RuntimeError: The program cannot be run; the message is that of the first rank that failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context(START_METHOD)
        processes = [
            context.Process(target=_worker, args=(rank, folder, program.json, seed, dtype))  # type: ignore[attr-defined]
            for rank in range(program.num_ranks)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        reports: list[dict[str, Any]] = []
        for rank, process in enumerate(processes):
            file = Path(folder, f"rank{rank}.json")
            ended = {"error": f"the process of rank {rank} ended with exit code {process.exitcode}"}
            reports.append(json.loads(file.read_text()) if file.exists() else ended)
    errors = [report["error"] for report in reports if "error" in report]
    if errors:
        # What a rank raised by itself comes before what others raised because of it.
        raise RuntimeError(min(errors, key=lambda error: "because of" in error))
    for rank, report in enumerate(reports):
        assert report["count"] or not program.local_stages(rank), f"rank {rank} has compared nothing"
        for name, off in report["differences"]:
            return f"{name}, on rank {rank}, differs by {off:.2g} of its largest value"
    return None


def _parameter(text: str) -> tuple[str, int | bool | str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    words: dict[str, bool] = {"true": True, "false": False}
    try:
        return name, int(value)
    except ValueError:
        return name, words.get(value, value)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ppcc.check_gradients",
        description="Trains a small transformer for one step by a schedule, and compares every gradient with that of the network "
        "without a pipeline, in float64. Exit code 1: one differs.",
    )
    parser.add_argument("schedule", help="a schedule of the library, a .pp file, or a compiled program (.json)")
    parser.add_argument("-D", dest="params", metavar="NAME=VALUE", action="append", default=[], type=_parameter, help="a parameter")
    parser.add_argument("--with", dest="rules", metavar="RULE", action="append", default=[], help="a rule of std.pp to apply")
    parser.add_argument("--seed", type=int, default=0, help="of weights and data (default 0)")
    parser.add_argument("--dtype", choices=list(TOLERANCES), default="float64", help="of the pipeline (default float64)")
    options = parser.parse_args(arguments)
    params = dict(options.params)
    if len(params) != len(options.params):
        parser.error("a parameter is given twice")
    try:
        if options.schedule.endswith(".json"):
            microbatches = params.pop("M", None)
            if params or options.rules:
                parser.error("a compiled program takes only -D M=N, if it is for all M")
            program = load(options.schedule, microbatches=microbatches)
        else:
            program = compile(options.schedule, params=params, rules=options.rules or None)
        if not program.has_backward:
            raise RuntimeError("the program has no backward: there is nothing to compare")
        difference = check_gradients(program, seed=options.seed, dtype=options.dtype)
    except (Error, RuntimeError) as error:
        print(f"{os.path.basename(options.schedule)}: {error}", file=sys.stderr)
        return 1
    verdict = difference or f"gradients are those without a pipeline ({program.num_ranks} ranks)"
    print(f"{os.path.basename(options.schedule)}: {verdict}")
    return difference is not None


if __name__ == "__main__":
    multiprocessing.set_forkserver_preload(["torch"])  # Ranks are forked from one process that has imported PyTorch.
    sys.exit(main())
