"""What is here, and whether the package loads."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable

import ppcc
import ppcc.torch
import torch

from results import check, figure


def first_line(*command: str) -> str:
    if not shutil.which(command[0]):
        return "none"
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return next((line.strip() for line in reversed(done.stdout.splitlines()) if line.strip()), "no answer")


LOOKS: dict[str, Callable[[], object]] = {
    "Python": platform.python_version,
    "PyTorch": lambda: torch.__version__,
    "CUDA of PyTorch": lambda: torch.version.cuda,
    "NCCL of PyTorch": lambda: ".".join(map(str, torch.cuda.nccl.version())),
    "GPUs": lambda: [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())],
    "driver": lambda: first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
    "nvcc": lambda: first_line("nvcc", "--version"),
    "compute-sanitizer": lambda: first_line("compute-sanitizer", "--version"),
    "g++": lambda: first_line("g++", "-dumpfullversion"),
    "cores": os.cpu_count,
    "device of the tests": lambda: os.environ["PPCC_TEST_DEVICE"],
}

for name, look in LOOKS.items():
    try:
        figure(name, look())
    except Exception as error:  # What is not there is part of the answer.
        figure(name, f"{type(error).__name__}: {error}")
program = ppcc.compile("dualpipe", P=2, M=8)
check("the package compiles a schedule", program.simulate().makespan > 0)
check("the package is that of this folder", ppcc.__file__.startswith(os.environ["PYTHONPATH"]), ppcc.__file__)
