"""What a program must be for the runtime, or the job, that is to run it."""

from __future__ import annotations

from .._program import Program
from ._errors import UsageError

TAKE_SLICES = (
    "give its attentions a ppcc.torch.SliceCache, set `takes_slices = True` if no position of it reads another one, or use a schedule of "
    "whole sequences"
)
"""What to do about a stage."""


def check_size(program: Program, there: str, *, ranks: int, microbatches: int | None = None) -> None:
    """Raises UsageError for a program for another number of ranks or microbatches."""
    for name, wanted, found in (("ranks", program.num_ranks, ranks), ("microbatches", program.num_microbatches, microbatches)):
        if found is not None and wanted != found:
            raise UsageError(f"the program is for {wanted} {name}, but {there} has {found}")


def check_slices(program: Program, client: str, remedy: str = "use a schedule of whole sequences") -> None:
    """Raises UsageError for a program whose microbatches are slices of sequences."""
    for pipe in program.pipes:
        if pipe.slices > 1:
            raise UsageError(
                f"each {pipe.slices} microbatches of `{program.schedule}` are slices of one sequence, but {client} would train each as a "
                f"sample of its own, without the keys and values of the slices before it: {remedy}"
            )


def check_chain(program: Program, client: str, *, has_pipes: bool = False) -> None:
    """Raises UsageError unless each stage hands whole microbatches to the next one, in one pipe or, with `has_pipes`, in several."""
    if len(program.pipes) > 1 and not has_pipes:
        raise UsageError(f"{client} has one pipe, the program {len(program.pipes)}")
    check_slices(program, client)
    if any(pipe.skip_edges or pipe.gaps for pipe in program.pipes):
        raise UsageError(f"{client} hands outputs from each stage to the next: the program has other edges")


def check_messages(program: Program) -> None:
    """Raises UsageError for a program without messages whose ranks need some."""
    edges = ((pipe.rank_of_stage[stage], pipe.rank_of_stage[reader]) for pipe in program.pipes for stage in range(pipe.num_stages) for reader in pipe.readers(stage))
    if any(source != target for source, target in edges) and not program.has_messages():
        raise UsageError("the program has no messages: compile it with a comm_order other than `none`")
