"""Finds the compiler and runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from ._diagnostics import CompileError, Error, UsageError, parse_diagnostics

Value: TypeAlias = "bool | int | float | str"
Costs: TypeAlias = "Mapping[str, Value] | str | os.PathLike[str]"
"""Costs by name, as `--cost NAME=VALUE` takes them, or the path of a file of costs (docs/reports.md)."""


def compiler() -> Path:
    """The compiler that is used: `$PPCC` if it is set, else that of the package, else `ppcc` on the PATH."""
    if chosen := os.environ.get("PPCC"):
        return Path(chosen)
    packaged = resources.files("ppcc") / "bin" / "ppcc"
    if packaged.is_file():
        return Path(str(packaged))
    if found := shutil.which("ppcc"):
        return Path(found)
    raise Error("the compiler is not there: install the package (pip install .), or set PPCC to its path")


def run(arguments: Sequence[str], text: str | None = None) -> str:
    """Runs the compiler with `text` as its standard input and gives its standard output.

    Raises CompileError for errors in the input, UsageError for wrong options. Warnings become Python warnings.
    """
    command = [str(compiler()), "--diagnostics-format=json", *arguments]
    try:
        done = subprocess.run(
            command, input="" if text is None else text, capture_output=True, text=True, encoding="utf-8", check=False
        )
    except OSError as error:
        raise Error(f"cannot run {command[0]}: {error}") from error
    diagnostics, rest = parse_diagnostics(done.stderr)
    if done.returncode == 2:
        raise UsageError(rest.removeprefix("ppcc: error: "))
    if done.returncode != 0:
        raise CompileError(diagnostics, rest or f"ppcc ended with exit status {done.returncode}")
    for found in diagnostics:
        warnings.warn(str(found), stacklevel=_frames_of_package())
    return done.stdout


def _frames_of_package() -> int:
    """How many frames up the caller of the package is, for warnings."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ppcc."):
        frame, depth = frame.f_back, depth + 1
    return depth


def definition(name: str, value: Value) -> str:
    """`NAME=VALUE` as the compiler reads it."""
    if isinstance(value, bool):
        return f"{name}={str(value).lower()}"
    if isinstance(value, (int, float, str)):
        return f"{name}={value}"
    raise TypeError(f"{name} is {value!r}, but values are numbers, booleans and text")


def cost_options(costs: Costs | None) -> list[str]:
    if costs is None:
        return []
    if isinstance(costs, Mapping):
        return [f"--cost={definition(name, value)}" for name, value in costs.items()]
    return [f"--costs={os.fspath(costs)}"]


def choice(option: str, value: Value | Sequence[str] | None) -> list[str]:
    """The option with its value or values; nothing for None."""
    if value is None:
        return []
    if isinstance(value, (bool, int, float, str)):
        return [definition(option, value)]
    return [f"{option}={','.join(value)}"]
