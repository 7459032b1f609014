"""Which loads the tensor data mover makes, on a target that has one, and for every other load why it does not.

The data mover writes LDS: it serves loads that a pipelined loop stages there, and tiles of tensor descriptors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.made_descriptors import origin_of
from gluonize.write.descriptors import tdm
from gluonize.write.function.written import WrittenFunction

MASKED = "tensor descriptors as bounds-masked accesses: "


@dataclass(frozen=True)
class TileLoad:
    """One load of a tensor. reason: why the data mover does not make it; empty where it does."""

    line: int
    text: str
    reason: str

    @property
    def by_data_mover(self) -> bool:
        return not self.reason


def tile_loads(written: WrittenFunction) -> Iterator[TileLoad]:
    """The loads of tensors in a finished function, in source order."""
    for node in ast.walk(written.facts.tree):
        if isinstance(node, ast.Call) and written.facts.visits(node) and is_load(written.facts, node):
            yield TileLoad(node.lineno, ast.unparse(node), reason_against(written, node))


def is_load(facts: FunctionFacts, node: ast.Call) -> bool:
    """Whether `node` reads a tensor from memory, gathers of descriptors included."""
    callee, fact = callees.callee_of(facts, node), facts.tensor(node)
    if callee is None or callee.row is None or fact is None or not fact.shape:
        return False
    return callee.row.kind == "load" and callee.name in ("load", "gather")


def reason_against(written: WrittenFunction, node: ast.Call) -> str:
    """Why the load `node` is not one of the data mover; empty where it is."""
    callee = callees.callee_of(written.facts, node)
    assert callee is not None
    owner = callee.owner
    if owner is not None and callees.is_descriptor(written.facts.fact(owner)):
        if tdm.uses_data_mover(written.facts, written.decided, origin_of(written.facts, owner)):
            return ""
        reasons = [c.removeprefix(MASKED) for c in written.record.choices if c.startswith(MASKED)]
        return "; ".join(reasons) or "its descriptor is not one of the data mover"
    loop = _innermost_loop(written.facts, node)
    if loop is None:
        return "it is outside of loops: read once, into registers"
    if isinstance(loop, ast.While):
        return "its loop is a `while` loop"
    pipelined = written.loops.pipelined.get(loop)
    if pipelined is None:
        plan = next((p for p in written.loops.plans if getattr(p, "line", 0) == loop.lineno), None)
        return f"its loop is not pipelined: {plan.reason if plan is not None else 'nothing asks for it'}"
    for load in pipelined.plan.loads:
        if load.call is node:
            return "" if load.tile is not None else dict(pipelined.plan.not_tiles).get(node.lineno, "it is no tile")
    return "Triton does not stage it through LDS: it goes to registers"


def _innermost_loop(facts: FunctionFacts, node: ast.Call) -> ast.For | ast.While | None:
    around = [
        n for n in ast.walk(facts.tree) if isinstance(n, (ast.For, ast.While)) and any(x is node for x in ast.walk(n))
    ]
    return max(around, key=lambda n: n.lineno) if around else None
