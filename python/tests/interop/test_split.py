"""The split of a backward into I and W: gradients are those of B to the bit, and parts run as rarely as can be."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo  # As torch.compile() does.
from ppcc.torch import UsageError, _split
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

WIDTH = 8


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.num_forwards = 0

    def forward(self, x: Tensor) -> Tensor:
        self.num_forwards += 1
        q, k, v = self.qkv(self.first(x)).chunk(3, -1)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Rows(torch.autograd.Function):
    """A product whose backward always computes both gradients, and counts how often it runs."""

    num_backwards = 0

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        Rows.num_backwards += 1
        x, weight = ctx.saved_tensors
        return gradient @ weight.t(), x.flatten(0, -2).t() @ gradient.flatten(0, -2)


class Twice(torch.autograd.Function):
    """A function of a weight alone."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        return 2 * weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 2 * gradient


class Stage(nn.Module):
    """Runs a function of itself and its input."""

    def __init__(self, run: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.run = run
        self.block, self.other, self.linear = Block(), Block(), nn.Linear(WIDTH, WIDTH)
        self.weight, self.row = nn.Parameter(torch.randn(WIDTH, WIDTH) / 3), nn.Parameter(torch.randn(WIDTH))

    def forward(self, x: Tensor) -> Any:
        return self.run(self, x)


def in_place(stage: Any, x: Tensor) -> Tensor:
    x = stage.linear(x)
    x[:, 1] = torch.tanh(stage.row)
    return x.relu_()


def with_token(stage: Any, x: Tensor) -> Tensor:
    x = torch.cat([(2 * stage.row).expand(len(x), 1, WIDTH), x], 1)
    return stage.linear(x)[:, 1:].transpose(0, 1)  # type: ignore[no-any-return]


def three_times(stage: Any, x: Tensor) -> Tensor:
    y = torch.sin(stage.linear(x)) + torch.cos(stage.linear(2 * x)) + torch.tanh(stage.linear(x + 1))
    return stage.linear(stage.linear(y)) * stage.row + stage.row  # type: ignore[no-any-return]


def checkpointed(stage: Any, x: Tensor) -> Tensor:
    for block in (stage.block, stage.other):
        x = checkpoint(block, x, use_reentrant=False)
    return x


CASES: dict[str, Callable[[Any, Tensor], Any]] = {
    "blocks": lambda stage, x: stage.other(stage.block(x)),
    "a block twice": lambda stage, x: stage.block(torch.tanh(stage.block(x))),
    "a weight three times": three_times,
    "a part of the input to one output": lambda stage, x: (stage.linear(x[:, :1]), stage.row * 2, stage.block(x).sum((0, 1))),
    "outputs that share nodes": lambda stage, x: ((y := stage.linear(x)), stage.block(y), y.view(-1), y),
    "the input itself": lambda stage, x: (x, stage.block(x)),
    "no input": lambda stage, x: stage.row.expand(x.shape) * 2,
    "in place": in_place,
    "a weight in a concatenation": with_token,
    "broadcast": lambda stage, x: x * torch.exp(stage.row[:, None].mean(1)) + torch.softmax(stage.row, 0) * x.sum(),
    "complex": lambda stage, x: torch.fft.ifft(torch.fft.fft(x) * torch.complex(stage.row, 2 * stage.row) * stage.row).real,
    "convolution": lambda stage, x: nn.functional.conv1d(x, stage.weight[: x.shape[1], : x.shape[1], None], padding=1),
    "weights of weights": lambda stage, x: x @ (torch.tanh(stage.weight) @ stage.weight) + stage.linear(x),
    "a function of one's own": lambda stage, x: stage.block(Rows.apply(torch.tanh(Rows.apply(x, stage.weight)), stage.linear.weight)),
    "a function that shares a weight": lambda stage, x: Rows.apply(stage.linear(Rows.apply(x, stage.weight)), stage.linear.weight) @ stage.weight,
    "only functions of one's own": lambda stage, x: Rows.apply(torch.tanh(Rows.apply(x, stage.weight)), stage.linear.weight),
    "a weight behind a function of one's own": lambda stage, x: x * Twice.apply(stage.row) @ Twice.apply(stage.weight) + Twice.apply(stage.row),
    "checkpoints": checkpointed,
    "autocast": lambda stage, x: torch.autocast("cpu", torch.bfloat16)(stage.block)(stage.linear(x)).float(),
    "compiled parts": lambda stage, x: stage.linear(compiled(stage.block)(stage.linear(compiled(stage.other)(x)))),
    "a compiled whole": lambda stage, x: compiled(stage.other)(compiled(stage.block)(x)),
}


def compiled(block: nn.Module) -> Any:
    return torch.compile(block, backend="aot_eager")


def run(name: str, *, split: bool, compiles_again: bool = True, **options: Any) -> list[Tensor | None]:
    if compiles_again:
        torch.compiler.reset()
    torch.manual_seed(5)
    stage = Stage(CASES[name])
    x = torch.randn(3, 4, WIDTH, requires_grad=True)
    for _ in range(2):  # Gradients add up.
        with _split.without_donation():
            outputs = stage(x)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        gradients = [torch.randn_like(output) for output in outputs]
        if split:
            finish = _split.backward_input([x], outputs, gradients, **options)
            assert name == "no input" or x.grad is not None
            del outputs
            finish()
        else:
            _split.backward(outputs, gradients)
    return [x.grad, *(weight.grad for weight in stage.parameters())]


@pytest.mark.filterwarnings("ignore:a stage has a part that torch.compile")
@pytest.mark.parametrize("defers_all", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_split_backward_equals_the_full_one_to_the_bit(name: str, defers_all: bool) -> None:
    for whole, split in zip(run(name, split=False), run(name, split=True, defers_all=defers_all), strict=True):
        assert (whole is None) == (split is None)
        assert whole is None or split is None or torch.equal(whole, split), float((whole - split).abs().max())


def test_the_gradient_of_the_input_needs_no_weight() -> None:
    torch.manual_seed(5)
    stage, x = Stage(CASES["blocks"]), torch.randn(3, 4, WIDTH, requires_grad=True)
    output = stage(x)
    finish = _split.backward_input([x], [output], [torch.ones_like(output)])
    assert x.grad is not None and all(weight.grad is None for weight in stage.parameters())
    finish()
    assert all(weight.grad is not None for weight in stage.block.parameters())


def test_a_checkpointed_block_runs_three_times() -> None:
    stage, x = Stage(checkpointed), torch.randn(3, 4, WIDTH, requires_grad=True)
    output = stage(x)
    finish = _split.backward_input([x], [output], [torch.ones_like(output)])
    assert [stage.block.num_forwards, stage.other.num_forwards] == [2, 2]
    finish()
    assert [stage.block.num_forwards, stage.other.num_forwards] == [3, 3]


def test_a_function_of_ones_own_runs_once() -> None:
    Rows.num_backwards = 0
    run("a function of one's own", split=True)
    assert Rows.num_backwards == 4


def test_a_weight_waits_for_w_if_w_adds_to_it_or_if_it_is_asked_to() -> None:
    for name, options, early in (
        ("only functions of one's own", {}, True),
        ("a function that shares a weight", {}, False),
        ("only functions of one's own", {"defers_all": True}, False),
    ):
        stage, x = Stage(CASES[name]), torch.randn(3, 4, WIDTH, requires_grad=True)
        output = stage(x)
        finish = _split.backward_input([x], [output], [torch.ones_like(output)], **options)
        assert (stage.weight.grad is not None) == early, name
        finish()
        assert stage.weight.grad is not None and stage.linear.weight.grad is not None


def reentrant(stage: Any, x: Tensor) -> Any:
    return checkpoint(stage.block, stage.linear(x), use_reentrant=True)


CANNOT_BE_SPLIT = {
    "a compiled whole": (CASES["a compiled whole"], "a part that torch.compile has compiled"),
    "compiled for B": (CASES["compiled parts"], "parts that torch.compile compiled for B"),
    "reentrant": (reentrant, "a checkpoint with use_reentrant=True"),
}


@pytest.mark.parametrize("name", CANNOT_BE_SPLIT)
def test_a_backward_that_cannot_be_split_runs_at_i_and_is_told_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, reason = CANNOT_BE_SPLIT[name]
    monkeypatch.setitem(CASES, name, case)
    monkeypatch.setattr(_split, "_warned", set())
    wanted = run(name, split=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        found = run(name, split=True, compiles_again=name != "compiled for B")
    texts = [str(warning.message) for warning in caught if "a stage has" in str(warning.message)]
    assert len(texts) == 1 and reason in texts[0] and "takes as long for it as B; W has nothing to do there" in texts[0]
    for whole, split in zip(wanted, found, strict=True):
        assert (whole is None and split is None) or torch.equal(whole, split)  # type: ignore[arg-type]
    stage, x = Stage(case), torch.randn(3, 4, WIDTH, requires_grad=True)
    output = stage(x)
    with pytest.warns(UserWarning, match=f"stage 7 has {reason}"):
        finish = _split.backward_input([x], [output], [torch.ones_like(output)], "stage 7")
    before = {id(weight): weight.grad.clone() for weight in stage.parameters() if weight.grad is not None}
    assert id(stage.block.up.weight) in before
    finish()
    assert all(torch.equal(before[id(weight)], weight.grad) for weight in stage.parameters() if weight.grad is not None)
    if name != "a compiled whole":
        output = stage(x)
        with pytest.raises(UsageError, match=f"{reason}.* for which hooks wait until W"):
            _split.backward_input([x], [output], [torch.ones_like(output)], defers_all=True)


def test_a_function_of_ones_own_is_not_run_again_for_compiled_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, "both", lambda stage, x: Rows.apply(CASES["compiled parts"](stage, x), stage.weight))
    run("both", split=False)
    Rows.num_backwards = 0
    with pytest.raises(RuntimeError, match="donated buffers"):
        run("both", split=True, compiles_again=False)
    assert Rows.num_backwards == 1


@pytest.mark.parametrize("name", ["blocks", "checkpoints", "a function of one's own"])
def test_hooks_run_once(name: str) -> None:
    calls: list[str] = []
    stage, x = Stage(CASES[name]), torch.randn(3, 4, WIDTH, requires_grad=True)
    weights = [weight for weight in (stage.block.up.weight, stage.block.down.bias)]
    for weight in weights:
        weight.register_hook(lambda gradient: calls.append("weight"))
        weight.register_post_accumulate_grad_hook(lambda weight: calls.append("accumulated"))
    torch.autograd.graph.register_multi_grad_hook(weights, lambda gradients: calls.append("several"))
    stage.block.register_full_backward_hook(lambda module, into, out: calls.append("module"))
    output = stage(x)
    output.register_hook(lambda gradient: calls.append("output"))
    x.register_hook(lambda gradient: calls.append("input"))
    _split.backward_input([x], [output], [torch.ones_like(output)], defers_all=True)()
    assert sorted(calls) == ["accumulated", "accumulated", "input", "module", "output", "several", "weight", "weight"]
