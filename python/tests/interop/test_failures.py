"""A stage that throws on one rank ends all ranks, at once, with a word of where."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest.mock
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, StepError, UsageError, _failures
from torch import Tensor, nn
from torch._C import _distributed_c10d
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from . import spawn
from .models import Plain, batch_of_rank, loss_fn, make_batch, make_stages, make_pipeline_groups
from .test_runtime import ELSEWHERE, has_ranks, is_sharded, values
from .where import DEVICE


class Breaks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        raise ValueError("this is the end")


class Bad(nn.Module):
    """Throws in its third forward, or in the backward of that."""

    def __init__(self, folder: str, backward: bool) -> None:
        super().__init__()
        self.inner = Plain()
        self.folder, self.backward, self.calls = folder, backward, 0

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x)
        if isinstance(x, torch._subclasses.FakeTensor):
            return x
        self.calls += 1
        if self.calls != 3:
            return x
        Path(self.folder, "thrown").write_text(str(time.time()))
        if self.backward:
            broken: Any = Breaks.apply
            return broken(x)  # type: ignore[no-any-return]
        raise ValueError("this is the end")


def run_failing(rank: int, text: str, bad: int, backward: bool, copies: int, folder: str) -> None:
    program = ppcc.Program.from_json(text)
    here = rank % program.num_ranks
    options: dict[str, Any] = {}
    batch, target = make_batch(program.num_microbatches)
    if copies > 1:
        pipeline, replicas = make_pipeline_groups(rank)
        options = {"group": pipeline, "groups": {"data_parallel": replicas}}
        batch, target = batch_of_rank(rank, program.num_microbatches)
    stages = {stage: module for _, stage in program.local_stages(here) for module in [make_stages(stage + 1, Plain)[stage]]}
    if rank == bad:
        first = next(iter(stages))
        stages[first] = Bad(folder, backward).double()
    if is_sharded(program):
        for module in stages.values():
            fully_shard(module, mesh=DeviceMesh.from_group(replicas, DEVICE.type))
    runtime = Runtime(program, stages, loss_fn=loss_fn, **options)
    with pytest.raises(StepError) as caught:
        for _ in range(3):
            runtime.step(batch, target=target)
    took = time.time() - float(Path(folder, "thrown").read_text())
    with pytest.raises(StepError, match="an earlier step has failed"):
        runtime.step(batch, target=target)
    Path(folder, f"rank{rank}").write_text(f"{took}\n{caught.value}")
    dist.distributed_c10d._get_default_store().add("ended", 1)
    while dist.distributed_c10d._get_default_store().add("ended", 0) < dist.get_world_size():
        time.sleep(0.01)


PLACE = r"\(.+\.pp:\d+:\d+\)"


def failed(program: ppcc.Program, bad: int, what: str, *, backward: bool = False, copies: int = 1) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spawn.run(run_failing, program.num_ranks * copies, program.json, bad, backward, copies, folder)
        for rank in range(program.num_ranks * copies):
            took, text = Path(folder, f"rank{rank}").read_text().split("\n", 1)
            # A backward comes later than the forward that knows it.
            assert float(took) < (1 if not backward else 2), f"rank {rank} ended after {took} s"
            cause = rf"rank {bad % program.num_ranks}, {what} {PLACE}: ValueError: this is the end"
            own = rf"rank {rank % program.num_ranks}(, \w+ {PLACE})?: ended because of {cause}"
            assert re.fullmatch(cause if rank == bad else own, text), f"rank {rank}: {text}"


def test_a_forward_that_throws_ends_all_ranks() -> None:
    failed(ppcc.compile("one_f_one_b", P=4, M=8), 1, "1F2")


def run_missed_abort(rank: int, text: str, folder: str) -> None:
    calls, abort_groups = [], _failures.abort_groups

    def miss_first() -> None:
        calls.append(len(calls))
        if len(calls) > 1:
            abort_groups()

    program = ppcc.Program.from_json(text)
    stages = {stage: module.double() for stage, module in enumerate([Plain(), Bad(folder, False)]) if stage == rank}
    batch, target = make_batch(program.num_microbatches)
    runtime = Runtime(program, stages, loss_fn=loss_fn)
    with unittest.mock.patch.object(_failures, "abort_groups", miss_first), pytest.raises(StepError, match="this is the end"):
        runtime.step(batch, target=target)
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        assert len(calls) > 1
        store.set("ended", "")
    store.wait(["ended"])  # Until then rank 1 closes no connection.


def test_an_operation_that_an_abort_misses_is_aborted_later() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spawn.run(run_missed_abort, 2, ppcc.compile("gpipe", P=2, M=4).json, folder)


def test_communicators_are_aborted_in_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone would wait for the device, which waits in the others."""
    calls: list[str] = []

    class Nccl:
        """Of two groups, each a communicator, on one device."""

        def name(self) -> str:
            return "nccl"

        def _group_start(self) -> None:
            calls.append("start")

        def abort(self) -> None:
            calls.append("abort")
            if len(calls) == 2:
                raise RuntimeError("this is the end")

        def _group_end(self) -> None:
            calls.append("end")

    class Group:
        def __init__(self) -> None:
            self.backend = Nccl()

        def _get_backend(self, device: torch.device) -> Nccl:
            if device.type == "cpu":
                raise RuntimeError("no such backend")
            return self.backend

    monkeypatch.setattr(dist.distributed_c10d, "_world", SimpleNamespace(pg_map={Group(): 0, Group(): 1}))
    with pytest.raises(RuntimeError, match="this is the end"):
        _failures.abort_groups()
    _failures.abort_groups()
    assert calls == ["start", "abort", "end", "start", "abort", "abort", "end"]


