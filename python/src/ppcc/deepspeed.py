"""Lets DeepSpeed's pipeline engines run programs.

    engine, *_ = deepspeed.initialize(model=PipelineModule(...), ...)
    ppcc.deepspeed.install(engine, ppcc.compile("one_f_one_b", P=4, M=8, transport="rendezvous"))

A `PipelineEngine` has one stage on each rank, a `DualPipeVEngine` two, in a V. Imported by itself, since it needs DeepSpeed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepspeed.runtime.pipe import schedule
from deepspeed.runtime.pipe.dualpipev import DualPipeVEngine
from deepspeed.runtime.pipe.engine import PipelineEngine

from ._program import Action, Program
from .torch._errors import RuntimeMisuse
from .torch._groups import agree_on, together
from .torch._stage_checks import REMEDIES, check_stage

__all__ = ["ProgramSchedule", "install"]

_REMEDIES = dict.fromkeys(REMEDIES, "leave it out, since the engine averages over data-parallel ranks itself")


def install(engine: PipelineEngine, program: Program, *, whole_backward: bool = False) -> None:
    """Lets train_batch() run a program. Evaluation keeps DeepSpeed's order.

    DeepSpeed computes both gradients at once. With `whole_backward` it does so where the program has I, and nothing where it has
    W; without it such programs are refused. All ranks call it together. Raises RuntimeMisuse for what the engine does not
    have, and where ranks have different programs.
    """
    group = engine.grid.get_pipe_parallel_group()
    agree_on(program, group)
    with together(group):
        check_stage(engine.module, "the module of the engine", splits=False, remedies=_REMEDIES)
    made = ProgramSchedule(program, engine, whole_backward=whole_backward)
    engine._train_schedule = lambda: made


class ProgramSchedule(schedule.PipeSchedule):
    """The list of a rank in DeepSpeed's instructions."""

    def __init__(self, program: Program, engine: PipelineEngine, *, whole_backward: bool = False) -> None:
        super().__init__(micro_batches=engine.micro_batches, stages=engine.num_stages, stage_id=engine.stage_id)
        self._program = program
        self._ranks = [
            [action for action in actions if not (whole_backward and action.kind.letters == "W")]
            for actions in program.actions
        ]
        self._instructions_of = {**_INSTRUCTIONS, **({"I": schedule.BackwardPass} if whole_backward else {})}
        self._two = isinstance(engine, DualPipeVEngine)
        self._check()
        self._actions = self._ranks[self.stage_id]
        self._slots = self._slots_of_forwards()

    def num_pipe_buffers(self) -> int:
        """Two of each microbatch in a V, else as many as are in flight."""
        return 2 * self.micro_batches if self._two else max(2, *(slot + 1 for slot in self._slots.values()))

    def steps(self) -> Iterator[list[Any]]:
        for action in self._actions:
            yield self._instructions(action)
        yield [schedule.ReduceTiedGrads(), schedule.ReduceGrads(), schedule.OptimizerStep()]

    def _instructions(self, action: Action) -> list[Any]:
        phase = int(action.stage >= self.stages)
        where = {"phase": phase} if self._two else {}
        slot = self._slots[action.stage, action.microbatch]
        made = self._instructions_of[action.kind.letters](slot, **where)
        if action.kind.is_message and self._two:
            return [made, schedule.CommitP2P()]
        if action.kind.letters == "F" and self._loads(action.stage):
            return [schedule.LoadMicroBatch(slot), made]
        return [made]

    def _loads(self, stage: int) -> bool:
        """Where there is a V the rank of the first stage gives the labels to the last."""
        return stage == 0 or (not self._two and stage == self.stages - 1)

    def _slots_of_forwards(self) -> dict[tuple[int, int], int]:
        """Where each microbatch of a stage is kept."""
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
            elif action.kind.letters == ("B" if action.stage == 0 else "SEND_B"):
                free.append(slots[key])
        return slots

    def _check(self) -> None:
        program = self._program
        engine = "DualPipeVEngine" if self._two else "PipelineEngine"
        if program.ranks != self.stages:
            raise RuntimeMisuse(f"the program is for {program.ranks} ranks, but the engine has {self.stages}")
        if program.microbatches != self.micro_batches:
            raise RuntimeMisuse(
                f"the program is for {program.microbatches} microbatches, but gradient_accumulation_steps is {self.micro_batches}"
            )
        ranks = tuple(range(program.ranks))
        if [pipe.rank_of_stage for pipe in program.pipes] != [ranks + ranks[::-1] if self._two else ranks]:
            raise RuntimeMisuse(f"{engine} has {'two stages on each rank, in a V' if self._two else 'one stage on each rank, in their order'}")
        (pipe,) = program.pipes
        if pipe.skip_edges or pipe.gaps or pipe.slices > 1:
            raise RuntimeMisuse(f"{engine} hands whole microbatches from each stage to the next")
        for action in (action for actions in self._ranks for action in actions):  # All ranks refuse together.
            if action.kind.letters in ("I", "W") and action.kind.letters not in self._instructions_of:
                raise RuntimeMisuse(f"{engine} computes both gradients at once, but the program has `{action}`: say whole_backward=True")
            if action.kind.letters not in self._instructions_of:
                raise RuntimeMisuse(f"{engine} has no `{action.kind.letters}`")
            if action.kind.is_message and action.group is not None:
                raise RuntimeMisuse(f"{engine} sends the shapes of a first message ahead, which a batch would wait for: compile without fuse")
        if not program.has_messages() and program.ranks > 1:
            raise RuntimeMisuse("the program has no messages: compile it with a comm_order other than `none`")
        if "rendezvous" not in program.transports:
            raise RuntimeMisuse(f"{engine} waits for each message: compile with transport='rendezvous', which proves that it does not hang")
        self._check_order(engine)

    def _check_order(self, engine: str) -> None:
        """Data is read one microbatch after the other, and a PipelineEngine has room for one loss and one gradient."""
        (pipe,) = self._program.pipes
        for stage, rank in enumerate(pipe.rank_of_stage):
            actions = [action for action in self._ranks[rank] if action.stage == stage]
            computes = [(action.kind.letters == "F", action.microbatch) for action in actions if action.kind.is_compute]
            forwards = [microbatch for is_forward, microbatch in computes if is_forward]
            if self._loads(stage) and forwards != sorted(forwards):
                raise RuntimeMisuse(f"{engine} reads the data in its order, but the forwards of stage {stage} come in another")
            if not self._two and stage == self.stages - 1 and computes[::2] != [(True, m) for _, m in computes[1::2]]:
                raise RuntimeMisuse(f"{engine} keeps one loss: at the last stage each backward has to follow its forward")
        for actions in self._ranks if not self._two else []:
            gradients = [action.microbatch for action in actions if action.kind.letters in ("RECV_B", "B", "I")]
            if actions[0].stage < self.stages - 1 and gradients[::2] != gradients[1::2]:
                raise RuntimeMisuse(f"{engine} keeps one gradient: each backward has to come before the next one is received")


_INSTRUCTIONS = {
    "F": schedule.ForwardPass,
    "B": schedule.BackwardPass,
    "SEND_F": schedule.SendActivation,
    "RECV_F": schedule.RecvActivation,
    "SEND_B": schedule.SendGrad,
    "RECV_B": schedule.RecvGrad,
}
