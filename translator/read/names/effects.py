"""What has been changed, may be changed, or is not known any more, of the objects of a program that is read statically.

Module bodies run in order, once (`module_run.py`); while one runs, what it and the functions that it calls have made may be changed as
Python would. What something that is not understood may have changed is spoiled: asking for it has no answer from then on.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gluonize.read.unresolved import Place, Undetermined

CONTAINERS = (list, dict, set, bytearray)
_FIXED = (bool, int, float, complex, str, bytes, type(None), range, slice, types.BuiltinFunctionType)


class Effects:
    """running: a token for each body that runs now, innermost last; `certain` is false in a branch that may not be taken."""

    def __init__(self) -> None:
        self.running: list[object] = []
        self.certain = True
        self._made: dict[int, tuple[Any, object]] = {}
        self._spoiled: dict[int, tuple[Any, str, Place | None]] = {}

    @contextmanager
    def body(self) -> Iterator[None]:
        """A body that runs, or an evaluation that nothing else may see the objects of."""
        self.running.append(object())
        certain, self.certain = self.certain, True
        try:
            yield
        finally:
            self.running.pop()
            self.certain = certain

    @contextmanager
    def unsure(self) -> Iterator[None]:
        """Statements of which it is not known whether they run: nothing is changed by them, and what they would change is spoiled."""
        certain, self.certain = self.certain, False
        try:
            yield
        finally:
            self.certain = certain

    def made(self, value: Any) -> Any:
        """Note an object that the program has just made, and no one else."""
        if isinstance(value, CONTAINERS) and self.running:
            self._made[id(value)] = value, self.running[-1]
        return value

    def may_change(self, value: Any) -> bool:
        """Whether a change of it now is one that Python would make now."""
        found = self._made.get(id(value))
        return found is not None and self.certain and any(found[1] is token for token in self.running)

    def changeable(self, value: Any, place: Place) -> Any:
        """The object itself. Raises: Undetermined where changing it here is not what Python does."""
        if not self.may_change(value):
            raise Undetermined("a value is changed after it was made", place)
        return value

    def spoil(self, value: Any, reason: str, place: Place | None) -> None:
        """Forget what an object holds."""
        if not isinstance(value, _FIXED):
            self._spoiled.setdefault(id(value), (value, reason, place))

    def check(self, value: Any) -> Any:
        """The value. Raises: Undetermined for an object that is not known any more."""
        if self._spoiled and (found := self._spoiled.get(id(value))) is not None:
            raise Undetermined(found[1], found[2])
        return value

    def check_deep(self, value: Any) -> Any:
        """The same for all that it holds."""
        if self._spoiled:
            for part in parts(value):
                self.check(part)
        return value


def parts(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """An object and those in it, as far as Python's own containers go."""
    seen = set() if seen is None else seen
    if isinstance(value, _FIXED) or id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inner: list = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = [*value]
    elif isinstance(value, types.SimpleNamespace):
        inner = [*vars(value).values()]
    elif isinstance(value, types.MappingProxyType):
        inner = [*value.values()]
    elif isinstance(value, functools.partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    else:
        owner = (
            getattr(value, "__self__", None) if isinstance(value, (types.BuiltinMethodType, types.MethodType)) else None
        )
        inner = [owner]
    for part in inner:
        yield from parts(part, seen)


__all__ = ["CONTAINERS", "Effects", "parts"]
