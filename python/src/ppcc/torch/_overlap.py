"""A forward and a backward in turns, where a schedule lets them overlap: an exchange of one runs while the other computes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager

import torch

from .._program import Action
from ._errors import RuntimeMisuse


class Half:
    """One side of an overlap group, which runs when it is called: the forward of a stage, or the backward of one."""

    def __init__(self, actions: Sequence[Action], runs: Sequence[Callable[[], None]]) -> None:
        self.actions = tuple(actions)
        """One forward; or a backward, and what stands beside it."""
        self.has_run = False
        self._runs = runs

    def __call__(self) -> None:
        if self.has_run:
            raise RuntimeMisuse(f"{self.actions[0]} was run twice by overlap_f_b()")
        self.has_run = True
        for run in self._runs:
            run()


class _Interrupted(BaseException):
    """The other half has failed."""


class _Turns:
    """Two threads, of which one runs. That of the forward made this; others are of the backward: PyTorch has one for each device."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._forward = threading.get_ident()
        self._is_forwards = True
        self._is_alone = self._has_failed = False

    def run(self, half: Callable[[], None]) -> None:
        try:
            self._await()
            half()
        except BaseException:
            self._has_failed = True
            raise
        finally:
            with self._changed:
                self._is_alone = True
                self._changed.notify_all()

    def give_way(self) -> None:
        with self._changed:
            self._is_forwards = threading.get_ident() != self._forward
            self._changed.notify_all()
        self._await()

    def _await(self) -> None:
        is_forward = threading.get_ident() == self._forward
        with self._changed:
            self._changed.wait_for(lambda: self._is_alone or self._is_forwards == is_forward)
            if self._has_failed:
                raise _Interrupted


_helper = ThreadPoolExecutor(1, "ppcc-overlap")
_turns: _Turns | None = None


def _modes() -> Callable[[], AbstractContextManager[None]]:
    """The modes of this thread, as a context for another one: PyTorch keeps them for each thread."""
    casts = [(device, torch.get_autocast_dtype(device)) for device in ("cpu", "cuda") if torch.is_autocast_enabled(device)]
    gradients, inference, caches = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_cache_enabled()

    @contextmanager
    def entered() -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(inference))
            stack.enter_context(torch.set_grad_enabled(gradients))
            for device, dtype in casts:
                stack.enter_context(torch.autocast(device, dtype, cache_enabled=caches))
            yield

    return entered


def interleave(forward: Callable[[], None], backward: Callable[[], None]) -> None:
    """Runs both, the forward first, each until it gives way: the body of an overlap_f_b() of stages that call give_way()."""
    global _turns
    _turns = turns = _Turns()
    modes = _modes()

    def beside() -> None:
        with modes():
            turns.run(backward)

    other = _helper.submit(beside)
    try:
        turns.run(forward)
    except _Interrupted:
        pass  # What the backward has thrown follows.
    finally:
        error = other.exception()
        _turns = None
    if error is not None:
        raise error


def give_way() -> None:
    """Lets the other half of an overlap group run until it gives way itself, or ends. Elsewhere it does nothing.

    For the forwards of stages, and the backwards of their autograd functions: between the begin of an exchange, such as an
    all-to-all, and the wait for it.
    """
    if _turns is not None:
        _turns.give_way()
