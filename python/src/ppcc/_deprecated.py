"""Deprecated names, kept for one release. Each emits a DeprecationWarning and does what the new name does."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def _warn(old: str, new: str) -> None:
    warnings.warn(f"`{old}` is deprecated, and is removed in the next release: use `{new}`", DeprecationWarning, stacklevel=3)


class Renamed:
    """An attribute, property or method under its old name: `stages_of = Renamed("local_stages")` in the body of a class."""

    def __init__(self, new: str) -> None:
        self._new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        _warn(self._old, self._new)
        return getattr(owner if instance is None else instance, self._new)


def renamed_arguments(**new_names: str) -> Callable[[_F], _F]:
    """Lets a function take keyword arguments under old names: `@renamed_arguments(old="new")`."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old, new in new_names.items():
                if old in kwargs:
                    _warn(old, new)
                    if new in kwargs:
                        raise TypeError(f"{function.__name__}() got both `{old}` and `{new}`, which are one argument")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def renamed_in_module(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module with old names."""

    def get(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", f"{module}.{new_names[name]}")
        return getattr(sys.modules[module], new_names[name])

    return get
