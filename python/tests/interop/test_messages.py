"""What is sent: on which communicator, and how long it is kept."""

from __future__ import annotations

import gc
from collections import defaultdict
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import Runtime
from ppcc.torch._channels import Channels
from ppcc.torch._groups import Groups
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.multiprocessing.reductions import StorageWeakRef

from . import spawn
from .models import WIDTH, batch_of_rank, check_step, loss_fn, make_batch, make_pipeline_groups, make_stages, own_stages, reference
from .test_actions import is_gone
from .test_runtime import is_sharded, programs
from .where import DEVICE

# One communicator for the messages of an edge, whatever stands beside them.


def recorded(log: dict[tuple[int, int], list[object]], rank: int) -> None:
    """Notes for each message, by its way, the communicator that NCCL would have for it: that of the group for batches, one
    for each pair of ranks in a group for others."""
    batch, alone = dist.batch_isend_irecv, Channels._post

    def noted_batch(operations: list[dist.P2POp]) -> list[dist.Work]:
        for one in operations:
            way = (rank, one.peer) if one.op is dist.isend else (one.peer, rank)
            log[way].append("group")
        return batch(operations)

    def noted_alone(self: Channels, sends: bool, peer: int, tensors: object, tensor: Tensor) -> dist.Work:
        way = (rank, peer) if sends else (peer, rank)
        group = self._edge_groups.get(way)
        log[way].append(("pair", None if group is None else group.group_name))
        return alone(self, sends, peer, tensors, tensor)

    dist.batch_isend_irecv, Channels._post = noted_batch, noted_alone  # type: ignore[assignment, method-assign]
    Groups.backend = lambda self, device: "like NCCL"  # type: ignore[method-assign]


def run_recorded(rank: int, texts: list[str]) -> None:
    log: dict[tuple[int, int], list[object]] = defaultdict(list)
    recorded(log, rank)
    for text in texts:
        program = ppcc.Program.from_json(text)
        log.clear()
        check_step(rank, program)
        assert len(log) > 1
        logs: list[Any] = [None] * program.num_ranks
        dist.all_gather_object(logs, dict(log))
        for other in range(program.num_ranks):
            for way in ((rank, other), (other, rank)):
                assert logs[rank].get(way) == logs[other].get(way), f"{program.name}: two ends of {way} differ"
        per_way = {str(key) for way, keys in log.items() for key in keys}
        assert len(per_way) == (len(log) if "stream-per-edge" in program.transports else 1)


@pytest.mark.skipif(DEVICE.type != "cpu", reason="gloo stands in for NCCL")
def test_both_peers_use_one_communicator() -> None:
    cases = [
        ppcc.compile("one_f_one_b", P=4, M=8, fuse="batch"),
        ppcc.compile("one_f_one_b", P=4, M=8, fuse="megatron"),
        ppcc.compile("zero_bubble_v", P=4, M=8),
        ppcc.compile("dualpipe", P=4, M=8),
        ppcc.compile("interleaved_1f1b", P=4, M=8, transport="stream-per-edge"),
        ppcc.compile("one_f_one_b", P=4, M=8, fuse="batch", transport="stream-per-edge"),
    ]
    spawn.run(run_recorded, 4, [program.json for program in cases])


def run_inherited(rank: int) -> None:
    edge = Groups(dist.new_group([0, 1], timeout=timedelta(seconds=77)), 2).new_group((0, 1), label="edge")
    assert edge._get_backend(torch.device("cpu")).options._timeout == timedelta(seconds=77)


def test_groups_of_edges_have_the_timeout_of_the_pipeline() -> None:
    spawn.run(run_inherited, 2)


@pytest.mark.skipif(not dist.is_nccl_available(), reason="PyTorch is built without NCCL")
def test_groups_of_edges_have_the_priority_of_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    options._timeout = timedelta(seconds=77)
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(Groups, "_parent", SimpleNamespace(_get_backend=lambda device: SimpleNamespace(options=options)))
    monkeypatch.setattr(dist, "new_group", lambda ranks, **named: made.append(named))
    groups = Groups(None, 2)
    groups.new_group((0, 1), label="edge")
    groups.new_group((0, 1), "gloo")
    edge, headers = made
    assert edge["timeout"] == headers["timeout"] == timedelta(seconds=77)
    assert edge["pg_options"].is_high_priority_stream and edge["pg_options"]._timeout == timedelta(seconds=77)
    assert "pg_options" not in headers


# Nothing is kept longer than the program says.


