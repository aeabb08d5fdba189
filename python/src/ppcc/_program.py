"""Programs: the actions of each rank, in order."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import _ppcc

from ._diagnostics import Error
from ._digest import digest, fingerprint
from ._documents import from_row
from ._program_file import ProgramFile
from ._program_json import validate_header, validate_rows, parse_program_json
from ._report import Report
from ._rows import ByRank, Columns, Rows
from ._run import Costs, Value, compile_native, cost_options, input_argument, option_argument, run
from ._timeline import Timeline


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of an action."""

    mnemonic: str
    """As in a cell: `F` in `0F3`."""
    kind_class: Literal["compute", "send", "recv", "declared"]
    per: Literal["microbatch", "stage", "rank"] = "microbatch"
    """Whether there is one action per microbatch of a stage, per stage, or per rank."""
    collective: str | tuple[int, ...] | None = None
    """Which ranks run it together: `"all"`, `"replicas"` (of the stage), those of some stages (negative numbers count from the
    last), or `"outside NAME"` (a process group that is not part of the program). `"to"` and `"from"`: its rank and the rank of
    its peer, to or from which it moves memory. None if one rank runs it."""

    @property
    def is_compute(self) -> bool:
        """Whether it is a forward or a backward."""
        return self.kind_class == "compute"

    @property
    def is_message(self) -> bool:
        """Whether it is a send or a receive."""
        return self.is_send or self.is_recv

    @property
    def is_send(self) -> bool:
        """Whether it is a send."""
        return self.kind_class == "send"

    @property
    def is_recv(self) -> bool:
        """Whether it is a receive."""
        return self.kind_class == "recv"


