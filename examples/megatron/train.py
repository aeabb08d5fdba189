"""Trains a small GPT of Megatron-LM on bytes of text, under any schedule of ppcc by its name, on CPUs or GPUs.

    torchrun --nproc-per-node=2 train.py --schedule=zero_bubble_v --chunks=2 --microbatches=8

It needs megatron-core and ppcc. Without a GPU `ppcc.megatron.use_cpu()` answers where megatron-core asks CUDA, in the whole process. Scripts that
call Megatron's `pretrain` need one line before it: `ppcc.megatron.install(program)`, or `ppcc.megatron.tune()` (docs/megatron.md).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ppcc.megatron
import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer import TransformerConfig
from torch import Tensor

CONTEXT, ROWS = 32, 4


def provider(config: TransformerConfig, *, pre_process: bool, post_process: bool, vp_stage: int | None) -> GPTModel:
    layers = get_gpt_layer_local_spec()
    return GPTModel(config, layers, vocab_size=256, max_sequence_length=CONTEXT, pre_process=pre_process, post_process=post_process, vp_stage=vp_stage)


def forward_step(data: Iterator[Tensor], chunk: Any) -> tuple[Tensor, Callable[[Tensor], Any]]:
    text = next(data)
    places = torch.arange(CONTEXT, device=text.device).expand(len(text), -1)
    mask = torch.ones(1, 1, CONTEXT, CONTEXT, dtype=torch.bool, device=text.device).triu(1)  # True: not seen.

    def loss_of(output: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        loss = output.mean()
        return loss, {"loss": loss.detach().clone()}  # Megatron divides the other in place.

    return chunk(text[:, :-1], places, mask, labels=text[:, 1:]), loss_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", default="one_f_one_b", help="a name of the library (ppcc --list-schedules), or a file")
    parser.add_argument("--chunks", type=int, default=1, help="stages of each rank, as the schedule has: 2 for a V")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--text", type=Path, default=Path(__file__), help="what to learn; by default this script")
    options = parser.parse_args()

    on_gpus = torch.cuda.is_available()
    if on_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if on_gpus else "gloo")
    ranks, virtual = dist.get_world_size(), options.chunks if options.chunks > 1 else None
    parallel_state.initialize_model_parallel(pipeline_model_parallel_size=ranks, virtual_pipeline_model_parallel_size=virtual)
    if on_gpus:
        tensor_parallel.model_parallel_cuda_manual_seed(1)
    else:
        ppcc.megatron.use_cpu()
    torch.manual_seed(dist.get_rank())
    config = TransformerConfig(
        num_layers=options.layers,
        hidden_size=64,
        num_attention_heads=4,
        pipeline_model_parallel_size=ranks,
        virtual_pipeline_model_parallel_size=virtual,
        pipeline_dtype=torch.float32,
        use_cpu_initialization=not on_gpus,
    )

    program = ppcc.compile(options.schedule, P=ranks, M=options.microbatches)
    chunks = ppcc.megatron.build_chunks(program, partial(provider, config))
    model = [DistributedDataParallel(config, DistributedDataParallelConfig(), chunk) for chunk in chunks]
    config.finalize_model_grads_func = finalize_model_grads
    config.no_sync_func = [chunk.no_sync for chunk in model]
    run = ppcc.megatron.ForwardBackward(program)

    weights = [weight for chunk in model for weight in chunk.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-3)
    text = torch.frombuffer(bytearray(options.text.read_bytes()), dtype=torch.uint8).long().to(weights[0].device)
    generator = torch.Generator().manual_seed(0)  # The same batches on all ranks.
    for step in range(1, options.steps + 1):
        begins = torch.randint(len(text) - CONTEXT, (options.microbatches, ROWS, 1), generator=generator)
        batch = text[begins.to(text.device) + torch.arange(CONTEXT + 1, device=text.device)]
        for chunk in model:
            chunk.zero_grad_buffer()
        found = run(
            forward_step_func=forward_step,
            data_iterator=[iter(batch) for _ in model],
            model=model,
            num_microbatches=options.microbatches,
            seq_length=CONTEXT,
            micro_batch_size=ROWS,
        )
        for weight in weights:
            weight.grad = weight.main_grad
        optimizer.step()
        if found and (step == 1 or step % 10 == 0) and dist.get_rank() == program.pipes[0].rank_of_stage[-1]:
            print(f"step {step}: loss {sum(float(one['loss']) for one in found) / len(found):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
