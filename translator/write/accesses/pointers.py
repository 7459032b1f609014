"""Accesses by pointer: a tensor of pointers as a scalar base and 32-bit offsets, where that is provably the same.

`x_ptr + pid * stride + offs` becomes base `x_ptr + pid * stride` and offsets `offs`, ready for a buffer operation. The
rules, for a pointer whose storage is within 2 GiB (`S` in the launch spec):

* offsets that cannot be negative may be relative to a moved base; so may those from a base to which the source adds a number of
  64 bits, whatever the storage, where the host can check that the offsets themselves stay below 2 GiB;
* otherwise everything goes into the offsets from the kernel's own pointer argument: 32-bit wrap-around is harmless
  there, because the true offset of every access that happens fits 31 bits;
* anything else keeps its tensor of pointers.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers.signs import Signs
from gluonize.gluon.layout_names import LayoutNames
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
from gluonize.write.accesses.moved_bases import Reach, of_address, of_variable, reaches
from gluonize.write.accesses.uniform_parts import address_of, found_with
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.relations import NOT_READ, Wants, sliced
from gluonize.write.state.unit import Record
from gluonize.write.state.variables import SplitPointer
from gluonize.write.state.writing import Emit, StateOf, Writing

MOVED = "offsets from a base that moved"
NARROW = ("int1", "int8", "uint8", "int16", "uint16")


@dataclass(frozen=True)
class Access:
    """A buffer access: scalar base and offsets, which reach all that is accessed of the kernel parameter `root`: of any storage, or of
    one within 2 GiB."""

    base: Written
    offsets: Written
    root: str
    of_any_storage: bool = False

    def rest_on_storage(self, record: Record) -> None:
        """Have the size of the storage checked, where the offsets need that."""
        if not self.of_any_storage:
            record.reaches(self.root)


@dataclass(frozen=True)
class AccessPlan:
    """How pointers are kept as base and offsets. split: of the variable that they are made of, None for none; fold: scalars go into the
    offsets. root, of_any_storage: as of `Access`."""

    address: Address
    split: SplitPointer | None
    root: str
    fold: bool
    of_any_storage: bool


def access_of(writing: Writing, addressing: Addressing, node: ast.expr, layout: Layout) -> Access | None:
    """The buffer form of the pointer tensor `node` in `layout`; None where pointers must stay pointers."""
    facts = writing.facts
    plan = plan_access(addressing, writing.record, node)
    if plan is None:
        return None
    address, split, fold = plan.address, plan.split, plan.fold
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
    return Access(base, method(offsets, "to", "gl.int32") if wide else offsets, plan.root, plan.of_any_storage)


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
    return {node: layout} if plan is None else {node: NOT_READ} | address_wants(plan.address, layout)


def base_text(emit: Emit, address: Address) -> Written:
    """The scalar pointer that an address starts from."""
    return name(address.base.id) if isinstance(address.base, ast.Name) else emit(address.base)


def plan_access(addressing: Addressing, record: Record, node: ast.expr) -> AccessPlan | None:
    """The pointers `node` as base and offsets; None where they must stay pointers."""
    return found_with(addressing, node, lambda: _plan(addressing, record, node))


def _plan(addressing: Addressing, record: Record, node: ast.expr) -> AccessPlan | None:
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
    if root is None:
        return None
    proof = Signs(facts, MOVED)
    fits = all(not_negative(proof, t) for t in address.tensors)
    if not fits and any(wide_term(facts, addressing.state_of, t) for t in address.scalars):
        proof = Signs(facts, MOVED, exactly=True)  # as there is no other form that serves more than 2 GiB
        fits = all(not_negative(proof, t) for t in address.tensors)
    if split is not None:
        bare = split.fold and not split.moves
    else:
        bare = any(t.variable for t in address.scalars) or is_bare_parameter(facts, address.base)
    reach = Reach.WITHIN_2GIB
    if split is not None and split.fold:
        fold = True
        if split.moves and (address.scalars or address.tensors):
            return None
    elif split is None and bare and not (fits and _is_far(addressing, proof, address)):
        fold = True  # one vector addition instead of a 64-bit base and its buffer descriptor
    elif not fits or (reach := _reached(facts, addressing.state_of, addressing.fresh, proof, address)) is Reach.SOME:
        return None
    elif split is not None:
        fold = not split.moves and proof.by_caller and all(not_negative(proof, t) for t in address.scalars)
    else:
        # Relative to a base that other statements moved: what is added here must not be negative either way.
        fold = isinstance(address.base, ast.Name) and all(not_negative(proof, t) for t in address.scalars)
        fold &= not bare and not any(wide_term(facts, addressing.state_of, t) for t in address.scalars)
    of_any_storage = reach is Reach.ALL and not (fold and address.scalars)
    if not of_any_storage and root not in facts.kernel.small_pointers:
        return None
    if bare and fold:
        sure = fits and all(not_negative(proof, t) for t in address.scalars)
        record.starts_at(root, split is None and sure and all(o.discharge == "proven" for o in proof.assumed))
    else:
        record.obligations |= proof.assumed
    return AccessPlan(address, split, root, fold, of_any_storage)


def _is_far(addressing: Addressing, proof: Signs, address: Address) -> bool:
    """Whether the source adds numbers of 64 bits to a parameter, which all lanes share, and offsets from there reach all that is accessed."""
    scalars = [t for t in address.scalars if not t.variable]
    if len(scalars) < len(address.scalars):
        return False
    if not any(wide_term(addressing.facts, addressing.state_of, t) for t in scalars):
        return False
    return reaches(addressing.facts, proof, of_address(address)) is Reach.ALL


def _reached(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, proof: Signs, address: Address) -> Reach:
    """What the offsets of an address from a base that moved reach of the tensor."""
    if address.web is None:
        return reaches(facts, proof, of_address(address))
    if not address.scalars and not address.tensors:  # asked when the variable was split
        return Reach.ALL if state_of(address.web).split.of_any_storage else Reach.WITHIN_2GIB
    variable = of_variable(facts, state_of, fresh, address.web)
    if variable is None:
        return Reach.SOME
    reach = reaches(facts, proof, variable.with_address(address))
    moves = state_of(address.web).split.moves  # else what moves it is added to the offsets
    return Reach.WITHIN_2GIB if reach is Reach.ALL and not moves and variable.scalars else reach


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
