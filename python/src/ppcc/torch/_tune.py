"""Tunes a Runtime (docs/tuning.md): runs the steps that the loop (_tuning.py) asks for.

With `layers`, stages are lists of layers. Then each layer is measured alone, and layers move before orders are chosen (_layers.py, _cut.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from .._choose import MIN_GAIN, Placement, compute_kinds
from .._compiler import SynthesisResult
from .._profile import new_profile
from .._program import Program
from ._cut import LayerCosts, find_layout, layout_of
from ._errors import UsageError
from ._layers import Container, Layer, LayerMeter, Layout, Move, find_containers, measure_layers, static_bytes
from ._measure import MemoryMeter
from ._runtime import Runtime
from ._shapes import fork_random
from ._tune_options import TuneOptions
from ._tune_result import TuneResult
from ._tuning import Job, Steps, Tuner, Tuning, check_program, from_rank_0, raise_first


def tune(
    runtime: Runtime,
    *args: Any,
    memory_limit: int | None = None,
    steps: int = 3,
    effort: int = 20,
    layers: bool | Mapping[int, Container] = False,
    placements: Sequence[str] = (),
    recompute: bool = False,
    state_per_weight: float = 0.0,
    output: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> TuneResult:
    """Let a Runtime run the order of actions that is fastest for its stages. All ranks call it together.

    It runs at most 4 + 4 * steps steps without reductions and optimizer, and leaves weights, buffers, gradients and random numbers as they
    were. Weights must not have gradients yet. If a rank cannot run an order, all ranks go on without it.

    Args:
        runtime: The Runtime. Its program is the first candidate, and has the placement and the number of microbatches of all others.
        *args: The inputs of a step, as for `Runtime.step`.
        memory_limit, steps, effort, state_per_weight, output, cache: See `TuneOptions`.
        layers: Whether layers may move between stages; then every stage is an `nn.Sequential`, or this gives the `nn.Sequential`,
            `nn.ModuleList` or `nn.ModuleDict` of its layers, by stage. Each layer takes and returns one tensor. Layers move with their
            values and attributes, and are other objects then: create the optimizer afterwards. Until `tune` returns, the ranks that they
            leave hold them, too.
        placements: Other placements of stages on ranks to try, with `layers=True`: `linear`, `v`, `loop:V` or `wave:V`, with V stages a rank. Then the
            Runtime may have other stages afterwards: `runtime.stages` has them. All ranks need the batch and the target.
        recompute: Whether stages may compute their activations again before the backward, where that makes the step shorter within the limit. Their
            forwards have to do the same when they are repeated.
        **kwargs: Further arguments of `Runtime.step`, such as `target`.

    Returns:
        What was measured, predicted and chosen.

    Raises:
        UsageError: The Runtime has something that `tune` does not support, or no order keeps to the memory limit; it then has the
            program that it had.
        StepError: A step failed on any rank.

    Examples:
        >>> import ppcc, torch
        >>> program = ppcc.compile("gpipe", P=1, M=4)
        >>> runtime = ppcc.torch.Runtime(program, {0: torch.nn.Linear(8, 2)}, loss_fn=torch.nn.functional.mse_loss)
        >>> result = ppcc.torch.tune(runtime, torch.ones(16, 8), target=torch.zeros(16, 2))
        >>> result.steps < 20
        True
    """
    options = TuneOptions(memory_limit=memory_limit, steps=steps, effort=effort, state_per_weight=state_per_weight, output=output, cache=cache)
    with runtime._setup.groups.raise_on_all_ranks():
        check_supported(runtime, kwargs)
        containers = {} if layers is False else find_containers(runtime, layers)
        others = _other_placements(runtime, placements, layers, args, kwargs)
    job, observer = RuntimeJob(runtime, (args, kwargs), recomputes=recompute), runtime._observer
    state = _State(runtime)
    try:
        with fork_random(runtime._setup.device):
            tuner = Tuner(_LayerTuning(job, options, containers, state, others) if containers else Tuning(job, options))
            while not tuner.has_ended:
                with tuner.step() as runtime._observer:
                    runtime.step(*args, reduce_grads=False, **kwargs)
        assert tuner.result is not None
        return tuner.result
    finally:
        state.restore()
        runtime._observer = observer


def _other_placements(runtime: Runtime, names: Sequence[str], layers: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Placement]:
    """Those that are not the Runtime's. Raises UsageError if its stages cannot be divided otherwise."""
    program = runtime.program
    found = [Placement.named(name, program.num_ranks, program.num_microbatches) for name in names]
    if found and layers is not True:
        raise UsageError("the placement can change only if stages can be divided otherwise: make each an nn.Sequential of its layers, and say layers=True")
    if found and (not args or kwargs.get("target") is None):
        raise UsageError("with other placements other ranks may have the first and the last stage: give all ranks the batch and the target")
    return [one for one in found if one.rank_of_stage != program.pipes[0].rank_of_stage]


