"""Offsets from a base that was moved: do they reach all of the tensor?

A buffer operation takes offsets below 2 GiB. From a base at or behind the tensor's start, what lies further away lies outside. From a base
before it an offset may exceed that though the element lies in the tensor:

    ptrs = x_ptr - n + offs * 16777216      # n = 2**30: element 0 of the tensor is at offs = 64, 4 GiB from the base
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers.signs import Signs, arguments_at, checked_at, most_checked, most_of
from gluonize.facts.obligations import Obligation
from gluonize.facts.webs import Web
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.write.accesses.addresses import Address, Term, address_of, is_pointer, wide_scalar
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.writing import StateOf

REWRITE = "a base that moved"


class Reach(enum.Enum):
    """Which elements of a tensor the offsets from a base that moved reach."""

    SOME = "not all that are accessed"
    WITHIN_2GIB = "all, where the tensor's storage is within 2 GiB"
    ALL = "all that are accessed, whatever the storage"


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


def last_element(size: int) -> int:
    """The number of the last element, of so many bytes, that a buffer operation reaches. The compiler gives buffers 2**31 - 2 bytes (the
    third word of their descriptor in code of Triton 3.9); of an element that ends behind them loads give 0, and stores do nothing.
    """
    return (2**31 - 2) // size - 1


def reaches(facts: FunctionFacts, proof: Signs, reached: Reached) -> Reach:
    """What the offsets reach, for every launch or by what is checked, which goes to `proof`."""
    size = bits_of(facts.fact(reached.starts[0]).pointee) // 8
    if not reached.grows and all(_most(facts, terms) <= last_element(size) for terms in reached.sums):
        return Reach.ALL
    far = any(wide_scalar(facts, node) for t in reached.scalars for node in (t.node, *t.factors))
    if (far or any(goes_far(facts, base) for base in reached.starts)) and _rest_near(facts, proof, reached, size):
        return Reach.ALL
    start = Signs(facts, REWRITE)
    taken = (t.sign == "+" and all(start.holds(node) for node in (t.node, *t.factors)) for t in reached.scalars)
    inside = all(taken) and not any(may_start_before(facts, start, base) for base in reached.starts)
    counting = any(o.condition is not None and o.condition.bound.asks_grid() for o in start.assumed)
    near = _near(facts, proof, reached, size) if not inside or counting else None
    if near is not None and not (inside and any(o.condition and o.condition.bound.asks_grid() for o in near)):
        proof.assumed |= near  # simpler to check
        return Reach.ALL
    if inside:
        proof.assumed |= start.assumed
        proof.by_caller |= start.by_caller
    return Reach.WITHIN_2GIB if inside else Reach.SOME


def _rest_near(facts: FunctionFacts, proof: Signs, reached: Reached, size: int) -> bool:
    """Have it checked that no offset is 2 GiB or more; False where the host cannot."""
    near = _near(facts, proof, reached, size)
    proof.assumed |= near or set()
    return near is not None


def goes_far(facts: FunctionFacts, base: ast.AST, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a number of 64 bits was added to a scalar pointer on its way: its tensor may well exceed 2 GiB."""
    if isinstance(base, ast.BinOp):
        pointer, integer = (base.left, base.right) if is_pointer(facts, base.left) else (base.right, base.left)
        return wide_scalar(facts, integer) or goes_far(facts, pointer, seen)
    web = facts.webs.of_use.get(base)
    if web is None or web.index in seen:
        return False
    moved = [d for d in web.definitions if d.value is not None and not isinstance(d.node, ast.arg)]
    return any(
        wide_scalar(facts, d.value) if d.augmented else goes_far(facts, d.value, seen | {web.index}) for d in moved
    )


def _most(facts: FunctionFacts, terms: Sequence[Term]) -> int:
    return sum(prod(most_of(facts, node) for node in (t.node, *t.factors)) for t in terms)


def _near(facts: FunctionFacts, proof: Signs, reached: Reached, size: int) -> set[Obligation] | None:
    """What has to be checked beside what `proof` rests on so that no offset is 2 GiB or more; None where the host cannot."""
    found: set[Obligation] = set()
    said = {name for o in proof.assumed if o.kind == "not-negative" for name in o.arguments}
    kernel = facts.kernel.trace.frames[0]
    # Numbers that are 1 in this launch are constants to Triton, so that nothing was asked about their sign.
    numbers = {
        p.name for p in kernel.fn.params if not p.is_constexpr and isinstance(kernel.args.get(p.name), ConstFact)
    }
    if reached.grows:
        return None
    for terms in reached.sums:
        if any(t.sign != "+" for t in terms):
            return None
        products = [(t.node, *t.factors) for t in terms]
        checks = most_checked(facts, products, last_element(size), proof.exactly)
        if checks is None:
            return None
        conditions, names = checks
        names |= numbers & frozenset().union(*(condition.bound.arguments() for condition in conditions))
        found |= {checked_at(facts, terms[0].node, "reach", REWRITE, condition) for condition in conditions}
        found |= arguments_at(facts, terms[0].node, REWRITE, names - said)
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


__all__ = ["Reach", "Reached", "goes_far", "of_address", "of_variable", "reaches"]
