"""ppcc.torch.tune with layers that move between stages: what each costs, which layout is chosen, and what arrives."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
from ppcc._profile import Event, new_profile
from ppcc.torch import Runtime, TuneResult, UsageError, tune
from ppcc.torch._cut import LayerCosts, layout_of, search
from ppcc.torch._linked import LinkedProgram
from ppcc.torch._layers import Layer, Layout, Move
from ppcc.torch._tune import _LayerTuning
from ppcc.torch._tuning import Steps
from torch import Tensor, nn

from . import spawn
from .models import WIDTH, loss_fn, make_batch, train_alone
from .sleeping import Seconds, Sleeper
from .where import DEVICE

pytestmark = pytest.mark.skipif(DEVICE.type != "cpu", reason="tune() refuses other devices")

M = 8
SHORT: Seconds = (0.002, 0.003, 0.002)
LONG: Seconds = (0.006, 0.008, 0.006)


class Odd(nn.Module):
    """A layer with all that a move has to keep."""

    def __init__(self, number: int) -> None:
        super().__init__()
        memory = torch.arange(2.0 * WIDTH, dtype=torch.float64) / 10 + number
        self.first, self.second = nn.Parameter(memory[:WIDTH]), nn.Parameter(memory[WIDTH:])  # In one piece of memory.
        self.turned = nn.Parameter(torch.eye(WIDTH, dtype=torch.float64).t())
        self.frozen = nn.Parameter(torch.ones(WIDTH, dtype=torch.bfloat16), requires_grad=False)
        self.same = self.first
        self.first.label = number  # type: ignore[attr-defined]
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("passing", torch.full((3,), float(number)), persistent=False)
        self.register_buffer("nothing", torch.empty(0))
        self.plain = torch.tensor([True, False])
        self.number = number

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.tanh((x @ self.turned) * self.first * self.frozen.double() + self.second + self.same)


def assert_odd(layer: Any, number: int) -> None:
    assert type(layer) is Odd and layer.number == number and layer.same is layer.first and layer.first.label == number
    assert torch.equal(torch.cat([layer.first.data, layer.second.data]), torch.arange(2.0 * WIDTH, dtype=torch.float64) / 10 + number)
    assert layer.first.untyped_storage()._cdata == layer.second.untyped_storage()._cdata
    assert layer.turned.stride() == (1, WIDTH) and torch.equal(layer.turned, torch.eye(WIDTH, dtype=torch.float64))
    assert layer.frozen.dtype is torch.bfloat16 and not layer.frozen.requires_grad and layer.second.requires_grad
    assert list(layer.state_dict()) == ["first", "second", "turned", "frozen", "same", "calls", "nothing"]
    assert float(layer.calls) == 0 and torch.equal(layer.passing, torch.full((3,), float(number)))
    assert layer.nothing.shape == (0,) and torch.equal(layer.plain, torch.tensor([True, False]))


def assert_trains(runtime: Runtime, layout: Layout, lists: Callable[[nn.Module], Any], wanted: Sequence[nn.Module], microbatches: int = M) -> None:
    """A step has the gradients of the model without a pipeline."""
    batch, target = make_batch(microbatches)
    train_alone(wanted, batch, target, microbatches)
    runtime.step(batch, target=target)
    for stage, module in runtime.stages.items():
        own = list(lists(module))
        assert len(own) == len(layout[stage])
        for number, layer in zip(layout[stage], own, strict=True):
            for (name, weight), same in zip(layer.named_parameters(), wanted[number].parameters(), strict=True):
                if weight.requires_grad:
                    assert weight.grad is not None and same.grad is not None
                    torch.testing.assert_close(weight.grad, same.grad, rtol=0, atol=1e-12, msg=f"{number} {name}")


class Stage(nn.Module):
    """A stage whose layers are in a list of its own."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def slow_layers() -> list[nn.Module]:
    """Those of the last of four stages of four take three times as long."""
    layers: list[nn.Module] = [Sleeper(number, WIDTH, LONG if number >= 12 else SHORT) for number in range(16)]
    layers[13] = nn.Sequential(layers[13], Odd(13))
    return layers


def run_moved(rank: int, text: str, folder: str) -> None:
    for listed in (True, False):
        run_moved_layers(rank, ppcc.Program.from_json(text), folder, listed)


