"""Which stage gets which layers: the layout with the shortest step, by the costs of layers.

Algorithm: local search from two layouts, the one now and one whose ranks have about equally much work. A neighbour gives
one stage a layer less and another one a layer more, which shifts all boundaries between them by a layer. It is rated by the makespan of
the best order that a short synthesis finds within the memory limit. The search takes the best neighbour until none is better.
For each placement it runs by itself.

Cost: at most MAX_RATED syntheses a placement; a layout with a rank whose work alone takes longer than the best makespan is not rated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Any

from .._choose import MAX_LIMIT, Placement
from .._compiler import SynthesisResult
from .._diagnostics import CompileError
from .._profile import Profile
from .._sweep import LIMIT_TOO_SMALL
from ._layers import Layer, Layout

MAX_RATED = 400


@dataclass
class LayerCosts:
    """The costs of stages from those of their layers, for any layout.

    What a stage of the given layout takes beside its layers, such as the loss, stays with the stage; of other numbers of stages the first and the last have what
    those of the given layout have, and others the mean of the rest. If it takes less than the sum of its
    layers, these count in proportion. The first stage computes no gradient of its input, so all of its backward is W.
    """

    layers: Sequence[Layer]
    profile: Profile
    """What was measured of the given layout."""
    given: Layout
    slower: Sequence[float] = ()
    """By stage, by what its times are multiplied, since its rank has become slower; 1 if it is empty."""

    def __post_init__(self) -> None:
        self.kinds = [kind for kind in "FBIW" if all(kind in layer.times for layer in self.layers)]
        measured = {kind: [float(self.profile.typical(times)) for _, times in sorted(stages.items())] for kind, stages in self.profile.times.items()}
        stages = range(len(self.given))
        self._scale = {kind: [1.0] * len(self.given) for kind in self.kinds}
        self._rest = {kind: [0.0] * len(self.given) for kind in self.kinds}
        split = {"I", "W"} <= measured.keys()
        for stage in stages:
            own = [self.layers[number] for number in self.given[stage]]
            for kind in self.kinds:
                # What only the other kind of backward has measured.
                base = (kind,) if kind in measured else ("I", "W") if split else ("B",)
                alone = sum(_alone(own, stage, one) for one in base)
                took = sum(measured[one][stage] for one in base)
                if took < alone:
                    self._scale[kind][stage] = took / alone
                elif kind in base or kind != "W":
                    self._rest[kind][stage] = took - alone
        self._scale_of = {kind: [scale for stage, scale in enumerate(self._scale[kind]) for _ in self.given[stage]] for kind in self.kinds}
        self._more: dict[str, list[int]] = {}
        """What stages hold beside their layers, by the names of memory."""
        composed = self.memory(self.given)
        for name, amounts in self.profile.memory.items():
            self._more[name] = [amounts[stage] - composed[name][stage] for stage in stages]

    def times(self, layout: Layout) -> dict[str, list[float]]:
        """By kind, the time of each stage in milliseconds."""
        slower = self.slower or [1.0] * len(layout)
        return {
            kind: [
                slower[stage] * (rest + sum(self._scale_of[kind][number] * _alone([self.layers[number]], stage, kind) for number in numbers))
                for stage, (numbers, rest) in enumerate(zip(layout, _for_stages(self._rest[kind], len(layout)), strict=True))
            ]
            for kind in self.kinds
        }

    def memory(self, layout: Layout) -> dict[str, list[int]]:
        """What stages keep of a microbatch after F and I, and `static`, in bytes."""
        found: dict[str, list[int]] = {"F": [], "I": [], "static": []}
        for stage, numbers in enumerate(layout):
            own = [self.layers[number] for number in numbers]
            kept = (own[0].input if stage else 0) + own[-1].output + sum(layer.kept for layer in own)
            kept += sum(before.output for before, layer in zip(own, own[1:], strict=False) if before.keeps_output or layer.keeps_input)
            found["F"].append(kept)
            found["I"].append(sum(layer.kept_for_weights for layer in own) if stage else own[-1].output)
            found["static"].append(sum(layer.static for layer in own))
        for name, more in self._more.items():
            found[name] = [max(0, int(one + extra)) for one, extra in zip(found[name], _for_stages(more, len(layout)), strict=True)]
        return found

    def of(self, layout: Layout, limit: float) -> dict[str, Any]:
        """The costs of a layout."""
        memory: dict[str, Any] = self.memory(layout)
        costs: dict[str, Any] = {"cost": {kind: [round(time, 9) for time in times] for kind, times in self.times(layout).items()}}
        if latencies := self.profile.latencies():
            known = [float(latency) for latency in latencies]
            costs["latency"] = known if len(known) == len(layout) else median(known)
        return costs | {"static": memory.pop("static"), "memory": memory, "limit": min(limit, MAX_LIMIT)}


def _for_stages(given: Sequence[float], count: int) -> Sequence[float]:
    """What stages have beside their layers, of another number of stages: the first and the last stay first and last."""
    if len(given) == count:
        return given
    middle = sum(given[1:-1]) / (len(given) - 2) if len(given) > 2 else 0.0
    return [given[0] if len(given) > 1 else 0.0, *[middle] * (count - 2), given[-1]]


def _alone(layers: Sequence[Layer], stage: int, kind: str) -> float:
    if stage == 0 and kind == "I":
        return 0.0
    return sum(layer.times[kind] + (layer.times["I"] if stage == 0 and kind == "W" else 0.0) for layer in layers)


def layout_of(sizes: Sequence[int]) -> Layout:
    """The layout of stages that have so many layers."""
    ends = list(accumulate(sizes))
    return tuple(tuple(range(end - size, end)) for size, end in zip(sizes, ends, strict=True))


def find_layout(
    costs: LayerCosts, now: Layout | None, placement: Placement, transports: Sequence[str], limit: float, effort: int, backwards: Sequence[str]
) -> tuple[Layout, SynthesisResult | None, SynthesisResult | None]:
    """The best layout of a placement, the order that was found for it, and for the one now, if that has this placement; None for
    an order if none fits. `backwards` are the kinds of backward to try: B, IW."""

    def synthesized(layout: Layout, effort: int) -> SynthesisResult | None:
        found, own = [], costs.of(layout, limit)
        for backward in backwards:
            try:
                found.append(placement.synthesize(transport=transports, fused_backward=backward == "B", effort=effort, costs=own))
            except CompileError as error:
                if any(one.code != LIMIT_TOO_SMALL for one in error.errors):
                    raise
        return min(found, key=lambda one: one.makespan, default=None)

    def rate(layout: Layout) -> float:
        found = synthesized(layout, 1)
        return math.inf if found is None else found.makespan

    layout = search(costs, now, placement.rank_of_stage, placement.microbatches, backwards, rate)
    return layout, synthesized(layout, effort), None if now is None else synthesized(now, effort)


def search(costs: LayerCosts, now: Layout | None, rank_of_stage: Sequence[int], microbatches: int, backwards: Sequence[str], rate: Callable[[Layout], float]) -> Layout:
    """The best layout that was found. `rate` returns the makespan of a layout, or infinity if no order fits. Without a layout `now` the search starts from an
    even one."""
    trained, stages = [layer.trains for layer in costs.layers], len(rank_of_stage)
    needs_weights = [any(trained[number] for number in numbers) for numbers in costs.given]
    if len(needs_weights) != stages:
        needs_weights = [all(needs_weights)] * stages
    rated: dict[Layout, float] = {}

    def work(layout: Layout) -> float:
        """What the rank that has most to do takes, with the backward that takes less."""
        times, found = costs.times(layout), []
        for backward in backwards:
            busy: dict[int, float] = {}
            for stage, rank in enumerate(rank_of_stage):
                busy[rank] = busy.get(rank, 0.0) + microbatches * sum(times[kind][stage] for kind in f"F{backward}")
            found.append(max(busy.values()))
        return min(found)

    def allowed(layout: Layout) -> bool:
        return all(
            numbers and (not needs or any(trained[number] for number in numbers)) for numbers, needs in zip(layout, needs_weights, strict=True)
        )

    def rating(layout: Layout) -> float:
        if layout not in rated and len(rated) < MAX_RATED:
            rated[layout] = math.inf if work(layout) >= min(rated.values(), default=math.inf) else rate(layout)
        return rated.get(layout, math.inf)

    even = _even(costs, stages, backwards[0])
    starts = [layout for layout in (now, even) if layout is not None and (layout == now or allowed(layout))]
    best = min(starts or [even], key=rating)
    while True:
        # Those with less work first, so that more of the others need not be rated.
        nearby = sorted(filter(allowed, _neighbours(best)), key=lambda layout: (work(layout), layout))
        found = min(nearby, key=rating, default=best)
        if rating(found) >= rating(best):
            return best
        best = found


def _even(costs: LayerCosts, stages: int, backward: str) -> Layout:
    """Stages that have about equally much work, by the least largest sum (dynamic programming over boundaries)."""
    sums = [0.0, *accumulate(sum(layer.times[kind] for kind in f"F{backward}") for layer in costs.layers)]
    count = len(costs.layers)
    least: list[tuple[float, tuple[int, ...]]] = [(0.0 if end == 0 else math.inf, ()) for end in range(count + 1)]
    for _ in range(stages):
        least = [
            min(((max(least[begin][0], sums[end] - sums[begin]), (*least[begin][1], end - begin)) for begin in range(end)), default=(math.inf, ()))
            for end in range(count + 1)
        ]
    return layout_of(least[count][1])


def _neighbours(layout: Layout) -> Iterator[Layout]:
    sizes = list(map(len, layout))
    for first in range(len(sizes)):
        for second in range(first + 1, len(sizes)):
            for step in (-1, 1):
                changed = list(sizes)
                changed[first] += step
                changed[second] -= step
                if min(changed) > 0:
                    yield layout_of(changed)
