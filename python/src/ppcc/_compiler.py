"""Schedules in, programs out."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ._deprecated import Renamed, renamed_arguments
from ._program import Program
from ._run import Costs, Value, option_argument, compile_native, cost_options, definition, run
from ._timeline import suffix

__all__ = ["ScheduleInfo", "compile", "compile_source", "load", "schedules", "synthesize", "version"]


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """A schedule of the library."""

    name: str
    summary: str

    @property
    def parameters(self) -> Mapping[str, str]:
        """Its parameters, each with its type and default as the schedule declares them: `{"P": "int = 4"}`."""
        rows = (line.split(": ", 1) for line in run([self.name, "--list-params"]).splitlines())
        return {name: declared for name, declared in rows}


def schedules() -> list[ScheduleInfo]:
    """The schedules of the library."""
    rows = (line.split(None, 1) for line in run(["--list-schedules"]).splitlines())
    return [ScheduleInfo(row[0], row[1].strip() if len(row) > 1 else "") for row in rows if row]


def version() -> str:
    """The version of the compiler."""
    return run(["--version"]).split()[1]


def compile(  # noqa: A001 - the word for it
    schedule: str | os.PathLike[str],
    /,
    *,
    params: Mapping[str, Value] | None = None,
    name: str | None = None,
    transport: str | Sequence[str] | None = None,
    comm_order: str | None = None,
    fuse: str | None = None,
    prefetch: int | None = None,
    preconnect: str | None = None,
    model: str | os.PathLike[str] | None = None,
    cluster: str | os.PathLike[str] | None = None,
    layout: str | None = None,
    costs: Costs | None = None,
    rules: str | Sequence[str] | None = None,
    rules_file: str | os.PathLike[str] | None = None,
    max_actions: int | None = None,
    **more_params: Value,
) -> Program:
    """Compiles a schedule of the library, by name, or of a `.pp` file, by path.

    Its parameters are keyword arguments, `compile("dualpipe", P=8, M=20)`; those whose names are taken here go into
    `params`. `name` chooses among several schedules of a file. The others are options of the compiler: the transports
    to be safe under, the order of the messages, how to fuse them, how many receives to post ahead, whether to list the
    connections, the model and the cluster (by name, or the path of a file), the layers of the stages, costs (by name, or
    the path of a file), rules to follow (`"recompute(1)"`, of std.pp or of `rules_file`), and the largest number of
    actions.

    Raises CompileError, which carries the diagnostics.
    """
    path = os.fspath(schedule)
    if path.startswith("-"):
        path = os.path.join(os.curdir, path)
    options = _options(
        name,
        transport,
        comm_order,
        fuse,
        prefetch,
        preconnect,
        model,
        cluster,
        layout,
        costs,
        rules,
        rules_file,
        max_actions,
    )
    return Program.from_native(compile_native([path, *_definitions(params, more_params), *options]))


def compile_source(
    source: str,
    /,
    *,
    params: Mapping[str, Value] | None = None,
    name: str | None = None,
    transport: str | Sequence[str] | None = None,
    comm_order: str | None = None,
    fuse: str | None = None,
    prefetch: int | None = None,
    preconnect: str | None = None,
    model: str | os.PathLike[str] | None = None,
    cluster: str | os.PathLike[str] | None = None,
    layout: str | None = None,
    costs: Costs | None = None,
    rules: str | Sequence[str] | None = None,
    rules_file: str | os.PathLike[str] | None = None,
    max_actions: int | None = None,
    **more_params: Value,
) -> Program:
    """Compiles the text of a schedule; otherwise as `compile`. Diagnostics call the text `-`."""
    options = _options(
        name,
        transport,
        comm_order,
        fuse,
        prefetch,
        preconnect,
        model,
        cluster,
        layout,
        costs,
        rules,
        rules_file,
        max_actions,
    )
    return Program.from_native(compile_native(["-", *_definitions(params, more_params), *options], source))


@dataclass(frozen=True)
class SynthesisResult:
    """The best order that was found, as a schedule with its figures (docs/synthesis.md)."""

    text: str
    """The source of the schedule."""
    makespan: float
    span: float
    bound: float
    """No order is below it."""
    gap: float
    """(makespan - bound) / bound, or that of the span."""
    optimal: bool
    why: str
    """The argument for the bound."""
    peak_memory: tuple[float, ...]
    """By rank."""
    evaluations: int
    seconds: float
    min_microbatches: int | None = None
    """From this number of microbatches on it is proven, if it is for all of them."""
    microbatches: int | None = None
    """Then the number that the figures are about."""
    formulas: tuple[dict[str, Any], ...] = ()
    """Then the makespan by M: `modulus`, `residue`, `from`, and `slope`, `intercept` and `exact` of `makespan`."""
    layout: str | None = None
    """The layers of each stage, if there are layers."""

    least = Renamed("min_microbatches")

    @cached_property
    def program(self) -> Program:
        """What the schedule compiles to, for `microbatches` if it is for all of them."""
        return self.at(self.microbatches)

    def at(self, microbatches: int | None) -> Program:
        """What a schedule for all numbers of microbatches compiles to, for so many."""
        return compile_source(self.text, params={} if self.min_microbatches is None or microbatches is None else {"M": microbatches})


@dataclass(frozen=True)
class SweepPoint:
    """The best order for one limit of memory; no figures where none fits."""

    limit: float
    fits: bool
    makespan: float | None = None
    bound: float | None = None
    gap: float | None = None
    optimal: bool = False
    peak_memory: float | None = None
    knee: bool = False
    """From here on, more memory buys less time."""


@dataclass(frozen=True)
class Sweep:
    """Memory against time (docs/synthesis.md); a notebook draws it."""

    points: tuple[SweepPoint, ...]
    svg: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the curve, `.svg`."""
        suffix(path, (".svg",))
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        from ._notebook import table

        return self.svg + table([asdict(point) for point in self.points])


