"""Every schedule of the library with every wrapper: gradients equal those of the model without a pipeline, or the stage is refused before
anything of it has run. The table in docs/training-python.md says which; `PPCC_REWRITE=1` writes it anew.

Two processes, the ranks of the pipeline, run all cells of a wrapper, one after another; or four: two copies of it, or of each of its weights.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import Runtime, UsageError
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from . import spawn
from .models import WIDTH, Block, loss_fn, make_batch, train_alone

PAGE = Path(__file__).parents[3] / "docs/training-python.md"
BEGIN, END = "<!-- Written by python/tests/interop/test_matrix.py. -->", "<!-- The end of what it writes. -->"


class Stage(nn.Module):
    """A block, which `run` is called with; forwards that compute are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.out = Block(), nn.Linear(WIDTH, WIDTH)
        self.run: Callable[[nn.Module, Tensor], Any] = lambda block, x: block(x)
        self.num_forwards = 0

    def forward(self, x: Any) -> Any:
        x = x["hidden"] if isinstance(x, dict) else x.full_tensor() if isinstance(x, DTensor) else x
        self.num_forwards += not isinstance(x, FakeTensor)
        return self.run(self, x)


def plainly(stage: Any, x: Tensor) -> Any:
    return torch.tanh(stage.out(stage.block(x)))


def in_bf16(stage: Any, x: Tensor) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return plainly(stage, x).float()


def checkpointed(stage: Any, x: Tensor) -> Any:
    return torch.tanh(stage.out(checkpoint(stage.block, x, use_reentrant=False)))


def compiled(stage: Any, x: Tensor) -> Any:
    return torch.tanh(stage.out(compiled_block(stage.block, x)))


@torch.compile(backend="aot_eager", dynamic=False)
def compiled_block(block: nn.Module, x: Tensor) -> Tensor:
    return block(x)  # type: ignore[no-any-return]


def nested(stage: Any, x: Tensor) -> Any:
    return {"hidden": plainly(stage, x)}


def parallel(stage: Stage, mesh: DeviceMesh, *, gives_dtensor: bool = False) -> Stage:
    last = {"out": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)} if gives_dtensor else {}
    return parallelize_module(stage, mesh, {"block.up": ColwiseParallel(), "block.down": RowwiseParallel(), **last})  # type: ignore[return-value]


@dataclass(frozen=True)
class Wrapper:
    """What stages are wrapped in."""

    run: Callable[[Any, Tensor], Any] = plainly
    wrap: Callable[[Stage, DeviceMesh], nn.Module] = lambda stage, mesh: stage
    shares: bool = False
    """Gradients are averaged over copies of the pipeline."""
    copies: int = 1
    tied: bool = False
    bf16: bool = False
    dtensors: bool = False
    """Between stages."""


WRAPPERS = {
    "plain": Wrapper(),
    "DDP": Wrapper(wrap=lambda stage, mesh: DistributedDataParallel(stage, process_group=mesh.get_group()), shares=True, copies=2),
    "`fully_shard`": Wrapper(wrap=lambda stage, mesh: fully_shard(stage, mesh=mesh), shares=True, copies=2),
    "tensor parallel": Wrapper(wrap=parallel, copies=2),
    "DTensors between stages": Wrapper(wrap=lambda stage, mesh: parallel(stage, mesh, gives_dtensor=True), dtensors=True, copies=2),
    "checkpoints": Wrapper(checkpointed),
    "compiled blocks": Wrapper(compiled),
    "bf16 autocast, GradScaler": Wrapper(in_bf16, bf16=True),
    "tied weights": Wrapper(tied=True),
    "dicts between stages": Wrapper(nested),
}

REASONS = {
    "is for stages that fully_shard has cut up": "the program gathers weights, so `fully_shard` has to shard them",
    "cannot have replicas in other pipes": "sharded stages cannot have replicas in two pipes",
}
"""What a message says, and the table."""


def make_stages(wrapper: Wrapper, count: int) -> list[Stage]:
    torch.manual_seed(7)
    stages = [Stage().to(torch.float32 if wrapper.bf16 else torch.float64) for _ in range(count)]
    for stage in stages:
        stage.run = wrapper.run
    return stages


def data(wrapper: Wrapper, sequences: int) -> tuple[Tensor, Tensor]:
    batch, target = make_batch(sequences, length=4)
    return (batch.float(), target.float()) if wrapper.bf16 else (batch, target)


@cache
def reference(bf16: bool, tied: bool, count: int, sequences: int) -> list[dict[str, Tensor]]:
    """The gradients of each stage without a pipeline."""
    plain = Wrapper(in_bf16 if bf16 else plainly, tied=tied, bf16=bf16)
    stages = make_stages(plain, count)
    if tied:
        stages[-1].out.weight = stages[0].out.weight
    batch, target = data(plain, sequences)
    train_alone(stages, batch, target, sequences)
    return [{name: weight.grad for name, weight in stage.named_parameters() if weight.grad is not None} for stage in stages]


def loss(output: Any, target: Tensor) -> Tensor:
    output = output["hidden"] if isinstance(output, dict) else output
    return loss_fn(output.full_tensor() if isinstance(output, DTensor) else output, target)


