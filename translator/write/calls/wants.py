"""What calls want of their arguments, by the kind of their row in `rules/`: the layouts in which `calls` writes them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from gluonize.facts.callees import Callee, bind, callee_of, is_descriptor, is_given
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.syntax import arguments_of
from gluonize.facts.variables.definitions import assigned_fact
from gluonize.trace.front.trace import TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.write.accesses import accesses
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.calls import helpers, inline_asm, reductions, shape_calls
from gluonize.write.calls.helpers import Helpers
from gluonize.write.descriptors import descriptors
from gluonize.write.products import dots, scaled_dots
from gluonize.write.state.call_text import Called
from gluonize.write.state.relations import Wants, operands_in
from gluonize.write.state.site import Site
from gluonize.write.state.writing import Writing


def wants(site: Site, addressing: Addressing, helper: Helpers, node: ast.Call, want: Any) -> Wants:
    """In which layouts a call, made in `want`, wants what it is given; what it says nothing of is taken as it is."""
    if node in site.staged or node in site.held:
        return {}
    callee = callee_of(site.facts, node)
    own = _own_wants(site, addressing, helper, node, callee, want) if callee is not None else {node.func: None}
    plain = [a.value if isinstance(a, ast.Starred) else a for a in arguments_of(node)]
    if callee is not None and callee.owner is not None:
        plain.append(callee.owner)
    listed = [e for a in plain if isinstance(a, (ast.Tuple, ast.List)) for e in a.elts]
    return dict.fromkeys([a for a in plain if not isinstance(a, (ast.Tuple, ast.List))] + listed) | own


def _own_wants(site: Site, addressing: Addressing, helper: Helpers, node: ast.Call, callee: Callee, want: Any) -> Wants:
    if callee.row is None or callee.row.kind == "helper":
        return helpers.helper_wants(helper, node, callee, want) if isinstance(callee.function, JITFunction) else {}
    kind, given = callee.row.kind, bind(node, callee)
    call = Called(node, callee, given)
    if callee.owner is not None and is_descriptor(site.facts.fact(callee.owner)):
        return descriptors.wants(site, node, callee, given, want)
    if kind == "load":
        return accesses.load_wants(site, addressing, call, want)
    if kind == "store":
        return accesses.store_wants(site, addressing, call, not site.loops and not site.partitioned)
    if kind == "atomic":
        return accesses.atomic_wants(site, addressing, call)
    if kind == "dot":
        return dots.dot_wants(site, node)
    if kind == "dot_scaled":
        return scaled_dots.dot_scaled_wants(site, node, given)
    return _WANTS.get(kind, elementwise_wants)(site, node, callee, given, want)


def attribute_wants(writing: Writing, node: ast.Attribute, want: Any) -> Wants:
    """`x.T`, and fields of namedtuples and aggregates that hold tensors."""
    if node.attr == "T" and writing.facts.tensor(node.value) is not None:
        return shape_calls.permuted_wants(writing, node, node.value, (1, 0), want)
    return {node.value: None}


def fused(facts: FunctionFacts, node: ast.AST) -> tuple[ast.Call, ast.expr] | None:
    """(the product, the accumulator) of `acc + tl.dot(a, b)`, which is one matrix operation."""
    fact = facts.tensor(node)
    if fact is None or not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return None
    for dot, other in ((node.right, node.left), (node.left, node.right)):
        if products.can_accumulate(facts, dot, other, fact, widen=True):
            return dot, other
    return None


def fused_wants(site: Site, node: ast.AST) -> Wants | None:
    """What an addition that is a matrix operation wants; None for others."""
    found = fused(site.facts, node)
    return None if found is None else dots.dot_wants(site, *found)


def accumulates(facts: FunctionFacts, s: ast.AugAssign) -> bool:
    """Whether `acc += tl.dot(a, b)` is one matrix operation."""
    return isinstance(s.op, ast.Add) and products.can_accumulate(facts, s.value, s.target, assigned_fact(facts, s))


def accumulated_wants(site: Site, s: ast.AugAssign) -> Wants:
    """What such an operation wants of its operands."""
    return dots.dot_wants(site, s.value, in_place=True)


def result_of(
    writing: Writing, node: ast.Call, given: Mapping[str, ast.expr], want: Any
) -> tuple[TensorFact | None, Layout | None] | None:
    """What the operands of an elementwise call have to fit, and its layout; None for `device_print` and the like, which take any."""
    facts = writing.facts
    fact = facts.tensor(node)
    if fact is not None:
        return fact, want or writing.home(node)
    shapes = [facts.tensor(a) for a in given.values() if facts.tensor(a) is not None]
    if isinstance(facts.fact(node), TupleFact) and shapes:
        shared = max(shapes, key=lambda f: f.rank)
        first = want[0] if isinstance(want, tuple) else None
        return shared, first or writing.home(next(a for a in given.values() if facts.tensor(a) is shared))
    return None if shapes else (None, want)


def elementwise_wants(writing: Writing, node: ast.Call, callee: Callee, given, want) -> Wants:
    if callee.name == "inline_asm_elementwise":
        return inline_asm.wants(writing, given, want)
    found = result_of(writing, node, given, want)
    return {} if found is None else operands_in(writing.facts, given.values(), *found)


def creator_wants(writing: Writing, node, callee, given, want) -> Wants:
    if writing.facts.tensor(node) is None or callee.row.template.takes_arguments:
        return {}
    return {given["input"]: want or writing.home(node)}


def gather_wants(writing: Writing, node, callee, given, want) -> Wants:
    source, index = given["src"], given["index"]
    placed = writing.facts.placed(node, "tt.gather")
    from_layout = placed[0].operands[0].layout if placed and placed[0].operands else writing.home(source)
    return {source: from_layout, index: want or writing.home(node)}


def histogram_wants(writing: Writing, node, callee, given, want) -> Wants:
    data = given["input"]
    counted = [a for a in (data, given.get("mask")) if is_given(writing.facts, a)]
    return operands_in(writing.facts, counted, writing.facts.tensor(data), writing.home(data))


def _nothing(writing: Writing, node, callee, given, want) -> Wants:
    return {}


_WANTS: Mapping[str, Callable[..., Wants]] = {
    "same": _nothing,
    "refuse": _nothing,
    "creator": creator_wants,
    "reduce": reductions.reduce_wants,
    "scan": reductions.scan_wants,
    "shape": shape_calls.wants,
    "gather": gather_wants,
    "histogram": histogram_wants,
    "descriptor": descriptors.wants,
}
