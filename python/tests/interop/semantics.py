"""The semantic suite: cases are in semantics_cases.json, what they come to in semantics_expected.json.
Run as a program it writes the latter: the losses and norms of each case without a pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ppcc
import torch
from ppcc.torch import yield_to_other, interleave
from torch import Tensor, nn
from torch._subclasses import FakeTensor

FOLDER = Path(__file__).parent
SUITE: dict[str, Any] = json.loads((FOLDER / "semantics_cases.json").read_text())
Case = dict[str, Any]
EVALUATED = 1000
"""The number of the batch of evaluations."""


def numbers(first: int, *shape: int) -> Tensor:
    """Those that any language comes to, to the bit, from -0.5 to 0.5."""
    count = int(torch.tensor(shape).prod())
    return ((torch.arange(first, first + count) * 7919 % 1009).double() / 1009 - 0.5).view(shape)


def type_of(case: Case, what: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, case.get(what, "float64"))
    return found


class Exchange(torch.autograd.Function):
    """Where a stage gives way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, number: int, log: list[str]) -> Tensor:
        ctx.number, ctx.log = number, log
        if not isinstance(x, FakeTensor):
            exchange(f"F{number}", log)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        exchange(f"B{ctx.number}", ctx.log)
        return gradient.clone(), None, None


def exchange(name: str, log: list[str]) -> None:
    log.append(f"{name}+")
    yield_to_other()
    log.append(f"{name}-")


class Block(nn.Module):
    """Where it `overflows`, a gradient is no number."""

    def __init__(self, case: Case, number: int, log: list[str]) -> None:
        super().__init__()
        width = SUITE["width"]
        first = number * width * (width + 1) + 5
        kind = type_of(case, "weights")
        self.weight = nn.Parameter((0.75 * numbers(first, width, width)).to(kind))
        self.bias = nn.Parameter((0.2 * numbers(first + width * width, width)).to(kind))
        self.computes = type_of(case, "computes")
        self.number, self.log, self.yields = number, log, bool(case.get("overlaps"))
        self.overflows = False

    def forward(self, x: Tensor) -> Tensor:
        bias = self.bias * 1
        if self.overflows and bias.requires_grad:
            bias.register_hook(lambda gradient: gradient * float("inf"))
        made = nn.functional.linear(self.exchanged(x, 0).to(self.computes), self.weight.to(self.computes), bias.to(self.computes))
        return x + self.exchanged(torch.tanh(made), 1).to(x.dtype)

    def exchanged(self, x: Tensor, which: int) -> Tensor:
        apply: Any = Exchange.apply
        return apply(x, 2 * self.number + which, self.log) if self.yields else x


def blocks(case: Case, log: list[str]) -> list[Block]:
    made = [Block(case, number, log) for number in range(SUITE["blocks"])]
    if case.get("tied"):
        made[-1].weight = nn.Parameter(made[0].weight.detach().clone())
    return made


class Stage(nn.Sequential):
    def overlap_f_b(self, forward: Any, backward: Any) -> None:
        interleave(forward, backward)


def data(case: Case, step: int, part: int, copy: int) -> tuple[Tensor, Tensor]:
    """A batch of a copy of the pipeline."""
    count = case.get("copies", 1)
    return batch(case, (step * case.get("batches", 1) + part) * count + copy)


def batch(case: Case, number: int) -> tuple[Tensor, Tensor]:
    rows, width = SUITE["rows"], SUITE["width"]
    x = 2 * numbers(number * rows * width, rows, width)
    target = x.roll(1, 1).tanh()
    kind = type_of(case, "weights")
    return x.to(kind), target.to(kind)


def scaler() -> torch.amp.GradScaler:
    given = SUITE["scale"]
    return torch.amp.GradScaler(torch.get_default_device().type, init_scale=given["value"], growth_interval=given["interval"])


def has_overflow(case: Case, step: int) -> bool:
    return bool(case.get("scales") or case.get("validates")) and step in SUITE["overflows"]