class RuntimeJob(Job):
    """Steps of a Runtime."""

    advice = "; say recompute=True if stages may compute their activations again"

    def __init__(self, runtime: Runtime, inputs: Any = None, *, recomputes: bool = False) -> None:
        self.runtime, self.rank, self.groups = runtime, runtime.rank, runtime._setup.groups
        self.inputs, self.recomputes = inputs, recomputes

    @property
    def program(self) -> Program:
        return self.runtime.program

    def set_program(self, program: Program) -> None:
        self.runtime.set_program(program)

    @property
    def host_waits(self) -> bool:
        return self.runtime._linked.channels.host_waits

    @property
    def modules(self) -> dict[int, nn.Module]:
        return {stage: module for (_, stage), module in self.runtime._linked.modules.items()}

    def static_memory(self, state_per_weight: float = 0.0, optimizer: torch.optim.Optimizer | None = None) -> dict[int, int]:
        return {stage: static_bytes(module, optimizer or self.runtime.optimizer, state_per_weight) for stage, module in self.modules.items()}

    def goes_on(self) -> bool:
        return self.runtime._failures is None or self.runtime._failures.first_failure is None


def check_supported(runtime: Runtime, kwargs: Mapping[str, Any], *, trains: bool = False) -> None:
    """Raises UsageError for what cannot be tuned. If it `trains`, weights may have gradients."""
    linked, setup = runtime._linked, runtime._setup
    check_program(runtime.program, runtime.rank)
    reasons = {
        "stages on the CPU": setup.device.type != "cpu",
        "one pipeline, without data-parallel copies, a mesh or other groups": setup.outside or setup.mesh or len(setup.groups._pipelines) > 1,
        "stages that are not in fully_shard or DistributedDataParallel": linked.sharded or linked.replicated.wrappers,
        "microbatches of one shape": setup.dynamic,
        "shapes that are inferred, in which stages that cannot be split are found": setup.shapes is not None,
        "weights without gradients: call zero_grad() before": not trains and any(weight.grad is not None for weight in _tensors(runtime, "parameters")),
        "steps that return nothing: without reduce_grads, return_outputs and share_losses": kwargs.keys()
        & {"reduce_grads", "return_outputs", "share_losses"},
    }
    raise_first(reasons)


def _tensors(runtime: Runtime, of: str) -> list[Tensor]:
    return list({id(tensor): tensor for module in runtime.stages.values() for tensor in getattr(module, of)()}.values())


