"""Timelines of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from html import escape
from pathlib import Path

from ._diagnostics import CompileError


def iframe(title: str, page: str) -> str:
    """Wraps a page in an iframe, so that its styles and scripts do not affect the notebook."""
    return (
        f'<iframe title="{escape(title)}" srcdoc="{escape(page)}" sandbox="allow-scripts" '
        'style="width: 100%; height: 480px; border: 0"></iframe>'
    )


def suffix(path: str | os.PathLike[str], known: Iterable[str]) -> str:
    """Returns the extension of a file. Raises ValueError if it is not one of `known`."""
    found = Path(path).suffix
    if found not in known:
        raise ValueError(f"{os.fspath(path)} ends in none of {', '.join(known)}")
    return found


class Timeline:
    """A drawing of what each rank does over time, in the time unit of the costs (docs/pictures.md).

    A notebook shows it; `print()` shows it as text. Each form is drawn on first use.

    Examples:
        >>> import ppcc
        >>> timeline = ppcc.compile("one_f_one_b", P=2, M=2).timeline()
        >>> timeline
        <Timeline one_f_one_b(P=2, M=2, forward_only=False)>
        >>> timeline.svg.startswith("<svg")
        True
    """

    def __init__(self, name: str, draw: Callable[..., str]) -> None:
        self._name = name
        self._draw = draw

    @cached_property
    def html(self) -> str:
        """An interactive HTML page: zoom, details of actions, critical path, memory."""
        return self._draw("html")

    @cached_property
    def svg(self) -> str:
        """An SVG image."""
        return self._draw("svg")

    @cached_property
    def text(self) -> str:
        """Text for a terminal."""
        return self._draw("timeline")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline to a file.

        Args:
            path: The file; its extension, `.html`, `.svg` or `.txt`, selects the form.

        Raises:
            ValueError: The file has another extension.
            CompileError: The run is too large for this form.
        """
        forms = {".html": "html", ".svg": "svg", ".txt": "timeline"}
        self._draw(forms[suffix(path, forms)], "-o", os.fspath(path))

    def _repr_html_(self) -> str:
        """Returns the page for notebooks."""
        return iframe(self._name, self.html)

    def _repr_svg_(self) -> str | None:
        """Returns the image for notebook viewers that run no scripts; None if the run is too large."""
        try:
            return self.svg
        except CompileError:
            return None

    def __repr__(self) -> str:
        return f"<Timeline {self._name}>"

    def __str__(self) -> str:
        return self.text
