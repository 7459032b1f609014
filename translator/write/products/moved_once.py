"""Operands that several dots read, made of one variable: moved once, as Triton does; Gluon's passes do not find what is equal.

b_h1 += tl.dot(tl.trans(b_k), v1)            b_k_t_a = gl.convert_layout(gl.permute(b_k, [1, 0]), a_operand)
b_h2 += tl.dot(tl.trans(b_k), v2)     ->     b_h1 = mfma(b_k_t_a, v1, b_h1)
                                             b_h2 = mfma(b_k_t_a, v2, b_h2)

Those of multiply-adds hold whole rows: kept from one dot to the next they cost more registers than they save moves.
Variables that go through LDS as they are share their buffers in `lds_operands`, what a loop does not change is in `invariant`.
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.variables.origins import untransposed
from gluonize.facts.webs import Web
from gluonize.gluon.code import code_of
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import Name
from gluonize.gluon.written import Written, name
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout
from gluonize.write.products import lds_operands
from gluonize.write.state.relations import Wants
from gluonize.write.state.site import Site, Spot
from gluonize.write.state.statements import PLAIN, holds, statements_after
from gluonize.write.state.variables import MovedOperand
from gluonize.write.state.writing import StateOf


def moved_operand(site: Site, node: ast.expr, layout: Layout, dot: ast.Call) -> Written:
    """`node`, an operand of `dot`, in operand layout."""
    text, found = _text(site, node, layout, dot), _moved(site, node, layout, dot)
    if found is None:
        return text
    web, moved = found
    shared = _place(site.facts, moved, site.state(web).moved[moved]) is not None
    return name(_name(site.names, web, moved)) if shared else text


def _moved(site: Site, node: ast.expr, layout: Layout, dot: ast.Call) -> tuple[Web, MovedOperand] | None:
    """The variable that `node` is made of, and how, which is noted; None where nothing moves."""
    through = lds_operands.through_lds(site, node, layout, dot)
    found = _movable(site.facts, site.state, node, layout)
    if found is None or through is None and not site.is_moved(node, layout):
        return None
    value, web, moved = found
    uses = site.state(web).moved.setdefault(moved, {})
    if value not in uses:
        uses[value] = node, dot
        site.demand_more()
    return web, moved


def wants(site: Spot, node: ast.expr, layout: Layout, dot: ast.Call) -> Wants:
    """In which layout `node`, an operand of `dot`, wants what it is made of."""
    found = lds_operands.through_lds(site, node, layout, dot)
    _moved(site, node, layout, dot)
    if found is None:
        return {node: layout}
    return {} if found.buffer is not None else {found.value: site.home(found.value)}


def definitions(site: Site, s: ast.stmt, web: Web) -> None:
    """Define the operands that are made of the value which `s` gives `web` and used more than once, before the first use."""
    for moved, uses in site.state(web).moved.items():
        place = _place(site.facts, moved, uses) if moved.definition is s else None
        if place is not None:
            node, dot = next(operand for value, operand in uses.items() if holds(place, value))
            line = code_of(_name(site.names, web, moved), " = ", _text(site, node, moved.layout, dot))
            site.edits.insert_before(place, line)


def _text(site: Site, node: ast.expr, layout: Layout, dot: ast.Call) -> Written:
    return lds_operands.operand_through_lds(site, node, layout, dot) or site.emit(node, layout)


def _movable(
    facts: FunctionFacts, state_of: StateOf, node: ast.expr, layout: Layout
) -> tuple[ast.Name, Web, MovedOperand] | None:
    """The variable that `node` is made of by casts and transposes, and how; None for another expression."""
    value, transposed = untransposed(facts, node)
    while (inner := callees.cast_of(facts, value)) is not None:
        value, again = untransposed(facts, inner)
        transposed ^= again
    seen = facts.webs.reaching.get(value, []) if isinstance(value, ast.Name) else []
    if len(seen) != 1 or not isinstance(seen[0].node, PLAIN):
        return None
    if not isinstance(layout, DotOperand) or isinstance(layout.parent, Blocked):
        return None
    web = facts.webs.of_use[value]
    state = state_of(web)
    if any(value in uses for reads in state.operands.values() for uses in reads.values()):
        return None  # its buffer is shared
    if state.cheap or state.split or web.in_expression or facts.tensor(node).rank != facts.tensor(value).rank:
        return None
    dtype = facts.tensor(node).dtype
    cast = dtype if dtype != facts.tensor(value).dtype else ""
    return value, web, MovedOperand(seen[0].node, layout, transposed, cast)


def _place(facts: FunctionFacts, moved: MovedOperand, uses: dict) -> ast.stmt | None:
    """The statement before which an operand is made for all its `uses`: the first of them, in the block of the definition."""
    if len(uses) < 2:
        return None
    after = statements_after(facts.tree, moved.definition)
    first = next((s for s in after if any(holds(s, use) for use in uses)), None)
    return first if isinstance(first, PLAIN) and all(any(holds(s, use) for s in after) for use in uses) else None


def _name(names: LayoutNames, web: Web, moved: MovedOperand) -> Name:
    stem = f"{web.name}_t" if moved.transposed else web.name
    return names.variant(f"{stem}_{moved.dtype}" if moved.dtype else stem, moved.layout)


__all__ = ["definitions", "moved_operand", "wants"]
