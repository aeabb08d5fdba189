"""Executes the list of a rank on torch.distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

from .._deprecated import Renamed, renamed_arguments
from .._program import Action, Program
from ._errors import UsageError, StepError
from ._failures import Failures
from ._groups import Groups, check_same_program
from ._inputs import Inputs
from ._linked import Handler, LinkedProgram, LossFunction, RuntimeConfig
from ._optimizer import Optimizer, check_step_is_barrier, clip_grad_norm_
from ._reductions import Tie
from ._step import ACTION_FUNCTIONS, Step, StepResult
from ._streams import Streams


class Runtime:
    """Runs a program's list of this rank, step by step.

    `stages` are the modules of the stages that live on this rank, by stage number; in a program with several pipes
    whose stages differ, by `(pipe name, stage number)`. A stage takes the outputs of the stages that it reads, one
    argument a tensor, and gives a tensor or several. The stages of two pipes with one number are replicas: their
    weights begin equal (those of the lowest rank) and their gradients are summed over their ranks.

    `loss_fn(output, target)` is called at the last stages. With `scale_grads` the gradients are those of the mean of
    all microbatches' losses, without it those of their sum. `split_dim` is the dimension along which batches are cut
    into microbatches.

    What a schedule declares is performed by the function of its name in `handlers`, else by what this class has for the
    names of the library's std.pp: `tied` are weights that several stages have (each by its name in these stages, such as
    `{0: "embed.weight", -1: "head.weight"}`), `groups` the process groups of collectives outside of the program, such
    as `data_parallel`, `optimizer` what STEP and step_optimizer() call, and `validate` says on each rank at VALIDATE
    whether that step was right; without it, whether all gradients are finite. Gradients are averaged over the group
    `data_parallel` at the end of a step where the program does not say when. With `scaler` losses are scaled, with
    `max_norm` gradients are clipped. `mesh` names the groups in the place of `group` and `groups`: its dimension `pp` is the
    pipeline, `dp` is `data_parallel`, and those of others (FSDP, tensor parallelism) are asked, too, whether a step is right.

    `shapes` are the outputs of each stage for a microbatch, as tensors (on the device `meta`, for instance); without them
    each stage is asked in the first step. With `variable_shapes` the shape of each message goes ahead of it, so that
    microbatches may differ.

    With `timeout`, a timedelta or seconds, a step ends on all ranks with StepError when one of them stays at an action for
    longer, as when another has stopped: let it be more than the longest action takes. Without it process groups wait as long as
    they were made to.

    Every rank of `group` makes its Runtime and calls its methods together; where the job has several pipelines, all
    processes make theirs together. Raises UsageError when program, stages and group do not fit.
    """

    @renamed_arguments(dynamic_shapes="variable_shapes")
    def __init__(
        self,
        program: Program,
        stages: Mapping[int, nn.Module] | Mapping[tuple[str, int], nn.Module],
        *,
        loss_fn: LossFunction | None = None,
        group: dist.ProcessGroup | None = None,
        mesh: DeviceMesh | None = None,
        device: torch.device | str | None = None,
        scale_grads: bool = True,
        split_dim: int = 0,
        handlers: Mapping[str, Handler] | None = None,
        tied: Sequence[Tie] = (),
        groups: Mapping[str, dist.ProcessGroup] | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        scaler: torch.amp.GradScaler | None = None,
        max_norm: float | None = None,
        validate: Callable[[], bool] | None = None,
        shapes: Mapping[Any, Sequence[Tensor]] | None = None,
        variable_shapes: bool = False,
        profile: bool = False,
        timeout: timedelta | float | None = None,
    ) -> None:
        if mesh is not None:
            group, groups = _groups_of(mesh, group, groups)
        if optimizer is None and (scaler is not None or max_norm is not None):
            raise UsageError("`scaler` and `max_norm` are for an optimizer, which was not given")
        check_same_program(program, group)
        self._setup = RuntimeConfig(
            rank=_own_rank(program, group),
            stages=stages,
            groups=Groups(group, program.num_ranks),
            device=(found := _find_device(device, stages)),
            streams=Streams.of(found),
            loss_fn=loss_fn,
            scale_grads=scale_grads,
            split_dim=split_dim,
            handlers=handlers or {},
            tied=tied,
            outside=groups or {},
            has_optimizer=optimizer is not None,
            shapes=shapes,
            dynamic=variable_shapes,
        )
        self.optimizer, self.scaler = optimizer, scaler
        self._optimizer = None if optimizer is None else Optimizer(optimizer, self._setup, scaler, max_norm)
        self._validate = validate
        self._profile = profile
        self._failures = Failures.for_job()
        self._timeout = timedelta(seconds=timeout) if isinstance(timeout, (int, float)) else timeout
        if self._timeout is not None and self._timeout <= timedelta(0):
            raise UsageError(f"timeout is {timeout}, but must be more than 0 s")
        self._links: dict[int, LinkedProgram] = {}
        self._step: Step | None = None
        self.set_program(program)

    @property
    def program(self) -> Program:
        """The one that steps run."""
        return self._linked.program

    @property
    def rank(self) -> int:
        return self._setup.rank

    @property
    def stages(self) -> Mapping[Any, nn.Module]:
        """The modules of this rank, as they were given."""
        return self._setup.stages

    @property
    def grad_norm(self) -> Tensor | None:
        """The norm of all gradients ahead of the last clipping by `max_norm`."""
        return None if self._optimizer is None else self._optimizer.norm

    def set_program(self, program: Program) -> None:
        """Lets the next steps run another program, on the same ranks and stages: with more microbatches, in another order,
        forward-only. Groups and connections are those that there are; of a program that was linked before only the digests are
        compared."""
        if self._links:
            check_same_program(program, self._setup.groups.pipeline)
        if id(program) not in self._links:
            if program.num_ranks != self._setup.groups.ranks:
                raise UsageError(f"the program is for {program.num_ranks} ranks, but the Runtime has {self._setup.groups.ranks}")
            if self._optimizer is not None and self._optimizer.is_collective and "STEP" not in self._setup.handlers:
                check_step_is_barrier(program)
            self._links[id(program)] = LinkedProgram(program, self._setup, ACTION_FUNCTIONS.keys(), is_first=not self._links)
        self._linked = self._links[id(program)]

    def step(
        self,
        *args: Any,
        target: Any = None,
        reduce_grads: bool = True,
        return_outputs: bool = False,
        share_losses: bool = False,
        **kwargs: Any,
    ) -> StepResult:
        """Runs all microbatches of a batch forward and, unless the program is forward-only, backward.

        `args` are needed on the ranks of first stages, `target` on those of last stages, and `kwargs` where the forward
        of a stage has arguments of these names. Tensors are whole batches, of which each pipe takes its microbatches;
        lists of tensors are microbatches, which may differ with `variable_shapes`; anything else goes to each microbatch
        as it is. With `share_losses` all ranks get all losses. Gradients are added to `grad`; to add up those of several
        steps, reduce them in the last one only (`reduce_grads=False` before, which leaves out REDUCE_GRAD and its kin,
        STEP and VALIDATE).

        Raises StepError on all ranks when it fails on one.
        """
        inputs = self._linked.splitter.inputs(args, kwargs, target)
        return self._run(inputs, self._linked.program.has_backward, reduce_grads, return_outputs, share_losses)

    def eval(self, *args: Any, target: Any = None, share_losses: bool = False, **kwargs: Any) -> StepResult:
        """Runs the forwards of the program alone, with modules in evaluation mode and without gradients; the result has the
        outputs of last stages, and losses where there is a target."""
        inputs = self._linked.splitter.inputs(args, kwargs, target)
        with _evaluating(self._setup.stages.values()):
            return self._run(inputs, False, False, True, share_losses)

    def step_optimizer(self) -> bool:
        """What STEP does, for programs that have none: gradients that are no numbers on any rank skip the step (with a
        scaler), then gradients are clipped, and the optimizer steps. Whether it has stepped."""
        if self._optimizer is None:
            raise UsageError("give the Runtime an optimizer")
        return self._optimizer.step(self._linked)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Clips the gradients of all ranks by their norm, in which a weight that lives in several places (replicas, tied
        weights, pieces of FSDP's) counts once. Gives the norm before."""
        return clip_grad_norm_(self._linked, max_norm, norm_type)

    def reset_shapes(self) -> None:
        """Lets the next step find the shapes of messages anew, on all ranks."""
        self._linked.reset_shapes()

    clip_grad_norm = Renamed("clip_grad_norm_")
    forget_shapes = Renamed("reset_shapes")
    link = Renamed("set_program")

    def module(self, action: Action) -> nn.Module:
        """The module of the stage of an action, for handlers."""
        return self._linked.modules[action.pipe.index, action.stage]

    def reduce(self, action: Action) -> None:
        """Sums the gradients of an action's stage over those who do it together: what REDUCE_GRAD, REDUCE_EMBEDDING and
        REDUCE_REPLICAS do, for handlers of other names."""
        assert self._step is not None
        self._step.reduce(action)

    def _run(
        self, inputs: Inputs, trains: bool, reduces: bool, keeps_outputs: bool, share_losses: bool
    ) -> StepResult:
        if self._failures is not None:
            self._failures.check()
        self._check_inputs(inputs, trains)
        step = Step(
            self._linked,
            inputs,
            trains=trains,
            reduces=reduces,
            keeps_outputs=keeps_outputs,
            optimizer=self._optimizer if trains else None,
            validate=self._validate,
            profile=self._profile,
        )
        with self._watched(step):
            return self._run_step(step, inputs, share_losses)

    def _watched(self, step: Step) -> AbstractContextManager[None]:
        if self._failures is None:
            return nullcontext()
        return self._failures.watch_step(self._timeout, lambda: step.at)

    def _run_step(self, step: Step, inputs: Inputs, share_losses: bool) -> StepResult:
        if not self._setup.dynamic:
            self._infer_shapes(inputs)
        self._step = step
        try:
            result = step.run()
            if share_losses:
                step.share_losses()
        except Exception as error:
            self._fail(step.at, error)
            raise
        finally:
            self._step = None
        return result

    def _infer_shapes(self, inputs: Inputs) -> None:
        try:
            self._linked.infer_shapes(inputs)
        except RuntimeError as error:  # Another pipeline may have failed already.
            if self._failures is None or self._failures.first_failure is None:
                raise
            raise StepError(f"rank {self.rank}: ended because of {self._failures.first_failure}") from error

    def _fail(self, at: Action | None, error: Exception) -> None:
        """Tells all ranks. Raises StepError, but where misuse on this rank is the cause."""
        here = f"rank {self.rank}" + ("" if at is None else f", {at}" + ("" if at.site is None else f" ({at.site})"))
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        text = f"{here}: {type(cause).__name__}: {cause}"
        first = text if self._failures is None else self._failures.report_failure(text)
        if first != text:
            raise StepError(f"{here}: ended because of {first}") from error
        if not isinstance(error, UsageError):
            raise StepError(text) from error

    def _check_inputs(self, inputs: Inputs, trains: bool) -> None:
        for pipe, stage in self._linked.program.local_stages(self.rank):
            if not pipe.sources(stage) and inputs.args is None:
                raise UsageError(f"rank {self.rank} has a first stage of pipe `{pipe.name}`: give step() the batch")
            if trains and self._linked.is_last(pipe, stage) and inputs.targets is None:
                raise UsageError(f"rank {self.rank} has a last stage of pipe `{pipe.name}`: give step() the target")


