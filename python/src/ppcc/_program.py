"""A program: what each rank does, in order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import _ppcc

from ._diagnostics import Error
from ._digest import digest
from ._program_json import validate_header, validate_rows, parse_program_json
from ._report import Report
from ._rows import Actions, Columns, Rows
from ._deprecated import Renamed
from ._run import Costs, Value, option_argument, compile_native, cost_options, run
from ._timeline import Timeline


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of action: its letters, as in `0F3`, its class, and what has one: each microbatch of a stage, each stage,
    or each rank."""

    mnemonic: str
    kind_class: Literal["compute", "send", "recv", "declared"]
    per: Literal["microbatch", "stage", "rank"] = "microbatch"
    collective: str | tuple[int, ...] | None = None
    """Who does it together: `"all"` ranks, the `"replicas"` of the stage, some stages (negative ones from the last), or
    `"outside NAME"`. `"to"` and `"from"`: its rank, and the rank of its peer, to or from which it moves something."""

    letters = Renamed("mnemonic")

    @property
    def is_compute(self) -> bool:
        return self.kind_class == "compute"

    @property
    def is_message(self) -> bool:
        return self.is_send or self.is_recv

    @property
    def is_send(self) -> bool:
        return self.kind_class == "send"

    @property
    def is_recv(self) -> bool:
        return self.kind_class == "recv"


