"""Trains a small network with DeepSpeed's PipelineEngine, in an order of ppcc, on CPUs or GPUs.

    torchrun --nproc-per-node=2 train.py --schedule=one_f_one_b --microbatches=8

It needs DeepSpeed and ppcc. DeepSpeed waits for each message, so the program is compiled, and proven, for `rendezvous` (docs/deepspeed.md). On CPUs
DeepSpeed compiles an operation for shared memory when it starts, which takes minutes and one machine does not need: this script leaves it out.
"""

from __future__ import annotations

import argparse
import os
import sys

import deepspeed
import ppcc.deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule
from torch import Tensor, nn

ROWS, WIDTH = 8, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", default="one_f_one_b", help="a name of the library (ppcc --list-schedules), or a file")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()

    on_gpus = torch.cuda.is_available()
    if not on_gpus:
        os.environ["DS_ACCELERATOR"] = "cpu"
        sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # type: ignore[attr-defined]
    deepspeed.init_distributed("nccl" if on_gpus else "gloo")
    ranks = dist.get_world_size()

    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(options.layers)]
    model = PipelineModule(layers=layers, num_stages=ranks, loss_fn=nn.functional.mse_loss, partition_method="uniform")
    config = {
        "train_micro_batch_size_per_gpu": ROWS,
        "gradient_accumulation_steps": options.microbatches,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
        "steps_per_print": 1000000,
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config=config)
    program = ppcc.compile(options.schedule, P=ranks, M=options.microbatches, transport="rendezvous")
    ppcc.deepspeed.install(engine, program)

    generator = torch.Generator().manual_seed(0)  # The same batches on all ranks.
    turned = torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5

    def microbatch() -> tuple[Tensor, Tensor]:
        given = torch.randn(ROWS, WIDTH, generator=generator)
        return given, (given @ turned).tanh()

    for step in range(1, options.steps + 1):
        loss = engine.train_batch(iter([microbatch() for _ in range(options.microbatches)]))
        if dist.get_rank() == 0 and (step == 1 or step % 10 == 0):
            print(f"step {step}: loss {float(loss):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
