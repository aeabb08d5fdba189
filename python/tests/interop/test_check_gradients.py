"""python -m ppcc.check_gradients: schedules that compute the right gradients, and runtimes that do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ppcc
import pytest

WRONG = """
import sys
import ppcc.check_gradients as checker

class Wrong(checker.Runtime):
    def step(self, *args, **options):
        result = super().step(*args, **options)
        if self.rank == 1:
            {fault}
        return result

checker.Runtime, checker.START_METHOD = Wrong, "fork"
sys.exit(checker.main(["one_f_one_b", "-D", "P=2", "-D", "M=4"]))
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300)


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run("-m", "ppcc.check_gradients", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["zb1p", "-D", "P=2", "-D", "M=4"],
        ["slimpipe", "-D", "P=2", "-D", "M=2", "-D", "V=2"],
        ["dualpipe", "-D", "P=4", "-D", "M=8", "--seed", "3"],
        ["one_f_one_b", "-D", "P=2", "-D", "M=4", "--dtype", "float32"],
        ["one_f_one_b", "-D", "P=2", "-D", "M=4", "--with", "recompute(1, 1)", "--with", "step"],
    ],
    ids=["split backward", "slices", "two pipes", "float32", "rules"],
)
def test_right_gradients(arguments: list[str]) -> None:
    done = check(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{arguments[0]}: gradients are those without a pipeline ({arguments[2][2:]} ranks)\n"


def test_files(tmp_path: Path) -> None:
    edges = Path(__file__).parents[3] / "test" / "Runtime" / "skip-edges.pp"
    program = tmp_path / "skip.json"
    ppcc.compile(edges).save(program)
    for file in edges, program:
        done = check(file)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("self.stages[1].scale.grad.mul_(1.001)", "`scale` of stage 1, on rank 1, differs by 0.001 of its largest value"),
        ("self.stages[1].up.bias.grad = None", "`up.bias` of stage 1, on rank 1, differs by inf of its largest value"),
    ],
    ids=["wrong", "missing"],
)
def test_wrong_gradients_are_named(fault: str, found: str) -> None:
    done = run("-c", WRONG.format(fault=fault))
    assert (done.returncode, done.stdout) == (1, f"one_f_one_b: {found}\n"), done.stderr


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
def test_refused(arguments: list[str], code: int, message: str) -> None:
    done = check(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