@dataclass(frozen=True, slots=True)
class Pipe:
    """Stages that some of the microbatches pass through. Each has an edge to the next, unless `gaps` takes it away."""

    index: int
    name: str
    microbatches: range
    rank_of_stage: tuple[int, ...]
    skip_edges: tuple[tuple[int, int], ...] = ()
    """Edges beside those between neighbours, each from the lower stage to the higher."""
    gaps: tuple[int, ...] = ()
    """Stages without an edge to the next."""
    slices: int = 1
    """So many microbatches in a row are slices of one sequence."""

    @property
    def num_stages(self) -> int:
        return len(self.rank_of_stage)

    def sources(self, stage: int) -> tuple[int, ...]:
        """The stages whose outputs this one reads, ascending."""
        before = [stage - 1] if stage > 0 and stage - 1 not in self.gaps else []
        return tuple(sorted(before + [low for low, high in self.skip_edges if high == stage]))

    def readers(self, stage: int) -> tuple[int, ...]:
        """The stages that read the output of this one, ascending."""
        after = [stage + 1] if stage + 1 < self.num_stages and stage not in self.gaps else []
        return tuple(sorted(after + [high for low, high in self.skip_edges if low == stage]))


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a schedule; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a rank."""

    kind: Kind
    pipe: Pipe
    stage: int
    """The stage that executes it."""
    microbatch: int
    """-1 for a declared action that is not of one."""
    peer: int | None = None
    """Of a send or receive: the stage at the other end, in the same pipe."""
    phase: str = ""
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
        """The rank at the other end of a message."""
        return None if self.peer is None else self.pipe.rank_of_stage[self.peer]

    def __str__(self) -> str:
        stage = "" if self.kind.per == "rank" else self.stage
        microbatch = self.microbatch if self.kind.per == "microbatch" else ""
        return f"{stage}{self.op}{microbatch}"


@dataclass(frozen=True, slots=True)
class Group:
    """What a rank runs at one time: an action by itself, or several that overlap or are one batch of messages."""

    actions: tuple[Action, ...]

    def __str__(self) -> str:
        cells = ";".join(map(str, self.actions))
        return cells if len(self.actions) == 1 else f"({cells})"


@dataclass(frozen=True, eq=False)
class Program:
    """A schedule with values for its parameters: the list of actions of each rank, and where its stages live."""

    schedule: str
    params: Mapping[str, Value]
    num_ranks: int
    pipes: tuple[Pipe, ...]
    kinds: tuple[Kind, ...]
    actions: Sequence[tuple[Action, ...]]
    """By rank, in order; those of a rank are made when they are asked for."""
    _rows: Rows = field(repr=False)
    _native: _ppcc.Program | None = field(repr=False)
    _text: str = field(repr=False)
    _head: Mapping[str, Any] = field(repr=False)
    has_backward: bool = True
    """False for a forward-only program."""
    transports: tuple[str, ...] = ()
    """Those under which it is proven not to hang."""
    preconnect: tuple[tuple[int, int], ...] = ()
    """Pairs of ranks in the order in which they connect first."""

    @staticmethod
    def from_native(native: _ppcc.Program) -> Program:
        """What the compiler holds."""
        return _read(json.loads(native.header_json()), Rows.from_native(native), native)

    @staticmethod
    def from_json(text: str) -> Program:
        """Reads what the compiler writes. Raises Error for other text, CompileError for a program that is wrong."""
        document = parse_program_json(text)
        if "families" in document:
            return _for_all(document, text)
        version = document.get("version")
        if version in (2, 3) and "loops" in document:  # The compiler writes loops out.
            return Program.from_native(compile_native(["-", "--from=json", "--comm-order=none"], text))
        if version not in (1, 3):
            raise Error(f"a program of version {version}, which this package does not know")
        validate_header(document)
        return _read(document, validate_rows(document), None, text)

    def at(self, **values: int) -> Program:
        """Of a program for all values of a parameter (docs/every-m.md) that of one: `program.at(M=1000)`."""
        chosen = [f"-D{name}={value}" for name, value in values.items()]
        return Program.from_native(compile_native(["-", "--from=json", *chosen], self.json))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Program:
        """Reads a file that save() or the compiler wrote, and lets the compiler check it."""
        try:
            program = Program.from_json(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise Error(f"no program: {error}") from error
        if "families" in program._head:
            return program  # For all numbers of microbatches; each is checked when it is taken.
        program._emit("json")
        return program

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program as JSON, for the compiler, the engine and load()."""
        Path(path).write_text(self.json, encoding="utf-8")

    @cached_property
    def json(self) -> str:
        """The program as the compiler writes it (docs/program-format.md)."""
        return self._text if self._native is None else self._native.json()

    @cached_property
    def waits(self) -> tuple[tuple[int, ...], ...]:
        """By rank, for each of its receives the position of the action before which it must have ended."""
        return tuple(map(tuple, json.loads(self.json).get("waits", ())))

    @cached_property
    def digest(self) -> str:
        """What all ranks must agree on, in 32 digits: taken of the rows, whatever a file says (docs/program-format.md)."""
        return digest(self._head, self._rows)

    def columns(self, rank: int) -> Columns:
        """The rows of a rank as arrays, without a copy."""
        return self._rows.rank(rank)

    @property
    def num_microbatches(self) -> int:
        """How many microbatches all pipes have together."""
        return sum(len(pipe.microbatches) for pipe in self.pipes)

    @property
    def name(self) -> str:
        """The schedule with its parameters: `dualpipe(P=8, M=20)`."""
        return f"{self.schedule}({', '.join(f'{name}={value}' for name, value in self.params.items())})"

    def local_stages(self, rank: int) -> tuple[tuple[Pipe, int], ...]:
        """The stages that live on a rank, pipe after pipe, ascending."""
        return tuple(
            (pipe, stage) for pipe in self.pipes for stage, home in enumerate(pipe.rank_of_stage) if home == rank
        )

    ranks = Renamed("num_ranks")
    microbatches = Renamed("num_microbatches")
    backward = Renamed("has_backward")
    stages_of = Renamed("local_stages")

    def groups(self, rank: int) -> Iterator[Group]:
        """What a rank runs at one time, in order."""
        actions = self.actions[rank]
        begin = 0
        for end in range(1, len(actions) + 1):
            joined = end < len(actions) and actions[begin].group is not None
            if not joined or actions[end].group != actions[begin].group:
                yield Group(actions[begin:end])
                begin = end

    def has_messages(self) -> bool:
        """Whether anything is sent."""
        return any(self.kinds[kind].is_send for kind in self._rows.kinds())

    def simulate(self, costs: Costs | None = None, *, transport: str | None = None) -> Report:
        """Runs the program by the clock: makespan, bubbles, memory (docs/reports.md).

        `costs` are by name, `{"F": 1, "B": 2, "latency": 0.1}`, or the path of a file; they stand above the program's own.
        """
        text = self._emit("report-json", *cost_options(costs), *option_argument("--transport", transport))
        return Report.from_json(json.loads(text))

    def timeline(
        self, costs: Costs | None = None, *, transport: str | None = None, width: int | None = None
    ) -> Timeline:
        """A picture of its run; it shows itself in a notebook."""
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
        """The program for `_PipelineScheduleRuntime._load_csv` of torch.distributed.pipelining, in either format.

        `torch_version` is the PyTorch that will read it; by default the one that is installed, else a current one. With
        `fsdp` it says when parameters are gathered and freed. Raises CompileError for what PyTorch cannot run.
        """
        emitters = {"compute_comms": "torch-csv", "compute_only": "torch-csv-compute"}
        if format not in emitters:
            raise ValueError(f"format is {format!r}, but must be one of {', '.join(emitters)}")
        version = torch_version or _installed_torch()
        options = [*option_argument("--torch-version", version), *(["--torch-fsdp"] if fsdp else [])]
        return self._emit(emitters[format], *options)

    def emit(self, format: str, *options: str) -> str:
        """Any other format of `ppcc --emit`, such as `actions` or `cpp`, with options of the command line."""
        return self._emit(format, *options)

    def _emit(self, format: str, *options: str) -> str:
        # Without messages it stays so, unless somebody asks for them.
        silent = not self.has_messages() and not any(option.startswith("--comm-order") for option in options)
        order = ["--comm-order=none"] if silent else []
        return run(["-", "--from=json", f"--emit={format}", *order, *options], text=self.json)

    def __str__(self) -> str:
        rows = (" ".join(map(str, self.groups(rank))) for rank in range(self.num_ranks))
        return "\n".join(f"rank {rank}: {row}" for rank, row in enumerate(rows))

    def __repr__(self) -> str:
        return f"<Program {self.name}: {self.num_ranks} ranks, {len(self._rows)} rows>"

    def _repr_html_(self) -> str:
        return self.timeline()._repr_html_()


