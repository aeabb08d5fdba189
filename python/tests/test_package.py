"""The package without PyTorch."""

from __future__ import annotations

import doctest
import gc
import importlib
import json
import re
import runpy
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ppcc
import pytest

from . import SANITIZED

DOCUMENTED = ("ppcc", *(f"ppcc.{name}" for name in ("_compiler", "_diagnostics", "_diff", "_notebook", "_program", "_proofs", "_report", "_rows", "_sweep", "_timeline")))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


def test_every_public_name_has_a_docstring() -> None:
    for name in ppcc.__all__:
        public = getattr(ppcc, name)
        members = vars(public).items() if isinstance(public, type) else ()
        documented = [value for key, value in members if not key.startswith("_") and (callable(value) or isinstance(value, property))]
        for one in (public, *documented):
            summary = (one.__doc__ or "").partition("\n\n")[0]
            assert summary and "\n" not in summary, (name, one)


def test_the_package_has_the_version_of_the_compiler() -> None:
    assert ppcc.__version__ == ppcc.version() and ppcc.__version__.count(".") == 2


def test_schedules_have_summaries_and_parameters() -> None:
    found = {info.name: info for info in ppcc.schedules()}
    assert "dualpipe" in found
    assert found["dualpipe"].summary
    assert found["dualpipe"].parameters["P"] == "int >= 2 = 4"


def test_what_is_given_twice_or_cut_is_an_error() -> None:
    with pytest.raises(TypeError, match="the parameter M is given twice"):
        ppcc.compile("gpipe", M=3, params={"M": 4})
    with pytest.raises(ValueError, match="null"):
        ppcc.compile("gpipe\0.pp")


def test_a_program_has_typed_fields() -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=2)
    assert (program.schedule, program.num_ranks, program.num_microbatches) == ("one_f_one_b", 2, 2)
    assert program.params == {"P": 2, "M": 2, "forward_only": False}
    assert [str(action) for action in program.actions[1]][:2] == ["1RECV_F0", "1F0"]
    receive, forward, *_ = program.actions[1]
    assert receive.kind.is_recv and receive.peer == 0 and receive.peer_rank == 0
    assert forward.kind == ppcc.Kind("F", "compute") and forward.peer is None
    assert forward.site is not None and forward.site.file.endswith("one_f_one_b.pp")
    assert program.local_stages(1) == ((program.pipes[0], 1),)
    assert program.transports == ("stream",)
    assert "4" not in repr(program.pipes[0].microbatches) and len(program.pipes[0].microbatches) == 2


def test_a_model_and_a_cluster_serve_any_schedule() -> None:
    chosen = {"model": "gpt", "cluster": "dgx_h100", "layout": "by-cost"}
    by_name = {info.name: ppcc.compile(info.name, P=4, M=8, gpu=1e12, **chosen) for info in ppcc.schedules()}
    assert by_name["dualpipe"].params["hidden"] == 12288
    assert by_name["zb_h1"].simulate().makespan < by_name["one_f_one_b"].simulate().makespan
    alone = ppcc.compile_source(
        "schedule alone() { ranks 1; microbatches 1; placement linear; on rank r { F; B; } }", model="llama", layers=1
    )
    assert alone.params == {"layers": 1} | alone.params


def test_groups_run_together() -> None:
    program = ppcc.compile("dualpipe", P=2, M=4)
    cells = [str(group) for group in program.groups(0)]
    assert any(cell.startswith("(") and ";" in cell for cell in cells)
    assert sum(len(group.actions) for group in program.groups(0)) == len(program.actions[0])
    text = program.emit("actions").splitlines()[0].replace(")OVERLAP_F_B", ")")
    assert str(program).splitlines()[0] == text


def test_two_pipes_share_microbatches() -> None:
    down, up = ppcc.compile("dualpipe", P=4, M=8).pipes
    assert (list(down.microbatches), list(up.microbatches)) == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert up.rank_of_stage == (3, 2, 1, 0)
    assert (down.sources(0), down.sources(2), down.readers(3)) == ((), (1,), ())


