"""Where a GPU is at hand, one rank on it, and several that share it by NCCL. docs/gpu.md says what has run on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ppcc
import pytest
import torch
from ppcc.torch import Runtime

from .models import loss_fn, make_batch, make_stages, reference
from .where import environment_of_rank

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is at hand")


@needs_gpu
@pytest.mark.parametrize("rules", [[], ["offload"], ["recompute"]])
@pytest.mark.parametrize("name", ["gpipe", "zb_h1"])
def test_gradients_equal_those_of_the_host(name: str, rules: list[str]) -> None:
    program = ppcc.compile(name, P=1, M=4, rules=rules)
    with torch.device("cpu"):
        stage, (wanted, _) = make_stages(1)[0].cuda(), reference(1, 4, device="cpu")
    batch, target = (tensor.cuda() for tensor in make_batch(4))
    runtime = Runtime(program, {0: stage}, loss_fn=loss_fn)
    runtime.step(batch, target=target)
    for found, expected in zip(stage.parameters(), wanted[0].parameters(), strict=True):
        assert found.grad is not None and expected.grad is not None
        torch.testing.assert_close(found.grad.cpu(), expected.grad, rtol=1e-4, atol=1e-6)


@needs_gpu
def test_ranks_share_a_gpu() -> None:
    tests = Path(__file__).with_name("test_runtime.py")
    environment = {**os.environ, "PPCC_TEST_DEVICE": "cuda"}
    command = [sys.executable, "-m", "pytest", "-q", "-k", "gradients_equal", str(tests)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ranks_that_share_a_gpu_have_hosts_of_their_own() -> None:
    hosts = {environment_of_rank(rank, 4, gpus=2)["NCCL_HOSTID"] for rank in range(4)}
    assert len(hosts) == 4
    assert environment_of_rank(1, 2, gpus=2) == {}
