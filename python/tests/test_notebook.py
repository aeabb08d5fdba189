"""Pictures in a notebook, as IPython shows them, where that is installed."""

from __future__ import annotations

import html

import pytest

pytest.importorskip("IPython", reason="NOT RUN because IPython is not installed")


def shown(code: str) -> dict[str, str]:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    result = shell.run_cell(code, store_history=False)
    result.raise_error()
    bundle: dict[str, str] = shell.display_formatter.format(result.result)[0]
    return bundle


def test_a_cell_draws() -> None:
    bundle = shown('import ppcc\nppcc.compile("dualpipe", P=4, M=8).timeline()')
    picture = bundle["image/svg+xml"]
    assert picture.startswith("<svg") and picture.count("<rect") + picture.count("<path") > 8
    assert "<canvas" in html.unescape(bundle["text/html"])


def test_what_is_too_large_for_svg_is_a_page() -> None:
    bundle = shown('ppcc.compile("one_f_one_b", P=32, M=800).timeline()')
    assert "image/svg+xml" not in bundle and "<canvas" in html.unescape(bundle["text/html"])