class Tracked(nn.Module):
    """Counts, each time that it runs, what its backwards still need and its outputs that are still there."""

    all_needed: ClassVar[list[StorageWeakRef]] = []
    """Of all stages."""
    peak: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.needed: list[StorageWeakRef] = []
        self.outputs: list[StorageWeakRef] = []
        self.seen: list[tuple[int, int]] = []

    def forward(self, x: Tensor) -> Tensor:
        between = torch.tanh(x)
        output: Tensor = self.inner(between)
        if not isinstance(x, torch._subclasses.FakeTensor):
            self.needed.append(StorageWeakRef(between.untyped_storage()))
            self.outputs.append(StorageWeakRef(output.untyped_storage()))
            self.seen.append((alive(self.needed), alive(self.outputs)))
            Tracked.all_needed.append(self.needed[-1])
            Tracked.peak = max(Tracked.peak, alive(Tracked.all_needed))
        return output


def alive(references: list[StorageWeakRef]) -> int:
    return sum(not reference.expired() for reference in references)


def in_flight(program: ppcc.Program, rank: int) -> dict[int, list[int]]:
    """For each forward of each stage, how many of its microbatches have begun and not ended, with this one."""
    found: dict[int, list[int]] = defaultdict(list)
    now: dict[int, int] = defaultdict(int)
    for action in program.actions[rank]:
        if action.op == "F":
            now[action.stage] += 1
            found[action.stage].append(now[action.stage])
        elif action.op in ("B", "W"):
            now[action.stage] -= 1
    return found


def run_tracked(process: int, texts: list[str]) -> None:
    gc.disable()
    for text in texts:
        program = ppcc.Program.from_json(text)
        rank, options = process % program.num_ranks, {}
        mine = own_stages(program, rank, Tracked)
        batch, target = make_batch(program.num_microbatches)
        if is_sharded(program):
            options["group"], copies = make_pipeline_groups(process)
            batch, target = batch_of_rank(process, program.num_microbatches)
            for module in mine.values():
                fully_shard(module, mesh=DeviceMesh.from_group(copies, DEVICE.type))
        Runtime(program, mine, loss_fn=loss_fn, **options).step(batch, target=target)
        for stage, wanted in in_flight(program, rank).items():
            seen = mine[stage].seen
            label = f"{program.name}, rank {rank}, stage {stage}: {seen}, but {wanted}"
            assert [needed for needed, _ in seen] == wanted, label
            assert all(outputs <= most for (_, outputs), most in zip(seen, wanted, strict=True)), label
            assert alive(mine[stage].needed) == alive(mine[stage].outputs) == 0, label
        peak = program.simulate().ranks[rank].peak_activations
        assert Tracked.peak == peak, f"{program.name}, rank {rank}: {Tracked.peak} at most, but {peak}"
        Tracked.all_needed, Tracked.peak = [], 0


def test_live_activations_match_the_program() -> None:
    for ranks in (2, 4):
        # What moves to another rank is in memory twice here; slices need other stages.
        counted = [program for program in programs(ranks) if program.has_backward and program.schedule not in ("bpipe", "seq1f1b", "slimpipe")]
        spawn.run(run_tracked, ranks, [program.json for program in counted])


def test_live_activations_of_sharded_stages_match() -> None:
    spawn.run(run_tracked, 4, [ppcc.compile("breadth_first_fsdp", P=2, M=count).json for count in (4, 6)])


def run_sent_gradients(rank: int, text: str) -> None:
    """When a forward has come from the rank before, all gradients that this had read before it sent it are gone."""
    gc.disable()
    program = ppcc.Program.from_json(text)
    sent: dict[int, StorageWeakRef] = {}
    post = Channels.post

    def noted(self: Channels, messages: Any) -> Any:
        for is_send, peer, tensors in messages:
            if is_send and peer == rank - 1:
                sent[len(sent)] = StorageWeakRef(tensors[0].untyped_storage())
        return post(self, messages)

    Channels.post = noted  # type: ignore[method-assign]
    read_before: list[int] = []
    read = 0
    for action in program.actions[rank - 1] if rank > 0 else ():
        read += action.op == "B"
        if action.op == "SEND_F" and action.peer_rank == rank:
            read_before.append(read)
    calls = 0

    class Watching(Tracked):
        def forward(self, x: Tensor) -> Tensor:
            nonlocal calls
            if rank > 0 and not isinstance(x, torch._subclasses.FakeTensor):
                for number in range(read_before[calls]):
                    assert is_gone(sent[number], 20), f"rank {rank}: gradient {number} is here at forward {calls}"
                calls += 1
            return super().forward(x)

    batch, target = make_batch(program.num_microbatches)
    (module,) = make_stages(1, Watching)
    Runtime(program, {rank: module}, loss_fn=loss_fn).step(batch, target=target)
    assert rank == 0 or (calls == program.num_microbatches and read_before[-1] > 4 and alive(list(sent.values())) == 0)


def test_sent_gradients_are_freed() -> None:
    spawn.run(run_sent_gradients, 4, ppcc.compile("one_f_one_b", P=4, M=12).json)
