"""Programs in the place of Megatron's schedules, where megatron-core is installed."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import ppcc.tune
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from . import spawn
from .megatron_models import (
    LENGTH,
    RATE,
    ROWS,
    STEPS,
    Reference,
    batches,
    forward_step,
    gradient,
    initialize,
    loss_and_tokens,
    loss_of,
    make_config,
    make_model,
    weights,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("megatron") is None, reason="NOT RUN because megatron-core is not installed"
)

OWN = """
// Two chunks in a V, all forwards of a half first; weights wait for the end of each half.
schedule own(P: int = 2, M: int = 4) {
  ranks P;
  microbatches M;
  placement v;
  on rank r {
    repeat 2 {
      repeat M / 2 { F(0); }
      repeat M / 2 { F(1); }
      repeat M / 2 { I(1); }
      repeat M / 2 { I(0); }
      repeat M / 2 { W(1); W(0); }
    }
  }
}
"""


@dataclass(frozen=True)
class Case:
    """A program, and how its model is set up."""

    json: str
    peaks: list[int]
    layers: int = 8
    tied: bool = True
    layout: str | None = None
    ddp: dict[str, Any] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    per_token: bool = False
    aligned: bool = False
    """Gradients are reduced when grad_sync_func is called."""
    timed: bool = False
    varied: bool = False
    """Microbatches have different lengths."""
    scale: float = 1.0

    @property
    def forward_step(self) -> Callable[..., Any]:
        return partial(forward_step, loss=loss_and_tokens if self.per_token else loss_of)

    @staticmethod
    def of(program: ppcc.Program, **more: Any) -> Case:
        return Case(program.json, [rank.peak_activations for rank in program.simulate().ranks], **more)


class Graph:
    """Counts the forwards whose graphs are kept, by what autograd keeps."""

    now = most = 0

    def __init__(self) -> None:
        Graph.now += 1
        Graph.most = max(Graph.most, Graph.now)

    def __del__(self) -> None:
        Graph.now -= 1


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, output: Tensor) -> Tensor:
        ctx.graph = Graph()
        return output.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def mark(chunk: Any) -> None:
    """Behind the first norm, which has to stay until the gradients of weights have been computed."""
    apply: Any = Marked.apply
    chunk.decoder.layers[0].input_layernorm.register_forward_hook(lambda module, inputs, output: apply(output))


@cache
def reference(layers: int, tied: bool, microbatches: int, per_token: bool, varied: bool) -> Reference:
    return Reference(layers, tied, microbatches, per_token=per_token, varied=varied)


def expectation(case: Case, pipeline: int) -> Reference:
    import torch.distributed as dist

    microbatches = ppcc.Program.from_json(case.json).num_microbatches * (dist.get_world_size() // pipeline)
    return reference(case.layers, case.tied, microbatches, case.per_token, case.varied)


def run_cases(rank: int, groups: list[tuple[int, list[Case]]]) -> None:
    from ppcc.megatron import use_cpu

    use_cpu()
    initialize(1)  # Groups are dear, so they are made once for all cases, and references first.
    for pipeline, cases in groups:
        for case in cases:
            expectation(case, pipeline)
    for pipeline, cases in groups:
        initialize(pipeline)
        for case in cases:
            program = ppcc.Program.from_json(case.json)
            try:
                run_case(case, program, pipeline)
            except Exception as error:
                raise AssertionError(f"{program.name}, {case}"[:200]) from error


def run_case(case: Case, program: ppcc.Program, pipeline: int) -> None:
    import torch.distributed as dist
    from megatron.core import parallel_state
    from ppcc.megatron import ForwardBackward, build_chunks, uninstall

    copies = dist.get_world_size() // pipeline
    expected = expectation(case, pipeline)
    count = len(program.local_stages(0))
    parallel_state.set_virtual_pipeline_model_parallel_world_size(count if count > 1 else None)
    own = parallel_state.get_pipeline_model_parallel_rank()
    config = make_config(case.layers, pipeline, count, pipeline_model_parallel_layout=case.layout, **case.config)
    config.calculate_per_token_loss = case.per_token
    config.variable_seq_lengths = case.varied
    chunks = build_chunks(program, partial(make_model, config, case.tied))
    set_weights(chunks, expected.weights[0])
    for chunk in chunks:
        mark(chunk)
    chunks = wrapped(case, config, chunks)
    run = ForwardBackward(program)
    copy = parallel_state.get_data_parallel_rank()
    for step in range(STEPS):
        Graph.now = Graph.most = 0
        zero(chunks)
        # So that what was rounded in one step does not grow in the next.
        compare(chunks, expected.weights[step], lambda weight: weight, f"rank {own}, before step {step}")
        set_weights(chunks, expected.weights[step])
        mine = batches(step, program.num_microbatches * copies, case.varied)[copy::copies]
        losses = call(run, chunks if len(chunks) > 1 else chunks[0], data(chunks, mine), program.num_microbatches, forward_step_func=case.forward_step)
        assert run.peak_activations == case.peaks[own] == Graph.most, (run.peak_activations, case.peaks[own], Graph.most)
        assert Graph.now == 0
        scaled = {name: value * case.scale for name, value in expected.gradients[step].items()}
        compare(chunks, scaled, gradient, f"rank {own}, step {step}")
        if losses:
            for got, want in zip(losses, expected.losses[step][copy::copies], strict=True):
                assert abs(float(got["loss"]) - want) <= 1e-5 * abs(want)
        with torch.no_grad():
            for chunk in chunks:
                for name, weight in weights(chunk):
                    weight -= RATE / case.scale * gradient(weight)
    evaluate(case, run, program, chunks, expected, copy)
    if case.timed:
        assert {"forward-backward", "forward-compute", "backward-compute"} <= set(config.timers._timers)
    uninstall()


def call(run: Any, chunks: Any, data: Any, count: int = 4, **options: Any) -> Any:
    """Calls Megatron's forward_backward function, or one of ours."""
    options = {"forward_step_func": forward_step, **options}
    return run(data_iterator=data, model=chunks, num_microbatches=count, seq_length=LENGTH, micro_batch_size=ROWS, **options)


