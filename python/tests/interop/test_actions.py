"""What schedules declare, on the loader: recomputation, release, offload, reductions, the optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import Runtime, StepError, UsageError
from ppcc.torch._stash import _Block
from ppcc.torch._step import Step
from ppcc.torch._async_reduce import AsyncReducer
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from . import spawn
from .models import (
    TOLERANCE,
    WIDTH,
    Block,
    Plain,
    assert_same_gradients,
    batch_of_rank,
    check_step,
    loss_fn,
    make_batch,
    make_pipeline_groups,
    make_stages,
    own_stages,
    reference,
    train_alone,
)
from .where import DEVICE

RANKS = 2
FINALIZES = hasattr(torch.distributed.fsdp.FSDPModule, "finalize_backward")
"""Whether fully_shard allows I and W."""
KEEPING = [["recompute(1, 1)"], ["recompute"], ["release"], ["offload"], ["offload(2)", "release"]]


def compiled(name: str, rules: list[str], **params: int) -> ppcc.Program:
    return ppcc.compile(name, rules=rules, params=params)


def ops(program: ppcc.Program) -> set[str]:
    return {action.op for actions in program.actions for action in actions}


# What is kept of a forward.


def run_keeping(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        wanted, losses = reference(max(pipe.num_stages for pipe in program.pipes), program.num_microbatches)
        *_, result = check_step(rank, program, wanted=wanted)
        for microbatch, loss in result.losses.items():
            assert abs(float(loss - losses[microbatch])) <= TOLERANCE


def test_gradients_do_not_depend_on_what_is_kept() -> None:
    programs = [
        compiled(name, rules, P=RANKS, M=6)
        for name in ("one_f_one_b", "zero_bubble_v", "interleaved_1f1b_overlap", "dualpipe")
        for rules in KEEPING
    ]
    assert {"RELEASE_OUT", "RELEASE_IN", "OFFLOAD", "RELOAD"} <= ops(programs[4])
    spawn.run(run_keeping, RANKS, [program.json for program in programs])


def alone(rules: list[str]) -> ppcc.Program:
    return compiled("gpipe", rules, P=1, M=4)


class Counter:
    """Counts the bytes that autograd saves and has not let go."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def hooks(self) -> torch.autograd.graph.saved_tensors_hooks:
        return torch.autograd.graph.saved_tensors_hooks(lambda tensor: Saved(self, tensor), lambda saved: saved.tensor)


class Saved:
    def __init__(self, counter: Counter, tensor: Tensor) -> None:
        self.counter, self.tensor, self.bytes = counter, tensor, 0 if isinstance(tensor, nn.Parameter) else tensor.nbytes
        counter.now += self.bytes
        counter.peak = max(counter.peak, counter.now)

    def __del__(self) -> None:
        self.counter.now -= self.bytes


def saved_bytes(rules: list[str]) -> int:
    """The most that one rank saves in a step."""
    counter = Counter()
    runtime = Runtime(alone(rules), {0: make_stages(1)[0]}, loss_fn=loss_fn)
    batch, target = make_batch(4)
    with counter.hooks():
        runtime.step(batch, target=target)
    assert counter.now == 0
    return counter.peak


def test_recomputation_saves_less() -> None:
    whole = saved_bytes([])
    assert whole > 4000
    # All forwards come first: then everything is saved four times, or once.
    assert saved_bytes(["recompute"]) * 4 == whole
    assert saved_bytes(["recompute(1, 1)"]) * 2 == whole


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Block()

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(self.inner(x), 0.5)


def test_recomputation_draws_the_same_numbers() -> None:
    def gradients(rules: list[str]) -> list[Tensor]:
        (module,) = make_stages(1, Noisy)
        torch.manual_seed(3)
        batch, target = make_batch(4)
        Runtime(alone(rules), {0: module}, loss_fn=loss_fn).step(batch, target=target)
        return [weight.grad for weight in module.parameters() if weight.grad is not None]

    once, again = gradients([]), gradients(["recompute"])
    assert len(once) > 4 and all(map(torch.equal, once, again))


