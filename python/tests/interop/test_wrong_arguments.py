"""What does not fit is refused with a word that helps."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import Runtime, UsageError
from ppcc.torch._fsdp import ShardedStage
from ppcc.torch._optimizer import check_step_is_barrier
from torch import Tensor, nn

from . import spawn
from .models import TOLERANCE, assert_same_gradients, loss_fn, make_batch, make_stages, reference

ALONE = """
schedule alone(V: int = 1, M: int = 2) {
  ranks 1; microbatches M; placement loop(V);
  on rank r {
    for m in 0 .. M { for s in 0 .. V { F(s); } for s in 0 .. V { I(V - 1 - s); } drain W; }
  }
}
"""


def alone(**params: int) -> ppcc.Program:
    return ppcc.compile_source(ALONE, params=params)


def refused(reason: str, make: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        make()


def test_program_and_stages_must_fit() -> None:
    module = nn.Linear(2, 2)
    refused("for 2 ranks, but there is no process group", lambda: Runtime(ppcc.compile("gpipe", P=2, M=2), {0: module}))
    refused("rank 0 has no module for stage 0 of pipe `main`; it hosts 0", lambda: Runtime(alone(), {}, loss_fn=loss_fn))
    refused("was given stage 7", lambda: Runtime(alone(), {0: module, 7: module}, loss_fn=loss_fn))
    refused("must be a torch.nn.Module", lambda: Runtime(alone(), {0: torch.tanh}, loss_fn=loss_fn))  # type: ignore[dict-item]
    refused("needs a loss_fn", lambda: Runtime(alone(), {0: module}))
    refused("the program is a str", lambda: Runtime("gpipe", {0: module}))  # type: ignore[arg-type]
    refused("rank 0 has the stages 0, 1, but 1 modules were given", lambda: Runtime(alone(V=2), [module]))
    refused("rank 0 has the stages 0, but a int was given", lambda: Runtime(alone(), 3))  # type: ignore[arg-type]


def test_modules_in_the_order_of_their_stages() -> None:
    first, second = nn.Linear(2, 3), nn.Linear(3, 2)
    assert Runtime(alone(V=2), [first, second], loss_fn=loss_fn).stages == {0: first, 1: second}
    assert Runtime(alone(), nn.Sequential(first, second), loss_fn=loss_fn).stages.keys() == {0}


def test_batch_and_stages_must_fit() -> None:
    runtime = Runtime(alone(V=2), {0: nn.Linear(2, 3), 1: nn.Linear(3, 2)}, loss_fn=loss_fn)
    batch = torch.zeros(4, 2)
    refused("give step() the batch", lambda: runtime.step(target=batch))
    refused("give step() `target=`", lambda: runtime.step(batch))
    refused("of shape [3, 2] cannot be cut into 2 equal microbatches", lambda: runtime.step(torch.zeros(3, 2), target=batch))
    refused("stage 0 does not take 1", lambda: runtime.step(1, target=batch))
    refused("stage 0 does not take float32[2, 5]", lambda: runtime.step(torch.zeros(4, 5), target=batch))
    wrong = Runtime(alone(V=2), {0: nn.Linear(2, 3), 1: nn.Linear(2, 2)}, loss_fn=loss_fn)
    refused("stage 1 does not take float32[2, 3]", lambda: wrong.step(batch, target=batch))
    runtime.step(batch, target=batch)


class Growing(nn.Module):
    """Gives another shape each time that it really runs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.repeat(self.calls, 1)


def test_shapes_must_stay() -> None:
    runtime = Runtime(alone(V=2), {0: Growing(), 1: nn.Linear(2, 2)}, loss_fn=loss_fn)
    refused("0F1: returned float32[4, 2], but float32[2, 2] is expected", lambda: runtime.step(torch.zeros(4, 2), target=torch.zeros(4, 2)))


def test_outputs_must_be_tensors() -> None:
    class Wordy(nn.Module):
        def forward(self, x: Tensor) -> str:
            return "x"

    refused("stage 0 returned str", lambda: Runtime(alone(), {0: Wordy()}, loss_fn=loss_fn).step(torch.zeros(2, 2), target=torch.zeros(2, 2)))


