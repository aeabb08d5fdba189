"""The colours of listings."""

from pathlib import Path

import pytest

pygments = pytest.importorskip("pygments")


def test_the_library_has_no_unknown_token() -> None:
    from ppcc._pygments import ScheduleLexer
    from pygments.token import Error, Keyword

    files = sorted((Path(__file__).parents[2] / "lib/schedules").glob("*.pp"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        found = list(ScheduleLexer().get_tokens(text))
        assert "".join(value for _, value in found) == text
        assert not [value for kind, value in found if kind is Error]
        assert any(kind in Keyword for kind, _ in found)