def run_cell(program: ppcc.Program, wrapper: Wrapper, mesh: DeviceMesh, label: str) -> str:
    """Why it is refused; nothing where gradients are right."""
    here, copy = mesh.get_local_rank("pp"), mesh.get_local_rank("tp")
    count, times = max(pipe.num_stages for pipe in program.pipes), 1 + wrapper.shares
    stages = make_stages(wrapper, count)
    mine: dict[int, Any] = {stage: wrapper.wrap(stages[stage], mesh["tp"]) for stage in sorted({stage for _, stage in program.local_stages(here)})}
    sequences = times * program.num_microbatches // program.pipes[0].slices
    batch, target = (tensor.chunk(times)[copy % times] for tensor in data(wrapper, sequences))
    options: dict[str, Any] = {"tied": [{0: "out.weight", -1: "out.weight"}]} if wrapper.tied else {}
    if wrapper.bf16:
        optimizer = torch.optim.SGD([weight for module in mine.values() for weight in module.parameters()], lr=0.0)
        options |= {"optimizer": optimizer, "scaler": torch.amp.GradScaler("cpu")}
    try:
        options |= {"mesh": mesh} if wrapper.dtensors else {"group": mesh.get_group("pp")}
        runtime = Runtime(program, mine, loss_fn=loss, **options)
        runtime.step(batch, target=target)
    except UsageError as error:
        assert not any(stage.num_forwards for stage in stages), f"{label} has run before it was refused: {error}"
        assert not any(weight.grad is not None for module in mine.values() for weight in module.parameters())
        return str(error)
    if wrapper.bf16:
        assert runtime.step_optimizer(), f"{label}: the optimizer has not stepped"
    wanted = reference(wrapper.bf16, wrapper.tied, count, sequences)
    for stage, module in mine.items():
        for name, weight in module.named_parameters():
            got, want = weight.grad, wanted[stage][name.removeprefix("module.")]
            got = got.full_tensor() if isinstance(got, DTensor) else got
            assert got is not None, f"{label}, stage {stage}: {name} has no gradient"
            limit = 2e-2 * float(want.abs().max()) + 1e-5 if wrapper.bf16 else 1e-9
            deviation = float((got - want).abs().max())
            assert deviation <= limit, f"{label}, stage {stage}: {name} is off by {deviation}"
    return ""


def run_matrix(rank: int, copies: int, texts: dict[str, str], path: str) -> None:
    mesh = init_device_mesh("cpu", (2, copies), mesh_dim_names=("pp", "tp"))
    programs = [(name, ppcc.Program.from_json(text)) for name, text in texts.items()]
    # What is compiled for B first would donate saved tensors, so programs with I and W come first.
    programs.sort(key=lambda pair: not any(action.op == "W" for actions in pair[1].actions for action in actions))
    wrappers = {label: wrapper for label, wrapper in WRAPPERS.items() if wrapper.copies == copies}
    cells = {name: {label: run_cell(program, wrapper, mesh, f"{name}, {label}") for label, wrapper in wrappers.items()} for name, program in programs}
    if rank == 0:
        Path(path).write_text(json.dumps(cells))


def short_reason(message: str) -> str:
    if not message:
        return ""
    found = [reason for part, reason in REASONS.items() if part in message]
    assert found, f"refused for a reason that no table has: {message}"
    return found[0]


def table(cells: dict[str, dict[str, str]]) -> str:
    """Schedules of equal rows share one."""
    rows: dict[tuple[str, ...], list[str]] = {}
    reasons: list[str] = []
    for name in sorted(cells):
        row = []
        for label in WRAPPERS:
            reason = short_reason(cells[name][label])
            if reason and reason not in reasons:
                reasons.append(reason)
            row.append(f"refused ({reasons.index(reason) + 1})" if reason else "yes")
        rows.setdefault(tuple(row), []).append(f"`{name}`")
    lines = [f"| schedule | {' | '.join(WRAPPERS)} |", "|---" * (1 + len(WRAPPERS)) + "|"]
    lines += [f"| {', '.join(names)} | {' | '.join(row)} |" for row, names in rows.items()]
    notes = "; ".join(f"({number}) {reason}" for number, reason in enumerate(reasons, 1))
    return "\n".join([BEGIN, "", *lines, "", f"{notes}.", "", END])


@pytest.mark.skipif(not hasattr(FSDPModule, "finalize_backward"), reason="fully_shard: it needs PyTorch 2.15")
def test_every_schedule_with_every_wrapper(tmp_path: Path) -> None:
    texts = {info.name: ppcc.compile(info.name, P=2, M=4).json for info in ppcc.schedules() if "P" in info.parameters}
    for copies in (1, 2):
        spawn.run(run_matrix, 2 * copies, copies, texts, str(tmp_path / str(copies)))
    alone, copied = (json.loads((tmp_path / str(copies)).read_text()) for copies in (1, 2))
    cells = {name: {**alone[name], **copied[name]} for name in texts}
    assert len(cells) == 24 and all(len(row) == len(WRAPPERS) for row in cells.values())
    page, made = PAGE.read_text(), table(cells)
    before = re.search(f"{re.escape(BEGIN)}.*{re.escape(END)}", page, re.DOTALL)
    assert before is not None
    if os.environ.get("PPCC_REWRITE"):
        PAGE.write_text(page.replace(before[0], made))
    else:
        assert before[0] == made, "run this test with PPCC_REWRITE=1"
