"""Actions `to` and `from` a rank: the memory of a microbatch is moved to another rank, and back.

The rank of the stage sends, and goes on; the other rank waits until it knows how much comes. What comes back is waited for before it is
read. Each pair of ranks has a group of its own, in which both post in the order of their lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from .._program import Action, Program
from ._channels import Channels, Message
from ._groups import Groups
from ._stash import Key, OffloadedTensors


def is_move(action: Action) -> bool:
    """Whether it moves memory between ranks."""
    return action.kind.collective in ("to", "from")


def home(action: Action) -> int:
    """The rank of the stage of an action."""
    return action.pipe.rank_of_stage[action.stage]


class Moves:
    """Moves memory between this rank and others. All ranks create it together."""

    def __init__(self, program: Program, rank: int, groups: Groups, channels: Channels, device: torch.device) -> None:
        self._rank, self._ranks, self._channels, self._device = rank, groups, channels, device
        self._groups: dict[int, dist.ProcessGroup] = {}
        self._guests: dict[Key, Message] = {}
        """What this rank keeps for others."""
        if any(kind.collective in ("to", "from") for kind in program.kinds):
            peers = {self._peer(action) for action in program.actions[rank] if is_move(action)}
            pairs = {(min(one, peer), max(one, peer)) for one, all_peers in enumerate(groups.all_gather(peers)) for peer in all_peers}
            made = {pair: groups.new_group(pair, label="moves") for pair in sorted(pairs)}
            self._groups = {sum(pair) - rank: group for pair, group in made.items() if rank in pair}

    def _peer(self, action: Action) -> int:
        assert action.peer_rank is not None
        return action.peer_rank + home(action) - self._rank

    def run(self, action: Action, key: Key, offloaded: OffloadedTensors | None, inputs: list[Tensor]) -> None:
        """Runs the side of this rank of an action; `offloaded` and `inputs` are those of its own microbatch."""
        peer = self._peer(action)
        if action.kind.collective == "to":
            if offloaded is not None:
                tensors = offloaded.give_away(inputs)
                self._send(peer, [self._numbers([len(tensors)]), self._numbers([tensor.numel() for tensor in tensors]), *tensors])
            else:
                (count,) = self._receive_numbers(peer, 1)
                memory = [torch.empty(size, dtype=torch.uint8, device=self._device) for size in self._receive_numbers(peer, count)]
                self._guests[key] = Message(tuple(memory), self._post(dist.irecv, peer, memory))
        elif offloaded is not None:
            offloaded.arriving += self._post(dist.irecv, peer, offloaded.take_back())
        else:
            self._send(peer, self._guests.pop(key).wait())

    def _send(self, peer: int, tensors: Sequence[Tensor]) -> None:
        """Sends tensors, and frees them when they have been sent."""
        self._channels.outbox(peer).put(Message(tuple(tensors), self._post(dist.isend, peer, tensors)))

    def _numbers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self._device)

    def _receive_numbers(self, peer: int, count: int) -> list[int]:
        numbers = self._numbers([0] * count)
        for work in self._post(dist.irecv, peer, [numbers]):
            work.wait()
        return numbers.tolist()

    def _post(self, post: Callable[..., dist.Work | None], peer: int, tensors: Sequence[Tensor]) -> list[dist.Work]:
        works = [post(tensor, self._ranks.global_rank(peer), self._groups[peer]) for tensor in tensors if tensor.numel()]
        return [work for work in works if work is not None]
