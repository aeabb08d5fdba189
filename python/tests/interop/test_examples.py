"""Runs the training scripts of examples/: some as their users do, who start them with torchrun."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import spawn

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SIZES = ["--microbatches=4", "--steps=20"]
SMALL = ["--layers=4", "--width=32"]


def losses_in(output: str) -> list[float]:
    """Of the first step, the tenth and the twentieth."""
    losses = [float(loss) for loss in re.findall(r"^step \d+: loss ([\d.]+)(?:, \d+ ms)?$", output, re.MULTILINE)]
    assert len(losses) == 3 and losses[2] < losses[1] < losses[0], output
    return losses


def losses_of(example: str, *options: str) -> list[float]:
    """On two processes."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py", *SIZES]
    ended = subprocess.run([*launcher, *options], cwd=EXAMPLES / example, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return losses_in(ended.stdout)


def test_a_small_gpt_learns_from_slices() -> None:
    losses_of("gpt", *SMALL, "--schedule=seq1f1b", "--recompute")


def test_a_small_gpt_learns_while_it_tunes() -> None:
    losses_in(spawn.run_script(EXAMPLES / "gpt" / "train.py", 2, *SIZES, *SMALL, "--schedule=gpipe", "--tune"))


@pytest.mark.skipif(importlib.util.find_spec("megatron") is None, reason="NOT RUN because megatron-core is not installed")
@pytest.mark.parametrize("options", [[], ["--schedule=zero_bubble_v", "--chunks=2"]])
def test_a_small_gpt_of_megatron_learns(options: list[str]) -> None:
    output = spawn.run_script(EXAMPLES / "megatron" / "train.py", 2, *SIZES, *options)
    assert 5 < losses_in(output)[0] < 6  # The logarithm of 256 is 5.5.


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="NOT RUN because DeepSpeed is not installed")
def test_a_pipeline_of_deepspeed_learns() -> None:
    losses_of("deepspeed", "--schedule=one_f_one_b")
