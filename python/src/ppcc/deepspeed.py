"""Run programs in DeepSpeed's pipeline engines (docs/deepspeed.md).

A `PipelineEngine` has one stage per rank, a `DualPipeVEngine` two, in a V. Import this module explicitly, since it needs
DeepSpeed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepspeed.runtime.pipe import schedule
from deepspeed.runtime.pipe.dualpipev import DualPipeVEngine
from deepspeed.runtime.pipe.engine import PipelineEngine

from ._program import Action, Program
from .torch._errors import UsageError
from .torch._fits import check_chain, check_messages, check_size
from .torch._groups import check_same_program, together
from .torch._unsupported_stages import UNSUPPORTED_WRAPPERS, check_stage

__all__ = ["ProgramSchedule", "install"]

_UNSUPPORTED_WRAPPERS = dict.fromkeys(UNSUPPORTED_WRAPPERS, "leave it out, since the engine averages over data-parallel ranks itself")


def install(engine: PipelineEngine, program: Program, *, full_backward: bool = False) -> None:
    """Make `train_batch` of an engine run a program. All ranks call it together.

    `eval_batch` keeps DeepSpeed's order. The engine reduces gradients and runs the optimizer after the program.

    Args:
        engine: A `PipelineEngine`, or a `DualPipeVEngine`.
        program: The program, the same on all ranks, for `gradient_accumulation_steps` microbatches, compiled with
            `transport="rendezvous"`.
        full_backward: DeepSpeed computes both gradients at once. True does so at I, and nothing at W; False rejects programs
            with I and W.

    Raises:
        UsageError: The engine does not support the program or its modules, or ranks have different programs.

    Examples:
        On each rank::

            engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
            ppcc.deepspeed.install(engine, ppcc.compile("one_f_one_b", P=4, M=8, transport="rendezvous"))
            loss = engine.train_batch(batches)
    """
    group = engine.grid.get_pipe_parallel_group()
    check_same_program(program, group)
    with together(group):
        check_stage(engine.module, "the module of the engine", has_split_backward=False, unsupported=_UNSUPPORTED_WRAPPERS)
        made = ProgramSchedule(program, engine, full_backward=full_backward)
    engine._train_schedule = lambda: made


class ProgramSchedule(schedule.PipeSchedule):
    """The actions of a rank as DeepSpeed's instructions; `install` creates it.

    Args:
        program: The program.
        engine: The engine that runs it.
        full_backward: As for `install`.

    Raises:
        UsageError: The engine does not support the program.
    """

    def __init__(self, program: Program, engine: PipelineEngine, *, full_backward: bool = False) -> None:
        super().__init__(micro_batches=engine.micro_batches, stages=engine.num_stages, stage_id=engine.stage_id)
        self._program = program
        self._instructions_of = {**_INSTRUCTIONS, **({"I": schedule.BackwardPass} if full_backward else {})}
        self._two = isinstance(engine, DualPipeVEngine)
        self._check_placement()
        self._actions = [action for action in program.actions[self.stage_id] if not (full_backward and action.op == "W")]
        self._check_actions()
        self._slots = self._slots_of_forwards()

    def num_pipe_buffers(self) -> int:
        """Return the number of buffers: two per microbatch in a V, else as many as microbatches are in flight."""
        return 2 * self.micro_batches if self._two else max(2, *(slot + 1 for slot in self._slots.values()))

    def steps(self) -> Iterator[list[Any]]:
        """Iterate over the instructions of each action, and those of the end of the step."""
        for action in self._actions:
            yield self._instructions(action)
        yield [schedule.ReduceTiedGrads(), schedule.ReduceGrads(), schedule.OptimizerStep()]

    def _instructions(self, action: Action) -> list[Any]:
        phase = int(action.stage >= self.stages)
        where = {"phase": phase} if self._two else {}
        slot = self._slots[action.stage, action.microbatch]
        made = self._instructions_of[action.op](slot, **where)
        if action.kind.is_message and self._two:
            return [made, schedule.CommitP2P()]
        if action.op == "F" and self._loads(action.stage):
            return [schedule.LoadMicroBatch(slot), made]
        return [made]

    def _loads(self, stage: int) -> bool:
        """Whether a stage reads data. In a V the rank of the first stage passes the labels to the last."""
        return stage == 0 or (not self._two and stage == self.stages - 1)

    def _slots_of_forwards(self) -> dict[tuple[int, int], int]:
        """The buffer of each stage and microbatch."""
        if self._two:
            return {(a.stage, a.microbatch): int(a.stage >= self.stages) * self.micro_batches + a.microbatch for a in self._actions}
        slots: dict[tuple[int, int], int] = {}
        free: list[int] = []
        used = 0
        for action in self._actions:
            key = action.stage, action.microbatch
            if key not in slots:  # Its receive, or its forward.
                free = free or [used]
                slots[key] = min(free)
                free.remove(slots[key])
                used = max(used, slots[key] + 1)
            elif action.op == ("B" if action.stage == 0 else "SEND_B"):
                free.append(slots[key])
        return slots

    @property
    def _engine(self) -> str:
        return "DualPipeVEngine" if self._two else "PipelineEngine"

    def _check_placement(self) -> None:
        program, engine = self._program, self._engine
        check_size(program, "the engine", ranks=self.stages)
        if program.num_microbatches != self.micro_batches:
            raise UsageError(
                f"the program is for {program.num_microbatches} microbatches, but gradient_accumulation_steps is {self.micro_batches}"
            )
        ranks = tuple(range(program.num_ranks))
        if [pipe.rank_of_stage for pipe in program.pipes] != [ranks + ranks[::-1] if self._two else ranks]:
            raise UsageError(f"{engine} has {'two stages on each rank, in a V' if self._two else 'one stage on each rank, in their order'}")
        check_chain(program, engine)

    def _check_actions(self) -> None:
        """Checks the actions of this rank, that data is read in order, and that a PipelineEngine keeps one loss and one gradient
        at a time."""
        program, engine = self._program, self._engine
        for action in self._actions:
            if action.op in ("I", "W") and action.op not in self._instructions_of:
                raise UsageError(f"{engine} computes both gradients at once, but the program has `{action}`: say full_backward=True")
            if action.op not in self._instructions_of:
                raise UsageError(f"{engine} has no `{action.op}`")
            if action.kind.is_message and action.group is not None:
                raise UsageError(f"{engine} sends the shapes of a first message ahead, which a batch would wait for: compile without fuse")
        check_messages(program)
        if "rendezvous" not in program.transports:
            raise UsageError(f"{engine} waits for each message: compile with transport='rendezvous', which proves that it does not hang")
        for _, stage in program.local_stages(self.stage_id):
            actions = [action for action in self._actions if action.stage == stage]
            computes = [(action.op == "F", action.microbatch) for action in actions if action.kind.is_compute]
            forwards = [microbatch for is_forward, microbatch in computes if is_forward]
            if self._loads(stage) and forwards != sorted(forwards):
                raise UsageError(f"{engine} reads the data in its order, but the forwards of stage {stage} come in another")
            if not self._two and stage == self.stages - 1 and computes[::2] != [(True, m) for _, m in computes[1::2]]:
                raise UsageError(f"{engine} keeps one loss: at the last stage each backward has to follow its forward")
        if not self._two and self.stage_id < self.stages - 1:
            gradients = [action.microbatch for action in self._actions if action.op in ("RECV_B", "B", "I")]
            if gradients[::2] != gradients[1::2]:
                raise UsageError(f"{engine} keeps one gradient: each backward has to come before the next one is received")


_INSTRUCTIONS = {
    "F": schedule.ForwardPass,
    "B": schedule.BackwardPass,
    "SEND_F": schedule.SendActivation,
    "RECV_F": schedule.RecvActivation,
    "SEND_B": schedule.SendGrad,
    "RECV_B": schedule.RecvGrad,
}
