"""The entry points of the compiler: compile, load, synthesize."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from ._documents import from_row
from ._program import Program, input_file
from ._run import Costs, Value, compile_arguments, compile_native, cost_options, definitions, input_argument, option_argument, run, with_arguments_of
from ._table import memory_text, time_text

__all__ = ["ScheduleInfo", "compile", "compile_source", "decompile", "fmt", "load", "schedules", "synthesize", "version"]


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """A schedule of the library."""

    name: str
    summary: str
    """One line of text."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters with type, condition and default as the schedule declares them, such as `{"P": "int >= 2 = 4"}`."""
        rows = (line.split(": ", 1) for line in run([self.name, "--list-params"]).splitlines())
        return {name: declared for name, declared in rows}


def schedules() -> list[ScheduleInfo]:
    """List the schedules of the library.

    Returns:
        The schedules with their summaries.

    Examples:
        >>> import ppcc
        >>> [info.parameters for info in ppcc.schedules() if info.name == "dualpipe"]
        [{'P': 'int >= 2 = 4', 'M': 'int >= 2 * P = 2 * P', 'split_middle': 'bool = true'}]
    """
    rows = (line.split(None, 1) for line in run(["--list-schedules"]).splitlines())
    return [ScheduleInfo(row[0], row[1].strip() if len(row) > 1 else "") for row in rows if row]


def version() -> str:
    """Return the version of the compiler, such as `"0.1.0"`; the same as `ppcc.__version__`."""
    return run(["--version"]).split()[1]


@with_arguments_of(compile_arguments)
def compile(schedule: str | os.PathLike[str], /, **arguments: Any) -> Program:  # noqa: A001 - the word for it
    """Compile and verify a schedule. Warnings of the compiler become Python warnings.

    Args:
        schedule: A name of the library (see `schedules`), or the path of a `.pp` file; `"FILE.pp:NAME"` where it has several.
        params: Parameters of the schedule, for names that are arguments of this function.
        transport: The transports (docs/verification.md) under which the program must not deadlock; by default those of the
            schedule, else `"stream"`.
        comm_order: The order of sends and receives: `"none"`, `"sweep"`, `"ready-time"`, `"late"` or `"best"`. `"none"` adds no
            messages.
        fuse: Which neighbouring messages to post as one batch: `"none"`, `"batch"`, `"megatron"` or `"megatron-even-odd"`.
        prefetch: The maximum number of receives of an edge that are posted ahead of their readers.
        preconnect: Whether to list the connections to open first: `"auto"` (the default, on streams), `"on"` or `"off"`.
        model: A model: a name, or the path of a file (docs/language.md). It replaces the model of the schedule.
        cluster: A cluster, likewise.
        layout: The layers of each stage, such as `"E|(tt|)*3,m|L"`, or how to divide those of the model: `"evenly"` or
            `"by-cost"`.
        costs: Costs by name, such as `{"F": 1, "latency": 0.1}`, or the path of a file of costs (docs/reports.md).
        rules: Rules to apply, such as `"recompute(2, 1)"`, or a list of them.
        rules_file: The file that declares the rules; by default std.pp of the library.
        max_actions: The maximum number of actions; schedules with more are errors.
        for_all: A parameter, such as `"M"`: compile the program for all its values (docs/every-m.md), of which `Program.at`
            gives one.
        **more_params: Parameters of the schedule.

    Returns:
        The verified program.

    Raises:
        CompileError: The schedule has errors, or can deadlock; `diagnostics` lists them.
        UsageError: An option is unknown or excludes another one.
        TypeError: A parameter is not a number, a boolean or text.

    Examples:
        >>> import ppcc
        >>> program = ppcc.compile("one_f_one_b", P=2, M=2, transport="rendezvous")
        >>> print(program)
        rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
        rank 1: 1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1
    """
    return _compile(input_argument(schedule), None, arguments)


