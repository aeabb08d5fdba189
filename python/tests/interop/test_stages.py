"""Stages that keep tensors, change them, or have more weights than they tell: gradients equal those without a pipeline, or the stage
is refused."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import ppcc
import pytest
import torch
import torch.distributed as dist
from ppcc.torch import Runtime, StepError, UsageError
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.distributed.fsdp import fully_shard

from . import spawn
from .models import TOLERANCE, WIDTH, Plain, loss_fn, make_batch
from .where import DEVICE

COUNT = 4
"""Of microbatches."""

GPIPE = """
schedule gpipe_of_one(V: int = 2, M: int = 4) {
  ranks 1; microbatches M; placement loop(V);
  on rank r {
    for s in 0 .. V { repeat M { F(s); } }
    for s in 0 .. V { repeat M { B(V - 1 - s); } }
  }
}
"""
SPLIT = GPIPE.replace("B(V", "I(V").replace("  }\n}\n", "    for s in 0 .. V { repeat M { W(s); } }\n  }\n}\n")


def program_of(source: str, count: int, **options: Any) -> ppcc.Program:
    return ppcc.compile_source(source, V=count, M=COUNT, **options)


def stages_of(*blocks: type[nn.Module]) -> list[nn.Module]:
    torch.manual_seed(3)
    return [block().double() for block in blocks]


def gradients(modules: Sequence[nn.Module]) -> list[Tensor | None]:
    return [weight.grad for module in modules for weight in module.parameters()]


def train_alone(modules: Sequence[nn.Module], loss: Callable[..., Tensor] = loss_fn) -> None:
    batch, target = make_batch(COUNT)
    for x, y in zip(batch.chunk(COUNT), target.chunk(COUNT), strict=True):
        values: Any = (x,)
        for module in modules:
            values = module(*values)
            values = values if isinstance(values, tuple) else (values,)
        (loss(values[0], y) / COUNT).backward()


def train(source: str, modules: Sequence[nn.Module], *, loss: Any = loss_fn, batch: Tensor | None = None, rules: str = "", **named: Any) -> Runtime:
    runtime = Runtime(program_of(source, len(modules), **({"rules": rules} if rules else {})), dict(enumerate(modules)), loss_fn=loss)
    given, target = make_batch(COUNT)
    runtime.step(given if batch is None else batch, target=target, **named)
    return runtime


def check(source: str, *blocks: type[nn.Module], **options: Any) -> None:
    modules, wanted = stages_of(*blocks), stages_of(*blocks)
    train_alone(wanted)
    train(source, modules, **options)
    for got, want in zip(gradients(modules), gradients(wanted), strict=True):
        assert type(got) is Tensor and want is not None
        assert float((got - want).abs().max()) <= TOLERANCE


def refused(reason: str, source: str, *blocks: type[nn.Module], **options: Any) -> None:
    with pytest.raises(UsageError, match=reason):
        train(source, stages_of(*blocks), **options)


# Inference of shapes.


class CachesOnce(Plain):
    table: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.table is None:
            self.table = torch.cos(torch.arange(WIDTH, dtype=x.dtype))
        return super().forward(x * self.table)


class CachesInDictionary(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[int, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] not in self.tables:
            self.tables[x.shape[0]] = torch.cos(torch.arange(WIDTH, dtype=x.dtype))
        return super().forward(x * self.tables[x.shape[0]])


class Averages(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean((0, 1))
        return super().forward(x - self.mean)


@lru_cache
def table_of(width: int) -> Tensor:
    return torch.cos(torch.arange(width, dtype=torch.float64))


class CachesOutside(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x * table_of(WIDTH))


@pytest.mark.parametrize("block", [CachesOnce, CachesInDictionary, Averages])
def test_inference_of_shapes_leaves_nothing_in_modules(block: type[nn.Module]) -> None:
    check(GPIPE, block, block)


def test_autocast_around_a_step_casts_weights_again() -> None:
    modules = [module.float() for module in stages_of(Plain, Plain)]
    batch, target = (tensor.float() for tensor in make_batch(COUNT))
    runtime = Runtime(program_of(GPIPE, 2), dict(enumerate(modules)), loss_fn=lambda output, wanted: loss_fn(output.float(), wanted))
    with torch.autocast(DEVICE.type, torch.bfloat16):
        losses = runtime.step(batch, target=target).losses
    assert type(losses[0]) is Tensor and all(type(gradient) is Tensor for gradient in gradients(modules))


def test_tensors_of_inference_in_other_caches_are_refused() -> None:
    table_of.cache_clear()
    refused("lru_cache, has kept one from the inference of shapes", GPIPE, CachesOutside, Plain)
    table_of.cache_clear()
    table_of(WIDTH)
    check(GPIPE, CachesOutside, Plain)


def run_sharded_statistics(rank: int, source: str) -> None:
    module, wanted = (nn.Sequential(nn.Flatten(), nn.BatchNorm1d(3 * WIDTH)).double() for _ in range(2))
    batch, target = (tensor.flatten(1) for tensor in make_batch(COUNT))
    for x in batch.chunk(COUNT):
        wanted(x)
    fully_shard(module, mesh=dist.device_mesh.init_device_mesh(DEVICE.type, (1,)))
    random = torch.get_rng_state()
    Runtime(program_of(source, 1), {0: module}, loss_fn=loss_fn).step(batch, target=target)
    assert torch.equal(random, torch.get_rng_state())
    for (name, buffer), value in zip(module.named_buffers(), wanted.buffers(), strict=True):
        assert torch.equal(buffer, value), f"{name}: {buffer} and not {value}"


def test_statistics_of_sharded_stages_do_not_count_the_inference() -> None:
    spawn.run(run_sharded_statistics, 1, GPIPE)


def test_two_threads_infer_shapes() -> None:
    class Slow(Plain):
        def forward(self, x: Tensor) -> Tensor:
            if isinstance(x, FakeTensor):
                time.sleep(self.seconds)
            return super().forward(x)

    def run(delay: float, seconds: float) -> None:
        time.sleep(delay)
        module = Slow().double()
        module.seconds = seconds  # type: ignore[assignment]
        train(GPIPE, [module])

    def state() -> tuple[Any, ...]:
        return Tensor.register_hook, torch.autograd.graph.saved_tensors_hooks.__enter__, torch._dynamo.eval_frame._stance

    before = state()
    threads = [threading.Thread(target=run, args=times) for times in ((0, 0.4), (0.2, 0.6))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state() == before


# Outputs with a structure.


class Gives(Plain):
    """A dict, whose mask needs no gradient."""

    def forward(self, x: Any) -> Any:
        x = x["hidden"] * x["more"][0] if isinstance(x, dict) else x
        y = super().forward(x)
        return {"hidden": y, "more": [torch.sigmoid(y), (y > 0).double()]}


class Takes(Plain):
    def forward(self, given: dict[str, Any]) -> Tensor:  # type: ignore[override]
        return super().forward(given["hidden"] + given["more"][0] * given["more"][1])


class GivesPairs(Plain):
    """A tuple whose first part is a dict: the next stage has two arguments."""

    def forward(self, x: Tensor) -> Any:  # type: ignore[override]
        return {"hidden": super().forward(x)}, x * 2


class TakesPairs(Plain):
    def forward(self, given: dict[str, Tensor], factor: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(given["hidden"] * factor)


def loss_of_dict(output: Any, target: Tensor) -> Tensor:
    return loss_fn(output["hidden"] + output["more"][0] if isinstance(output, dict) else output, target)


def run_nested(rank: int, texts: list[str]) -> None:
    batch, target = make_batch(COUNT)
    for blocks in ([Gives, Takes], [GivesPairs, TakesPairs], [Gives, Gives]):
        wanted = stages_of(*blocks)
        for x, y in zip(batch.chunk(COUNT), target.chunk(COUNT), strict=True):
            given = wanted[0](x)
            (loss_of_dict(wanted[1](*given) if isinstance(given, tuple) else wanted[1](given), y) / COUNT).backward()
        for program in map(ppcc.Program.from_json, texts):
            for given in (None, stages_of(*blocks)[0](batch.chunk(COUNT)[0])):
                module = stages_of(*blocks)[rank]
                runtime = Runtime(program, {rank: module}, loss_fn=loss_of_dict, shapes=given and {0: given})
                runtime.step(batch, target=target)
                for got, want in zip(module.parameters(), wanted[rank].parameters(), strict=True):
                    assert got.grad is not None and want.grad is not None
                    assert float((got.grad - want.grad).abs().max()) <= TOLERANCE
                outputs = runtime.eval(batch).outputs
                assert rank == 0 or len(outputs[0]) == (3 if blocks[1] is Gives else 1)
    with pytest.raises((UsageError, StepError), match="returned a structure of tensors that its readers do not expect: .*with variable_shapes return a tensor"):
        Runtime(program, {rank: module}, loss_fn=loss_of_dict, variable_shapes=True).step(batch, target=target)


def test_outputs_may_be_nested() -> None:
    spawn.run(run_nested, 2, [ppcc.compile(name, P=2, M=COUNT).json for name in ("one_f_one_b", "zb1p")])


# Gradients that I and W would lose.


class Pair(Plain):
    """Its second output depends on weights alone."""

    def __init__(self) -> None:
        super().__init__()
        self.factors = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return super().forward(x), self.factors * 2


class Joins(Plain):
    def forward(self, x: Tensor, factors: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x) * factors


class IgnoresInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return (self.row * 2).expand(x.shape)


class HidesWeight(Plain):
    """Its factors are no Parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.factors = torch.ones(WIDTH, dtype=torch.float64, requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x * self.factors)


