"""Runs the Python of docs/python.md, docs/training-python.md and docs/tuning.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from . import spawn

DOCS = Path(__file__).resolve().parents[3] / "docs"


def listing(name: str) -> str:
    """All Python of a page, as one program; lines keep their numbers."""
    text = (DOCS / name).read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) > 1
    program = ""
    for block in blocks:
        program += "\n" * (text[: block.start(1)].count("\n") - program.count("\n")) + block[1]
    return program


def test_the_page_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(listing("python.md"), "python.md", "exec"), {})
    assert (tmp_path / "program.html").stat().st_size > 0


def train(rank: int, text: str) -> None:
    names: dict[str, Any] = {}
    with spawn.as_launched():
        exec(compile(text, "training-python.md", "exec"), names)
    assert names["result"].peak_activations > 0


def test_the_page_on_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spawn.run(train, 4, listing("training-python.md"))


SCRIPTS = [
    ("tuning.md", "train.py", 4, ["\nbound        ", "\nsynthesized ", "step 19: loss "]),
]


@pytest.mark.parametrize(("page", "script", "processes", "prints"), SCRIPTS)
def test_scripts_of_torchrun(page: str, script: str, processes: int, prints: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As typed there, without the launcher of PyTorch, which starts that of docs/first-hour.md; test/Docs runs the commands of ppcc."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text()
    assert f"torchrun --nproc-per-node={processes} {script}" in text
    (program,) = re.findall(rf"^```python\n(# {script}\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / script).write_text(program)
    output = spawn.run_script(tmp_path / script, processes)
    assert all(printed in output for printed in prints), output