@with_arguments_of(compile_arguments)
def compile_source(source: str, /, **arguments: Any) -> Program:
    """Compile and verify the text of a schedule. Diagnostics call the text `<stdin>`.

    Args:
        source: The text.
        **arguments: The arguments of `compile`.

    Returns:
        The verified program.

    Raises:
        CompileError: The schedule has errors, or can deadlock; `diagnostics` lists them.
        UsageError: An option is unknown or excludes another one.

    Examples:
        >>> import ppcc
        >>> source = '''
        ... schedule alternate(P: int = 2, M: int = 4) {
        ...   ranks P; microbatches M; placement linear;
        ...   on rank r { repeat M { F; B; } }
        ... }
        ... '''
        >>> ppcc.compile_source(source, M=2).num_microbatches
        2
    """
    return _compile("-", source, arguments)


def _compile(schedule: str, text: str | None, arguments: Mapping[str, Any]) -> Program:
    words = [schedule, *compile_arguments(**arguments)]
    if arguments.get("for_all") is not None:
        return Program.from_json(run(words, text))
    return Program.from_native(compile_native(words, text))


@dataclass(frozen=True)
class SynthesisResult:
    """The best order that `synthesize` found, as a schedule, with its figures (docs/synthesis.md).

    Times are in the time unit of the costs, memory in their memory unit. A notebook shows the figures and the schedule.
    """

    text: str
    """The source of the schedule."""
    makespan: float
    span: float
    """The longest time of a rank from its first start to its last end."""
    bound: float
    """A lower bound of the objective for all orders of the placement."""
    gap: float
    """(objective - bound) / bound."""
    optimal: bool
    """Whether the objective equals the bound."""
    why: str
    """The argument for the bound."""
    peak_memory: tuple[float, ...]
    """By rank."""
    evaluations: int
    """The number of orders that the search simulated."""
    seconds: float
    """The time that the search took."""
    min_microbatches: int | None = None
    """With `for_all`: the schedule is proven for this number of microbatches and all greater ones."""
    microbatches: int | None = None
    """With `for_all`: the number of microbatches of the figures."""
    formulas: tuple[dict[str, Any], ...] = ()
    """With `for_all`: the makespan by M: `modulus`, `residue`, `from`, and `slope`, `intercept` and `exact` of `makespan`."""
    layout: str | None = None
    """With `layers`: the layers of each stage."""
    time_unit: str | None = None
    """`s`, `ms` or `us`; None if neither model nor cluster says it."""
    memory_unit: str | None = None
    """`bytes`, or None likewise."""

    @cached_property
    def program(self) -> Program:
        """The program of the schedule; with `for_all` that for `microbatches` microbatches."""
        return self.at(self.microbatches)

    def at(self, microbatches: int | None) -> Program:
        """Compile the schedule for a number of microbatches.

        Args:
            microbatches: The number of microbatches; ignored unless the schedule was synthesized with `for_all`.

        Returns:
            The program.

        Raises:
            CompileError: The schedule does not allow this number.
        """
        return compile_source(self.text, params={} if self.min_microbatches is None or microbatches is None else {"M": microbatches})

    def _headline(self) -> str:
        gap = "optimal" if self.optimal else f"gap {100 * self.gap:.2f} %"
        makespan, span, bound = (time_text(time, self.time_unit) for time in (self.makespan, self.span, self.bound))
        peak_memory = memory_text(max(self.peak_memory, default=0), self.memory_unit)
        return f"makespan {makespan}, span {span}, bound {bound} ({gap}), peak memory {peak_memory}"

    def __repr__(self) -> str:
        return f"<SynthesisResult {self._headline()}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._headline())}; {escape(self.why)}</p><pre>{escape(self.text)}</pre>"


