"""Traces Megatron's own schedules: runs them rank by rank, without a model and without communication."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel import schedules
from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator
from torch import Tensor, nn

from ..torch._check import replaced


def trace(function: Callable[..., Any], config: Any, microbatches: int) -> list[str]:
    """Returns the actions of each rank of a forward_backward_pipelining function, with batches of messages as `batch[...]`."""
    ranks, chunks = config.pipeline_model_parallel_size, config.virtual_pipeline_model_parallel_size or 1
    return [_Rank(rank, ranks, chunks, config).trace(function, microbatches) for rank in range(ranks)]


class _Group:
    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size


class _Chunk(nn.Module):
    def __init__(self, stage: int, config: Any) -> None:
        super().__init__()
        self.stage, self.config, self.model_type, self.pre_process, self.post_process = (
            stage, config, ModelType.encoder_or_decoder, True, True
        )


class _Handle:
    def wait(self) -> None:
        pass


class _Rank(P2PCommunicator):  # type: ignore[misc]
    """Replaces the communication of a rank, and records what each tensor is."""

    def __init__(self, rank: int, ranks: int, chunks: int, config: Any) -> None:
        self.config = copy.copy(config)
        for name in ("finalize_model_grads_func", "timers", "no_sync_func", "grad_sync_func", "param_sync_func"):
            setattr(self.config, name, None)
        self.config.deallocate_pipeline_outputs = self.config.variable_seq_lengths = False
        self.pp_group = _Group(rank, ranks)
        self.next_rank, self.prev_rank = (rank + 1) % ranks, (rank - 1) % ranks
        self.virtual_pipeline_model_parallel_size = chunks if chunks > 1 else None
        self.chunks = [_Chunk(rank + ranks * chunk, self.config) for chunk in range(chunks)]
        self.last = ranks * chunks - 1
        self.cells: list[list[str | Tensor]] = []
        """A message is a tensor until its cell is known."""
        self.made: dict[int, tuple[Tensor, str]] = {}

    def trace(self, function: Callable[..., Any], microbatches: int) -> str:
        own = {
            "forward_step": self._forward,
            "backward_step": self._backward,
            "is_pp_first_stage": lambda group: group.rank() == 0,
            "is_pp_last_stage": lambda group: group.rank() == group.size() - 1,
            "torch": _Torch(),
        }
        with replaced(schedules, own):
            function(
                forward_step_func=None,
                data_iterator=[iter([])] * len(self.chunks),
                model=self.chunks,
                num_microbatches=microbatches,
                seq_length=1,
                micro_batch_size=1,
                p2p_communicator=self,
                pg_collection=SimpleNamespace(**dict.fromkeys(("tp", "cp"), _Group(0, 1)), pp=self.pp_group, embd=None, pos_embd=None, dp_cp=None),
            )
        return " ".join(self._cell(group) for group in self.cells)

    def _cell(self, group: list[str | Tensor]) -> str:
        names = [one if isinstance(one, str) else self.made[id(one)][1] for one in group]
        return names[0] if len(names) == 1 else f"batch[{';'.join(names)}]"

    def _new(self, name: str) -> Tensor:
        tensor = torch.zeros(1)
        self.made[id(tensor)] = tensor, name
        return tensor

    def _forward(self, *arguments: Any, current_microbatch: int, **rest: Any) -> tuple[Any, Tensor]:
        chunk, received = arguments[2], arguments[4]
        unwrap = not isinstance(received, list)
        (tensor,) = [received] if unwrap else received
        stage = chunk.stage
        if tensor is not None:
            self.made[id(tensor)] = tensor, f"{stage}RECV_F{current_microbatch}"
        self.cells.append([f"{stage}F{current_microbatch}"])
        output = self._new(f"{stage}SEND_F{current_microbatch}")
        return (output if unwrap else [output]), torch.tensor(0)

    def _backward(self, given: Any, output: Any, gradient: Any, *rest: Any, **options: Any) -> Any:
        unwrap = not isinstance(given, list)
        (made,) = output if isinstance(output, list) else [output]
        (received,) = gradient if isinstance(gradient, list) else [gradient]
        stage, microbatch = self.made[id(made)][1].split("SEND_F")
        if received is not None:
            self.made[id(received)] = received, f"{stage}RECV_B{microbatch}"
        self.cells.append([f"{stage}B{microbatch}"])
        back = self._new(f"{stage}SEND_B{microbatch}") if int(stage) > 0 else None
        return back if unwrap else [back]

    def _communicate(
        self, *, tensor_send_next: Any, tensor_send_prev: Any, recv_prev: bool, recv_next: bool, tensor_shape: Any, wait_on_reqs: bool = True
    ) -> tuple[Tensor | None, Tensor | None, Any]:
        posted = {
            "send_prev": tensor_send_prev,
            "recv_prev": self._new("?") if recv_prev else None,
            "send_next": tensor_send_next,
            "recv_next": self._new("?") if recv_next else None,
        }
        if self.config.batch_p2p_comm:
            order = ["send_prev", "recv_prev", "send_next", "recv_next"]
        elif self.pp_group.rank() % 2 == 0:
            order = ["send_next", "recv_prev", "send_prev", "recv_next"]
        else:
            order = ["recv_prev", "send_next", "recv_next", "send_prev"]
        messages = [posted[name] for name in order if posted[name] is not None]
        self.cells += [messages] if self.config.batch_p2p_comm and messages else [[message] for message in messages]
        handles = {name: _Handle() for name in order if posted[name] is not None}
        return posted["recv_prev"], posted["recv_next"], None if wait_on_reqs else handles


class _Torch:
    """The module torch, with tensors on the CPU where Megatron requests CUDA."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def zeros(*sizes: Any, device: Any = None, **options: Any) -> Tensor:
        return torch.zeros(*sizes, **options)
