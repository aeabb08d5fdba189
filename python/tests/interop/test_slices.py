"""Slices of sequences: gradients are those of whole sequences; how stages learn their slice, and what they keep."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import Runtime, SliceCache, UsageError, current_action
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from . import spawn
from .models import TOLERANCE, WIDTH, assert_same_gradients, loss_fn

SEQUENCES, LENGTH = 2, 8
TERAPIPE = """
// All slices forward, then all back, cut by rows of the batch and by positions: TeraPipe.
schedule terapipe(P: int = 2, M: int = 2, n: int = 4, split: bool = false) {
  ranks P; microbatches M * n; slices n; placement linear;
  on rank r {
    repeat M * n { F; }
    repeat M * n { if split { I; } else { B; } }
    if split { drain W; }
  }
}
"""


class Block(nn.Module):
    """Grouped-query attention on keys that were rotated by their positions."""

    def __init__(self, *, checkpointed: bool = False) -> None:
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4), nn.Linear(WIDTH, WIDTH)
        self.cache, self.checkpointed = SliceCache(), checkpointed

    def forward(self, x: Tensor, *, positions: Tensor) -> Tensor:
        return checkpoint(self.run, x, positions, use_reentrant=False) if self.checkpointed else self.run(x, positions)  # type: ignore[no-any-return]

    def run(self, x: Tensor, positions: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (3, 2)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, 1, 2)).movedim((2, 3), (0, 2))
        k, v = self.cache(k * positions[:, None, :, None].cos(), v)
        heads = (part.expand(-1, 3, -1, -1) for part in (k, v))
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        read = scaled_dot_product_attention(q, *heads, attn_mask=mask)
        return x + torch.tanh(self.out(read.transpose(1, 2).flatten(2)))


def make_stages(count: int, **options: bool) -> list[nn.Module]:
    torch.manual_seed(5)
    return [Block(**options).double() for _ in range(count)]


def data() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    batch, target = (torch.randn(2 * SEQUENCES, LENGTH, WIDTH, dtype=torch.float64, generator=generator, device="cpu") for _ in range(2))
    return batch, target, torch.arange(LENGTH, dtype=torch.float64).expand(2 * SEQUENCES, LENGTH)


def reference(count: int, loss: Callable[[Tensor, Tensor], Tensor] = loss_fn) -> list[nn.Module]:
    stages = make_stages(count)
    for x, y, positions in zip(*(tensor.chunk(SEQUENCES) for tensor in data()), strict=True):
        for stage in stages:
            x = stage(x, positions=positions)
        (loss(x, y) / SEQUENCES).backward()
    return stages


def run_one(rank: int, program: ppcc.Program, label: str, **options: Any) -> None:
    count = program.pipes[0].num_stages
    modules = make_stages(count, checkpointed="checkpoint" in label)
    mine = {stage: modules[stage] for _, stage in program.local_stages(rank)}
    runtime = Runtime(program, mine, loss_fn=loss_fn, **options)
    batch, target, positions = data()
    for _ in range(2):
        for module in mine.values():
            module.zero_grad()
        result = runtime.step(batch, target=target, positions=positions, share_losses=True)
    for stage, module in mine.items():
        assert_same_gradients(module, reference(count)[stage], f"{label}, stage {stage}")
    evaluated = runtime.eval(batch, target=target, positions=positions, share_losses=True)
    assert result.loss is not None and evaluated.loss is not None and abs(float(evaluated.loss - result.loss)) <= TOLERANCE
    assert current_action() is None


def summed(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().sum()


def run_unequal(rank: int, program: ppcc.Program) -> None:
    """Slices of several lengths, as a list."""
    modules = make_stages(2)
    runtime = Runtime(program, {rank: modules[rank]}, loss_fn=summed, scale_grads=False, variable_shapes=True)
    cut = [[part for sequence in tensor.chunk(SEQUENCES) for part in sequence.split([4, 1, 2, 1], 1)] for tensor in data()]
    runtime.step(cut[0], target=cut[1], positions=cut[2])
    (wanted,) = [reference(2, lambda output, target: SEQUENCES * summed(output, target))[rank]]
    assert_same_gradients(modules[rank], wanted, f"unequal slices, rank {rank}")


def run_all(rank: int, cases: dict[str, str]) -> None:
    for label, text in cases.items():
        program = ppcc.Program.from_json(text)
        if label == "unequal":
            run_unequal(rank, program)
        else:
            run_one(rank, program, label)


def test_gradients_equal_those_of_whole_sequences() -> None:
    split, sliced = (ppcc.compile_source(TERAPIPE, split=split) for split in (True, False))
    cases = {
        "seq1f1b": ppcc.compile("seq1f1b", P=2, M=2, n=4),
        "seq1f1b, checkpoints": ppcc.compile("seq1f1b", P=2, M=2, n=4),
        "slimpipe": ppcc.compile("slimpipe", P=2, M=2, n=4, V=2),
        "slimpipe, recomputed": ppcc.compile("slimpipe", P=2, M=2, n=2, V=2, rules=["recompute(1, 1)"]),
        "seq1f1b, offloaded": ppcc.compile("seq1f1b", P=2, M=2, n=4, rules=["offload"]),
        "split": split,
        "split, checkpoints": split,
        "unequal": sliced,
    }
    spawn.run(run_all, 2, {label: program.json for label, program in cases.items()})


def alone(**params: int) -> ppcc.Program:
    return ppcc.compile_source(TERAPIPE, P=1, M=1, **params)


def test_slices_share_the_memory_of_keys() -> None:
    (module,) = make_stages(1)
    read: list[Tensor] = []
    module.cache.register_forward_hook(lambda cache, given, returned: read.append(returned[0].detach()))  # type: ignore[union-attr]
    batch, target, positions = (tensor[:2] for tensor in data())
    Runtime(alone(n=4), {0: module}, loss_fn=loss_fn).step(batch, target=target, positions=positions)
    of_slices = read[-4:]
    assert [keys.shape[2] for keys in of_slices] == [2, 4, 6, 8]
    assert len({keys.untyped_storage().data_ptr() for keys in of_slices}) == 1


class Own(nn.Module):
    """Takes slices without a cache: its state is the sum of what it has read."""

    takes_slices = True

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.seen: list[tuple[str, int]] = []

    def forward(self, x: Tensor) -> Tensor:
        if action := current_action():
            self.seen.append((str(action), action.slice))
        return self.inner(x)  # type: ignore[no-any-return]


def test_a_stage_learns_its_slice() -> None:
    module = Own().double()
    batch, target, _ = data()
    Runtime(ppcc.compile("seq1f1b", P=1, M=2, n=2), {0: module}, loss_fn=loss_fn).step(batch, target=target)
    assert module.seen == [("0F0", 0), ("0F1", 1), ("0F2", 0), ("0F3", 1)]


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.cache = nn.Linear(WIDTH, WIDTH), SliceCache()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(self.cache(self.cache(x)[0])[0])  # type: ignore[no-any-return]


class Unused(Twice):
    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)  # type: ignore[no-any-return]


class Reentrant(Twice):
    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(lambda y: self.inner(self.cache(y)[0][:, -y.shape[1] :]), x.requires_grad_(), use_reentrant=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("stage", "reason"),
    [(Twice, "0F0 calls a SliceCache twice"), (Unused, "0F0 has not called each SliceCache"), (Reentrant, "use checkpoints with use_reentrant=False")],
)
def test_caches_that_would_miss_gradients_are_refused(stage: type[nn.Module], reason: str) -> None:
    batch, target, _ = data()
    runtime = Runtime(alone(n=2), {0: stage().double()}, loss_fn=loss_fn)
    with pytest.raises(UsageError, match=re.escape(reason)):
        runtime.step(batch, target=target)


def test_batches_that_cannot_be_cut_are_refused() -> None:
    batch, target, positions = data()
    runtime = Runtime(alone(n=4), dict(enumerate(make_stages(1))), loss_fn=loss_fn)
    with pytest.raises(UsageError, match=re.escape("the batch of shape [4, 7, 6] cannot be cut into 4 equal slices along dimension 1")):
        runtime.step(batch[:, :7], target=target, positions=positions)


def test_compiled_stages_learn_and_keep_slices() -> None:
    batch, target, positions = data()
    module, own = make_stages(1)[0], Own().double()
    stage: Any = torch.compile(module, backend="aot_eager")
    Runtime(ppcc.compile_source(TERAPIPE, P=1, M=2), {0: stage}, loss_fn=loss_fn).step(batch, target=target, positions=positions)
    assert_same_gradients(module, reference(1)[0], "compiled")
    stage = torch.compile(own, backend="aot_eager")
    Runtime(ppcc.compile("seq1f1b", P=1, M=2, n=2), {0: stage}, loss_fn=loss_fn).step(batch, target=target)
    assert own.seen == [("0F0", 0), ("0F1", 1), ("0F2", 0), ("0F3", 1)]