def run_moved_layers(rank: int, program: ppcc.Program, folder: str, listed: bool) -> None:
    layers = slow_layers()
    wanted = copy.deepcopy(layers)
    made: type[Any] = Stage if listed else lambda own: nn.Sequential(*own)  # type: ignore[assignment]
    stages = {stage: made(layers[4 * stage : 4 * stage + 4]) for _, stage in program.local_stages(rank)}
    runtime = Runtime(program, stages, loss_fn=loss_fn)
    batch, target = make_batch(M)
    given = {stage: list(module.modules()) for stage, module in stages.items()}
    moves: Any = {stage: module.layers for stage, module in stages.items()} if listed else True
    for _ in range(3):  # Steps of a busy machine may be slow just when layers have moved.
        result = tune(runtime, batch, target=target, layers=moves, output=folder)
        if result.layout != result.given_layout:
            break
        assert any(remark.startswith("layers stay where they were: a step took") for remark in result.remarks), result
        runtime.set_program(program)
    assert all(text == str(result) for text in runtime._setup.groups.all_gather(str(result)))
    assert result.layout is not None and result.given_layout == layout_of([4] * 4)
    assert sorted(number for numbers in result.layout for number in numbers) == list(range(16))
    # Two of the four long layers take half as long as all short ones.
    assert len(result.layout[3]) < 4, result
    assert result.order != "given" and result.after < result.before and result.moved_bytes > 0, result
    assert 0.6 < result.after / result.predicted < 1.6, result
    orders = {order.name: order for order in result.orders}
    assert orders[result.order].fits and orders[result.order].memory <= result.memory_limit
    assert result.steps < 20 and result.processor_seconds < 10, result
    assert all(layer.times["F"] > (5 if layer.number >= 12 else 1.9) for layer in result.layers)
    for stage, module in stages.items():
        assert runtime.stages[stage] is module and module is given[stage][0]
        own = list(module.layers if listed else module)
        assert [float(part.forwards) for layer in own for part in layer.modules() if isinstance(part, Sleeper)] == [0] * len(own)
        assert not any(weight.grad is not None for weight in module.parameters())
        assert [name for name, _ in (module.layers if listed else module).named_children()] == list(map(str, range(len(own))))
        for number, layer in zip(result.layout[stage], own, strict=True):
            if number == 13:
                assert_odd(layer[1], 13)
    assert_trains(runtime, result.layout, lambda module: module.layers if listed else module, wanted)


def test_layers_move_to_other_ranks(tmp_path: Path) -> None:
    spawn.run(run_moved, 4, ppcc.compile("zb_h1", P=4, M=M).json, str(tmp_path))
    report = (tmp_path / "report.txt").read_text()
    assert "(given: 4 | 4 | 4 | 4); " in report and " bytes were sent" in report


def run_placed(rank: int, text: str, folder: str) -> None:
    """With two stages a rank the second rank starts earlier."""
    program = ppcc.Program.from_json(text)
    batch, target = make_batch(2)
    layers = [Sleeper(number, WIDTH, (0.004, 0.004, 0.004)) for number in range(8)]

    def build() -> Runtime:
        return Runtime(program, {rank: nn.Sequential(*copy.deepcopy(layers[4 * rank : 4 * rank + 4])).eval()}, loss_fn=loss_fn)

    placements = ["linear", "wave:5", "loop:2", "v"]
    for _ in range(3):  # Steps of a busy machine may be slow just when layers have moved.
        runtime = build()
        result = tune(runtime, batch, target=target, layers=True, placements=placements, cache=folder)
        if result.placement != "given":
            break
        assert any(remark.startswith("layers stay where they were: a step took") for remark in result.remarks), result
        assert list(runtime.stages) == [rank] and runtime.program.pipes[0].rank_of_stage == (0, 1)
        runtime._setup.groups.all_gather(None)
        for path in Path(folder).iterdir() if rank == 0 else ():
            path.unlink()
    assert "the placement wave:5 was left out: it has 10 stages, but there are 8 layers" in result.remarks
    assert result.placement in ("loop:2", "v") and f"placement    {result.placement}\n" in str(result) and result.layout is not None
    assert [len(numbers) > 0 for numbers in result.layout] == [True] * 4 and result.given_layout == layout_of([4, 4])
    assert result.after < result.before and runtime.program.pipes[0].rank_of_stage == ((0, 1, 1, 0) if result.placement == "v" else (0, 1, 0, 1))
    names = {order.name for order in result.orders}
    assert "moved" in names and "given" not in names and names & {"zero_bubble_v", "interleaved_1f1b"}
    assert {len(list(module)) for module in runtime.stages.values()} == {len(result.layout[stage]) for stage in runtime.stages}
    assert not any(part.training for module in runtime.stages.values() for part in module.modules())
    assert all(float(layer.forwards) == 0 for module in runtime.stages.values() for layer in module)
    assert_trains(runtime, result.layout, lambda module: module, copy.deepcopy(layers), 2)

    # From the cache, with stages as they were given.
    again = build()
    found = tune(again, batch, target=target, layers=True, placements=placements, cache=folder)
    assert found.cached and found.placement == result.placement and again.stages.keys() == runtime.stages.keys() and again.program.digest == runtime.program.digest
    assert_trains(again, result.layout, lambda module: module, copy.deepcopy(layers), 2)

    # A rank that cannot run the new program, and stages that cannot be divided otherwise.
    check = LinkedProgram._check

    def fail(linked: Any, *arguments: Any) -> None:
        if linked.program.pipes[0].num_stages > 2:
            raise MemoryError("no room")

    if rank == 1:
        LinkedProgram._check = fail  # type: ignore[method-assign]
    runtime = build()
    before = {stage: list(module) for stage, module in runtime.stages.items()}
    result = tune(runtime, batch, target=target, layers=True, placements=["v"], steps=1)
    assert "layers stay where they were: rank 1: MemoryError: no room" in result.remarks and result.placement == "given"
    assert {stage: list(module) for stage, module in runtime.stages.items()} == before
    LinkedProgram._check = check  # type: ignore[method-assign]
    assert_trains(runtime, ((0, 1, 2, 3), (4, 5, 6, 7)), lambda module: module, copy.deepcopy(layers), 2)
    for weight in runtime.stages[rank].parameters():
        weight.grad = None
    for match, options in (
        ("make each an nn.Sequential of its layers, and say layers=True", {"placements": ["v"]}),
        ("`w` is no placement: they are linear, v, loop:V and wave:V", {"placements": ["w"], "layers": True}),
        ("give all ranks the batch and the target", {"placements": ["v"], "layers": True, "target": None}),
    ):
        with pytest.raises(UsageError, match=match):
            tune(runtime, batch, **{"target": target, **options})


