"""Runs examples/gpt as its users do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GPT = Path(__file__).resolve().parents[3] / "examples" / "gpt"


@pytest.mark.parametrize("options", [["--schedule=seq1f1b", "--recompute"], ["--schedule=gpipe", "--tune"]])
def test_a_small_gpt_learns_under_any_schedule(options: list[str]) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    sizes = ["--microbatches=4", "--layers=4", "--width=32", "--steps=20"]
    ended = subprocess.run([*launcher, *sizes, *options], cwd=GPT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    losses = [float(loss) for loss in re.findall(r"^step \d+: loss ([\d.]+), \d+ ms$", ended.stdout, re.MULTILINE)]
    assert len(losses) == 3 and losses[2] < losses[1] < losses[0], ended.stdout