def test_a_backward_that_throws_ends_all_ranks() -> None:
    failed(ppcc.compile("zero_bubble_v", P=3, M=6), 2, "2I2", backward=True)


def third_forward(program: ppcc.Program, rank: int) -> str:
    """Of the rank's first stage, as the program has it."""
    (_, stage), *_ = program.local_stages(rank)
    forwards = [action for action in program.actions[rank] if action.op == "F" and action.stage == stage]
    return str(forwards[2])


@pytest.mark.parametrize("name", [info.name for info in ppcc.schedules() if has_ranks(info) and info.name not in (*ELSEWHERE, "seq1f1b", "slimpipe")])
def test_all_schedules_end(name: str) -> None:
    program = ppcc.compile(name, params=values(next(info for info in ppcc.schedules() if info.name == name), 4))
    failed(program, 2, re.escape(third_forward(program, 2)))


def test_sharded_stages_end() -> None:
    program = ppcc.compile("breadth_first_fsdp", P=2, M=4)
    failed(program, 3, re.escape(third_forward(program, 1)), copies=2)


def test_failure_ends_all_pipelines_of_the_job() -> None:
    failed(ppcc.compile("one_f_one_b", P=2, M=4, rules="reduce_grads"), 3, "1F2", copies=2)


def test_single_rank_error_names_the_action() -> None:
    batch, target = make_batch(4)
    with tempfile.TemporaryDirectory() as folder:
        runtime = Runtime(ppcc.compile("gpipe", P=1, M=4), {0: Bad(folder, False).double()}, loss_fn=loss_fn)
        with pytest.raises(StepError, match=rf"rank 0, 0F2 {PLACE}: ValueError: this is the end") as caught:
            runtime.step(batch, target=target)
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.flight_recorder is None


RECORDED = """
import pickle, ppcc, torch, torch.distributed as dist
from ppcc.torch import Runtime, StepError

dist.init_process_group("gloo", init_method="file://{folder}/store", rank=0, world_size=1)

class Bad(torch.nn.Linear):
    def forward(self, x):
        dist.all_reduce(torch.ones(2))
        raise ValueError("this is the end")

try:
    shapes = {{0: torch.empty(1, 2)}}
    Runtime(ppcc.compile("gpipe", P=1, M=1), {{0: Bad(2, 2)}}, loss_fn=torch.nn.functional.mse_loss, shapes=shapes).step(torch.ones(1, 2), target=torch.ones(1, 2))
except StepError as error:
    print(*[entry["profiling_name"] for entry in pickle.loads(error.flight_recorder)["entries"]])
"""


@pytest.mark.skipif(not hasattr(_distributed_c10d, "_dump_fr_trace"), reason="this PyTorch records NCCL only")
def test_errors_have_what_the_flight_recorder_has(tmp_path: Path) -> None:
    options = {"capture_output": True, "text": True, "timeout": 300, "env": os.environ | {"TORCH_FR_BUFFER_SIZE": "100"}}
    ended = subprocess.run([sys.executable, "-c", RECORDED.format(folder=tmp_path)], **options)  # type: ignore[call-overload]
    assert "gloo:all_reduce" in ended.stdout, ended.stderr


# Misuse on one rank.


def run_misuse(rank: int, text: str, which: str) -> None:
    program = ppcc.Program.from_json(text)
    (module,) = make_stages(1, Plain)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    runtime = Runtime(program, {rank: module}, loss_fn=loss_fn, optimizer=optimizer)
    batch, target = make_batch(program.num_microbatches)
    if which != "first":
        runtime.step(batch, target=target)
    if rank == 1 and which == "optimizer":
        module.load_state_dict({name: value.clone() for name, value in module.state_dict().items()}, assign=True)
        reason = "the optimizer has none of the weights of the stages of rank 1"
    elif rank == 1:
        target, reason = target[:7], "the target of shape .* cannot be cut"
    with pytest.raises(UsageError if rank == 1 else StepError, match=reason if rank == 1 else "rank 1: UsageError: the "):
        runtime.step(batch, target=target)
    # Else the labels of rank 1 would be those of another batch from now on.
    with pytest.raises(StepError, match="an earlier step has failed: rank 1: UsageError: the "):
        runtime.step(batch, target=make_batch(program.num_microbatches)[1]) if rank == 0 else runtime.eval(batch)


@pytest.mark.parametrize("which", ["first", "second", "optimizer"])
def test_misuse_on_one_rank_ends_all(which: str) -> None:
    spawn.run(run_misuse, 2, ppcc.compile("one_f_one_b", P=2, M=4).json, which)


