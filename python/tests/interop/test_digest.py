"""Ranks that have different programs raise errors before anything is sent."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import ppcc
import pytest
from ppcc.torch import Runtime, UsageError, load_torch_runtime
from ppcc.torch._channels import Channels
from torch.distributed.pipelining import PipelineStage

from . import spawn
from .models import Plain, loss_fn, make_batch, make_stages
from .test_runtime import has_ranks, values
from .where import DEVICE

PAIRS = 100


def changed(document: dict[str, Any], random_: random.Random) -> dict[str, Any]:
    """The same but for one value of one row, which ranks must agree on."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    row = random_.choice(random_.choice(copy["actions"]))
    column = copy["columns"].index(random_.choice(["kind", "stage", "microbatch", "peer", "group"]))
    row[column] += random_.choice([-1, 1]) if row[column] > 0 else 1
    return copy


def pairs() -> list[tuple[str, str]]:
    random_ = random.Random(1)
    names = ["one_f_one_b", "zero_bubble_v", "dualpipe", "interleaved_1f1b"]
    programs = [ppcc.compile(name, P=2, M=4, **options) for name in names for options in ({}, {"fuse": "batch"})]  # type: ignore[arg-type]
    documents = [json.loads(program.json) for program in programs]
    result: list[tuple[str, str]] = []
    while len(result) < PAIRS:
        one = random_.choice(documents)
        texts = json.dumps(one), json.dumps(changed(one, random_))
        with suppress(ppcc.Error):  # Some are no programs at all.
            ppcc.Program.from_json(texts[1])
            result.append(texts)
    return result


def run_pairs(rank: int, cases: list[tuple[str, str]]) -> None:
    def silent(*given: Any) -> Any:
        raise AssertionError("a message was sent")

    Channels.post = silent  # type: ignore[method-assign]
    for texts in cases:
        programs = list(map(ppcc.Program.from_json, texts))
        stages = make_stages(4, Plain)
        mine = {stage: stages[stage] for _, stage in programs[0].local_stages(rank)}
        both = f"rank 0 has the program {programs[0].name} with the digest {programs[0].digest}, but rank 1 has .* with {programs[1].digest}"
        both = both.replace("(", r"\(").replace(")", r"\)")
        with pytest.raises(UsageError, match=both):
            Runtime(programs[rank], mine, loss_fn=loss_fn)
        runtime = Runtime(programs[0], mine, loss_fn=loss_fn)
        with pytest.raises(UsageError, match=both):
            runtime.set_program(programs[rank])
        if len(programs[0].pipes) == 1:
            count = programs[0].pipes[0].num_stages
            with pytest.raises(UsageError, match=both):
                load_torch_runtime(programs[rank], [PipelineStage(stages[stage], stage, count, DEVICE) for stage in mine])


def test_programs_that_differ_in_one_row_are_refused() -> None:
    spawn.run(run_pairs, 2, pairs())


def run_parts(rank: int, folder: str, changed: int) -> None:
    # Rank 0 would see it: it reads all.
    ours = ("changed.json", max(rank, 1)) if rank == changed else ("program.json", rank)
    part = ppcc.Program.load(Path(folder, ours[0]), rank=ours[1])
    stages = make_stages(4, Plain)
    mine = {stage: stages[stage] for _, stage in part.local_stages(rank)}
    if changed < 4:
        with pytest.raises(UsageError, match="have changed since the compiler wrote the digest"):
            Runtime(part, mine, loss_fn=loss_fn)
    part = ppcc.Program.load(Path(folder, "program.json"), rank=rank)
    read: list[int] = []
    columns = part._rows._columns
    part._rows._columns = lambda of: (read.append(of), columns(of))[1]  # type: ignore[func-returns-value]
    runtime = Runtime(part, mine, loss_fn=loss_fn)
    batch, target = make_batch(4)
    runtime.step(batch, target=target)
    assert rank < 3 or set(read) == {0, 2, 3}  # Rank 0 tells whether there are messages, its neighbour which of them wait.
    other = ppcc.Program.load(Path(folder, "other.json"), rank=rank)
    with pytest.raises(UsageError, match="rank 0 has the program one_f_one_b.* but rank 1 has gpipe"):
        runtime.set_program(other if rank else ppcc.Program.load(Path(folder, "program.json")))


