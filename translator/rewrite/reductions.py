"""Reductions and scans: the layout that their operand takes, and what they leave."""

from __future__ import annotations

import ast
from typing import Any

from translator.facts import products
from translator.layout.names import LayoutNames
from translator.rewrite.emission import Emission, HomeOf
from translator.facts.function import FunctionFacts
from translator.frontend.trace import ConstFact, TensorFact, TupleFact
from translator.rewrite import call_text, tuples
from translator.rewrite.splice import expression
from translator.facts.callees import is_true
from translator.facts.refusals import refuse
from translator.ttgir.layouts import Layout, Slice


def axis_of(facts: FunctionFacts, given, rank: int) -> int | None:
    node = given.get("axis")
    fact = facts.fact(node) if node is not None else None
    if isinstance(fact, ConstFact) and isinstance(fact.value, int):
        return fact.value % rank
    return None


def operands_of(given: dict[str, ast.expr]) -> list[ast.expr]:
    """The tensors of a reduction or scan: one, or the elements of a tuple."""
    node = given.get("input")
    if node is None:
        node = next(iter(given.values()))
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]


def operand_fact(facts: FunctionFacts, item: ast.expr) -> TensorFact | None:
    """The tensor that is reduced or scanned; the first of those in a tuple that a variable or call holds."""
    fact = facts.fact(item)
    if isinstance(fact, TupleFact) and fact.items:
        fact = fact.items[0]
    return fact if isinstance(fact, TensorFact) and fact.shape else None


def _operand_home(facts: FunctionFacts, home_of: HomeOf, item: ast.expr, fact: TensorFact) -> Layout:
    own = home_of(item)
    own = own[0] if isinstance(own, tuple) and own else own
    return own or facts.default_layout(fact.shape)


def _in_layout(rw: Emission, item: ast.expr, fact: TensorFact, layout: Layout) -> str:
    """A tensor, or each tensor of a tuple that a variable or call holds, in `layout`."""
    held = rw.facts.fact(item)
    if not isinstance(held, TupleFact):
        return rw.operand_in(item, fact, layout)
    homes = rw.home(item)
    text = rw.emit(item)
    if not isinstance(homes, tuple) or all(home == layout for home in homes):
        return text
    if not isinstance(item, ast.Name):
        raise refuse(
            rw.facts.frame, item, "tuple-layout", "the tensors of a tuple are needed in another layout",
            "a reduction or scan of several tensors takes them in one layout",
            "assign the tuple to a variable first",
        )  # fmt: skip
    parts = [f"{text}[{i}]" if home == layout else rw.convert(f"{text}[{i}]", layout) for i, home in enumerate(homes)]
    return f"({', '.join(parts)})"


def reduce_operand_layout(
    facts: FunctionFacts, home_of: HomeOf, node: ast.Call, data: ast.expr, axis: int | None = 0
) -> Layout:
    """Triton's layout of what this call reduces, else the operand's own; a reduction over everything takes any."""
    fact = operand_fact(facts, data)
    if axis is None:
        return _operand_home(facts, home_of, data, fact)
    for op in facts.placed(node, "tt.reduce"):
        for ty in op.operands:
            if ty.shape == fact.shape:
                return ty.layout
    return _operand_home(facts, home_of, data, fact)


def emit_reduce(rw: Emission, node: ast.Call, callee, given, want: Any) -> str:
    items = operands_of(given)
    fact = operand_fact(rw.facts, items[0])
    if fact is None:
        return call_text.generic(rw.emit, rw.splice, node, {})
    axis = axis_of(rw.facts, given, fact.rank)
    parent = reduce_operand_layout(rw.facts, rw.home, node, items[0], axis)
    children = {item: _in_layout(rw, item, fact, parent) for item in items}
    result = rw.facts.fact(node)
    facts = result.items if isinstance(result, TupleFact) else (result,)
    keeps = any(isinstance(f, TensorFact) and f.rank == fact.rank for f in facts)
    only_places = callee.row.combine and not callee.row.with_index
    indices = only_places or callee.row.with_index and is_true(rw.facts, given.get("return_indices"))
    if indices and axis is None and fact.rank == 1:
        axis = 0
    if indices:
        text = _reduce_with_indices(rw, node, callee, given, children[items[0]], fact, axis, parent, keeps)
    else:
        text = call_text.with_function(rw, node, callee, children)
        if keeps and fact.rank == 1 and not isinstance(result, TupleFact):
            kept = given.get("keep_dims")
            after = len(node.args) - node.args.index(kept) if kept in node.args else 0
            return _kept_scalar(rw.names, text, after, result, want or parent)
    if not isinstance(result, TupleFact):
        if not (isinstance(result, TensorFact) and result.shape):
            return text
        own = _reduced(rw.facts, parent, axis, keeps, fact.shape)
        return text if want is None or want == own else rw.convert(text, want)
    own = _reduced(rw.facts, parent, axis, keeps, fact.shape) if axis is not None else None
    return tuples.in_layouts(rw.facts, rw.names, rw.record, text, own, want)


