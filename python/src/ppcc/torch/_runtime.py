"""Runs the program of a rank on torch.distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

from .._program import Action, Program
from ._errors import UsageError, StepError
from ._failures import Failures, flight_records
from ._fits import check_size
from ._groups import Groups, check_same_program
from ._inputs import Inputs
from ._linked import Handler, LinkedProgram, LossFunction, RuntimeConfig
from ._measure import NamedRanges, Observer
from ._optimizer import Optimizer, check_step_is_barrier, clip_grad_norm_
from ._reductions import Tie
from ._stash import stage_key_of
from ._step import Step, StepResult
from ._streams import Streams


class Runtime:
    """Runs the actions of this rank, step by step.

    A stage is a module that takes the outputs of the stages that it reads, and returns a tensor, or tensors in tuples, lists and
    dicts: a tuple or list is one argument for each of its parts, anything else one argument. The stages of two pipes with the same number are replicas: they start with the weights of the lowest rank, and
    their gradients are summed.

    Every rank of `group` creates its Runtime and calls its methods together; if the job has several pipelines, all processes
    create theirs together.

    Args:
        program: The program, the same on all ranks.
        stages: The modules of the stages of this rank, by stage number; in a program with several pipes whose stages differ,
            by `(pipe name, stage number)`. Also a list of them in the order of their numbers, or the only one.
        loss_fn: Called as `loss_fn(output, target)` at last stages, once per microbatch; returns a scalar.
        group: The process group of the pipeline, by default the world.
        mesh: Replaces `group`, and adds to `groups`: its dimension `pp` is the pipeline, `dp` is `data_parallel`, and others
            (FSDP, tensor parallelism `tp`) are groups under their names, which take part in VALIDATE.
        device: The device of messages; by default that of the first weight.
        scale_grads: Whether gradients are those of the mean of the losses of all microbatches, instead of those of their sum.
        split_dim: The dimension along which batches are split into microbatches.
        sequence_dim: The dimension along which sequences are split, if microbatches are slices of them.
        handlers: Functions that run declared actions, by mnemonic. Without one, the Runtime runs the actions of std.pp itself
            (docs/training-python.md).
        tied: Weights that several stages share, each by its name in these stages, such as
            `{0: "embed.weight", -1: "head.weight"}`. Negative stages count from the last.
        dw_builder: For stages whose layers hold back the gradients of their weights, such as Transformer Engine's with
            `delay_wgrad_compute`, a function as PyTorch's `PipelineStage` takes it, by the keys of `stages`. It is called after the
            backward of each `I` or `B`, and returns a function that computes these gradients: at the microbatch's `W`, or at once.
        groups: Process groups of collectives that are not part of the program, by name. Gradients are averaged over
            `data_parallel`, at the end of the step unless the program has REDUCE_GRAD; its copies start with the weights and
            buffers of its first rank.
        optimizer: The optimizer of STEP and `step_optimizer`.
        scaler: Scales losses, and makes the optimizer skip steps whose gradients are not finite.
        max_norm: Clip gradients to this norm before the optimizer steps.
        validate: Called on each rank at VALIDATE; returns whether the step is valid. By default it is if all gradients are
            finite.
        shapes: The outputs of each stage for one microbatch, as tensors, for example on the device `meta`. By default the
            first step infers them.
        variable_shapes: Whether microbatches may differ in shape; each message is then preceded by its shape.
        profile: Whether to name actions (`record_function`, docs/profiles.md) in all steps, and not only while PyTorch's profiler
            records.
        timeout: A step fails on all ranks with StepError when one of them stays at one action for longer, in seconds or as a
            timedelta; choose more than the longest action takes. By default the timeouts of the process groups apply.

    Raises:
        UsageError: Program, stages and group do not fit, or the gradients of a stage would be wrong.

    Examples:
        One rank; with several, each passes the stages of `program.local_stages(rank)`:

        >>> import ppcc, torch
        >>> program = ppcc.compile("one_f_one_b", P=1, M=4)
        >>> module = torch.nn.Linear(8, 2)
        >>> runtime = ppcc.torch.Runtime(program, {0: module}, loss_fn=torch.nn.functional.mse_loss)
        >>> result = runtime.step(torch.ones(16, 8), target=torch.zeros(16, 2))
        >>> len(result.losses), result.peak_activations, module.weight.grad.shape
        (4, 1, torch.Size([2, 8]))
    """

    def __init__(
        self,
        program: Program,
        stages: Mapping[int, nn.Module] | Mapping[tuple[str, int], nn.Module] | Sequence[nn.Module] | nn.Module,
        *,
        loss_fn: LossFunction | None = None,
        group: dist.ProcessGroup | None = None,
        mesh: DeviceMesh | None = None,
        device: torch.device | str | None = None,
        scale_grads: bool = True,
        split_dim: int = 0,
        sequence_dim: int = 1,
        handlers: Mapping[str, Handler] | None = None,
        tied: Sequence[Tie] = (),
        dw_builder: Mapping[Any, Callable[[], Callable[[], None]]] | None = None,
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
        if not isinstance(program, Program):
            raise UsageError(f"the program is a {type(program).__name__}: give `ppcc.compile(...)` or `ppcc.Program.load(...)`")
        check_same_program(program, group)
        rank = _own_rank(program, group)
        modules = _by_number(stages, program, rank)
        self._setup = RuntimeConfig(
            rank=rank,
            stages=modules,
            groups=Groups(group, program.num_ranks),
            device=(found := _find_device(device, modules)),
            streams=Streams.of(found),
            loss_fn=loss_fn,
            scale_grads=scale_grads,
            split_dim=split_dim,
            sequence_dim=sequence_dim,
            handlers=handlers or {},
            tied=tied,
            outside=groups or {},
            mesh=mesh,
            has_optimizer=optimizer is not None,
            shapes=shapes,
            dynamic=variable_shapes,
            dw_builders=dw_builder or {},
        )
        self.optimizer, self.scaler = optimizer, scaler
        self._optimizer = None if optimizer is None else Optimizer(optimizer, self._setup, scaler, max_norm)
        self._validate = validate
        self._named = NamedRanges(self._setup.handlers)
        self._observer = self._named if profile else Observer()
        self._failures = Failures.for_job()
        self._timeout = timedelta(seconds=timeout) if isinstance(timeout, (int, float)) else timeout
        if self._timeout is not None and self._timeout <= timedelta(0):
            raise UsageError(f"timeout is {timeout}, but must be more than 0 s")
        self._links: dict[object, LinkedProgram] = {}
        self._step: Step | None = None
        self._has_trained = False
        self.set_program(program)

    @property
    def program(self) -> Program:
        """The program that steps run."""
        return self._linked.program

    @property
    def rank(self) -> int:
        """The rank of this process in the pipeline."""
        return self._setup.rank

    @property
    def stages(self) -> Mapping[Any, nn.Module]:
        """The modules of this rank, by the keys that were passed."""
        return self._setup.stages

    @property
    def grad_norm(self) -> Tensor | None:
        """The norm of all gradients before the last clipping to `max_norm`; None without an optimizer."""
        return None if self._optimizer is None else self._optimizer.norm

    def set_program(self, program: Program) -> None:
        """Set the program of the next steps: with other microbatches, in another order, or forward-only.

        Groups and connections are kept. To return to a program that was set before costs only a comparison of digests.

        Args:
            program: A program for the same ranks and stages, the same on all ranks.

        Raises:
            UsageError: The program does not fit, or ranks have different programs.
        """
        if self._links:
            check_same_program(program, self._setup.groups.pipeline)
        # Not by identity: all ranks must link together, and one may have loaded the program again.
        key = program._stated_digest, program.transports, program.kinds
        if key not in self._links:
            check_size(program, "the Runtime", ranks=self._setup.groups.ranks)
            if self._optimizer is not None and self._optimizer.is_collective and "STEP" not in self._setup.handlers:
                check_step_is_barrier(program)
            self._links[key] = LinkedProgram(program, self._setup, Step.functions.keys(), is_first=not self._links)
        self._linked = self._links[key]

    def _stages_have_changed(self, program: Program) -> None:
        """Links a program again, after the modules of stages got others inside. All ranks call it together."""
        self._links.clear()
        self._has_trained = False
        self.set_program(program)

    def step(
        self,
        *args: Any,
        target: Any = None,
        loss_kwargs: Mapping[str, Any] | None = None,
        reduce_grads: bool = True,
        return_outputs: bool = False,
        share_losses: bool = False,
        **kwargs: Any,
    ) -> StepResult:
        """Run all microbatches of a batch forward and, unless the program is forward-only, backward.

        Gradients are added to `grad` of the weights. A tensor is a whole batch, which is split into microbatches along
        `split_dim`; a list of tensors is a list of microbatches; any other value is passed to each microbatch. The target may also
        be a dict or a tuple of tensors, all of which are split.

        Args:
            *args: The inputs of first stages; required on their ranks, ignored on others.
            target: The second argument of `loss_fn`; required on the ranks of last stages unless the program is forward-only.
            loss_kwargs: Keyword arguments of `loss_fn`, the same for each microbatch.
            reduce_grads: False skips REDUCE_GRAD, REDUCE_EMBEDDING, REDUCE_REPLICAS, STEP and VALIDATE, for all but the last of
                several steps that accumulate gradients.
            return_outputs: Whether to return the outputs of last stages.
            share_losses: Whether all ranks get all losses.
            **kwargs: Arguments of the stages whose `forward` has parameters with these names.

        Returns:
            Losses, outputs and peak of activations on this rank.

        Raises:
            StepError: The step failed on any rank.
            UsageError: An input is missing on this rank or does not fit; the other ranks then raise StepError.
        """
        return self._run(args, kwargs, target, loss_kwargs, self._linked.program.has_backward, reduce_grads, return_outputs, share_losses)

    def eval(
        self, *args: Any, target: Any = None, loss_kwargs: Mapping[str, Any] | None = None, share_losses: bool = False, **kwargs: Any
    ) -> StepResult:
        """Run only the forwards of the program, with modules in evaluation mode and without gradients.

        Args:
            *args: The inputs of first stages, as for `step`.
            target: The second argument of `loss_fn`; None computes no losses.
            loss_kwargs: Keyword arguments of `loss_fn`, as for `step`.
            share_losses: Whether all ranks get all losses.
            **kwargs: Arguments of stages, as for `step`.

        Returns:
            The outputs of last stages and, with a target, the losses.

        Raises:
            StepError: The step failed on any rank.
            UsageError: An input is missing on this rank or does not fit; the other ranks then raise StepError.
        """
        with _evaluating(self._setup.stages.values()):
            return self._run(args, kwargs, target, loss_kwargs, False, False, True, share_losses)

    def step_optimizer(self) -> bool:
        """Clip gradients and run the optimizer, as STEP does, for programs without STEP. All ranks call it together.

        With a scaler, a gradient that is not finite on any rank skips the step on all ranks.

        Returns:
            Whether the optimizer stepped.

        Raises:
            UsageError: The Runtime has no optimizer.
        """
        if self._optimizer is None:
            raise UsageError("give the Runtime an optimizer")
        with self._reported():
            return self._optimizer.step(self._linked)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Clip the gradients of all ranks by their norm. All ranks call it together.

        A weight that exists in several places (replicas, tied weights, FSDP shards) counts once. Gradients that `scaler` has scaled
        are unscaled first, so call it once, right before `step_optimizer`.

        Args:
            max_norm: The maximum norm.
            norm_type: The type of the norm, as for `torch.nn.utils.clip_grad_norm_`.

        Returns:
            The norm before clipping, a scalar.
        """
        with self._reported():
            if self._optimizer is not None:
                self._optimizer.unscale()
            return clip_grad_norm_(self._linked, max_norm, norm_type)

    def reset_shapes(self) -> None:
        """Infer the shapes of messages again in the next step, for batches of another shape. All ranks call it together."""
        self._linked.reset_shapes()

    def module(self, action: Action) -> nn.Module:
        """Return the module of the stage of an action, for handlers.

        Args:
            action: An action of this rank.

        Returns:
            The module.
        """
        return self._linked.modules[stage_key_of(action)]

    def reduce(self, action: Action) -> None:
        """Sum the gradients of the stage of an action over the ranks that run it together, for handlers.

        REDUCE_GRAD, REDUCE_EMBEDDING and REDUCE_REPLICAS do the same.

        Args:
            action: The action that the handler was called with.
        """
        assert self._step is not None
        self._step.reduce(action)

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        target: Any,
        loss_kwargs: Mapping[str, Any] | None,
        trains: bool,
        reduces: bool,
        keeps_outputs: bool,
        share_losses: bool,
    ) -> StepResult:
        with self._reported():
            inputs = self._linked.splitter.inputs(args, kwargs, target, loss_kwargs)
            self._check_inputs(inputs, trains)
            self._linked.check_shapes(inputs)
            if trains and self._optimizer is not None:
                self._optimizer.start(self._linked)
            if trains and not self._has_trained:  # Hooks may have been added since the creation.
                self._linked.check_stages()
                self._has_trained = True
        if self._failures is not None:
            self._failures.check()
        step = Step(
            self._linked,
            inputs,
            trains=trains,
            reduces=reduces,
            keeps_outputs=keeps_outputs,
            optimizer=self._optimizer if trains else None,
            validate=self._validate,
            observer=self._named if type(self._observer) is Observer and _is_profiled() else self._observer,
        )
        with self._watched(step):
            return self._run_step(step, inputs, share_losses)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Reports misuse of this rank to all others, which would wait for it."""
        try:
            yield
        except UsageError as error:
            if self._failures is not None:
                self._failures.report_failure(f"rank {self.rank}: UsageError: {error}")
            raise

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
                step.share_losses(result)
        except Exception as error:
            self._fail(step.at, error)
            raise
        finally:
            self._step = None
        return result

    def _infer_shapes(self, inputs: Inputs) -> None:
        try:
            self._linked.infer_shapes(inputs)
        except UsageError:  # All ranks know of it.
            raise
        except RuntimeError as error:
            self._fail(None, error)

    def _fail(self, at: Action | None, error: Exception) -> None:
        """Reports the failure to all ranks. Raises StepError, unless misuse on this rank is the cause."""
        here = f"rank {self.rank}" + ("" if at is None else f", {at}" + ("" if at.site is None else f" ({at.site})"))
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        text = f"{here}: {type(cause).__name__}: {cause}"
        records = flight_records()
        first = text if self._failures is None else self._failures.report_failure(text)
        if first == text and isinstance(error, UsageError):
            return
        raise StepError(text if first == text else f"{here}: ended because of {first}", records) from error

    def _check_inputs(self, inputs: Inputs, trains: bool) -> None:
        for pipe, stage in self._linked.program.local_stages(self.rank):
            if not pipe.sources(stage) and inputs.args is None:
                raise UsageError(f"rank {self.rank} has a first stage of pipe `{pipe.name}`: give step() the batch")
            if trains and self._linked.is_last(pipe, stage) and inputs.targets is None:
                raise UsageError(f"rank {self.rank} has a last stage of pipe `{pipe.name}`: give step() `target=`")


def _is_profiled() -> bool:
    """Whether PyTorch's profiler records; names cost 50 us an action."""
    return torch.autograd._profiler_enabled()  # type: ignore[attr-defined]


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
    check_size(program, "the process group", ranks=dist.get_world_size(group))
    return dist.get_rank(group)


def _by_number(stages: Any, program: Program, rank: int) -> Mapping[Any, nn.Module]:
    if isinstance(stages, Mapping):
        return stages
    numbers = sorted({stage for _, stage in program.local_stages(rank)})
    modules = [stages] if isinstance(stages, nn.Module) and not isinstance(stages, nn.ModuleList) else stages
    if not isinstance(modules, (Sequence, nn.ModuleList)) or len(modules) != len(numbers):
        given = f"{len(modules)} modules were" if isinstance(modules, (Sequence, nn.ModuleList)) else f"a {type(stages).__name__} was"
        raise UsageError(f"rank {rank} has the stages {', '.join(map(str, numbers))}, but {given} given: give a dict {{number: module}}")
    return dict(zip(numbers, modules, strict=True))


def _find_device(device: torch.device | str | None, stages: Mapping[Any, nn.Module]) -> torch.device:
    if device is not None:
        return torch.device(device)
    modules = (module for module in stages.values() if isinstance(module, nn.Module))
    return next((weight.device for module in modules for weight in module.parameters()), torch.device("cpu"))


@contextmanager
def _evaluating(modules: Any) -> Iterator[None]:
    training = [part for module in modules for part in module.modules() if part.training]
    for module in modules:
        module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