def test_edges_can_be_left_out() -> None:
    source = """schedule heads() {
      ranks 4; microbatches 4; slices 2; placement linear;
      edge stage 1 -> stage 3; no edge stage 2 -> stage 3;
      on rank r { repeat 4 { F; } repeat 4 { B; } }
    }"""
    (pipe,) = ppcc.compile_source(source).pipes
    assert (pipe.gaps, pipe.slices) == ((2,), 2)
    assert (pipe.sources(3), pipe.readers(1), pipe.readers(2)) == ((1,), (2, 3), ())


def test_source_text_and_options() -> None:
    source = "schedule one(M: int) { ranks 1; microbatches M; placement linear; on rank r { repeat M { F; B; } } }"
    assert ppcc.compile_source(source, M=3).num_microbatches == 3
    program = ppcc.compile("one_f_one_b", P=2, M=2, comm_order="none")
    assert not program.has_messages()
    assert ppcc.compile("gpipe", P=2, M=2, transport=["stream", "buffered"]).transports == ("stream", "buffered")


def test_files_and_their_schedules(tmp_path: Path) -> None:
    file = tmp_path / "two.pp"
    body = "(M: int = 1) { ranks 1; microbatches M; placement linear; on rank r { repeat M { F; B; } } }"
    file.write_text(f"schedule a{body}\nschedule b{body}\n")
    assert ppcc.compile(f"{file}:b").schedule == "b"
    with pytest.raises(ppcc.CompileError, match="declares 2 schedules"):
        ppcc.compile(file)


def test_rules_place_declared_actions(tmp_path: Path) -> None:
    program = ppcc.compile("one_f_one_b", P=1, M=2, rules=["recompute", "step"])
    assert str(program) == "rank 0: 0F0 0R0 0B0 0F1 0R1 0B1 STEP"
    recomputation, step = (program.actions[0][position] for position in (1, -1))
    assert not recomputation.kind.is_compute and not recomputation.kind.is_message
    assert (step.kind.per, step.microbatch) == ("rank", -1)
    file = tmp_path / "rules.pp"
    file.write_text("action LOG { per stage; after B; collective all; } rule logs() { insert LOG after B; }")
    logged = ppcc.compile("gpipe", P=1, M=1, rules="logs", rules_file=file)
    assert str(logged).endswith("0B0 0LOG") and logged.actions[0][-1].kind.collective == "all"


def test_errors_carry_diagnostics() -> None:
    with pytest.raises(ppcc.CompileError) as caught:
        ppcc.compile_source("schedule s() {\n  ranks 1; microbatches 1; placement linear;\n  on rank r { F; repeat dept { B; } }\n}")
    (found,) = caught.value.errors
    assert (found.code, found.severity, found.line, found.column) == ("E0301", "error", 3, 25)
    assert "dept" in found.message and found.hint
    assert str(found) in str(caught.value)


def test_notes_have_locations() -> None:
    source = "schedule s() { ranks 1; microbatches 1; placement loop(2);\n  on rank r { F(1); F(0); B(1); B(0); } }"
    with pytest.raises(ppcc.CompileError) as caught:
        ppcc.compile_source(source)
    notes = caught.value.errors[0].notes
    assert [note.line for note in notes] == [2, 2] and notes[0].column != notes[1].column


def test_wrong_options_are_usage_errors() -> None:
    with pytest.raises(ppcc.UsageError, match="swep"):
        ppcc.compile("gpipe", comm_order="swep")
    with pytest.raises(TypeError, match="P is"):
        ppcc.compile("gpipe", P=None)  # type: ignore[arg-type]


def test_warnings_are_warnings(tmp_path: Path) -> None:
    file = tmp_path / "idle.csv"
    file.write_text("0F0,,0B0\n")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ppcc.load(file)
    assert "[E0654]" in str(seen[0].message) and seen[0].filename == __file__


def test_reports_are_typed() -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=2)
    report = program.simulate()
    assert (report.makespan, report.bound, report.messages) == (9, 9, 4)
    assert [rank.peak_activations for rank in report.ranks] == [2, 1]
    assert report.ranks[0].bubble == 3 and report.peak_activations == 2
    assert [(live.stage, live.microbatches, live.memory) for live in report.ranks[0].peak_live] == [(0, 2, 2)]
    slow = program.simulate({"F": 2, "B": 4, "latency": 0.5}, transport="buffered")
    assert slow.makespan > 18 and slow.transport == "buffered"


