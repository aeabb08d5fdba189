"""The library on the Runtime, two steps: gradients against those of the network on the host, in float64, without a pipeline.

    train.py RANKS
"""

from __future__ import annotations

import copy
import functools
import sys
from typing import Any

import ppcc
import torch
import torch.distributed as dist
from ppcc.torch import Runtime
from tests.interop import spawn
from tests.interop.models import loss_fn, make_batch, make_stages, reference
from tests.interop.test_runtime import ELSEWHERE, has_ranks, values
from tests.interop.where import DEVICE
from torch import nn

from results import failed, passed, seconds_left, skipped

TOLERANCES = {"float32": 1e-5, "bfloat16": 5e-2}
"""Of the gradients of a stage, relative to their norm; a microbatch left out is an eighth."""
VARIANTS: list[tuple[str, dict[str, str], str]] = [
    ("", {}, "float32"),
    (" stream-per-edge", {"transport": "stream-per-edge"}, "float32"),
    (" fused", {"fuse": "batch"}, "float32"),
    (" stream-per-edge fused", {"transport": "stream-per-edge", "fuse": "batch"}, "float32"),
    (" bfloat16", {}, "bfloat16"),
    (" stream-per-edge bfloat16", {"transport": "stream-per-edge"}, "bfloat16"),
    (" fused bfloat16", {"fuse": "batch"}, "bfloat16"),
    (" stream-per-edge fused bfloat16", {"transport": "stream-per-edge", "fuse": "batch"}, "bfloat16"),
]
Case = tuple[str, str, str]


def cases(ranks: int) -> list[Case]:
    """As names, programs and types. On two ranks of a GPU each schedule in all variants, else in one of them."""
    infos = [info for info in ppcc.schedules() if has_ranks(info) and info.name not in ELSEWHERE]
    found = []
    for turn in range(len(VARIANTS) if DEVICE.type != "cpu" and ranks == 2 else 1):
        for number, info in enumerate(infos):
            suffix, options, dtype = VARIANTS[(turn + number + ranks // 4) % len(VARIANTS)]
            program = ppcc.compile(info.name, params=values(info, ranks), **options)  # type: ignore[arg-type]
            found.append((f"{info.name}{suffix}", program.json, dtype))
    return found


@functools.cache
def on_the_host(count: int, sequences: int, length: int) -> list[nn.Module]:
    with torch.device("cpu"):
        return reference(count, sequences, device="cpu", length=length)[0]


def distance(module: nn.Module, wanted: nn.Module) -> float:
    off = size = 0.0
    for (name, found), expected in zip(module.named_parameters(), wanted.parameters(), strict=True):
        assert found.grad is not None and expected.grad is not None, name
        off += float((found.grad.cpu().double() - expected.grad).square().sum())
        size += float(expected.grad.square().sum())
    return (off / size) ** 0.5


def train(rank: int, program: ppcc.Program, dtype: torch.dtype) -> float:
    """The largest distance of this rank."""
    count = max(pipe.num_stages for pipe in program.pipes)
    slices = program.pipes[0].slices
    sequences, length = program.num_microbatches // slices, slices if slices > 1 else 3
    wanted = on_the_host(count, sequences, length)
    with torch.device("cpu"):
        fresh = make_stages(count)
    mine = {stage: copy.deepcopy(fresh[stage]).to(DEVICE, dtype) for _, stage in program.local_stages(rank)}
    batch, target = (tensor.to(dtype) for tensor in make_batch(sequences, length=length))
    runtime = Runtime(program, mine, loss_fn=loss_fn)
    worst = 0.0
    for _ in range(2):
        for module in mine.values():
            module.zero_grad()
        runtime.step(batch, target=target)
        worst = max(worst, *(distance(module, wanted[stage]) for stage, module in mine.items()))
    return worst


def run(rank: int, given: list[Case]) -> None:
    for number, (name, text, dtype) in enumerate(given):
        left: list[Any] = [seconds_left()]
        dist.broadcast_object_list(left)
        if left[0] < 8:
            if rank == 0:
                skipped(name, "the time of the step is over", len(given) - number)
            return
        found: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(found, train(rank, ppcc.Program.from_json(text), getattr(torch, dtype)))
        if rank == 0:
            wrong = max(found) > TOLERANCES[dtype] or max(found) != max(found)
            failed(name, f"gradients are off by {found} of their norm") if wrong else passed(name)
            print(f"{name}: {max(found):.2e}", flush=True)
        for group in list(dist.distributed_c10d._world.pg_map):
            if group is not dist.group.WORLD:
                dist.destroy_process_group(group)


def main() -> None:
    ranks = int(sys.argv[1])
    spawn.run(run, ranks, cases(ranks))


if __name__ == "__main__":
    main()