PROBED = """
import "std.pp";
action PROBE { after F; before B; }
schedule probed(P: int = 1, M: int = 2, extra: bool = false) {
  ranks P; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { PROBE; B; } }
}
"""


class Watched(nn.Module):
    """Knows where its output and something that its backward needs are."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.saved: list[StorageWeakRef] = []
        self.outputs: list[StorageWeakRef] = []

    def forward(self, x: Tensor) -> Tensor:
        between = torch.tanh(self.first(x))
        output: Tensor = self.second(between)
        if not isinstance(x, torch._subclasses.FakeTensor):
            self.saved.append(StorageWeakRef(between.untyped_storage()))
            self.outputs.append(StorageWeakRef(output.untyped_storage()))
        return output


def is_gone(reference: StorageWeakRef, timeout: float) -> bool:
    """Whether memory is free, or becomes so: a send is waited for beside the step."""
    end = time.monotonic() + timeout
    while not reference.expired() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(reference.expired())


def run_releasing(rank: int, texts: list[str], expected: list[bool]) -> None:
    for text, gone in zip(texts, expected, strict=True):
        program = ppcc.Program.from_json(text)
        wanted, _ = reference(RANKS, 2, Watched)
        module: Any = make_stages(RANKS, Watched)[rank]
        seen = []

        def probe(action: ppcc.Action, module: Any = module, gone: bool = gone, seen: list[bool] = seen) -> None:
            if rank == 0:  # The last stage sends nothing, so releases nothing.
                seen.append(is_gone(module.outputs[action.microbatch], 20 if gone else 0.2))

        batch, target = make_batch(2)
        Runtime(program, {rank: module}, loss_fn=loss_fn, handlers={"PROBE": probe}).step(batch, target=target)
        assert_same_gradients(module, wanted[rank], f"rank {rank}")
        if rank == 0:
            assert seen == [gone, gone], f"released: {gone}, but {seen}"


def test_released_outputs_leave_memory() -> None:
    programs = [ppcc.compile_source(PROBED, P=RANKS, rules=rules) for rules in ([], ["release"])]
    spawn.run(run_releasing, RANKS, [program.json for program in programs], [False, True])


def test_offload_frees_device_memory() -> None:
    def step(rules: list[str]) -> list[bool]:
        wanted, _ = reference(1, 2, Watched)
        (module,) = make_stages(1, Watched)
        seen: list[bool] = []

        def probe(action: ppcc.Action) -> None:
            seen.append(module.saved[action.microbatch].expired())  # type: ignore[index, union-attr]

        batch, target = make_batch(2)
        program = ppcc.compile_source(PROBED, rules=rules)
        Runtime(program, {0: module}, loss_fn=loss_fn, handlers={"PROBE": probe}).step(batch, target=target)
        assert_same_gradients(module, wanted[0], str(rules))
        return seen

    assert step([]) == [False, False]
    assert step(["offload"]) == [True, True]


def test_offloaded_activations_must_be_reloaded() -> None:
    program = compiled("gpipe", ["offload"], P=1, M=1)
    late = ppcc.Program.from_json(program.json.replace('"RELOAD"', '"LOADED"'))
    batch, target = make_batch(1)
    runtime = Runtime(late, {0: make_stages(1)[0]}, loss_fn=loss_fn, handlers={"LOADED": lambda action: None})
    with pytest.raises(UsageError, match="0B0 needs what is still on the host"):
        runtime.step(batch, target=target)


def run_moved(rank: int, text: str, peaks: list[int]) -> None:
    program = ppcc.Program.from_json(text)
    wanted, _ = reference(program.num_ranks, program.num_microbatches, Watched)
    module: Any = make_stages(program.num_ranks, Watched)[rank]
    batch, target = make_batch(program.num_microbatches)
    runtime = Runtime(program, {rank: module}, loss_fn=loss_fn)
    kept = []

    def count(*_: object) -> None:
        """How many activations are here when one more is made. A send is waited for beside the step."""
        end = time.monotonic() + 10
        while (here := sum(not memory.expired() for memory in module.saved)) >= peaks[rank] and time.monotonic() < end:
            time.sleep(0.01)
        kept.append(here + 1 + len(runtime._linked.moves._guests))

    def take_back(block: Any, take: Callable[[Any], Tensor] = _Block.take_back) -> Tensor:
        content = take(block)
        module.saved.append(StorageWeakRef(content.untyped_storage()))
        return content

    _Block.take_back = take_back  # type: ignore[method-assign]
    module.register_forward_pre_hook(count)
    for _ in range(2):
        module.zero_grad()
        runtime.step(batch, target=target)
        assert_same_gradients(module, wanted[rank], f"rank {rank}")
        assert not runtime._linked.moves._guests
    assert max(kept) == peaks[rank], f"rank {rank} has kept {max(kept)}, and was to keep {peaks[rank]}"
    twice = ppcc.Program.from_json(text.replace('"collective": "from"', '"collective": "to"'))
    with pytest.raises((UsageError, StepError), match="0LOAD1 moves what is no longer on rank 0"):
        Runtime(twice, {rank: module}, loss_fn=loss_fn).step(batch, target=target)


def test_activations_move_to_another_rank_and_back() -> None:
    program = ppcc.compile("bpipe", P=4, M=8)
    peaks = [int(rank.peak_memory) for rank in program.simulate().ranks]
    assert peaks == [3, 3, 2, 3]  # One less than 1F1B on rank 0; the last rank keeps them.
    spawn.run(run_moved, 4, program.json, peaks)


# Sums.


def tied_reference(count: int, microbatches: int) -> list[nn.Module]:
    """Stages of which the first and the last have one weight."""
    stages: list[Any] = make_stages(count, Plain)
    stages[-1].inner.weight = stages[0].inner.weight
    train_alone(stages, *make_batch(microbatches), microbatches)
    return stages


TIE = {0: "inner.weight", -1: "inner.weight"}


def run_tied(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        wanted = tied_reference(max(pipe.num_stages for pipe in program.pipes), program.num_microbatches)
        check_step(rank, program, Plain, wanted, tied=[TIE])


def test_tied_weights_have_one_gradient() -> None:
    programs = [
        compiled(name, rules, P=RANKS, M=4)
        for name, rules in [
            ("one_f_one_b", ["reduce_embedding"]),
            ("one_f_one_b", []),
            ("zb1p", ["reduce_embedding"]),
            ("zero_bubble_v", ["reduce_embedding"]),  # Both on one rank.
            ("zero_bubble_v", []),
            ("dualpipe", ["reduce_replicas"]),
            ("dualpipe", ["reduce_embedding", "reduce_replicas"]),
            ("dualpipe", []),
        ]
    ]
    spawn.run(run_tied, RANKS, [program.json for program in programs])


BOTH_HERE = """
import "std.pp";
schedule both_here(P: int = 1, M: int = 4) {
  ranks P; microbatches M; placement loop(2);
  on rank r { for m in 0 .. M { F(0); F(1); } repeat M { B(1); } %s repeat M { B(0); } %s }
}
"""


def run_shared_parameter(rank: int, scale_grads: bool) -> None:
    pipeline, copies = [torch.distributed.new_group([one]) for one in range(2)][rank], torch.distributed.new_group([0, 1])
    for reduces in (("", ""), ("REDUCE_GRAD(1);", "REDUCE_GRAD(0);")):
        program = ppcc.compile_source(BOTH_HERE % reduces)
        wanted: list[Any] = make_stages(2, Plain)
        modules: list[Any] = make_stages(2, Plain)
        for stages in (wanted, modules):
            stages[1].inner.weight = stages[0].inner.weight
        train_alone(wanted, *make_batch(8), 8, None if scale_grads else 1)
        runtime = Runtime(
            program, dict(enumerate(modules)), loss_fn=loss_fn, group=pipeline, groups={"data_parallel": copies}, scale_grads=scale_grads
        )
        batch, target = (tensor.chunk(2)[rank] for tensor in make_batch(8))
        runtime.step(batch, target=target)
        for stage in range(2):
            assert_same_gradients(modules[stage], wanted[stage], f"{reduces}, rank {rank}, stage {stage}")


@pytest.mark.parametrize("scale_grads", [True, False])
def test_a_parameter_in_two_stages_of_a_rank_is_reduced_once(scale_grads: bool) -> None:
    spawn.run(run_shared_parameter, 2, scale_grads)


def run_accumulated(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = max(pipe.num_stages for pipe in program.pipes)
        wanted: list[Any] = make_stages(count, Plain)
        wanted[-1].inner.weight = wanted[0].inner.weight
        mine = own_stages(program, rank, Plain)
        runtime = Runtime(program, mine, loss_fn=loss_fn, tied=[TIE])
        batch, target = make_batch(program.num_microbatches)
        for steps in (2, 1, 2):  # Gradients that are set to zero are not those of the step before.
            for _ in range(steps):
                train_alone(wanted, batch, target, program.num_microbatches)
                runtime.step(batch, target=target)
                runtime.eval(batch)
            for stage, module in mine.items():
                assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
            for module in (*wanted, *mine.values()):
                module.zero_grad(set_to_none=steps == 2)


def run_accumulated_sums(rank: int) -> None:
    pipeline, copies = [torch.distributed.new_group([one]) for one in range(2)][rank], torch.distributed.new_group([0, 1])
    program = ppcc.compile("gpipe", P=1, M=4)
    wanted, modules = make_stages(1, Plain), make_stages(1, Plain)
    for _ in range(3):
        train_alone(wanted, *make_batch(8), 8, 1)
    runtime = Runtime(program, {0: modules[0]}, loss_fn=loss_fn, group=pipeline, groups={"data_parallel": copies}, scale_grads=False)
    batch, target = (tensor.chunk(2)[rank] for tensor in make_batch(8))
    for reduces in (True, False, True):
        runtime.step(batch, target=target, reduce_grads=reduces)
    assert_same_gradients(modules[0], wanted[0], f"rank {rank}")


def test_steps_add_to_gradients_that_were_summed() -> None:
    programs = [compiled("dualpipe", rules, P=RANKS, M=4) for rules in ([], ["reduce_embedding", "reduce_replicas"])]
    programs += [compiled("one_f_one_b", [], P=RANKS, M=4), compiled("zero_bubble_v", [], P=RANKS, M=4)]
    spawn.run(run_accumulated, RANKS, [program.json for program in programs])
    spawn.run(run_accumulated_sums, RANKS)


def test_sums_may_not_be_changed_before_a_step_adds_to_them() -> None:
    modules: list[Any] = make_stages(2, Plain)
    runtime = Runtime(ppcc.compile_source(BOTH_HERE % ("", "")), dict(enumerate(modules)), loss_fn=loss_fn, tied=[TIE])
    batch, target = make_batch(4)
    runtime.step(batch, target=target)
    modules[1].inner.weight.grad *= 0.5
    with pytest.raises(UsageError, match="gradients that an earlier step summed were changed and not set to zero"):
        runtime.step(batch, target=target)


class Counting(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.complex64))


def run_unequal_copies(rank: int) -> None:
    pipeline, copies = [torch.distributed.new_group([one]) for one in range(2)][rank], torch.distributed.new_group([0, 1])
    torch.manual_seed(rank)
    module: Any = nn.Sequential(Counting(), nn.Conv2d(2, 2, 2).to(memory_format=torch.channels_last))
    module[0].count += rank
    module[1].bias.requires_grad_(False)
    Runtime(ppcc.compile("gpipe", P=1, M=2), {0: module}, loss_fn=loss_fn, group=pipeline, groups={"data_parallel": copies})
    values = [value.detach().clone() for value in (*module.parameters(), *module.buffers())]
    torch.manual_seed(0)
    wanted = nn.Sequential(Counting(), nn.Conv2d(2, 2, 2))
    assert len(values) == 5 and all(map(torch.equal, values, (*wanted.parameters(), *wanted.buffers())))


def test_copies_start_equal() -> None:
    spawn.run(run_unequal_copies, 2)


def run_assigned(rank: int, text: str) -> None:
    """Weights that take the place of those at creation are those that are summed."""
    program = ppcc.Program.from_json(text)
    count = max(pipe.num_stages for pipe in program.pipes)
    wanted = tied_reference(count, program.num_microbatches)
    mine = own_stages(program, rank, Plain)
    runtime = Runtime(program, mine, loss_fn=loss_fn, tied=[TIE])
    for stage, module in mine.items():
        module.load_state_dict({name: value.clone() for name, value in wanted[stage].state_dict().items()}, assign=True)
    batch, target = make_batch(program.num_microbatches)
    runtime.step(batch, target=target)
    for stage, module in mine.items():
        assert_same_gradients(module, wanted[stage], f"rank {rank}, stage {stage}")
    norm = torch.nn.utils.clip_grad_norm_(dict.fromkeys(weight for stage in wanted for weight in stage.parameters()), 1e9)
    assert abs(float(runtime.clip_grad_norm_(1e9) - norm)) <= TOLERANCE


def test_weights_may_be_assigned_after_creation() -> None:
    spawn.run(run_assigned, RANKS, compiled("dualpipe", [], P=RANKS, M=4).json)


def run_data_parallel(rank: int, texts: list[str]) -> None:
    pipeline, copies = make_pipeline_groups(rank)
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = max(pipe.num_stages for pipe in program.pipes)
        wanted, _ = reference(count, 2 * program.num_microbatches)
        mine = own_stages(program, rank % 2)
        runtime = Runtime(program, mine, loss_fn=loss_fn, group=pipeline, groups={"data_parallel": copies})
        batch, target = batch_of_rank(rank, program.num_microbatches)
        runtime.step(batch, target=target)
        for stage, module in mine.items():
            assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")


def test_gradients_of_copies_are_averaged() -> None:
    programs = [
        compiled("one_f_one_b", ["reduce_grads(1)"], P=RANKS, M=4),
        compiled("zero_bubble_v", ["reduce_grads"], P=RANKS, M=4),
        compiled("dualpipe", ["reduce_grads", "reduce_replicas"], P=RANKS, M=4),
    ]
    spawn.run(run_data_parallel, 2 * RANKS, [program.json for program in programs])


def run_async_reduction(rank: int, text: str) -> None:
    """Those of the other copy come late to each sum, so that here none can end before what follows it."""
    program = ppcc.Program.from_json(text)
    pipeline, copies = make_pipeline_groups(rank)
    mine = own_stages(program, rank % 2)
    runtime = Runtime(program, mine, loss_fn=loss_fn, group=pipeline, groups={"data_parallel": copies})
    log: list[str] = []
    begin, settle, backward = AsyncReducer.begin, AsyncReducer._settle_one, Step.functions["B"]

    def begun(self: AsyncReducer, *args: Any) -> None:
        if rank >= 2:
            time.sleep(0.2)
        before = len(self._pending)
        begin(self, *args)
        log.append(f"begun {len(self._pending) - before}")

    def settled(self: AsyncReducer) -> None:
        settle(self)
        log.append("waited for")

    def performed(step: Any, action: ppcc.Action) -> None:
        backward(step, action)
        ended = [one.work.is_completed() for one in step._linked.reductions._in_flight._pending]
        log.append(f"backward beside {ended}")

    AsyncReducer.begin, AsyncReducer._settle_one, Step.functions["B"] = begun, settled, performed  # type: ignore[method-assign]
    batch, target = batch_of_rank(rank, program.num_microbatches)
    runtime.step(batch, target=target)
    # All weights of a stage are one bucket, and the sums of both stages are waited for at the end.
    first = log.index("begun 1")
    backwards = [word for word in log[first:] if word.startswith("backward")]
    assert len(backwards) > 0 and log.count("begun 1") == len(mine) and log[-len(mine) :] == ["waited for"] * len(mine), log
    assert log.count("waited for") == len(mine), log
    if rank < 2:
        assert backwards[0] == "backward beside [False]", log


def test_reductions_overlap_the_backward() -> None:
    spawn.run(run_async_reduction, 2 * RANKS, compiled("interleaved_1f1b", ["reduce_grads"], P=RANKS, M=4).json)


def run_sharded(rank: int, texts: list[str]) -> None:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    pipeline, copies = make_pipeline_groups(rank)
    mesh = DeviceMesh.from_group(copies, DEVICE.type)
    for text in texts:
        program = ppcc.Program.from_json(text)
        count = program.pipes[0].num_stages
        wanted, _ = reference(count, 2 * program.num_microbatches)
        mine = own_stages(program, rank % 2)
        for module in mine.values():
            for part in (module.up, module.down, module):  # type: ignore[attr-defined]
                fully_shard(part, mesh=mesh)
        seen = []
        runtime = Runtime(
            program,
            mine,
            loss_fn=loss_fn,
            group=pipeline,
            groups={"data_parallel": copies},
            handlers={"PROBE": lambda action, seen=seen: seen.append(is_gathered(runtime.module(action)))},  # type: ignore[misc]
        )
        batch, target = batch_of_rank(rank, program.num_microbatches)
        for _ in range(2):
            for module in mine.values():
                module.zero_grad()
            runtime.step(batch, target=target)
        for stage, module in mine.items():
            for (name, got), want in zip(module.named_parameters(), wanted[stage].parameters(), strict=True):
                assert got.grad is not None and want.grad is not None, f"{program.name} {stage} {name}"
                difference = (got.grad.full_tensor() - want.grad).abs().max()  # type: ignore[attr-defined]
                assert difference <= TOLERANCE, f"{program.name} {ops(program)}, stage {stage}: {name} is off by {difference}"
        assert all(seen) and bool(seen) == ("PROBE" in ops(program))


def run_sharded_steps(rank: int, text: str) -> None:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    pipeline, copies = make_pipeline_groups(rank)
    program = ppcc.Program.from_json(text)
    wanted, _ = reference(RANKS, 2 * program.num_microbatches)
    stage = rank % 2
    module = make_stages(RANKS)[stage]
    fully_shard(module, mesh=DeviceMesh.from_group(copies, DEVICE.type))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    runtime = Runtime(
        program,
        {stage: module},
        loss_fn=loss_fn,
        group=pipeline,
        groups={"data_parallel": copies},
        optimizer=optimizer,
        # A piece of the gradients is wrong, which one process alone has.
        validate=lambda: rank != 3 or fine,
    )
    torch.optim.SGD(wanted[stage].parameters(), lr=0.1).step()
    batch, target = batch_of_rank(rank, program.num_microbatches)
    for fine, expected in ((True, True), (False, False)):
        optimizer.zero_grad()
        assert runtime.step(batch, target=target).optimizer_stepped is expected
        for (name, got), want in zip(module.named_parameters(), wanted[stage].parameters(), strict=True):
            difference = float((got.full_tensor() - want).detach().abs().max())  # type: ignore[attr-defined]
            assert difference <= TOLERANCE, f"rank {rank}: {name} is off by {difference}"


def test_all_replicas_roll_back_together() -> None:
    program = compiled("one_f_one_b", ["fsdp", "reduce_grads", "step(validate: true)"], P=RANKS, M=4)
    spawn.run(run_sharded_steps, 2 * RANKS, program.json)


def is_gathered(module: nn.Module) -> bool:
    return not hasattr(module.up.weight, "full_tensor")  # type: ignore[union-attr, arg-type]


GATHERED = """
import "std.pp";
action PROBE { after F; before B; }
schedule gathered(P: int = 2, M: int = 4) {
  ranks P; microbatches M; placement linear;
  with fsdp; with reduce_grads;
  on rank r { repeat M { F; } repeat M { PROBE; B; } }
}
"""


def test_sharded_stages_are_gathered_and_reduced() -> None:
    programs = [
        ppcc.compile_source(GATHERED),
        compiled("one_f_one_b", ["reduce_grads"], P=RANKS, M=4),  # FSDP gathers by itself.
        compiled("one_f_one_b", ["reduce_grads(2)", "fsdp"], P=RANKS, M=4),  # RESHARD comes first.
        *([compiled("zb1p", ["fsdp", "reduce_grads"], P=RANKS, M=4)] if FINALIZES else []),
        compiled("interleaved_1f1b", ["fsdp", "recompute"], P=RANKS, M=4),
        compiled("one_f_one_b", ["fsdp", "offload"], P=RANKS, M=4),
        compiled("breadth_first_fsdp", [], P=RANKS, M=4),
    ]
    spawn.run(run_sharded, 2 * RANKS, [program.json for program in programs])


# The optimizer.


def run_stepping(rank: int, texts: list[str]) -> None:
    for text in texts:
        program = ppcc.Program.from_json(text)
        wanted, _ = reference(max(pipe.num_stages for pipe in program.pipes), program.num_microbatches)
        mine = own_stages(program, rank)
        weights = [weight for module in mine.values() for weight in module.parameters()]
        optimizer = torch.optim.Adam(weights)
        runtime = Runtime(program, mine, loss_fn=loss_fn, optimizer=optimizer)
        batch, target = make_batch(program.num_microbatches)
        assert runtime.step(batch, target=target).optimizer_stepped is True
        for stage, module in mine.items():
            assert_same_gradients(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
        for stage, module in mine.items():
            torch.optim.Adam(wanted[stage].parameters()).step()
            assert_same_weights(module, wanted[stage], f"{program.name}, rank {rank}, stage {stage}")
        if "VALIDATE" not in ops(program):
            continue
        # A loss that is no number: the ranks that cannot see it take their step back, too.
        before = [weight.detach().clone() for weight in weights]
        state = [value.clone() for _, value in sorted_state(optimizer)]
        optimizer.zero_grad()
        poisoned = target.clone()
        poisoned[0] = float("nan")
        assert runtime.step(batch, target=poisoned).optimizer_stepped is False
        assert all(map(torch.equal, before, weights))
        assert len(state) > 4 and all(map(torch.equal, state, [value for _, value in sorted_state(optimizer)]))


def assert_same_weights(module: nn.Module, wanted: nn.Module, label: str) -> None:
    for (name, got), want in zip(module.named_parameters(), wanted.parameters(), strict=True):
        difference = float((got - want).abs().max())
        assert difference <= 1e-9, f"{label}: {name} is off by {difference}"


def sorted_state(optimizer: torch.optim.Optimizer) -> list[tuple[tuple[int, str], Tensor]]:
    states: dict[int, dict[str, Tensor]] = optimizer.state_dict()["state"]
    return sorted(
        (((number, name), value) for number, row in states.items() for name, value in row.items()),
        key=lambda entry: entry[0],
    )


def test_optimizer_steps_and_rolls_back() -> None:
    programs = [
        compiled("one_f_one_b", ["step"], P=RANKS, M=4),
        compiled("zero_bubble_v", ["step(validate: true)"], P=RANKS, M=4),
        compiled("dualpipe", ["step(validate: true)"], P=RANKS, M=4),
        compiled("dualpipe", ["reduce_replicas", "step"], P=RANKS, M=4),
    ]
    spawn.run(run_stepping, RANKS, [program.json for program in programs])


def test_gradients_of_several_steps_are_reduced_once() -> None:
    (module,) = make_stages(1)
    (wanted,), _ = reference(1, 4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.0)
    runtime = Runtime(alone(["step(validate: true)"]), {0: module}, loss_fn=loss_fn, optimizer=optimizer)
    batch, target = make_batch(4)
    assert runtime.step(batch, target=target, reduce_grads=False).optimizer_stepped is None
    assert_same_gradients(module, wanted, "once")
    assert runtime.step(batch, target=target).optimizer_stepped is True
    for got, want in zip(module.parameters(), wanted.parameters(), strict=True):
        assert got.grad is not None and want.grad is not None and torch.allclose(got.grad, 2 * want.grad)


def test_validate_hook_is_called_on_each_rank() -> None:
    (module,) = make_stages(1)
    before = [weight.detach().clone() for weight in module.parameters()]
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    program = alone(["step(validate: true)"])
    runtime = Runtime(program, {0: module}, loss_fn=loss_fn, optimizer=optimizer, validate=lambda: False)
    batch, target = make_batch(4)
    assert runtime.step(batch, target=target).optimizer_stepped is False
    assert all(map(torch.equal, before, module.parameters()))


# Misuse.


def refused(reason: str, make: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=reason):
        make()


def test_actions_require_their_arguments() -> None:
    stages = {0: make_stages(1)[0]}

    def runtime(rules: list[str], **options: Any) -> Runtime:
        return Runtime(alone(rules), stages, loss_fn=loss_fn, **options)

    refused("nothing runs `PROBE`: give the Runtime a handler", lambda: Runtime(ppcc.compile_source(PROBED), stages, loss_fn=loss_fn))
    refused("the program has `STEP`: give the Runtime an optimizer", lambda: runtime(["step"]))
    refused("`REDUCE_GRAD` is done by the group `data_parallel`: give", lambda: runtime(["reduce_grads"]))
    refused("`REDUCE_EMBEDDING` has nothing to sum: give the Runtime tied", lambda: runtime(["reduce_embedding"]))
    refused("0UNSHARD is for stages that fully_shard has cut up", lambda: runtime(["fsdp"]))
    refused("stage 0 has no weight `lost` to be tied", lambda: runtime([], tied=[{0: "lost"}]))
    refused("tied to stage 1, but there are 1 stages", lambda: runtime([], tied=[{1: "scale"}]))
    refused("nothing here runs `STEP`", lambda: runtime(["step(validate: true)"], handlers={"STEP": print}))
    seen: list[str] = []
    own = {"STEP": lambda action: seen.append(str(action)), "VALIDATE": lambda action: seen.append(str(action))}
    batch, target = make_batch(4)
    runtime(["step(validate: true)"], handlers=own).step(batch, target=target)
    assert seen == ["STEP", "VALIDATE"]


CROSSED = """
import "std.pp";
schedule crossed() {
  ranks 1; microbatches 1; placement loop(2);
  on rank r {
    F(0); F(1); B(1); REDUCE_GRAD(1); REDUCE_EMBEDDING(1); B(0); REDUCE_EMBEDDING(0); REDUCE_GRAD(0);
  }
}
"""


def test_reductions_have_one_order() -> None:
    stages = dict(enumerate(make_stages(2, Plain)))
    program = ppcc.compile_source(CROSSED)
    refused("`REDUCE_GRAD` comes before `REDUCE_EMBEDDING` at one stage", lambda: Runtime(program, stages, loss_fn=loss_fn, tied=[TIE]))
