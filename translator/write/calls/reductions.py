"""Reductions and scans: the layout that their operand takes, and what they leave."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.facts.callees import is_true
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.refusals import refuse
from gluonize.gluon.written import (
    Part,
    Written,
    call,
    indexed,
    keyword,
    listed,
    literal,
    name,
    operand,
    times,
    tuple_of,
)
from gluonize.trace.front.trace import ConstFact, TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout, Slice
from gluonize.write.calls import tuples
from gluonize.write.calls.helpers import Helpers
from gluonize.write.calls.kind import Kind, LikeOperand, Place, for_tensors, tensors_of
from gluonize.write.state import call_text, shapes
from gluonize.write.state.call_text import Called
from gluonize.write.state.relations import NOT_READ, Wants, operands_in
from gluonize.write.state.writing import HomeOf, Writing


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


def _in_layout(writing: Writing, item: ast.expr, fact: TensorFact, layout: Layout) -> Written:
    """A tensor, or each tensor of a tuple that a variable or call holds, in `layout`."""
    facts = writing.facts
    held = facts.fact(item)
    if not isinstance(held, TupleFact):
        return writing.operand_in(item, fact, layout)
    homes = writing.home(item)
    text = writing.emit(item)
    if not isinstance(homes, tuple) or all(home == layout for home in homes):
        return text
    if not isinstance(item, ast.Name):
        raise refuse(
            facts.frame, item, "tuple-layout", "the tensors of a tuple are needed in another layout",
            "a reduction or scan of several tensors takes them in one layout",
            "assign the tuple to a variable first",
        )  # fmt: skip
    items = [indexed(text, str(i)) for i in range(len(homes))]
    parts = [own if home == layout else writing.convert(own, layout) for own, home in zip(items, homes)]
    return tuple_of(*parts)


def reduce_operand_layout(
    facts: FunctionFacts, home_of: HomeOf, node: ast.Call, data: ast.expr, axis: int | None = 0
) -> Layout:
    """Triton's layout of what this call reduces, else the operand's own; a reduction over everything takes any."""
    fact = operand_fact(facts, data)
    if axis is None:
        return _operand_home(facts, home_of, data, fact)
    return facts.placed_in(node, ("tt.reduce",), fact.shape, taken=True) or _operand_home(facts, home_of, data, fact)


def _items_in(facts: FunctionFacts, items: list[ast.expr], fact: TensorFact, layout: Layout) -> Wants:
    """The tensors of a reduction or scan in `layout`; a tuple comes as it lies."""
    tuples_of = {item: None for item in items if isinstance(facts.fact(item), TupleFact)}
    return operands_in(facts, items, fact, layout) | tuples_of


def _kept_scalar(
    writing: Writing, node: ast.Call, callee, children: dict, result: TensorFact, layout: Layout
) -> Written:
    """A rank-1 reduction with keep_dims: Gluon's gives a scalar that has no dimension to expand.

    children: texts of arguments; None for keep_dims, which is left out, or false where it has to have its place.
    """
    if callee.owner is None:
        function = call_text.function_text(writing, node, callee)
    else:
        function = call_text.method_of(writing, node, callee, children).get(node.func) or writing.splice(node.func, {})
    arguments = [children.get(a) or (literal(False) if a in children else writing.emit(a)) for a in node.args]
    named = [k for k in node.keywords if children.get(k.value, "") is not None]
    arguments += [keyword(k.arg, children.get(k.value) or writing.emit(k.value)) for k in named]
    dtype = products.DTYPE.get(result.dtype, result.dtype)
    scalar = call(function, *arguments)
    return call("gl.full", "[1]", scalar, f"gl.{dtype}", keyword("layout", writing.names.spell(layout)))


def _reduced(parent: Layout, axis: int | None, keeps: bool) -> Layout | None:
    if keeps:
        return parent
    return None if axis is None else Slice(axis, parent)


def _reduce_with_indices(writing: Writing, node, callee, given, text, data, axis, parent, keeps) -> Written:
    """`tl.argmax` and friends build their index with a layout-less arange; here it gets the operand's layout."""
    facts = writing.facts
    fact = operand_fact(facts, data)
    flat = axis is None
    tie = given.get("tie_break_left") or given.get("return_indices_tie_break_left")
    fast = tie is not None and not is_true(facts, tie)
    combine = call_text.imported(writing.record, f"{callee.row.combine}_{'fast' if fast else 'left'}")
    if flat:
        raise refuse(facts.frame, node, "axis", f"`{callee.name}` needs a constant axis")
    layout = parent
    for d in reversed(range(fact.rank)):
        if d != axis:
            layout = Slice(d, layout)
    sizes = shapes.texts(facts, writing.emit, writing.rebound, data, fact.shape)
    index = call("gl.arange", "0", sizes[axis], keyword("layout", writing.names.spell(layout)))
    if fact.rank > 1:
        index = indexed(index, ", ".join(":" if d == axis else "None" for d in range(fact.rank)))
        zeros = call("gl.zeros", listed(*sizes), "gl.int32", keyword("layout", writing.names.spell(parent)))
        index = indexed(call("gl.broadcast", index, zeros), "0")
    values: dict[str, Part | None] = {"values": text, "index": index, "axis": str(axis), "combine": combine}
    values["keep_dims"] = "True" if keeps else None
    return call_text.by_template(writing.record, callee.row, values, callee.row.with_index or callee.row.becomes)


