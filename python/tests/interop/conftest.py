"""These tests are for PyTorch; without it they are left to `./dev interop`."""

import importlib.util
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # Of two, one waits on busy machines.

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]

if importlib.util.find_spec("torch"):
    from . import where

    where.use_device()
