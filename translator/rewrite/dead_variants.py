"""Leave out what one layout of a variable would be where nothing uses the variable in that layout any more.

    p = ptr + offs * 4                    p_operand = ptr + offs_operand * 4
    p_operand = ptr + offs_operand * 4    tl.load(p_operand)
    tl.load(p_operand)                 ->

Uses change their layout while layouts settle, and the definitions that they asked for stay. Only definitions that were
made for a layout go: what the author wrote and never uses stays in one layout.
"""

from __future__ import annotations

import ast
import re

from translator.facts.source_text import SourceText, replace_spans

_VARIANT = re.compile(r"__variant_\d+_\w+?_of_(\w+?)__end__")
# What may go: it computes, and does nothing else.
_PURE = frozenset(
    "arange convert_layout expand_dims broadcast_to where minimum maximum full zeros cdiv to SliceLayout multiple_of "
    "max_contiguous reshape permute trans abs".split()
)


def without_dead_variants(text: str) -> str:
    """A function's text, with placeholders for variants, without the definitions of variants that are never read."""
    if not _VARIANT.search(text):
        return text
    while True:
        source = SourceText(text)
        liveness = _Liveness()
        liveness.block(ast.parse(text).body[0].body, frozenset())  # type: ignore[attr-defined]
        edits = [edit for s in liveness.dead if (edit := _line_edit(source, s)) is not None]
        if not edits:
            return text
        text = replace_spans(text, 0, len(text), edits)


def _line_edit(source: SourceText, s: ast.stmt) -> tuple[int, int, str] | None:
    """Leaves out the lines of a statement that has them for itself."""
    start, end = source.starts[s.lineno - 1], source.line_end(s)
    own = source.text[start:end]
    first, last = source.span(s)
    return (start, end + 1, "") if own.strip() == source.text[first:last].strip() else None


class _Liveness:
    """Walks backwards; `dead`: definitions of a variant whose value no path reads, where another variant stays."""

    def __init__(self) -> None:
        self.dead: list[ast.stmt] = []

    def block(self, body: list[ast.stmt], live: frozenset[str], note: bool = True) -> frozenset[str]:
        gone: set[int] = set()
        for i in reversed(range(len(body))):
            s = body[i]
            if _target(s) is not None and _target(s) not in live and _pure(s.value):  # type: ignore[attr-defined]
                if _stands_beside(body, i, gone):
                    gone.add(i)
                    self.dead += [s] if note else []
                    continue
            live = self.statement(s, live, note)
        return live

    def statement(self, s: ast.stmt, live: frozenset[str], note: bool) -> frozenset[str]:
        if isinstance(s, ast.If):
            return self.block(s.body, live, note) | self.block(s.orelse, live, note) | _loaded(s.test)
        if isinstance(s, (ast.For, ast.While)):
            head = _loaded(s.iter) if isinstance(s, ast.For) else _loaded(s.test)
            around = live | head
            while not (grown := self.block(s.body, around, False)) <= around:
                around |= grown
            self.block(s.body, around, note)
            return around
        if isinstance(s, ast.With):
            inside = self.block(s.body, live, note)
            return inside.union(*(_loaded(item.context_expr) for item in s.items))
        if isinstance(s, ast.Return):
            return _loaded(s)
        stored = {s.targets[0].id} if isinstance(s, ast.Assign) and _target(s) is not None else set()
        return (live - stored) | _loaded(s)


def _target(s: ast.stmt) -> str | None:
    """The name of a plain assignment to one name."""
    if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
        return s.targets[0].id
    return None


def _variable(s: ast.stmt) -> str | None:
    """The author's name of the variable that `s` assigns a variant of."""
    name = _target(s)
    found = _VARIANT.fullmatch(name) if name is not None else None
    return found.group(1) if found else name


def _stands_beside(body: list[ast.stmt], i: int, gone: set[int]) -> bool:
    """Whether another variant of the same variable is defined right before or after, and stays."""
    name = _variable(body[i])
    for step in (1, -1):
        j = i + step
        while 0 <= j < len(body) and _variable(body[j]) == name:
            if j not in gone and _target(body[j]) != _target(body[i]):
                return True
            j += step
    return False


def _loaded(node: ast.AST) -> frozenset[str]:
    """Names that a statement reads; what is stored to is one of them unless it is the name of a plain assignment."""
    plain = node.targets[0] if isinstance(node, ast.Assign) and _target(node) is not None else None
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n is not plain)


def _pure(value: ast.expr) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _PURE:
                return False
        elif isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)):
            return False
    return True
