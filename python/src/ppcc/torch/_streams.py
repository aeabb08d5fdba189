"""Streams of a device: for groups whose forwards overlap a backward, and for copies to the host and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class Streams:
    """The stream that a step began on, one beside it, and one for copies each way."""

    def __init__(self, device: torch.device) -> None:
        self._module: Any = torch.get_device_module(device)
        self._main: Any = None
        self._side: Any = self._module.Stream()
        self._to_host: Any = self._module.Stream()
        self._to_device: Any = self._module.Stream()

    @staticmethod
    def of(device: torch.device) -> Streams | None:
        return None if device.type == "cpu" else Streams(device)

    @contextmanager
    def fork_join(self) -> Iterator[None]:
        """Both streams begin behind what stands before, and what comes behind waits for both."""
        self._main = main = self._module.current_stream()
        self._side.wait_stream(main)
        yield
        main.wait_stream(self._side)

    def on(self, side: bool) -> Any:
        """A context inside of beside(), in whatever thread."""
        return self._module.stream(self._side if side else self._main)

    @property
    def on_side(self) -> bool:
        """Where what is performed now runs."""
        return bool(self._module.current_stream() == self._side)

    def offload(self, tensor: Tensor) -> tuple[Tensor, Any]:
        """A copy in pinned memory, and the event of its end. The memory is given away when it has been read."""
        self._to_host.wait_stream(self._module.current_stream())
        tensor.record_stream(self._to_host)
        with self._module.stream(self._to_host):
            host = pinned_like(tensor).copy_(tensor, non_blocking=True)
        return host, self._to_host.record_event()

    def reload(self, host: Tensor, device: torch.device, there: Any) -> tuple[Tensor, Any]:
        """The opposite, behind the event `there`, and the event of its end."""
        self._to_device.wait_event(there)
        with self._module.stream(self._to_device):
            tensor = torch.empty_like(host, device=device).copy_(host, non_blocking=True)
        return tensor, self._to_device.record_event()

    def wait_copy(self, tensor: Tensor, there: Any) -> None:
        """The stream of now is to read what reload() gave."""
        now = self._module.current_stream()
        now.wait_event(there)
        tensor.record_stream(now)

    def record_on_side_stream(self, tensors: Sequence[Tensor]) -> None:
        """Their memory, which belongs to the main stream, is not given away before this one has read it."""
        for tensor in tensors if self.on_side else ():
            tensor.record_stream(self._side)


def pinned_like(tensor: Tensor) -> Tensor:
    """Memory of the host that the device reads and writes by itself."""
    return torch.empty_like(tensor, device="cpu", pin_memory=True)
