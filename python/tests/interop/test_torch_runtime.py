"""Programs on PyTorch's own runtime, from the CSV in both forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import ppcc
import pytest
import torch
from ppcc.torch import UsageError, load_torch_runtime
from ppcc.torch._interop import prepare_stage
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, schedules

from . import spawn
from .models import TOLERANCE, assert_same_gradients, batch_of_rank, loss_fn, make_batch, make_pipeline_groups, make_stages, reference
from .where import DEVICE

Form = Literal["compute_comms", "compute_only"]
FORMS: list[Form] = ["compute_comms", "compute_only"]
RANKS = 4
TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
SPLITS = TORCH >= (2, 13)
"""Whether PyTorch's I and W are right."""


def programs() -> list[ppcc.Program]:
    found = [ppcc.compile("one_f_one_b", P=RANKS, M=8), ppcc.compile("interleaved_1f1b", P=RANKS, M=8, V=2)]
    return found + [ppcc.compile(name, P=RANKS, M=8) for name in ("zb1p", "zero_bubble_v", "dualpipe_v") if SPLITS]


def declaring() -> list[ppcc.Program]:
    """What PyTorch has of std.pp, where the schedule says; RESHARD before and after REDUCE_GRAD."""
    rules = [["fsdp", "reduce_grads"], ["reduce_grads(2)", "fsdp"], ["fsdp"], ["reduce_grads"]]
    found = [ppcc.compile("interleaved_1f1b", P=RANKS // 2, M=4, V=2, rules=names) for names in rules]
    return [*found, ppcc.compile("zb1p", P=RANKS // 2, M=4, rules=["fsdp", "reduce_grads"])] if SPLITS else found


def run_all(rank: int, texts: list[str]) -> None:
    for text in texts:
        for form in FORMS:
            run_one(rank, ppcc.Program.from_json(text), form)


def run_one(rank: int, program: ppcc.Program, form: Form) -> None:
    (pipe,) = program.pipes
    wanted, expected = reference(pipe.num_stages, program.num_microbatches)
    modules = make_stages(pipe.num_stages)
    mine = [
        PipelineStage(modules[stage], stage, pipe.num_stages, DEVICE)
        for _, stage in program.local_stages(rank)
    ]
    if TORCH < (2, 15):
        # For NCCL, neighbours greet each other first. In a V a rank greets itself, which gloo cannot.
        for stage_of_torch in mine:
            stage_of_torch._get_init_p2p_neighbors_ops = lambda: []
    runtime = load_torch_runtime(program, mine, format=form, loss_fn=loss_fn, scale_grads=True)
    batch, target = make_batch(program.num_microbatches)
    losses: list[torch.Tensor] = []
    options: dict[str, Any] = {}
    if pipe.rank_of_stage[-1] == rank:
        options = {"target": target, "losses": losses}
    runtime.step(*([batch] if pipe.rank_of_stage[0] == rank else []), **options)
    for _, stage in program.local_stages(rank):
        assert_same_gradients(modules[stage], wanted[stage], f"{program.name}, {form}, rank {rank}, stage {stage}")
    if options:
        assert len(losses) == program.num_microbatches
        for loss, want in zip(losses, expected, strict=True):
            assert abs(float(loss - want)) <= TOLERANCE


def test_gradients_equal_those_without_a_pipeline() -> None:
    spawn.run(run_all, RANKS, [program.json for program in programs()])


def run_sharded(rank: int, texts: list[str]) -> None:
    """Two make_pipeline_groups, whose stages share their weights."""
    from torch.distributed.fsdp import fully_shard

    pipeline, copies = make_pipeline_groups(rank)
    mesh = DeviceMesh.from_group(copies, DEVICE.type)
    for text in texts:
        program = ppcc.Program.from_json(text)
        has_steps = "UNSHARD" in program.to_csv()
        (pipe,) = program.pipes
        wanted, _ = reference(pipe.num_stages, 2 * program.num_microbatches)
        modules = make_stages(pipe.num_stages)
        mine = [stage for _, stage in program.local_stages(rank % 2)]
        for stage in mine:
            fully_shard(modules[stage], mesh=mesh)
        stages = [
            PipelineStage(modules[stage], stage, pipe.num_stages, DEVICE, group=pipeline) for stage in mine
        ]
        runtime = load_torch_runtime(program, stages, fsdp=not has_steps, loss_fn=loss_fn, scale_grads=True)
        batch, target = batch_of_rank(rank, program.num_microbatches)
        options: dict[str, Any] = {"target": target, "losses": []} if rank % 2 == 1 else {}
        runtime.step(*([batch] if rank % 2 == 0 else []), **options)
        for stage in mine:
            for (name, got), want in zip(modules[stage].named_parameters(), wanted[stage].parameters(), strict=True):
                assert got.grad is not None and want.grad is not None
                difference = float((got.grad.full_tensor() - want.grad).abs().max())  # type: ignore[attr-defined]
                assert difference <= TOLERANCE, f"{program.to_csv()}rank {rank}, stage {stage}: {name} is off by {difference}"


@pytest.mark.skipif(TORCH < (2, 15), reason="FSDP on gloo is tested with PyTorch 2.15")
def test_declared_steps_run_where_they_stand() -> None:
    spawn.run(run_sharded, RANKS, [program.json for program in declaring()])


def test_refuses_what_pytorch_has_no_action_for() -> None:
    for rule, cell in [("recompute", "0R0"), ("step", "STEP"), ("offload", "0OFFLOAD0"), ("reduce_embedding", "0REDUCE_EMBEDDING")]:
        for form in FORMS:
            with pytest.raises(ppcc.CompileError, match=f"PyTorch has no action `{cell}`"):
                ppcc.compile("one_f_one_b", P=2, M=2, rules=rule).to_csv(form)


def reads(text: str) -> list[Any]:
    return [[schedules._Action.from_str(cell) for cell in row.split(",")] for row in text.splitlines()]


def test_lowers_as_pytorch_does() -> None:
    """The sweep, with what FSDP does with parameters, is PyTorch's own lowering of the compute actions."""
    for program in [*programs(), ppcc.compile("looped_bfs", P=RANKS, M=5, V=3), ppcc.compile("gpipe", P=RANKS, M=3)]:
        compute = {rank: row for rank, row in enumerate(reads(program.to_csv("compute_only")))}
        lowered = {
            rank: schedules._add_reduce_grad(schedules._add_unshard_reshard(row), program.num_microbatches)
            if hasattr(schedules, "_add_reduce_grad")
            else schedules._add_unshard_reshard(row)
            for rank, row in compute.items()
        }
        ranks = program.pipes[0].rank_of_stage
        complete = schedules._add_send_recv(lowered, lambda stage: ranks[stage], len(ranks))
        if hasattr(schedules, "_add_wait_send"):
            complete = schedules._add_wait_send(complete)
        swept = ppcc.compile(program.schedule, params=program.params, comm_order="none")
        ours = swept.emit(
            "torch-csv", "--comm-order=sweep", "--torch-fsdp", f"--torch-version={torch.__version__}"
        )
        assert reads(ours) == [complete[rank] for rank in range(RANKS)], program.name


def test_splits_that_count_weights_twice_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = SimpleNamespace(submod=make_stages(1)[0], stage_index=0, forward_maybe_with_nosync=None)
    monkeypatch.setattr(torch, "__version__", "2.12.1")
    with pytest.raises(UsageError, match="PyTorch 2.12.1 may count gradients of weights twice where I and W split a graph: use PyTorch 2.13"):
        prepare_stage(ppcc.compile("zb_h1", P=1, M=2), stage)
    prepare_stage(ppcc.compile("gpipe", P=1, M=2), stage)


@pytest.mark.parametrize("form", FORMS)
def test_refuses_what_pytorch_refuses(form: Form) -> None:
    for program, code in [
        (ppcc.compile("dualpipe", P=4, M=8), "E0901"),
        (ppcc.compile("looped_bfs", P=2, M=2, V=1, forward_only=True), "E1017"),
    ]:
        with pytest.raises(ppcc.CompileError) as caught:
            program.to_csv(form)
        assert code in [found.code for found in caught.value.errors]
