"""Streams of a device: for groups whose forwards overlap a backward, and for copies to the host and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor


class Streams:
    """The stream on which a step started, a side stream, and one stream for copies in each direction."""

    def __init__(self, device: torch.device) -> None:
        self._module: Any = torch.get_device_module(device)
        self._device = device
        self._main: Any = None
        self._side, self._to_host, self._to_device = (self._module.Stream(device) for _ in range(3))

    @staticmethod
    def of(device: torch.device) -> Streams | None:
        return None if device.type == "cpu" else Streams(device)

    @contextmanager
    def fork_join(self) -> Iterator[None]:
        """A context in which both streams start after the work before it; the work after it waits for both."""
        self._main = main = self._module.current_stream(self._device)
        self._side.wait_stream(main)
        yield
        main.wait_stream(self._side)

    def on(self, side: bool) -> Any:
        """A context on the side or the main stream, inside of beside(), in any thread."""
        return self._module.stream(self._side if side else self._main)

    @property
    def on_side(self) -> bool:
        """Whether the side stream is current."""
        return bool(self._module.current_stream(self._device) == self._side)

    def offload(self, tensor: Tensor) -> tuple[Tensor, Any]:
        """Copies to pinned memory; returns the copy and the event of its end. The source may be freed after it has been read."""
        self._to_host.wait_stream(self._module.current_stream(self._device))
        tensor.record_stream(self._to_host)
        with self._module.stream(self._to_host):
            host = pinned_like(tensor).copy_(tensor, non_blocking=True)
        return host, self._to_host.record_event()

    def reload(self, host: Tensor, device: torch.device, there: Any) -> tuple[Tensor, Any]:
        """Copies back after the event `there`; returns the copy and the event of its end."""
        self._to_device.wait_event(there)
        with self._module.stream(self._to_device):
            tensor = torch.empty_like(host, device=device).copy_(host, non_blocking=True)
        return tensor, self._to_device.record_event()

    def wait_copy(self, tensor: Tensor, there: Any) -> None:
        """Makes the current stream wait for the results of reload()."""
        now = self._module.current_stream(self._device)
        now.wait_event(there)
        tensor.record_stream(now)

    def record_on_side_stream(self, tensors: Sequence[Tensor]) -> None:
        """Keeps the memory of tensors of the main stream until the current stream has read it."""
        for tensor in tensors if self.on_side else ():
            (tensor.to_local() if isinstance(tensor, DTensor) else tensor).record_stream(self._side)


def pinned_like(tensor: Tensor) -> Tensor:
    """Pinned host memory."""
    return torch.empty_like(tensor, device="cpu", pin_memory=True)
