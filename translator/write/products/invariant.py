"""Matrix operands that a loop does not change: converted once before the loop, which Gluon's passes do not do.

for i in range(n):                                   h_invariant = gl.convert_layout(h.to(gl.bfloat16), l)
    o = tl.dot(q, h.to(q.dtype))           ->        for i in range(n):
                                                         o = wmma(q, h_invariant, zeros)
"""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import TYPE_CHECKING

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.span import runs_once
from gluonize.facts.syntax import ELEMENTWISE_NODES
from gluonize.facts.variables.definitions import changing
from gluonize.gluon.code import code_of
from gluonize.gluon.nodes import Code
from gluonize.gluon.written import Written, call, method, name as variable
from gluonize.trace.model.layouts import Layout, Mfma, Wmma
from gluonize.write.state.site import Site
from gluonize.write.state.writing import Cheap, StateOf

if TYPE_CHECKING:
    from gluonize.facts.webs import Web

_TRANSPOSED = "transposed"


def unchanging_operand(
    site: Site, node: ast.expr, layout: Layout, dtypes: dict[str, str]
) -> tuple[ast.Name, list[str]] | None:
    """(the variable that an operand is made of, the casts and transposes that make it, the last one first); None where the loop
    changes it, or nothing has to move.

    Casts to the type that it has are no work. dtypes: Gluon's names of element types.
    """
    steps, inner = [], node
    while True:
        if (value := callees.cast_of(site.facts, inner)) is not None:
            steps += [site.facts.tensor(inner).dtype] if site.facts.tensor(value) != site.facts.tensor(inner) else []
        elif (value := callees.transposed_by(site.facts, inner)) is not None and _transposes(site.facts, inner, layout):
            steps.append(_TRANSPOSED)
        else:
            break
        inner = value
    web = site.facts.webs.of_use.get(inner)
    if not site.loops or web is None or web.is_parameter or site.cheap(inner) or site.state(web).split:
        return None
    loop = site.loops[-1]
    if (
        not isinstance(loop, ast.For)
        or any(loop in d.in_loop for d in web.definitions)
        or not set(steps) <= {*dtypes, _TRANSPOSED}
        or runs_once(site.facts, loop)
    ):
        return None
    if not steps and not any(d.loop_depth for d in web.definitions):
        return None  # a variable is converted where it gets its value
    return inner, steps


def operand_before_loop(site: Site, node: ast.expr, layout: Layout, dtypes: dict[str, str]) -> Written | None:
    """The variable that holds `node` in the operand layout; None for one that does not stand before the loop."""
    found = unchanging_operand(site, node, layout, dtypes)
    if found is None:
        return None
    (inner, steps), loop = found, site.loops[-1]
    text = site.emit(inner)
    for step in reversed(steps):
        transposes = step == _TRANSPOSED
        text = call("gl.permute", text, "[1, 0]") if transposes else method(text, "to", f"gl.{dtypes[step]}")
    key = (loop, text.code, layout)
    name = site.fresh.of(key, f"{inner.id}_invariant")
    site.hoisted.setdefault(loop, {})[name] = code_of(f"{name} = ", site.convert(text, layout))
    return variable(name)


def _transposes(facts: FunctionFacts, node: ast.expr, layout: Layout) -> bool:
    """Whether a transposed operand is worth holding: not where Triton has moved what it is made of, not where registers are
    few, and not for multiply-adds, whose lanes hold whole rows of it."""
    few = isinstance(layout.root, (Mfma, Wmma)) and not facts.kernel.target.has_few_registers
    return few and layout not in facts.placed_layouts(node)


def repeats(facts: FunctionFacts, loops: tuple[ast.AST, ...], web: Web) -> bool:
    """Whether what is done here to a variable from before is done more than once.

    Where it is not, an operand moved before a loop of one iteration would only be held longer.
    """
    around = [loop for loop in loops if not any(loop in d.in_loop for d in changing(facts, web))]
    return any(not runs_once(facts, loop) for loop in around)


def moved_before(facts: FunctionFacts, loops: tuple[ast.AST, ...], web: Web) -> bool:
    """Whether a variable is moved to other layouts where it gets its value, before the loop that reads it here."""
    made = changing(facts, web)
    depth = min((d.loop_depth for d in made), default=0)
    outside = len(loops) > depth and not web.is_parameter and all(d.loop_depth <= depth for d in made)
    return outside and repeats(facts, loops, web)


