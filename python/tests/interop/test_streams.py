"""Overlap groups on two streams, on a stand-in for a device that is stricter than one: it keeps a clock for each stream, and
every read of what another stream has written is an error unless an event lies between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import ppcc
import pytest
import torch
from ppcc.torch import Runtime, _streams
from ppcc.torch._channels import Channels
from ppcc.torch._streams import Streams
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import spawn
from .models import assert_same_gradients, loss_fn, make_batch, own_stages, reference
from .where import DEVICE


pytestmark = pytest.mark.skipif(DEVICE.type != "cpu", reason="the host stands in for a device")


class Stream:
    """Its clock: how far it knows each stream to be."""

    def __init__(self, device: torch.device | None = None) -> None:
        self.device = device
        self.knows: Counter[Stream] = Counter()

    def wait_stream(self, other: Stream) -> None:
        self.knows |= other.knows

    def record_event(self) -> Stream:
        """A stream that has got as far, and gets no further."""
        event = Stream()
        event.knows |= self.knows
        return event

    def wait_event(self, event: Stream) -> None:
        self.wait_stream(event)


class Device:
    """In the place of torch.cuda."""

    Stream = Stream
    now: ClassVar[Stream] = Stream()
    kept: ClassVar[int] = 0

    @staticmethod
    def current_stream(device: torch.device) -> Stream:
        return Device.now

    @staticmethod
    @contextmanager
    def stream(stream: Stream) -> Iterator[None]:
        before, Device.now = Device.now, stream
        yield
        Device.now = before


WAITS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
"""What gives the host a number that a device has computed."""


class Ordered(TorchDispatchMode):
    """Checks each operation against the clocks, and that the host waits for none."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[StorageWeakRef, tuple[Stream, int]] = {}
        self.used: Counter[Stream] = Counter()
        self.copies: Counter[tuple[Stream, bool]] = Counter()
        """By stream, and whether the host goes on."""
        self.owners: dict[StorageWeakRef, Stream] = {}
        """Of the memory of what came: the stream on which it may be used again."""
        self.kept: set[tuple[StorageWeakRef, Stream]] = set()

    def reads(self, values: Any) -> None:
        for tensor in tree_leaves(values):
            if isinstance(tensor, Tensor):
                memory = StorageWeakRef(tensor.untyped_storage())
                stream, time = self.written.get(memory, (Device.now, 0))
                assert Device.now.knows[stream] >= time, "a stream reads what another one has not written yet"
                is_own = self.owners.get(memory, Device.now) is Device.now
                assert is_own or (memory, Device.now) in self.kept, "a stream reads what another one may write over"

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.reads((args, kwargs))
        assert function not in WAITS, f"the host waits for the device: {function}"
        result = function(*args, **(kwargs or {}))
        now = Device.now
        if function is torch.ops.aten.copy_.default:
            self.copies[now, bool(args[2]) if len(args) > 2 else False] += 1
        now.knows[now] += 1
        self.used[now] += 1
        changed = [args[0]] if function._schema.is_mutable else []
        for tensor in tree_leaves((result, changed)):
            if isinstance(tensor, Tensor):
                self.written[StorageWeakRef(tensor.untyped_storage())] = now, now.knows[now]
        return result


def step(program: ppcc.Program, mine: dict[int, nn.Module], ordered: Ordered) -> None:
    """The second step: the first one agrees on shapes, and may wait."""
    runtime = Runtime(program, mine, loss_fn=loss_fn)
    batch, target = make_batch(program.num_microbatches)
    runtime.step(batch, target=target)
    for module in mine.values():
        module.zero_grad()
    ordered.used.clear()
    with ordered:
        runtime.step(batch, target=target)


