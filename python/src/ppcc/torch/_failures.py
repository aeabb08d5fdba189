"""Ends a step on all ranks when it fails on one."""

from __future__ import annotations

import atexit
import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d
from torch._C._distributed_c10d import Store

from ._errors import StepError

_log = logging.getLogger(__name__)
_KEY = "ppcc/failed"
_SHUTDOWN = "ppcc/end"
JOIN_TIMEOUT = 5.0
"""Seconds for a thread to end."""
_ABORT_INTERVAL = 1.0
"""Seconds until the groups of a step that has failed, and that has not ended, are aborted again."""
_UNUSED_TAG = 1 << 20


class Failures:
    """Tells all processes of the job of the first failure, and wakes those that wait for a message or a sum.

    The word goes by the store of the job; a thread in each process listens, and aborts all its process groups. It waits for a
    key of its own, which ends it at the exit of the process: a thread that comes back from C++ while the interpreter ends
    would abort the process.
    """

    _of_store: ClassVar[tuple[Store, Failures] | None] = None

    def __init__(self, store: Store) -> None:
        self._store = store
        self.first_failure: str | None = None
        """What has failed first in the job, if this process knows of it."""
        self._lock = threading.Lock()
        self._rank = dist.get_rank()
        self._keys = [f"{_KEY}/{rank}" for rank in range(dist.get_world_size())]
        self._listener = threading.Thread(target=self._listen, args=(store.clone(),), name="ppcc-failures", daemon=True)
        self._listener.start()
        atexit.register(self._shutdown)

    @classmethod
    def for_job(cls) -> Failures | None:
        """That of this process; None where there is no other."""
        if not dist.is_initialized() or dist.get_world_size() == 1:
            return None
        store = dist.distributed_c10d._get_default_store()
        if cls._of_store is None or cls._of_store[0] is not store:
            cls._of_store = store, cls(store)
        return cls._of_store[1]

    def check(self) -> None:
        """Raises StepError when something has failed before."""
        if self.first_failure is not None:
            raise StepError(f"an earlier step has failed: {self.first_failure}")

    def report_failure(self, text: str) -> str:
        """What has failed first in the job: this, or what has made this fail."""
        try:
            first = str(self._store.compare_set(_KEY, "", text), "utf-8")
            if first == text:
                for key in self._keys:
                    self._store.set(key, text)
        except RuntimeError:  # The process that serves the store has ended.
            first = text
        self._abort(first)
        return first

    @contextmanager
    def watch_step(self, timeout: timedelta | None, progress: Callable[[], object]) -> Iterator[None]:
        """Ends a step when the job has failed, or when what this process is at stays the same for longer than the timeout."""
        ended = threading.Event()

        def watch() -> None:
            seconds = _ABORT_INTERVAL if timeout is None else timeout.total_seconds()
            now, since = progress(), time.monotonic()
            while not ended.wait(min(seconds / 10, _ABORT_INTERVAL)):
                if self.first_failure is not None:
                    # An abort misses the group that is being made and the operation that is being begun.
                    self._abort_groups()
                    continue
                before, now = now, progress()
                if now is not before:
                    since = time.monotonic()
                elif timeout is not None and time.monotonic() - since > seconds:
                    where = "" if now is None else f", {now}"
                    self.report_failure(f"rank {self._rank}{where}: no progress for {seconds:g} s (timeout=), another rank may have stopped")

        watcher = threading.Thread(target=watch, name="ppcc-step")
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _listen(self, store: Store) -> None:
        try:
            store.wait([self._keys[self._rank]], timedelta(days=1000))
            first = str(store.get(self._keys[self._rank]), "utf-8")
        except RuntimeError:  # The job has ended.
            return
        if first != _SHUTDOWN:
            self._abort(first)

    def _shutdown(self) -> None:
        try:
            self._store.set(self._keys[self._rank], _SHUTDOWN)
        except RuntimeError:  # The process that serves the store has ended, which has ended the listener.
            pass
        self._listener.join(JOIN_TIMEOUT)

    def _abort(self, first: str) -> None:
        with self._lock:
            if self.first_failure is not None:
                return
            self.first_failure = first
        _log.error("rank %d aborts its process groups: %s", self._rank, first)
        self._abort_groups()

    def _abort_groups(self) -> None:
        with self._lock:
            abort_groups()


def flight_records() -> bytes | None:
    """What PyTorch's flight recorder has, or None."""
    for name in ("_dump_nccl_trace", "_dump_fr_trace"):
        dump = getattr(_distributed_c10d, name, None)  # Not in every build.
        records: bytes = b"" if dump is None else dump()
        if records and pickle.loads(records)["entries"]:
            return records
    return None


def abort_groups() -> None:
    """Lets everything that waits in a process group of this process raise."""
    groups = list(dist.distributed_c10d._world.pg_map)
    backends = {id(backend): (group, backend) for group in groups for backend in _backends(group)}.values()
    for group, backend in backends:
        if backend.name() == "gloo":
            _abort_gloo(group)
    aborted = [backend for _, backend in backends if backend.name() != "gloo"]
    # Each alone would wait for the device, which waits in the others: pytorch#119797.
    grouped = [backend for backend in aborted if hasattr(backend, "_group_start")][:1]
    for backend in grouped:
        backend._group_start()
    try:
        for backend in aborted:
            backend.abort()
    finally:
        for backend in grouped:
            backend._group_end()


def _backends(group: dist.ProcessGroup) -> Iterator[Any]:
    for device in ("cpu", "cuda"):
        try:
            yield group._get_backend(torch.device(device))
        except RuntimeError:
            pass


def _abort_gloo(group: dist.ProcessGroup) -> None:
    if group.size() > 1:
        try:  # Gloo closes all connections of a group when one wait has been too long.
            unused_peer = (group.rank() + 1) % group.size()
            group.recv([torch.zeros(1, device="cpu")], unused_peer, _UNUSED_TAG).wait(timedelta(milliseconds=1))
        except RuntimeError:
            pass