class Shifts(Plain):
    def forward(self, x: Tensor, *, shift: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x + shift)


@pytest.mark.parametrize(
    "blocks",
    [
        (Plain, Pair, Joins),
        (Pair, Joins),
        (Plain, IgnoresInput, Plain),
        (Plain, HidesWeight, Plain),
        (Plain, HidesWeight),
        (Shifts, Shifts),
    ],
)
def test_split_backwards_reach_all_leaves(blocks: tuple[type[nn.Module], ...]) -> None:
    """Those of outputs that depend on no input, and tensors that are no weights of the stage: in it, in the loss, in arguments."""
    found = []
    for source in (GPIPE, SPLIT):
        modules, (head,) = stages_of(*blocks), stages_of(Plain)
        shift = torch.zeros_like(make_batch(COUNT)[0]).requires_grad_()
        named = {"shift": shift} if Shifts in blocks else {}
        train(source, modules, loss=lambda output, target, head=head: loss_fn(head(output), target), **named)
        hidden = [module.factors.grad for module in modules if isinstance(module, HidesWeight)]
        found.append([*gradients(modules), *gradients([head]), *hidden, shift.grad])
    for whole, split in zip(*found, strict=True):
        assert (whole is None) == (split is None)
        assert whole is None or split is None or torch.equal(whole, split)


