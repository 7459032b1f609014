"""Which accesses the tensor data mover cannot make, so that their descriptors stay bounds-masked accesses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.made_descriptors import Origin, origin_of
from gluonize.write.descriptors import tdm, tdm_rows
from gluonize.write.descriptors.descriptors import accessed

MAKES = "make_tensor_descriptor"


def uses(facts: FunctionFacts) -> Iterator[tuple[Origin | None, str]]:
    """The uses of descriptors in a function: what each descriptor comes from, and why the data mover cannot serve it, "" where it can."""
    for node in facts.nodes:
        if isinstance(node, ast.Attribute) and callees.is_descriptor(facts.fact(node.value)):
            yield origin_of(facts, node.value), ""
        elif isinstance(node, ast.Call) and facts.visits(node) and (callee := callees.callee_of(facts, node)):
            if callee.row is not None and callee.name == MAKES:
                origin = Origin(facts, node)
                pad = origin.padding
                yield origin, "" if pad == "zero" else f"the data mover does not fill with {pad}"
            elif callee.owner is not None and callees.is_descriptor(facts.fact(callee.owner)):
                owner, kind, indices, _ = accessed(node, callee, callees.bound(facts, node))
                yield origin_of(facts, owner), _why_not(facts, node, kind, indices)


def _why_not(facts: FunctionFacts, node: ast.Call, kind: str, indices: list[ast.expr]) -> str:
    """Why the data mover cannot make the access `node`; "" where it can."""
    if kind in ("gather", "scatter"):
        return tdm_rows.why_not(facts, node, indices)
    if kind not in ("load", "store"):
        return f"the data mover has no `{kind}`"
    if not isinstance(indices[0], (ast.List, ast.Tuple)):
        return "offsets are not written as a list"
    return tdm.why_not_at(facts, indices[0].elts)
