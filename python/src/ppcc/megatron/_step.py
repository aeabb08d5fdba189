"""A step of Megatron's chunks: the adapter through which the executor (torch/_executor.py) runs them."""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from megatron.core.pipeline_parallel import schedules
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from .._program import Action
from ..torch import _split
from ..torch._channels import Channels
from ..torch._errors import UsageError
from ..torch._executor import Executor
from ..torch._measure import Observer
from ..torch._messages import Edge, Messages
from ..torch._shapes import TensorInfo
from ..torch._stash import Stash
from ._data import Microbatches
from ._grad_sync import GradSync
from ._placement import unwrapped
from ._plan import AT_END, Plan


@dataclass(frozen=True)
class Call:
    """What a step was called with."""

    config: Any
    chunks: list[nn.Module]
    data: list[Any]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    """The shapes of received and of sent outputs."""
    headers: dist.ProcessGroup | None
    """The group of the headers of messages, if their shapes differ."""
    groups: Any
    forward_step_func: Callable[..., Any]
    collect_non_loss_data: bool
    first_val_step: bool | None
    forward_only: bool


class Step(Executor):
    """One call."""

    def __init__(self, plan: Plan, call: Call, channels: Channels, observer: Observer) -> None:
        device = device_of(call.chunks)
        messages = Messages(channels, device, partial(_receive_specs, call), call.headers, answered=False, acknowledges={}, observer=observer)
        delays = call.config.delay_wgrad_compute
        super().__init__(messages, observer, set() if delays else plan.unchecked, trains=not call.forward_only)
        self.plan, self.call, self.config = plan, call, call.config
        self.tokens = torch.zeros([], dtype=torch.int, device=device)
        self.embeddings: dict[int, Any] = {}
        """The modules of last stages that compute the gradients of their embeddings at the end."""
        self._splits = plan.has_split_backward and not delays and self._trains
        self._stores: dict[int, list[Any]] = {}
        self._started: Counter[int] = Counter()
        self._sync = GradSync(self.config, call.chunks, plan.reduces)

    def run(self) -> None:
        """Runs all items of the rank, or only those of the forward."""
        if self._trains:
            for chunk, (pipe, stage) in enumerate(self.plan.places):
                if stage == pipe.num_stages - 1 and self.config.finalize_model_grads_func is not None:
                    module = schedules.clear_embedding_activation_buffer(self.config, self.call.chunks[chunk], True)
                    if module is not None:
                        self.embeddings[chunk] = module
            self._sync.disable_grad_sync()
        wanted = self.plan.action_groups if self._trains else (tuple(filter(_is_forward, group)) for group in self.plan.action_groups)
        try:
            with torch.set_grad_enabled(self._trains):
                self.run_groups(filter(None, wanted))
        finally:  # Else the garbage collector would end them in a later step.
            self._sync.finish()
        for data in self.call.data:
            if isinstance(data, Microbatches):
                data.finish()

    def losses(self, *, across_job: bool) -> list[Any]:
        """The results of the loss function by microbatch; on the rank of the last stage, with `across_job` on all ranks."""
        stores = self._stores
        if across_job:
            found: list[Any] = [None] * self.plan.program.num_ranks
            dist.all_gather_object(found, tree_map(_to_host, stores), group=self.call.groups.pp)
            stores = {microbatch: store for there in found for microbatch, store in there.items()}
            stores = tree_map(lambda leaf: leaf.to(self.tokens.device) if isinstance(leaf, Tensor) else leaf, stores)
        return [given for microbatch in sorted(stores) for given in stores[microbatch]]

    # Messages.

    def _post(self, group: tuple[Action, ...]) -> None:
        direction = "forward" if _is_forward(group[0]) else "backward"
        with timed(self.config, f"{direction}-{'send' if group[0].kind.is_send else 'recv'}"):
            super()._post(group)

    def _take(self, edge: Edge) -> tuple[Tensor, ...]:
        with timed(self.config, f"{'forward' if edge[1] < edge[2] else 'backward'}-recv"):
            return super()._take(edge)

    # Actions.

    def stays(self, action: Action) -> list[Tensor]:
        chunk = unwrapped(self.call.chunks[self.plan.chunk(action)])
        return [*chunk.parameters(), *chunk.buffers()]

    def _compute(self, action: Action, stash: Stash) -> tuple[Any, ...]:
        chunk, is_last = self.plan.chunk(action), _is_last(action)
        with _split.without_donation() if self._splits else contextlib.nullcontext():
            output, tokens = self._forward_step(action, chunk, next(iter(stash.received()), None))
        self._started[chunk] += 1
        self.tokens += tokens.to(self.tokens.device)
        if isinstance(output, Tensor):
            self._check_graph(action, stash, [output], defers_all=True)
            stash.infos = (TensorInfo(tuple(output.shape), output.dtype, has_gradient=self._trains),)
        where = f"rank {self.plan.rank}, {action}: gave"
        if not is_last and not isinstance(output, Tensor):
            raise UsageError(f"{where} {type(output).__name__}, but stages give a tensor")
        if not is_last and output.dtype != self.config.pipeline_dtype:
            raise UsageError(f"{where} a tensor of {output.dtype}, but pipeline_dtype is {self.config.pipeline_dtype}")
        if self._trains:
            scales = is_last and self.config.grad_scale_func is not None
            stash.outputs = (self.config.grad_scale_func(output) if scales else output,)
            if not is_last and self.config.deallocate_pipeline_outputs:
                stash.release_outputs()  # The message has the memory.
        return (output,)

    def _forward_step(self, action: Action, chunk: int, input_tensor: Tensor | None) -> Any:
        """Runs Megatron's forward step; returns the output and the number of tokens."""
        call, kept = self.call, self.config.num_microbatches_with_partial_activation_checkpoints
        data = call.data[chunk] if chunk < len(call.data) else None
        if isinstance(data, Microbatches):
            data.seek(action.microbatch)
        is_first = self._started[chunk] == 0 and (self._trains or call.first_val_step is not False)
        return call_with_known(
            schedules.forward_step,
            call.forward_step_func,
            data,
            call.chunks[chunk],
            self.plan.program.num_microbatches,
            input_tensor,
            self._stores.setdefault(action.microbatch, []) if _is_last(action) else [],
            self.config,
            cp_group_size=call.groups.cp.size(),
            collect_non_loss_data=call.collect_non_loss_data,
            # Whether it checkpoints activations, if Megatron does so for some microbatches only.
            checkpoint_activations_microbatch=None if kept is None else self._started[chunk] % self.plan.in_flight[chunk] >= kept,
            is_first_microbatch=is_first,
            current_microbatch=action.microbatch,
            vp_stage=chunk if len(call.chunks) > 1 else None,
            is_last_stage=_is_last(action),
        )

    @contextlib.contextmanager
    def _runs_backward(self, action: Action) -> Iterator[None]:
        # After the last action that adds gradients of weights of a chunk its reduction may start.
        adds_last = action.op != "I" and self._defers_all(action)
        with self._sync.last(self.plan.chunk(action)) if adds_last else contextlib.nullcontext(), timed(self.config, "backward-compute"):
            yield

    def _held_back(self, action: Action) -> Callable[[], Callable[[], None]] | None:
        """The weight gradients that TransformerEngine's layers have deferred."""
        return (lambda: partial(self._delayed_weights, action)) if self.config.delay_wgrad_compute else None

    def _delayed_weights(self, action: Action) -> None:
        module: Any
        for module in self.call.chunks[self.plan.chunk(action)].modules():
            if hasattr(module, "wgrad_store") and hasattr(module, "backward_dw"):
                module.backward_dw()

    def _defers_all(self, action: Action) -> bool:
        """The hooks of Megatron's DistributedDataParallel are to see each weight of the last gradient once, in W."""
        return self.plan.last_gradient[self.plan.chunk(action)] == (action.stage, action.microbatch)


