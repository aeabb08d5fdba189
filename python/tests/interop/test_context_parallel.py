"""Sequences that several ranks divide among them: attention meets in a context around a step, as that of torch.distributed.tensor.experimental does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, UsageError
from torch import Tensor, nn
from torch.distributed import _functional_collectives as collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn import functional

from . import spawn
from .models import TOLERANCE
from .where import DEVICE

LENGTH, WIDTH, HEADS, M, ROWS = 8, 8, 2, 4, 2


class Attention(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        torch.manual_seed(number)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, dtype=torch.float64), nn.Linear(WIDTH, WIDTH, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).transpose(1, 3).unbind(2)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))


@contextmanager
def divided_sequences(group: dist.ProcessGroup) -> Iterator[None]:
    """Attention inside of it reads the keys and values of all ranks of the group."""
    gather: Any = getattr(collectives, "all_gather_single_autograd", None) or collectives.all_gather_tensor_autograd
    before = functional.scaled_dot_product_attention

    def attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
        keys, values = (gather(one.contiguous(), 2, group) for one in (k, v))
        first, length = dist.get_rank(group) * q.shape[2], q.shape[2]
        mask = torch.ones(length, keys.shape[2], dtype=torch.bool, device=q.device).tril(first)
        return before(q, keys, values, attn_mask=mask)

    functional.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = before


def make_batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(100)
    batch, target = torch.randn(2, M * ROWS, LENGTH, WIDTH, dtype=torch.float64)
    return batch.to(DEVICE), target.to(DEVICE)


def run_divided(rank: int, names: list[str]) -> None:
    mesh = init_device_mesh(DEVICE.type, (2, 2), mesh_dim_names=("pp", "dp"))
    batch, target = make_batch()
    for name in names:
        program = ppcc.compile(name, P=2, M=M, **({"rules": "recompute"} if name == "one_f_one_b" else {}))
        whole = nn.Sequential(*map(Attention, range(program.pipes[0].num_stages))).to(DEVICE)
        for one, wanted in zip(batch.chunk(M), target.chunk(M), strict=True):
            (functional.mse_loss(whole(one), wanted) / M).backward()
        stages = {stage: Attention(stage).to(DEVICE) for _, stage in program.local_stages(mesh.get_local_rank("pp"))}
        runtime = Runtime(program, stages, loss_fn=functional.mse_loss, mesh=mesh)
        own_batch, own_target = (one.chunk(2, dim=1)[mesh.get_local_rank("dp")] for one in (batch, target))
        for _ in range(2):
            for stage in stages.values():
                stage.zero_grad()
            with divided_sequences(mesh.get_group("dp")):
                runtime.step(own_batch, target=own_target)
            for number, stage in stages.items():
                for found, wanted in zip(stage.parameters(), whole[number].parameters(), strict=True):
                    torch.testing.assert_close(found.grad, wanted.grad, rtol=0, atol=TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")


def test_divided_sequences_train_to_the_same_gradients() -> None:
    """B, I and W, two stages a rank, and forwards that are repeated, in which ranks meet again."""
    spawn.run(run_divided, 4, ["gpipe", "one_f_one_b", "zb_h1", "zero_bubble_v"])


def run_refused(rank: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "cp"))
    program = ppcc.compile("zb_h1", P=2, M=M)
    own = mesh.get_local_rank("pp")
    with pytest.raises(UsageError, match="nothing reduces the gradients of `qkv.weight` of stage . over the dimension `cp` of the mesh: name it `dp`"):
        Runtime(program, {own: Attention(own)}, loss_fn=functional.mse_loss, mesh=mesh)
    # PyTorch's own ring has no kernel on CPUs.
    runtime = Runtime(program, {own: Attention(own)}, loss_fn=functional.mse_loss, group=mesh.get_group("pp"))
    batch, target = make_batch()
    with context_parallel(mesh["cp"], buffers=[batch, target], buffer_seq_dims=[1, 1]):
        with pytest.raises(UsageError, match=r"stage 0 does not take float64\[2, 4, 8\]: "):
            runtime.step(batch, target=target)
    assert all(weight.grad is None for weight in runtime.stages[own].parameters())


@pytest.mark.skipif(DEVICE.type != "cpu", reason="PyTorch's context_parallel has kernels there")
def test_what_cannot_run_is_refused_before_the_first_step() -> None:
    spawn.run(run_refused, 4)
