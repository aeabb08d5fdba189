"""Small models cut into stages, and their gradients without a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ppcc
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, SliceCache, StepResult
from torch import Tensor, nn

from .where import DEVICE

WIDTH, ROWS = 6, 2
TOLERANCE = 1e-12


class Block(nn.Module):
    """A residual block with causal attention and a gate: several ways from input to output, weights on all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.cache = SliceCache()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        (read,) = self.cache(y)
        mask = torch.ones(y.shape[1], read.shape[1], dtype=torch.bool, device=y.device).triu(read.shape[1] - y.shape[1] + 1)
        x = x + self.attention(y, read, read, attn_mask=mask, need_weights=False)[0]
        return x + self.down(torch.tanh(self.up(x * self.scale)))


class Plain(nn.Module):
    """One way from input to output."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.inner(x))


def make_stages(count: int, block: type[nn.Module] = Block) -> list[nn.Module]:
    """The same stages on every rank."""
    torch.manual_seed(7)
    return [block().double() for _ in range(count)]


def make_batch(microbatches: int, device: torch.device | str = DEVICE, length: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(11)
    shape = (microbatches * ROWS, length, WIDTH)

    def numbers() -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator, device="cpu").to(device)

    return numbers(), numbers()


def loss_fn(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.mse_loss(output, target)


def reference(
    count: int, microbatches: int, block: type[nn.Module] = Block, device: torch.device | str = DEVICE, length: int = 3
) -> tuple[list[nn.Module], list[Tensor]]:
    """The stages with the gradients of the mean of all losses, and the losses."""
    stages = make_stages(count, block)
    return stages, train_alone(stages, *make_batch(microbatches, device, length), microbatches)


def train_alone(stages: Sequence[nn.Module], batch: Tensor, target: Tensor, microbatches: int, scale: float | None = None) -> list[Tensor]:
    """Adds the gradients of the mean of all losses, or of their sum times `scale`; returns the losses."""
    losses = []
    for x, y in zip(batch.tensor_split(microbatches), target.tensor_split(microbatches), strict=True):
        for stage in stages:
            x = stage(x)
        loss = loss_fn(x, y)
        (loss / microbatches if scale is None else loss * scale).backward()
        losses.append(loss.detach())
    return losses


def own_stages(program: ppcc.Program, rank: int, block: type[nn.Module] = Block) -> dict[int, Any]:
    """Those of a rank."""
    modules = make_stages(max(pipe.num_stages for pipe in program.pipes), block)
    return {stage: modules[stage] for _, stage in program.local_stages(rank)}


def check_step(
    rank: int, program: ppcc.Program, block: type[nn.Module] = Block, wanted: Sequence[nn.Module] | None = None, **options: Any
) -> tuple[Runtime, dict[int, Any], StepResult]:
    """Trains the stages of a rank for a step: their gradients are `wanted`, or else those without a pipeline."""
    mine = own_stages(program, rank, block)
    if wanted is None:
        wanted, _ = reference(max(pipe.num_stages for pipe in program.pipes), program.num_microbatches, block)
    runtime = Runtime(program, mine, loss_fn=loss_fn, **options)
    batch, target = make_batch(program.num_microbatches)
    result = runtime.step(batch, target=target)
    for stage, module in mine.items():
        assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
    return runtime, mine, result


def assert_same_gradients(module: nn.Module, wanted: nn.Module, label: str) -> None:
    for (name, got), want in zip(module.named_parameters(), wanted.parameters(), strict=True):
        assert got.grad is not None, f"{label}: {name} has no gradient"
        assert want.grad is not None
        difference = float((got.grad - want.grad).abs().max())
        assert difference <= TOLERANCE, f"{label}: {name} is off by {difference}"


def make_pipeline_groups(rank: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """Of two or four processes: the pipeline of this one, and those with its stages in all pipelines."""
    count = dist.get_world_size()
    pipelines = [range(first, first + 2) for first in range(0, count, 2)]
    made: list[Any] = [dist.new_group(list(ranks)) for ranks in [*pipelines, range(0, count, 2), range(1, count, 2)]]
    return made[rank // 2], made[len(pipelines) + rank % 2]


def batch_of_rank(rank: int, microbatches: int) -> tuple[Tensor, Tensor]:
    """What the pipeline of a process trains on, of twice as many microbatches."""
    batch, target = (tensor.chunk(2)[rank // 2] for tensor in make_batch(2 * microbatches))
    return batch, target
