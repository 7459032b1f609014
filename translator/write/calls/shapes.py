"""Calls whose result layout differs from their operand's: reshapes, permutations, splits, joins."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from gluonize.decide.layouts.inferred import NoLayout, infer
from gluonize.facts.callees import bind, callee_of, first_tensor, is_true
from gluonize.facts.function import FunctionFacts
from gluonize.facts.refusals import refuse
from gluonize.facts.variables.siblings import varies
from gluonize.gluon.written import Part, Written, attribute, listed, operand
from gluonize.trace.front.trace import ConstFact, TensorFact, TupleFact
from gluonize.trace.model.layouts import Blocked, Layout, Linear, Slice
from gluonize.write.calls import instance_layouts, tuples
from gluonize.write.calls.helpers import Helpers
from gluonize.write.calls.kind import Kind, Place, for_tensors, tensors_of
from gluonize.write.state import call_text
from gluonize.write.state.call_text import Called
from gluonize.write.state.relations import NOT_READ, Wants, operands_in, sliced
from gluonize.write.state.site import Site, Spot
from gluonize.write.state.writing import Asking, Cheap, Emit, HomeOf, Writing


def _infer(facts: FunctionFacts, node, op, shape, layout, detail=()) -> Layout:
    try:
        return infer(facts.kernel.target, facts.kernel.num_warps, op, shape, layout, detail)
    except NoLayout as error:
        raise refuse(
            facts.frame, node, "no-layout", f"no layout for the result of `{op}` of {shape} in {layout}", str(error)
        ) from error


def _operand_layout(facts: FunctionFacts, home_of: HomeOf, node, data: ast.expr, ops: tuple[str, ...]) -> Layout:
    shape = facts.tensor(data).shape
    return facts.placed_in(node, ops, shape, taken=True) or home_of(data) or facts.default_layout(shape)


class Relation:
    """How the layout of a result follows from that of the operand `data`, by one step of a row (`gluonize.rules.rows.LAYOUTS`)."""

    def home(
        self, facts: FunctionFacts, own: Layout, source: TensorFact, fact: TensorFact, call: Called
    ) -> Layout | None:
        """The layout of a result, `fact`, whose operand, `source`, lies in `own`. Raises: NoLayout."""
        return None

    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Layout) -> Wants:
        raise NotImplementedError

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Layout) -> Written:
        raise NotImplementedError


class Expand(Relation):
    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Layout) -> Wants:
        return {data: sliced(want, _axes(asking.facts, call.given, asking.facts.tensor(call.node).rank))}

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Layout) -> Written:
        rank = writing.facts.tensor(call.node).rank
        axes = _axes(writing.facts, call.given, rank)
        index = ", ".join("None" if d in axes else ":" for d in range(rank))
        text = writing.texts(self.wants(writing, call, data, want))[data]
        return call_text.by_template(writing.record, call.callee.row, {"input": text, "index": index})


class Squeeze(Relation):
    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Layout) -> Wants:
        return {data: asking.home(data)}

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Layout) -> Written:
        facts, parent = writing.facts, writing.home(data)
        text = call_text.generic(writing, call.node, {data: writing.emit(data, parent)})
        shape = facts.tensor(call.node).shape
        return _fit(writing, text, _infer(facts, call.node, "reshape", facts.tensor(data).shape, parent, shape), want)


class Broadcast(Relation):
    def home(
        self, facts: FunctionFacts, own: Layout, source: TensorFact, fact: TensorFact, call: Called
    ) -> Layout | None:
        return own if source.rank == fact.rank else None

    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Layout) -> Wants:
        return operands_in(asking.facts, [data], asking.facts.tensor(call.node), want)

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Layout) -> Written:
        text = writing.texts(self.wants(writing, call, data, want), writing.facts.tensor(call.node))[data]
        return _broadcast_text(writing, call.node, call.callee, call.given, data, text)


class Reshape(Relation):
    def home(
        self, facts: FunctionFacts, own: Layout, source: TensorFact, fact: TensorFact, call: Called
    ) -> Layout | None:
        return infer(facts.kernel.target, facts.kernel.num_warps, "reshape", source.shape, own, fact.shape)

    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Layout) -> Wants:
        facts, home_of, node = asking.facts, asking.home, call.node
        parent = _reshape_operand(facts, asking.cheap, home_of, node, data, facts.tensor(node), want)
        model = _model(asking, node, data)
        return {data: parent} | ({model: want} if model is not None and home_of(model) == want else {})

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Layout) -> Written:
        return _reshaped(writing, call.node, call.callee, call.given, want)


class Permute(Relation):
    def home(
        self, facts: FunctionFacts, own: Layout, source: TensorFact, fact: TensorFact, call: Called
    ) -> Layout | None:
        order = _order(facts, call.given, source.rank)
        return infer(facts.kernel.target, facts.kernel.num_warps, "permute", source.shape, own, order)

    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Layout) -> Wants:
        order = _order(asking.facts, call.given, asking.facts.tensor(data).rank)
        return permuted_wants(asking, call.node, data, order, want)

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Layout) -> Written:
        order = _order(writing.facts, call.given, writing.facts.tensor(data).rank)
        of_axes = str(list(order))
        by_row = functools.partial(call_text.by_template, writing.record, call.callee.row)
        return permuted(writing, call.node, data, order, want, lambda text: by_row({"input": text, "order": of_axes}))


class Join(Relation):
    def home(
        self, facts: FunctionFacts, own: Layout, source: TensorFact, fact: TensorFact, call: Called
    ) -> Layout | None:
        return infer(facts.kernel.target, facts.kernel.num_warps, "join", source.shape, own)

    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Layout) -> Wants:
        facts = asking.facts
        return operands_in(facts, tensors_of(facts, call), facts.tensor(data), _join_operand(asking, call.node, data))

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Layout) -> Written:
        return _joined(writing, call, self.wants(writing, call, data, want), want)


class Split(Relation):
    """Of a tensor two: `want` is a tuple."""

    def wants(self, asking: Asking, call: Called, data: ast.expr, want: Any) -> Wants:
        return {data: split_operand(asking.facts, asking.home, call.node, data)}

    def text(self, writing: Writing, call: Called, data: ast.expr, want: Any) -> Written:
        text = call_text.with_function(
            writing, call.node, call.callee, writing.texts(self.wants(writing, call, data, want))
        )
        return tuples.in_layouts(writing, text, split_home(writing.facts, writing.home, call.node, data), want)


RELATIONS: dict[str, Relation] = {
    "expand": Expand(),
    "squeeze": Squeeze(),
    "broadcast": Broadcast(),
    "reshape": Reshape(),
    "permute": Permute(),
    "join": Join(),
    "split": Split(),
}


class Shape(Kind):
    """The result's layout follows from the operand's, by the relation that its row names first."""

    def cheap_anew(self, facts: FunctionFacts, is_cheap: Cheap, call: Called) -> bool:
        """Whether Triton makes a reshaped value once for each layout that it is wanted in, as an outer product of tiles."""
        node, reshapes = call.node, call.callee.name in ("reshape", "view")
        data = first_tensor(facts, call.given) if reshapes else None
        if data is None or len(facts.visits(node)) != 1 or facts.tensor(data).rank <= facts.tensor(node).rank:
            return False
        return len(facts.placed_layouts(node)) > 1 and is_cheap(data)

    def home(self, asked: Helpers, call: Called, fact: TensorFact) -> Layout | None:
        facts, steps = asked.facts, call.callee.row.layouts
        data = first_tensor(facts, call.given)
        if data is None or len(steps) > 1:
            return None
        try:
            return _relation(facts, call).home(facts, asked.home(data), facts.tensor(data), fact, call)
        except NoLayout:
            return None

    def homes(self, asked: Helpers, call: Called, fact: TupleFact) -> tuple:
        facts, tensors = asked.facts, tensors_of(asked.facts, call)
        if not tensors:
            return super().homes(asked, call, fact)
        if _relation(facts, call) is RELATIONS["split"]:
            return (split_home(facts, asked.home, call.node, tensors[0]),) * 2
        got = asked.home(max(tensors, key=lambda a: facts.tensor(a).rank))  # it has all dimensions of what both become
        return for_tensors(fact, lambda f: got)

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        writing, facts = at.site, at.site.facts
        data = first_tensor(facts, call.given)
        if data is None:
            return {}
        if _relation(facts, call) is RELATIONS["split"]:
            return _relation(facts, call).wants(writing, call, data, want)
        if facts.tensor(call.node) is None:
            return _pair_wants(writing, call.given, want) if isinstance(facts.fact(call.node), TupleFact) else {}
        return _relation(facts, call).wants(writing, call, data, want or writing.home(call.node))

    def text(self, at: Place, call: Called, want: Any) -> Written:
        writing, facts, node = at.site, at.site.facts, call.node
        data = first_tensor(facts, call.given)
        if data is None:
            return _scalar_shape(writing, node, call.callee, call.given, want)
        if _relation(facts, call) is RELATIONS["split"]:
            return _relation(facts, call).text(writing, call, data, want)
        if facts.tensor(node) is None:
            if isinstance(facts.fact(node), TupleFact):  # broadcast(a, b)
                return _elementwise_pair(writing, node, call.callee, call.given, want)
            return call_text.generic(writing, node, {})
        return _relation(facts, call).text(writing, call, data, want or writing.home(node))


def _relation(facts: FunctionFacts, call: Called) -> Relation:
    found = RELATIONS.get(call.callee.row.layouts[0])
    if found is None:
        what = f"`{call.callee.name}` is not translated"
        why = f"its row says that layouts are `{call.callee.row.layouts[0]}`, which is no relation of shapes"
        raise refuse(facts.frame, call.node, "shape-call", what, why)
    return found


def _reshaped(writing: Writing, node: ast.Call, callee, given, want: Layout) -> Written:
    facts, data = writing.facts, first_tensor(writing.facts, given)
    source, fact = facts.tensor(data), facts.tensor(node)
    parent = _reshape_operand(facts, writing.cheap, writing.home, node, data, fact, want)
    values: dict[str, Part | None] = {"input": operand(writing.emit(data, parent))}
    own = _infer(facts, node, "reshape", source.shape, parent, fact.shape)
    if "shape" in callee.row.template.holes:
        values["shape"] = _shape_text(facts, writing.emit, node, callee, given, fact)
        if varies(facts, node) and own == want:
            instance_layouts.offer(writing, node, own, values["input"], values["shape"])
        elif varies(facts, data) and own == want:
            _offer_operand(writing, node, data, parent, want)
    return _fit(writing, call_text.by_template(writing.record, callee.row, values), own, want)


def _offer_operand(writing: Writing, node: ast.Call, data: ast.expr, layout: Layout, want: Layout) -> None:
    """`reshape(broadcast_to(y, shape), x.shape)`: what is reshaped lies as `x` does in that shape."""
    facts, model = writing.facts, _model(writing, node, data)
    if model is None or writing.home(model) != want:
        return
    inner = callee_of(facts, data)
    made = bind(data, inner)
    first = first_tensor(facts, made)
    rest = {str(i): a for i, a in enumerate(made.values()) if a is not first}
    instance_layouts.offer(
        writing,
        node,
        layout,
        writing.emit(model, want),
        _shape_text(facts, writing.emit, data, inner, rest, facts.tensor(data)),
    )


def _model(writing: Writing, node: ast.Call, data: ast.expr) -> ast.Name | None:
    """The `x` of `reshape(broadcast_to(y, shape), x.shape)` where what is reshaped has other shapes elsewhere."""
    facts = writing.facts
    inner = callee_of(facts, data) if isinstance(data, ast.Call) else None
    if inner is None or inner.name != "broadcast_to" or varies(facts, node) or not varies(facts, data):
        return None
    model = next((n.value for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr == "shape"), None)
    return model if isinstance(model, ast.Name) else None


def _fit(writing: Writing, text: Written, own: Layout, want: Layout | None) -> Written:
    if want is None or (own == want and not writing.facts.frame.joined):
        return text
    return writing.convert(text, want)


def permuted(
    writing: Site, node, data: ast.expr, order, want: Layout | None, spell: Callable[[Written], Written]
) -> Written:
    if isinstance(want, Layout) and (text := writing.permuted_tile(data, tuple(order), want)) is not None:
        return text
    layout, own = permuted_in(writing, node, data, order, want)
    text = spell(writing.emit(data, layout))
    return text if own is None else _fit(writing, text, own, want)


def permuted_wants(asking: Spot, node, data: ast.expr, order, want: Layout | None) -> Wants:
    """In which layout a permutation wants what is permuted."""
    if isinstance(want, Layout) and asking.permuted_tile(data, tuple(order), want) is not None:
        return {data: NOT_READ}
    return {data: permuted_in(asking, node, data, order, want)[0]}


def permuted_in(writing: Writing, node, data: ast.expr, order, want: Layout | None) -> tuple[Layout, Layout | None]:
    """(the layout in which `data` is permuted, that of the result; None where it is the wanted one)."""
    facts, source = writing.facts, writing.facts.tensor(data)
    parent = _operand_layout(facts, writing.home, node, data, ("tt.trans",))
    inverse = tuple(order.index(i) for i in range(len(order)))
    if want is not None and isinstance(want, (Blocked, Linear)):
        try:
            back = infer(
                facts.kernel.target, facts.kernel.num_warps, "permute", facts.tensor(node).shape, want, inverse
            )
            again = infer(facts.kernel.target, facts.kernel.num_warps, "permute", source.shape, back, tuple(order))
            if again == want and (writing.cheap(data) or back == writing.home(data)):
                return back, None
        except NoLayout:
            pass
    return parent, _infer(facts, node, "permute", source.shape, parent, tuple(order))


def _order(facts: FunctionFacts, given, rank: int) -> tuple[int, ...]:
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


def _shape_text(facts: FunctionFacts, emit: Emit, node, callee, given, fact) -> Part:
    """The shape argument as a list expression, constexpr names kept."""
    rest = [a for k, a in given.items() if k not in ("input", "self", "can_reorder")]
    if len(rest) == 1 and isinstance(facts.fact(rest[0]), TupleFact):
        return emit(rest[0])
    if rest and all(isinstance(facts.fact(a), ConstFact) for a in rest):
        if len(rest) == 1 and isinstance(facts.fact(rest[0]).value, (list, tuple)):
            return emit(rest[0])
        return listed(*(emit(a) for a in rest))
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


def _broadcast_text(writing: Writing, node, callee, given, data, text: Written) -> Written:
    facts = writing.facts
    rest = [a for k, a in given.items() if a is not data]
    shape = _shape_text(facts, writing.emit, node, callee, {str(i): a for i, a in enumerate(rest)}, facts.tensor(node))
    return call_text.by_template(writing.record, callee.row, {"input": text, "shape": shape})


def _scalar_shape(writing: Writing, node, callee, given, want) -> Written:
    facts = writing.facts
    fact = facts.tensor(node)
    if fact is None or not callee.row.of_scalar:
        return call_text.generic(writing, node, {})
    first, *rest = given.values()
    want = want or writing.home(node)
    scalar = writing.emit(first)
    if "join" in callee.row.layouts:
        pair = {"a": scalar, "b": writing.emit(rest[0]), "layout": writing.names.spell(want)}
        return call_text.by_template(writing.record, callee.row, pair, callee.row.of_scalar)
    shape = _shape_text(facts, writing.emit, node, callee, {str(i): a for i, a in enumerate(rest)}, fact)
    if callee.row.layouts == ("expand",):
        shape = str(list(fact.shape))
    own = facts.fact(first)
    dtype = attribute(scalar, "dtype") if isinstance(own, TensorFact) else f"gl.{fact.dtype}"
    values: dict[str, Part | None] = {
        "shape": shape,
        "input": scalar,
        "dtype": dtype,
        "layout": writing.names.spell(want),
    }
    return call_text.by_template(writing.record, callee.row, values, callee.row.of_scalar)


def _elementwise_pair(writing: Writing, node, callee, given, want) -> Written:
    shared = _larger(writing.facts, given)
    return call_text.with_function(writing, node, callee, writing.texts(_pair_wants(writing, given, want), shared))


def _larger(facts: FunctionFacts, given) -> TensorFact:
    """Of tensors that are broadcast to each other, the one with all dimensions."""
    return max((f for a in given.values() if (f := facts.tensor(a)) is not None), key=lambda f: f.rank)


def _pair_wants(asking: Asking, given, want) -> Wants:
    shared = _larger(asking.facts, given)
    layout = want[0] if isinstance(want, tuple) and want[0] is not None else None
    layout = layout or asking.home(next(a for a in given.values() if asking.facts.tensor(a) is shared))
    return operands_in(asking.facts, given.values(), shared, layout)


def split_operand(facts: FunctionFacts, home_of: HomeOf, node, data: ast.expr) -> Layout:
    """A layout for the operand of `split` that holds both halves in one lane. Two numbers, a tensor of rank 1, are a row of one."""
    fact = facts.tensor(data)
    if fact.rank == 1:
        return Slice(0, _both_halves(facts, (1,)))
    layout = _operand_layout(facts, home_of, node, data, ("tt.split",))
    if isinstance(layout, Blocked) and layout.size_per_thread[-1] == 2:
        return layout
    if not isinstance(layout, Blocked):
        for op in facts.placed(node, "tt.split"):
            return op.operands[0].layout
    return _both_halves(facts, fact.shape[:-1])


def _both_halves(facts: FunctionFacts, half: tuple[int, ...]) -> Blocked:
    """The default layout of a half, with a dimension of two behind the others that one lane has all of."""
    base = facts.default_layout(half)
    return Blocked(
        (*base.size_per_thread, 2),
        (*base.threads_per_warp, 1),
        (*base.warps_per_cta, 1),
        (len(half), *base.order),
        tuple((*basis, 0) for basis in base.ctas),
    )


def split_home(facts: FunctionFacts, home_of: HomeOf, node, data: ast.expr) -> Layout | None:
    """The layout of both halves; None for two scalars."""
    fact = facts.tensor(data)
    if fact.rank == 1:
        return None
    operand = split_operand(facts, home_of, node, data)
    try:
        return infer(facts.kernel.target, facts.kernel.num_warps, "split", fact.shape, operand)
    except NoLayout:
        return None


def _join_operand(writing: Writing, node: ast.Call, first: ast.expr) -> Layout:
    """The layout in which two tensors are joined."""
    if not any(op.name == "tt.join" for op in writing.facts.placed(node)):
        return writing.home(first)
    return _operand_layout(writing.facts, writing.home, node, first, ("tt.join",))


def _joined(writing: Writing, call: Called, wants: Wants, want: Layout) -> Written:
    """join, interleave and cat: both operands in one layout, the result's inferred from it."""
    facts, node, callee, given = writing.facts, call.node, call.callee, call.given
    first, tensors = first_tensor(facts, given), tensors_of(facts, call)
    source, fact = facts.tensor(first), facts.tensor(node)
    parent = _join_operand(writing, node, first)
    children = writing.texts(wants, source)
    join = _infer(facts, node, "join", source.shape, parent)
    joined_shape = (*source.shape, 2)
    a, b = (children[t] for t in tensors[:2]) if len(tensors) > 1 else (children[first], children[first])
    values: dict[str, Part | None] = {"a": a, "b": b, "shape": str(list(fact.shape))}
    if callee.row.layouts == ("join",):
        return _fit(writing, call_text.by_template(writing.record, callee.row, values), join, want)
    if "permute" not in callee.row.layouts:
        own = _infer(facts, node, "reshape", joined_shape, join, fact.shape)
        return _fit(writing, call_text.by_template(writing.record, callee.row, values), own, want)
    dim = 0
    if "dim" in given and not is_true(facts, given.get("can_reorder")):
        dim = int(facts.fact(given["dim"]).value) % source.rank
    order = list(range(source.rank))
    order.insert(dim, source.rank)
    moved_shape = tuple(joined_shape[i] for i in order)
    moved = _infer(facts, node, "permute", joined_shape, join, tuple(order))
    own = _infer(facts, node, "reshape", moved_shape, moved, fact.shape)
    return _fit(writing, call_text.by_template(writing.record, callee.row, values | {"order": str(order)}), own, want)
