"""Runs the training scripts of examples/ as their users do."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def losses_of(example: str, *options: str) -> list[float]:
    """Of the first step, the tenth and the twentieth, on two processes."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py", "--microbatches=4", "--steps=20"]
    ended = subprocess.run([*launcher, *options], cwd=EXAMPLES / example, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    losses = [float(loss) for loss in re.findall(r"^step \d+: loss ([\d.]+)(?:, \d+ ms)?$", ended.stdout, re.MULTILINE)]
    assert len(losses) == 3 and losses[2] < losses[1] < losses[0], ended.stdout
    return losses


@pytest.mark.parametrize("options", [["--schedule=seq1f1b", "--recompute"], ["--schedule=gpipe", "--tune"]])
def test_a_small_gpt_learns_under_any_schedule(options: list[str]) -> None:
    losses_of("gpt", "--layers=4", "--width=32", *options)


@pytest.mark.skipif(importlib.util.find_spec("megatron") is None, reason="NOT RUN because megatron-core is not installed")
@pytest.mark.parametrize("options", [[], ["--schedule=zero_bubble_v", "--chunks=2"]])
def test_a_small_gpt_of_megatron_learns(options: list[str]) -> None:
    assert 5 < losses_of("megatron", *options)[0] < 6  # The logarithm of 256 is 5.5.


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="NOT RUN because DeepSpeed is not installed")
def test_a_pipeline_of_deepspeed_learns() -> None:
    losses_of("deepspeed", "--schedule=one_f_one_b")