def reference(case: Case) -> dict[str, Any]:
    """Without a pipeline."""
    modules = blocks(case, [])
    if case.get("tied"):
        modules[-1].weight = modules[0].weight
    weights = list(dict.fromkeys(weight for module in modules for weight in module.parameters()))
    optimizer, scale = torch.optim.Adam(weights, lr=SUITE["rate"]), scaler() if case.get("scales") else None
    count, copies = case["M"], case.get("copies", 1)

    def losses_of(x: Tensor, target: Tensor) -> list[Tensor]:
        found = []
        for part, wanted in zip(x.chunk(count), target.chunk(count), strict=True):
            for module in modules:
                part = module(part)
            found.append(nn.functional.mse_loss(part, wanted) / (count * copies))
        return found

    result: dict[str, Any] = {"losses": [], "norms": []}
    for step in range(SUITE["steps"]):
        optimizer.zero_grad()
        modules[0].overflows = has_overflow(case, step)
        total = 0.0
        for part in range(case.get("batches", 1)):
            for copy in range(copies):
                for loss in losses_of(*data(case, step, part, copy)):
                    (loss if scale is None else scale.scale(loss)).backward()
                    total += float(loss.detach())
        if scale is not None:
            scale.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(weights, SUITE["max_norm"] if case.get("clips") else float("inf"))
        result["losses"].append(total)
        result["norms"].append(float(norm) if norm.isfinite() else None)
        if scale is not None:
            scale.step(optimizer)
            scale.update()
        elif norm.isfinite():
            optimizer.step()
    with torch.no_grad():
        result["evaluated"] = sum(map(float, losses_of(*batch(case, EVALUATED)))) * copies
    return result


def exchanges(program: ppcc.Program, rank: int) -> list[str]:
    """The order of what gives way in a step: in a group of a forward and a backward these take turns."""
    found: list[str] = []
    for group in program.groups(rank):
        lists = [(action.op == "F", _of_action(program, action)) for action in group.actions if not action.kind.is_message]
        halves = [[name for is_forward, names in lists if is_forward == half for name in names] for half in (True, False)]
        if {is_forward for is_forward, _ in lists} != {True, False}:
            found += [f"{name}{end}" for _, names in lists for name in names for end in "+-"]
            continue
        turn, begun = 0, ["", ""]
        while any(halves) or any(begun):
            found += [f"{begun[turn]}-"] if begun[turn] else []
            begun[turn] = halves[turn].pop(0) if halves[turn] else ""
            found += [f"{begun[turn]}+"] if begun[turn] else []
            turn = 1 - turn
    return found


def _of_action(program: ppcc.Program, action: ppcc.Action) -> list[str]:
    """The input of the first stage needs no gradient: there W does what B does elsewhere, but for the first exchange."""
    op, per_stage = action.op, SUITE["blocks"] // program.pipes[0].num_stages
    numbers = range(2 * per_stage * action.stage, 2 * per_stage * (action.stage + 1))
    if op == "F":
        return [f"F{number}" for number in numbers]
    does = ("B", "W") if action.stage == 0 else ("B", "I")
    return [f"B{number}" for number in reversed(numbers) if number > 0] if op in does else []


def compiled(case: Case, number: int) -> ppcc.Program:
    run = case["runs"][number]
    return ppcc.compile(run["schedule"], P=run["P"], M=case["M"], rules=run.get("rules", ()))


def expected(case: Case) -> dict[str, Any]:
    found = reference(case)
    if case.get("overlaps"):
        programs = [compiled(case, number) for number in range(len(case["runs"]))]
        found["exchanges"] = [[exchanges(program, rank) for rank in range(program.num_ranks)] for program in programs]
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = {case["name"]: expected(case) for case in SUITE["cases"]}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    (FOLDER / "semantics_expected.json").write_text(f"{{\n{lines}\n}}\n")
