"""Runs the examples in the docstrings of ppcc.torch, and of ppcc.tune; what importing ppcc.torch costs."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import ppcc.torch
import pytest

MODULES = ("ppcc.torch", "ppcc.torch._check", "ppcc.torch._checkpoint", "ppcc.torch._overlap", "ppcc.torch._retune", "ppcc.torch._runtime", "ppcc.torch._slice_cache", "ppcc.torch._tune", "ppcc.tune")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


def test_an_import_loads_no_more_of_pytorch() -> None:
    script = "import sys, torch; before = {*sys.modules}; import ppcc.torch; print(*({*sys.modules} - before))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300).stdout.split()
    assert "ppcc.torch" in loaded and [name for name in loaded if name.startswith("torch")] == []
    assert set(ppcc.torch.__all__) == set(ppcc.torch._MODULES)
    assert all(hasattr(ppcc.torch, name) for name in ppcc.torch.__all__)
