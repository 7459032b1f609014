"""Leave out what one layout of a variable would be where nothing uses the variable in that layout any more.

    p = ptr + offs * 4                    p_operand = ptr + offs_operand * 4
    p_operand = ptr + offs_operand * 4    tl.load(p_operand)
    tl.load(p_operand)                 ->

Uses change their layout while layouts settle, and the definitions that they asked for stay. Only definitions that were
made for a layout go: what the author wrote and never uses stays in one layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst
from gluonize.gluon.layout_names import Variant
from gluonize.gluon.trees.function import GluonFunction
from gluonize.gluon.trees.references import Reference
from gluonize.gluon.trees.walk import called, names, walk
from gluonize.rules.gluon import is_pure


def without_dead_variants(function: GluonFunction) -> GluonFunction:
    """A function without the definitions of variants that are never read."""
    every = (n for n in walk(function.node.body) if isinstance(n, Reference))
    variants = {n.value: n.of.variable for n in every if isinstance(n.of, Variant)}
    while variants:
        liveness = _Liveness(variants)
        liveness.block(function.block.body, frozenset())
        gone = [s for s in liveness.dead if s.trailing_whitespace.comment is None]
        if not gone:
            break
        function = function.without(gone)
    return function


class _Liveness:
    """Walks backwards; `dead`: definitions of a variant whose value no path reads, where another variant stays."""

    def __init__(self, variants: Mapping[str, str]) -> None:
        self.variants = variants
        self.dead: list[cst.SimpleStatementLine] = []

    def block(self, body: Sequence[cst.CSTNode], live: frozenset[str], note: bool = True) -> frozenset[str]:
        gone: set[int] = set()
        for i in reversed(range(len(body))):
            s = body[i]
            if (target := _target(s)) is not None and target not in live and _pure(_plain(s).value):
                if self._stands_beside(body, i, gone):
                    gone.add(i)
                    self.dead += [s] if note else []
                    continue
            live = self.statement(s, live, note)
        return live

    def statement(self, s: cst.CSTNode, live: frozenset[str], note: bool) -> frozenset[str]:
        if isinstance(s, cst.If):
            other = live if s.orelse is None else self.statement(s.orelse, live, note)
            return self.block(s.body.body, live, note) | other | names(s.test)
        if isinstance(s, cst.Else):
            return self.block(s.body.body, live, note)
        if isinstance(s, (cst.For, cst.While)):
            around = live | names(s.iter if isinstance(s, cst.For) else s.test)
            while not (grown := self.block(s.body.body, around, False)) <= around:
                around |= grown
            self.block(s.body.body, around, note)
            return around
        if isinstance(s, cst.With):
            return self.block(s.body.body, live, note).union(*(names(item.item) for item in s.items))
        if _is_return(s):
            return frozenset(names(s))
        if (target := _target(s)) is not None:
            return (live - {target}) | names(_plain(s).value)
        return live | names(s)

    def _variable(self, s: cst.CSTNode) -> str | None:
        """The author's name of the variable that `s` assigns a variant of."""
        name = _target(s)
        return None if name is None else self.variants.get(name, name)

    def _stands_beside(self, body: Sequence[cst.CSTNode], i: int, gone: set[int]) -> bool:
        """Whether another variant of the same variable is defined right before or after, and stays."""
        name = self._variable(body[i])
        for step in (1, -1):
            j = i + step
            while 0 <= j < len(body) and self._variable(body[j]) == name:
                if j not in gone and _target(body[j]) != _target(body[i]):
                    return True
                j += step
        return False


def _plain(s: cst.CSTNode) -> cst.Assign | None:
    """A plain assignment to one name, on a line of its own."""
    small = s.body[0] if isinstance(s, cst.SimpleStatementLine) and len(s.body) == 1 else None
    one = isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name)
    return small if one else None  # type: ignore[return-value]


def _target(s: cst.CSTNode) -> str | None:
    """The name of a plain assignment."""
    plain = _plain(s)
    return None if plain is None else plain.targets[0].target.value  # type: ignore[attr-defined]


def _is_return(s: cst.CSTNode) -> bool:
    small = s.body[-1] if isinstance(s, cst.SimpleStatementLine) else s
    return isinstance(small, cst.Return)


def _pure(value: cst.BaseExpression) -> bool:
    """Whether it computes, and does nothing else."""
    for node in walk(value):
        if isinstance(node, cst.Call) and not is_pure(called(node)):
            return False
        if isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield, cst.Lambda)):
            return False
    return True