def synthesize(placement: str | os.PathLike[str] = "linear", /, **arguments: Any) -> SynthesisResult:
    """Find the order of actions that takes the least time for a placement, costs and limits (docs/synthesis.md).

    Args:
        placement: `"linear"`, `"v"`, `"loop:V"` or `"wave:V"` with V stages per rank; or the name or path of a schedule, whose
            placement and model are used.
        **arguments: Options of the search, and `P`, `M` and other parameters of the placement:

            * `params`: parameters, for names that are options.
            * `costs`: costs by name, such as `{"F": 5, "memory.limit": 4}`, or the path of a file of costs.
            * `objective`: `"makespan"` (the default), or `"span"`, the longest time of a rank from its first start to its
              last end.
            * `effort`: the maximum number of actions to simulate, in millions; 100 by default.
            * `fused_backward`: use B instead of I and W.
            * `recompute`, `offload`: also choose for which microbatches each stage recomputes or offloads its activations.
            * `layers`: also choose how many layers each stage gets, such as `"E,t*24,L"`; `"model"` takes those of the model.
            * `for_all`: `"M"` searches for one schedule for all numbers of microbatches; `M` is then the number of the figures.
            * `start`: schedules to start the search with, in addition to those of the library.
            * `transport`, `comm_order`: the transport, and the order of messages; by default the best order is chosen.
            * `max_actions`: the maximum number of actions of the schedule.

    Returns:
        The schedule with its figures.

    Raises:
        CompileError: No order keeps to the limits, or the placement has errors.
        UsageError: An option is unknown or excludes another one.

    Examples:
        >>> import ppcc
        >>> found = ppcc.synthesize("linear", P=4, M=12, costs={"F": 5, "I": 6, "W": 4, "memory.limit": 4})
        >>> found
        <SynthesisResult makespan 201, span 201, bound 201 (optimal), peak memory 4>
        >>> found.program.simulate().makespan
        201
    """
    document = json.loads(_run_synthesize(placement, **arguments))
    return from_row(SynthesisResult, document, text=document["schedule"])


def _run_synthesize(
    placement: str | os.PathLike[str],
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
            *definitions(params, more_params),
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
            "--format=json",
        ]
    )


def load(path: str | os.PathLike[str], /, *, microbatches: int | None = None) -> Program:
    """Read and verify a program of the compiler or of another tool: JSON, PyTorch's CSV, action lists (docs/importing.md).

    The compiler adds messages if the program has none. Its warnings become Python warnings.

    Args:
        path: The file.
        microbatches: The number of microbatches, for formats that do not contain it.

    Returns:
        The verified program.

    Raises:
        CompileError: The file cannot be read, has errors, or its program can deadlock.

    Examples:
        >>> import pathlib, tempfile
        >>> import ppcc
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "lists.txt"
        ...     _ = path.write_text("rank 0: 0F0 0B0\\nrank 1: 1F0 1B0\\n")
        ...     print(ppcc.load(path))
        rank 0: 0F0 0SEND_F0 0RECV_B0 0B0
        rank 1: 1RECV_F0 1F0 1B0 1SEND_B0
    """
    return Program.from_native(compile_native([os.path.abspath(path), *option_argument("--microbatches", microbatches)]))


def decompile(program: Program | str | os.PathLike[str], /, *, name: str | None = None) -> str:
    """Write a schedule, with phases and loops, that runs the actions of a program in their order.

    The schedule is compiled and compared with the program.

    Args:
        program: A program, or the path of one (docs/importing.md).
        name: The name of the schedule; that of the program by default.

    Returns:
        The text of the schedule.

    Raises:
        CompileError: The program cannot be read, or no schedule of the language runs it.

    Examples:
        >>> import ppcc
        >>> print(ppcc.decompile(ppcc.compile("gpipe", P=2, M=3)).splitlines()[-2].strip())
        }
    """
    with input_file(program) as path:
        return run(["decompile", path, *option_argument("--name", name)])


def fmt(source: str, /) -> str:
    """Format the text of a schedule. Comments, line breaks and aligned columns stay.

    Args:
        source: The text.

    Returns:
        The formatted text.

    Raises:
        CompileError: The text has syntax errors.

    Examples:
        >>> import ppcc
        >>> print(ppcc.fmt("schedule s(){ranks 2;microbatches 2;\\nplacement linear;}"), end="")
        schedule s() { ranks 2; microbatches 2;
          placement linear; }
    """
    return run(["fmt", "-"], text=source)
