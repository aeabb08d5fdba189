"""A forward and a backward in turns, where a schedule lets them overlap: an exchange of one runs while the other computes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager

import torch

from .._program import Action
from ._errors import UsageError


class Half:
    """One side of an overlap group, which runs when it is called: the forward of a stage, or the backward of one."""

    def __init__(self, actions: Sequence[Action], runs: Sequence[Callable[[], None]]) -> None:
        self.actions = tuple(actions)
        """One forward; or a backward, and what stands beside it."""
        self.has_run = False
        self._runs = runs

    def __call__(self) -> None:
        if self.has_run:
            raise UsageError(f"{self.actions[0]} was run twice by overlap_f_b()")
        self.has_run = True
        for run in self._runs:
            run()


class _OtherHalfFailed(BaseException):
    """The other half has failed."""


class _Handoff:
    """Two threads, of which one runs. That of the forward made this; others are of the backward: PyTorch has one for each device."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._forward = threading.get_ident()
        self._forward_runs = True
        self._other_finished = self._has_failed = False

    def run(self, half: Callable[[], None]) -> None:
        try:
            self._wait_turn()
            half()
        except BaseException:
            self._has_failed = True
            raise
        finally:
            with self._changed:
                self._other_finished = True
                self._changed.notify_all()

    def yield_to_other(self) -> None:
        with self._changed:
            self._forward_runs = threading.get_ident() != self._forward
            self._changed.notify_all()
        self._wait_turn()

    def _wait_turn(self) -> None:
        is_forward = threading.get_ident() == self._forward
        with self._changed:
            self._changed.wait_for(lambda: self._other_finished or self._forward_runs == is_forward)
            if self._has_failed:
                raise _OtherHalfFailed


_helper = ThreadPoolExecutor(1, "ppcc-overlap")
_handoff: _Handoff | None = None


def _thread_state() -> Callable[[], AbstractContextManager[None]]:
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
    """Runs both, the forward first, each until it gives way: the body of an overlap_f_b() of stages that call yield_to_other()."""
    global _handoff
    _handoff = handoff = _Handoff()
    thread_state = _thread_state()

    def run_backward() -> None:
        with thread_state():
            handoff.run(backward)

    other = _helper.submit(run_backward)
    try:
        handoff.run(forward)
    except _OtherHalfFailed:
        pass  # What the backward has thrown follows.
    finally:
        error = other.exception()
        _handoff = None
    if error is not None:
        raise error


def yield_to_other() -> None:
    """Lets the other half of an overlap group run until it gives way itself, or ends. Elsewhere it does nothing.

    For the forwards of stages, and the backwards of their autograd functions: between the begin of an exchange, such as an
    all-to-all, and the wait for it.
    """
    if _handoff is not None:
        _handoff.yield_to_other()
