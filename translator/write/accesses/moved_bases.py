"""Offsets from a base that was moved: do they reach all of the tensor?

A buffer operation takes offsets below 2 GiB. From a base at or behind the tensor's start, what lies further away lies outside. From a base
before it an offset may exceed that though the element lies in the tensor:

    ptrs = x_ptr - n + offs * 16777216      # n = 2**30: element 0 of the tensor is at offs = 64, 4 GiB from the base
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.host_bounds import Condition
from gluonize.facts.numbers.signs import Signs, checked_at, most_checked, most_of
from gluonize.facts.webs import Web
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.write.accesses.addresses import Address, Term, address_of, is_pointer
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.writing import StateOf

REWRITE = "a base that moved"


@dataclass
class Reached:
    """What addresses are made of. starts: scalar pointers. scalars: what is added to those, at once or in a loop. sums: of tensors, each the
    offsets of some address; grows: tensors are added in a loop as well, so that nothing bounds the sums.
    """

    starts: list[ast.expr] = field(default_factory=list)
    scalars: list[Term] = field(default_factory=list)
    sums: list[list[Term]] = field(default_factory=list)
    grows: bool = False

    def with_address(self, address: Address) -> Reached:
        """The addresses that `address` adds its own terms to these for."""
        sums = [[*terms, *address.tensors] for terms in self.sums]
        return Reached(self.starts, [*self.scalars, *address.scalars], sums, self.grows)


def of_address(address: Address) -> Reached:
    """An address that is no variable."""
    moved = [term.node for term in address.scalars if term.variable]  # of a scalar pointer, which is kept as an integer
    scalars = [term for term in address.scalars if not term.variable]
    return Reached(moved or [address.base], scalars, [[*address.tensors]])


def of_variable(
    facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, web: Web, seen: frozenset[int] = frozenset()
) -> Reached | None:
    """What the addresses in a variable that is kept as a base and offsets are made of; None where that cannot be told."""
    if web.index in seen:
        return Reached()
    found = Reached()
    for d in web.definitions:
        if d.augmented:
            term = Term(d.value, "+" if isinstance(d.node.op, ast.Add) else "-")
            fact = facts.fact(d.value)
            if isinstance(fact, TensorFact) and fact.shape:
                found.grows = True
            else:
                found.scalars.append(term)
            continue
        address = address_of(facts, state_of, fresh, d.value) if d.value is not None else None
        if address is None:
            return None
        if address.web is None:
            made: Reached | None = of_address(address)
        else:
            made = of_variable(facts, state_of, fresh, address.web, seen | {web.index})
            found.grows |= address.web.index in seen | {web.index} and bool(address.tensors)
            made = None if made is None else made.with_address(address)
        if made is None:
            return None
        found.starts += made.starts
        found.scalars += made.scalars
        found.sums += made.sums
        found.grows |= made.grows
    return found


def reaches(facts: FunctionFacts, proof: Signs, reached: Reached) -> bool:
    """Whether the offsets reach all of the tensor, for every launch or by what is checked, which goes to `proof`."""
    size = bits_of(facts.fact(reached.starts[0]).pointee) // 8
    if not reached.grows and all(_most(facts, terms) * size < 2**31 for terms in reached.sums):
        return True
    start = Signs(facts, REWRITE)
    taken = (t.sign == "+" and all(start.holds(node) for node in (t.node, *t.factors)) for t in reached.scalars)
    inside = all(taken) and not any(may_start_before(facts, start, base) for base in reached.starts)
    counting = any(o.condition is not None and o.condition.bound.asks_grid() for o in start.assumed)
    near = _near(facts, reached, size) if not inside or counting else None
    if near is not None and not (inside and any(c.bound.asks_grid() for c, _ in near)):  # simpler to check
        proof.assumed |= {checked_at(facts, node, "reach", REWRITE, c) for c, node in near}
        return True
    if inside:
        proof.assumed |= start.assumed
        proof.by_caller |= start.by_caller
    return inside


def _most(facts: FunctionFacts, terms: Sequence[Term]) -> int:
    return sum(prod(most_of(facts, node) for node in (t.node, *t.factors)) for t in terms)


def _near(facts: FunctionFacts, reached: Reached, size: int) -> list[tuple[Condition, ast.AST]] | None:
    """What has to be checked so that no offset is 2 GiB or more, each with an expression that it is for; None where the host cannot."""
    found: list[tuple[Condition, ast.AST]] = []
    if reached.grows:
        return None
    for terms in reached.sums:
        if any(t.sign != "+" for t in terms):
            return None
        checks = most_checked(facts, [(t.node, *t.factors) for t in terms], (2**31 - 1) // size)
        if checks is None:
            return None
        found += [(condition, terms[0].node) for condition in checks]
    return found


def may_start_before(facts: FunctionFacts, proof: Signs, base: ast.AST, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a scalar pointer may lie before the argument that it is made of: where something is taken off it."""
    if isinstance(base, ast.BinOp):
        pointer, integer = (base.left, base.right) if is_pointer(facts, base.left) else (base.right, base.left)
        down = isinstance(base.op, ast.Sub) or not proof.holds(integer)
        return down or may_start_before(facts, proof, pointer, seen)
    web = facts.webs.of_use.get(base)
    if web is None:
        return True
    if web.index in seen:
        return False
    for d in web.definitions:
        if isinstance(d.node, ast.arg):
            if facts.path and not _starts_inside(facts, proof, d.name):
                return True
        elif d.value is None:
            return True
        elif d.augmented:
            if isinstance(d.node.op, ast.Sub) or not proof.holds(d.value):
                return True
        elif may_start_before(facts, proof, d.value, seen | {web.index}):
            return True
    return False


def _starts_inside(facts: FunctionFacts, proof: Signs, parameter: str) -> bool:
    """Whether the pointer that a helper is called with is not before its tensor."""
    outer, arguments = facts.called or (None, {})
    if outer is None or parameter not in arguments:
        return False
    theirs = Signs(outer, proof.rewrite)
    inside = not may_start_before(outer, theirs, arguments[parameter])
    proof.assumed |= theirs.assumed
    return inside


__all__ = ["Reached", "of_address", "of_variable", "reaches"]
