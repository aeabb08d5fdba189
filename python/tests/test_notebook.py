"""Pictures in a notebook, as IPython shows them, where that is installed."""

from __future__ import annotations

import html

import pytest

pytest.importorskip("IPython", reason="NOT RUN because IPython is not installed")


def test_a_cell_draws() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    result = shell.run_cell('import ppcc\nppcc.compile("dualpipe", P=4, M=8).timeline()', store_history=False)
    result.raise_error()
    bundle, _ = shell.display_formatter.format(result.result)
    picture = bundle["image/svg+xml"]
    assert picture.startswith("<svg") and picture.count("<rect") + picture.count("<path") > 8
    assert "<canvas" in html.unescape(bundle["text/html"])
