"""What training needs beside the pipeline, and the norm; losses over many steps are in test_semantics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed.checkpoint as dcp
from ppcc.torch import Checkpoint, Runtime, UsageError
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from . import spawn
from .models import TOLERANCE, Plain, assert_same_gradients, loss_fn, make_batch, make_stages, own_stages, reference, train_alone

MAX_NORM = 0.5
FINALIZES = hasattr(torch.distributed.fsdp.FSDPModule, "finalize_backward")
"""Whether fully_shard allows I and W."""

# Beside the pipeline: copies, FSDP, tensor parallelism.


def run_mesh(rank: int, texts: list[str], kind: str) -> None:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", kind))
    here, copy = mesh.get_local_rank("pp"), mesh.get_local_rank(kind)
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = program.pipes[0].num_stages
        times = 1 if kind == "tp" else 2
        wanted, _ = reference(count, times * program.num_microbatches)
        whole = torch.nn.utils.clip_grad_norm_([weight for stage in wanted for weight in stage.parameters()], MAX_NORM / 100)
        batch, target = (tensor.chunk(times)[copy % times] for tensor in make_batch(times * program.num_microbatches))
        mine = own_stages(program, here)
        for module in mine.values():
            if kind == "fsdp":
                fully_shard(module, mesh=mesh["fsdp"])
            if kind == "tp":
                parallelize_module(module, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        has_split_backward = any(action.op == "W" for action in program.actions[0])
        if kind == "fsdp" and has_split_backward and not FINALIZES:
            with pytest.raises(UsageError, match="stage . is sharded, which needs PyTorch 2.15 for I and W"):
                Runtime(program, mine, loss_fn=loss_fn, mesh=mesh)
            continue
        runtime = Runtime(program, mine, loss_fn=loss_fn, mesh=mesh)
        if kind == "fsdp" and not has_split_backward:
            for sharded in runtime._linked.sharded.values():
                sharded._finalizes = False  # As before PyTorch 2.15.
        runtime.step(batch, target=target)
        norm = runtime.clip_grad_norm_(MAX_NORM / 100)
        assert abs(float(norm - whole)) <= TOLERANCE, f"{kind}, {program.name}: {norm}, but {whole}"
        for stage, module in mine.items():
            for (name, got), want in zip(module.named_parameters(), wanted[stage].parameters(), strict=True):
                gradient = got.grad.full_tensor() if isinstance(got.grad, DTensor) else got.grad
                assert gradient is not None and want.grad is not None
                difference = float((gradient - want.grad).abs().max())
                assert difference <= TOLERANCE, f"{kind}, {program.name}, stage {stage}: {name} is off by {difference}"


@pytest.mark.parametrize("kind", ["dp", "fsdp", "tp"])
def test_a_mesh_has_more_than_the_pipeline(kind: str) -> None:
    programs = [ppcc.compile("one_f_one_b", P=2, M=4), ppcc.compile("zb1p", P=2, M=4)]  # test_matrix has fully_shard with B.
    spawn.run(run_mesh, 4, [program.json for program in programs], kind)


def run_other_dimension(rank: int, text: str) -> None:
    from torch.distributed.fsdp import fully_shard

    (module,) = make_stages(1, Plain)
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("pp", "dp_replicate"))
    with pytest.raises(UsageError, match="nothing reduces the gradients of `inner.weight` of stage 0 over the dimension `dp_replicate`"):
        Runtime(ppcc.Program.from_json(text), {0: module}, loss_fn=loss_fn, mesh=mesh)
    fully_shard(module, mesh=mesh["dp_replicate"])
    runtime = Runtime(ppcc.Program.from_json(text), {0: module}, loss_fn=loss_fn, mesh=mesh)
    batch, target = make_batch(4)
    runtime.eval(batch)  # Its weights are gathered now.
    runtime.set_program(ppcc.compile("gpipe", P=1, M=2))


def test_a_dimension_of_the_mesh_that_reduces_nothing_is_refused() -> None:
    spawn.run(run_other_dimension, 2, ppcc.compile("gpipe", P=1, M=4).json)


# The norm of replicas and tied weights.


def run_norm(rank: int, text: str, norm_type: float) -> None:
    program = ppcc.Program.from_json(text)
    count = program.pipes[0].num_stages
    wanted: Any = make_stages(count, Plain)
    wanted[-1].inner.weight = wanted[0].inner.weight
    batch, target = make_batch(program.num_microbatches)
    train_alone(wanted, batch, target, program.num_microbatches)
    weights = dict.fromkeys(weight for stage in wanted for weight in stage.parameters())
    whole = torch.nn.utils.clip_grad_norm_(weights, 0.01, norm_type)
    mine = own_stages(program, rank, Plain)
    runtime = Runtime(program, mine, loss_fn=loss_fn, tied=[{0: "inner.weight", -1: "inner.weight"}])
    runtime.step(batch, target=target)
    assert abs(float(runtime.clip_grad_norm_(0.01, norm_type) - whole)) <= TOLERANCE
    for stage, module in mine.items():
        assert_same_gradients(module, wanted[stage], f"rank {rank}, stage {stage}")


@pytest.mark.parametrize("norm_type", [2.0, float("inf")])
def test_grad_norm_counts_shared_weights_once(norm_type: float) -> None:
    spawn.run(run_norm, 2, ppcc.compile("dualpipe", P=2, M=4).json, norm_type)


# Compiled stages.


def run_compiled(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = program.pipes[0].num_stages
        wanted, _ = reference(count, program.num_microbatches, Plain)
        modules = make_stages(count, Plain)
        mine = {stage: torch.compile(modules[stage], backend="aot_eager") for _, stage in program.local_stages(rank)}
        batch, target = make_batch(program.num_microbatches)
        Runtime(program, mine, loss_fn=loss_fn).step(batch, target=target)  # type: ignore[arg-type]
        for stage in mine:
            assert_same_gradients(modules[stage], wanted[stage], f"{program.name}, rank {rank}, stage {stage}")


def test_stages_may_be_compiled() -> None:
    """Those of schedules with B; see test_wrappers.py."""
    programs = [ppcc.compile("one_f_one_b", P=2, M=4), ppcc.compile("gpipe", P=2, M=4)]
    spawn.run(run_compiled, 2, [program.json for program in programs])


def run_compiled_checkpoint(rank: int, text: str, folder: str) -> None:
    for wraps_part in (False, True):
        (module,) = make_stages(1, Plain)
        with torch.no_grad():
            module.inner.weight.add_(rank)  # type: ignore[union-attr, operator]
        compiled: Any = torch.compile(module, backend="eager")
        optimizer = torch.optim.Adam(module.parameters())
        stage = nn.Sequential(compiled) if wraps_part else compiled
        runtime = Runtime(ppcc.Program.from_json(text), {rank: stage}, loss_fn=loss_fn, optimizer=optimizer)
        batch, target = make_batch(4)
        runtime.step(batch, target=target)
        runtime.step_optimizer()
        moments = [state["exp_avg"] for state in optimizer.state.values()]
        before = [value.detach().clone() for value in (*module.parameters(), *moments)]
        path = f"{folder}/{wraps_part}"
        dcp.save({"train": Checkpoint(runtime)}, checkpoint_id=path)
        with torch.no_grad():
            for value in (*module.parameters(), *moments):
                value.zero_()
        dcp.load({"train": Checkpoint(runtime)}, checkpoint_id=path)
        moments = [state["exp_avg"] for state in optimizer.state.values()]
        assert all(map(torch.equal, before, (*module.parameters(), *moments)))
    with pytest.raises(UsageError, match=r"two weights or buffers would be saved as `0.inner.weight`: \(0, '0.inner.weight'\) and \(1"):
        Checkpoint(runtime, lambda stage, name: name)
    tied = Runtime(ppcc.Program.from_json(text), {rank: module}, loss_fn=loss_fn, tied=[{0: "inner.weight", -1: "inner.weight"}])
    state = Checkpoint(tied, lambda stage, name: name if name == "inner.weight" else f"{stage}.{name}")
    with pytest.raises(UsageError, match="the state has `strange`, which is of no weight"):
        state.load_state_dict({"model": {"strange": torch.zeros(1)}})


def test_checkpoints_of_compiled_stages_keep_ranks_apart(tmp_path: Path) -> None:
    spawn.run(run_compiled_checkpoint, 2, ppcc.compile("one_f_one_b", P=2, M=4).json, str(tmp_path))


def test_clipping_by_hand_unscales_first() -> None:
    (wanted,), _ = reference(1, 4, Plain)
    whole = torch.nn.utils.clip_grad_norm_(wanted.parameters(), 0.1)
    batch, target = make_batch(4)
    for enabled in (True, False):
        (module,) = make_stages(1, Plain)
        before = [weight.detach().clone() for weight in module.parameters()]
        optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
        scaler = torch.amp.GradScaler("cpu", enabled=enabled)
        runtime = Runtime(ppcc.compile("gpipe", P=1, M=4), {0: module}, loss_fn=loss_fn, optimizer=optimizer, scaler=scaler)
        for _ in range(2):
            with torch.no_grad():
                for weight, value in zip(module.parameters(), before, strict=True):
                    weight.copy_(value)
            optimizer.zero_grad()
            runtime.step(batch, target=target)
            assert abs(float(runtime.clip_grad_norm_(0.1) - whole)) <= TOLERANCE
            assert runtime.step_optimizer()
            for weight, value, want in zip(module.parameters(), before, wanted.parameters(), strict=True):
                assert want.grad is not None and float((value - weight - want.grad).detach().abs().max()) <= TOLERANCE


def test_scaler_and_max_norm_require_an_optimizer() -> None:
    with pytest.raises(UsageError, match="`scaler` and `max_norm` are for an optimizer"):
        Runtime(ppcc.compile("gpipe", P=1, M=2), {0: Plain()}, loss_fn=loss_fn, max_norm=1.0)
    with pytest.raises(UsageError, match="give the Runtime an optimizer"):
        Runtime(ppcc.compile("gpipe", P=1, M=2), {0: Plain()}, loss_fn=loss_fn).step_optimizer()