def _installed_torch() -> str | None:
    from importlib import metadata

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def _kind(row: dict[str, Any]) -> Kind:
    collective = row.get("collective")
    return Kind(
        row["letters"],
        row["class"],
        row.get("per", "microbatch"),
        tuple(collective) if isinstance(collective, list) else collective,
    )


def _for_all(document: dict[str, Any], text: str) -> Program:
    """A head without actions, from which at() takes programs."""
    head = document | {"params": {}, "sites": [[-1, 0, 0, 0]], "phases": [""]}
    validate_header(head)
    return _read(head, Rows.from_lists(Columns._fields, [[]] * document["ranks"]), None, text)


def _read(document: dict[str, Any], rows: Rows, native: _ppcc.Program | None, text: str = "") -> Program:
    kinds = tuple(map(_kind, document["kinds"]))
    pipes = tuple(
        Pipe(
            index,
            row["name"],
            range(*row["microbatches"]),
            tuple(row["rank_of_stage"]),
            tuple((low, high) for low, high in row["skip_edges"]),
            tuple(row.get("gaps", ())),
            row.get("slices", 1),
        )
        for index, row in enumerate(document["pipes"])
    )
    sites = [
        None if file < 0 else Site(document["files"][file], line, column) for file, line, column, _ in document["sites"]
    ]
    phases: Sequence[str] = document["phases"]

    def actions(columns: Columns) -> Iterator[Action]:
        for kind, pipe, stage, microbatch, peer, phase, group, site in zip(*columns, strict=True):
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
        actions=Actions(rows, actions),
        _rows=rows,
        _native=native,
        _text=text,
        _head={key: value for key, value in document.items() if key != "actions"},
        has_backward=document["backward"],
        transports=tuple(document.get("transports", ())),
        preconnect=tuple((low, high) for low, high in document.get("preconnect", ())),
    )
