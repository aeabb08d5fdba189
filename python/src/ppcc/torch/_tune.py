"""Finds the order of actions with the shortest step for the stages of a Runtime, from measured costs (docs/tuning.md).

1. Run some steps of the Runtime's program, and of one with the other kind of backward (B, or I and W) if the stages allow it.
2. Fit costs: medians by kind and stage, the latency of edges, memory.
3. On rank 0, simulate the orders of the library for this placement, and those that synthesis finds. An order is rated by its simulated
   makespan, multiplied by what measured spread adds to it on average.
4. Run the best in turns with the Runtime's own program, and keep the faster.

With `layers`, stages are lists of layers. Then each layer is measured alone, and layers move before orders are chosen (_layers.py, _cut.py).
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from .. import _diagnostics
from .._choose import COMPUTES, MAX_LIMIT, MIN_GAIN, Choice, Chooser, compute_kinds, without_costs
from .._profile import new_profile
from .._program import Program
from .._spread import Spread
from .._timeline import Timeline
from ._cut import LayerCosts, find_layout, layout_of
from ._errors import UsageError
from ._layers import Container, Layer, LayerMeter, Layout, Move, find_containers, measure_layers, static_bytes
from ._measure import MemoryMeter, Observer, TimeRecorder, now
from ._runtime import Runtime
from ._shapes import fork_random
from ._tune_cache import Cache, StaleError, cache_of
from ._tune_result import TuneResult

T = TypeVar("T")
MAX_UNEXPLAINED = 0.05


def tune(
    runtime: Runtime,
    *args: Any,
    memory_limit: int | None = None,
    steps: int = 3,
    effort: int = 20,
    layers: bool | Mapping[int, Container] = False,
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
        memory_limit: The memory that each rank may hold, in bytes: weights, gradients, optimizer state, buffers and activations. By
            default as much as the rank that holds most under the given program.
        steps: How many steps are measured at a time.
        effort: How many millions of actions each search may simulate.
        layers: Whether layers may move between stages; then every stage is an `nn.Sequential`, or this gives the `nn.Sequential`,
            `nn.ModuleList` or `nn.ModuleDict` of its layers, by stage. Each layer takes and returns one tensor. Layers move with their
            values and attributes, and are other objects then: create the optimizer afterwards. Until `tune` returns, the ranks that they
            leave hold them, too.
        state_per_weight: How many bytes of optimizer state there will be for each byte of a weight that is trained, such as 2 for Adam in the
            type of the weights; for optimizers that the Runtime does not have, or that have not stepped yet.
        output: A folder in which rank 0 writes `measured.pp`, `tuned.json` (the program), `report.txt` and `report.html`.
        cache: A folder in which rank 0 keeps results by modules, shapes, program, options, processors and versions. If it has the one of
            this job, all ranks use it without a step.
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
    if steps < 1:
        raise UsageError(f"steps is {steps}, but must be at least 1")
    if state_per_weight < 0:
        raise UsageError(f"state_per_weight is {state_per_weight}, but must not be negative")
    with runtime._setup.groups.raise_on_all_ranks():
        check_supported(runtime, kwargs)
        containers = {} if layers is False else find_containers(runtime, layers)
    observer, given = runtime._observer, runtime.program
    state = _State(runtime)
    tuning = _Tuning(runtime, args, kwargs, steps, effort, containers, state, state_per_weight)
    try:
        options = {"memory_limit": memory_limit, "effort": effort, "layers": bool(containers), "state_per_weight": state_per_weight}
        file = None if cache is None else cache_of(cache, runtime, args, kwargs, options)
        if file is not None and (known := tuning.from_cache(file)) is not None:
            return known
        with fork_random(runtime._setup.device):
            result = tuning.run(memory_limit, output)
        if file is not None:
            from_rank_0(runtime, partial(file.save, result, runtime.program))
        return result
    except UsageError:
        if _is_on_all_ranks(runtime):
            tuning.undo_move()
            runtime.set_program(given)
        raise
    finally:
        state.restore()
        runtime._observer = observer


def _is_on_all_ranks(runtime: Runtime) -> bool:
    """Whether all ranks have raised the same UsageError together, so that the job goes on."""
    return runtime._failures is None or runtime._failures.first_failure is None


def check_supported(runtime: Runtime, kwargs: Mapping[str, Any], *, trains: bool = False) -> None:
    """Raises UsageError for what cannot be tuned. If it `trains`, weights may have gradients."""
    program, linked, setup = runtime.program, runtime._linked, runtime._setup
    kinds = compute_kinds(program)
    run = {(action.op, action.stage) for action in linked.actions if not action.kind.is_message}
    reasons = {
        "programs of one pipe whose stages read the stage before them": len(program.pipes) > 1 or program.pipes[0].skip_edges or program.pipes[0].gaps,
        "training programs": not program.has_backward,
        f"programs of F, B, I and W; this has {', '.join(sorted(kinds - COMPUTES))}": kinds - COMPUTES,
        "programs whose stages all have the same kinds of backward": len(run) != len(kinds) * len(program.local_stages(runtime.rank)),
        "programs without overlap groups": any(len(group) > 1 and not group[0].kind.is_message for group in linked.action_groups),
        "stages on the CPU": setup.device.type != "cpu",
        "one pipeline, without data-parallel copies, a mesh or other groups": setup.outside or setup.mesh or len(setup.groups._pipelines) > 1,
        "stages that are not in fully_shard or DistributedDataParallel": linked.sharded or linked.replicated.wrappers,
        "microbatches of one shape": setup.dynamic,
        "shapes that are inferred, in which stages that cannot be split are found": setup.shapes is not None,
        "weights without gradients: call zero_grad() before": not trains and any(weight.grad is not None for weight in _tensors(runtime, "parameters")),
        "steps that return nothing: without reduce_grads, return_outputs and share_losses": kwargs.keys()
        & {"reduce_grads", "return_outputs", "share_losses"},
    }
    for supported, refused in reasons.items():
        if refused:
            raise UsageError(f"tune() supports only {supported}")


def _tensors(runtime: Runtime, of: str) -> list[Tensor]:
    return list({id(tensor): tensor for module in runtime._linked.modules.values() for tensor in getattr(module, of)()}.values())


def transports_of(runtime: Runtime) -> list[str]:
    """The transports under which orders must not deadlock; they are simulated on the first."""
    runs_on = ["posted"] if runtime._linked.channels.host_waits else []
    return list(dict.fromkeys([*runs_on, *runtime.program.transports]))


def from_rank_0(runtime: Runtime, make: Callable[[], T]) -> T:
    """The value that a function returns on rank 0, on all ranks; raises UsageError on all ranks if it raises."""
    made: Any = None
    groups = runtime._setup.groups
    with groups.raise_on_all_ranks():
        if runtime.rank == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = make()
    return cast(T, groups.all_gather(made)[0])


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


class _Tuning:
    """The state of one call of tune()."""

    def __init__(
        self,
        runtime: Runtime,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        steps: int,
        effort: int,
        containers: Mapping[int, Container],
        state: _State,
        state_per_weight: float = 0.0,
    ) -> None:
        self.runtime, self.args, self.kwargs, self.steps_at_once, self.effort = runtime, args, kwargs, steps, effort
        self.containers, self.state, self.state_per_weight = containers, state, state_per_weight
        self.groups = runtime._setup.groups
        self.given = runtime.program
        self.base, self.base_name = self.given, "given"
        """What other orders are compared with."""
        self.move: Move | None = None
        self.layout: Layout | None = None
        self.layers: tuple[Layer, ...] = ()
        self.profile = new_profile()
        self.meter = self._new_meter()
        self.overheads: list[float] = []
        """What steps take beside their actions."""
        self.remarks: list[str] = []
        self.steps = 0
        self.step_seconds = 0.0
        self.began = time.process_time()
        self.transports = transports_of(runtime)

    def run(self, memory_limit: int | None, output: str | os.PathLike[str] | None) -> TuneResult:
        self._step(self.meter)  # The first step opens connections and infers shapes.
        walls = given_walls = self._measure()
        self.given_costs = self.profile.costs()
        limit = int(from_rank_0(self.runtime, lambda: self._chooser.peak_memory(self.given) if memory_limit is None else memory_limit))
        predicted = None
        if self.containers:
            given_layout = self._measure_layers()
            self.layout = given_layout
            if (moved := self._move_layers(given_layout, limit, median(walls))) is not None:
                walls, predicted = moved
        for kinds, name in (({"I", "W"}, "I and W"), ({"B"}, "B")):
            if not kinds <= self._chooser.known_kinds():
                probe = from_rank_0(self.runtime, partial(self._probe, fused="B" in kinds))
                if (error := self._try_program(probe)) is None:
                    self._measure()
                else:
                    self.remarks.append(f"orders with {name} were left out: {error}")
        chosen = from_rank_0(self.runtime, lambda: self._choose(limit))
        if predicted is not None:
            chosen.expected[self.base_name] = predicted
        self.profile.limit = min(limit, MAX_LIMIT)
        self.remarks += chosen.remarks
        kept, measured, before = chosen.base, median(walls), median(walls)
        self.runtime.set_program(self.base)
        for order, text in chosen.tries:
            if (error := self._try_program(text)) is not None:
                self.remarks.append(f"{order.name} was left out: {error}")
                continue
            before, after = self._compare(self.runtime.program)
            if after < before or not chosen.base.fits:
                kept, measured = order, after
            else:
                self.remarks.append(f"{order.name} was not faster: {after:.4g} ms, {chosen.expected[order.name]:.4g} ms predicted")
                self.runtime.set_program(self.base)
                measured = before
            break
        else:
            if not chosen.base.fits:
                raise UsageError(f"no order within the memory limit of {limit} bytes can run: {'; '.join(self.remarks)}")
        unexplained = median(walls) / chosen.expected[self.base_name] - 1
        if abs(unexplained) > MAX_UNEXPLAINED:
            self.remarks.append(from_rank_0(self.runtime, lambda: self._explain(median(walls), chosen.expected[self.base_name])))
        result = TuneResult(
            order=kept.name,
            before=before if self.move is None else median(given_walls),
            after=measured,
            predicted=chosen.expected[kept.name],
            bound=chosen.bound,
            why=chosen.why,
            would_help=chosen.would_help[kept.name],
            unexplained=unexplained,
            remarks=tuple(self.remarks),
            memory_limit=limit,
            orders=chosen.orders,
            measured=self.profile.model(),
            steps=self.steps,
            processor_seconds=max(self.groups.all_gather(time.process_time() - self.began - self.step_seconds)),
            layout=self.layout,
            given_layout=given_layout if self.containers else None,
            layers=self.layers,
            moved_bytes=0 if self.move is None else self.move.bytes,
        )
        if output is not None:
            from_rank_0(self.runtime, lambda: self._write(Path(output), result))
        return result

    def from_cache(self, file: Cache) -> TuneResult | None:
        """Uses the result in a file, if there is one that fits."""

        def load() -> tuple[TuneResult, str] | str | None:
            try:
                return file.load()
            except StaleError as error:
                return str(error)

        found = from_rank_0(self.runtime, load)
        if isinstance(found, str):
            self.remarks.append(f"the cache was not used: {found}")
        if found is None or isinstance(found, str):
            return None
        result, text = found
        try:
            if result.layout is not None and result.given_layout is not None and result.layout != result.given_layout:
                self.move = Move(self.runtime, self.containers, result.given_layout, result.layout)
                self._stages_have_changed()
            with self.groups.raise_on_all_ranks():
                program = Program.from_json(text)
            self.runtime.set_program(program)
        except UsageError as error:
            self.undo_move()
            self.runtime.set_program(self.given)
            self.remarks.append(f"the cache was not used: {max(self.groups.all_gather(str(error)), key=len)}")
            return None
        return result

    # Layers.

    def _new_meter(self) -> MemoryMeter:
        return LayerMeter(self.containers, self.given.pipes[0].num_stages - 1) if self.containers and self.move is None else MemoryMeter()

    def _measure_layers(self) -> Layout:
        """Measures each layer alone; returns the layout."""
        assert isinstance(self.meter, LayerMeter)
        with self.groups.raise_on_all_ranks():
            if self.meter.error:
                raise UsageError(f"layers cannot move: {self.meter.error}")
        counts = dict(count for there in self.groups.all_gather([(stage, len(calls)) for stage, calls in self.meter.calls.items()]) for count in there)
        layout = layout_of([counts[stage] for stage in sorted(counts)])
        with self.groups.raise_on_all_ranks():
            own = [measure_layers(calls, stage, layout[stage][0], 1 + 2 * self.steps_at_once, self.state_per_weight) for stage, calls in self.meter.calls.items()]
        found = [layer for there in self.groups.all_gather(own) for layers in there for layer in layers]
        self.layers = tuple(sorted(found, key=lambda layer: layer.number))
        return layout

    def _move_layers(self, given: Layout, limit: int, before: float) -> tuple[list[float], float] | None:
        """Moves layers if that makes the step shorter; then returns the times of steps, and what was predicted."""
        found = from_rank_0(self.runtime, lambda: self._find_layout(given, limit, before))
        if found is None:
            return None
        layout, text, predicted = found
        self.state.restore()
        self.move = Move(self.runtime, self.containers, given, layout)
        self._stages_have_changed()
        measured = self.profile, self.meter, self.overheads, self.remarks
        self.profile, self.meter, self.overheads, self.remarks = new_profile(), self._new_meter(), [], list(self.remarks)
        error = self._try_program(text)
        walls = [] if error is not None else self._measure()
        if error is None and median(walls) < before:
            self.layout, self.base, self.base_name = layout, self.runtime.program, "moved"
            return walls, predicted
        why = error or f"a step took {median(walls):.4g} ms, {predicted:.4g} ms predicted"
        self.undo_move()
        self.profile, self.meter, self.overheads, self.remarks = measured
        self.remarks.append(f"layers stay where they were: {why}")
        return None

    def undo_move(self) -> None:
        """Gives all stages the layers that they had."""
        if self.move is not None:
            self.state.restore()
            self.move.undo()
            self.move = None
            self._stages_have_changed()

    def _stages_have_changed(self) -> None:
        self.runtime._stages_have_changed(self.given)
        self.state.save()

    def _find_layout(self, given: Layout, limit: int, before: float) -> tuple[Layout, str, float] | None:
        """On rank 0: the best layout, the program with which it was rated, and the step that is predicted; None if it is not better."""
        costs = LayerCosts(self.layers, self.profile, given)
        backwards = [backward for backward in ("IW", "B") if set(backward) <= set(costs.kinds)]
        layout, best, stays = find_layout(costs, given, self.given, self.transports, limit, self.effort, backwards)
        if layout == given or best is None or (stays is not None and best.makespan > (1 - MIN_GAIN) * stays.makespan):
            return None
        predicted = best.makespan * Spread(self.profile).of(self.given) + median(self.overheads)
        return layout, self._chooser.compile(best.text).json, predicted

    # Measuring.

    def _measure(self) -> list[float]:
        """Adds what some steps of the Runtime's program measure to the profile, and returns their times."""
        recorder = TimeRecorder()
        walls = [self._step(recorder) for _ in range(self.steps_at_once)]
        spans = recorder.gather(self.groups, self.meter.kept | {"static": static_memory(self.runtime, None, self.state_per_weight)}, self.profile)
        self.overheads += [max(0.0, wall - span) for wall, span in zip(walls, spans, strict=True)]
        return walls

    def _compare(self, program: Program) -> tuple[float, float]:
        """The steps of the base and of another program, in turns."""
        found: dict[bool, list[float]] = {False: [], True: []}
        for is_new in (True, False) * self.steps_at_once:
            self.runtime.set_program(program if is_new else self.base)
            found[is_new].append(self._step(Observer()))
        self.runtime.set_program(program)
        return median(found[False]), median(found[True])

    def _step(self, observer: Observer) -> float:
        """Runs a step, and returns how long it took on the slowest rank, in milliseconds."""
        self.runtime._observer = observer
        self.groups.all_gather(None)  # Ranks begin together.
        processor, begin = time.process_time(), now()
        self.runtime.step(*self.args, reduce_grads=False, **self.kwargs)
        wall = (now() - begin) / 1e6
        self.step_seconds += time.process_time() - processor
        self.steps += 1
        return max(self.groups.all_gather(wall))

    # Choosing, on rank 0.

    @property
    def _chooser(self) -> Chooser:
        return Chooser(self.given, self.profile, self.transports, self.effort)

    def _probe(self, *, fused: bool) -> str:
        """The JSON of a program of this placement with the other kind of backward, that holds no more activations than the base."""
        limit, chooser = without_costs(self.base).simulate().peak_activations, self._chooser
        return chooser.compile(chooser.synthesize(fused_backward=fused, effort=1, costs={"memory.limit": limit}).text).json

    def _choose(self, limit: int) -> Choice:
        own = {} if self.move is None else {self.base_name: self.base}
        given = {"given": self.given} if compute_kinds(self.given) <= self._chooser.known_kinds() else {}
        try:
            return self._chooser.choose(own | given, limit, median(self.overheads))
        except _diagnostics.UsageError as error:
            raise UsageError(str(error)) from error

    def _explain(self, measured: float, predicted: float) -> str:
        """What may be the cause of a step that was not predicted."""
        ratios = {
            f"{kind} of stage {stage}": (median(times), sorted(times)[len(times) * 9 // 10])
            for kind, stages in self.profile.times.items()
            for stage, times in stages.items()
        }
        name, (middle, high) = max(ratios.items(), key=lambda found: found[1][1] - found[1][0])
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
        return (
            f"the {self.base_name} program took {measured:.4g} ms a step, but {predicted:.4g} ms are predicted; what varies most is {name}: "
            f"{middle / 1000:.4g} ms in the median, {high / 1000:.4g} ms or more in one of ten"
            + (f"; the machine of rank 0 has a load of {load:.1f} on {cores} cores" if load > cores else "")
        )

    # Running.

    def _try_program(self, text: str) -> str | None:
        """Runs a first step of a program. If a rank refuses it, all ranks have the base again; then returns why."""
        try:
            with self.groups.raise_on_all_ranks():
                program = Program.from_json(text)
            self.runtime.set_program(program)  # Compares digests.
            self._step(self.meter)  # Infers shapes.
        except UsageError as error:
            if not _is_on_all_ranks(self.runtime):
                raise
            self.runtime.set_program(self.base)
            # On others than its own rank it begins with the rank.
            return max(self.groups.all_gather(str(error)), key=len)
        return None

    def _write(self, folder: Path, result: TuneResult) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "measured.pp").write_text(result.measured)
        self.runtime.program.save(folder / "tuned.json")
        (folder / "report.txt").write_text(f"{result}\n")
        costs = folder / "costs.json"

        def timeline(program: Program, text: str) -> Timeline:
            costs.write_text(text)
            found = without_costs(program).timeline(costs, transport=self.transports[0])
            assert found.html  # It is drawn while the file has these costs.
            return found

        before, after = timeline(self.given, self.given_costs), timeline(self.runtime.program, self.profile.costs())
        (folder / "report.html").write_text(result.page(before, after, self.given.num_ranks))


def static_memory(runtime: Runtime, optimizer: torch.optim.Optimizer | None = None, state_per_weight: float = 0.0) -> dict[int, int]:
    """What weights, gradients, buffers and the state of an optimizer, by default that of the Runtime, take by stage of this rank, in bytes."""
    return {stage: static_bytes(module, optimizer or runtime.optimizer, state_per_weight) for (_, stage), module in runtime._linked.modules.items()}