def sweep(placement: str | os.PathLike[str] = "linear", /, *, limits: tuple[float, float], **arguments: Any) -> Sweep:
    """Synthesizes for each limit of memory between two; `arguments` are those of `synthesize`."""
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "sweep.svg")
        text = _run_synthesize(placement, ["--sweep", f"limit={limits[0]}..{limits[1]}", "-o", picture], **arguments)
        with open(picture, encoding="utf-8") as file:
            return Sweep(tuple(SweepPoint(**point) for point in json.loads(text)["sweep"]), file.read())


def synthesize(placement: str | os.PathLike[str] = "linear", /, **arguments: Any) -> SynthesisResult:
    """Finds the best order for a placement: `linear`, `v`, `loop:V`, `wave:V`, or the path or name of a schedule.

    `synthesize("v", P=8, M=32, costs={"F": 5, "I": 6, "W": 4, "memory.limit": 16})`. The other arguments are options of
    `ppcc synthesize`: `params`, `objective`, `effort`, `fused_backward`, `recompute`, `offload`, `transport`, `comm_order`, `costs`,
    `layers`, `max_actions`; `start` names schedules to begin with (`--from`), `for_all="M"` asks for one schedule for every number
    of microbatches (`--for`).
    """
    document = json.loads(_run_synthesize(placement, [], **arguments))
    figures = ("makespan", "span", "bound", "gap", "optimal", "why", "evaluations", "seconds")
    return SynthesisResult(
        text=document["schedule"],
        peak_memory=tuple(document["peak_memory"]),
        **{name: document[name] for name in figures},
        min_microbatches=document.get("min_microbatches"),
        microbatches=document.get("microbatches"),
        formulas=tuple(document.get("formulas", ())),
        layout=document.get("layout"),
    )


@renamed_arguments(every="for_all")
def _run_synthesize(
    placement: str | os.PathLike[str],
    options: list[str],
    /,
    *,
    params: Mapping[str, Value] | None = None,
    objective: str | None = None,
    effort: int | None = None,
    fused_backward: bool = False,
    recompute: bool = False,
    offload: bool = False,
    for_all: str | None = None,
    start: Sequence[str | os.PathLike[str]] = (),
    transport: str | Sequence[str] | None = None,
    comm_order: str | None = None,
    costs: Costs | None = None,
    layers: str | None = None,
    max_actions: int | None = None,
    **more_params: Value,
) -> str:
    return run(
        [
            "synthesize",
            *option_argument("--placement", os.fspath(placement)),
            *_definitions(params, more_params),
            *option_argument("--objective", objective),
            *option_argument("--effort", effort),
            *(["--fused-backward"] if fused_backward else []),
            *(["--recompute"] if recompute else []),
            *(["--offload"] if offload else []),
            *option_argument("--for", for_all),
            *(f"--from={os.fspath(schedule)}" for schedule in start),
            *option_argument("--transport", transport),
            *option_argument("--comm-order", comm_order),
            *cost_options(costs),
            *option_argument("--layers", layers),
            *option_argument("--max-actions", max_actions),
            *options,
            "--format=json",
        ]
    )


def load(path: str | os.PathLike[str], /, *, microbatches: int | None = None) -> Program:
    """Reads a program that the compiler or another tool wrote: JSON, PyTorch's CSV, action lists (docs/importing.md).

    The compiler checks it, and adds messages if it has none. `microbatches` is for formats that do not tell their
    number.
    """
    return Program.from_native(compile_native([os.path.abspath(path), *option_argument("--microbatches", microbatches)]))


def _definitions(params: Mapping[str, Value] | None, more_params: Mapping[str, Value]) -> list[str]:
    return [text for name, value in {**(params or {}), **more_params}.items() for text in ("-D", definition(name, value))]


def _options(
    name: str | None,
    transport: str | Sequence[str] | None,
    comm_order: str | None,
    fuse: str | None,
    prefetch: int | None,
    preconnect: str | None,
    model: str | os.PathLike[str] | None,
    cluster: str | os.PathLike[str] | None,
    layout: str | None,
    costs: Costs | None,
    rules: str | Sequence[str] | None,
    rules_file: str | os.PathLike[str] | None,
    max_actions: int | None,
) -> list[str]:
    return [
        *option_argument("--schedule", name),
        *option_argument("--transport", transport),
        *option_argument("--comm-order", comm_order),
        *option_argument("--fuse", fuse),
        *option_argument("--prefetch", prefetch),
        *option_argument("--preconnect", preconnect),
        *option_argument("--model", None if model is None else os.fspath(model)),
        *option_argument("--cluster", None if cluster is None else os.fspath(cluster)),
        *option_argument("--layout", layout),
        *(option for rule in ([rules] if isinstance(rules, str) else rules or []) for option in option_argument("--with", rule)),
        *option_argument("--rules", None if rules_file is None else os.fspath(rules_file)),
        *option_argument("--max-actions", max_actions),
        *cost_options(costs),
    ]
