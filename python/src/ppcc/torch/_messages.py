"""What goes along the edges of a rank in a step, between ranks and on the rank itself."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

import torch
import torch.distributed as dist
from torch import Tensor

from .._program import Action, Pipe, Program
from ._errors import RuntimeMisuse
from ._shapes import TensorInfo

Edge = tuple[int, int, int, int]
"""Pipe, from stage, to stage, microbatch."""


@dataclass(slots=True)
class _Message:
    """Tensors under way; sends keep theirs until they have ended."""

    tensors: tuple[Tensor, ...]
    works: list[dist.Work]

    def wait(self) -> tuple[Tensor, ...]:
        for work in self.works:
            work.wait()
        return self.tensors

    def has_ended(self) -> bool:
        return all(work.is_completed() for work in self.works)


class _Background:
    """Waits for sends in their order, beside the step, and lets go of each."""

    def __init__(self) -> None:
        self._messages: SimpleQueue[_Message | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def wait_for(self, message: _Message) -> None:
        if self._thread is None:
            # A daemon: when a step fails, its sends may never end.
            self._thread = threading.Thread(target=self._run, name="ppcc-sends", daemon=True)
            self._thread.start()
        self._messages.put(message)

    def finish(self) -> None:
        """Waits for the last one, and raises what the first that failed has raised."""
        if self._thread is not None:
            self._messages.put(None)
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while (message := self._messages.get()) is not None:
            try:
                message.wait()
            except Exception as error:
                self._error = self._error or error
            del message


class Messages:
    """Results that have been made and not yet read.

    `room` says what a receive gets. Where that is not known, `headers` is a group of gloo's, in which the description
    of each message goes ahead of it. Receives are then announced where they stand in the list and posted when an action
    waits for them, on each pair of ranks in their order.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None,
        device: torch.device,
        room: Callable[[Action], Sequence[TensorInfo]],
        headers: dist.ProcessGroup | None,
    ) -> None:
        self._group = group
        self._device = device
        self._room = room
        self._headers = headers
        self._here: dict[Edge, tuple[Tensor, ...]] = {}
        self._arriving: dict[Edge, _Message] = {}
        self._announced: dict[int, deque[tuple[Edge, _Message]]] = defaultdict(deque)
        self._sent: dict[Edge, _Message] = {}
        self._header_sends: list[_Message] = []
        self._leaving: list[_Message] = []
        self._background = _Background()

    def lay_down(self, edge: Edge, tensors: tuple[Tensor, ...]) -> None:
        """Leaves a result for the stage at the other end; a send takes it from there."""
        self._here[edge] = tensors

    def take(self, edge: Edge) -> tuple[Tensor, ...]:
        """What came along an edge; waits for it."""
        if edge in self._here:
            return self._here.pop(edge)
        for peer, waiting in self._announced.items():
            if any(announced == edge for announced, _ in waiting):
                while edge not in self._arriving:
                    self._post_announced(peer)
        return self._arriving.pop(edge).wait()

    def post(self, item: tuple[Action, ...]) -> None:
        """Posts messages: one, or those of a batch together."""
        if self._headers is not None:
            for action in item:
                self._post_with_header(action, self._headers)
        elif len(item) == 1:
            edge, tensors = self._message(item[0])
            self._keep(item[0], edge, _Message(tensors, self._start(item[0], tensors, self._group)))
        else:
            self._post_batch(item)

    def release(self, action: Action, edge: Edge) -> None:
        """Lets go of a result as soon as it has been sent."""
        if edge in self._here:
            raise RuntimeMisuse(f"{action} releases what stage {edge[2]} has still to read")
        message = self._sent.pop(edge, None)
        if message is None:
            return
        if self._device.type == "cpu":  # Gloo cannot be asked whether a send has ended.
            self._background.wait_for(message)
        else:
            self._leaving = [sent for sent in [*self._leaving, message] if not sent.has_ended()]

    def finish(self) -> None:
        """Waits for all that has been sent."""
        for message in [*self._sent.values(), *self._leaving, *self._header_sends]:
            message.wait()
        self._background.finish()

    def _edge(self, action: Action) -> Edge:
        assert action.peer is not None
        ends = (action.stage, action.peer) if action.kind.is_send else (action.peer, action.stage)
        return (action.pipe.index, *ends, action.microbatch)

    def _message(self, action: Action) -> tuple[Edge, tuple[Tensor, ...]]:
        """The edge of a message, and its tensors: those that are sent, or room for those that come."""
        edge = self._edge(action)
        if action.kind.is_send:
            return edge, tuple(tensor.contiguous() for tensor in self._here.pop(edge))
        return edge, tuple(info.empty(self._device) for info in self._room(action))

    def _peer(self, action: Action) -> int:
        assert action.peer_rank is not None
        return action.peer_rank if self._group is None else dist.get_global_rank(self._group, action.peer_rank)

    def _start(
        self, action: Action, tensors: tuple[Tensor, ...], group: dist.ProcessGroup | None
    ) -> list[dist.Work]:
        post = dist.isend if action.kind.is_send else dist.irecv
        works = [post(tensor, self._peer(action), group) for tensor in tensors]
        return [work for work in works if work is not None]

    def _keep(self, action: Action, edge: Edge, message: _Message) -> None:
        (self._sent if action.kind.is_send else self._arriving)[edge] = message

    def _post_batch(self, item: tuple[Action, ...]) -> None:
        messages = [(action, *self._message(action)) for action in item]
        operations = [
            dist.P2POp(dist.isend if action.kind.is_send else dist.irecv, tensor, self._peer(action), self._group)
            for action, _, tensors in messages
            for tensor in tensors
        ]
        works = dist.batch_isend_irecv(operations) if operations else []
        # Gloo gives a work for each tensor, which may be waited for once; NCCL gives one for all.
        by_tensor = len(works) == len(operations)
        first = 0
        for action, edge, tensors in messages:
            own = works[first : first + len(tensors)] if by_tensor else works
            self._keep(action, edge, _Message(tensors, own))
            first += len(tensors)

    # Messages whose shapes are not known.

    def _post_with_header(self, action: Action, headers: dist.ProcessGroup) -> None:
        if not action.kind.is_send:
            header = (TensorInfo.empty_header(),)
            announced = _Message(header, self._start(action, header, headers))
            self._announced[self._peer(action)].append((self._edge(action), announced))
            return
        edge, tensors = self._message(action)
        header = (TensorInfo.header([TensorInfo.of(tensor) for tensor in tensors]),)
        self._header_sends.append(_Message(header, self._start(action, header, headers)))
        self._keep(action, edge, _Message(tensors, self._start(action, tensors, self._group)))

    def _post_announced(self, peer: int) -> None:
        """Posts the next receive of a pair of ranks: its sender has posted it before what follows."""
        edge, announced = self._announced[peer].popleft()
        (header,) = announced.wait()
        tensors = tuple(info.empty(self._device) for info in TensorInfo.of_header(header))
        works = [dist.irecv(tensor, peer, self._group) for tensor in tensors]
        self._arriving[edge] = _Message(tensors, [work for work in works if work is not None])


def connect(program: Program, rank: int, group: dist.ProcessGroup | None, device: torch.device) -> None:
    """Opens connections where that is done as messages come, in an order in which no rank waits for itself."""
    if device.type != "cuda":
        return
    for pair in program.preconnect:
        if rank in pair:
            peer = pair[0] + pair[1] - rank
            token = torch.zeros(1, device=device)
            post = dist.send if rank == pair[0] else dist.recv
            post(token, peer if group is None else dist.get_global_rank(group, peer), group=group)


def late_receives(actions: Sequence[Action], waits: Sequence[int]) -> str | None:
    """The first receive that does not stand right before the action that reads it, if there is any."""
    numbers = iter(waits)
    for position, action in enumerate(actions):
        if action.kind.is_recv:
            reader = next(numbers)
            between = actions[position + 1 : reader]
            if action.group is not None or not all(other.kind.is_recv for other in between):
                return str(action)
    return None


def edges_from(pipe: Pipe, stage: int, microbatch: int) -> list[Edge]:
    """Those along which the output of a stage goes."""
    return [(pipe.index, stage, reader, microbatch) for reader in pipe.readers(stage)]