def test_hooks_and_weights_may_not_be_those_of_others() -> None:
    batch, (module,) = torch.zeros(2, 2), [nn.Linear(2, 2)]
    other = torch.optim.SGD(nn.Linear(2, 2).parameters())
    runtime = Runtime(alone(), {0: module}, loss_fn=loss_fn, optimizer=other)
    refused("the optimizer has none of the weights of the stages of rank 0", lambda: runtime.step(batch, target=batch))
    late = Runtime(alone(), {0: module}, loss_fn=loss_fn)
    module.register_backward_hook(lambda module, into, out: None)
    refused("stage 0 has a hook that I and W would not call as B does", lambda: late.step(batch, target=batch))


def test_split_backwards_of_sharded_stages_need_a_new_pytorch() -> None:
    refused(
        "stage 0 is sharded, which needs PyTorch 2.15 for I and W: use a schedule that has B",
        lambda: ShardedStage(nn.Linear(2, 2), "stage 0", keep_unsharded=False, is_split=True, last=0),
    )


@pytest.mark.parametrize("name", ["seq1f1b", "slimpipe"])
@pytest.mark.parametrize("options", [{}, {"variable_shapes": True}, {"shapes": {0: torch.empty(2, 2)}}])
def test_stages_must_take_slices(name: str, options: dict[str, Any]) -> None:
    program = ppcc.compile(name, P=1, M=2, n=2)
    stages = {stage: nn.Linear(2, 2) for _, stage in program.local_stages(0)}
    refused("are slices of one sequence, but stage 0 would train each as a sample", lambda: Runtime(program, stages, loss_fn=loss_fn, **options))