@pytest.mark.parametrize("rank", [0, 1, 3, 4])
def test_rows_that_only_their_rank_reads_are_compared(tmp_path: Path, rank: int) -> None:
    """One rank has a file in which one of its rows is another one; 4: none has."""
    program = ppcc.compile("one_f_one_b", P=4, M=4)
    program.save(tmp_path / "program.json")
    ppcc.compile("gpipe", P=4, M=4).save(tmp_path / "other.json")
    for line, actions in enumerate(json.loads(program.json)["actions"]):
        if line == rank:
            first = next(row for row in actions if program.kinds[row[0]].is_compute)
            rows = json.dumps(actions, separators=(",", ":"))
            other = rows.replace(json.dumps(first, separators=(",", ":")), json.dumps([*first[:3], 3, *first[4:]], separators=(",", ":")))
            text = program.json.replace(rows, other)
            assert text != program.json
            (tmp_path / "changed.json").write_text(text)
    spawn.run(run_parts, 4, str(tmp_path), rank)


def run_part_of_other_size(rank: int, path: str) -> None:
    with pytest.raises(UsageError, match="the program is for 4 ranks, but the process group has 2"):
        Runtime(ppcc.Program.load(path, rank=rank + 1), {rank: Plain()}, loss_fn=loss_fn)


def test_parts_of_programs_of_other_sizes_are_refused(tmp_path: Path) -> None:
    ppcc.compile("one_f_one_b", P=4, M=4).save(tmp_path / "program.json")
    spawn.run(run_part_of_other_size, 2, str(tmp_path / "program.json"))


def run_sizes(rank: int) -> None:
    program = ppcc.compile("one_f_one_b", P=2 + rank, M=4)
    with pytest.raises(UsageError, match="rank 0 has the program one_f_one_b.* but rank 1 has one_f_one_b"):
        Runtime(program, {rank: Plain()}, loss_fn=loss_fn)
    # What one rank finds, all hear.
    same = ppcc.compile("one_f_one_b", P=2, M=4)
    with pytest.raises(UsageError, match="rank 1 has no module for stage 1"):
        Runtime(same, {0: Plain()} if rank == 0 else {}, loss_fn=loss_fn)


def run_transports(rank: int) -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=4, transport=["stream", "stream-per-edge"][rank])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="rank 0 has one_f_one_b.* for the transports .*, but rank 1 for "):
        Runtime(program, {rank: Plain()}, loss_fn=loss_fn)


def test_programs_for_other_transports_are_refused() -> None:
    one, other = (ppcc.compile("one_f_one_b", P=2, M=4, transport=name) for name in ("stream", "stream-per-edge"))  # type: ignore[arg-type]
    assert one.digest == other.digest and one.transports != other.transports
    spawn.run(run_transports, 2)


def test_programs_of_other_sizes_are_refused() -> None:
    spawn.run(run_sizes, 2)


def test_the_digest_is_that_of_the_compiler() -> None:
    for info in ppcc.schedules():
        program = ppcc.compile(info.name, params=values(info, 2) if has_ranks(info) else {"M": 4})
        assert program.digest == json.loads(program.json)["digest"], program.name
        assert program.digest == ppcc.Program.from_json(program.json).digest


def test_digest_ignores_source_locations() -> None:
    document = json.loads(ppcc.compile("one_f_one_b", P=2, M=4).json)
    column = document["columns"].index("site")
    for rows in document["actions"]:
        for row in rows:
            row[column] = 0
    assert ppcc.Program.from_json(json.dumps(document)).digest == ppcc.compile("one_f_one_b", P=2, M=4).digest
    assert re.fullmatch("[0-9a-f]{32}", ppcc.compile("gpipe", P=2, M=4).digest)
