"""Runs the compiler, an extension module, in this process."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import _ppcc

from ._diagnostics import CompileError, UsageError, parse_diagnostics

P = ParamSpec("P")
R = TypeVar("R")
Input = TypeVar("Input")
Value: TypeAlias = "bool | int | float | str"
Costs: TypeAlias = "Mapping[str, Value | Sequence[float] | Mapping[str, Value | Sequence[float]]] | str | os.PathLike[str]"
"""Costs by name, as for `--cost NAME=VALUE`, with lists by stage or rank, or by item and subject, as in a file of costs: `{"F": [1, 2]}` is
`{"cost": {"F": [1, 2]}}`; or the path of such a file (docs/reports.md)."""


def run(arguments: Sequence[str], text: str | None = None) -> str:
    """Runs a command line of the compiler and returns its standard output; the input `-` stands for `text`.

    Raises CompileError for errors in the input, UsageError for invalid options. Warnings become Python warnings.
    """
    code, output, errors = _ppcc.run(_checked(arguments), text)
    _report(code, errors)
    return output


def run_verdict(arguments: Sequence[str]) -> tuple[bool, str]:
    """As `run`, for commands whose exit status 1 with an output and without an error is a "no"."""
    code, output, errors = _ppcc.run(_checked(arguments), None)
    is_no = code == 1 and output and not any(found.severity == "error" for found in parse_diagnostics(errors)[0])
    _report(0 if is_no else code, errors)
    return code == 0, output


def compile_native(arguments: Sequence[str], text: str | None = None) -> _ppcc.Program:
    """Returns the program that a command line compiles; otherwise as `run`."""
    code, _, errors, program = _ppcc.compile(_checked(arguments), text)
    _report(code, errors)
    assert program is not None
    return program


def main() -> None:
    """Runs the command `ppcc`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_ppcc.main(sys.argv[1:], None))


def _checked(arguments: Sequence[str]) -> list[str]:
    # An argument of a command line ends there.
    if any("\0" in argument for argument in arguments):
        raise ValueError("embedded null character")
    return [*arguments, "--diagnostics-format=json"]


def _report(code: int, errors: str) -> None:
    diagnostics, rest = parse_diagnostics(errors)
    if code == 2:
        raise UsageError(rest.removeprefix("ppcc: error: "))
    if code != 0:
        raise CompileError(diagnostics, rest or f"ppcc ended with exit status {code}")
    for found in diagnostics:
        warnings.warn(str(found), stacklevel=_frames_of_package())


def _frames_of_package() -> int:
    """The `stacklevel` of a warning for the caller of the package."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ppcc."):
        frame, depth = frame.f_back, depth + 1
    return depth


def definition(name: str, value: Value) -> str:
    """Formats `NAME=VALUE` as the compiler reads it."""
    if isinstance(value, bool):
        return f"{name}={str(value).lower()}"
    if isinstance(value, (int, float, str)):
        return f"{name}={value}"
    raise TypeError(f"{name} is {value!r}, but values are numbers, booleans and text")


def cost_options(costs: Costs | None) -> list[str]:
    if costs is None:
        return []
    if not isinstance(costs, Mapping):
        return [f"--costs={os.fspath(costs)}"]
    named: dict[str, Any] = {}
    for name, value in costs.items():
        named |= {f"{name}.{subject}": one for subject, one in value.items()} if isinstance(value, Mapping) else {name: value}
    return [
        f"--cost={name}={','.join(map(str, value))}" if isinstance(value, (list, tuple)) else f"--cost={definition(name, value)}"
        for name, value in named.items()
    ]


def option_argument(option: str, value: Value | Sequence[str] | None) -> list[str]:
    """The option with its value or values; nothing for None."""
    if value is None:
        return []
    if isinstance(value, (bool, int, float, str)):
        return [definition(option, value)]
    return [f"{option}={','.join(value)}"]


def input_argument(path: str | os.PathLike[str]) -> str:
    """The path of an input, which is no option whatever it begins with."""
    text = os.fspath(path)
    return os.path.join(os.curdir, text) if text.startswith("-") else text


def definitions(params: Mapping[str, Value] | None, more_params: Mapping[str, Value]) -> list[str]:
    """The options for parameters, given in two ways."""
    if twice := sorted({*(params or {})} & {*more_params}):
        raise TypeError(f"the parameter {twice[0]} is given twice, by name and in params")
    return [text for name, value in {**(params or {}), **more_params}.items() for text in ("-D", definition(name, value))]


def compile_arguments(
    *,
    params: Mapping[str, Value] | None = None,
    transport: str | Sequence[str] | None = None,
    comm_order: str | None = None,
    fuse: str | None = None,
    prefetch: int | None = None,
    preconnect: str | None = None,
    model: str | os.PathLike[str] | None = None,
    cluster: str | os.PathLike[str] | None = None,
    layout: str | None = None,
    costs: Costs | None = None,
    rules: str | Sequence[str] | None = None,
    rules_file: str | os.PathLike[str] | None = None,
    max_actions: int | None = None,
    for_all: str | None = None,
    **more_params: Value,
) -> list[str]:
    """The command line for the arguments of `compile`, which describes them."""
    words = [*definitions(params, more_params), *cost_options(costs)]
    for rule in [rules] if isinstance(rules, str) else rules or []:
        words += option_argument("--with", rule)
    options: dict[str, Value | Sequence[str] | os.PathLike[str] | None] = {
        "--transport": transport,
        "--comm-order": comm_order,
        "--fuse": fuse,
        "--prefetch": prefetch,
        "--preconnect": preconnect,
        "--model": model,
        "--cluster": cluster,
        "--layout": layout,
        "--rules": rules_file,
        "--max-actions": max_actions,
        "--for": for_all,
    }
    for option, value in options.items():
        words += option_argument(option, os.fspath(value) if isinstance(value, os.PathLike) else value)
    return words


def with_arguments_of(other: Callable[P, object]) -> Callable[[Callable[[Input], R]], Callable[Concatenate[Input, P], R]]:
    """Gives a function of an input and any keywords, `**arguments`, those of another function, for type checkers and help()."""

    def decorate(function: Callable[..., R]) -> Any:
        signature, named = inspect.signature(function), inspect.signature(other).parameters.values()
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*own, *named])  # type: ignore[attr-defined]
        return function

    return decorate
