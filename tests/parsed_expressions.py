"""What is said of each expression that is written is compared with what Python's parser says, as long as `parsed` lasts."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Iterator
from unittest import mock

from gluonize.gluon.nodes import Unnamed
from gluonize.gluon.printer import printed
from gluonize.gluon.trees.references import References
from gluonize.gluon.written import Does, Written, form_of

_NO_EXPRESSION = (ast.keyword, ast.Slice, ast.stmt)
_SHOWS = {
    Does.CONVERTS: "gl.convert_layout(",
    Does.READS: ".load(",
}


@functools.lru_cache(maxsize=1 << 16)
def _tree(text: str) -> ast.expr | None:
    """None for lines that are an expression in parentheses only."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def _is_filled(node: ast.AST) -> bool:
    """Whether LDS is allocated with what fills it."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "gl.allocate_shared_memory" and len(node.args) > 3


def mistakes(value: Written) -> list[str]:
    """In what the text differs from what is said of it."""
    if issubclass(value.form, _NO_EXPRESSION) or not value:
        return []
    text = References().text(printed(value.code))
    node, found = _tree(text), []
    if value.open != ("\n" in text and node is None):
        found.append(f"open: {value.open}")
    if node is None:
        return found if value.open else [*found, "no expression"]
    plain = all(isinstance(part, (str, Unnamed)) for part in value.code)  # another node is spelled as what it is later
    if form_of(node) is not value.form and not value.grouped and plain:
        found.append(f"{value.form} is {form_of(node)}")
    if value.grouped and not (text.startswith("(") and text.endswith(")")):
        found.append("not in parentheses")
    if any(map(_is_filled, ast.walk(node))) and not value.does & Does.FILLS:
        found.append(f"does not say {Does.FILLS}")
    return found + [f"does not say {does}" for does, shown in _SHOWS.items() if shown in text and not value.does & does]


@contextlib.contextmanager
def parsed() -> Iterator[None]:
    """Raises: AssertionError for the first expression whose text is something else than is said of it."""
    make = Written.__init__

    def checked(self, *args, **more):
        make(self, *args, **more)
        assert not (found := mistakes(self)), f"{self!r}: {found}"

    with mock.patch.object(Written, "__init__", checked):
        yield
