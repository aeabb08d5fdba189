"""What torchtitan needs to run on processes without a GPU, and a run of its Trainer that takes a second. For tests only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

WORDS, LENGTH, STEPS = 64, 16, 10


def prepare(rank: int) -> None:
    """Before anything of torchtitan is imported: its device is the CPU."""
    os.environ["LOCAL_RANK"] = str(rank)
    torch._utils._get_available_device_type = lambda: "cpu"
    answers: dict[str, Any] = {
        "get_device_name": "CPU",
        "get_device_properties": SimpleNamespace(total_memory=1 << 40),
        "memory_stats": {},
        "current_device": 0,
        "reset_peak_memory_stats": None,
        "empty_cache": None,
    }
    for name, answer in answers.items():
        setattr(torch.cpu, name, lambda *given, answer=answer: answer)


def config(folder: str, microbatches: int, name: str = "") -> Any:
    """Of the debug model with plain attention, fewer words and generated data. Without a name, to make the
    checkpoint that others start from."""
    from torchtitan.components.checkpoint import CheckpointManager
    from torchtitan.components.dataloader import BaseDataLoader
    from torchtitan.components.loss import CrossEntropyLoss
    from torchtitan.components.tokenizer import BaseTokenizer
    from torchtitan.distributed.activation_checkpoint import FullAC
    from torchtitan.models.common.attention import ScaledDotProductAttention
    from torchtitan.models.llama3.config_registry import llama3_debugmodel

    class Tokens(BaseTokenizer):
        @dataclass(kw_only=True, slots=True)
        class Config(BaseTokenizer.Config):
            pass

        def __init__(self, config: Any, **given: Any) -> None:
            super().__init__()

        def encode(self, *given: Any, **named: Any) -> list[int]:
            return []

        def decode(self, *given: Any, **named: Any) -> str:
            return ""

        def get_vocab_size(self) -> int:
            return WORDS

    class Data(BaseDataLoader):
        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):
            pass

        def __init__(self, config: Any, *, local_batch_size: int, seq_len: int, **given: Any) -> None:
            self.size = (local_batch_size, seq_len + 1)

        def __iter__(self) -> Iterator[tuple[dict[str, Any], torch.Tensor]]:
            generator = torch.Generator().manual_seed(2)
            while True:
                words = torch.randint(0, WORDS, self.size, generator=generator) % 7
                yield {"input": words[:, :-1]}, words[:, 1:]

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            pass

    made: Any = llama3_debugmodel()
    model = made.model_spec.model
    model.vocab_size = model.tok_embeddings.num_embeddings = model.lm_head.out_features = WORDS
    for layer in model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    made.dump_folder = folder
    made.loss = CrossEntropyLoss.Config()
    made.tokenizer, made.dataloader = Tokens.Config(), Data.Config()
    made.activation_checkpoint = FullAC.Config()
    made.validator.enable = False
    made.comm.trace_buf_size = 0
    made.training.local_batch_size, made.training.seq_len, made.training.steps = microbatches, LENGTH, STEPS
    made.training.disable_cuda_graphs = True
    made.training.mixed_precision_param = "float32"
    made.parallelism.pipeline_parallel_microbatch_size = 1
    made.checkpoint = CheckpointManager.Config(enable=True, interval=STEPS + 2, create_seed_checkpoint=not name)
    if name:
        made.checkpoint.folder, made.checkpoint.initial_load_path = name, f"{folder}/checkpoint/step-0"
    return made


def losses(config: Any) -> list[float]:
    """Those of each step, on all ranks, of a whole run of the Trainer."""
    import torch.distributed as dist

    found: list[float] = []
    trainer = config.build()
    log = trainer.metrics_processor.log
    trainer.metrics_processor.log = lambda step, loss, *given, **named: (found.append(loss), log(step, loss, *given, **named))
    with mock.patch("time.sleep"):
        trainer.train()
    trainer.close()
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, found)
    return [max(step) for step in zip(*every, strict=True)]  # -1 where the last stage is not.