@pytest.mark.parametrize("options", [{}, {"variable_shapes": True}])
def test_stage_outputs_must_be_plain_tensors(options: dict[str, Any]) -> None:
    class Sparse(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.to_sparse()

    program = ppcc.compile_source(ALONE.replace("I(V - 1 - s)", "B(V - 1 - s)").replace("drain W;", ""), V=2)
    runtime = Runtime(program, {0: Sparse(), 1: nn.Linear(2, 2)}, loss_fn=loss_fn, **options)
    refused("stage 0 returned a", lambda: runtime.step(torch.ones(2, 2), target=torch.ones(2, 2)))


def test_kinds_need_handlers() -> None:
    program = alone()
    strange = ppcc.Program.from_json(program.json.replace('"mnemonic": "W"', '"mnemonic": "NAP"'))
    refused("nothing runs `NAP`", lambda: Runtime(strange, {0: nn.Linear(2, 2)}, loss_fn=loss_fn))
    seen: list[str] = []
    runtime = Runtime(strange, {0: nn.Linear(2, 2)}, loss_fn=loss_fn, handlers={"NAP": lambda a: seen.append(str(a))})
    runtime.step(torch.zeros(2, 2), target=torch.zeros(2, 2))
    assert seen == ["0NAP0", "0NAP1"]


def test_one_process_needs_no_group_and_gradients_add_up() -> None:
    wanted, losses = reference(2, 4)
    modules = make_stages(2)
    runtime = Runtime(alone(V=2, M=4), dict(enumerate(modules)), loss_fn=loss_fn)
    batch, target = make_batch(4)
    result = runtime.step(batch, target=target, return_outputs=True)
    for stage in range(2):
        assert_same_gradients(modules[stage], wanted[stage], f"stage {stage}")
    assert result.loss is not None and abs(float(result.loss - torch.stack(losses).mean())) <= TOLERANCE
    assert sorted(result.outputs) == [0, 1, 2, 3]
    once = [weight.grad.clone() for weight in modules[0].parameters() if weight.grad is not None]
    runtime.step(batch, target=target)
    for weight, before in zip(modules[0].parameters(), once, strict=True):
        assert weight.grad is not None and torch.allclose(weight.grad, 2 * before, rtol=1e-12, atol=1e-12)


class Views(nn.Module):
    """Gives a view, whose place in the graph cannot be cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).view(-1, 2, 2).view(-1, 4)


def test_views_and_several_tensors() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4).double()

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return self.inner(x), x * 2, torch.arange(x.shape[0])

    class Join(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, dtype=torch.float64))

        def forward(self, x: Tensor, y: Tensor, rows: Tensor) -> Tensor:
            return (x * self.weight)[rows] + y

    torch.manual_seed(3)
    modules = [Views(), Two(), Join()]
    x, y = torch.randn(4, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    for a, b in zip(x.tensor_split(2), y.tensor_split(2), strict=True):
        (loss_fn(modules[2](*modules[1](modules[0](a))), b) / 2).backward()
    wanted = [weight.grad for module in modules for weight in module.parameters()]
    for module in modules:
        module.zero_grad()
    Runtime(alone(V=3), dict(enumerate(modules)), loss_fn=loss_fn).step(x, target=y)
    for got, want in zip((w.grad for module in modules for w in module.parameters()), wanted, strict=True):
        assert got is not None and want is not None and float((got - want).abs().max()) <= TOLERANCE


def wrong_size(rank: int) -> None:
    refused("for 4 ranks, but the process group has 2", lambda: Runtime(ppcc.compile("gpipe", P=4, M=2), {}))
    silent = ppcc.compile("gpipe", P=2, M=2, comm_order="none")
    refused("the program has no messages", lambda: Runtime(silent, {rank: nn.Linear(2, 2)}, loss_fn=loss_fn))
    # Every rank hears that one of them does not fit.
    program = ppcc.compile("gpipe", P=2, M=2)
    runtime = Runtime(program, {rank: nn.Linear(2 + rank, 2)}, loss_fn=loss_fn)
    refused("stage 1 does not take float32[1, 2]", lambda: runtime.step(torch.zeros(2, 2), target=torch.zeros(2, 2)))
    # Also of other exceptions, for which they would wait.
    stages = Unreadable({rank: nn.Linear(2, 2)}) if rank else {rank: nn.Linear(2, 2)}
    refused("OSError: the disk is gone", lambda: Runtime(program, stages, loss_fn=loss_fn))


class Unreadable(dict[int, nn.Module]):
    def __getitem__(self, stage: int) -> nn.Module:
        raise OSError("the disk is gone")


def test_process_group_must_fit() -> None:
    spawn.run(wrong_size, 2)


def test_step_must_be_a_barrier() -> None:
    program = ppcc.compile("gpipe", P=2, M=2, rules=["step(true)"])
    check_step_is_barrier(program)

    def moved(rank: int, mnemonic: str, to: int) -> ppcc.Program:
        actions = [list(own) for own in program.actions]
        (one,) = [action for action in actions[rank] if action.op == mnemonic]
        actions[rank].remove(one)
        actions[rank].insert(to, one)
        return replace(program, actions=[tuple(own) for own in actions])

    refused("rank 1: 1RECV_F1 stands after STEP, which waits", lambda: check_step_is_barrier(moved(1, "STEP", 0)))
    refused("rank 0: VALIDATE stands after STEP", lambda: check_step_is_barrier(moved(1, "VALIDATE", 0)))
    without = tuple(action for action in program.actions[0] if action.op != "STEP")
    refused("ranks have STEP [0, 1] times", lambda: check_step_is_barrier(replace(program, actions=[without, program.actions[1]])))


def test_the_oldest_pytorch_is_the_promised_one_which_ci_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[3]
    (promised,) = re.findall(r'"torch>=([0-9.]+)"', (root / "pyproject.toml").read_text())
    assert f"oldestTorch={promised}.0 " in (root / ".ci" / "run").read_text()
    monkeypatch.setattr(torch, "__version__", "2.8.0+cpu")
    refused(f"training needs PyTorch {promised} or newer, and this is 2.8.0+cpu", lambda: Runtime(alone(), {0: nn.Linear(2, 2)}, loss_fn=loss_fn))
