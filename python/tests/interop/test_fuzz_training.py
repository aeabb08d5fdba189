"""Random schedules on the loader; for long: `./dev fuzz training SECONDS` with the Python of `./dev interop`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FUZZER = Path(__file__).parents[3] / "test" / "property" / "fuzz.py"


def test_gradients_losses_and_activations() -> None:
    command = [sys.executable, FUZZER, Path(sys.executable).parent, "training", "--count=12", "--shrink=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
