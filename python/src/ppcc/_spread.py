"""What the spread of measured times adds to a step."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ._profile import Profile
from ._program import Program

DRAWS = 32
"""How many runs the expected step is the mean of."""

Times = list[float]
"""Of all runs, and last of the one with medians, in milliseconds."""
Slot = tuple[str, int, int]
"""A kind, a stage, a microbatch."""


@dataclass
class Spread:
    """How much longer runs take whose actions take times that were measured, instead of their medians.

    An action of a run takes a random one of the times that were measured of its kind and stage. Runs of all orders have the same times.
    Messages take their latencies, and ranks wait for data alone.
    """

    profile: Profile
    generator: random.Random = field(default_factory=lambda: random.Random(0))
    drawn: dict[Slot, Times] = field(default_factory=dict)

    def of(self, program: Program) -> float:
        """The mean makespan of the runs, divided by that with medians."""
        *drawn, middle = self.makespans(program)
        return sum(drawn) / DRAWS / middle if middle > 0 else 1.0

    def makespans(self, program: Program) -> Times:
        """The makespans of all runs, and last that with medians, in milliseconds."""
        (pipe,) = program.pipes
        latencies = [float(text) for text in self.profile.latencies()] or [0.0] * pipe.num_stages
        ends: dict[Slot, Times] = {}
        queues = [[action for action in actions if action.kind.is_compute][::-1] for actions in program.actions]
        free: list[Times] = [[0.0] * (DRAWS + 1) for _ in queues]

        def reads(op: str, stage: int, microbatch: int) -> list[Slot]:
            if op == "F":
                return [("F", source, microbatch) for source in pipe.sources(stage)]
            own = ("I" if op == "W" else "F", stage, microbatch)
            return [own, *(("I", reader, microbatch) for reader in pipe.readers(stage) if op not in ("R", "W"))]

        while any(queues):
            for rank, queue in enumerate(queues):
                while queue and all(slot in ends for slot in reads(queue[-1].op, queue[-1].stage, queue[-1].microbatch)):
                    action = queue.pop()
                    now = free[rank]
                    for slot in reads(action.op, action.stage, action.microbatch):
                        if pipe.rank_of_stage[slot[1]] != rank:
                            latency = latencies[min(slot[1], action.stage)]
                            now = [time if time > end + latency else end + latency for time, end in zip(now, ends[slot], strict=True)]
                    now = [time + length for time, length in zip(now, self._duration(action.op, action.stage, action.microbatch), strict=True)]
                    free[rank] = ends["I" if action.op == "B" else action.op, action.stage, action.microbatch] = now
        return [max(times) for times in zip(*free, strict=True)]

    def _duration(self, *key: str | int) -> Times:
        found: Slot = key  # type: ignore[assignment]
        if found not in self.drawn:
            times = self.profile.times["F" if found[0] == "R" else found[0]][found[1]]  # R repeats the forward.
            self.drawn[found] = [float(one) / 1000 for one in self.generator.choices(times, k=DRAWS)] + [float(self.profile.median(times))]
        return self.drawn[found]
