"""Overlap of a forward and a backward: communication of one runs while the other computes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager

import torch

from .._program import Action
from ._errors import UsageError


class Half:
    """One side of an overlap group: the forward of a stage, or the backward of one. Calling it runs it.

    The method `overlap_f_b(forward, backward)` of a stage gets two halves and must call each once. Calling one twice raises
    UsageError.

    Attributes:
        actions: The forward; or the backward, and the actions that run with it.
        has_run: Whether it was called.
    """

    def __init__(self, actions: Sequence[Action], runs: Sequence[Callable[[], None]]) -> None:
        self.actions = tuple(actions)
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
    """Lets one of two threads run: the forward's, which creates this, or the backward's (PyTorch has one per device)."""

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
_interleaves = threading.Lock()
"""Held by the thread whose handoff it is: backwards run in threads that PyTorch shares."""


def _thread_state() -> Callable[[], AbstractContextManager[None]]:
    """Returns a context that sets PyTorch's thread-local modes as in this thread."""
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
    """Run a forward and a backward alternately, the forward first, each until it calls `yield_to_other`.

    Use it as the body of `overlap_f_b`. Both run in threads of which one runs at a time, so results are deterministic.

    Args:
        forward: Runs the forward, such as a `Half`.
        backward: Runs the backward.

    Raises:
        Exception: Whatever `forward` or `backward` raises.

    Examples:
        >>> from ppcc.torch import interleave, yield_to_other
        >>> def half(name):
        ...     def run():
        ...         print(name, "begins")
        ...         yield_to_other()
        ...         print(name, "ends")
        ...     return run
        >>> interleave(half("forward"), half("backward"))
        forward begins
        backward begins
        forward ends
        backward ends
    """
    with _interleaves:
        _interleave(forward, backward)


def _interleave(forward: Callable[[], None], backward: Callable[[], None]) -> None:
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
        pass  # The exception of the backward is raised below.
    finally:
        other.exception()  # Waits.
        _handoff = None
    other.result()


def yield_to_other() -> None:
    """Let the other half of an overlap group run until it yields or ends. Without an overlap group, do nothing.

    Call it in the forward of a stage, and in the backward of its autograd functions, after you start a collective such as an
    all-to-all, and before you wait for it. See `interleave`.
    """
    if _handoff is not None:
        _handoff.yield_to_other()