def evaluate(case: Case, run: Any, program: ppcc.Program, chunks: list[Any], expected: Reference, copy: int) -> None:
    """Forward only, with the first step's weights."""
    set_weights(chunks, expected.weights[0])
    copies = len(expected.losses[0]) // program.num_microbatches
    mine = data(chunks, batches(0, program.num_microbatches * copies, case.varied)[copy::copies])
    model = chunks if len(chunks) > 1 else chunks[0]
    losses = call(run, model, mine, program.num_microbatches, forward_step_func=case.forward_step, forward_only=True)
    assert Graph.now == 0
    if losses:
        for got, want in zip(losses, expected.losses[0][copy::copies], strict=True):
            assert abs(float(got["loss"]) - want) <= 1e-6 * abs(want)


def wrapped(case: Case, config: Any, chunks: list[nn.Module]) -> list[Any]:
    """As Megatron's training does it."""
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
    from megatron.core.timers import Timers

    made = [
        DistributedDataParallel(config, DistributedDataParallelConfig(**(case.ddp or {})), chunk, disable_bucketing=number > 0)
        for number, chunk in enumerate(chunks)
    ]
    config.finalize_model_grads_func = finalize_model_grads
    config.no_sync_func = [chunk.no_sync for chunk in made]
    if case.scale != 1:
        config.grad_scale_func = lambda loss: loss * case.scale
    if case.timed:
        config.timers = Timers(log_level=2, log_option="all")
    if case.aligned:
        config.grad_sync_func = [chunk.start_grad_sync for chunk in made]
    if len(made) == 1:
        config.no_sync_func = made[0].no_sync
    return made


def zero(chunks: list[Any]) -> None:
    for chunk in chunks:
        chunk.zero_grad_buffer()


def data(chunks: list[Any], mine: list[Any]) -> Any:
    return [iter(mine) for _ in chunks] if len(chunks) > 1 else iter(mine)


def set_weights(chunks: list[nn.Module], values: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for chunk in chunks:
            for name, weight in weights(chunk):
                weight.copy_(values[name])


def compare(
    chunks: list[nn.Module], wanted: dict[str, Tensor], part: Callable[[nn.Parameter], Tensor | None], label: str
) -> None:
    for chunk in chunks:
        for name, weight in weights(chunk):
            got = part(weight)
            assert got is not None, f"{label}: {name} has no gradient"
            difference = float((got - wanted[name]).abs().max())
            assert difference <= 1e-6 * float(wanted[name].abs().max()), f"{label}: {name} is off by {difference}"


def test_gradients_equal_those_without_a_pipeline() -> None:
    """Four ranks, and two with two copies of each, whose gradients are reduced in all of Megatron's ways."""
    overlap = {"overlap_grad_reduce": True}
    deep = [
        Case.of(ppcc.compile("one_f_one_b", P=4, M=6)),
        Case.of(ppcc.compile("interleaved_1f1b", P=4, M=8, V=2)),
        Case.of(ppcc.compile("zb_h1", P=4, M=6), layout="Et|tttt|t|ttL"),
        Case.of(ppcc.compile("zero_bubble_v", P=4, M=6), per_token=True),
        Case.of(ppcc.compile("dualpipe_v", P=4, M=8), tied=False),
        Case.of(ppcc.compile("dualpipe", P=4, M=8)),
        Case.of(ppcc.compile_source(OWN, P=4, M=4)),
    ]
    copied = [
        Case.of(ppcc.compile("one_f_one_b", P=2, M=4, fuse="megatron"), layers=4, ddp=overlap),
        Case.of(ppcc.compile("one_f_one_b", P=2, M=4, rules="reduce_grads"), layers=4, ddp=overlap, aligned=True),
        Case.of(ppcc.compile("interleaved_1f1b", P=2, M=4, V=2), layers=4, ddp=overlap, aligned=True),
        Case.of(ppcc.compile("interleaved_1f1b", P=2, M=4, V=2), layers=4, varied=True),
        Case.of(ppcc.compile("zb_h1", P=2, M=4), layers=4, ddp=overlap, config={"deallocate_pipeline_outputs": False}),
        Case.of(ppcc.compile("zero_bubble_v", P=2, M=4), layers=4, ddp=overlap, per_token=True, timed=True),
        Case.of(ppcc.compile("dualpipe_v", P=2, M=4), layers=7, layout="Et|tt|ttt|tL", tied=False),
        Case.of(ppcc.compile("dualpipe", P=2, M=4), layers=4, ddp=overlap, scale=4.0),
        Case.of(ppcc.compile_source(OWN, P=2, M=4), layers=5, layout="Et|t|tt|tL", ddp=overlap, timed=True),
    ]
    spawn.run(run_cases, 4, [(4, deep), (2, copied)])


class Training(types.ModuleType):
    """What stands for megatron.training.training, which is not on PyPI: the way that it builds models and imports."""

    def __init__(self) -> None:
        super().__init__("megatron.training.training")
        from megatron.core.pipeline_parallel import get_forward_backward_func
        from megatron.core.pipeline_parallel.utils import (
            is_pp_first_stage,
            is_pp_last_stage,
            is_vp_first_stage,
            is_vp_last_stage,
        )

        def get_model(provider: Callable[..., Any], group: Any, count: int) -> list[Any]:
            return [
                provider(
                    pre_process=names["is_pp_first_stage"](group) and names["is_vp_first_stage"](chunk, count),
                    post_process=names["is_pp_last_stage"](group) and names["is_vp_last_stage"](chunk, count),
                    vp_stage=chunk,
                )
                for chunk in range(count)
            ]

        names = vars(self)
        names.update(
            get_forward_backward_func=get_forward_backward_func,
            is_pp_first_stage=is_pp_first_stage,
            is_pp_last_stage=is_pp_last_stage,
            is_vp_first_stage=is_vp_first_stage,
            is_vp_last_stage=is_vp_last_stage,
            get_model=get_model,
        )


def run_installed(rank: int) -> None:
    from megatron.core import parallel_state
    from megatron.core.transformer.transformer_layer import get_transformer_layer_offset
    from ppcc.megatron import ForwardBackward, install, uninstall

    from ppcc.megatron import use_cpu

    use_cpu()
    initialize(2)
    parallel_state.set_virtual_pipeline_model_parallel_world_size(2)
    training: Any = Training()
    before = dict(vars(training))
    sys.modules["megatron.training.training"] = training
    program = ppcc.compile("zero_bubble_v", P=2, M=4)
    install(program, profile=True)
    assert isinstance(training.get_forward_backward_func(), ForwardBackward)
    assert isinstance(training.get_forward_backward_func(pp_size=2, vp_size=2), ForwardBackward)
    config = make_config(8, 2, 2)
    group = parallel_state.get_pipeline_model_parallel_group()
    chunks = training.get_model(partial(make_model, config, True), group, 2)
    ends = [(chunk.pre_process, chunk.post_process) for chunk in chunks]
    assert ends == ([(True, False), (False, True)] if rank == 0 else [(False, False), (False, False)])
    numbers = [[layer.layer_number for layer in chunk.decoder.layers] for chunk in chunks]
    assert numbers == ([[1, 2], [7, 8]] if rank == 0 else [[3, 4], [5, 6]])
    if rank == 0:  # Tied weights begin equal.
        assert torch.equal(chunks[0].embedding.word_embeddings.weight, chunks[1].output_layer.weight)
        assert chunks[1].output_layer.weight.abs().sum() > 0
    # Data is read where a first or last stage is, logs are written on the last rank.
    asked = [
        [parallel_state.is_pipeline_first_stage(False, chunk), parallel_state.is_pipeline_last_stage(False, chunk)]
        for chunk in range(2)
    ]
    assert asked == ([[True, False], [False, True]] if rank == 0 else [[False, False], [False, False]])
    assert parallel_state.is_pipeline_last_stage(ignore_virtual=True) and training.is_pp_last_stage(group)
    assert parallel_state.get_embedding_group() is None
    chunk_run = training.get_forward_backward_func()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        call(chunk_run, chunks, [iter(batches(0, 4)) for _ in chunks])
    # The ranges are the order that runs, for ppcc-tune.
    with tempfile.TemporaryDirectory() as folder:
        profiler.export_chrome_trace(f"{folder}/rank.json")
        traces: list[Any] = [None, None]
        dist.all_gather_object(traces, Path(folder, "rank.json").read_text())
        for number, text in enumerate(traces):
            Path(folder, f"{number}.json").write_text(text)
        run = ppcc.tune.read_traces([f"{folder}/{number}.json" for number in range(2)])
    computes = [[str(one) for one in own if one.kind.is_compute and one.op in "FIWB"] for own in program.actions]
    assert [[str(one) for one in own if one.kind.is_compute] for own in run.program.actions] == computes and len(run.profile.latencies()) == 4
    assert all(weight.grad is not None for chunk in chunks for weight in chunk.parameters())
    uninstall()
    assert dict(vars(training)) == before
    assert get_transformer_layer_offset(config, 1) == (4 if rank == 0 else 6)
    del sys.modules["megatron.training.training"]
    run_as_megatron(rank)
    run_refusals(rank)
    run_delayed(rank)


def run_as_megatron(rank: int) -> None:
    """A placement of Megatron's own: its schedule and ours give the same bits."""
    from megatron.core import parallel_state, pipeline_parallel
    from ppcc.megatron import build_chunks, install, uninstall

    parallel_state.set_virtual_pipeline_model_parallel_world_size(None)
    config = make_config(4, 2, num_microbatches_with_partial_activation_checkpoints=None)
    install(lambda microbatches: ppcc.compile("one_f_one_b", P=2, M=microbatches))
    ours = pipeline_parallel.get_forward_backward_func()
    uninstall()
    theirs = pipeline_parallel.get_forward_backward_func()
    assert theirs is not ours
    torch.manual_seed(rank)
    (chunk,) = build_chunks(ppcc.compile("one_f_one_b", P=2, M=4), partial(make_model, config, True))
    found = []
    for run, count in [(theirs, 4), (ours, 4), (theirs, 6), (ours, 6)]:
        losses = call(run, chunk, iter(batches(0, count)), count)
        found.append((losses, [weight.grad for weight in chunk.parameters()]))
        chunk.zero_grad()
    for (their_losses, their_gradients), (our_losses, our_gradients) in [found[:2], found[2:]]:
        assert their_losses == our_losses and bool(our_losses) == (rank == 1)
        assert all(map(torch.equal, their_gradients, our_gradients))
    uninstall()


def run_refusals(rank: int) -> None:
    from megatron.core import parallel_state
    from ppcc.megatron import ForwardBackward, build_chunks, uninstall
    from ppcc.torch import UsageError

    parallel_state.set_virtual_pipeline_model_parallel_world_size(None)
    config = make_config(4, 2)
    plain, split = ppcc.compile("one_f_one_b", P=2, M=4), ppcc.compile("zb_h1", P=2, M=4)
    (chunk,) = build_chunks(plain, partial(make_model, config, False))

    def refused(programs: Any, reason: str, model: Any = chunk, data_iterator: Any = None, count: int = 4, **settings: Any) -> None:
        before = {name: getattr(config, name, None) for name in settings}
        vars(config).update(settings)
        with pytest.raises(UsageError, match=reason):
            call(ForwardBackward(programs), model, data_iterator, count)
        vars(config).update(before)

    refused(split, "adds the gradients of weights in `I`", gradient_accumulation_fusion=True)
    refused(ppcc.compile_source(LAST_FIRST), "in the order of its I", delay_wgrad_compute=True)
    for name in ("overlap_moe_expert_parallel_comm", "hybrid_context_parallel", "fine_grained_activation_offloading", "mtp_standalone"):
        refused(plain, f"`{name}` does not go with a program", **{name: True})
    refused(plain, "cuda_graph_impl=local", cuda_graph_impl="local")
    refused(plain, "pipeline_dtype must be set", pipeline_dtype=None)
    refused(plain, "for 4 microbatches, but Megatron runs 6", count=6)
    refused(ppcc.compile("one_f_one_b", P=4, M=4), "for 4 ranks, but the pipeline has 2")
    refused(plain, "1 stages, but the model 2 chunks", model=[chunk, chunk])
    refused(plain, "must be a list of 1", data_iterator=[iter([]), iter([])])
    refused(ppcc.compile("one_f_one_b", P=2, M=4, comm_order="none"), "no messages")
    for rule, op in [("recompute", "R"), ("offload", "OFFLOAD"), ("step", "STEP"), ("fsdp", "RESHARD")]:
        refused(ppcc.compile("one_f_one_b", P=2, M=4, rules=rule), f"told to do `{op}`")
    refused(ppcc.compile_source(SKIPPING), "has other edges")
    refused(ppcc.compile("seq1f1b", P=2, M=2), "slices of one sequence, but Megatron would train each as a sample")
    run_refused_chunks(refused, chunk)
    refused(ppcc.compile("dualpipe", P=2, M=4), "moe_router_enable_expert_bias", model=[chunk, chunk], moe_router_enable_expert_bias=True)
    uninstall()
    run_other_placements(config)
    for settings, reason in [
        ({"num_layers_in_first_pipeline_stage": 3}, "mean ranks, not stages"),
        ({"num_layers": 5}, "5 layers cannot be divided among 4 stages"),
        ({"pipeline_model_parallel_layout": "Ett|ttL"}, "has 2 stages, but the program 4"),
    ]:
        config = make_config(4, 2)
        given = dict(settings)
        if "pipeline_model_parallel_layout" in given:
            config = make_config(4, 2, **given)
        vars(config).update({name: value for name, value in given.items() if name != "pipeline_model_parallel_layout"})
        with pytest.raises(UsageError, match=reason):
            build_chunks(ppcc.compile("zero_bubble_v", P=2, M=4), partial(make_model, config, False))
    uninstall()


def run_refused_chunks(refused: Callable[..., None], chunk: Any) -> None:
    """Chunks whose gradients would be wrong."""
    from megatron.core import parallel_state

    plain, split = ppcc.compile("one_f_one_b", P=2, M=4), ppcc.compile("zb_h1", P=2, M=4)
    wrapped = nn.parallel.DistributedDataParallel(chunk, process_group=parallel_state.get_data_parallel_group())
    refused(plain, "expects one backward after each forward.*wrap chunks in megatron.core.distributed", model=wrapped)
    chunk.decoder.layers[0].wrapped = nn.parallel.DistributedDataParallel(nn.Linear(2, 2), process_group=parallel_state.get_data_parallel_group())
    refused(plain, "`decoder.layers.0.wrapped` of stage . is a DistributedDataParallel", model=chunk)
    del chunk.decoder.layers[0].wrapped
    refused(split, "recompute_granularity checkpoints activations", recompute_granularity="selective")
    hook = torch.autograd.graph.register_multi_grad_hook(list(chunk.decoder.layers[0].parameters()), lambda gradients: None)
    refused(split, "a hook on several weights, which I and W would call twice")
    hook.remove()


def run_other_placements(config: Any) -> None:
    """Chunks are for the placement that they were built for, and replicas need whole gradients."""
    from megatron.core import parallel_state, pipeline_parallel
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from ppcc.megatron import ForwardBackward, build_chunks, install, uninstall
    from ppcc.torch import UsageError

    def refused(program: ppcc.Program, reason: str, chunks: list[Any]) -> None:
        with pytest.raises(UsageError, match=reason):
            call(ForwardBackward(program), chunks, None)

    parallel_state.set_virtual_pipeline_model_parallel_world_size(2)
    config = make_config(4, 2, 2)
    v, looped, both = (ppcc.compile(name, P=2, M=4) for name in ("zero_bubble_v", "interleaved_1f1b", "dualpipe"))
    refused(looped, "was built as stage . of another placement", build_chunks(v, partial(make_model, config, False)))
    uninstall()
    settings = DistributedDataParallelConfig(use_distributed_optimizer=True)
    for program, tied in ((both, False), (v, True)):
        chunks = build_chunks(program, partial(make_model, config, tied))
        refused(program, "use_distributed_optimizer leaves each rank a part", [DistributedDataParallel(config, settings, chunk) for chunk in chunks])
        uninstall()

    install(v)
    ours = pipeline_parallel.get_forward_backward_func()
    with pytest.raises(UsageError, match="lets Megatron run another program"):
        build_chunks(looped, partial(make_model, config, False))
    assert isinstance(ours, ForwardBackward) and pipeline_parallel.get_forward_backward_func() is ours
    uninstall()
    parallel_state.set_virtual_pipeline_model_parallel_world_size(None)


SKIPPING = """
schedule skipping(M: int = 4) {
  ranks 2; microbatches M;
  stages 4; stage s on rank s % 2;
  edge stage 0 -> stage 2;
  on rank r { repeat M { F(0); } repeat M { F(1); } repeat M { B(1); } repeat M { B(0); } }
}
"""


LAST_FIRST = """
schedule last_first(M: int = 4) {
  ranks 2; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { I; } for i in 0 .. M { W(mb: M - 1 - i); } }
}
"""


class Keeping(nn.Module):
    """A linear layer that keeps its gradients of weights for later, as TransformerEngine's with delay_wgrad_compute."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) * 0.1)
        self.wgrad_store: list[tuple[Tensor, Tensor]] = []

    def forward(self, x: Tensor) -> Tensor:
        apply: Any = KeepingFunction.apply
        result: Tensor = apply(x, self.weight.detach(), self.wgrad_store)
        return result

    def backward_dw(self) -> None:
        x, gradient_ = self.wgrad_store.pop(0)
        added = gradient_.flatten(0, -2).T @ x.flatten(0, -2)
        self.weight.grad = added if self.weight.grad is None else self.weight.grad + added


class KeepingFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, store: list[Any]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.store = store
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, gradient_: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        ctx.store.append((x, gradient_))
        return gradient_ @ weight, None, None


class Delaying(nn.Module):
    """A chunk of such layers, with what Megatron asks of a chunk."""

    def __init__(self, config: Any, layers: int) -> None:
        from megatron.core.enums import ModelType

        super().__init__()
        self.config, self.model_type = config, ModelType.encoder_or_decoder
        self.layers = nn.ModuleList(Keeping(config.hidden_size) for _ in range(layers))
        self.given: Tensor | None = None

    def set_input_tensor(self, tensors: list[Tensor | None]) -> None:
        (self.given,) = tensors

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.given is None else self.given
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def run_delayed(rank: int) -> None:
    from megatron.core import parallel_state
    from ppcc.megatron import ForwardBackward

    config = make_config(2, 2)
    config.delay_wgrad_compute = config.gradient_accumulation_fusion = True
    config.deallocate_pipeline_outputs = True
    torch.manual_seed(5)
    whole = [Delaying(config, 1) for _ in range(2)]
    batch = [torch.randn(LENGTH, ROWS, config.hidden_size) for _ in range(4)]

    def step(data: Iterator[Tensor], model: nn.Module) -> Any:
        return model(next(data)), lambda output: (output.square().mean(), {})

    for x in batch:
        for module in whole:
            module.given = x.requires_grad_()
            x = module(x)
        (x.square().mean() / 4).backward()
        for module in whole:
            module.layers[0].backward_dw()
    wanted = whole[rank].layers[0].weight.grad.clone()
    whole[rank].layers[0].weight.grad = None
    for name in ("zb_h1", "one_f_one_b"):
        call(ForwardBackward(ppcc.compile(name, P=2, M=4)), whole[rank], iter(batch), forward_step_func=step)
        got = whole[rank].layers[0].weight.grad
        assert float((got - wanted).abs().max()) <= 1e-6 * float(wanted.abs().max()), name
        whole[rank].layers[0].weight.grad = None
    parallel_state.destroy_model_parallel()


def run_wrong_type(rank: int) -> None:
    """A message of another type than the receiver expects is refused, and leaves no_sync."""
    from ppcc.megatron import ForwardBackward, build_chunks, uninstall, use_cpu
    from ppcc.torch import UsageError
    from ppcc.torch._failures import abort_groups

    use_cpu()
    initialize(2)
    config, entered = make_config(4, 2), []
    program = ppcc.compile("one_f_one_b", P=2, M=4)
    (chunk,) = build_chunks(program, partial(make_model, config, False))

    @contextmanager
    def no_sync() -> Iterator[None]:
        entered.append(True)
        yield
        entered.pop()

    config.no_sync_func, config.pipeline_dtype = no_sync, torch.bfloat16
    reason = "rank 0, 0F0: gave a tensor of torch.float32, but pipeline_dtype is torch.bfloat16"
    with pytest.raises(UsageError if rank == 0 else RuntimeError, match=reason if rank == 0 else None):
        call(ForwardBackward(program), chunk, iter(batches(0, 4)))
    assert not entered
    abort_groups()
    uninstall()


def test_messages_have_the_pipeline_dtype() -> None:
    spawn.run(run_wrong_type, 2)


def test_megatron_asks_the_program() -> None:
    spawn.run(run_installed, 2)


def test_data_comes_by_microbatch() -> None:
    from ppcc.megatron._data import Microbatches

    straight = iter(range(4))
    assert Microbatches.of(straight, [0, 1, 2, 3], 4) is straight
    source = iter(range(8))
    data = Microbatches.of(source, [2, 1], 4)
    for step in range(2):
        got = []
        for microbatch in (2, 1):
            data.seek(microbatch)
            got.append(next(data))
        data.finish()
        assert got == [4 * step + 2, 4 * step + 1]
    unread = iter(range(4))
    Microbatches.of(unread, [1], 4).finish()
    assert next(unread) == 0