def test_reports_are_readable() -> None:
    report = ppcc.compile("one_f_one_b", P=2, M=4).simulate()
    assert repr(report) == "<Report one_f_one_b on stream: makespan 15, bubble 20.00 %, peak memory 2, 8 messages>"
    lines = str(report).splitlines()
    assert lines[0] in repr(report) and [line.split() for line in lines[2:]] == [["0", "12", "15", "3", "2", "2"], ["1", "12", "12", "0", "1", "1"]]
    assert report._repr_html_().count("<tr>") == 3 and "makespan 15" in report._repr_html_()
    escaped = ppcc.Report.from_json({**report.document, "schedule": "<a & b>"})._repr_html_()
    assert "&lt;a &amp; b&gt;" in escaped and "<a &" not in escaped


def test_costs_by_stage_are_lists() -> None:
    costs = [{"F": [1, 3], "latency": 0.5}, {"cost": {"F": [1, 3]}, "latency": 0.5}, {"cost.F": (1, 3), "latency": [0.5, 0]}]
    assert {ppcc.compile("gpipe", P=2, M=1).simulate(each).makespan for each in costs} == {9}
    with pytest.raises(TypeError, match="values are numbers"):
        ppcc.compile("gpipe", P=2, M=1).simulate({"cost": {"F": {"main": [1, 3]}}})  # type: ignore[dict-item]


def test_costs_come_from_files_too(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    file.write_text(json.dumps({"cost": {"F": 10}}))
    assert ppcc.compile("gpipe", P=1, M=1, costs=file).simulate().makespan == 12
    assert ppcc.compile("gpipe", P=1, M=1).simulate(file).makespan == 12


def test_timelines_show_themselves(tmp_path: Path) -> None:
    timeline = ppcc.compile("one_f_one_b", P=2, M=2).timeline({"F": 1})
    assert "<iframe" in timeline._repr_html_() and "srcdoc=" in timeline._repr_html_()
    assert timeline.svg.startswith("<svg") or timeline.svg.startswith("<?xml")
    assert timeline.text.strip()
    for name, begin in (("a.html", b"<!doctype"), ("a.svg", b"<"), ("a.txt", b"one_f_one_b")):
        timeline.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begin), name
    with pytest.raises(ValueError, match="ends in none of"):
        timeline.save(tmp_path / "a.pdf")


def test_csv_for_pytorch() -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=1)
    assert program.to_csv("compute_only") == "0F0,0B0\n1F0,1B0\n"
    assert program.to_csv(torch_version="2.10").splitlines()[0] == "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD"
    assert "0WAIT_SEND_F0" in program.to_csv(torch_version="2.15")
    assert "0UNSHARD" in program.to_csv(torch_version="2.10", fsdp=True)
    with pytest.raises(ppcc.CompileError, match="E0901"):
        ppcc.compile("dualpipe", P=2, M=4).to_csv()


def test_programs_are_saved_and_loaded(tmp_path: Path) -> None:
    program = ppcc.compile("dualpipe", P=2, M=4, costs={"F": 2})
    file = tmp_path / "program.json"
    program.save(file)
    again = ppcc.Program.load(file)
    assert again.actions == program.actions and again.pipes == program.pipes
    assert again.simulate().makespan == program.simulate().makespan
    assert ppcc.load(file).actions == program.actions


def saved(program: ppcc.Program, file: Path) -> Path:
    program.save(file)
    return file


def test_loaded_rows_are_those_that_were_saved(tmp_path: Path) -> None:
    for name, options in {"dualpipe": {"rules": "step(true)"}, "one_f_one_b": {"transport": ["stream", "rendezvous"]}}.items():
        program = ppcc.compile(name, P=4, M=8, **options)  # type: ignore[arg-type]
        file = saved(program, tmp_path / "program.json")
        for loaded in (ppcc.Program.load(file), *(ppcc.Program.load(file, rank=rank) for rank in range(4))):
            assert loaded.actions == program.actions and loaded.waits == program.waits
            assert [loaded.columns(rank) for rank in range(4)] == [program.columns(rank) for rank in range(4)]
            assert (loaded.json, loaded.digest, loaded.transports) == (program.json, program.digest, program.transports)
            assert loaded.preconnect == program.preconnect and loaded.pipes == program.pipes
            assert loaded.simulate().makespan == program.simulate().makespan
        with pytest.raises(IndexError, match="no rank 4"):
            ppcc.Program.load(file, rank=4)


