"""On a GPU, where one is at hand: one rank, so that NCCL has nothing to carry. Not run on any GPU yet."""

from __future__ import annotations

import ppcc
import pytest
import torch
from ppcc.torch import Runtime

from .models import loss_fn, make_batch, make_stages, reference

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is at hand")


@pytest.mark.parametrize("rules", [[], ["offload"], ["recompute"]])
@pytest.mark.parametrize("name", ["gpipe", "zb_h1"])
def test_gradients_equal_those_of_the_host(name: str, rules: list[str]) -> None:
    program = ppcc.compile(name, P=1, M=4, rules=rules)
    wanted, _ = reference(1, 4)
    stage = make_stages(1)[0].cuda()
    batch, target = (tensor.cuda() for tensor in make_batch(4))
    runtime = Runtime(program, {0: stage}, loss_fn=loss_fn)
    runtime.step(batch, target=target)
    for found, expected in zip(stage.parameters(), wanted[0].parameters(), strict=True):
        assert found.grad is not None and expected.grad is not None
        torch.testing.assert_close(found.grad.cpu(), expected.grad, rtol=1e-4, atol=1e-6)
