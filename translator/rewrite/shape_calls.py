"""Calls whose result layout differs from their operand's: reshapes, permutations, splits, joins."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from translator.facts.callees import bind, callee_of, first_tensor, is_true
from translator.facts.function import FunctionFacts
from translator.facts.refusals import refuse
from translator.facts.siblings import varies
from translator.frontend.trace import ConstFact, TensorFact, TupleFact
from translator.layout.shapes import NoLayout, infer
from translator.rewrite import call_text, instance_layouts, tuples
from translator.rewrite.emission import Cheap, Emission, Emit, HomeOf
from translator.rewrite.splice import operand
from translator.ttgir.layouts import Blocked, Layout, Linear, Slice


def home(facts: FunctionFacts, home_of: HomeOf, node: ast.Call, callee, given) -> Layout | None:
    fact = facts.tensor(node)
    data = first_tensor(facts, given)
    if data is None or fact is None:
        return None
    source = facts.tensor(data)
    own = home_of(data)
    steps = callee.row.layouts
    try:
        if steps == ("reshape",):
            return infer(facts.kernel.target, facts.kernel.num_warps, "reshape", source.shape, own, fact.shape)
        if steps == ("permute",):
            order = _order(facts, node, callee, given, source.rank)
            return infer(facts.kernel.target, facts.kernel.num_warps, "permute", source.shape, own, order)
        if steps == ("join",):
            return infer(facts.kernel.target, facts.kernel.num_warps, "join", source.shape, own)
        if steps == ("broadcast",) and source.rank == fact.rank:
            return own
    except NoLayout:
        return None
    return None


def _infer(facts: FunctionFacts, node, op, shape, layout, detail=()) -> Layout:
    try:
        return infer(facts.kernel.target, facts.kernel.num_warps, op, shape, layout, detail)
    except NoLayout as error:
        raise refuse(
            facts.frame, node, "no-layout", f"no layout for the result of `{op}` of {shape} in {layout}", str(error)
        ) from error


def _operand_layout(facts: FunctionFacts, home_of: HomeOf, node, data: ast.expr, ops: tuple[str, ...]) -> Layout:
    fact = facts.tensor(data)
    for name in ops:
        for op in facts.placed(node, name):
            for ty in op.operands:
                if ty.shape == fact.shape:
                    return ty.layout
    return home_of(data) or facts.default_layout(fact.shape)


def emit_shape(rw: Emission, node: ast.Call, callee, given, want: Any) -> str:
    step = callee.row.layouts[0]
    data = first_tensor(rw.facts, given)
    fact = rw.facts.tensor(node)
    if data is None:
        return _scalar_shape(rw, node, callee, given, want)
    source = rw.facts.tensor(data)
    if step == "split":
        text = call_text.with_function(
            rw, node, callee, {data: rw.emit(data, split_operand(rw.facts, rw.home, node, data))}
        )
        return tuples.in_layouts(rw.facts, rw.names, rw.record, text, split_home(rw.facts, rw.home, node, data), want)
    if fact is None:
        if isinstance(rw.facts.fact(node), TupleFact):  # broadcast(a, b)
            return _elementwise_pair(rw, node, callee, given, want)
        return call_text.generic(rw.emit, rw.splice, node, {})
    want = want or rw.home(node)
    if step == "expand":
        axes = _axes(rw.facts, given, fact.rank)
        layout = want
        for axis in reversed(sorted(axes)):
            layout = Slice(axis, layout)
        index = ", ".join("None" if d in axes else ":" for d in range(fact.rank))
        return call_text.by_template(rw.record, callee.row, {"input": rw.emit(data, layout), "index": index})
    if step == "squeeze":
        (axis,) = _axes(rw.facts, given, source.rank)
        parent = rw.home(data)
        text = call_text.generic(rw.emit, rw.splice, node, {data: rw.emit(data, parent)})
        return _fit(rw, text, _infer(rw.facts, node, "reshape", source.shape, parent, fact.shape), want)
    if step == "broadcast":
        layout = want
        text = rw.operand_in(data, fact, layout)
        return _broadcast_text(rw, node, callee, given, data, text)
    if step == "reshape":
        parent = _reshape_operand(rw.facts, rw.cheap, rw.home, node, data, fact, want)
        text = operand(rw.emit(data, parent))
        own = _infer(rw.facts, node, "reshape", source.shape, parent, fact.shape)
        if "shape" not in callee.row.template.holes:
            return _fit(rw, call_text.by_template(rw.record, callee.row, {"input": text}), own, want)
        shape = _shape_text(rw.facts, rw.emit, node, callee, given, fact)
        if varies(rw.facts, node) and own == want:
            instance_layouts.offer(rw, node, own, text, shape)
        elif varies(rw.facts, data) and own == want:
            _offer_operand(rw, node, data, parent, want)
        return _fit(rw, call_text.by_template(rw.record, callee.row, {"input": text, "shape": shape}), own, want)
    if step == "permute":
        order = _order(rw.facts, node, callee, given, source.rank)
        axes = str(list(order))
        spell = lambda text: call_text.by_template(rw.record, callee.row, {"input": text, "order": axes})  # noqa: E731
        return permuted(rw, node, data, order, want, spell)
    if step == "join":
        return _joined(rw, node, callee, given, want)
    raise refuse(rw.facts.frame, node, "shape-call", f"`{callee.name}` is not translated")


def _offer_operand(rw, node: ast.Call, data: ast.expr, layout: Layout, want: Layout) -> None:
    """`reshape(broadcast_to(y, shape), x.shape)`: what is reshaped lies as `x` does in that shape."""
    inner = callee_of(rw.facts, data) if isinstance(data, ast.Call) else None
    model = next((n.value for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr == "shape"), None)
    if inner is None or inner.name != "broadcast_to" or not isinstance(model, ast.Name) or rw.home(model) != want:
        return
    made = bind(rw.facts, data, inner)
    first = first_tensor(rw.facts, made)
    rest = {str(i): a for i, a in enumerate(made.values()) if a is not first}
    instance_layouts.offer(
        rw, node, layout, rw.emit(model, want), _shape_text(rw.facts, rw.emit, data, inner, rest, rw.facts.tensor(data))
    )


def _fit(rw, text: str, own: Layout, want: Layout | None) -> str:
    if want is None or (own == want and not rw.facts.frame.joined):
        return text
    return rw.convert(text, want)


def permuted(rw, node, data: ast.expr, order, want: Layout | None, spell: Callable[[str], str]) -> str:
    if isinstance(want, Layout) and (text := rw.permuted_tile(data, tuple(order), want)) is not None:
        return text
    source = rw.facts.tensor(data)
    parent = _operand_layout(rw.facts, rw.home, node, data, ("tt.trans",))
    inverse = tuple(order.index(i) for i in range(len(order)))
    if want is not None and isinstance(want, (Blocked, Linear)):
        try:
            back = infer(
                rw.facts.kernel.target, rw.facts.kernel.num_warps, "permute", rw.facts.tensor(node).shape, want, inverse
            )
            again = infer(
                rw.facts.kernel.target, rw.facts.kernel.num_warps, "permute", source.shape, back, tuple(order)
            )
            if again == want and (rw.cheap(data) or back == rw.home(data)):
                return spell(rw.emit(data, back))
        except NoLayout:
            pass
    own = _infer(rw.facts, node, "permute", source.shape, parent, tuple(order))
    return _fit(rw, spell(rw.emit(data, parent)), own, want)


def _order(facts: FunctionFacts, node, callee, given, rank: int) -> tuple[int, ...]:
    values = [a for k, a in given.items() if k not in ("input", "self")]
    numbers: list[int] = []
    for v in values:
        fact = facts.fact(v)
        items = fact.items if isinstance(fact, TupleFact) else (fact,)
        for item in items:
            if isinstance(item, ConstFact):
                value = item.value
                numbers += list(value) if isinstance(value, (tuple, list)) else [value]
    numbers = [getattr(n, "value", n) for n in numbers]
    if not numbers:
        return tuple(reversed(range(rank))) if rank == 2 else (1, 0)
    return tuple(int(n) % rank for n in numbers)


def _axes(facts: FunctionFacts, given, rank: int) -> list[int]:
    node = given.get("axis", given.get("dim"))
    fact = facts.fact(node)
    items = fact.items if isinstance(fact, TupleFact) else (fact,)
    axes = []
    for item in items:
        value = item.value
        axes += [int(getattr(v, "value", v)) % rank for v in (value if isinstance(value, (tuple, list)) else [value])]
    return axes


def _shape_text(facts: FunctionFacts, emit: Emit, node, callee, given, fact) -> str:
    """The shape argument as a list expression, constexpr names kept."""
    rest = [a for k, a in given.items() if k not in ("input", "self", "can_reorder")]
    if len(rest) == 1 and isinstance(facts.fact(rest[0]), TupleFact):
        text = emit(rest[0])
        return text
    if rest and all(isinstance(facts.fact(a), ConstFact) for a in rest):
        if len(rest) == 1 and isinstance(facts.fact(rest[0]).value, (list, tuple)):
            return emit(rest[0])
        return "[" + ", ".join(emit(a) for a in rest) + "]"
    return str(list(fact.shape))


def _reshape_operand(facts: FunctionFacts, is_cheap: Cheap, home_of: HomeOf, node, data, fact, want) -> Layout:
    source = facts.tensor(data)
    if want is not None and is_cheap(data):
        try:
            back = infer(facts.kernel.target, facts.kernel.num_warps, "reshape", fact.shape, want, source.shape)
            again = infer(facts.kernel.target, facts.kernel.num_warps, "reshape", source.shape, back, fact.shape)
            if again == want:
                return back
        except NoLayout:
            pass
    return _operand_layout(facts, home_of, node, data, ("tt.reshape",))


def _broadcast_text(rw, node, callee, given, data, text: str) -> str:
    rest = [a for k, a in given.items() if a is not data]
    shape = _shape_text(rw.facts, rw.emit, node, callee, {str(i): a for i, a in enumerate(rest)}, rw.facts.tensor(node))
    return call_text.by_template(rw.record, callee.row, {"input": text, "shape": shape})


def _scalar_shape(rw, node, callee, given, want) -> str:
    fact = rw.facts.tensor(node)
    if fact is None or not callee.row.of_scalar:
        return call_text.generic(rw.emit, rw.splice, node, {})
    first, *rest = given.values()
    want = want or rw.home(node)
    scalar = rw.emit(first)
    shape = _shape_text(rw.facts, rw.emit, node, callee, {str(i): a for i, a in enumerate(rest)}, fact)
    if callee.row.layouts == ("expand",):
        shape = str(list(fact.shape))
    own = rw.facts.fact(first)
    dtype = f"{operand(scalar)}.dtype" if isinstance(own, TensorFact) else f"gl.{fact.dtype}"
    values = {"shape": shape, "input": scalar, "dtype": dtype, "layout": rw.names.spell(want)}
    return call_text.by_template(rw.record, callee.row, values, callee.row.of_scalar)


def _elementwise_pair(rw, node, callee, given, want):
    facts = [rw.facts.tensor(a) for a in given.values() if rw.facts.tensor(a) is not None]
    shared = max(facts, key=lambda f: f.rank)
    layout = want[0] if isinstance(want, tuple) and want[0] is not None else None
    layout = layout or rw.home(next(a for a in given.values() if rw.facts.tensor(a) is shared))
    return call_text.with_function(rw, node, callee, {a: rw.operand_in(a, shared, layout) for a in given.values()})


def split_operand(facts: FunctionFacts, home_of: HomeOf, node, data: ast.expr) -> Layout:
    """A layout for the operand of `split` that holds both halves in one lane."""
    fact = facts.tensor(data)
    layout = _operand_layout(facts, home_of, node, data, ("tt.split",))
    if isinstance(layout, Blocked) and layout.size_per_thread[-1] == 2:
        return layout
    if not isinstance(layout, Blocked):
        for op in facts.placed(node, "tt.split"):
            return op.operands[0].layout
    base = facts.default_layout(fact.shape[:-1])
    return Blocked(
        (*base.size_per_thread, 2),
        (*base.threads_per_warp, 1),
        (*base.warps_per_cta, 1),
        (fact.rank - 1, *base.order),
        tuple((*basis, 0) for basis in base.ctas),
    )


def split_home(facts: FunctionFacts, home_of: HomeOf, node, data: ast.expr) -> Layout | None:
    fact = facts.tensor(data)
    try:
        return infer(
            facts.kernel.target, facts.kernel.num_warps, "split", fact.shape, split_operand(facts, home_of, node, data)
        )
    except NoLayout:
        return None


def _joined(rw, node, callee, given, want) -> str:
    """join, interleave and cat: both operands in one layout, the result's inferred from it."""
    first = first_tensor(rw.facts, given)
    source, fact = rw.facts.tensor(first), rw.facts.tensor(node)
    tensors = [a for a in given.values() if rw.facts.tensor(a) is not None]
    parent = _operand_layout(rw.facts, rw.home, node, first, ("tt.join",))
    if not any(op.name == "tt.join" for op in rw.facts.placed(node)):
        parent = rw.home(first)
    children = {a: rw.operand_in(a, source, parent) for a in tensors}
    join = _infer(rw.facts, node, "join", source.shape, parent)
    joined_shape = (*source.shape, 2)
    a, b = (children[t] for t in tensors[:2]) if len(tensors) > 1 else (children[first], children[first])
    values: dict[str, str | None] = {"a": a, "b": b, "shape": str(list(fact.shape))}
    if callee.row.layouts == ("join",):
        return _fit(rw, call_text.by_template(rw.record, callee.row, values), join, want)
    if "permute" not in callee.row.layouts:
        own = _infer(rw.facts, node, "reshape", joined_shape, join, fact.shape)
        return _fit(rw, call_text.by_template(rw.record, callee.row, values), own, want)
    dim = 0
    if "dim" in given and not is_true(rw.facts, given.get("can_reorder")):
        dim = int(rw.facts.fact(given["dim"]).value) % source.rank
    order = list(range(source.rank))
    order.insert(dim, source.rank)
    moved_shape = tuple(joined_shape[i] for i in order)
    moved = _infer(rw.facts, node, "permute", joined_shape, join, tuple(order))
    own = _infer(rw.facts, node, "reshape", moved_shape, moved, fact.shape)
    return _fit(rw, call_text.by_template(rw.record, callee.row, values | {"order": str(order)}), own, want)