def test_a_rank_reads_its_own_rows(tmp_path: Path) -> None:
    file = saved(ppcc.compile("gpipe", P=4, M=2), tmp_path / "program.json")
    text = file.read_text()
    damaged = text.replace("[7,0,1,0,2,", "[7,0,1,0,9,", 1)  # The peer of a receive of rank 1.
    file.write_text(damaged)
    assert damaged != text and len(ppcc.Program.load(file, rank=3).actions[3]) == 8
    for rank in (None, 0, 1):
        with pytest.raises(ppcc.Error):
            ppcc.Program.load(file, rank=rank)
    part = ppcc.Program.load(file, rank=2)
    with pytest.raises(ppcc.Error, match=r"actions\[1\]"):
        part.actions[1]
    file.write_text(text.replace("[7,0,1,0,2,", "[7,0,1,1,2,", 1))
    with pytest.raises(ppcc.Error, match="has changed since it was loaded"):
        part.actions[0]


def test_rows_of_other_forms_are_read_whole(tmp_path: Path) -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=4)
    file = tmp_path / "program.json"
    document = json.loads(program.json)
    other = {"new": {"actions": [1]}, **document}
    for text in (
        json.dumps(document),
        json.dumps(document, indent=0),
        json.dumps(other, indent=0),
        program.json.replace('"actions": [\n', '"new": {\n"actions": [\n]\n},\n"actions": [\n'),
        program.json.replace('"actions": [\n', '"actions":\n[\n'),
        program.emit("json", "--rolled"),
    ):
        file.write_text(text)
        assert ppcc.Program.load(file, rank=1).actions == program.actions, text[:99]
    del document["digest"]
    file.write_text(re.sub('"digest": .*\n', "", program.json))
    with pytest.raises(ppcc.Error, match="without `digest`"):
        ppcc.Program.load(file, rank=1)
    for broken in (program.json[: len(program.json) // 2], program.json.replace("]]\n]", "]]", 1), program.json.replace("[[", "{[")):
        file.write_text(broken)
        for rank in (None, 1):
            with pytest.raises(ppcc.Error):
                ppcc.Program.load(file, rank=rank)
    with pytest.raises(FileNotFoundError):
        ppcc.Program.load(tmp_path / "none.json")


LARGE = """
import sys, ppcc
def peak():  # Unlike ru_maxrss this is of the program alone, not of the process that started it.
    return 1024 * int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
ppcc.compile("gpipe", P=2, M=2)
before = peak()
program = ppcc.Program.load(sys.argv[1], rank=None if len(sys.argv) < 3 else int(sys.argv[2]))
assert len(program.actions[1]) > 1000
print(peak() - before)
"""


@pytest.mark.skipif(SANITIZED, reason="AddressSanitizer takes more memory")
def test_loading_takes_little_memory(tmp_path: Path) -> None:
    file = saved(ppcc.compile("one_f_one_b", P=32, M=6000), tmp_path / "program.json")
    size = file.stat().st_size
    taken = [int(subprocess.check_output([sys.executable, "-c", LARGE, file, *rank])) for rank in ([], ["1"])]
    assert size > 25e6 and taken[0] < 2.5 * size and taken[1] < size / 2, (size, taken)


def test_loops_are_unrolled() -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=12)
    rolled = program.emit("json", "--rolled")
    assert len(rolled) < len(program.json)
    assert ppcc.Program.from_json(rolled).actions == program.actions


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", '{"format": "other"}', '{"format": "ppcc.program", "version": 99}'):
        with pytest.raises(ppcc.Error):
            ppcc.Program.from_json(text)
    file = tmp_path / "damaged.json"
    file.write_text(ppcc.compile("gpipe", P=2, M=2).json.replace("[0,0,0,0,", "[1,0,0,0,", 1))
    with pytest.raises(ppcc.CompileError):
        ppcc.Program.load(file)


def test_rows_are_arrays() -> None:
    program = ppcc.compile("zero_bubble_v", P=4, M=8)
    for source in (program, ppcc.Program.from_json(program.json)):
        for rank, actions in enumerate(source.actions):
            columns = source.columns(rank)
            assert [column.format for column in columns] == ["i"] * 8 and columns.stage.readonly
            assert list(columns.stage) == [action.stage for action in actions]
            assert list(columns.microbatch) == [action.microbatch for action in actions]
            assert [source.kinds[kind] for kind in columns.kind] == [action.kind for action in actions]
            assert list(columns.peer) == [-1 if action.peer is None else action.peer for action in actions]
            assert list(columns.group) == [-1 if action.group is None else action.group for action in actions]
    assert ppcc.Program.from_json(program.json).actions == program.actions != ppcc.compile("gpipe", P=4, M=8).actions


def test_columns_outlive_their_program() -> None:
    stage = ppcc.compile("gpipe", P=2, M=3).columns(1).stage
    gc.collect()
    assert set(stage) == {1}


def test_one_rank_is_read_alone() -> None:
    program = ppcc.compile("gpipe", P=64, M=64)
    assert program.actions[-1][0].stage == 63 and list(program.actions._made) == [63]
    with pytest.raises(IndexError):
        program.actions[64]


def test_large_programs_are_quick() -> None:
    took = []
    for _ in range(3):
        before = time.process_time()
        program = ppcc.compile("one_f_one_b", P=32, M=1043)
        took.append(time.process_time() - before)
    assert sum(len(program.columns(rank).kind) for rank in range(32)) == 196_084
    assert min(took) < (3 if SANITIZED else 0.3), took


def test_threads_compile_side_by_side() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda m: ppcc.compile("dualpipe", P=4, M=m).json, [8, 10, 12, 14] * 4))
    assert made == [ppcc.compile("dualpipe", P=4, M=m).json for m in [8, 10, 12, 14]] * 4


