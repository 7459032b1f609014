"""What tensor descriptors come from, through helpers that are given them or return them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.trace.front.trace import ConstFact


@dataclass(frozen=True)
class Origin:
    """The call that makes a descriptor, or the argument of the kernel that holds one, in the function of `facts`."""

    facts: FunctionFacts
    node: ast.Call | ast.arg

    def given(self, position: int, name: str) -> tuple[FunctionFacts, ast.expr] | None:
        """What the call is given for a parameter, in the function where that is an expression of its own; None of an argument."""
        if isinstance(self.node, ast.arg):
            return None
        found = self.node.args[position] if len(self.node.args) > position else None
        found = found or next((k.value for k in self.node.keywords if k.arg == name), None)
        return _outermost(self.facts, found) if found is not None else None

    @property
    def padding(self) -> str:
        """What elements outside of the tensor read as: `zero` or `nan`."""
        option = self.given(4, "padding_option")
        fact = option[0].fact(option[1]) if option is not None else None
        return fact.value if isinstance(fact, ConstFact) else "zero"


def origin_of(facts: FunctionFacts, owner: ast.expr) -> Origin | None:
    """What the descriptor `owner` comes from, where that is known."""
    if isinstance(owner, ast.Call):
        return _returned(facts, owner)
    made = facts.webs.single_of(owner)
    if made is None:
        return None
    if isinstance(made.node, ast.arg):
        if not facts.path:
            return Origin(facts, made.node)
        outer, arguments = facts.called or (None, {})
        return origin_of(outer, arguments[made.name]) if outer is not None and made.name in arguments else None
    if isinstance(made.value, ast.Name) or (
        isinstance(made.value, ast.Call) and callees.is_descriptor(facts.fact(made.value))
    ):
        return origin_of(facts, made.value)
    return None


def _returned(facts: FunctionFacts, call: ast.Call) -> Origin | None:
    """What the descriptor comes from that `call` gives: a helper may return it."""
    if not callees.is_helper(facts, call):
        return Origin(facts, call)
    inner, _ = facts.callee(call)
    values = inner.returned if inner is not None else ()
    return origin_of(inner, values[0]) if inner is not None and len(values) == 1 and values[0] is not None else None


def _outermost(facts: FunctionFacts, node: ast.expr) -> tuple[FunctionFacts, ast.expr]:
    """`node`, or what a helper is given in its place, as far out as it is the same expression."""
    made = facts.webs.single_of(node)
    outer, arguments = facts.called or (None, {})
    if outer is None or made is None or not isinstance(made.node, ast.arg) or made.name not in arguments:
        return facts, node
    return _outermost(outer, arguments[made.name])


__all__ = ["Origin", "origin_of"]
