"""Which lines of a helper's body stand in place of a call: those of the branches that its constants choose, without what nothing reads."""

from __future__ import annotations

import ast

from gluonize.read.text.source_text import dedented, first_line
from gluonize.trace.front.trace import ConstFact, Frame

_ARITHMETIC = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.Slice)


def is_arithmetic(node: ast.expr) -> bool:
    """Whether computing an expression elsewhere, or not at all, makes no difference to anything else."""
    allowed = (*_ARITHMETIC, ast.Tuple, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
    return all(isinstance(n, allowed) for n in ast.walk(node))


def _branch(s: ast.stmt, frame: Frame, literal: set[str]) -> list[ast.stmt] | None:
    """The side of a condition that `literal` arguments decide; None for other statements."""
    visit = frame.first(s.test) if isinstance(s, ast.If) else None
    if visit is None or not isinstance(visit.fact, ConstFact):
        return None
    asked = {n.id for n in ast.walk(s.test) if isinstance(n, ast.Name)}
    return None if not asked <= literal else s.body if visit.fact.value else s.orelse


def unread_assignments(
    statements: list[ast.stmt], returned: ast.Return | None, frame: Frame, literal: set[str], local: set[str]
) -> set[ast.stmt]:
    """Assignments to `local` variables that nothing reads, once branches on `literal` arguments are resolved."""
    left: list[ast.stmt] = []
    pending = list(statements)
    while pending:
        branch = _branch(s := pending.pop(), frame, literal)
        left, pending = (left + [s], pending) if branch is None else (left, pending + branch)
    simple = {
        s: s.targets[0].id
        for s in left
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    }
    simple = {s: name for s, name in simple.items() if name in local and is_arithmetic(s.value)}
    unread: set[ast.stmt] = set()
    grew = True
    while grew:
        others = [s for s in [*left, *([returned] if returned else [])] if s not in unread]
        reads = {n.id for s in others for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        moved = {s.target.id for s in others if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name)}
        found = {s for s, name in simple.items() if s not in unread and name not in reads | moved}
        grew = bool(found)
        unread |= found
    return unread


def lines_of(
    text: list[str], statements: list[ast.stmt], frame: Frame, after: int, literal: set[str], unread: set[ast.stmt]
) -> list[str]:
    """The lines of `statements` but `unread` and the comments between them, dedented; branches on `literal` arguments are resolved."""
    out: list[str] = []
    column = statements[0].col_offset
    for s in statements:
        out += [dedented(line, column) for line in text[after : s.lineno - 1]]
        branch = _branch(s, frame, literal)
        if branch:
            out += lines_of(text, branch, frame, first_line(text, branch[0].lineno) - 1, literal, unread)
        elif branch is None and s not in unread:
            out += _lines(text, s, frame, literal, unread)
        after = s.end_lineno or s.lineno
    return out


def _lines(text: list[str], s: ast.stmt, frame: Frame, literal: set[str], unread: set[ast.stmt]) -> list[str]:
    """The lines of one statement, dedented; of a loop with its branches resolved."""
    end = s.end_lineno or s.lineno
    if isinstance(s, (ast.For, ast.While)) and not s.orelse and s.body[0].lineno > s.lineno:
        start = first_line(text, s.body[0].lineno, s.lineno) - 1
        inner = lines_of(text, s.body, frame, start, literal, unread) or ["pass"]
        pad = " " * (s.body[0].col_offset - s.col_offset)
        header = [dedented(line, s.col_offset) for line in text[s.lineno - 1 : start]]
        return header + [pad + line if line.strip() else line for line in inner]
    lines = [dedented(line, s.col_offset) for line in text[s.lineno - 1 : end]]
    if isinstance(s, ast.If) and lines[0].startswith("elif "):  # of a chain whose first condition was resolved
        lines[0] = lines[0].removeprefix("el")
    return lines
