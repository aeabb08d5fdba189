"""Observers of steps, which name actions in profiles or measure their times and memory."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from .._profile import Event, Profile
from .._program import Action
from ._stash import Key, OffloadedTensors, key_of

if TYPE_CHECKING:
    from ._groups import Groups
    from ._messages import Edge
    from ._step import Step


class Observer:
    """What a step calls around its actions and waits for messages, and before it posts messages. This one does nothing."""

    def runs(self, step: Any, action: Action) -> AbstractContextManager[object]:
        return nullcontext()

    def waits(self, edge: Edge) -> AbstractContextManager[object]:
        return nullcontext()

    def idles(self) -> AbstractContextManager[object]:
        """Around other waiting, between actions."""
        return nullcontext()

    def posts(self, actions: Sequence[Action]) -> None:
        pass


class NamedRanges(Observer):
    """Names actions in the traces of PyTorch's profiler, from when they have received what they read. Also names messages: where they are
    sent, and while a rank waits for them."""

    def __init__(self, handlers: Collection[str] = ()) -> None:
        """`handlers` are the mnemonics of actions that may read nothing."""
        self._handlers = handlers
        self._starting: dict[Key, tuple[list[int], Callable[[], object]]] = {}
        """By pipe, stage and microbatch: how many messages an action still waits for, and what begins its range."""

    @contextmanager
    def runs(self, step: object, action: Action) -> Iterator[None]:
        key = key_of(action)
        with ExitStack() as ranges:
            if count := 0 if action.op in self._handlers else _count_received(action):
                self._starting[key] = [count], lambda: ranges.enter_context(torch.profiler.record_function(str(action)))
            else:
                ranges.enter_context(torch.profiler.record_function(str(action)))
            try:
                yield
            finally:
                self._starting.pop(key, None)

    @contextmanager
    def waits(self, edge: Edge) -> Iterator[None]:
        with torch.profiler.record_function(_receive_name(edge)):
            yield
        left, begin = self._starting.get((edge[0], *edge[2:]), ([0], None))
        left[0] -= 1
        if begin is not None and left[0] == 0:
            begin()

    def posts(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if action.kind.is_send:
                with torch.profiler.record_function(str(action)):
                    pass


def _count_received(action: Action) -> int:
    """How many messages from other ranks an action reads."""
    pipe, home = action.pipe, action.pipe.rank_of_stage
    read = pipe.sources(action.stage) if action.op == "F" else pipe.readers(action.stage) if action.op in ("B", "I") else ()
    return sum(home[stage] != home[action.stage] for stage in read)


def _receive_name(edge: Edge) -> str:
    _, source, stage, microbatch = edge
    return f"{stage}RECV_{'F' if source < stage else 'B'}{microbatch}"


class MemoryMeter(Observer):
    """Measures what the first forward and the first I of each stage of a rank keep, in bytes.

    A forward keeps what autograd saves, what it has received, and its outputs, but not weights and the batch. An I keeps the
    gradients that its W reads, beside all that its forward keeps: an upper bound.
    """

    def __init__(self) -> None:
        self.kept: dict[str, dict[int, int]] = {"F": {}, "I": {}}
        self.restored: dict[int, int] = {}
        """What recomputation would free and take again: all but what a forward has received."""

    @contextmanager
    def runs(self, step: Any, action: Action) -> Iterator[None]:
        measures = step._trains and action.stage not in self.kept.get(action.op, (action.stage,))
        if measures and action.op == "F":
            memory = OffloadedTensors(step.stays(action))
            with memory.saving_hooks():
                yield
            stash = step._stashes[key_of(action)]
            kept = self.kept["F"][action.stage] = memory.count_bytes([*stash.received(), *stash.outputs])
            self.restored[action.stage] = kept - OffloadedTensors(()).count_bytes(stash.received())
            return
        yield
        if measures:
            deferred = step._stashes[key_of(action)].weights
            gradients = [leaf for leaf in tree_leaves(getattr(deferred, "args", ())) if isinstance(leaf, Tensor)]
            self.kept["I"][action.stage] = OffloadedTensors(()).count_bytes(gradients)


class TimeRecorder(Observer):
    """Records what a rank does in steps, as events of a trace (docs/profiles.md).

    An action lasts from the end of the one before it to its own end, except for the time in which the rank waits for messages. So all
    time of a rank between its first and its last action is either work or waiting.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.spans: list[tuple[int, int]] = []
        """When the actions of each step began and ended, in nanoseconds."""
        self._posted: dict[str, int] = {}
        self._waited = 0
        self._step: weakref.ref[Step] | None = None
        self._end: int | None = None

    @contextmanager
    def runs(self, step: Step, action: Action) -> Iterator[None]:
        if not step._trains:
            yield
            return
        if self._step is None or self._step() is not step:
            self._step, self._end = weakref.ref(step), None
            self._waited = 0
        entered = now()
        yield
        end = now()
        if self._end is None:
            self.spans.append((entered, end))
            self._end = entered
        self._add(str(action), self._end, end - self._end - self._waited)
        self._end, self._waited = end, 0
        self.spans[-1] = self.spans[-1][0], end

    @contextmanager
    def waits(self, edge: Edge) -> Iterator[None]:
        begin = now()
        yield
        end = now()
        self._waited += end - begin
        name = _receive_name(edge)
        posted = self._posted.pop(name)
        self._add(name, posted, end - posted, end - begin)

    @contextmanager
    def idles(self) -> Iterator[None]:
        begin = now()
        yield
        self._waited += now() - begin

    def posts(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if action.kind.is_send:
                self._add(str(action), now(), 0)
            else:
                self._posted[str(action)] = now()

    def gather(self, groups: Groups, memory: Mapping[str, Mapping[int, int]], profile: Profile) -> list[float]:
        """Adds what all ranks have recorded, and what their stages keep, to a profile. Returns the time from the first action to the last one of
        each step, in milliseconds. All ranks call it together."""
        offsets = clock_offsets(groups)
        ranks = groups.all_gather((self.events, self.spans, memory))
        for offset, (events, _, kept) in zip(offsets, ranks, strict=True):
            for event in events:
                assert event.start is not None
                profile.add(event._replace(start=event.start - Decimal(offset) / 1000))
            for name, amounts in kept.items():
                if amounts:
                    profile.memory.setdefault(name, {}).update(amounts)
        corrected = [[(begin - offset, end - offset) for begin, end in spans] for offset, (_, spans, _) in zip(offsets, ranks, strict=True)]
        return [(max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1e6 for spans in zip(*corrected)]

    def _add(self, name: str, start: int, duration: int, waited: int | None = None) -> None:
        waiting = None if waited is None else Decimal(waited) / 1000
        self.events.append(Event(name, Decimal(duration) / 1000, Decimal(start) / 1000, waiting, ""))


def clock_offsets(groups: Groups) -> list[int]:
    """By how many nanoseconds the clock of each rank is ahead of rank 0's; 0 if it may be the same clock.

    Each rank reads its clock between two meetings of all, which rank 0 times. The shortest such time bounds the error.
    """
    found: list[tuple[int, list[int]]] = []
    for _ in range(5):
        begin = now()
        groups.all_gather(None)
        clocks = groups.all_gather(now())
        width = now() - begin
        ahead = [clock - begin - width // 2 for clock in clocks]
        found.append((width, [offset if abs(offset) > width // 2 else 0 for offset in ahead]))
    return groups.all_gather(min(found)[1])[0]


def now() -> int:
    """The time in nanoseconds; of processes of one machine the same."""
    return time.perf_counter_ns()
