"""Where the aggregates of a program come from: `{"$class": "file.py:Name"}`, or `{"$call": "file.py:Maker", "args": [8]}`.

    def Grouped(size):          Scheduler = Grouped(8)   ->   {"$call": "tiles.py:Grouped", "args": [8]}
        @aggregate
        class Tiles: ...
        return Tiles

A class says neither what made it nor from what, so it is seen when it is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from translator.triton_api.package import triton
from translator.triton_api.language import core


@dataclass(frozen=True)
class Origin:
    """file: of its text. name: of the class, or of the function that made it. arguments: of that function, None for a class."""

    file: str
    name: str
    arguments: tuple | None = None


class MadeClasses:
    """The aggregates that have been made while `seen` is active, and where."""

    def __init__(self) -> None:
        self._known: dict[type, Origin] = {}

    def origin(self, value: Any) -> Origin | None:
        """None for what is no aggregate, or was made in a way that a launch cannot tell."""
        return self._known.get(value) if isinstance(value, type) else None

    @contextmanager
    def seen(self) -> Iterator[None]:
        """While active, what `aggregate` makes is remembered."""
        plain = core._aggregate

        def aggregate(cls: type) -> Any:
            made = plain(cls)
            if (found := _origin(sys._getframe(1), cls.__name__)) is not None:
                self._known[made] = found
            return made

        owners = [(core, "_aggregate"), (triton, "aggregate")]
        owners = [(owner, name) for owner, name in owners if getattr(owner, name, None) is plain]
        for owner, name in owners:
            setattr(owner, name, aggregate)
        try:
            yield
        finally:
            for owner, name in owners:
                setattr(owner, name, plain)


def _origin(frame: FrameType, name: str) -> Origin | None:
    code = frame.f_code
    if code.co_name == "<module>":
        return Origin(code.co_filename, name)
    # A function inside another one has no name that a launch could give; one that takes any number of arguments, no list of them.
    if not _is_plain(code):
        return None
    given = [frame.f_locals.get(parameter, _GONE) for parameter in code.co_varnames[: code.co_argcount]]
    return None if _GONE in given else Origin(code.co_filename, code.co_name, tuple(given))


_GONE: Callable = lambda: None  # a parameter that was deleted
_VARIADIC = 0x04 | 0x08  # inspect.CO_VARARGS, CO_VARKEYWORDS


def _is_plain(code: CodeType) -> bool:
    return code.co_qualname == code.co_name and not code.co_kwonlyargcount and not code.co_flags & _VARIADIC
