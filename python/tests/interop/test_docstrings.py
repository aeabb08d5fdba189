"""Runs the examples in the docstrings of ppcc.torch, and of ppcc.tune."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("ppcc.torch", "ppcc.torch._check", "ppcc.torch._checkpoint", "ppcc.torch._overlap", "ppcc.torch._retune", "ppcc.torch._runtime", "ppcc.torch._tune", "ppcc.tune")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
