"""Matrix operands through LDS where Triton takes them there: one allocation, read as often as there are dots.

`tl.dot(x, ...)` and `tl.dot(..., tl.trans(x))` read the same buffer, the second one permuted.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from translator.layout.model import DotOperand, Layout
from translator.memory.operands import OperandInLds
from translator.rewrite import callees, dots, shapes

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


def operand_through_lds(rw: "FunctionRewriter", node: ast.expr, layout: Layout) -> str | None:
    """`node` in operand layout, read from LDS; None where Triton converts it in registers."""
    if not isinstance(layout, DotOperand):
        return None
    value, transposed = _untransposed(rw, node)
    candidates = _in_lds(rw, value)
    if not candidates or _invariant(rw, value):
        return None
    at_use = [found for found in candidates if found.read == layout and not transposed]
    buffer = _at_use(rw, value, at_use[0]) if at_use else _buffer(rw, value, candidates[0])
    if transposed:
        buffer = f"{buffer}.permute([1, 0])"
    return f"{buffer}.load({rw.names.spell(layout)})"


def _invariant(rw, value: ast.expr) -> bool:
    """Whether a loop reads a value from before it: then one conversion before the loop serves every iteration."""
    web = rw.webs.of_use.get(value) if isinstance(value, ast.Name) else None
    return web is not None and all(len(d.in_loop) < len(rw.loops) for d in web.definitions)


def _untransposed(rw, node: ast.expr) -> tuple[ast.expr, bool]:
    """The matrix under `.T`, `tl.trans(x)` and `tl.permute(x, (1, 0))`, and whether an odd number of them was there."""
    transposed = False
    while True:
        inner = None
        if isinstance(node, ast.Attribute) and node.attr == "T":
            inner = node.value
        elif isinstance(node, ast.Call):
            callee = callees.callee_of(rw, node)
            given = callees.bind(rw, node, callee) if callee is not None and callee.row is not None else {}
            if given and callee.name in ("trans", "permute"):
                inner = next(iter(given.values()))
            elif given and callee.name in ("to", "cast") and callee.owner is not None:
                fact = rw.tensor(callee.owner)
                if fact is not None and fact == rw.tensor(node):  # a cast to the type it has
                    node = callee.owner
                    continue
        if inner is None or (fact := rw.tensor(inner)) is None or fact.rank != 2:
            return node, transposed
        if isinstance(node, ast.Call) and rw.tensor(node).shape != fact.shape[::-1]:
            return node, transposed
        node, transposed = inner, not transposed


def _in_lds(rw, value: ast.expr) -> list[OperandInLds]:
    """The ways in which Triton takes the value through LDS."""
    fact = rw.tensor(value)
    if fact is None:
        return []
    origins = [value]
    if isinstance(value, ast.Name):
        web = rw.webs.of_use.get(value)
        if web is None or web.is_parameter:
            return []
        state = rw.state(web)
        if state.cheap or state.split:
            return []
        origins = [n for d in web.definitions if (n := rw.definition_node(d)) is not None]
    for origin in origins:
        if origin in rw.staged:
            return []  # a pipelined load has buffers of its own
        for visit in rw.visits(origin):
            found = [x for x in rw.unit.operands_in_lds.get((*rw.path, visit), ()) if x.shape == fact.shape]
            if found:
                return found
    return []


def _at_use(rw, value: ast.expr, found: OperandInLds) -> str:
    """An allocation in place: the LDS is free again after the read."""
    if isinstance(value, ast.Name):
        rw.names.suggest(found.shared, f"{value.id.lower()}_shared", 1, value.lineno)
    return allocation(rw, rw.emit(value, rw.home(value)), found.shared, value)


def _buffer(rw, value: ast.expr, found: OperandInLds) -> str:
    """The expression of the filled buffer: a variable beside the value's own, or an allocation in place."""
    web = rw.webs.of_use.get(value) if isinstance(value, ast.Name) else None
    if web is not None and len(web.definitions) == 1 and _assigned(web.definitions[0]):
        state = rw.state(web)
        if state.home is None:
            state.home = rw.web_home(web) or rw.default_layout(rw.tensor(value).shape)
        rw.names.suggest(found.shared, f"{web.name.lower()}_shared", 1, value.lineno)
        if state.shared is None:
            state.shared = found.shared
            rw.changed = True
        if state.shared == found.shared:
            return rw.shared_name(web)
    text = rw.emit(value, rw.home(value))
    return allocation(rw, text, found.shared, value)


def _assigned(definition) -> bool:
    """Whether the definition is one statement after which a buffer can be filled."""
    return isinstance(definition.node, (ast.Assign, ast.AnnAssign))


def allocation(rw, text: str, shared, value: ast.expr | None = None) -> str:
    """LDS filled with `text`, which is `value` emitted where it is no variable."""
    if text.isidentifier():
        return f"gl.allocate_shared_memory({text}.dtype, {text}.shape, {rw.names.spell(shared)}, {text})"
    assert value is not None, f"bug in gluonize: no type for {text}"
    dtype, shape = dots.DTYPE[rw.tensor(value).dtype], shapes.shape_text(rw, value)
    return f"gl.allocate_shared_memory(gl.{dtype}, {shape}, {rw.names.spell(shared)}, {text})"


__all__ = ["allocation", "operand_through_lds"]
