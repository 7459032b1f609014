"""What is said of each expression that is written is compared with what Python's parser says, as long as `parsed` lasts."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Iterator
from unittest import mock

from gluonize.gluon.written import Does, Written, form_of

_NO_EXPRESSION = (ast.keyword, ast.Slice, ast.stmt)
_SHOWS = {
    Does.CONVERTS: "gl.convert_layout(",
    Does.FILLS: "gl.allocate_shared_memory(",
    Does.READS: ".load(",
}


@functools.lru_cache(maxsize=1 << 16)
def _tree(text: str) -> ast.expr | None:
    """None for lines that are an expression in parentheses only."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def mistakes(value: Written) -> list[str]:
    """In what the text differs from what is said of it."""
    if issubclass(value.form, _NO_EXPRESSION) or not value:
        return []
    node, found = _tree(str(value)), []
    if value.open != ("\n" in value and node is None):
        found.append(f"open: {value.open}")
    if node is None:
        return found if value.open else [*found, "no expression"]
    if form_of(node) is not value.form and not value.grouped:
        found.append(f"{value.form} is {form_of(node)}")
    if value.grouped and not (value.startswith("(") and value.endswith(")")):
        found.append("not in parentheses")
    return found + [f"does not say {does}" for does, text in _SHOWS.items() if text in value and not value.does & does]


@contextlib.contextmanager
def parsed() -> Iterator[None]:
    """Raises: AssertionError for the first expression whose text is something else than is said of it."""
    make = Written.__new__

    def checked(cls, *args, **more):
        made = make(cls, *args, **more)
        assert not (found := mistakes(made)), f"{made!r}: {found}"
        return made

    with mock.patch.object(Written, "__new__", checked):
        yield
