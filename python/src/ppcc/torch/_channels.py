"""Messages between ranks; those of a channel always use the same communicator."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue

import torch
import torch.distributed as dist
from torch import Tensor

from .._program import Action, Program
from ._errors import UsageError
from ._failures import JOIN_TIMEOUT, abort_groups
from ._groups import Groups
from ._shapes import OUTPUT, check_unchanged

_STREAMS = frozenset(("rendezvous", "stream", "stream-per-peer", "stream-per-edge"))


@dataclass(slots=True)
class Message:
    """Tensors that are being sent or received."""

    tensors: tuple[Tensor, ...]
    works: list[dist.Work]
    versions: tuple[int, ...] = ()
    """The versions of tensors that are sent."""

    def wait(self) -> tuple[Tensor, ...]:
        for work in self.works:
            work.wait()
        if self.versions:
            check_unchanged(self.tensors, self.versions, OUTPUT)
        return self.tensors

    def has_ended(self) -> bool:
        return all(work.is_completed() for work in self.works)


class Channels:
    """The channels between the ranks of a program.

    NCCL uses different communicators for single messages and for batches. So all messages are batches, also single ones, on the
    communicator of the pipeline; or, if the program is proven for `stream-per-edge`, each channel has a process group of its own.
    Gloo separates channels itself.
    """

    def __init__(self, program: Program, rank: int, groups: Groups, device: torch.device) -> None:
        self._rank = rank
        self._groups = groups
        self._device = device
        self._outboxes: dict[int, _HostOutbox | _DeviceOutbox] = {}
        self._edge_groups: dict[tuple[int, int], dist.ProcessGroup] = {}
        self.batched = False
        self.host_waits = program.num_ranks > 1 and groups.backend(device) == "gloo"
        if program.num_ranks > 1 and not self.host_waits:
            self._open(program)
            self._connect(program)

    def _open(self, program: Program) -> None:
        proven = set(program.transports)
        if proven and not proven & _STREAMS:
            raise UsageError(
                f"the program is proven for {', '.join(program.transports)} only, where messages are stored: compile it with "
                "transport='stream' or 'stream-per-edge'"
            )
        self.batched = not proven & {"stream-per-peer", "stream-per-edge"}
        if not self.batched:
            self._edge_groups = {way: self._groups.new_group(way, label="edge") for way in _edge_groups(program)}

    def _connect(self, program: Program) -> None:
        """Opens connections in an order that cannot deadlock."""
        token = torch.zeros(1, device=self._device)
        if self.batched:
            dist.all_reduce(token, group=self._groups.pipeline)
        for pair in program.preconnect:
            if self._rank in pair:
                for sender, receiver in (pair, pair[::-1]):
                    if self.batched or (sender, receiver) in self._edge_groups:
                        (works,) = self.post([(sender == self._rank, pair[0] + pair[1] - self._rank, (token,))])
                        Message((token,), works).wait()

    def post(self, messages: Sequence[tuple[bool, int, tuple[Tensor, ...]]]) -> list[list[dist.Work]]:
        """Posts messages together; each is given as whether it is sent, its peer, and its tensors."""
        if not self.batched:
            return [[self._post(*message, tensor) for tensor in message[2]] for message in messages]
        operations = [
            dist.P2POp(dist.isend if sends else dist.irecv, tensor, self._groups.global_rank(peer), self._groups.pipeline)
            for sends, peer, tensors in messages
            for tensor in tensors
        ]
        works = dist.batch_isend_irecv(operations) if operations else []
        # NCCL returns one work for all; other backends one per tensor, which may be waited for once.
        if len(works) != len(operations):
            return [works for _ in messages]
        left = iter(works)
        return [[next(left) for _ in tensors] for _, _, tensors in messages]

    def _post(self, sends: bool, peer: int, tensors: object, tensor: Tensor) -> dist.Work:
        group = self._edge_groups.get((self._rank, peer) if sends else (peer, self._rank), self._groups.pipeline)
        work = (dist.isend if sends else dist.irecv)(tensor, self._groups.global_rank(peer), group)
        assert work is not None
        return work

    def outbox(self, peer: int) -> _HostOutbox | _DeviceOutbox:
        """The outbox of a peer."""
        if peer not in self._outboxes:
            self._outboxes[peer] = _HostOutbox(peer, self) if self.host_waits else _DeviceOutbox()
        return self._outboxes[peer]

    def finish(self) -> None:
        """Waits until all messages have been sent."""
        for outbox in self._outboxes.values():
            outbox.finish()


class _DeviceOutbox:
    """Keeps the messages to a peer until each has been sent, in order. For devices with streams: put() drops those that have been sent;
    only streams wait."""

    def __init__(self) -> None:
        self._in_flight: deque[Message] = deque()

    def put(self, message: Message) -> None:
        while self._in_flight and self._in_flight[0].has_ended():
            self._in_flight.popleft().wait()
        self._in_flight.append(message)

    def finish(self) -> None:
        """Waits until all have been sent."""
        while self._in_flight:
            self._in_flight.popleft().wait()


class _HostOutbox:
    """The same for gloo, which cannot report whether a send has ended: a thread waits for it."""

    def __init__(self, peer: int, owner: object) -> None:
        """The thread ends with `owner`, or with the process."""
        self._messages: SimpleQueue[Message | threading.Event | None] = SimpleQueue()
        self._error: Exception | None = None
        # A daemon: when a step fails, its sends may never end.
        self._thread = threading.Thread(target=self._run, name=f"ppcc-sends-{peer}", daemon=True)
        self._thread.start()
        atexit.register(self._end)
        weakref.finalize(owner, self._close).atexit = False

    def put(self, message: Message) -> None:
        self._messages.put(message)

    def finish(self) -> None:
        all_sent = threading.Event()
        self._messages.put(all_sent)
        all_sent.wait()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while (message := self._messages.get()) is not None:
            if isinstance(message, threading.Event):
                message.set()
                continue
            try:
                message.wait()
            except Exception as error:
                self._error = self._error or error
            del message

    def _close(self) -> None:
        atexit.unregister(self._end)
        self._messages.put(None)

    def _end(self) -> None:
        """Ends the thread before the interpreter exits; if it returned from C++ later, it would abort the process."""
        self._messages.put(None)
        self._thread.join(0.1)
        if self._thread.is_alive():
            abort_groups()
            self._thread.join(JOIN_TIMEOUT)


def sends(action: Action) -> tuple[bool, int]:
    """Returns whether a message is sent, and its peer."""
    assert action.peer_rank is not None
    return action.kind.is_send, action.peer_rank


def _edge_groups(program: Program) -> list[tuple[int, int]]:
    """The pairs of sender and receiver, in the same order on all ranks."""
    edges = {
        (pipe.rank_of_stage[stage], pipe.rank_of_stage[reader])
        for pipe in program.pipes
        for stage in range(pipe.num_stages)
        for reader in pipe.readers(stage)
    }
    return sorted({way for low, high in edges if low != high for way in ((low, high), (high, low))})
