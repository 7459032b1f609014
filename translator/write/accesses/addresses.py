"""Addresses: pointer expressions taken apart into a scalar pointer and integers, and the names that stand for pointers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import index_parts, is_new_axis
from gluonize.facts.webs import Web
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import Name
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.variables import WebState
from gluonize.write.state.writing import Rebound, StateOf


@dataclass(frozen=True)
class Term:
    """One addend of an address: `axes` are the new axes that a surrounding `[:, None]` gave it."""

    node: ast.expr
    sign: str
    axes: tuple[int, ...] = ()
    variable: str = ""  # the integer variable that stands for the node, where there is one
    factors: tuple[ast.expr, ...] = ()  # scalars that the node is multiplied by


@dataclass(frozen=True)
class Address:
    """base (a scalar pointer expression, or a split web) plus scalar and tensor terms."""

    base: ast.expr
    web: Web | None = None
    web_axes: tuple[int, ...] = ()
    scalars: tuple[Term, ...] = ()
    tensors: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Addressing:
    """What pointers are while a function is written.

    demand: says that the use at a place needs a variable in a layout. recomputed: pointer expressions of loops that are not
    pipelined -> the loop, and whether an access makes them itself; uniform: others that are so only if nothing else serves.
    guards: loads of a producer that end with its loop.
    """

    facts: FunctionFacts
    state_of: StateOf
    fresh: FreshNames
    rebound: Rebound
    demand: Callable[[WebState, Layout, tuple[int, int]], None]
    recomputed: dict[ast.expr, tuple[ast.AST, bool]]
    uniform: dict[ast.expr, tuple[ast.AST, bool]]
    guards: dict[ast.Call, Any]


def address_of(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, node: ast.expr) -> Address | None:
    """Decompose a pointer expression; None if it is not base plus integers."""
    fact = facts.fact(node)
    if not isinstance(fact, TensorFact) or not fact.is_pointer:
        return None
    if not fact.shape:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and is_pointer(facts, node.left):
            inner = address_of(facts, state_of, fresh, node.left)
            if inner is not None and facts.fact(node.right) is not None:
                return replace(inner, scalars=(*inner.scalars, Term(node.right, "+")))
            return inner
        if (web := facts.webs.of_use.get(node)) is not None:
            if (split := state_of(web).split) is not None:
                return Address(
                    ast.copy_location(split.node, node), None, (), (Term(node, "+", (), scalar_name(fresh, web)),)
                )
        return Address(node)
    if isinstance(node, ast.Name):
        web = facts.webs.of_use.get(node)
        if web is None or state_of(web).split is None:
            return None
        return Address(node, web)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        pointer, integer = (node.left, node.right) if is_pointer(facts, node.left) else (node.right, node.left)
        if not is_pointer(facts, pointer) or (isinstance(node.op, ast.Sub) and pointer is not node.left):
            return None
        address = address_of(facts, state_of, fresh, pointer)
        if address is None:
            return None
        sign = "-" if isinstance(node.op, ast.Sub) else "+"
        own = facts.fact(integer)
        if isinstance(own, TensorFact) and own.shape:
            if own.rank != fact.rank:
                return None
            address = replace(address, tensors=(*address.tensors, Term(integer, sign)))
        elif isinstance(own, (TensorFact, ConstFact)):
            address = replace(address, scalars=(*address.scalars, Term(integer, sign)))
        else:
            return None
        inner = facts.fact(pointer)
        if inner.shape and inner.rank != fact.rank:
            return None
        return address
    if isinstance(node, ast.Subscript) and facts.tensor(node.value) is not None:
        address = address_of(facts, state_of, fresh, node.value)
        if address is None:
            return None
        parts = index_parts(node)
        axes = tuple(i for i, p in enumerate(parts) if is_new_axis(p))
        if any(t.axes for t in address.tensors) or address.web_axes:
            return None
        tensors = tuple(Term(t.node, t.sign, axes) for t in address.tensors)
        return replace(address, tensors=tensors, web_axes=axes)
    return None


def tensors_from(facts: FunctionFacts, web: Web) -> Iterator[ast.BinOp]:
    """The sums that make tensors of pointers of a scalar pointer variable. What other pointer variables are is not asked: that may rest on what
    this one is."""
    for node in facts.nodes:
        start: ast.AST = node
        while isinstance(start, (ast.BinOp, ast.Subscript)) and is_pointer(facts, start):
            if isinstance(start, ast.Subscript):
                start = start.value
            else:
                start = start.left if is_pointer(facts, start.left) else start.right
        if isinstance(node, ast.BinOp) and facts.webs.of_use.get(start) is web and facts.tensor(node) is not None:
            yield node


def is_pointer(facts: FunctionFacts, node: ast.AST) -> bool:
    """Whether the value is a pointer, or a tensor of pointers."""
    fact = facts.fact(node)
    return isinstance(fact, TensorFact) and fact.is_pointer


def root_parameter(facts: FunctionFacts, node: ast.AST, seen: frozenset = frozenset()) -> str | None:
    """The kernel parameter that a scalar pointer expression is derived from by adding integers."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        pointer = node.left if is_pointer(facts, node.left) else node.right
        return root_parameter(facts, pointer, seen)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_pointer(facts, node.func.value):
        return None
    if not isinstance(node, ast.Name):
        return None
    web = facts.webs.of_use.get(node)
    if web is None or web.index in seen:
        return None
    roots = set()
    for d in web.definitions:
        if isinstance(d.node, ast.arg):
            roots.add(facts.pointers.roots.get(d.name) if facts.path else d.name)
        elif not d.augmented:
            if d.value is None:
                return None
            roots.add(root_parameter(facts, d.value, seen | {web.index}))
    return roots.pop() if len(roots) == 1 else None


