"""Statements of concrete trees: those inside others, and the names that each reads and writes by itself.

A statement is a line, or has blocks; one whose block is on its own line, `if done: return`, is taken as a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import libcst as cst
from gluonize.gluon.trees.function import Statement
from gluonize.gluon.trees.walk import assigned, called, dotted, loads, stores, targets


def blocks_of(s: Any) -> list[Sequence[Any]]:
    """The blocks of a statement; an `elif` is a statement in a block of its own."""
    if not isinstance(getattr(s, "body", None), cst.IndentedBlock):
        return []
    other = getattr(s, "orelse", None)
    if other is None:
        return [s.body.body]
    return [s.body.body, (other,) if isinstance(other, cst.If) else other.body.body]


def inside(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements of a block and of the blocks in it, in order."""
    for s in body:
        yield s
        for inner in blocks_of(s):
            yield from inside(inner)


def header(s: Any) -> list[cst.CSTNode]:
    """What a statement with blocks computes before them."""
    if isinstance(s, cst.With):
        return list(s.items)
    return [s.iter] if isinstance(s, cst.For) else [s.test]


def own_loads(s: Statement) -> set[str]:
    """The names that a statement reads; of one with blocks, those that its header reads."""
    return set().union(*map(loads, header(s))) if blocks_of(s) else loads(s)


def own_stores(s: Statement) -> list[str]:
    """The names that a statement assigns, in order; of one with blocks, those that its header assigns."""
    if not blocks_of(s):
        return [name.value for name in assigned(s)]
    return [name.value for name in targets(s.target)] if isinstance(s, cst.For) else []


def call_of(s: Any) -> cst.CSTNode | None:
    """The call that a statement is, or whose result it assigns."""
    small = s.body[0] if isinstance(s, cst.SimpleStatementLine) else None
    return getattr(small, "value", None)


def is_call(s: Any, names: Iterable[str]) -> bool:
    """Whether a statement is a call of one of these, by the last part of the name."""
    return (
        isinstance(s, cst.SimpleStatementLine) and isinstance(s.body[0], cst.Expr) and called(s.body[0].value) in names
    )


def free_names(body: Sequence[Statement]) -> set[str]:
    """Names that are read before they are certainly assigned; a branch that fails to compile assigns what the others do."""
    free: set[str] = set()

    def visit(statements: Iterable[Any], known: set[str]) -> set[str] | None:
        for s in statements:
            blocks = blocks_of(s)
            if not blocks or isinstance(s, cst.With):
                free.update(loads(s) - known)
                known |= stores(s)
                if _fails(s):
                    return None
                continue
            free.update(own_loads(s) - known)
            if not isinstance(s, cst.If):
                visit(blocks[0], known | set(own_stores(s)))
                continue
            ends = [end for block in [*blocks, ()][:2] if (end := visit(block, set(known))) is not None]
            if not ends:
                return None
            known |= set.intersection(*ends)
        return known

    visit(body, set())
    return free


def _fails(s: Statement) -> bool:
    """Whether a statement is `static_assert(False, ...)`."""
    return is_call(s, ("static_assert",)) and dotted(call_of(s).args[0].value) == "False"  # type: ignore[union-attr]


def is_constexpr(annotation: cst.Annotation | None) -> bool:
    return annotation is not None and dotted(annotation.annotation) in ("gl.constexpr", "tl.constexpr")
