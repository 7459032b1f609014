"""Accesses by pointer: a tensor of pointers as a scalar base and 32-bit offsets, where that is provably the same.

`x_ptr + pid * stride + offs` becomes base `x_ptr + pid * stride` and offsets `offs`, ready for a buffer operation. The
rules, for a pointer whose storage is within 2 GiB (`S` in the launch spec):

* offsets that cannot be negative may be relative to a moved base;
* otherwise everything goes into the offsets from the kernel's own pointer argument: 32-bit wrap-around is harmless
  there, because the true offset of every access that happens fits 31 bits;
* anything else keeps its tensor of pointers.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.decide.layouts.names import LayoutNames
from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers.signs import Signs
from gluonize.gluon.written import Written, addend, binary, indexed, method, name, operand, total
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses.addresses import (
    Address,
    Addressing,
    Term,
    is_bare_parameter,
    names_of,
    root_parameter,
    wide_term,
)
from gluonize.write.accesses.moved_bases import of_address, of_variable, reaches
from gluonize.write.accesses.uniform_parts import address_of, found_with
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.relations import NOT_READ, Wants, sliced
from gluonize.write.state.unit import Record
from gluonize.write.state.writing import Emit, StateOf, Writing

NARROW = ("int1", "int8", "uint8", "int16", "uint16")


@dataclass(frozen=True)
class Access:
    """A buffer access: scalar base and offsets."""

    base: Written
    offsets: Written
    root: str


def access_of(writing: Writing, addressing: Addressing, node: ast.expr, layout: Layout) -> Access | None:
    """The buffer form of the pointer tensor `node` in `layout`; None where pointers must stay pointers."""
    facts = writing.facts
    plan = plan_access(addressing, writing.record, node)
    if plan is None:
        return None
    address, split, root, fold = plan
    terms: list[tuple[str, Written]] = []
    wide = False
    if split is not None:
        base, term = split_texts(addressing, writing.names, address, layout)
        terms.append(("+", term))
        wide = split.wide
    else:
        base = base_text(writing.emit, address)
    for t in address.tensors:
        terms.append((t.sign, term_text(facts, writing.emit, t, layout)))
        wide |= wide_term(facts, addressing.state_of, t)
    for t in address.scalars:
        text = scalar_text(writing.emit, t)
        if fold:
            if wide_term(facts, addressing.state_of, t):
                text = method(text, "to", "gl.int32")
            terms.append((t.sign, addend(text, t.sign)))
        else:
            base = binary(base, t.sign, addend(text, t.sign))
    offsets = total(terms)
    return Access(base, method(offsets, "to", "gl.int32") if wide else offsets, root)


def address_wants(address: Address, layout: Layout) -> Wants:
    """In which layouts an address in `layout` wants its base and its terms."""
    wants: Wants = {}
    if address.web is not None:
        wants[address.base] = sliced(layout, address.web_axes)
    elif not isinstance(address.base, ast.Name):
        wants[address.base] = None
    for t in (*address.tensors, *address.scalars):
        wants |= dict.fromkeys(t.factors)
        if not t.variable:
            wants[t.node] = sliced(layout, t.axes) if t in address.tensors else None
    return wants


def pointer_wants(addressing: Addressing, record: Record, node: ast.expr, layout: Layout, as_buffer: bool) -> Wants:
    """In which layouts an access in `layout` wants the parts of its pointers `node`; as_buffer: where they are base and offsets."""
    plan = plan_access(addressing, record, node) if as_buffer else None
    return {node: layout} if plan is None else {node: NOT_READ} | address_wants(plan[0], layout)


def base_text(emit: Emit, address: Address) -> Written:
    """The scalar pointer that an address starts from."""
    return name(address.base.id) if isinstance(address.base, ast.Name) else emit(address.base)


def plan_access(addressing: Addressing, record: Record, node: ast.expr):
    """(address, split web's pointer or None, root parameter, fold scalars into the offsets) or None."""
    return found_with(addressing, node, lambda: _plan(addressing, record, node))


def _plan(addressing: Addressing, record: Record, node: ast.expr):
    facts, address = addressing.facts, address_of(addressing, node)
    if address is None:
        return None
    split = addressing.state_of(address.web).split if address.web else None
    if split is None and not address.tensors:
        return None
    if split is not None:
        root = split.root
    elif any(t.variable for t in address.scalars):
        root = address.base.id
    else:
        root = root_parameter(facts, address.base)
    if root is None or root not in facts.kernel.small_pointers:
        return None
    proof = Signs(facts, "offsets from a base that moved")
    fits = all(not_negative(proof, t) for t in address.tensors)
    if split is not None:
        bare = split.fold and not split.moves
    else:
        bare = any(t.variable for t in address.scalars) or is_bare_parameter(facts, address.base)
    if split is not None and split.fold:
        fold = True
        if split.moves and (address.scalars or address.tensors):
            return None
    elif split is None and bare:
        fold = True  # one vector addition instead of a 64-bit base and its buffer descriptor
    elif not fits or not _reached(facts, addressing.state_of, addressing.fresh, proof, address):
        return None
    elif split is not None:
        fold = not split.moves and proof.by_caller and all(not_negative(proof, t) for t in address.scalars)
    else:
        # Relative to a base that other statements moved: what is added here must not be negative either way.
        fold = isinstance(address.base, ast.Name) and all(not_negative(proof, t) for t in address.scalars)
    if bare:
        sure = fits and all(not_negative(proof, t) for t in address.scalars)
        record.starts_at(root, split is None and sure and all(o.discharge == "proven" for o in proof.assumed))
    else:
        record.obligations |= proof.assumed
    return address, split, root, fold


def _reached(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, proof: Signs, address: Address) -> bool:
    """Whether the offsets of an address from a base that moved reach all of the tensor."""
    if address.web is None:
        return reaches(facts, proof, of_address(address))
    if not address.scalars and not address.tensors:
        return True  # asked when the variable was split
    variable = of_variable(facts, state_of, fresh, address.web)
    return variable is not None and reaches(facts, proof, variable.with_address(address))


def not_negative(proof: Signs, t: Term) -> bool:
    """Whether the addend is provably not negative."""
    return t.sign == "+" and all(proof.holds(node) for node in (t.node, *t.factors))


def scalar_text(emit: Emit, t: Term) -> Written:
    """The expression of a scalar addend, without its sign."""
    return _times(emit, name(t.variable) if t.variable else emit(t.node), t)


def _times(emit: Emit, text: Written, t: Term) -> Written:
    for scalar in t.factors:
        text = binary(operand(text), "*", operand(emit(scalar)))
    return text


def new_axes(text: Written, axes: tuple[int, ...], rank: int) -> Written:
    """`text[:, None]`, which then has `rank` dimensions; the text itself without new axes."""
    return indexed(text, ", ".join("None" if i in axes else ":" for i in range(rank))) if axes else text


def term_text(facts: FunctionFacts, emit: Emit, t: Term, layout: Layout) -> Written:
    """A tensor addend in `layout`, fit to be one."""
    text = new_axes(emit(t.node, sliced(layout, t.axes)), t.axes, facts.fact(t.node).rank + len(t.axes))
    if facts.fact(t.node).dtype in NARROW:  # offsets have 32 bits
        text = method(text, "to", "gl.int32")
    return addend(_times(emit, text, t), t.sign)


def split_texts(
    addressing: Addressing, names: LayoutNames, address: Address, layout: Layout
) -> tuple[Written, Written]:
    state, layout = addressing.state_of(address.web), sliced(layout, address.web_axes)
    addressing.demand(state, layout, (address.base.lineno, address.base.col_offset))
    base, offsets = names_of(addressing.fresh, names, state, layout)
    rank = addressing.facts.fact(address.base).rank + len(address.web_axes)
    return name(base), new_axes(name(offsets), address.web_axes, rank)