def test_split_backwards_reach_what_lies_before_the_pipeline() -> None:
    found = []
    for source in (GPIPE, SPLIT):
        batch = make_batch(COUNT)[0].requires_grad_()
        train(source, stages_of(Plain, Plain), batch=batch)
        assert batch.grad is not None
        found.append(batch.grad)
    assert torch.equal(*found)


def test_a_stage_may_return_its_input() -> None:
    check(SPLIT, Plain, nn.Identity, Plain)


def test_weights_of_the_loss_are_refused() -> None:
    class Head(Plain):
        def forward(self, x: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
            return loss_fn(super().forward(x), target)

    refused("loss_fn has weights to train", GPIPE, Plain, loss=Head().double())
    train(GPIPE, stages_of(Plain), loss=Head().double().requires_grad_(False))


# Layers that hold back the gradients of their weights.


class HoldsBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, held: list[tuple[Tensor, Tensor]]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.held = held
        return x @ weight.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        ctx.held.append((x, gradient))
        return gradient @ weight.t(), None, None


class Held(nn.Module):
    """Compare Transformer Engine's `delay_wgrad_compute`."""

    def __init__(self, *, holds_back: bool) -> None:
        super().__init__()
        self.weight, self.held, self.holds_back = nn.Parameter(torch.randn(WIDTH, WIDTH, dtype=torch.float64)), [], holds_back

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(HoldsBack.apply(x, self.weight, self.held) if self.holds_back else x @ self.weight)  # type: ignore[no-any-return]

    def dw_builder(self) -> Callable[[], None]:
        ((x, gradient),) = self.held
        self.held.clear()

        def run() -> None:
            added = x.flatten(0, -2).t() @ gradient.flatten(0, -2)
            self.weight.grad = added if self.weight.grad is None else self.weight.grad + added

        return run


def held(*, holds_back: bool) -> list[nn.Module]:
    torch.manual_seed(3)
    return [nn.Sequential(Plain().double(), Held(holds_back=holds_back)) for _ in range(2)]


@pytest.mark.parametrize("source", [GPIPE, SPLIT])
def test_layers_may_hold_back_the_gradients_of_their_weights(source: str) -> None:
    modules, wanted = held(holds_back=True), held(holds_back=False)
    train_alone(wanted)
    program, (batch, target) = program_of(source, 2), make_batch(COUNT)
    builders: Any = {stage: module[1].dw_builder for stage, module in enumerate(modules)}  # type: ignore[index]
    early: list[bool] = []
    if source == SPLIT:  # Which runs every I first.
        builders[0] = lambda build=builders[0]: (early.append(modules[0][1].weight.grad is not None), build())[1]  # type: ignore[index]
    Runtime(program, dict(enumerate(modules)), loss_fn=loss_fn, dw_builder=builders).step(batch, target=target)
    assert early == ([False] * COUNT if source == SPLIT else [])
    for got, want in zip(gradients(modules), gradients(wanted), strict=True):
        assert got is not None and want is not None and float((got - want).abs().max()) <= TOLERANCE
    with pytest.raises(UsageError, match="dw_builder has stage 2, which does not live on rank 0"):
        Runtime(program, dict(enumerate(modules)), loss_fn=loss_fn, dw_builder={2: builders[1]})


# Recomputation.


class OwnGenerator(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator(DEVICE).manual_seed(1)

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.ones_like(x) if isinstance(x, FakeTensor) else torch.rand(x.shape, generator=self.generator, dtype=x.dtype)
        return super().forward(x) * kept


class Halves(Plain):
    """In place."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if isinstance(x, FakeTensor) else x.mul_(0.5))


class Drops(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(super().forward(x), 0.5)


@pytest.mark.parametrize("block", [OwnGenerator, Halves])
def test_a_recomputation_with_other_results_is_refused(block: type[nn.Module]) -> None:
    refused("0R0: computes other results than the forward that it repeats", GPIPE, block, Plain, rules="recompute")


def test_a_recomputation_repeats_random_numbers() -> None:
    torch.manual_seed(4)
    modules = stages_of(Drops, Plain)
    train(GPIPE, modules)
    repeated = stages_of(Drops, Plain)
    train(GPIPE, repeated, rules="recompute")
    for got, want in zip(gradients(repeated), gradients(modules), strict=True):
        assert got is not None and want is not None and torch.equal(got, want)


def test_the_loss_is_computed_once_with_recomputation() -> None:
    calls = []

    def counted(output: Tensor, target: Tensor) -> Tensor:
        calls.append(output.requires_grad)
        return loss_fn(output, target)

    check(GPIPE, Plain, Plain, rules="recompute", loss=counted)
    assert calls == [True] * COUNT


@pytest.mark.parametrize("rules", ["", "recompute"])
def test_weights_that_are_trained_later_need_new_shapes(rules: str) -> None:
    modules = stages_of(Plain, Plain)
    modules[0].requires_grad_(False)
    runtime = train(GPIPE, modules, rules=rules)
    modules[0].requires_grad_(True)
    batch, target = make_batch(COUNT)
    with pytest.raises(UsageError, match=r"unlike in the first step: let all ranks call reset_shapes\(\)"):
        runtime.step(batch, target=target)
    runtime.reset_shapes()
    runtime.step(batch, target=target)
    assert all(gradient is not None for gradient in gradients(modules))


# Memory that a stage uses again.


class Reuses(Plain):
    """Its second output is a buffer that it fills again for each microbatch."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.zeros(2, 3, WIDTH))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        mask: Any = self.mask
        return super().forward(x), mask.copy_((x.detach() > 0).double())


class ChangesSaved(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return torch.exp(super().forward(x)).add_(1)


class ReusesSaved(Plain):
    """Its backward needs a buffer, which the next microbatch changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.zeros(2, 3, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        mask: Any = self.mask
        return super().forward(x) * mask.copy_((x.detach() > 0).double())


CHANGED = "was changed in place: let the stage compute a new tensor"


def run_reused(rank: int, text: str) -> None:
    batch, target = make_batch(COUNT)
    module = stages_of(Reuses, Joins)[rank]
    with pytest.raises((UsageError, StepError), match=f"an output of a stage that the next stage has not got yet, .*{CHANGED}"):
        Runtime(ppcc.Program.from_json(text), {rank: module}, loss_fn=loss_fn).step(batch, target=target)


def test_an_output_that_changes_before_it_is_read_is_refused() -> None:
    refused(f"an output of a stage that the next stage has not got yet, .*{CHANGED}", GPIPE, Reuses, Joins)
    spawn.run(run_reused, 2, ppcc.compile("gpipe", P=2, M=COUNT).json)


@pytest.mark.parametrize("block", [ChangesSaved, ReusesSaved])
def test_offloaded_tensors_may_not_change(block: type[nn.Module]) -> None:
    refused(f"a tensor that the backward needs, .*{CHANGED}", GPIPE, block, Plain, rules="offload")
    with pytest.raises(StepError, match="modified by an inplace operation"):
        train(GPIPE, stages_of(block, Plain))


def test_a_failed_step_frees_its_activations() -> None:
    kept: list[weakref.ref[Tensor]] = []

    class Fails(Plain):
        def forward(self, x: Tensor) -> Tensor:
            output = super().forward(x)
            if not isinstance(x, FakeTensor):
                kept.append(weakref.ref(output))
                if len(kept) == COUNT:
                    raise ValueError("enough")
            return output

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(StepError, match="enough") as caught:
            train(GPIPE, [Fails().double()])
        del caught
        assert not [one for one in kept if one() is not None]
    finally:
        gc.enable()


# Evaluation.


def test_evaluation_leaves_frozen_parts_as_they_are() -> None:
    class Frozen(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout()

        def forward(self, x: Tensor) -> Tensor:
            assert not (self.drop.training or self.norm.training)
            return self.norm(super().forward(x))  # type: ignore[no-any-return]

    module = Frozen().double()
    module.norm.eval()
    module.drop.eval()
    runtime = Runtime(program_of(GPIPE, 1), {0: module}, loss_fn=loss_fn)
    batch, target = make_batch(COUNT)
    runtime.eval(batch, target=target)
    assert [part.training for part in (module, module.inner, module.norm, module.drop)] == [True, True, False, False]
    module.training = False
    module.norm.train()
    runtime.eval(batch, target=target)
    assert [part.training for part in (module, module.norm, module.drop)] == [False, True, False]


def test_a_first_stage_without_gradients_is_refused() -> None:
    class Checkpointed(Plain):
        def forward(self, x: Tensor) -> Any:
            return torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=True)

    for source in (GPIPE, SPLIT):
        with pytest.warns(UserWarning, match="None of the inputs"), pytest.raises(UsageError, match="stage 0 has weights that require gradients"):
            train(source, stages_of(Checkpointed, Plain))
        frozen = stages_of(Checkpointed, Plain)
        frozen[0].requires_grad_(False)
        train(source, frozen)
        assert all(gradient is not None for gradient in gradients(frozen[1:]))