def test_layers_move_to_another_placement(tmp_path: Path) -> None:
    spawn.run(run_placed, 2, ppcc.compile("gpipe", P=2, M=2).json, str(tmp_path))


def run_kept(rank: int, text: str) -> None:
    """Layouts that are not better, or slower than predicted, leave the modules that were there."""
    program = ppcc.Program.from_json(text)
    batch, target = make_batch(M)

    def stage(seconds: Callable[[int], Seconds], size: int = 2) -> dict[int, nn.Module]:
        return {s: nn.Sequential(*(Sleeper(size * s + one, WIDTH, seconds(size * s + one)) for one in range(size))) for _, s in program.local_stages(rank)}

    def assert_unchanged(result: TuneResult, size: int = 2) -> None:
        assert result.layout == result.given_layout == layout_of([size] * 4)
        assert all(list(module.children()) == before[number] for number, module in runtime.stages.items())
        assert_trains(runtime, result.layout, lambda module: module, [Sleeper(number, WIDTH, (0, 0, 0)) for number in range(4 * size)])

    # Each stage needs its only layer.
    runtime = Runtime(program, stage(lambda number: LONG if number == 2 else SHORT, 1), loss_fn=loss_fn)
    before = {number: list(module.children()) for number, module in runtime.stages.items()}
    assert_unchanged(tune(runtime, batch, target=target, layers=True, steps=1), 1)

    # All steps after the move are slow.
    runtime = Runtime(program, stage(lambda number: LONG if number in (2, 3) else SHORT), loss_fn=loss_fn)
    before = {number: list(module.children()) for number, module in runtime.stages.items()}
    step = _LayerTuning._step

    def slow(tuning: Any, observer: Any) -> Steps[float]:
        return (yield from step(tuning, observer)) + (10000 if tuning.move is not None else 0)

    _LayerTuning._step = slow  # type: ignore[method-assign]
    result = tune(runtime, batch, target=target, layers=True, steps=1)
    assert any(remark.startswith("layers stay where they were: a step took 1") for remark in result.remarks), result.remarks
    assert_unchanged(result)

    # A rank that cannot run the new program leaves all as it was, too.
    def fail(tuning: Any, text: str) -> Steps[str | None]:
        return "no room" if tuning.move is not None else (yield from found(tuning, text))

    found, _LayerTuning._try_program = _LayerTuning._try_program, fail  # type: ignore[assignment, method-assign]
    _LayerTuning._step = step  # type: ignore[method-assign]
    runtime = Runtime(program, stage(lambda number: LONG if number in (2, 3) else SHORT), loss_fn=loss_fn)
    before = {number: list(module.children()) for number, module in runtime.stages.items()}
    result = tune(runtime, batch, target=target, layers=True, steps=1)
    assert "layers stay where they were: no room" in result.remarks
    assert_unchanged(result)


