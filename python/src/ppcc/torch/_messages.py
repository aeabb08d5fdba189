"""The messages of a rank in a step, to other ranks and between stages of the rank."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from .._program import Action, Pipe, Program
from ._channels import Channels, Message, sends
from ._errors import UsageError
from ._measure import Observer
from ._shapes import OUTPUT, TensorInfo, check_unchanged, part_of, versions_of

_log = logging.getLogger(__name__)
Edge = tuple[int, int, int, int]
"""Pipe, from stage, to stage, microbatch."""


class Messages:
    """The results that no stage has read yet. A tensor is freed when it has been sent.

    A function gives the tensors of a receive. With variable shapes `headers` is a gloo group, in which a header precedes each
    message; receives are then registered at their place in the program, and posted when an action waits for them, in order for
    each pair of ranks.
    """

    def __init__(
        self,
        channels: Channels,
        device: torch.device,
        specs_of: Callable[[Action], Sequence[TensorInfo]],
        headers: dist.ProcessGroup | None,
        *,
        answered: bool,
        acknowledges: Mapping[Edge, Edge],
        mesh: DeviceMesh | None = None,
        observer: Observer | None = None,
    ) -> None:
        """DTensors are over the mesh. With `answered` each forward has a backward, whose message shows that the output was read. `acknowledges` is the result
        of acknowledged_by(), or empty."""
        self._answered = answered
        self._acknowledges = acknowledges
        self._followed = frozenset(acknowledges.values())
        self._channels = channels
        self._device = device
        self._receive_specs = specs_of
        self._headers = headers
        self._mesh = mesh
        self._observer = observer or Observer()
        self._here: dict[Edge, tuple[tuple[Tensor, ...], tuple[int, ...]]] = {}
        self._arriving: dict[Edge, tuple[Message, Sequence[TensorInfo]]] = {}
        self._announced: dict[int, deque[tuple[Edge, Message]]] = defaultdict(deque)
        self._announcer: dict[Edge, int] = {}
        self._sent: dict[Edge, tuple[int, Message]] = {}
        self._header_sends: list[Message] = []

    def put(self, edge: Edge, tensors: tuple[Tensor, ...]) -> None:
        """Stores a result for the stage at the other end; the send takes it from here."""
        self._here[edge] = tensors, versions_of(tensors)

    def take(self, edge: Edge) -> tuple[Tensor, ...]:
        """Waits for the tensors of an edge. Those that get a gradient back require grad."""
        if edge in self._here:
            return self._take_unchanged(edge)
        while edge not in self._arriving:
            self._post_announced(self._announcer[edge])
        message, infos = self._arriving.pop(edge)
        _log.debug("waits for what stage %d sends to stage %d of microbatch %d", *edge[1:])
        with self._observer.waits(edge):
            arrived = message.wait()
        tensors = tuple(info.received(tensor, self._mesh) for tensor, info in zip(arrived, infos, strict=True))
        if edge in self._acknowledges:
            self.acknowledge(self._acknowledges[edge])
        return tensors

    def post(self, item: tuple[Action, ...]) -> None:
        """Posts a message, or the messages of a batch together."""
        self._observer.posts(item)
        if self._headers is not None:
            for action in item:
                self._post_with_header(action, self._headers)
            return
        edges = [_edge(action) for action in item]
        rooms = [() if action.kind.is_send else self._receive_specs(action) for action in item]
        tensors = [
            self._take_outgoing(edge) if action.kind.is_send else tuple(info.empty(self._device) for info in room)
            for action, edge, room in zip(item, edges, rooms, strict=True)
        ]
        posted = self._channels.post([(*sends(action), own) for action, own in zip(item, tensors, strict=True)])
        for action, edge, own, room, works in zip(item, edges, tensors, rooms, posted, strict=True):
            self._keep(action, edge, Message(own, works, versions_of(own) if action.kind.is_send else ()), room)

    def acknowledge(self, edge: Edge) -> None:
        """Frees a result that was sent, when the answer to it has arrived."""
        if edge in self._sent:
            self._sent.pop(edge)[1].wait()

    def release(self, action: Action, edge: Edge) -> None:
        """Frees a result when it has been sent, without an answer."""
        if edge in self._here:
            raise UsageError(f"{action} releases an output that stage {edge[2]} still needs")
        if edge in self._sent:
            peer, message = self._sent.pop(edge)
            self._channels.outbox(peer).put(message)

    def finish(self) -> None:
        """Waits until all messages have been sent."""
        self._channels.finish()
        for message in [*(message for _, message in self._sent.values()), *self._header_sends]:
            message.wait()

    def _take_outgoing(self, edge: Edge) -> tuple[Tensor, ...]:
        return tuple(part_of(tensor).detach().contiguous() for tensor in self._take_unchanged(edge))

    def _take_unchanged(self, edge: Edge) -> tuple[Tensor, ...]:
        tensors, versions = self._here.pop(edge)
        check_unchanged(tensors, versions, OUTPUT)
        return tensors

    def _keep(self, action: Action, edge: Edge, message: Message, infos: Sequence[TensorInfo]) -> None:
        if not action.kind.is_send:
            self._arriving[edge] = message, infos
        elif message.works:
            peer, is_forward = sends(action)[1], edge[1] < edge[2]
            if (self._answered and is_forward) or edge in self._followed:
                self._sent[edge] = peer, message
            else:
                self._channels.outbox(peer).put(message)

    # Messages whose shapes are not known.

    def _post_with_header(self, action: Action, headers: dist.ProcessGroup) -> None:
        edge, (is_send, peer) = _edge(action), sends(action)
        if not is_send:
            self._announced[peer].append((edge, self._header_message(peer, TensorInfo.empty_header(), headers, dist.irecv)))
            self._announcer[edge] = peer
            return
        infos = list(map(TensorInfo.of, self._here[edge][0]))
        tensors = self._take_outgoing(edge)
        self._header_sends.append(self._header_message(peer, TensorInfo.header(infos), headers, dist.isend))
        (works,) = self._channels.post([(True, peer, tensors)])
        self._keep(action, edge, Message(tensors, works, versions_of(tensors)), ())

    def _header_message(
        self, peer: int, header: Tensor, headers: dist.ProcessGroup, post: Callable[..., dist.Work | None]
    ) -> Message:
        work = post(header, dist.get_global_rank(headers, peer), headers)
        assert work is not None
        return Message((header,), [work])

    def _post_announced(self, peer: int) -> None:
        """Posts the next receive of a pair of ranks, whose sends are posted in this order."""
        edge, announced = self._announced[peer].popleft()
        (header,) = announced.wait()
        infos = TensorInfo.of_header(header)
        tensors = tuple(info.empty(self._device) for info in infos)
        (works,) = self._channels.post([(False, peer, tensors)])
        self._arriving[edge] = Message(tensors, works), infos


def _edge(action: Action) -> Edge:
    assert action.peer is not None
    ends = (action.stage, action.peer) if action.kind.is_send else (action.peer, action.stage)
    return (action.pipe.index, *ends, action.microbatch)


def acknowledged_by(program: Program, rank: int) -> dict[Edge, Edge]:
    """For each message to a rank, the gradient for which its sender has posted the last receive before it.

    When the message has arrived, this gradient has been or is being received, so no thread has to wait for its send.
    """
    found: dict[Edge, Edge] = {}
    for peer in {action.peer_rank for action in program.actions[rank] if action.kind.is_send}:
        assert peer is not None
        gradient: Edge | None = None
        for action in program.actions[peer]:
            if action.kind.is_message and action.peer_rank == rank:
                edge = _edge(action)
                if action.kind.is_send and gradient is not None:
                    found[edge], gradient = gradient, None
                elif action.kind.is_recv and edge[1] > edge[2]:
                    gradient = edge
    return found


def first_early_receive(actions: Sequence[Action], waits: Sequence[int]) -> str | None:
    """The first receive that is not directly before the action that reads it, or None."""
    numbers = iter(waits)
    for position, action in enumerate(actions):
        if action.kind.is_recv:
            reader = next(numbers)
            between = actions[position + 1 : reader]
            if action.group is not None or not all(other.kind.is_recv for other in between):
                return str(action)
    return None


def edges_from(pipe: Pipe, stage: int, microbatch: int) -> list[Edge]:
    """The edges of the output of a stage."""
    return [(pipe.index, stage, reader, microbatch) for reader in pipe.readers(stage)]