Step.functions = {
    "F": Step._forward,
    "B": Step._backward,
    "I": Step._backward_input,
    "W": Step._backward_weight,
    "REDUCE_GRAD": lambda step, action: step._sync.reduce(step.plan.chunk(action)),
    **dict.fromkeys(AT_END, lambda step, action: None),
}


def device_of(chunks: list[nn.Module]) -> torch.device:
    return next((weight.device for chunk in chunks for weight in chunk.parameters()), torch.device("cpu"))


def _receive_specs(call: Call, action: Action) -> list[TensorInfo]:
    """Type and shape of the tensor of a receive."""
    is_forward = _is_forward(action)
    return [TensorInfo(call.shapes[0 if is_forward else 1], call.config.pipeline_dtype, has_gradient=is_forward and not call.forward_only)]


def _is_last(action: Action) -> bool:
    return action.stage == action.pipe.num_stages - 1


def _is_forward(action: Action) -> bool:
    """Whether a forward-only program has this action."""
    if action.kind.is_message:
        assert action.peer is not None
        return (action.peer > action.stage) == action.kind.is_send
    return action.op == "F"


def call_with_known(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Calls a function with the named arguments that this release of Megatron has."""
    parameters = inspect.signature(function).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return function(*arguments, **{name: value for name, value in named.items() if takes_all or name in parameters})


@contextlib.contextmanager
def timed(config: Any, name: str, level: int = 2, **options: Any) -> Iterator[None]:
    if config.timers is not None:
        config.timers(name, log_level=level).start(**options)
    yield
    if config.timers is not None:
        config.timers(name).stop()


def _to_host(leaf: Any) -> Any:
    return leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf
