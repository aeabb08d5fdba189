"""Small GPT models of Megatron's, and their gradients without a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from . import spawn

spawn.preload("megatron.core.models.gpt.gpt_layer_specs", "ppcc.megatron")

HIDDEN, LENGTH, WORDS, ROWS = 32, 8, 48, 2
RATE, STEPS = 0.1, 2


def initialize(pipeline: int) -> None:
    from megatron.core import parallel_state

    parallel_state.destroy_model_parallel()
    parallel_state.initialize_model_parallel(pipeline_model_parallel_size=pipeline)


def make_config(layers: int, pipeline: int = 1, chunks: int = 1, **more: Any) -> Any:
    from megatron.core.transformer import TransformerConfig

    virtual = chunks if chunks > 1 else None
    return TransformerConfig(
        num_layers=layers,
        hidden_size=HIDDEN,
        num_attention_heads=4,
        use_cpu_initialization=True,
        pipeline_model_parallel_size=pipeline,
        virtual_pipeline_model_parallel_size=virtual,
        pipeline_dtype=torch.float32,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        batch_p2p_sync=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        **{"deallocate_pipeline_outputs": True, **more},
    )


def make_model(config: Any, tied: bool, *, pre_process: bool, post_process: bool, vp_stage: int | None) -> nn.Module:
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec

    model: nn.Module = GPTModel(
        config,
        get_gpt_layer_local_spec(),
        vocab_size=WORDS,
        max_sequence_length=LENGTH,
        pre_process=pre_process,
        post_process=post_process,
        share_embeddings_and_output_weights=tied,
        vp_stage=vp_stage,
    )
    return model


def weights(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """By the names that they have in the whole model."""
    inner: Any = model
    while isinstance(getattr(inner, "module", None), nn.Module):
        inner = inner.module
    numbers = {str(index): layer.layer_number - 1 for index, layer in enumerate(inner.decoder.layers)}
    for name, weight in inner.named_parameters():
        parts = name.split(".")
        if parts[:2] == ["decoder", "layers"]:
            parts[2] = str(numbers[parts[2]])
        elif name == "output_layer.weight" and inner.share_embeddings_and_output_weights:
            parts = ["embedding", "word_embeddings", "weight"]
        yield ".".join(parts), weight


def gradient(weight: nn.Parameter) -> Tensor | None:
    main: Tensor | None = getattr(weight, "main_grad", None)
    return weight.grad if main is None else main


def batches(step: int, count: int, varied: bool = False) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(100 + step)
    made = []
    for number in range(count):
        length = LENGTH - (number % 3 if varied else 0)
        words = torch.randint(0, WORDS, (ROWS, length + 1), generator=generator)
        made.append({"tokens": words[:, :-1], "labels": words[:, 1:], "mask": torch.rand(ROWS, length, generator=generator)})
    return made


def loss_of(mask: Tensor, output: Tensor, non_loss_data: bool = False) -> Any:
    if non_loss_data:
        return output
    loss = (output * mask).sum() / mask.sum()
    return loss, {"loss": loss.detach().clone()}


def loss_and_tokens(mask: Tensor, output: Tensor) -> Any:
    """As with calculate_per_token_loss: a sum, and over how many tokens."""
    kept = mask > 0.25
    loss = (output * kept).sum()
    return loss, kept.sum().to(torch.int), {"loss": loss.detach().clone()}


def forward_step(data: Iterator[dict[str, Tensor]], model: nn.Module, *, loss: Callable[..., Any] = loss_of) -> Any:
    batch = next(data)
    length = batch["tokens"].shape[1]
    positions = torch.arange(length).expand(ROWS, -1)
    causal = torch.triu(torch.ones(1, 1, length, length, dtype=torch.bool), diagonal=1)
    return model(batch["tokens"], positions, causal, labels=batch["labels"]), partial(loss, batch["mask"])


class Reference:
    """The whole model on one process: weights, gradients and losses at each step of plain gradient descent."""

    def __init__(self, layers: int, tied: bool, microbatches: int, *, per_token: bool, varied: bool) -> None:
        torch.manual_seed(3)
        model = make_model(make_config(layers), tied, pre_process=True, post_process=True, vp_stage=None)
        self.weights: list[dict[str, Tensor]] = []
        self.gradients: list[dict[str, Tensor]] = []
        self.losses: list[list[float]] = []
        for step in range(STEPS):
            self.weights.append({name: weight.detach().clone() for name, weight in weights(model)})
            losses, tokens = [], 0
            for batch in batches(step, microbatches, varied):
                output, loss = forward_step(iter([batch]), model, loss=loss_and_tokens if per_token else loss_of)
                value, *count, _ = loss(output)
                tokens += int(count[0]) if count else 0
                (value if per_token else value / microbatches).backward()
                losses.append(float(value))
            found = {name: weight.grad.clone() for name, weight in weights(model) if weight.grad is not None}
            self.gradients.append({name: grad / tokens if per_token else grad for name, grad in found.items()})
            self.losses.append(losses)
            for name, weight in weights(model):
                weight.data -= RATE * self.gradients[-1][name]
                weight.grad = None