def run_ordered(rank: int, texts: list[str], broken: bool) -> None:
    torch.get_device_module = lambda device: Device
    Streams.of = staticmethod(lambda device: Streams(device))
    kept, ordered = Counter[int](), Ordered()

    def record(tensor: Tensor, stream: Stream) -> None:
        assert stream is Device.now
        kept[rank] += 1
        ordered.kept.add((StorageWeakRef(tensor.untyped_storage()), stream))

    Tensor.record_stream = record  # type: ignore[assignment, method-assign]
    post = Channels.post

    def posted(self: Channels, messages: Any) -> Any:
        ordered.reads([tensors for is_send, _, tensors in messages if is_send])
        came = [tensor for is_send, _, tensors in messages if not is_send for tensor in tensors]
        ordered.owners.update((StorageWeakRef(tensor.untyped_storage()), Device.now) for tensor in came)
        return post(self, messages)

    Channels.post = posted  # type: ignore[method-assign]
    if broken:
        Stream.wait_stream = lambda self, other: None  # type: ignore[method-assign]
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = program.pipes[0].num_stages
        wanted, _ = reference(count, program.num_microbatches)
        mine = own_stages(program, rank)
        kept.clear()
        step(program, mine, ordered)
        for stage, module in mine.items():
            assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
        groups = [group for group in program.groups(rank) if {"F"} < {action.op for action in group.actions}]
        assert len(groups) > 1 and len(ordered.used) == 2, (len(groups), ordered.used)
        if rank == 1 and program.schedule == "dualpipe_v":
            assert kept[1] > 0  # Gradients that came, and were read on the side.


def run_offloaded(rank: int, text: str, broken: bool) -> None:
    torch.get_device_module = lambda device: Device
    Streams.of = staticmethod(lambda device: Streams(device))
    Tensor.record_stream = lambda self, stream: None  # type: ignore[assignment, method-assign]
    pinned = Counter[bool]()

    def pinned_like(tensor: Tensor) -> Tensor:
        pinned[True] += 1
        return torch.empty_like(tensor)

    _streams.pinned_like = pinned_like
    if broken:
        Stream.wait_event = lambda self, event: None  # type: ignore[method-assign]
    program = ppcc.Program.from_json(text)
    count = program.pipes[0].num_stages
    wanted, _ = reference(count, program.num_microbatches)
    mine = own_stages(program, rank)
    ordered = Ordered()
    step(program, mine, ordered)
    for stage, module in mine.items():
        assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
    # Each copy is on one of two streams of its own, and the host goes on.
    aside = {stream: goes_on for stream, goes_on in ordered.copies if stream is not Device.now}
    assert len(aside) == 2 and all(aside.values()) and pinned[True] > 0, (ordered.copies, pinned)


@pytest.mark.parametrize("name", ["one_f_one_b", "zb_h1", "interleaved_1f1b"])
def test_offloading_has_streams_of_its_own(name: str) -> None:
    spawn.run(run_offloaded, 2, ppcc.compile(name, P=2, M=4, rules=["offload"]).json, False)


def test_compute_stream_waits_for_reload() -> None:
    with pytest.raises(AssertionError, match="reads what another one has not written yet"):
        spawn.run(run_offloaded, 2, ppcc.compile("one_f_one_b", P=2, M=4, rules=["offload"]).json, True)


def programs() -> list[str]:
    return [ppcc.compile(name, P=2, M=8).json for name in ("dualpipe", "dualpipe_v")]


def test_streams_are_of_the_given_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of that which is current while the Runtime is made."""
    monkeypatch.setattr(torch, "get_device_module", lambda device: Device)
    streams = Streams(torch.device("cuda", 1))
    assert {stream.device for stream in vars(streams).values() if isinstance(stream, Stream)} == {torch.device("cuda", 1)}


def test_forward_overlaps_backward() -> None:
    spawn.run(run_ordered, 2, programs(), False)


def test_fake_device_detects_missing_waits() -> None:
    with pytest.raises(AssertionError, match="reads what another one has not written yet"):
        spawn.run(run_ordered, 2, programs(), True)