def _groups_of(
    mesh: DeviceMesh, group: dist.ProcessGroup | None, groups: Mapping[str, dist.ProcessGroup] | None
) -> tuple[dist.ProcessGroup, dict[str, dist.ProcessGroup]]:
    names = mesh.mesh_dim_names or ()
    if group is not None or "pp" not in names:
        raise UsageError("a mesh has a dimension `pp`, and takes the place of `group`")
    others = {{"dp": "data_parallel"}.get(name, name): mesh.get_group(name) for name in names if name != "pp"}
    return mesh.get_group("pp"), {**others, **(groups or {})}


def _own_rank(program: Program, group: dist.ProcessGroup | None) -> int:
    if not dist.is_initialized():
        if program.num_ranks == 1:
            return 0
        raise UsageError(
            f"the program is for {program.num_ranks} ranks, but there is no process group: "
            "call torch.distributed.init_process_group first"
        )
    size = dist.get_world_size(group)
    if size != program.num_ranks:
        raise UsageError(f"the program is for {program.num_ranks} ranks, but the process group has {size}")
    return dist.get_rank(group)


def _find_device(device: torch.device | str | None, stages: Mapping[Any, nn.Module]) -> torch.device:
    if device is not None:
        return torch.device(device)
    modules = (module for module in stages.values() if isinstance(module, nn.Module))
    return next((weight.device for module in modules for weight in module.parameters()), torch.device("cpu"))


@contextmanager
def _evaluating(modules: Any) -> Iterator[None]:
    training = [module for module in modules if module.training]
    for module in training:
        module.eval()
    try:
        yield
    finally:
        for module in training:
            module.train()