def moved_where_loaded(facts: FunctionFacts, staged: Container[ast.AST], node: ast.Name, web: Web) -> bool:
    """Whether a use reads a tile moved to the layout in which it is transposed right behind its load, where Triton's passes put
    transposes: else the move waits for the same memory again, behind products of which it knows nothing. Tiles that are `staged` are
    transposed where LDS is read.
    """
    parent = facts.parents.get(node)
    made = web.definitions[0] if len(web.definitions) == 1 else None
    load = made.value if made is not None and made.loop_depth and not made.augmented else None
    if not isinstance(load, ast.Call) or load in staged or callees.transposed_by(facts, parent) is not node:
        return False
    callee = callees.callee_of(facts, load)
    return callee is not None and callee.row is not None and callee.row.kind == "load" and callee.owner is None


def carried_row(
    facts: FunctionFacts, loops: tuple[ast.AST, ...], web: Web, home: Layout | None, layout: Layout
) -> bool:
    """Whether a variable of one dimension, which a loop changes by scalars only, had better live in `layout`, that of the matrix
    instruction's result: it is then moved before the loop, not in each iteration. home: where it would lie else.

    b_g = gl.load(...)                                             b_g = gl.convert_layout(gl.load(...), rows)
    for i in range(n):                                             for i in range(n):
        s *= gl.exp(gl.convert_layout(b_g, rows))[:, None]    ->       s *= gl.exp(b_g)[:, None]
        b_g += c                                                       b_g += c
    """
    changes = [d for d in web.definitions if d.loop_depth]
    return (
        layout.rank == 1
        and isinstance(layout.root, (Mfma, Wmma))
        and home is not None
        and not isinstance(home.root, (Mfma, Wmma))
        and bool(changes)
        and any(loop in d.in_loop for d in changes for loop in loops)
        and all(d.augmented and facts.tensor(d.value) is None for d in changes)
    )


def is_row_before_loop(facts: FunctionFacts, loops: tuple[ast.AST, ...], node: ast.Name, web: Web) -> bool:
    """Whether a use in a loop of a helper's argument, of one dimension, reads it moved before all loops around."""
    given = web.is_parameter and all(isinstance(d.node, ast.arg) for d in web.definitions)
    if not given or not loops or not isinstance(loops[0], ast.For) or facts.tensor(node).rank != 1:
        return False
    return not runs_once(facts, loops[0])


def row_before_loop(site: Site, node: ast.Name, layout: Layout) -> Written:
    """The variable that holds such an argument in `layout`."""
    name = site.names.variant(node.id, layout)
    site.hoisted.setdefault(site.loops[0], {})[name] = code_of(name, " = ", site.convert(variable(node.id), layout))
    return variable(name)


def row_at_hand(
    facts: FunctionFacts, loops: tuple[ast.AST, ...], is_cheap: Cheap, state_of: StateOf, node: ast.AST
) -> bool:
    """Whether a tensor of one dimension, or such a one given another (`x[:, None]`), is made in any layout with nothing moved
    here: its variables are from before the loop."""
    fact = facts.tensor(node)
    if fact is None or is_cheap(node):
        return True
    if (
        isinstance(node, ast.Subscript)
        and fact.rank == 2
        and (row := facts.tensor(node.value)) is not None
        and row.rank == 1
    ):
        return row_at_hand(facts, loops, is_cheap, state_of, node.value)
    if fact.rank != 1:
        return False
    if isinstance(node, ast.Name):
        web = facts.webs.of_use.get(node)
        return web is not None and state_of(web).split is None and moved_before(facts, loops, web)
    if isinstance(node, ELEMENTWISE_NODES):
        return all(
            row_at_hand(facts, loops, is_cheap, state_of, child)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        )
    value = callees.cast_of(facts, node)
    return value is not None and row_at_hand(facts, loops, is_cheap, state_of, value)


def lines_before(hoisted: dict[ast.AST, dict[str, Code]], loop: ast.AST) -> list[Code]:
    """What stands before the loop because its body needs it."""
    return list(hoisted.pop(loop, {}).values())
