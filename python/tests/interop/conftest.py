"""These tests are for PyTorch; without it they are left to `./dev interop`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
