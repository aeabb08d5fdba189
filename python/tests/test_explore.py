"""The widget of notebooks: its side of Python by itself, and a notebook that draws in a real kernel."""

from __future__ import annotations

import pytest

pytest.importorskip("anywidget", reason="pip install anywidget nbclient ipykernel")

import nbformat
import ppcc
from nbclient import NotebookClient
from ppcc import _notebook


def test_sliders_are_followed() -> None:
    widget = ppcc.explore("one_f_one_b", P=2, M=4)
    found = {control["name"]: control for control in widget.controls}
    assert found["P"] == {"group": "param", "name": "P", "value": 2, "type": "number", "min": 1, "max": 8, "step": 1}
    assert found["forward_only"]["type"] == "flag" and found["B"]["value"] == 2 and "W" not in found
    assert widget.figures.startswith("makespan 15, ") and "one_f_one_b P=2 M=4" in widget.page
    widget.values = {**widget.values, "M": 8, "B": 3}
    assert widget.figures.startswith("makespan 36, ") and widget.program.params["M"] == 8
    before = widget.page
    widget.values = {**widget.values, "latency": -1}
    assert "latency" in widget.problems and widget.page == before
    widget.values = {**widget.values, "latency": 0.5}
    assert widget.problems == "" and widget.page != before


def test_values_that_no_schedule_takes_are_problems() -> None:
    widget = ppcc.explore("dualpipe", P=4, M=8, costs={"F": 1, "memory.limit": 99}, ranges={"P": (2, 16)})
    assert [control["name"] for control in widget.controls] == ["P", "M", "split_middle", "F", "memory.limit"]
    assert (widget.controls[0]["min"], widget.controls[0]["max"]) == (2, 16)
    widget.values = {**widget.values, "P": 3}
    assert "P must be even" in widget.problems
    widget.values = {**widget.values, "P": 4, "memory.limit": 1}
    assert "more than the limit of 1" in widget.problems


def test_a_notebook_draws() -> None:
    cells = [
        "import ppcc",
        'ppcc.compile("dualpipe", P=2, M=4)',
        'ppcc.compile("dualpipe", P=2, M=4).timeline()',
        'ppcc.compare("zb_h1", "zb_h2", P=2, M=4)',
        'ppcc.sweep("linear", P=2, M=4, limits=(1, 2))',
        'ppcc.explore("zb_h1", P=2, M=4)',
    ]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [cell.outputs[0].data if cell.outputs else {} for cell in notebook.cells]
    assert all("<iframe" in data["text/html"] for data in shown[1:4])
    assert "<table>" in shown[3]["text/html"] and "<svg" in shown[4]["text/html"] and "<table>" in shown[4]["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in shown[5]


def test_cells_are_escaped() -> None:
    assert _notebook.table([{"<a>": "<b>", "n": 1.5, "none": None}]) == (
        '<table><thead><tr><th scope="col">&lt;a&gt;</th><th scope="col">n</th><th scope="col">none</th></tr></thead><tbody><tr>'
        '<td>&lt;b&gt;</td><td style="text-align: right">1.5</td><td></td></tr></tbody></table>'
    )