def test_layers_stay_where_that_is_faster() -> None:
    """Two stages a rank."""
    spawn.run(run_kept, 2, ppcc.compile("looped_bfs", P=2, M=M, V=2).json)


class Shared(nn.Module):
    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class TwoInputs(Stage):
    def forward(self, x: Tensor) -> Tensor:
        first, second = self.layers
        return second(x) + first(x)  # type: ignore[no-any-return]


class Unpicklable(Shared):
    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__(weight)
        self.function = lambda: None


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2)


def run_refused(rank: int, text: str) -> None:
    program = ppcc.Program.from_json(text)
    batch, target = make_batch(M)

    def compiled(stage: nn.Sequential) -> nn.Sequential:
        stage.compile(backend="eager")
        return stage

    def refused(match: str, change: Callable[[nn.Sequential], Any] = lambda stage: stage, on: int = 1, layers: Any = True, **options: Any) -> None:
        """Rank 1 has twice as many layers, one of which should move."""
        weights = [nn.Parameter(torch.ones(WIDTH, dtype=torch.float64)) for _ in range(4)]
        own: list[nn.Module] = [Sleeper(one, WIDTH, SHORT) if rank else Shared(weights[one]) for one in range(4 if rank else 2)]
        stage: Any = nn.Sequential(*own)
        stage = change(stage) if rank == on else stage
        if "optimizer" in options:
            options["optimizer"] = torch.optim.SGD(stage.parameters())
        runtime = Runtime(program, {rank: stage}, loss_fn=loss_fn, **options)
        before = list(stage.modules())
        with pytest.raises(UsageError, match="layers cannot move: " + match):
            tune(runtime, batch, target=target, steps=1, layers=layers(stage) if callable(layers) else layers)
        assert list(stage.modules()) == before and runtime.program is program
        assert all(weight.grad is None for weight in stage.parameters())
        if change is not compiled:  # Which would take seconds.
            runtime.step(batch, target=target)

    def hooked(stage: nn.Sequential) -> nn.Sequential:
        stage[0].register_forward_hook(lambda module, inputs, outputs: None)
        return stage

    def tensor_hook(stage: nn.Sequential) -> nn.Sequential:
        stage[0].weight.register_hook(lambda gradient: gradient)  # type: ignore[union-attr, operator]
        return stage

    def shared(stage: nn.Sequential) -> nn.Sequential:
        stage[0].same = stage[3].weight
        return stage

    def first(replacement: Callable[[nn.Module], nn.Module]) -> Callable[[nn.Sequential], nn.Sequential]:
        def change(stage: nn.Sequential) -> nn.Sequential:
            return nn.Sequential(replacement(stage[0]), *list(stage)[1:])

        return change

    def weight() -> nn.Parameter:
        return nn.Parameter(torch.ones(WIDTH, dtype=torch.float64))

    refused("an optimizer has the weights", optimizer=True)
    refused("weights that several stages share cannot move", tied=[{0: "0.weight", 1: "0.weight"}])
    refused(".*stage 1 is a Stage, not a list of layers", lambda stage: Stage(list(stage)))
    refused(".*`layers` lack stage", layers={})
    refused(".*are not a part of it", layers=lambda stage: {rank: nn.Sequential(*stage)})
    refused(".*stage 1 is compiled: compile it after tune", compiled)
    refused(".*`?layer 0 of stage 1 does not take and return one tensor", lambda stage: nn.Sequential(Tuple(), Tuple(), *stage))
    refused(".*layer 1 of stage 1 does not take what", lambda stage: TwoInputs(list(stage)[:2]), layers=lambda stage: {rank: getattr(stage, "layers", stage)})
    refused(".*layer 2 has hooks, which would stay behind", hooked)
    refused(".*layer 2 has a tensor with hooks", tensor_hook)
    refused(".*layer 2 shares a weight or buffer with what stays", shared)
    refused(".*layer 2 cannot be pickled: .*lambda", first(lambda layer: nn.Sequential(layer, Unpicklable(weight()))))
    refused(".*layer 1 of stage 1 does not run alone: .*in-place", lambda stage: nn.Sequential(Shared(weight()), InPlace(), *stage))


class Tuple(nn.Module):
    def forward(self, x: Any) -> Any:
        return (x,) if isinstance(x, Tensor) else x[0]


def test_refusals() -> None:
    spawn.run(run_refused, 2, ppcc.compile("gpipe", P=2, M=M).json)