# A rank that stops.


class Stops(Plain):
    """Stops its process in the third forward."""

    folder = ""
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += not isinstance(x, torch._subclasses.FakeTensor)
        if self.calls == 3 and self.folder:
            Path(self.folder, "stopped").write_text(f"{os.getpid()} {time.time()}")
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().forward(x)


def run_stopped(rank: int, text: str, folder: str) -> None:
    program = ppcc.Program.from_json(text)
    module = Stops().double()
    module.folder = folder if rank == 1 else ""
    runtime = Runtime(program, {rank: module}, loss_fn=loss_fn, timeout=timedelta(seconds=2))
    batch, target = make_batch(program.num_microbatches)
    with pytest.raises(StepError, match=r"ended because of rank [02], .*: no progress for 2 s \(timeout=\)"):
        for _ in range(2):
            runtime.step(batch, target=target)
    process, since = Path(folder, "stopped").read_text().split()
    if rank != 1:
        assert time.time() - float(since) < 20
        os.kill(int(process), signal.SIGCONT)


def test_a_rank_that_stops_ends_the_others_after_the_timeout() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spawn.run(run_stopped, 3, ppcc.compile("one_f_one_b", P=3, M=6).json, folder)


# A rank that is killed, and with rank 0 the store that it hosts.


class Killed(Plain):
    """Kills its process in a forward or a backward."""

    at = ("", 0)

    def __init__(self) -> None:
        super().__init__()
        self.calls = {"forward": 0, "backward": 0}

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x, torch._subclasses.FakeTensor):
            return super().forward(x)
        self.count("forward")
        y = super().forward(x)
        y.register_hook(lambda gradient: self.count("backward"))
        return y

    def count(self, kind: str) -> None:
        if self.at == (kind, self.calls[kind]):
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls[kind] += 1


def run_killed(rank: int, text: str, port: int, killed: int, at: tuple[str, int]) -> None:
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    module = Killed().double()
    module.at = at if rank == killed else ("", 0)
    program = ppcc.Program.from_json(text)
    runtime = Runtime(program, {rank: module}, loss_fn=loss_fn, timeout=timedelta(seconds=60))
    batch, target = make_batch(program.num_microbatches)
    try:
        runtime.step(batch, target=target)
    except StepError:
        os._exit(3)
    os._exit(4)


@pytest.mark.skipif(DEVICE.type != "cpu", reason="a process group of gloo alone")
@pytest.mark.parametrize(
    ("killed", "at"),
    [(1, ("forward", 0)), (1, ("forward", 1)), (1, ("backward", 0)), (1, ("backward", 1)), (0, ("forward", 1)), (0, ("backward", 0))],
)
def test_a_rank_that_is_killed_ends_the_other(killed: int, at: tuple[str, int]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = ppcc.compile("one_f_one_b", P=2, M=2).json
    ranks = [multiprocessing.get_context("forkserver").Process(target=run_killed, args=(rank, text, port, killed, at)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(240)
    codes = [process.exitcode for process in ranks]
    for process in ranks:
        process.kill()
    assert codes == [-signal.SIGKILL if rank == killed else 3 for rank in range(2)]


# Processes end by their exception or by themselves, whatever their threads wait for.

ENDS = """
import os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
import ppcc
from ppcc.torch import Runtime, StepError, _failures

folder, how = Path(sys.argv[1]), sys.argv[2]
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
program = ppcc.compile("one_f_one_b", P=2, M=4, forward_only=how == "send")


class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(3)  # The interpreter has begun to end.


def wait_for_end():
    while not (folder / "ends").exists():
        time.sleep(0.01)
    time.sleep(1)


class Stage(torch.nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += not isinstance(x, torch._subclasses.FakeTensor)
        if how == "send" and rank == 0 and self.calls == 4:
            (folder / "ends").touch()
            sys.exit(3)
        if how == "send" and rank == 1 and self.calls == 1:
            wait_for_end()
            os._exit(0)
        if how == "listen" and rank == 0 and self.calls == 5:
            raise ValueError("this is the end")
        return super().forward(x)


slow = Slow()
runtime = Runtime(program, {rank: Stage(4, 4)}, loss_fn=torch.nn.functional.mse_loss)
batch = torch.zeros(8, 4)
runtime.step(batch, target=batch)
if rank == 1:
    (folder / "ends").touch()
    sys.exit(3)
wait_for_end()
try:
    runtime.step(batch, target=batch)
except StepError:
    sys.exit(3)
"""


@pytest.mark.parametrize(("how", "codes"), [("listen", [3, 3]), ("send", [3, 0])])
def test_no_thread_aborts_a_process_that_ends(how: str, codes: list[int], tmp_path: Path) -> None:
    """A thread waits for the word of a failure, or for a send, and comes back while the interpreter ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", ENDS, str(tmp_path), how],
            env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": "2"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    stderrs = [process.communicate(timeout=240)[1] for process in ranks]
    assert [process.returncode for process in ranks] == codes, stderrs
