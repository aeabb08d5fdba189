"""Stages that sleep for known times, so that other work on the machine hardly counts."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor, nn

Seconds = tuple[float, float, float]
"""What F, I and W of a stage take."""


class SleepForward(torch.autograd.Function):
    """Takes the time of F, and in the backward that of I."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, seconds: Seconds) -> Tensor:
        time.sleep(seconds[0])
        ctx.seconds = seconds
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        time.sleep(ctx.seconds[1])
        return gradient, None


class SleepWeight(torch.autograd.Function):
    """Takes the time of W."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, seconds: Seconds) -> Tensor:
        ctx.seconds = seconds
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        time.sleep(ctx.seconds[2])
        return gradient, None


class Sleeper(nn.Module):
    """The first stage has no gradient of its input, and so no I."""

    def __init__(self, number: int, width: int, seconds: Seconds) -> None:
        super().__init__()
        self.seconds = seconds
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, width, dtype=torch.float64) + number)
        self.register_buffer("forwards", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.forwards += 1
        return torch.tanh(SleepForward.apply(x, self.seconds) * SleepWeight.apply(self.weight, self.seconds))


class RankSleeper(Sleeper):
    """A layer that takes as long as its rank is slow."""

    factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        self.forwards += 1
        seconds = tuple(RankSleeper.factor * time for time in self.seconds)
        return torch.tanh(SleepForward.apply(x, seconds) * SleepWeight.apply(self.weight, seconds))
