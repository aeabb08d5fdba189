"""Notices in training that costs have drifted, and lets a Runtime run the order that is best for the new ones (docs/tuning.md#drift)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import torch

from .. import _diagnostics
from .._choose import MIN_GAIN, Chooser, Placement, compute_kinds
from .._compiler import SynthesisResult
from .._profile import Profile, new_profile
from .._program import Program
from ._cut import LayerCosts, find_layout
from ._errors import UsageError
from ._layers import Container, Layout, Move, find_containers, static_bytes
from ._measure import MemoryMeter, TimeRecorder
from ._runtime import Runtime
from ._tune import RuntimeJob, check_supported
from ._tune_result import TuneResult
from ._tuning import from_rank_0


@dataclass(frozen=True)
class Drift:
    """A change of costs that a `Retuner` has noticed, and what it has done; the same on all ranks. Times are in milliseconds.

    A step is the time from its first action to its last one.
    """

    step: int
    """After how many steps."""
    work: tuple[float, ...]
    """By rank: the time that its actions take in a step, divided by what they took before."""
    before: float
    """A step before the drift, measured."""
    drifted: float
    """A step now, measured."""
    order: str
    """The best order for the new costs: a schedule of the library, `synthesized`, or `given`, the program that runs."""
    predicted: float
    """A step of this order, as predicted."""
    bound: float
    """No order of these actions has a makespan below this, with the new costs."""
    why: str
    """The argument for the bound."""
    program: Program | None
    """The program of this order; None if the one that runs stays."""
    applied: bool
    """Whether the Runtime runs it."""
    layout: Layout | None = None
    """With `layers`: the numbers of the layers that each stage then has."""
    after: float | None = None
    """A step of the new order, measured; None until then."""
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        rank = max(range(len(self.work)), key=lambda one: abs(self.work[one] - 1))
        text = f"step {self.step}: the work of rank {rank} takes {self.work[rank]:.2f} times as long; a step took {self.before:.4g} ms, now {self.drifted:.4g} ms. "
        if self.program is None:
            text += "The order stays"
        else:
            text += "" if self.layout is None else f"layers {' | '.join(str(len(numbers)) for numbers in self.layout)}, "
            text += f"{self.order}: {self.predicted:.4g} ms predicted" + ("" if self.after is None else f", {self.after:.4g} ms measured")
            text += "" if self.applied else "; it does not run"
        return "\n".join([f"{text}. The bound is {self.bound:.4g} ms: {self.why}", *self.remarks])


_Found = tuple[Drift | None, str | None]
"""The drift, and the JSON of the program to run."""


class Retuner:
    """Keeps the order of a Runtime the best one while costs drift: a rank becomes slow, sequences become longer.

    Every `every` steps it looks at the last ones. If the work of a rank has changed, rank 0 searches the best order for the new costs, and all ranks
    run it from the next step on, if it is predicted to be faster; if it then is not, they return to the one before. Only the order changes, so weights,
    gradients and optimizer state do not. All ranks create it together, after `tune`.

    With `layers`, layers move to other ranks if that is predicted to be faster than another order, with their weights and the state that the optimizer
    has for them. They are other objects then; gradients of weights are dropped.

    It adds no steps. Measured steps note the time of each action, which takes microseconds, and have no names in profiles. A check exchanges these times;
    without drift that is all. The first check, after `steps + 2` steps, only notes the costs.

    Args:
        runtime: The Runtime.
        every: How many steps are between two checks.
        memory_limit: The memory that each rank may hold, in bytes; by default as much as the rank that holds most at the first check.
        steps: How many steps are measured for a check.
        min_drift: The share by which the work of a rank must have changed.
        min_gain: The share of the step that another order must be predicted to save.
        effort: How many millions of actions each search may simulate.
        apply: Whether to run the new order; otherwise `step` only returns it.
        layers: Whether layers may move, or the lists of layers, as for `tune`.
        result: What `tune` has returned; required with `layers`, whose costs it has.
        optimizer: The optimizer of the stages of this rank, required with `layers` unless the Runtime has it.

    Raises:
        UsageError: The Runtime has something that `tune` does not support, or an argument is out of range.

    Examples:
        >>> import ppcc, torch
        >>> program = ppcc.compile("gpipe", P=1, M=4)
        >>> module = torch.nn.Linear(8, 2)
        >>> runtime = ppcc.torch.Runtime(program, {0: module}, loss_fn=torch.nn.functional.mse_loss)
        >>> retuner, optimizer = ppcc.torch.Retuner(runtime, every=100), torch.optim.SGD(module.parameters())
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     losses = runtime.step(torch.ones(16, 8), target=torch.zeros(16, 2))
        ...     optimizer.step()
        ...     if drift := retuner.step():
        ...         print(drift)
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        every: int = 1000,
        memory_limit: int | None = None,
        steps: int = 3,
        min_drift: float = 0.05,
        min_gain: float = MIN_GAIN,
        effort: int = 20,
        apply: bool = True,
        layers: bool | Mapping[int, Container] = False,
        result: TuneResult | None = None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self._groups = runtime._setup.groups
        with self._groups.raise_on_all_ranks():
            if not 1 <= steps < every:
                raise UsageError(f"steps={steps}, every={every}: at least 1 step must be measured, and fewer than `every`")
            check_supported(runtime, {}, trains=True)
            self._optimizer = optimizer or runtime.optimizer
            self._containers = {} if layers is False else find_containers(runtime, layers, with_state=True)
            if self._containers and (self._optimizer is None or result is None or result.layout is None):
                raise UsageError("layers cannot move: give the optimizer, and the result of tune(layers=...), which has the costs of layers")
            self._layers, self._layout = ((), ()) if result is None else (result.layers, result.layout or ())
            own = {stage: len(container) for stage, container in self._containers.items()}
            if any(len(self._layout[stage]) != count for stage, count in own.items()):
                raise UsageError("layers cannot move: stages have other layers than tune() has left them")
        self._runtime, self._job, self._every, self._window = runtime, RuntimeJob(runtime), every, steps
        self._limit: float | None = memory_limit
        self._min_drift, self._min_gain, self._effort, self._apply = min_drift, min_gain, effort, apply
        self._observer = runtime._observer
        self._meter, self._recorder = MemoryMeter(), TimeRecorder()
        self._before: tuple[Profile, float] | None = None
        """Costs and a step when the order was chosen."""
        self._first: tuple[Profile, Layout] | None = None
        """What was measured first, and with which layout."""
        self._slower = [1.0] * runtime.program.num_ranks
        """How much slower ranks are since."""
        self._trial: tuple[Program, Layout, Drift] | None = None
        """The program and the layout before, and why others run."""
        self._steps = 0
        self._due = 2 + steps
        """The number of the step after which ranks check next; the first time they only note the costs."""
        runtime._observer = self._meter

    def step(self) -> Drift | None:
        """Call it on all ranks after each step, once the optimizer has stepped.

        Returns:
            What has drifted and been done, on all ranks, at a check that noticed a drift, and again when the new order has been
            measured; otherwise None.
        """
        self._steps += 1
        if self._steps == 1:
            self._runtime._observer = self._observer
        left = self._due - self._steps
        if left == self._window:
            self._recorder = TimeRecorder()
            self._runtime._observer = self._recorder
        if left > 0:
            return None
        self._runtime._observer = self._observer
        profile = new_profile()
        now = median(self._recorder.gather(self._groups, self._meter.kept | {"static": self._job.static_memory(optimizer=self._optimizer)}, profile))
        self._due = self._steps + self._every
        return self._check_drift(profile, now) if self._trial is None else self._end_trial(profile, now)

    def close(self) -> None:
        """Stop measuring."""
        self._runtime._observer = self._observer

    def _end_trial(self, profile: Profile, now: float) -> Drift:
        """Keeps the new order if it is faster than the one before was after the drift."""
        assert self._trial is not None
        (before, layout, drift), self._trial = self._trial, None
        now = self._groups.all_gather(now)[0]
        drift = replace(drift, after=now)
        if now >= drift.drifted:
            self._move(layout, before)
            self._runtime.set_program(before)
            drift = replace(drift, applied=False, remarks=(*drift.remarks, f"{drift.order} was not faster"))
        else:
            self._before = profile, now
        return drift

    def _check_drift(self, profile: Profile, now: float) -> Drift | None:
        static = [[static_bytes(layer, self._optimizer) for layer in container.children()] for container in self._containers.values()]
        sizes = self._groups.all_gather(dict(zip(self._containers, static, strict=True)))
        drift, text = from_rank_0(self._job, lambda: self._find(profile, now, {stage: own for there in sizes for stage, own in there.items()}))
        if drift is None:
            return None
        if text is None or not self._apply:
            return replace(drift, program=None if text is None else Program.from_json(text))
        before, layout = self._runtime.program, self._layout
        try:
            with self._groups.raise_on_all_ranks():
                program = Program.from_json(text)
            if drift.layout is not None:
                self._move(drift.layout, before)
            self._runtime.set_program(program)  # Compares digests.
        except UsageError as error:
            self._move(layout, before)
            self._runtime.set_program(before)
            texts = self._groups.all_gather(str(error))
            return replace(drift, remarks=(*drift.remarks, f"{drift.order} was left out: {max(texts, key=len)}"))
        drift = replace(drift, program=program, applied=True)
        self._trial = before, layout, drift
        self._due = self._steps + 1 + self._window  # The first is not measured.
        return drift

    def _move(self, layout: Layout, program: Program) -> None:
        """Moves layers; links the program again."""
        if layout != self._layout:
            Move(self._runtime, self._containers, self._layout, layout, self._optimizer)
            self._layout = layout
            self._runtime._stages_have_changed(program)

    def _find(self, profile: Profile, now: float, static: Mapping[int, Sequence[int]]) -> _Found:
        """On rank 0: the drift since the order was chosen, and the program that is best now. `static` is the memory of layers, by stage."""
        program = self._runtime.program
        chooser = Chooser(program, profile, self._job.transports, self._effort)
        if self._before is None:
            self._before, self._first = (profile, now), (profile, self._layout)
            if self._limit is None:
                self._limit = chooser.peak_memory(program)
            return None, None
        (costs, before) = self._before
        old, new = _work(costs, program), _work(profile, program)
        work = tuple(after / one if one else 1.0 for after, one in zip(new, old, strict=True))
        if max(abs(one - 1) for one in work) < self._min_drift:
            return None, None
        self._before = profile, now
        self._slower = [before * (after if abs(after - 1) >= self._min_drift else 1.0) for before, after in zip(self._slower, work, strict=True)]
        assert self._limit is not None
        try:
            return self._choose(chooser, program, static, self._limit, Drift(self._steps, work, before, now, "given", now, 0.0, "", None, applied=False))
        except _diagnostics.Error as error:  # Training goes on.
            return Drift(self._steps, work, before, now, "given", now, 0.0, str(error), None, applied=False), None

    def _choose(self, chooser: Chooser, program: Program, static: Mapping[int, Sequence[int]], limit: float, drift: Drift) -> _Found:
        choice = chooser.choose({"given": program}, limit, 0.0, self._min_gain)
        order, text = choice.tries[0] if choice.tries else (choice.base, None)
        drift = replace(
            drift, order=order.name, predicted=choice.expected[order.name], bound=choice.bound, why=choice.why, remarks=tuple(choice.remarks)
        )
        if self._containers and (moved := self._find_layout(program, static, limit, (1 - self._min_gain) * drift.predicted)) is not None:
            layout, best = moved
            drift = replace(drift, order="synthesized", predicted=best.makespan, bound=best.bound, why=best.why, layout=layout)
            text = chooser.compile(best.text).json
        return drift, text

    def _find_layout(self, program: Program, static: Mapping[int, Sequence[int]], limit: float, slowest: float) -> tuple[Layout, SynthesisResult] | None:
        """Another layout, and its order, if its step is predicted to be shorter than `slowest`."""
        assert self._first is not None
        sizes = {number: size for stage, own in static.items() for number, size in zip(self._layout[stage], own, strict=True)}
        layers = [replace(layer, static=sizes[layer.number]) for layer in self._layers]
        rank_of_stage = program.pipes[0].rank_of_stage
        costs = LayerCosts(layers, *self._first, slower=[self._slower[rank] for rank in rank_of_stage])
        transports = self._job.transports
        layout, best, _ = find_layout(costs, self._layout, Placement.of(program), transports, limit, self._effort, ["IW" if "I" in compute_kinds(program) else "B"])
        return None if layout == self._layout or best is None or best.makespan > slowest else (layout, best)


def _work(profile: Profile, program: Program) -> list[float]:
    """How long the actions of each rank take in a step, by medians, in milliseconds."""
    medians = {
        (kind, stage): float(profile.median(times)) for kind, stages in profile.times.items() for stage, times in stages.items()
    }
    return [sum(medians[action.op, action.stage] for action in actions if action.kind.is_compute) for actions in program.actions]
