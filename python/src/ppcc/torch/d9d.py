"""Run programs in d9d. Import this module explicitly, since it needs d9d.

Examples:
    In the place of one of d9d's builders::

        executor = PipelineScheduleExecutor(dist_context, stages, ppcc.torch.d9d.ProgramBuilder(program))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from d9d.pipelining.infra.schedule.component.program import PipelineProgramBuilder, ScheduleStyle
from d9d.pipelining.infra.schedule.component.runtime import (
    ActionBase,
    BackwardFullInputComputeAction,
    BackwardReceiveAction,
    BackwardSendAction,
    BackwardWeightComputeAction,
    ComposeAction,
    ForwardComputeAction,
    ForwardReceiveAction,
    ForwardSendAction,
)

from .._program import Action, Pipe, Program
from ._errors import UsageError
from ._fits import check_chain, check_messages, check_size
from ._groups import check_same_program


class ProgramBuilder(PipelineProgramBuilder):
    """A program builder for d9d's PipelineScheduleExecutor that returns the actions of a program.

    Args:
        program: The program, the same on all ranks.

    Raises:
        UsageError: d9d does not support the program: several pipes, skip edges, a placement that is neither a loop nor a V,
            slices of sequences, different numbers of stages per rank, batches of messages, or declared actions.
    """

    def __init__(self, program: Program) -> None:
        check_chain(program, "d9d")
        check_messages(program)
        (pipe,) = program.pipes
        if pipe.num_stages % program.num_ranks != 0:
            raise UsageError(f"d9d has equally many stages on each rank, but there are {pipe.num_stages}")
        self._program = program
        self._style = _style(pipe, program.num_ranks)
        self._lists = {
            rank: [_item(group.actions) for group in program.groups(rank)] for rank in range(program.num_ranks)
        }

    def compose(self, num_microbatches: int, pp_size: int) -> dict[int, list[ActionBase]]:
        """Return the actions of all ranks. All processes of the job call it together.

        Args:
            num_microbatches: The number of microbatches of the job.
            pp_size: The number of ranks of the pipeline.

        Returns:
            d9d's actions, by rank.

        Raises:
            UsageError: The program is for other numbers, or processes have different programs.
        """
        check_same_program(self._program, None)
        check_size(self._program, "the job", ranks=pp_size, microbatches=num_microbatches)
        return self._lists

    @property
    def num_stages_per_rank(self) -> int:
        """The number of stages of each rank."""
        return self._program.pipes[0].num_stages // self._program.num_ranks

    @property
    def topology_style(self) -> ScheduleStyle:
        """Whether the placement is a loop or a V."""
        return self._style


def _style(pipe: Pipe, ranks: int) -> ScheduleStyle:
    for style in ScheduleStyle:
        turns = [(stage // ranks, stage % ranks) for stage in range(pipe.num_stages)]
        backwards = style == ScheduleStyle.v
        if pipe.rank_of_stage == tuple(ranks - 1 - at if backwards and turn % 2 else at for turn, at in turns):
            return style
    raise UsageError("d9d has stages in loops or in V shapes only")


def _item(actions: tuple[Action, ...]) -> ActionBase:
    if len(actions) == 1:
        return _action(actions[0])
    if actions[0].kind.is_message:
        raise UsageError("d9d posts each message by itself, but the program has batches")
    return ComposeAction(tuple(map(_action, actions)))


def _action(action: Action) -> ActionBase:
    if action.op not in _ACTIONS:
        raise UsageError(f"d9d has no `{action.op}`")
    return _ACTIONS[action.op](action.stage, action.microbatch)


_ACTIONS: dict[str, Callable[[int, int], ActionBase]] = {
    "F": ForwardComputeAction,
    "B": partial(BackwardFullInputComputeAction, full_backward=True),
    "I": partial(BackwardFullInputComputeAction, full_backward=False),
    "W": BackwardWeightComputeAction,
    "SEND_F": ForwardSendAction,
    "RECV_F": ForwardReceiveAction,
    "SEND_B": BackwardSendAction,
    "RECV_B": BackwardReceiveAction,
}
