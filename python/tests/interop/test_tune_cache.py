"""Results of ppcc.torch.tune in files: found again, and refused when they are stale; and reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ppcc
import pytest
import torch
from ppcc.torch import Runtime, TuneResult, _linked, tune
from ppcc.torch._tune_cache import Cache, StaleError
from torch import nn

from . import spawn
from .models import WIDTH, loss_fn, make_batch
from .sleeping import Sleeper
from .where import DEVICE

pytestmark = pytest.mark.skipif(DEVICE.type != "cpu", reason="tune() refuses other devices")

M = 8


def run_cached(rank: int, text: str, folder: str) -> None:
    program = ppcc.Program.from_json(text)
    batch, target = make_batch(M)

    def run(layers: bool, size: int = 3, **arguments: Any) -> tuple[Runtime, TuneResult]:
        """The last rank takes five times as long."""
        times = (0.005, 0.005, 0.005) if rank else (0.001, 0.001, 0.001)
        stage = nn.Sequential(*(Sleeper(size * rank + one, WIDTH, times) for one in range(size)))
        runtime = Runtime(program, {rank: stage}, loss_fn=loss_fn)
        return runtime, tune(runtime, batch, target=target, steps=1, cache=folder, layers=layers, **arguments)

    def files() -> list[Path]:
        runtime._setup.groups.all_gather(None)
        return sorted(Path(folder).iterdir())

    for layers in (False, True):
        first, measured = run(layers)
        runtime, found = run(layers)
        assert found.cached and not measured.cached and found.steps == 0 and f"cache        from {folder}/tuned-" in str(found)
        assert found.layout == measured.layout and found.orders == measured.orders and found.layers == measured.layers
        assert runtime.program.digest == first.program.digest and TuneResult.from_json(found.to_json()) == found
        for a, b in zip(runtime.stages[rank].parameters(), first.stages[rank].parameters(), strict=True):
            assert torch.equal(a, b) and a.grad is None
        runtime.step(batch, target=target)
    assert measured.layout is not None
    if measured.layout != measured.given_layout:  # Else the machine was busy.
        assert len(list(runtime.stages[rank])) == len(measured.layout[rank]) != 3
    assert len(files()) == 2
    # Another model or limit is another job.
    assert not run(False, size=2)[1].cached and not run(False, memory_limit=10**9)[1].cached
    assert len(files()) == 4

    # A file that was changed is not used, but replaced; all ranks say so.
    if rank == 0:
        for path in Path(folder).iterdir():
            path.write_text(path.read_text().replace('"before": ', '"before": 1'))
    runtime, again = run(False)
    assert not again.cached and any(re.search("the cache was not used: .* does not have the digest that it states", one) for one in again.remarks)
    assert all(text == str(again) for text in runtime._setup.groups.all_gather(str(again)))
    assert run(False)[1].cached and len(files()) == 4

    # A rank that cannot run the program.
    check = _linked.LinkedProgram._check

    def fail(linked: Any, *arguments: Any) -> None:
        if linked.program.name != program.name:
            raise MemoryError("no room")

    if rank == 1:
        _linked.LinkedProgram._check = fail  # type: ignore[method-assign]
    runtime, last = run(False)
    if again.order != "given":
        assert not last.cached and last.remarks[0] == "the cache was not used: rank 1: MemoryError: no room", last
    assert runtime.program.digest == program.digest
    _linked.LinkedProgram._check = check  # type: ignore[method-assign]


def test_a_job_that_was_tuned_before(tmp_path: Path) -> None:
    spawn.run(run_cached, 2, ppcc.compile("gpipe", P=2, M=M).json, str(tmp_path))


def test_what_is_stale(tmp_path: Path) -> None:
    program = ppcc.compile("gpipe", P=1, M=4)
    runtime = Runtime(program, {0: nn.Linear(WIDTH, WIDTH).double()}, loss_fn=loss_fn)
    batch, target = make_batch(4)
    tune(runtime, batch, target=target, steps=1, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    document = json.loads(path.read_text())
    assert Cache(path, document["job"]).load() is not None and Cache(tmp_path / "none", {}).load() is None

    def stale(match: str, text: str, job: Any = document["job"]) -> None:
        path.write_text(text)
        with pytest.raises(StaleError, match=match):
            Cache(path, job).load()

    text = path.read_text()
    stale("is of another job", text, {})
    stale("another format or version", json.dumps(document | {"version": 2}))
    stale("does not have the digest that it states", json.dumps(document | {"program": program.json + " "}))
    stale("cannot be read: KeyError: 'digest'", "{}")
    stale("cannot be read", "[]")
    stale("Expecting value", "no JSON")


def test_the_report_as_a_page(tmp_path: Path) -> None:
    program = ppcc.compile("gpipe", P=1, M=4)
    stage = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)).double()
    runtime = Runtime(program, {0: stage}, loss_fn=loss_fn)
    batch, target = make_batch(4)
    result = tune(runtime, batch, target=target, steps=1, layers=True, output=tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<iframe") == 2 and page.count("<table>") >= 2 and "prefers-color-scheme: dark" in page
    assert f"{result.after:.4g} ms" in page and "<td>Linear</td>" in page
    # Figures have four digits, or the sums of such.
    assert not re.search(r"[0-9]+[.][0-9]{8}", result.why)