class _State:
    """What steps change in the modules of a Runtime: buffers, and gradients, of which there are none before."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.save()

    def save(self) -> None:
        self._buffers = [(buffer, buffer.detach().clone()) for buffer in _tensors(self._runtime, "buffers")]

    def restore(self) -> None:
        with torch.no_grad():
            for buffer, value in self._buffers:
                buffer.copy_(value)
        for weight in _tensors(self._runtime, "parameters"):
            weight.grad = None


class _LayerTuning(Tuning):
    """Also moves layers between stages before it chooses an order."""

    def __init__(self, job: RuntimeJob, options: TuneOptions, containers: Mapping[int, Container], state: _State, others: Sequence[Placement]) -> None:
        self.runtime, self.containers, self.state, self.others = job.runtime, containers, state, others
        self.given_stages = job.runtime._setup.stages
        self.placement = "given"
        self.move: Move | None = None
        self.layout: Layout | None = None
        self.given_layout: Layout | None = None
        self.layers: tuple[Layer, ...] = ()
        super().__init__(job, options)

    def new_meter(self) -> MemoryMeter:
        return LayerMeter(self.containers, self.job.program.pipes[0].num_stages - 1) if self.move is None else MemoryMeter()

    def _more_results(self) -> dict[str, Any]:
        moved_bytes = 0 if self.move is None else self.move.bytes
        return {"layout": self.layout, "given_layout": self.given_layout, "layers": self.layers, "moved_bytes": moved_bytes, "placement": self.placement}

    def _cache_options(self) -> dict[str, Any]:
        return super()._cache_options() | {"layers": True, "placements": [one.name for one in self.others]}

    def _candidates(self) -> dict[str, Program]:
        is_known = self.placement == "given" and compute_kinds(self.given) <= self.chooser.known_kinds()
        return super()._candidates() | ({"given": self.given} if is_known else {})

    def _adopt(self, result: TuneResult) -> None:
        if result.layout is not None and result.given_layout is not None and result.layout != result.given_layout:
            other = next((one for one in self.others if one.name == result.placement), None)
            self._move(result.given_layout, result.layout, other)

    def _move(self, before: Layout, after: Layout, other: Placement | None) -> None:
        """Moves layers, also to stages of another placement."""
        self.state.restore()
        self.move = Move(self.runtime, self.containers, before, after, rank_of_stage_after=None if other is None else other.rank_of_stage)
        self.placement = "given" if other is None else other.name
        self._set_stages(self.given_stages if other is None else self.move.containers_after)

    def _rearrange(self, limit: int, walls: list[float]) -> Steps[tuple[list[float], float | None]]:
        self._measure_layers()
        small = [one for one in self.others if len(one.rank_of_stage) > len(self.layers)]
        self.remarks += [f"the placement {one.name} was left out: it has {len(one.rank_of_stage)} stages, but there are {len(self.layers)} layers" for one in small]
        self.others = [one for one in self.others if one not in small]
        return (yield from self._move_layers(limit, walls))

    def _measure_layers(self) -> None:
        """Measures each layer alone."""
        assert isinstance(self.meter, LayerMeter)
        with self.groups.raise_on_all_ranks():
            if self.meter.error:
                raise UsageError(f"layers cannot move: {self.meter.error}")
        counts = dict(count for there in self.groups.all_gather([(stage, len(calls)) for stage, calls in self.meter.calls.items()]) for count in there)
        self.layout = self.given_layout = layout = layout_of([counts[stage] for stage in sorted(counts)])
        times, state = 1 + 2 * self.options.steps, self.options.state_per_weight
        with self.groups.raise_on_all_ranks():
            own = [measure_layers(calls, stage, layout[stage][0], times, state) for stage, calls in self.meter.calls.items()]
        found = [layer for there in self.groups.all_gather(own) for layers in there for layer in layers]
        self.layers = tuple(sorted(found, key=lambda layer: layer.number))

    def _move_layers(self, limit: int, given_walls: list[float]) -> Steps[tuple[list[float], float | None]]:
        """Moves layers if that makes the step shorter. Returns the times of steps, and what was predicted if layers have moved."""
        assert self.layout is not None
        before = median(given_walls)
        found = from_rank_0(self.job, lambda: self._find_layout(limit))
        if found is None:
            return given_walls, None
        layout, text, predicted, name = found
        self._move(self.layout, layout, next((one for one in self.others if one.name == name), None))
        measured = self.profile, self.meter, self.overheads, self.remarks, self.restored
        self.profile, self.meter, self.overheads, self.remarks = new_profile(), self.new_meter(), [], list(self.remarks)
        error = yield from self._try_program(text)
        walls = [] if error is not None else (yield from self._measure())
        if error is None and median(walls) < before:
            self.layout, self.base, self.base_name = layout, self.job.program, "moved"
            return walls, predicted
        why = error or f"a step took {median(walls):.4g} ms, {predicted:.4g} ms predicted"
        self.undo()
        self.profile, self.meter, self.overheads, self.remarks, self.restored = measured
        self.remarks.append(f"layers stay where they were: {why}")
        return given_walls, None

    def undo(self) -> None:
        """Gives all stages the layers that they had."""
        if self.move is not None:
            self.state.restore()
            self.move.undo()
            self.move, self.placement = None, "given"
            self._set_stages(self.given_stages)

    def _set_stages(self, stages: Mapping[Any, nn.Module]) -> None:
        """Gives the Runtime these stages, whose layers have changed. It then has no program for those of another placement."""
        self.runtime._setup = replace(self.runtime._setup, stages=stages)
        if self.placement == "given":
            self.runtime._stages_have_changed(self.given)
        else:
            self.runtime._links.clear()
        self.state.save()

    def reset(self) -> None:
        if self.move is not None and self.base_name == "given":
            self.undo()
        else:
            super().reset()

    def _find_layout(self, limit: int) -> tuple[Layout, str, float, str] | None:
        """On rank 0: the best layout, the program with which it was rated, the step that is predicted, and the placement; None if it is not better."""
        assert self.layout is not None
        costs = LayerCosts(self.layers, self.profile, self.layout)
        backwards = [backward for backward in ("IW", "B") if set(backward) <= set(costs.kinds)]

        def find(placement: Placement, now: Layout | None = None) -> tuple[Layout, SynthesisResult | None, SynthesisResult | None]:
            return find_layout(costs, now, placement, self.transports, limit, self.options.effort, backwards)

        layout, best, stays = find(Placement.of(self.given), self.layout)
        name = "given"
        for other in self.others:
            there, found, _ = find(other)
            if found is not None and (best is None or found.makespan < best.makespan):
                layout, best, name = there, found, other.name
        if best is None or (name == "given" and layout == self.layout) or (stays is not None and best.makespan > (1 - MIN_GAIN) * stays.makespan):
            return None
        report = self.chooser.simulate(self.given)
        predicted = best.makespan * report.jitter_mean / report.makespan + median(self.overheads)
        return layout, self.chooser.compile(best.text).json, predicted, name
