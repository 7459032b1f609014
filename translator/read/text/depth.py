"""Whether a text is nested more deeply than Python can walk through: a sum of thousands of terms is a tree as deep as that."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import tokenize
from collections.abc import Iterator, Sequence

_USUAL = 1000  # calls inside of each other that Python allows where nobody set that otherwise
# Nodes inside of each other that Triton visits with that many calls: it makes three for each, and who launches a kernel has made some.
TRITONS = (_USUAL - 100) // 3
TOO_DEEP = "this is nested too deeply: Triton calls itself for each level, and a sum of many terms is a tree as deep as it has terms"
LESS_DEEP = "write it in several statements, or as a loop over tl.static_range"
_ENOUGH = 10 * _USUAL  # for what `too_deep` lets through, with more than twenty calls for each level


@contextlib.contextmanager
def deep_calls() -> Iterator[None]:
    """Lets functions that follow a tree call themselves for each level of what `too_deep` lets through."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _ENOUGH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def too_deep(tree: ast.AST, lines: Sequence[str]) -> int:
    """The line of the statement or expression that is too deep to be visited, 0 where there is none. lines: the text of the tree."""
    most = _USUAL * 2 // 5  # a visitor makes two calls for each level, and its callers need some too
    todo: list[tuple[ast.AST, int]] = [(tree, 0)]
    line = 0
    while todo:
        node, depth = todo.pop()
        line = getattr(node, "lineno", line)
        if depth > most:
            return line
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr) or depth > 0 and isinstance(node, ast.expr):
                todo.append((child, depth + 1))
            elif _length(child, lines) > most - depth:  # a level takes a character at least
                todo.append((child, depth + 1))
    return 0


def _length(node: ast.expr, lines: Sequence[str]) -> int:
    """Of the text of an expression, or a bit more."""
    return sum(map(len, lines[node.lineno - 1 : node.end_lineno]))


def longest_statement(text: str) -> int:
    """The line where the statement with most tokens begins, 0 where the text has none."""
    best, found, start, count = 0, 0, 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                best, found = max((best, found), (count, start), key=lambda pair: pair[0])
                count = 0
            elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                start = start if count else token.start[0]
                count += 1
    except (tokenize.TokenError, SyntaxError):
        pass  # of what could be read
    return found
