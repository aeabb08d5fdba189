"""What users may ask of tune() of any runtime."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

from ._errors import UsageError

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """The options that `ppcc.torch.tune`, `ppcc.megatron.tune` and `ppcc.torchtitan.tune` take as keywords.

    Raises:
        UsageError: A number is out of range.
    """

    memory_limit: int | None = None
    """The memory that each rank may hold, in bytes: weights, gradients, optimizer state, buffers and activations. By default as much as
    the rank that holds most under the program that runs first."""
    steps: int = 3
    """How many steps are measured at a time, at least 1."""
    effort: int = 20
    """How many millions of actions each search may simulate."""
    state_per_weight: float = 0.0
    """How many bytes of optimizer state there are, or will be, for each byte of a weight that is trained, such as 2 for Adam in the type of
    the weights; for optimizers that the Runtime does not have, or that have not stepped yet."""
    output: str | os.PathLike[str] | None = None
    """A folder in which rank 0 writes `measured.pp`, `tuned.json` (the program), `report.txt` and `report.html`."""
    cache: str | os.PathLike[str] | None = None
    """A folder in which rank 0 keeps results by modules, shapes, program, options, processors and versions. If it has the one of this job,
    all ranks use it, and measure nothing."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UsageError(f"steps is {self.steps}, but must be at least 1")
        if self.state_per_weight < 0:
            raise UsageError(f"state_per_weight is {self.state_per_weight}, but must not be negative")


class TuneKeywords(TypedDict, total=False):
    """The fields of `TuneOptions`, for type checkers."""

    memory_limit: int | None
    steps: int
    effort: int
    state_per_weight: float
    output: str | os.PathLike[str] | None
    cache: str | os.PathLike[str] | None


def with_tune_options(function: Function) -> Function:
    """Lets help() show the fields of `TuneOptions` in place of `**options`."""
    signature: Any = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    shown: Any = function
    shown.__signature__ = signature.replace(parameters=[*own, *inspect.signature(TuneOptions).parameters.values()])
    return function