def test_the_command_line_comes_along(tmp_path: Path) -> None:
    def ppcc_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from ppcc._run import main; main()", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert ppcc_command("gpipe", "-D", "P=1", "-D", "M=1", "--emit=actions").stdout == "rank 0: 0F0 0B0\n"
    assert ppcc_command("gpip").returncode == 1 and ppcc_command("--emt").returncode == 2


def test_the_best_order_is_found(tmp_path: Path) -> None:
    found = ppcc.synthesize("linear", P=4, M=12, costs={"memory.limit": 4}, comm_order="none")
    assert found.optimal and found.makespan == found.bound == 39 and found.gap == 0
    assert found.peak_memory == (4, 4, 4, 4) and found.why.startswith("rank ")
    assert found.program.simulate().makespan == 39
    assert repr(found) == "<SynthesisResult makespan 39, span 39, bound 39 (optimal), peak memory 4>"
    assert "<pre>" in found._repr_html_() and "->" not in found._repr_html_()
    family = ppcc.synthesize("linear", P=4, M=12, for_all="M", costs={"memory.limit": 4}, comm_order="none")
    assert (family.min_microbatches, family.microbatches, family.makespan, family.program.simulate().makespan) == (4, 12, 39, 39)
    (formula,) = family.formulas
    assert formula["makespan"] == {"slope": "3", "intercept": "3", "exact": True}
    assert family.at(100).simulate().makespan == 303
    again = ppcc.synthesize("linear", P=4, M=12, costs={"memory.limit": 1}, comm_order="none", recompute=True)
    assert again.makespan < 60 and "insert R before B, I" in again.text
    moved = ppcc.synthesize("linear", P=4, M=12, costs={"memory.limit": 3}, comm_order="none", offload=True)
    assert moved.makespan < 55 and "insert OFFLOAD after F" in moved.text
    cut = ppcc.synthesize("linear", P=2, M=4, layers="t*3,L", costs={"F.L": 2})
    assert cut.layout == "tt|tL"
    swept = ppcc.sweep("linear", P=4, M=12, limits=(0, 4), costs={"memory.static": 1}, comm_order="none", effort=2)
    assert [point.fits for point in swept.points] == [False, False, True, True, True]
    assert sum(point.knee for point in swept.points) == 1 and swept.points[4].makespan <= 44
    assert repr(swept) == "<Sweep of 5 limits>" and len(str(swept).splitlines()) == 6 and str(swept).lstrip().startswith("limit")
    assert swept._repr_html_().startswith("<svg") and "<td" in swept._repr_html_()
    axes = swept.plot().axes[0]
    assert [line.get_label() for line in axes.lines] == ["makespan", "bound"] and axes.texts[0].get_text().startswith("knee: ")
    (tmp_path / "costs.json").write_text('{"cost": {"F": 5, "I": 6, "W": 4}, "limit": 9}')
    swept = ppcc.sweep("linear", P=3, M=6, limits=(1, 2.5), costs=tmp_path / "costs.json", recompute=True, effort=1)
    times = [point.makespan for point in swept.points if point.makespan is not None]
    assert len(times) == 17 and times == sorted(times, reverse=True) and times[0] > times[-1]
    with pytest.raises(ValueError, match="below"):
        ppcc.sweep(limits=(3, 3))
    with pytest.raises(ppcc.CompileError, match="E1101"):
        ppcc.sweep("seq1f1b", limits=(1, 2))
    with pytest.raises(ppcc.CompileError) as caught:
        ppcc.synthesize("v", P=2, M=2, costs={"memory.limit": 1})
    assert caught.value.errors[0].code == "E1102"