def run_named(rank: int, text: str) -> None:
    """Layers with names keep them; two with one name cannot be in one stage."""
    program = ppcc.Program.from_json(text)
    names = [["embed", "one"], ["two", "embed"]][rank]
    stage = nn.Sequential()
    for name in names:
        stage.add_module(name, nn.Linear(WIDTH, WIDTH).double())
    runtime = Runtime(program, {rank: stage}, loss_fn=loss_fn)
    before = list(stage.named_children())
    move = Move(runtime, {rank: stage}, ((0, 1), (2, 3)), ((0, 1, 2), (3,)))
    assert [name for name, _ in stage.named_children()] == [["embed", "one", "two"], ["embed"]][rank]
    move.undo()
    assert list(stage.named_children()) == before
    with pytest.raises(UsageError, match="stage 0 would have two layers with the name `embed`"):
        Move(runtime, {rank: stage}, ((0, 1), (2, 3)), ((0, 1, 2, 3), ()))
    assert list(stage.named_children()) == before


def test_names_of_layers() -> None:
    spawn.run(run_named, 2, ppcc.compile("gpipe", P=2, M=M).json)


def layer(number: int, time: float, size: int = 8) -> Layer:
    times = {"F": time, "B": 2 * time, "I": time, "W": time}
    return Layer(number, "Some", times, size, 16, 16, True, False, size, 100 * size, True)


def costs_of(times: Sequence[float], sizes: Sequence[int], more: float = 0) -> LayerCosts:
    """Of stages that have so many layers; `more` is what the last stage takes beside its layers."""
    layers = [layer(number, time) for number, time in enumerate(times)]
    layout = layout_of(sizes)
    profile = new_profile()
    for stage, numbers in enumerate(layout):
        work = sum(times[number] for number in numbers)
        rest = more if stage == len(layout) - 1 else 0
        for kind, time in {"F": work + rest, "I": work + rest if stage else 0, "W": work if stage else 2 * work}.items():
            profile.add(Event(f"{stage}{kind}0", Decimal(1000 * time), Decimal(0), None, ""))
    return LayerCosts(layers, profile, layout)


def test_costs_of_stages_follow_from_layers() -> None:
    costs = costs_of([1, 2, 3, 4], [2, 2], more=5)
    assert costs.times(((0, 1), (2, 3))) == {"F": [3, 12], "B": [6, 19], "I": [0, 12], "W": [6, 7]}
    # The first stage has no gradient of its input; what the last takes beside its layers stays there.
    assert costs.times(((0,), (1, 2, 3))) == {"F": [1, 14], "B": [2, 23], "I": [0, 14], "W": [2, 9]}
    # Inputs that are received, inputs of others that the layer keeps, outputs.
    assert costs.memory(((0,), (1, 2, 3))) == {"F": [8 + 16, 3 * 8 + 4 * 16], "I": [16, 3 * 8], "static": [800, 2400]}
    costs.profile.memory = {"F": {0: 50, 1: 100}, "static": {0: 2000, 1: 2000}}
    costs.__post_init__()
    assert costs.memory(costs.given) | {"I": []} == {"F": [50, 100], "I": [], "static": [2000, 2000]}
    slower = costs_of([1, 2, 3, 4], [2, 2])
    slower.layers = [layer(number, 2 * time) for number, time in enumerate([1, 2, 3, 4])]
    slower.__post_init__()
    assert slower.times(((0, 1), (2, 3))) == {"F": [3, 7], "B": [6, 14], "I": [0, 7], "W": [6, 7]}


@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_the_layout_with_the_least_work(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    times = [1.0 + 9 * float(torch.rand((), generator=generator)) for _ in range(10)]
    costs = costs_of(times, [1, 1, 1, 7])

    def rate(layout: Layout) -> float:
        found = costs.times(layout)
        return 8 * max(sum(found[kind][stage] for kind in "FIW") for stage in range(4))

    best = min(
        rate(layout_of([one, two, three, 10 - one - two - three]))
        for one, two, three in itertools.product(range(1, 8), repeat=3)
        if one + two + three < 10
    )
    found = search(costs, costs.given, (0, 1, 2, 3), 8, ["IW", "B"], rate)
    assert rate(found) <= 1.1 * best
    # Nothing fits elsewhere.
    assert search(costs, costs.given, (0, 1, 2, 3), 8, ["IW", "B"], lambda layout: 1.0 if layout == costs.given else float("inf")) == costs.given
    frozen = LayerCosts([Layer(**vars(one) | {"trains": one.number < 4}) for one in costs.layers], costs.profile, costs.given)
    assert [len(numbers) for numbers in search(frozen, frozen.given, (0, 1, 2, 3), 8, ["IW", "B"], rate)] == [1, 1, 1, 7]
