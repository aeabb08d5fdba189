"""Two streams of a device, for groups whose forwards overlap a backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class Streams:
    """The stream that a step began on, and one beside it."""

    def __init__(self, device: torch.device) -> None:
        self._module: Any = torch.get_device_module(device)
        self._side: Any = self._module.Stream()
        self.on_side = False
        """Where what is performed now runs."""

    @staticmethod
    def of(device: torch.device) -> Streams | None:
        return None if device.type == "cpu" else Streams(device)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Both streams begin behind what stands before, and what comes behind waits for both."""
        main = self._module.current_stream()
        self._side.wait_stream(main)
        yield
        main.wait_stream(self._side)

    @contextmanager
    def on(self, side: bool) -> Iterator[None]:
        if not side:
            yield
            return
        self.on_side = True
        with self._module.stream(self._side):
            yield
        self.on_side = False

    def keep(self, tensors: Sequence[Tensor]) -> None:
        """Their memory, which belongs to the main stream, is not given away before this one has read it."""
        for tensor in tensors if self.on_side else ():
            tensor.record_stream(self._side)