def test_family_instantiates_one_program(tmp_path: Path) -> None:
    path = tmp_path / "family.json"
    path.write_text(ppcc.compile("one_f_one_b", P=4, M=1).emit("json"), encoding="utf-8")
    assert ppcc.Program.load(path).num_microbatches == 1
    main = "import ppcc._run; ppcc._run.main()"
    command = [sys.executable, "-c", main, "one_f_one_b", "-DP=4", "--for", "M", "-o", str(path)]
    subprocess.run(command, check=True)
    family = ppcc.Program.load(path)
    assert family.num_microbatches == 0 and family.num_ranks == 4
    for m in (1, 3, 57):
        program = family.at(M=m)
        assert program.json == ppcc.compile("one_f_one_b", P=4, M=m).json
    with pytest.raises(ppcc.CompileError, match="E1205"):
        family.at(N=3)


def test_a_comparison_is_a_table_and_a_page(tmp_path: Path) -> None:
    compared = ppcc.compare("zb_h1", "one_f_one_b", P=2, sweep={"M": [4, 8]}, costs={"F": 1, "B": 2})
    assert [(row["schedule"], row["M"]) for row in compared.rows] == [
        ("zb_h1", 4),
        ("zb_h1", 8),
        ("one_f_one_b", 4),
        ("one_f_one_b", 8),
    ]
    assert compared.rows[3]["makespan"] == 27
    assert repr(compared) == "<Comparison of 4 runs>"
    lines = str(compared).splitlines()
    assert lines[0].startswith("schedule") and len(lines) == 8 and "each of its n stages takes 1/n" in lines[-1]
    shown = compared._repr_html_()
    assert shown.count("<tr>") == 5 and "<iframe" in shown and '<th scope="col">makespan</th>' in shown
    compared.save(tmp_path / "runs.html")
    compared.save(tmp_path / "runs.csv")
    assert "<canvas" in (tmp_path / "runs.html").read_text()
    assert (tmp_path / "runs.csv").read_text().count("\n") == 5
    with pytest.raises(ValueError, match="ends in none of"):
        compared.save(tmp_path / "runs.png")
    with pytest.raises(ppcc.CompileError):
        ppcc.compare("zb_h1", sweep={"M": ["=", "x"]})


def test_proofs_are_asked_by_values(tmp_path: Path) -> None:
    limited = ppcc.prove("gpipe", P=2, costs={"limit": 3})
    assert not limited.valid and "not proven" in repr(limited)
    broken = limited.at(M=4)
    assert broken is not None and broken.verdict == "invalid" and "limit" in broken.reason
    assert limited.at(M=0) is None and str(limited).splitlines()[-1].startswith("gpipe is not proven")
    for sizes in ({"P": 2, "M": 3}, {"P": 5, "M": 40}):
        everywhere = ppcc.prove("one_f_one_b", for_all="P,M").at(**sizes)
        assert everywhere is not None and everywhere.makespan is not None
        assert everywhere.makespan(**sizes) == ppcc.compile("one_f_one_b", **sizes).simulate().makespan
    certificate = tmp_path / "proof.json"
    assert ppcc.prove("gpipe", P=2, certificate=certificate).valid and certificate.exists()
    with pytest.raises(ppcc.CompileError, match="nope"):
        ppcc.prove("nope")
    with pytest.raises(ppcc.UsageError):
        ppcc.explain("gpipe", for_all="P,M")


