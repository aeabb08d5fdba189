"""The ranks of the comparison `training`: training_worker.py STORE SOCKET... has one for each, forked once PyTorch is imported. They read a task a
line there, and say of each whether gradients, losses and activations are those of autograd without a pipeline."""

import datetime
import json
import os
import socket
import sys
import traceback

import torch
import torch.distributed as dist
from torch import nn

import ppcc
from ppcc.torch import Runtime

WIDTH, ROWS, TOLERANCE = 4, 2, 1e-9


class Stage(nn.Module):
    """Takes what several stages give. `shape` says what is inside."""

    def __init__(self, inputs, shape):
        super().__init__()
        self.weights = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(inputs)])
        self.norm = nn.LayerNorm(WIDTH) if shape in ("norm", "residual") else nn.Identity()
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.shape = shape

    def forward(self, *inputs):
        x = sum(weight(x) for weight, x in zip(self.weights, inputs, strict=True))
        y = torch.tanh(self.norm(x) * self.scale)
        return y + inputs[0] if self.shape == "residual" else y


def sources(pipe, stage):
    low = [(s, s + 1) for s in range(len(pipe["ranks"]) - 1) if s not in pipe["gaps"]] + [tuple(edge) for edge in pipe["skips"]]
    return sorted(a for a, b in low if b == stage)


def models(task):
    """The stages by pipe and number; pipes of equal stages share them."""
    torch.manual_seed(task["seed"])
    shared, result = {}, {}
    for pipe in task["pipes"]:
        for s in range(len(pipe["ranks"])):
            key = s if task["same"] else (pipe["name"], s)
            if key not in shared:
                shared[key] = Stage(max(1, len(sources(pipe, s))), task["shapes"][s % len(task["shapes"])]).double()
            result[pipe["name"], s] = shared[key]
    return shared, result


def unpipelined(task, modules, batch, target, count):
    """The loss of each microbatch; leaves the gradients of their mean in the modules."""
    losses = []
    for pipe in task["pipes"]:
        for mb in range(*pipe["microbatches"]):
            outputs = []
            for s in range(len(pipe["ranks"])):
                read = [outputs[a] for a in sources(pipe, s)] or [batch.tensor_split(count)[mb]]
                outputs.append(modules[pipe["name"], s](*read))
            loss = nn.functional.mse_loss(outputs[-1], target.tensor_split(count)[mb])
            losses.append(loss.detach())
            if task["backward"]:
                (loss / count).backward()
    return losses


def run(rank, task):
    program = ppcc.Program.from_json(task["program"])
    shared, modules = models(task)
    count = sum(pipe["microbatches"][1] - pipe["microbatches"][0] for pipe in task["pipes"])
    generator = torch.Generator().manual_seed(task["seed"])
    batch, target = (torch.randn((count * ROWS, WIDTH), dtype=torch.float64, generator=generator) for _ in range(2))
    losses = unpipelined(task, modules, batch, target, count)
    wanted = {key: [weight.grad for weight in module.parameters()] for key, module in shared.items()}
    for module in shared.values():
        module.zero_grad()
    mine = {s if task["same"] else (pipe["name"], s): modules[pipe["name"], s] for pipe in task["pipes"]
            for s, home in enumerate(pipe["ranks"]) if home == rank}
    runtime = Runtime(program, mine, loss_fn=nn.functional.mse_loss)
    for turn in range(2):  # The second step reuses what the first has made.
        for module in mine.values():
            module.zero_grad()
        result = runtime.step(batch, target=target, share_losses=True)
        for key, module in mine.items():
            for (name, weight), grad in zip(module.named_parameters(), wanted[key], strict=True):
                if grad is None or weight.grad is None:
                    assert grad is None and weight.grad is None, f"stage {key}, {name}: a gradient of one alone"
                else:
                    off = float((weight.grad - grad).abs().max())
                    assert off <= TOLERANCE, f"step {turn}: stage {key}, {name}: the gradient is off by {off}"
        off = max(abs(float(result.losses[mb] - loss)) for mb, loss in enumerate(losses))
        assert off <= TOLERANCE, f"step {turn}: losses are off by {off}"
        assert result.peak_activations == task["activations"][rank], \
            f"step {turn}: {result.peak_activations} activations, not {task['activations'][rank]}"


def work(rank, ranks, store, tasks, replies):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=60))
    print("ready", file=replies, flush=True)
    for line in tasks:
        try:
            run(rank, json.loads(line))
            print(json.dumps(None), file=replies, flush=True)
        except BaseException:
            print(json.dumps(traceback.format_exc()[-3000:]), file=replies, flush=True)
            raise


def main():
    store, *sockets = sys.argv[1:]
    peers = [socket.socket(fileno=int(number)) for number in sockets]
    for rank, peer in enumerate(peers):
        if not os.fork():
            for other in peers:
                if other is not peer:
                    other.close()
            work(rank, len(peers), store, peer.makefile("r"), peer.makefile("w"))
            os._exit(0)
    for peer in peers:
        peer.close()
    for _ in peers:
        os.wait()


main()