def _kept_scalar(names: LayoutNames, text: str, after: int, result: TensorFact, layout: Layout) -> str:
    """A rank-1 reduction with keep_dims: Gluon's gives a scalar that has no dimension to expand.

    after: which positional argument keep_dims is, counted from the last; 0 where it is a keyword.
    """
    call = expression(text)
    assert isinstance(call, ast.Call), f"bug in gluonize: {text}"
    call = ast.Call(call.func, list(call.args), [k for k in call.keywords if k.arg != "keep_dims"])
    if after:
        call.args[-after] = ast.Constant(False)
    dtype = products.DTYPE.get(result.dtype, result.dtype)
    return f"gl.full([1], {ast.unparse(call)}, gl.{dtype}, layout={names.spell(layout)})"


def _reduced(facts: FunctionFacts, parent: Layout, axis: int | None, keeps: bool, shape) -> Layout | None:
    if axis is None:
        return parent if keeps else None
    return parent if keeps else Slice(axis, parent)


def multi_reduce_home(facts: FunctionFacts, home_of: HomeOf, node, callee, given, fact: TupleFact) -> tuple:
    items = operands_of(given)
    data = operand_fact(facts, items[0])
    if data is None:
        return tuple(
            facts.default_layout(f.shape) if isinstance(f, TensorFact) and f.shape else None for f in fact.items
        )
    axis = axis_of(facts, given, data.rank)
    parent = reduce_operand_layout(facts, home_of, node, items[0], axis)
    out = []
    for f in fact.items:
        if not (isinstance(f, TensorFact) and f.shape):
            out.append(None)
        else:
            out.append(parent if f.rank == data.rank else Slice(axis, parent))
    return tuple(out)


def _reduce_with_indices(rw, node, callee, given, text, fact, axis, parent, keeps) -> str:
    """`tl.argmax` and friends build their index with a layout-less arange; here it gets the operand's layout."""
    flat = axis is None
    tie = given.get("tie_break_left") or given.get("return_indices_tie_break_left")
    fast = tie is not None and not is_true(rw.facts, tie)
    combine = call_text.imported(rw.record, f"{callee.row.combine}_{'fast' if fast else 'left'}")
    if flat:
        raise refuse(rw.facts.frame, node, "axis", f"`{callee.name}` needs a constant axis")
    layout = parent
    for d in reversed(range(fact.rank)):
        if d != axis:
            layout = Slice(d, layout)
    index = f"gl.arange(0, {fact.shape[axis]}, layout={rw.names.spell(layout)})"
    if fact.rank > 1:
        index += "[" + ", ".join(":" if d == axis else "None" for d in range(fact.rank)) + "]"
        index = f"gl.broadcast({index}, gl.zeros({list(fact.shape)}, gl.int32, layout={rw.names.spell(parent)}))[0]"
    values = {"values": text, "index": index, "axis": str(axis), "combine": combine}
    values["keep_dims"] = "True" if keeps else None
    return call_text.by_template(rw.record, callee.row, values, callee.row.with_index or callee.row.becomes)


def scan_layout(facts: FunctionFacts, home_of: HomeOf, node: ast.Call, item: ast.expr) -> Layout:
    """Triton's layout of what this call scans, else the operand's own."""
    fact = operand_fact(facts, item)
    for op in facts.placed(node, "tt.scan"):
        for ty in op.operands:
            if ty.shape == fact.shape:
                return ty.layout
    return _operand_home(facts, home_of, item, fact)


def emit_scan(rw: Emission, node: ast.Call, callee, given, want: Any) -> str:
    items = operands_of(given)
    fact = operand_fact(rw.facts, items[0])
    if fact is None:
        return call_text.generic(rw.emit, rw.splice, node, {})
    own = scan_layout(rw.facts, rw.home, node, items[0])
    children = {item: _in_layout(rw, item, fact, own) for item in items}
    text = call_text.with_function(rw, node, callee, children)
    if isinstance(want, tuple):
        return tuples.in_layouts(rw.facts, rw.names, rw.record, text, own, want)
    return text if want is None or want == own else rw.convert(text, want)
