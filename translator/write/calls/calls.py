"""Calls, each as the kind of its row decides: the home of what it returns, what it wants of its arguments, its Gluon text."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping
from typing import Any

from gluonize.facts.callees import callee_of
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import range_of_loop
from gluonize.facts.syntax import arguments_of
from gluonize.gluon.imports import TRITON_LANGUAGE
from gluonize.gluon.written import Part, Written, attribute, call, keyword, literal, operand
from gluonize.rules.builtins import BUILTINS
from gluonize.trace.front.trace import ConstFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.triton_api.language import tl
from gluonize.write.calls import inline_asm, shapes
from gluonize.write.calls.helpers import Helpers
from gluonize.write.calls.kind import Place, for_tensors
from gluonize.write.calls.kinds import kind_of
from gluonize.write.state.call_text import Called, generic
from gluonize.write.state.relations import Wants
from gluonize.write.state.site import Site, Spot
from gluonize.write.state.writing import Cheap, Writing


def cheap(facts: FunctionFacts, is_cheap: Cheap, staged: Container[ast.AST], node: ast.Call) -> bool:
    """Whether computing a call again in another layout costs less than moving its result."""
    if node in staged:  # reading LDS again in another layout is what LDS is for
        return True
    callee = callee_of(facts, node)
    if callee is None or callee.row is None:
        return False
    kind = kind_of(facts, callee)
    return (kind.cheap if callee.row.cost == "cheap" else kind.cheap_anew)(facts, is_cheap, Called(node, callee))


def home(helper: Helpers, held: Mapping[ast.Call, Any], node: ast.Call) -> Layout | None:
    """The layout of what a call returns, where Triton's own module says none; None for the default."""
    callee, fact = callee_of(helper.facts, node), helper.facts.tensor(node)
    if callee is None or fact is None:
        return None
    if node in held:
        return held[node].layout
    return kind_of(helper.facts, callee).home(helper, Called(node, callee), fact)


def tuple_home(helper: Helpers, node: ast.Call, fact: TupleFact) -> tuple:
    """The layouts of the tensors that a call returns."""
    callee = callee_of(helper.facts, node)
    if callee is None:
        return for_tensors(fact, lambda f: helper.facts.default_layout(f.shape))
    return kind_of(helper.facts, callee).homes(helper, Called(node, callee), fact)


def wants(at: Place, node: ast.Call, want: Any) -> Wants:
    """In which layouts a call, made in `want`, wants what it is given; what it says nothing of is taken as it is."""
    site = at.site
    if node in site.staged or node in site.held:
        return {}
    callee = callee_of(site.facts, node)
    own = {node.func: None} if callee is None else kind_of(site.facts, callee).wants(at, Called(node, callee), want)
    plain = [a.value if isinstance(a, ast.Starred) else a for a in arguments_of(node)]
    if callee is not None and callee.owner is not None:
        plain.append(callee.owner)
    listed = [e for a in plain if isinstance(a, (ast.Tuple, ast.List)) for e in a.elts]
    return dict.fromkeys([a for a in plain if not isinstance(a, (ast.Tuple, ast.List))] + listed) | own


def emit_call(at: Place, node: ast.Call, want: Any) -> Written:
    """A call in Gluon, its result in `want`."""
    site = at.site
    if (tile := site.staged.get(node) or site.held.get(node)) is not None:
        return tile.text(site, want or site.home(node))
    callee = callee_of(site.facts, node)
    if callee is None:
        return generic(site, node, {})
    return kind_of(site.facts, callee).text(at, Called(node, callee), want)


def role_of(facts: FunctionFacts, staged: Container[ast.AST], value: ast.expr, name: str) -> tuple[str, int] | None:
    """A role for the layout of `name = value`: `a = tl.load(...)` gives `a_load`."""
    if isinstance(value, ast.Call):
        if value in staged:
            return f"{name}_operand", 1
        callee = callee_of(facts, value)
        if callee is not None and callee.row is not None:
            if callee.row.kind == "load":
                return f"{name}_load", 1
            if callee.row.kind == "dot":
                return None
        if callee is not None and callee.owner is not None and isinstance(callee.owner, ast.Call):
            return role_of(facts, staged, callee.owner, name)
    return None


def emit_statement_call(at: Place, node: ast.expr) -> Part:
    """A statement that is an expression, most often a call, whose value nobody takes."""
    if isinstance(node, ast.Call):
        return inline_asm.statement(at.site.facts, node) or emit_call(at, node, None)
    return at.site.emit(node)


def emit_iterator(writing: Writing, node: ast.expr) -> Written:
    """`tl.range(a, b, num_stages=3)` -> `range(a, b)`: Gluon's loops take no schedule, it is written out instead."""
    if not isinstance(node, ast.Call):
        return writing.emit(node)
    fact = writing.facts.fact(node.func)
    if isinstance(fact, ConstFact) and fact.value is tl.range:
        unroll = [k for k in node.keywords if k.arg == "loop_unroll_factor"]
        arguments = [writing.emit(a) for a in node.args]
        bounds = range_of_loop(node, fact)
        if bounds is not None and any(k.arg in ("arg1", "arg2", "step") for k in node.keywords):  # in whatever order
            low, high, step = bounds
            low_text = literal(0) if low is None else writing.emit(low)
            arguments = [low_text, writing.emit(high), *([] if step is None else [writing.emit(step)])]
        if unroll:
            writing.record.imports.add(TRITON_LANGUAGE)
            return call("tl.range", *arguments, keyword("loop_unroll_factor", writing.emit(unroll[0].value)))
        return call("".join(BUILTINS.by_callee["triton.language.range"].template.called({}, operand)), *arguments)
    return writing.emit(node)


def attribute_wants(asking: Spot, node: ast.Attribute, want: Any) -> Wants:
    """`x.T`, and fields of namedtuples and aggregates that hold tensors."""
    if node.attr == "T" and asking.facts.tensor(node.value) is not None:
        return shapes.permuted_wants(asking, node, node.value, (1, 0), want)
    return {node.value: None}


def emit_attribute(writing: Site, node: ast.Attribute, want: Any) -> Written:
    """`x.T`, and fields of namedtuples and aggregates that hold tensors."""
    facts = writing.facts
    base = facts.tensor(node.value)
    if node.attr == "T" and base is not None:
        return shapes.permuted(writing, node, node.value, (1, 0), want, lambda text: attribute(text, "T"))
    text = writing.splice(node, {node.value: writing.emit(node.value)})
    homes = writing.home(node.value)
    fact = facts.fact(node.value)
    if isinstance(fact, TupleFact) and fact.fields and isinstance(homes, tuple) and node.attr in fact.fields:
        own = homes[fact.fields.index(node.attr)]
        if want is not None and own != want:
            return writing.convert(text, want)
    return text
