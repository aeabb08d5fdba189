"""Texts that are no programs end in ppcc.Error, whatever is wrong with them, and take little memory."""

from __future__ import annotations

import copy
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import ppcc
import pytest

from . import SANITIZED

ODD_VALUES: list[Any] = [
    None, True, -1, 0, 7, 1.5, float("nan"), 2**31, 2**64, 10**30, "", "x", "\ud800", [], [[]], [None], [-1, 10**12], {}, {"x": [1]}
]  # fmt: skip


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything in a document."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*before, key)
        yield from paths(value[key], (*before, key))


def mutated_documents(document: dict[str, Any]) -> Iterator[str]:
    """Of each value all strange ones; without it; and twice."""
    for path in list(paths(document)):
        holder: Any = document
        for key in path[:-1]:
            holder = holder[key]
        last = path[-1]
        value = holder[last]
        for strange in ODD_VALUES:
            holder[last] = strange
            yield json.dumps(document)
        holder[last] = value
        if isinstance(holder, list):
            holder.insert(last, value)
            yield json.dumps(document)
            del holder[last]
        whole = copy.copy(holder)
        del holder[last]
        yield json.dumps(document)
        holder.clear()
        (holder.extend if isinstance(holder, list) else holder.update)(whole)


def read_everything(program: ppcc.Program) -> None:
    """Everything that reads the document later."""
    str(program), repr(program), program.name, program.digest, program.waits, program.num_microbatches, program.has_messages()
    for rank in range(min(program.num_ranks, 4)):
        for action in program.actions[rank]:
            str(action), action.peer_rank, action.site, action.phase
        program.local_stages(rank), list(program.groups(rank)), program.columns(rank)
    for pipe in program.pipes:
        for stage in range(min(pipe.num_stages, 4)):
            pipe.sources(stage), pipe.readers(stage)


HEADERS = """
schedule heads() {
  ranks 4; microbatches 2; slices 2; placement linear;
  edge stage 1 -> stage 3; no edge stage 2 -> stage 3;
  on rank r { repeat 2 { F; } repeat 2 { B; } }
}
"""


def documents() -> list[dict[str, Any]]:
    rules = ["reduce_replicas", "reduce_embedding", "step(true)"]
    programs = [ppcc.compile("dualpipe", P=2, M=4, rules=rules), ppcc.compile_source(HEADERS)]
    return [json.loads(program.json) for program in programs]


@pytest.mark.parametrize("number", [0, 1])
def test_mutated_programs_raise_only_error(number: int) -> None:
    document = documents()[number]
    read = refused = 0
    for text in mutated_documents(document):
        try:
            read_everything(ppcc.Program.from_json(text))
            read += 1
        except ppcc.Error as error:
            assert str(error)
            refused += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error
    assert read > 100 and refused > 1000, (read, refused)


def test_other_text_raises_only_error() -> None:
    text = json.dumps(documents()[0])
    for other in [
        "", "[]", "null", "{}", "{", '{"format": "ppcc.program"}', "[" * 100_000, '{"a":' * 100_000, "1" * 10_000, text[: len(text) // 2],
        text.replace("[", "{", 1), text + "]", text.replace('"version": 1', '"version": [1]'), text.replace('"version": 1', '"version": 9'),
    ]:  # fmt: skip
        with pytest.raises(ppcc.Error):
            ppcc.Program.from_json(other)


def test_errors_name_the_json_path() -> None:
    document = documents()[0]
    document["pipes"][1]["rank_of_stage"][0] = 9
    with pytest.raises(ppcc.Error, match=r"`pipes\[1\].rank_of_stage` is 9, but must be from 0 to 1"):
        ppcc.Program.from_json(json.dumps(document))
    document = documents()[0]
    del document["kinds"][2]["class"]
    with pytest.raises(ppcc.Error, match=r"`kinds\[2\].class` is missing"):
        ppcc.Program.from_json(json.dumps(document))


HOSTILE = """
import json, resource, sys
import ppcc
document = json.loads(sys.stdin.read())
ppcc.compile("gpipe", P=2, M=2)
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
families = {key: value for key, value in document.items() if key not in ("actions", "columns", "sites", "phases", "params")}
for change in (
    {"ranks": 10**12},
    {"ranks": 10**12, "actions": []},
    families | {"families": [], "actions": None, "ranks": 10**12},
    {"pipes": [document["pipes"][0] | {"microbatches": [0, 10**18]}]},
    {"pipes": [document["pipes"][0] | {"microbatches": [0, 2**31 - 1]}]},
    {"pipes": [document["pipes"][0] | {"slices": 10**18}]},
    {"waits": [[10**30]]},
    {"version": 2, "loops": [[[0, 1, 10**9, 1]]] * 2},
):
    try:
        program = ppcc.Program.from_json(json.dumps(document | change))
        program.num_microbatches, program.digest, program.local_stages(0), program.actions[0]
    except ppcc.Error:
        pass
# Unlike ru_maxrss this is of the program alone, not of the process that started it.
print("ended", next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_large_numbers_take_no_memory() -> None:
    most = 2 << 30  # Of addresses; Python and the compiler take a quarter.
    if SANITIZED:  # AddressSanitizer reserves more.
        most = resource.RLIM_INFINITY
    ended = subprocess.run(
        [sys.executable, "-c", HOSTILE, str(most)], input=json.dumps(documents()[0]), capture_output=True, text=True, timeout=600
    )
    word, _, kibibytes = ended.stdout.partition(" ")
    assert word == "ended", ended.stderr
    assert int(kibibytes) < 1 << 20
