"""Checks whether schedules, also those of other systems, can deadlock."""

from __future__ import annotations

import copy
import importlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from torch.distributed.pipelining import schedules

from .._diagnostics import CompileError, Diagnostic
from .._program import Program
from .._run import run
from ._errors import UsageError

_CELL = re.compile(r"(\d+)[A-Z_]+(\d+)")
_HANGS = {"E0741", "E0742", "E0755", "E0760", "E0762", "E0765", "E0766", "E0840"}
"""The errors of programs whose ranks wait for ever, or for another message than they get."""

TRANSPORTS = ("buffered", "rendezvous", "posted", "stream", "stream-per-peer", "stream-per-edge")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether a schedule can deadlock. True if it cannot under `transport`."""

    transport: str
    errors: tuple[Diagnostic, ...]
    """The errors under this transport, such as the ranks that wait for each other."""
    safe_transports: tuple[str, ...]
    """The transports under which the schedule cannot deadlock."""
    listing: str
    """The actions of each rank that were checked, as `ppcc --check --from=actions` reads them."""

    def __bool__(self) -> bool:
        return not self.errors

    def __repr__(self) -> str:
        return f"<CheckResult {str(self).splitlines()[0]}>"

    def __str__(self) -> str:
        what = ", ".join(f"{n} {name[: -2 if name.endswith('hes') else -1] if n == 1 else name}" for name, n in _counts(self.listing).items())
        where = f"it is safe under {', '.join(self.safe_transports)}" if self.safe_transports else "no transport is safe"
        if not self.errors:
            return f"{what}: cannot hang under {self.transport}; {where}"
        if not any(error.code in _HANGS for error in self.errors):
            return f"{what}: does not do a training step\n{CompileError(self.errors)}"
        return f"{what}: can hang under {self.transport}; {where}\n{CompileError(self.errors)}"


def check(
    schedule: Any,
    *,
    transport: str = "stream",
    microbatches: int | None = None,
    ranks: int | None = None,
    config: Any = None,
) -> CheckResult:
    """Check whether a schedule can deadlock, on all ranks, without running it (docs/hangs.md).

    Args:
        schedule: One of

            * a schedule of torch.distributed.pipelining (also as torchtitan builds it),
            * a d9d executor or program builder (with `microbatches`; a builder also with `ranks`),
            * a DeepSpeed pipeline engine or schedule,
            * a `ppcc.megatron.ForwardBackward` (with `microbatches` if it has a function), or one of Megatron's
              forward_backward_pipelining functions (with `microbatches` and `config`),
            * a `Program`,
            * the actions of each rank, such as `[["0F0", "0SEND_F0", ...], ...]`.
        transport: The transport of the check (docs/verification.md); `"stream"` is NCCL with one communicator.
        microbatches: The number of microbatches, for schedules that do not contain it; else it has to be theirs.
        ranks: The number of ranks, likewise.
        config: The configuration of Megatron's function.

    Returns:
        The result for `transport`, and all transports under which the schedule is safe.

    Raises:
        UsageError: The schedule has an unknown type, has no messages to check, needs an argument that is missing, or
            contradicts one; a list cannot be read.

    Examples:
        >>> from ppcc.torch import check
        >>> check([["0F0", "0SEND_F0", "0RECV_B0", "0B0"], ["1RECV_F0", "1F0", "1B0", "1SEND_B0"]])
        <CheckResult 2 ranks, 2 stages, 1 microbatch: cannot hang under stream; it is safe under stream, buffered, rendezvous, posted, stream-per-peer, stream-per-edge>
        >>> bool(check([["0RECV_B0", "0F0", "0SEND_F0", "0B0"], ["1RECV_F0", "1F0", "1B0", "1SEND_B0"]]))
        False
    """
    read = _read(schedule, microbatches, ranks, config)
    listing = read.emit("actions") if isinstance(read, Program) else read
    counts = _counts(listing)
    for name, given in (("microbatches", microbatches), ("ranks", ranks)):
        if given is not None and given != counts[name]:
            raise UsageError(f"{name}={given}, but the schedule has {counts[name]}")
    found = {name: _errors(read, name) for name in dict.fromkeys((transport, *TRANSPORTS))}
    return CheckResult(transport, found[transport], tuple(name for name, errors in found.items() if not errors), listing)


def _errors(read: Program | str, transport: str) -> tuple[Diagnostic, ...]:
    form, text = ("json", read.json) if isinstance(read, Program) else ("actions", read)
    try:
        run(["-", f"--from={form}", "--check", f"--transport={transport}"], text=text)
    except CompileError as error:
        first = error.errors[0] if error.errors else None
        if form == "actions" and first is not None and "E0600" <= first.code < "E0680" and first.line is not None:
            raise UsageError(f"the actions of rank {first.line - 1} cannot be read: {first.message}") from None
        return error.errors
    return ()


def _counts(listing: str) -> dict[str, int]:
    """How many ranks, stages and microbatches the actions have."""
    cells = [(int(stage), int(microbatch)) for stage, microbatch in _CELL.findall(listing)]
    return {
        "ranks": listing.count("rank "),
        "stages": len({stage for stage, _ in cells}),
        "microbatches": len({microbatch for _, microbatch in cells}),
    }


def _read(schedule: Any, microbatches: int | None, ranks: int | None, config: Any) -> Program | str:
    """The program that a schedule runs, or the actions of its ranks."""
    if isinstance(schedule, Program):
        return schedule
    for read in (_of_torch, _of_d9d, _of_deepspeed, _of_megatron):
        if (rows := read(schedule, microbatches, ranks, config)) is not None:
            return rows if isinstance(rows, Program | str) else _lines(rows)
    if isinstance(schedule, Sequence) and not isinstance(schedule, str):
        return _lines([" ".join(map(str, row)) for row in schedule])
    if isinstance(schedule, str):
        raise UsageError("a str is no schedule; for one of the library give `ppcc.compile(NAME, P=..., M=...)`")
    if isinstance(schedule, type):
        raise UsageError(f"{schedule.__name__} is a class; give an object of it")
    raise UsageError(
        f"a {type(schedule).__name__} is no schedule that is known here: give one of PyTorch, torchtitan, Megatron-LM, "
        "DeepSpeed or d9d, a Program, or the lists of actions of all ranks"
    )


def _lines(rows: Sequence[str]) -> str:
    return "".join(f"rank {rank}: {row}\n" for rank, row in enumerate(rows))


def _needed(value: Any, name: str) -> Any:
    if value is None:
        raise UsageError(f"this schedule does not tell its {name}: give check() `{name}`")
    return value

# torch.distributed.pipelining


def _of_torch(schedule: Any, *_: Any) -> Any:
    if isinstance(schedule, schedules.PipelineScheduleSingle):
        return [_trace_single(schedule, rank) for rank in range(schedule._num_stages)]
    order = getattr(schedule, "pipeline_order_with_comms", None)
    if isinstance(schedule, schedules.PipelineScheduleMulti) and not order:
        raise UsageError("the schedule has no messages that could be looked at: it decides about them while it runs")
    if not order:
        return None
    rows = [[str(action) for action in order[rank] if action is not None] for rank in sorted(order)]
    return [" ".join(cell for cell in row if not _NO_MESSAGE.search(cell)) for row in rows]


_NO_MESSAGE = re.compile(r"UNSHARD|RESHARD|REDUCE_GRAD|WAIT_SEND")
"""Actions of PyTorch that are not messages and that other formats do not have."""


def _trace_single(schedule: Any, rank: int) -> str:
    """Runs the step of a schedule with a stage that records the calls."""
    stage = _Stage(rank, schedule._num_stages)
    runs = copy.copy(schedule)
    count = schedule._n_microbatches
    vars(runs).update(
        _stage=stage,
        _check_inputs=lambda *given: ([()] * count, [{}] * count),
        _initialize_stage=lambda *given: None,
        _maybe_compute_loss=lambda *given: None,
        _maybe_get_loss=lambda *given: None,
        _update_losses=lambda *given: None,
        scale_grads=False,
    )
    own: dict[str, Callable[..., Any]] = {
        "_batch_p2p": stage.post,
        "_sorted_batch_p2p": lambda messages, **_: {0: stage.post(messages)},
        "_wait_batch_p2p": lambda *given: None,
        "_wait_and_release_fwd_send": lambda *given: None,
    }
    with replaced(schedules, own):
        runs._step_microbatches()
    return " ".join(stage.cells)


class _Stage:
    submod = None

    def __init__(self, index: int, count: int) -> None:
        self.stage_index, self.is_first, self.is_last = index, index == 0, index == count - 1
        self.get_fwd_recv_ops, self.get_bwd_send_ops = (partial(self._message, self.is_first, op) for op in ("RECV_F", "SEND_B"))
        self.get_fwd_send_ops, self.get_bwd_recv_ops = (partial(self._message, self.is_last, op) for op in ("SEND_F", "RECV_B"))
        self.cells: list[str] = []

    def post(self, messages: list[str], **_: Any) -> list[Any]:
        if messages:
            self.cells.append(messages[0] if len(messages) == 1 else f"batch[{';'.join(messages)}]")
        return []

    def _message(self, is_end: bool, op: str, microbatch: int) -> list[str]:
        return [] if is_end else [f"{self.stage_index}{op}{microbatch}"]

    def forward_one_chunk(self, microbatch: int, *given: Any, **options: Any) -> None:
        self.cells.append(f"{self.stage_index}F{microbatch}")

    def backward_one_chunk(self, microbatch: int, **options: Any) -> None:
        self.cells.append(f"{self.stage_index}B{microbatch}")

    def perform_reduce_grad(self, *given: Any) -> None:
        pass


_replacement = threading.Lock()


@contextmanager
def replaced(module: ModuleType, own: Mapping[str, Any]) -> Iterator[None]:
    """A context in which functions of a module are others; one thread at a time."""
    with _replacement:
        before = {name: getattr(module, name) for name in own if hasattr(module, name)}
        vars(module).update({name: own[name] for name in before})
        try:
            yield
        finally:
            vars(module).update(before)


# Other systems, which may not be installed.


def _of_d9d(schedule: Any, microbatches: int | None, ranks: int | None, _: Any) -> Any:
    cache = getattr(schedule, "_programs", None)
    builder = getattr(cache, "_builder", schedule)
    if not hasattr(builder, "compose"):
        return None
    ranks = _needed(ranks or getattr(cache, "_pp_size", None), "ranks")
    composed = builder.compose(num_microbatches=_needed(microbatches, "microbatches"), pp_size=ranks)
    return [" ".join(map(_cell_of_d9d, composed[rank])) for rank in sorted(composed)]


def _cell_of_d9d(action: Any) -> str:
    if members := getattr(action, "actions", None):
        cells = [_cell_of_d9d(member) for member in members]
        names = ["".join(filter(str.isalpha, cell)) for cell in cells]
        return f"({';'.join(cells)})OVERLAP_{'_'.join(names)}"
    names_of = {
        "ForwardComputeAction": "F",
        "BackwardFullInputComputeAction": "B" if getattr(action, "full_backward", True) else "I",
        "BackwardWeightComputeAction": "W",
        "ForwardSendAction": "SEND_F",
        "ForwardReceiveAction": "RECV_F",
        "BackwardSendAction": "SEND_B",
        "BackwardReceiveAction": "RECV_B",
    }
    return f"{action.stage_idx}{names_of[type(action).__name__]}{action.microbatch_idx}"


def _of_deepspeed(schedule: Any, *_: Any) -> Any:
    made = schedule._train_schedule() if hasattr(schedule, "_train_schedule") else schedule
    if isinstance(program := getattr(made, "_program", None), Program):
        return program
    if not type(made).__module__.startswith("deepspeed."):
        return None
    return [_row_of_deepspeed(type(made)(made.micro_batches, made.stages, rank)) for rank in range(made.stages)]


def _row_of_deepspeed(schedule: Any) -> str:
    """Buffers are reused and do not identify microbatches; each instruction takes the microbatches in order."""
    mnemonics = {
        "ForwardPass": "F", "BackwardPass": "B",
        "SendActivation": "SEND_F", "RecvActivation": "RECV_F", "SendGrad": "SEND_B", "RecvGrad": "RECV_B",
    }  # fmt: skip
    cells: list[str] = []
    counts: dict[tuple[str, int], int] = {}
    queued: list[str] | None = [] if type(schedule).__name__ == "DualPipeVSchedule" else None

    def commit() -> None:
        if queued:
            cells.append(queued[0] if len(queued) == 1 else f"batch[{';'.join(queued)}]")
            queued.clear()

    for instruction in (instruction for step in schedule for instruction in step):
        name = type(instruction).__name__
        if name == "CommitP2P":
            commit()
        if name not in mnemonics:
            continue
        phase = getattr(instruction, "phase", 0)
        microbatch = counts.get((name, phase), 0)
        counts[name, phase] = microbatch + 1
        stage = 2 * schedule.stages - 1 - schedule.stage_id if phase else schedule.stage_id
        cell = f"{stage}{mnemonics[name]}{microbatch}"
        (cells if queued is None or name.endswith("Pass") else queued).append(cell)
    commit()
    return " ".join(cells)


def _of_megatron(schedule: Any, microbatches: int | None, _: Any, config: Any) -> Any:
    if isinstance(programs := getattr(schedule, "_programs", None), Program) or callable(programs):
        return programs if isinstance(programs, Program) else programs(_needed(microbatches, "microbatches"))
    if getattr(schedule, "__module__", None) != "megatron.core.pipeline_parallel.schedules":
        return None
    if schedule.__name__ == "get_forward_backward_func":
        raise UsageError("this is the function that chooses: give what it returns, `get_forward_backward_func(ranks, chunks)`")
    chunks = getattr(_needed(config, "config"), "virtual_pipeline_model_parallel_size", None)
    if schedule.__name__.endswith("_with_interleaving") and chunks is None:
        raise UsageError("an interleaved schedule needs `config.virtual_pipeline_model_parallel_size`")
    trace: Any = importlib.import_module("ppcc.megatron._trace").trace
    return trace(schedule, config, _needed(microbatches, "microbatches"))
