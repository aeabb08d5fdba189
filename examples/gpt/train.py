"""Trains a small GPT on bytes of text, under any schedule of ppcc by its name, on CPUs or GPUs.

    torchrun --nproc-per-node=4 train.py --schedule=zero_bubble_v --microbatches=8

Each process is a rank of the pipeline. To change: `Block`, `stage_of`, the text and the optimizer; the rest is what any model needs.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import ppcc
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, SliceCache, current_action, tune
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Causal attention and a perceptron, on activations of shape (batch, context, width)."""

    def __init__(self, width: int, heads: int, recompute: bool) -> None:
        super().__init__()
        self.heads, self.recompute = heads, recompute
        self.cache = SliceCache()  # For schedules of slices: keys and values of those before.
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.run, x, use_reentrant=False) if self.recompute else self.run(x)

    def run(self, x: Tensor) -> Tensor:
        batch, context, width = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(batch, context, 3, self.heads, -1).transpose(1, 3).unbind(2)
        k, v = self.cache(k, v)
        mask = torch.ones(context, k.shape[2], dtype=torch.bool, device=x.device).tril(k.shape[2] - context)
        attended = scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, context, width))
        return x + self.mlp(self.before_mlp(x))


class Embedding(nn.Module):
    """From bytes, of shape (batch, context)."""

    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(context, width)

    def forward(self, text: Tensor) -> Tensor:
        action = current_action()
        first = 0 if action is None else action.slice * text.shape[1]
        return self.bytes(text) + self.places.weight[first : first + text.shape[1]]


def stage_of(number: int, stages: int, options: argparse.Namespace) -> nn.Module:
    """A stage of the model: its share of the blocks; the first has the embedding, the last the head."""
    torch.manual_seed(number)  # Copies of a stage, as DualPipe has, begin alike.
    first, end = (options.layers * one // stages for one in (number, number + 1))
    layers: list[nn.Module] = [Block(options.width, options.heads, options.recompute) for _ in range(first, end)]
    if number == 0:
        layers.insert(0, Embedding(options.context, options.width))
    if number == stages - 1:
        layers += [nn.LayerNorm(options.width), nn.Linear(options.width, 256)]
    stage = nn.Sequential(*layers)
    return torch.compile(stage) if options.compile else stage


def loss_of(output: Tensor, target: Tensor) -> Tensor:
    return cross_entropy(output.flatten(0, 1), target.flatten())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", default="one_f_one_b", help="a name of the library (ppcc --list-schedules), or a file")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--microbatch", type=int, default=4, help="sequences in each")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--text", type=Path, default=Path(__file__), help="what to learn; by default this script")
    parser.add_argument("--recompute", action="store_true", help="checkpoint each block")
    parser.add_argument("--compile", action="store_true", help="torch.compile each stage")
    parser.add_argument("--tune", action="store_true", help="measure some steps, and run the order that suits them best (CPUs)")
    options = parser.parse_args()

    on_gpus = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpus else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()

    program = ppcc.compile(options.schedule, P=ranks, M=options.microbatches)
    if rank == 0:
        print(f"{program.name}: bubble {100 * program.simulate().global_bubble_rate:.1f} % if a backward takes twice as long as a forward", flush=True)
    stages = {number: stage_of(number, pipe.num_stages, options).to(device) for pipe, number in program.local_stages(rank)}
    runtime = Runtime(program, stages, loss_fn=loss_of, device=device)

    text = torch.frombuffer(bytearray(options.text.read_bytes()), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(0)  # The same batches on all ranks.

    def batch() -> tuple[Tensor, Tensor]:
        begins = torch.randint(len(text) - options.context, (options.microbatches * options.microbatch, 1), generator=generator)
        places = begins + torch.arange(options.context + 1)
        return text[places[:, :-1]].to(device), text[places[:, 1:]].to(device)

    if options.tune:
        inputs, target = batch()
        result = tune(runtime, inputs, target=target)
        if rank == 0:
            print(result, flush=True)
    optimizer = torch.optim.AdamW([weight for stage in stages.values() for weight in stage.parameters()], lr=1e-3)
    for step in range(1, options.steps + 1):
        inputs, target = batch()
        begin = time.perf_counter()
        optimizer.zero_grad()
        result = runtime.step(inputs, target=target, share_losses=True)  # Else only last stages have them.
        optimizer.step()
        if rank == 0 and (step == 1 or step % 10 == 0):
            print(f"step {step}: loss {result.loss:.3f}, {1000 * (time.perf_counter() - begin):.0f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
