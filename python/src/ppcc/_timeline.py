"""Pictures of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from html import escape
from pathlib import Path

from ._diagnostics import CompileError


def iframe(title: str, page: str) -> str:
    """A page in a frame of its own, for notebooks, so that its styles and scripts stay there."""
    return (
        f'<iframe title="{escape(title)}" srcdoc="{escape(page)}" sandbox="allow-scripts" '
        'style="width: 100%; height: 480px; border: 0"></iframe>'
    )


def suffix(path: str | os.PathLike[str], known: Iterable[str]) -> str:
    """The extension of a file, if it is known."""
    found = Path(path).suffix
    if found not in known:
        raise ValueError(f"{os.fspath(path)} ends in none of {', '.join(known)}")
    return found


class Timeline:
    """When each rank does what. Each form is drawn when it is asked for (docs/pictures.md)."""

    def __init__(self, name: str, draw: Callable[..., str]) -> None:
        self._name = name
        self._draw = draw

    @cached_property
    def html(self) -> str:
        """A page to look at: zoom, hover, paths, memory."""
        return self._draw("html")

    @cached_property
    def svg(self) -> str:
        """A vector graphic for papers."""
        return self._draw("svg")

    @cached_property
    def text(self) -> str:
        """Characters for a terminal."""
        return self._draw("timeline")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture; the extension, `.html`, `.svg`, `.pdf` or `.txt`, says which."""
        forms = {".html": "html", ".svg": "svg", ".pdf": "pdf", ".txt": "timeline"}
        self._draw(forms[suffix(path, forms)], "-o", os.fspath(path))

    def _repr_html_(self) -> str:
        """For notebooks."""
        return iframe(self._name, self.html)

    def _repr_svg_(self) -> str | None:
        """For viewers of notebooks that run no scripts; nothing of runs that are too large for it."""
        try:
            return self.svg
        except CompileError:
            return None

    def __repr__(self) -> str:
        return f"<Timeline {self._name}>"

    def __str__(self) -> str:
        return self.text
