"""What the spread of measured times adds to a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .._profile import Profile
from .._program import Program

DRAWS = 64
"""How many runs the expected step is the mean of."""


@dataclass
class Spread:
    """How much longer runs take whose actions take times that were measured, instead of their medians.

    An action of a run takes a random one of the times that were measured of its kind and stage. Runs of all orders have the same times.
    Messages take their latencies, and ranks wait for data alone.
    """

    profile: Profile
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))
    drawn: dict[tuple[str, int, int], Tensor] = field(default_factory=dict)

    def of(self, program: Program) -> float:
        """The mean makespan of the runs, divided by that with medians."""
        makespans = self.makespans(program)
        return float(makespans[:-1].mean() / makespans[-1]) if makespans[-1] > 0 else 1.0

    def makespans(self, program: Program) -> Tensor:
        """The makespans of all runs, and last that with medians, in milliseconds."""
        (pipe,) = program.pipes
        latencies = [float(text) for text in self.profile.latencies()] or [0.0] * pipe.num_stages
        ends: dict[tuple[str, int, int], Tensor] = {}
        queues = [[action for action in actions if action.kind.is_compute][::-1] for actions in program.actions]
        free = [torch.zeros(DRAWS + 1, dtype=torch.float64) for _ in queues]

        def reads(op: str, stage: int, microbatch: int) -> list[tuple[str, int, int]]:
            if op == "F":
                return [("F", source, microbatch) for source in pipe.sources(stage)]
            own = ("I" if op == "W" else "F", stage, microbatch)
            return [own, *(("I", reader, microbatch) for reader in pipe.readers(stage) if op != "W")]

        while any(queues):
            for rank, queue in enumerate(queues):
                while queue and all(slot in ends for slot in reads(queue[-1].op, queue[-1].stage, queue[-1].microbatch)):
                    action = queue.pop()
                    for slot in reads(action.op, action.stage, action.microbatch):
                        away = pipe.rank_of_stage[slot[1]] != rank
                        free[rank] = torch.maximum(free[rank], ends[slot] + (latencies[min(slot[1], action.stage)] if away else 0.0))
                    free[rank] = free[rank] + self._duration(action.op, action.stage, action.microbatch)
                    ends["I" if action.op == "B" else action.op, action.stage, action.microbatch] = free[rank]
        return torch.stack(free).amax(0)

    def _duration(self, *key: Any) -> Tensor:
        if key not in self.drawn:
            op, stage, _ = key
            times = torch.tensor([float(time) / 1000 for time in self.profile.times[op][stage]], dtype=torch.float64)
            chosen = times[torch.randint(len(times), (DRAWS,), generator=self.generator)]
            middle = float(self.profile.median(self.profile.times[op][stage]))
            self.drawn[key] = torch.cat([chosen, torch.tensor([middle], dtype=torch.float64)])
        return self.drawn[key]