def is_bare_parameter(facts: FunctionFacts, node: ast.AST) -> bool:
    """Whether `node` names a kernel parameter that is never reassigned, so that it still points at its tensor's start."""
    made = facts.webs.single_of(node)
    is_parameter = made is not None and isinstance(made.node, ast.arg)
    return is_parameter and (not facts.path or made.name in facts.pointers.bare)


def wide_scalar(facts: FunctionFacts, node: ast.AST) -> bool:
    """Whether a value, or each element of a tensor, has 64 bits."""
    fact = facts.fact(node)
    return isinstance(fact, TensorFact) and fact.dtype in ("int64", "uint64")


def wide_term(facts: FunctionFacts, state_of: StateOf, term: Term) -> bool:
    """Whether an addend has 64 bits, be it an expression or the variable of a split scalar pointer."""
    if term.variable:
        return state_of(facts.webs.of_use[term.node]).split.wide
    return any(wide_scalar(facts, node) for node in (term.node, *term.factors))


def scalar_name(fresh: FreshNames, web: Web) -> str:
    """The integer variable, or the offsets, that stand for a split pointer."""
    return _name_for(fresh, web, f"{_stem(web.name)}_offs")


def names_of(fresh: FreshNames, names: LayoutNames, state: WebState, layout: Layout) -> tuple[str, Name]:
    """(base expression, offsets variable) of a split pointer variable."""
    offsets = scalar_name(fresh, state.web)
    base = state.split.base or base_variable(fresh, state.web)
    if not state.variants or state.variants[0] == layout:
        return base, offsets
    return base, names.variant(offsets, layout)


def base_variable(fresh: FreshNames, web: Web) -> str:
    """The variable that holds the base of a split pointer variable, where it needs one."""
    return _name_for(fresh, web, f"{_stem(web.name)}_base")


def _stem(name: str) -> str:
    """The name of a pointer variable without what says that it is one."""
    suffix = next((suffix for suffix in ("pointers", "pointer", "ptrs", "ptr") if name.endswith(suffix)), "")
    return name.removesuffix(suffix).removesuffix("_" if suffix else "") or name


def _name_for(fresh: FreshNames, web: Web, name: str) -> str:
    return fresh.of((web.index, name), name)