@dataclass(frozen=True, slots=True)
class Pipe:
    """One direction through the stages, with microbatches of its own.

    Examples:
        >>> import ppcc
        >>> down, up = ppcc.compile("dualpipe", P=4, M=8).pipes
        >>> up.rank_of_stage, up.microbatches
        ((3, 2, 1, 0), range(4, 8))
    """

    index: int
    """Its position in `Program.pipes`."""
    name: str
    microbatches: range
    """The microbatches that pass through it."""
    rank_of_stage: tuple[int, ...]
    """The rank that hosts each stage."""
    skip_edges: tuple[tuple[int, int], ...] = ()
    """The edges between stages that are not neighbours, each from the lower stage to the higher."""
    gaps: tuple[int, ...] = ()
    """The stages without an edge to the next stage."""
    slices: int = 1
    """The number of consecutive microbatches that are slices of one sequence."""

    @property
    def num_stages(self) -> int:
        """The number of stages."""
        return len(self.rank_of_stage)

    def sources(self, stage: int) -> tuple[int, ...]:
        """Return the stages whose outputs a stage reads.

        Args:
            stage: The stage.

        Returns:
            Their numbers, ascending.
        """
        before = [stage - 1] if stage > 0 and stage - 1 not in self.gaps else []
        return tuple(sorted(before + [low for low, high in self.skip_edges if high == stage]))

    def readers(self, stage: int) -> tuple[int, ...]:
        """Return the stages that read the output of a stage.

        Args:
            stage: The stage.

        Returns:
            Their numbers, ascending.
        """
        after = [stage + 1] if stage + 1 < self.num_stages and stage not in self.gaps else []
        return tuple(sorted(after + [high for low, high in self.skip_edges if low == stage]))


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the source of a schedule; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a rank. `str()` gives its cell, such as `0F3`: stage, mnemonic, microbatch.

    Examples:
        >>> import ppcc
        >>> send = ppcc.compile("one_f_one_b", P=2, M=2).actions[0][1]
        >>> str(send), send.op, send.stage, send.microbatch, send.peer_rank
        ('0SEND_F0', 'SEND_F', 0, 0, 1)
    """

    kind: Kind
    pipe: Pipe
    stage: int
    """The stage that runs it."""
    microbatch: int
    """-1 for a declared action that belongs to no microbatch."""
    peer: int | None = None
    """The stage at the other end of a message, in the same pipe; None for other actions."""
    phase: str = ""
    """The phase of the schedule, such as `warmup`."""
    group: int | None = None
    """Actions of a rank with the same number run together."""
    site: Site | None = field(default=None, compare=False)
    """The statement of the schedule that it comes from."""

    @property
    def op(self) -> str:
        """The mnemonic of its kind: `F`, `SEND_B`, `REDUCE_GRAD`."""
        return self.kind.mnemonic

    @property
    def peer_rank(self) -> int | None:
        """The rank at the other end of a message; None for other actions."""
        return None if self.peer is None else self.pipe.rank_of_stage[self.peer]

    @property
    def slice(self) -> int:
        """Which slice of its sequence the microbatch is; 0 in programs of whole sequences."""
        return (self.microbatch - self.pipe.microbatches.start) % self.pipe.slices

    def __str__(self) -> str:
        stage = "" if self.kind.per == "rank" else self.stage
        microbatch = self.microbatch if self.kind.per == "microbatch" else ""
        return f"{stage}{self.op}{microbatch}"


@dataclass(frozen=True, slots=True)
class Group:
    """Actions that a rank runs at the same time: one action, an overlap group, or a batch of messages."""

    actions: tuple[Action, ...]

    def __str__(self) -> str:
        cells = ";".join(map(str, self.actions))
        return cells if len(self.actions) == 1 else f"({cells})"


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled schedule: the actions of each rank, in order, and the placement of its stages. Immutable.

    `compile`, `compile_source` and `load` return programs. `print()` shows a line of actions per rank; a notebook shows the
    timeline.

    Examples:
        >>> import ppcc
        >>> program = ppcc.compile("one_f_one_b", P=2, M=2)
        >>> program.num_ranks, program.num_microbatches, program.transports
        (2, 2, ('stream',))
        >>> [str(action) for action in program.actions[1]]
        ['1RECV_F0', '1F0', '1RECV_F1', '1B0', '1SEND_B0', '1F1', '1B1', '1SEND_B1']
        >>> program.simulate()
        <Report one_f_one_b on stream: makespan 9, bubble 33.33 %, peak memory 2, 4 messages>
    """

    schedule: str
    """The name of the schedule."""
    params: Mapping[str, Value]
    """The values of its parameters."""
    num_ranks: int
    pipes: tuple[Pipe, ...]
    kinds: tuple[Kind, ...]
    """The kinds of actions."""
    actions: Sequence[tuple[Action, ...]]
    """By rank, in order; built on first access to a rank. `columns` is faster for large programs."""
    _rows: Rows = field(repr=False)
    _native: _ppcc.Program | None = field(repr=False)
    _text: str = field(repr=False)
    _file: ProgramFile | None = field(repr=False)
    """What one rank of the program was read from."""
    _head: Mapping[str, Any] = field(repr=False)
    has_backward: bool = True
    """False for a forward-only program."""
    transports: tuple[str, ...] = ()
    """The transports under which it is proven not to deadlock."""
    preconnect: tuple[tuple[int, int], ...] = ()
    """Pairs of ranks, in the order in which they connect before the first message."""

    @staticmethod
    def from_native(native: _ppcc.Program) -> Program:
        """Wraps a program of the extension module."""
        document = json.loads(native.header_json())
        return _read(document, Rows(document["ranks"], native.columns), native)

    @staticmethod
    def from_json(text: str) -> Program:
        """Read the JSON of a program (docs/program-format.md) without verifying its order.

        Args:
            text: The JSON, as `--emit=json` and `Program.json` give it.

        Returns:
            The program.

        Raises:
            Error: The text is not the JSON of a program.
            CompileError: A program with loops has errors.
        """
        document = parse_program_json(text)
        if "families" in document:
            return _for_all(document, text)
        if document.get("version") in (2, 3) and "loops" in document:  # The compiler writes loops out.
            return Program.from_native(compile_native(["-", "--from=json", "--comm-order=none"], text))
        validate_header(document)
        _check_version(document)
        return _read(document, validate_rows(document), None, text)

    def at(self, **values: int) -> Program:
        """Return the program for one value, from a program for all values of a parameter (docs/every-m.md).

        Args:
            **values: The value of the parameter, such as `M=1000`.

        Returns:
            The program.

        Raises:
            CompileError: The family does not have this parameter, or no program for this value.
        """
        chosen = [f"-D{name}={value}" for name, value in values.items()]
        return Program.from_native(compile_native(["-", "--from=json", *chosen], self.json))

    @staticmethod
    def load(path: str | os.PathLike[str], *, rank: int | None = None) -> Program:
        """Read and verify a file that `save` or the compiler wrote.

        With `rank`, rank 0 reads and verifies the file for the job. The others read only the rows of their rank, and those of
        other ranks when they are asked for; the runtimes raise an error unless the rows of all ranks are those of one program.

        Args:
            path: The file, in JSON.
            rank: The rank of this process in the pipeline. By default all ranks are read.

        Returns:
            The program. A program for all numbers of microbatches is verified when `at` instantiates it.

        Raises:
            Error: The file is not the JSON of a program.
            CompileError: The program has errors.
            OSError: The file cannot be read.

        Examples:
            On each rank of a job::

                program = ppcc.Program.load("program.json", rank=dist.get_rank())
        """
        is_file = os.path.isfile(path)
        file = ProgramFile.open(path, has_rows=bool(rank)) if is_file else None
        text = ""
        if file is None:
            try:
                text = Path(path).read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                raise Error(f"no program: {error}") from error
        document = parse_program_json(text) if file is None else file.document
        if "families" in document:
            return _for_all(document, text)  # For all numbers of microbatches; each is checked when it is taken.
        if file is not None and rank and "loops" not in document:
            return _part(file, rank)
        options = ["--from=json", "--comm-order=none"]
        transports = document.get("transports")
        if isinstance(transports, list) and transports and all(isinstance(name, str) for name in transports):
            options += option_argument("--transport", transports)
        if is_file:
            return Program.from_native(compile_native([os.path.abspath(path), *options]))
        return Program.from_native(compile_native(["-", *options], text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program as JSON, for the compiler, the engine and `load`.

        Args:
            path: The file.
        """
        Path(path).write_text(self.json, encoding="utf-8")

    @cached_property
    def json(self) -> str:
        """The program as JSON (docs/program-format.md)."""
        if self._file is not None:
            return self._file.json()
        return self._text if self._native is None else self._native.json()

    @cached_property
    def waits(self) -> Sequence[tuple[int, ...]]:
        """By rank, for each receive the position of the action before which it must have ended."""
        if self._native is not None:
            return self._native.waits()
        if self._file is not None:
            return ByRank(self.num_ranks, self._file.waits)
        return tuple(map(tuple, json.loads(self.json).get("waits", ())))

    @cached_property
    def digest(self) -> str:
        """A hash of everything on which ranks must agree: 32 hexadecimal digits, computed from the rows (docs/program-format.md)."""
        if self._native is not None:
            return self._native.digest()
        return digest(self._head, map(self._fingerprint, range(self.num_ranks)))

    def _fingerprint(self, rank: int) -> tuple[int, ...]:
        return fingerprint(self._rows.rank(rank))

    @property
    def _stated_digest(self) -> str:
        """The digest, without reading rows of other ranks: where they have not been read, that in the file."""
        return self.digest if self._file is None else str(self._head["digest"])

    def _is_of(self, fingerprints: Sequence[Sequence[int]]) -> bool:
        """Whether the rows that all ranks have read are those of `_stated_digest`."""
        return self._file is None or digest(self._head, fingerprints) == self._stated_digest

    def columns(self, rank: int) -> Columns:
        """Return the actions of a rank as arrays.

        Args:
            rank: The rank.

        Returns:
            A buffer of int32 for each field.
        """
        return self._rows.rank(rank)

    @property
    def num_microbatches(self) -> int:
        """The number of microbatches of all pipes."""
        return sum(len(pipe.microbatches) for pipe in self.pipes)

    @property
    def name(self) -> str:
        """The schedule with its parameters, such as `dualpipe(P=8, M=20)`."""
        return f"{self.schedule}({', '.join(f'{name}={value}' for name, value in self.params.items())})"

    def local_stages(self, rank: int) -> tuple[tuple[Pipe, int], ...]:
        """Return the stages of a rank.

        Args:
            rank: The rank.

        Returns:
            Pairs of pipe and stage number, by pipe, then ascending.
        """
        return tuple(
            (pipe, stage) for pipe in self.pipes for stage, home in enumerate(pipe.rank_of_stage) if home == rank
        )

    def groups(self, rank: int) -> Iterator[Group]:
        """Iterate over the actions of a rank, grouped by what runs at the same time.

        Args:
            rank: The rank.

        Yields:
            The groups, in order.
        """
        actions = self.actions[rank]
        begin = 0
        for end in range(1, len(actions) + 1):
            joined = end < len(actions) and actions[begin].group is not None
            if not joined or actions[end].group != actions[begin].group:
                yield Group(actions[begin:end])
                begin = end

    def has_messages(self) -> bool:
        """Return whether the program contains sends."""
        return any(self.kinds[kind].is_send for kind in self._rows.kinds())

    def _runs(self, mnemonic: str) -> bool:
        """Whether any rank has an action of this mnemonic."""
        numbers = {number for number, kind in enumerate(self.kinds) if kind.mnemonic == mnemonic}
        return bool(numbers) and any(kind in numbers for kind in self._rows.kinds())

    def simulate(self, costs: Costs | None = None, *, transport: str | None = None) -> Report:
        """Simulate the program: makespan, bubbles, memory (docs/reports.md).

        Args:
            costs: Costs by name, such as `{"F": 1, "B": 2, "latency": 0.1, "memory.F": 1}`, or the path of a file of costs. They
                override those of the program. F, I and W take 1 by default, B the time of I and W; messages take no time.
            transport: The transport; by default the first of `transports`.

        Returns:
            The figures, in the units of the costs.

        Raises:
            CompileError: The costs are invalid, or the program deadlocks under the transport.
            UsageError: The transport is unknown.

        Examples:
            >>> import ppcc
            >>> report = ppcc.compile("one_f_one_b", P=2, M=4).simulate({"F": 1, "B": 2, "latency": 0.5})
            >>> report.makespan, report.bubble_rate, [rank.peak_activations for rank in report.ranks]
            (17, 0.294117647, [2, 1])
        """
        text = self._emit("report-json", *cost_options(costs), *option_argument("--transport", transport))
        return Report.from_json(json.loads(text))

    def check(
        self, *, dynamic: Literal["ready", "hint"] | None = None, costs: Costs | None = None, transport: str | Sequence[str] | None = None
    ) -> None:
        """Verify the program: right gradients, no deadlock, memory within its limits.

        Args:
            dynamic: Also verify it for runtimes whose ranks start what is ready (docs/verification.md#dynamic-orders): `"ready"`, whatever
                fits into their memory, or `"hint"`, the first of their order after which the rest of it fits.
            costs: Costs, as for `simulate`, such as the memory limits.
            transport: The transports under which it must not deadlock, as for `compile`; by default those of the program.

        Raises:
            CompileError: It has errors; with `dynamic` ranks may also hang, or no proof was found.
            UsageError: An option is unknown.

        Examples:
            >>> import ppcc
            >>> ppcc.compile("one_f_one_b", P=4, M=8).check(dynamic="ready", costs={"limit": 4})
            >>> try:
            ...     ppcc.compile("zbv", P=4, M=8).check(dynamic="ready", costs={"limit": 8})
            ... except ppcc.CompileError as error:
            ...     print(error.errors[0].message)
            deadlock where ranks start whatever is ready: rank 3 waits for memory that nothing gives back
        """
        options = [*cost_options(costs), *option_argument("--transport", transport or self.transports or None), *option_argument("--dynamic", dynamic)]
        run(["check", "-", *self._input_options(options), *options], text=self.json)

    def timeline(
        self, costs: Costs | None = None, *, transport: str | None = None, width: int | None = None
    ) -> Timeline:
        """Draw the run of the program.

        Args:
            costs: Costs, as for `simulate`.
            transport: The transport, as for `simulate`.
            width: The width of the text in columns, or of the SVG image in pixels; a page has the width of its window.

        Returns:
            The timeline, which is drawn on first use.

        Examples:
            >>> import ppcc
            >>> timeline = ppcc.compile("one_f_one_b", P=2, M=4).timeline({"F": 1, "B": 2})
            >>> len(timeline.text.splitlines()) > 2
            True
        """
        options = [*cost_options(costs), *option_argument("--transport", transport)]
        sized = option_argument("--width", width)
        return Timeline(
            self.name, lambda format, *more: self._emit(format, *options, *([] if format == "html" else sized), *more)
        )

    def to_csv(
        self,
        format: Literal["compute_comms", "compute_only"] = "compute_comms",
        *,
        torch_version: str | None = None,
        fsdp: bool = False,
    ) -> str:
        """Return the program as CSV for `_PipelineScheduleRuntime._load_csv` of torch.distributed.pipelining.

        Args:
            format: `"compute_comms"`, or `"compute_only"`, which leaves the messages to PyTorch.
            torch_version: The PyTorch release that reads the CSV, such as `"2.10"`; by default the installed one, else a
                recent one.
            fsdp: Whether to add the actions that gather and free the parameters of stages (FSDP).

        Returns:
            A line per rank.

        Raises:
            CompileError: PyTorch cannot run the program.
            ValueError: The format is unknown.

        Examples:
            >>> import ppcc
            >>> print(ppcc.compile("one_f_one_b", P=2, M=2).to_csv("compute_only"), end="")
            0F0,0F1,0B0,0B1
            1F0,1B0,1F1,1B1
        """
        emitters = {"compute_comms": "torch-csv", "compute_only": "torch-csv-compute"}
        if format not in emitters:
            raise ValueError(f"format is {format!r}, but must be one of {', '.join(emitters)}")
        version = torch_version or _installed_torch()
        options = [*option_argument("--torch-version", version), *(["--torch-fsdp"] if fsdp else [])]
        return self._emit(emitters[format], *options)

    def emit(self, format: str, *options: str) -> str:
        """Return the program in a format of `ppcc --emit`.

        Args:
            format: The format, such as `"actions"`, `"cpp"` or `"trace"`.
            *options: Options of the command line, such as `"--cpp-symbol=mine"`.

        Returns:
            The text.

        Raises:
            CompileError: The program has no such form.
            UsageError: The format or an option is unknown.

        Examples:
            >>> import ppcc
            >>> print(ppcc.compile("gpipe", P=1, M=2).emit("actions"), end="")
            rank 0: 0F0 0F1 0B0 0B1
        """
        return self._emit(format, *options)

    def _emit(self, format: str, *options: str) -> str:
        return run(["-", f"--emit={format}", *self._input_options(options), *options], text=self.json)

    def _input_options(self, options: Sequence[str]) -> list[str]:
        """A program without messages gets none unless an option asks for them."""
        silent = not self.has_messages() and not any(option.startswith("--comm-order") for option in options)
        return ["--from=json", *(["--comm-order=none"] if silent else [])]

    def __str__(self) -> str:
        rows = (" ".join(map(str, self.groups(rank))) for rank in range(self.num_ranks))
        return "\n".join(f"rank {rank}: {row}" for rank, row in enumerate(rows))

    def __repr__(self) -> str:
        rows = f", {len(self._rows)} rows" if self._file is None else ""
        return f"<Program {self.name}: {self.num_ranks} ranks{rows}>"

    def _repr_html_(self) -> str:
        return self.timeline()._repr_html_()


@contextmanager
def input_file(program: Program | str | os.PathLike[str]) -> Iterator[str]:
    """The input of a command line for a program, or for the path or name of one."""
    if not isinstance(program, Program):
        yield input_argument(program)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.json")
        program.save(path)
        yield path


def _installed_torch() -> str | None:
    from importlib import metadata

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def _check_version(document: Mapping[str, Any]) -> None:
    if (version := document.get("version")) not in (1, 3):
        raise Error(f"a program of version {version}, which this package does not know")


def _for_all(document: dict[str, Any], text: str) -> Program:
    """Builds a program for all values of a parameter: it has no actions; `at` instantiates it."""
    head = document | {"params": {}, "sites": [[-1, 0, 0, 0]], "phases": [""]}
    validate_header(head)
    return _read(head, Rows(document["ranks"], lambda _: b""), None, text)


def _part(file: ProgramFile, rank: int) -> Program:
    """Builds a program of which one rank is read."""
    file.validate()
    _check_version(file.document)
    if not isinstance(file.document.get("digest"), str):
        raise Error("no program: without `digest`, nothing shows that ranks have the same program; load it without `rank`")
    program = _read(file.document, Rows(file.document["ranks"], file.columns), None, file=file)
    program._rows.rank(rank)
    return program


def _read(
    document: dict[str, Any], rows: Rows, native: _ppcc.Program | None, text: str = "", file: ProgramFile | None = None
) -> Program:
    kinds = tuple(from_row(Kind, row, kind_class=row["class"]) for row in document["kinds"])
    pipes = tuple(
        from_row(Pipe, row, index=index, microbatches=range(*row["microbatches"]), skip_edges=tuple((low, high) for low, high in row["skip_edges"]))
        for index, row in enumerate(document["pipes"])
    )
    sites = [
        None if file < 0 else Site(document["files"][file], line, column) for file, line, column, _ in document["sites"]
    ]
    phases: Sequence[str] = document["phases"]

    def actions(rank: int) -> Iterator[Action]:
        for kind, pipe, stage, microbatch, peer, phase, group, site in zip(*rows.rank(rank), strict=True):
            yield Action(
                kinds[kind],
                pipes[pipe],
                stage,
                microbatch,
                None if peer < 0 else peer,
                phases[phase],
                None if group < 0 else group,
                sites[site],
            )

    return Program(
        schedule=document["schedule"],
        params=document["params"],
        num_ranks=document["ranks"],
        pipes=pipes,
        kinds=kinds,
        actions=ByRank(rows.ranks, actions),
        _rows=rows,
        _native=native,
        _text=text,
        _file=file,
        _head={key: value for key, value in document.items() if key != "actions"},
        has_backward=document["backward"],
        transports=tuple(document.get("transports", ())),
        preconnect=tuple((low, high) for low, high in document.get("preconnect", ())),
    )
