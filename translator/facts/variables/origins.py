"""The expressions that Triton makes a value of: what stands under casts to the type that it has already, factors of 1, and other variables."""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.variables.definitions import definition_node
from gluonize.facts.webs import Web
from gluonize.trace.front.trace import ConstFact


def untransposed(facts: FunctionFacts, node: ast.expr) -> tuple[ast.expr, bool]:
    """The matrix under `.T`, `tl.trans(x)` and `tl.permute(x, (1, 0))`, and whether an odd number of them was there."""
    transposed = False
    while True:
        node = _uncast(facts, node)
        if (inner := callees.transposed_by(facts, node)) is None:
            return node, transposed
        node, transposed = inner, not transposed


def origins_of(facts: FunctionFacts, value: ast.expr) -> list[ast.expr]:
    """The expressions that a value may come from."""
    web = facts.webs.of_use.get(value)
    found = [value, _same_value(facts, value)] if web is None else definitions_of(facts, web)
    return [*found, *(cast for origin in found for cast in _same_casts(facts, origin))]


def _same_casts(facts: FunctionFacts, value: ast.expr) -> list[ast.expr]:
    """The other casts of the same value to the same type: Triton makes them one, where the first of them is."""
    name = callees.cast_of(facts, value)
    if not isinstance(name, ast.Name) or (seen := facts.webs.reaching.get(name)) is None:
        return []
    names = {
        use for use, found in facts.webs.reaching.items() if use.id == name.id and found == seen and use is not name
    }
    if not names:
        return []
    return [
        n
        for n in facts.nodes
        if isinstance(n, ast.Call)
        and not names.isdisjoint(ast.iter_child_nodes(n.func) if isinstance(n.func, ast.Attribute) else n.args)
        and callees.cast_of(facts, n) in names
        and facts.tensor(n) == facts.tensor(value)
    ]


def definitions_of(facts: FunctionFacts, web: Web) -> list[ast.expr]:
    """The expressions that define a variable; where one is another variable's value, those that define that one."""
    out: list[ast.expr] = []
    webs = [web]
    for w in webs:
        for node in (definition_node(d) for d in w.definitions):
            node = node and _same_value(facts, node)
            other = facts.webs.of_use.get(node)
            if other is None:
                out += [node] if node is not None else []
            elif other not in webs:
                webs.append(other)
    return out


def _same_value(facts: FunctionFacts, node: ast.expr) -> ast.expr:
    """The expression that Triton makes a value of, under casts to the type that it has already and factors that are 1 in this launch."""
    while True:
        node, inner = _uncast(facts, node), None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            inner = next((a for a, b in ((node.left, node.right), (node.right, node.left)) if _is_one(facts, b)), None)
        if inner is None or facts.tensor(inner) != facts.tensor(node):
            return node
        node = inner


def _uncast(facts: FunctionFacts, node: ast.expr) -> ast.expr:
    """The value under casts to the type that it has; Triton makes no operation of them."""
    while isinstance(node, ast.Call):
        callee = callees.callee_of(facts, node)
        if callee is None or callee.row is None or callee.name not in ("to", "cast") or callee.owner is None:
            break
        fact = facts.tensor(callee.owner)
        if fact is None or fact != facts.tensor(node):
            break
        node = callee.owner
    return node


def _is_one(facts: FunctionFacts, node: ast.expr) -> bool:
    fact = facts.settled(node)
    return isinstance(fact, ConstFact) and isinstance(fact.value, (int, float)) and fact.value == 1