def test_explained_figures_are_those_of_programs() -> None:
    explained = ppcc.explain("zb_h1", P=4, model="gpt", layers=8)
    assert (explained.time_unit, explained.memory_unit) == ("ms", "bytes")
    for microbatches in (3, 4, 9):
        report = ppcc.compile("zb_h1", P=4, M=microbatches, model="gpt", layers=8).simulate()
        found = explained.at(M=microbatches)
        assert found is not None and found.makespan is not None and found.memory is not None and found.messages is not None
        assert float(found.makespan(M=microbatches)) == pytest.approx(report.makespan, rel=1e-12)
        assert float(found.memory(M=microbatches)) == pytest.approx(report.peak_memory, rel=1e-12)
        assert found.messages(M=microbatches) == report.messages


def test_figures_have_the_units_of_the_model() -> None:
    program = ppcc.compile("zb_h1", P=4, M=8, model="gpt", layers=8)
    report = ppcc.Program.from_json(program.json).simulate()
    assert (report.time_unit, report.memory_unit) == ("ms", "bytes")
    assert re.search(r"makespan [\d.]+ ms, .* peak memory [\d.]+ GiB", str(report)) and "GiB</td>" in report._repr_html_()
    assert ppcc.compile("zb_h1", P=4, M=8).simulate().time_unit is None


def test_programs_are_compared_and_written_as_schedules() -> None:
    program = ppcc.compile("one_f_one_b", P=2, M=3)
    text = ppcc.decompile(program, name="mine")
    assert "schedule mine(" in text
    again = ppcc.diff(program, ppcc.compile_source(text))
    assert again.equal and again.differences == ()
    other = ppcc.diff(program, "gpipe", P=2, M=2)
    assert not other.same_work and other.head is not None and "microbatches" in other.head and "/tmp" not in other.head
    assert ppcc.fmt("schedule s(){ranks 1;}\n") == "schedule s() { ranks 1; }\n"
    with pytest.raises(ppcc.CompileError):
        ppcc.fmt("schedule {")


def test_one_program_for_all_microbatches() -> None:
    family = ppcc.compile("one_f_one_b", P=2, for_all="M")
    for microbatches in (1, 7):
        assert family.at(M=microbatches).actions == ppcc.compile("one_f_one_b", P=2, M=microbatches).actions
    with pytest.raises(ppcc.CompileError, match="E1202"):
        ppcc.compile("one_f_one_b", M=4, for_all="M")
    source = "schedule s(M: int = 2) { ranks 1; microbatches M; placement linear; on rank r { repeat M { F; B; } } }"
    assert ppcc.compile_source(source, for_all="M").at(M=7).num_microbatches == 7


def test_programs_are_verified_for_dynamic_orders() -> None:
    program = ppcc.compile("zbv", P=4, M=8)
    program.check(transport="rendezvous")
    program.check(dynamic="hint", costs={"limit": 8})
    with pytest.raises(ppcc.CompileError, match="E0772"):
        program.check(dynamic="ready", costs={"limit": 8})
    with pytest.raises(ppcc.CompileError, match="E1010"):
        program.check(costs={"limit": 7})
    with pytest.raises(ppcc.UsageError, match="--dynamic: invalid value `never`"):
        program.check(dynamic="never")  # type: ignore[arg-type]
    ppcc.compile("gpipe", P=2, M=3, comm_order="none").check(dynamic="ready")  # Without messages.


def test_an_example_of_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(__file__).parents[2] / "examples/training"
    monkeypatch.chdir(folder)
    functions = runpy.run_path(str(folder / "test/test_two_ahead.py"))
    tests = [function for name, function in functions.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