def scan_layout(facts: FunctionFacts, home_of: HomeOf, node: ast.Call, item: ast.expr) -> Layout:
    """Triton's layout of what this call scans, else the operand's own."""
    fact = operand_fact(facts, item)
    return facts.placed_in(node, ("tt.scan",), fact.shape, taken=True) or _operand_home(facts, home_of, item, fact)


class Reduce(Kind):
    """Along an axis of the operand's layout, of which a slice is left."""

    def home(self, asked: Helpers, call: Called, fact: TensorFact) -> Layout | None:
        facts, tensors = asked.facts, tensors_of(asked.facts, call)
        if not tensors:
            return None
        axis = axis_of(facts, call.given, facts.tensor(tensors[0]).rank)
        parent = reduce_operand_layout(facts, asked.home, call.node, tensors[0], axis)
        return parent if fact.rank == parent.rank else Slice(axis, parent)

    def homes(self, asked: Helpers, call: Called, fact: TupleFact) -> tuple:
        facts, items = asked.facts, operands_of(call.given)
        data = operand_fact(facts, items[0])
        if data is None:
            return super().homes(asked, call, fact)
        axis = axis_of(facts, call.given, data.rank)
        parent = reduce_operand_layout(facts, asked.home, call.node, items[0], axis)
        return for_tensors(fact, lambda f: parent if f.rank == data.rank else Slice(axis, parent))

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        writing, node, given = at.site, call.node, call.given
        facts, items = writing.facts, operands_of(given)
        fact = operand_fact(facts, items[0])
        if fact is None:
            return {}
        if (unscaled := writing.unscaled.get(node)) is not None:
            return dict.fromkeys(items, NOT_READ) | dict.fromkeys(unscaled.factors)
        parent = reduce_operand_layout(facts, writing.home, node, items[0], axis_of(facts, given, fact.rank))
        return _items_in(facts, items, fact, parent)

    def text(self, at: Place, call: Called, want: Any) -> Written:
        writing, node, callee, given = at.site, call.node, call.callee, call.given
        items = operands_of(given)
        fact = operand_fact(writing.facts, items[0])
        if fact is None:
            return call_text.generic(writing, node, {})
        axis = axis_of(writing.facts, given, fact.rank)
        parent = reduce_operand_layout(writing.facts, writing.home, node, items[0], axis)
        unscaled = writing.unscaled.get(node)
        if unscaled is None:
            children = {item: _in_layout(writing, item, fact, parent) for item in items}
        else:
            own = writing.home(items[0])
            product = name(unscaled.name)
            children = {items[0]: product if own == parent else writing.convert(product, parent)}
        result = writing.facts.fact(node)
        facts = result.items if isinstance(result, TupleFact) else (result,)
        keeps = any(isinstance(f, TensorFact) and f.rank == fact.rank for f in facts)
        only_places = callee.row.combine and not callee.row.with_index
        indices = only_places or callee.row.with_index and is_true(writing.facts, given.get("return_indices"))
        if indices and axis is None and fact.rank == 1:
            axis = 0
        if indices:
            text = _reduce_with_indices(writing, node, callee, given, children[items[0]], items[0], axis, parent, keeps)
        elif keeps and fact.rank == 1 and not isinstance(result, TupleFact):
            return _kept_scalar(writing, node, callee, children | {given["keep_dims"]: None}, result, want or parent)
        else:
            text = call_text.with_function(writing, node, callee, children)
        for factor in unscaled.factors if unscaled is not None else ():
            text = times(text, operand(writing.emit(factor)))
        if not isinstance(result, TupleFact):
            if not (isinstance(result, TensorFact) and result.shape):
                return text
            own = _reduced(parent, axis, keeps)
            return text if want is None or want == own else writing.convert(text, want)
        own = _reduced(parent, axis, keeps) if axis is not None else None
        return tuples.in_layouts(writing, text, own, want)


class Scan(LikeOperand):
    """Along an axis of the operand's layout, which the result has too."""

    def homes(self, asked: Helpers, call: Called, fact: TupleFact) -> tuple:
        first = operands_of(call.given)[0]
        if operand_fact(asked.facts, first) is None:
            return super().homes(asked, call, fact)
        got = scan_layout(asked.facts, asked.home, call.node, first)
        return for_tensors(fact, lambda f: got)

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        writing, node, given = at.site, call.node, call.given
        facts, items = writing.facts, operands_of(given)
        fact = operand_fact(facts, items[0])
        return {} if fact is None else _items_in(facts, items, fact, scan_layout(facts, writing.home, node, items[0]))

    def text(self, at: Place, call: Called, want: Any) -> Written:
        writing, node, callee, given = at.site, call.node, call.callee, call.given
        facts = writing.facts
        items = operands_of(given)
        fact = operand_fact(facts, items[0])
        if fact is None:
            return call_text.generic(writing, node, {})
        own = scan_layout(facts, writing.home, node, items[0])
        children = {item: _in_layout(writing, item, fact, own) for item in items}
        text = call_text.with_function(writing, node, callee, children)
        if isinstance(want, tuple):
            return tuples.in_layouts(writing, text, own, want)
        return text if want is None or want == own else writing.convert(text, want)


__all__ = ["Reduce", "Scan"]
