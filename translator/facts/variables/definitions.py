"""Definitions of variables: what they give, what leaves a variable as it is, and where Triton placed what they give."""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import Any

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import augmented_binop
from gluonize.facts.webs import Definition, Web
from gluonize.trace.front.trace import ConstFact
from gluonize.trace.model.layouts import DotOperand, Layout


def definition_node(d: Definition) -> ast.AST | None:
    """The node whose visit produced the defined value."""
    return augmented_binop(d.node) if d.augmented else d.value


def names_read(facts: FunctionFacts, node: ast.AST, without: Container[ast.AST] = ()) -> list[ast.Name]:
    """The names whose values `node` reads at run time outside of `without`: a tensor that is asked for its type is not read."""
    if node in without or isinstance(node, ast.expr) and isinstance(facts.fact(node), ConstFact):
        return []
    inner = [name for child in ast.iter_child_nodes(node) for name in names_read(facts, child, without)]
    return [node, *inner] if isinstance(node, ast.Name) else inner


def assigned_fact(facts: FunctionFacts, s: ast.stmt) -> Any:
    """What an assignment gives to its target."""
    return facts.fact(augmented_binop(s) if isinstance(s, ast.AugAssign) else s.value)


def changing(facts: FunctionFacts, web: Web) -> list[Definition]:
    """The definitions of `web` that do not leave it as it is."""
    return [d for d in web.definitions if not keeps(facts, d)]


def keeps(facts: FunctionFacts, d: Definition) -> bool:
    """Whether a definition leaves the variable as it is: `x = x.to(dtype)` where that is its type."""
    value = callees.cast_of(facts, d.value) if isinstance(d.value, ast.Call) and not d.augmented else None
    if not isinstance(value, ast.Name):
        return False
    same = facts.webs.of_use.get(value) is facts.webs.of_definition.get((d.node, d.name))
    return same and facts.fact(value) is not None and facts.fact(value) == facts.fact(d.value)


def definition_placed(facts: FunctionFacts, d: Definition) -> list[Layout]:
    """The layouts that Triton placed what `d` gives in; of a copy, what it copies."""
    node = definition_node(d)
    if isinstance(node, ast.Name):
        made = facts.webs.definition_of(node)
        node = definition_node(made) if made is not None else None
    if node is None or isinstance(node, ast.Name):
        return []
    placed = facts.placed_layouts(node)
    if isinstance(node, ast.Call) and callees.is_helper(facts, node):
        # What a helper returns is hardly an operand inside.
        placed.sort(key=lambda layout: isinstance(layout, DotOperand))
    return placed


def is_filled(facts: FunctionFacts, node: ast.AST | None) -> bool:
    """Whether a value is `tl.zeros` or `tl.full`, which any layout suits."""
    callee = callees.callee_of(facts, node) if isinstance(node, ast.Call) else None
    return callee is not None and callee.row is not None and callee.name in ("zeros", "full")
