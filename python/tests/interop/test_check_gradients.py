"""python -m ppcc.check_gradients: schedules that compute the right gradients, and runtimes that do not."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ppcc
import pytest
from ppcc import check_gradients as checker

from . import spawn  # noqa: F401, its processes are forked from one that has imported PyTorch.

Result = tuple[Any, str, str]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Its exit code, and what it prints."""

    def run(*arguments: str | Path) -> Result:
        try:
            code: Any = checker.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return run


def test_command() -> None:
    done = subprocess.run([sys.executable, "-m", "ppcc.check_gradients", "zb1p", "-D", "P=2", "-D", "M=4"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "zb1p: gradients are those without a pipeline (2 ranks)\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["slimpipe", "-D", "P=2", "-D", "M=2", "-D", "V=2"],
        ["dualpipe", "-D", "P=4", "-D", "M=8", "--seed", "3"],
        ["one_f_one_b", "-D", "P=2", "-D", "M=4", "--dtype", "float32"],
        ["one_f_one_b", "-D", "P=2", "-D", "M=4", "--with", "recompute(1, 1)", "--with", "step"],
    ],
    ids=["slices", "two pipes", "float32", "rules"],
)
def test_right_gradients(arguments: list[str], check: Callable[..., Result]) -> None:
    assert check(*arguments) == (0, f"{arguments[0]}: gradients are those without a pipeline ({arguments[2][2:]} ranks)\n", "")


def test_files(tmp_path: Path, check: Callable[..., Result]) -> None:
    edges = Path(__file__).parents[3] / "test" / "Runtime" / "skip-edges.pp"
    program = tmp_path / "skip.json"
    ppcc.compile(edges).save(program)
    for file in edges, program:
        code, _, errors = check(file)
        assert code == 0, errors


def change(stage: checker.Block) -> None:
    assert stage.scale.grad is not None
    stage.scale.grad.mul_(1.001)


def drop(stage: checker.Block) -> None:
    stage.up.bias.grad = None


def work_wrongly(fault: Callable[[Any], None], *arguments: Any) -> None:
    class Wrong(checker.Runtime):
        def step(self, *args: Any, **options: Any) -> Any:
            result = super().step(*args, **options)
            if self.rank == 1:
                fault(self.stages[1])
            return result

    checker.Runtime = Wrong  # type: ignore[misc]
    checker._worker(*arguments)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (change, "`scale` of stage 1, on rank 1, differs by 0.001 of its largest value"),
        (drop, "`up.bias` of stage 1, on rank 1, differs by inf of its largest value"),
    ],
    ids=["wrong", "missing"],
)
def test_wrong_gradients_are_named(
    fault: Callable[[Any], None], found: str, check: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "_worker", functools.partial(work_wrongly, fault))
    assert check("one_f_one_b", "-D", "P=2", "-D", "M=4")[:2] == (1, f"one_f_one_b: {found}\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["one_f_one_b", "-D", "P=2", "-D", "M=2", "-D", "forward_only=true"], 1, "no backward"),
        (["gpip"], 1, "gpipe"),
        (["gpipe", "-D", "P"], 2, "NAME=VALUE"),
        (["none.json", "-D", "P=2"], 2, "only -D M"),
    ],
    ids=["no backward", "unknown schedule", "wrong parameter", "program with parameters"],
)
def test_refused(arguments: list[str], code: int, message: str, check: Callable[..., Result]) -> None:
    ended, _, errors = check(*arguments)
    assert ended == code
    assert message in errors
    assert "Traceback" not in errors
