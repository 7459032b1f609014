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

from translator.facts.function import FunctionFacts
from translator.rewrite.emission import Emission, Emit, StateOf
from translator.rewrite.addresses import (
    Address,
    Term,
    is_bare_parameter,
    names_of,
    root_parameter,
    wide_term,
)
from translator.facts.signs import Signs
from translator.rewrite.fresh_names import FreshNames
from translator.rewrite.moved_bases import of_address, of_variable, reaches
from translator.rewrite.splice import expression, is_atom, operand
from translator.rewrite.uniform_parts import address_of, found_with
from translator.ttgir.layouts import Layout, Slice

NARROW = ("int1", "int8", "uint8", "int16", "uint16")


@dataclass
class Access:
    """A buffer access: scalar base and offset texts."""

    base: str
    offsets: str
    root: str


def access_of(rw: Emission, node: ast.expr, layout: Layout) -> Access | None:
    """The buffer form of the pointer tensor `node` in `layout`; None where pointers must stay pointers."""
    plan = plan_access(rw, node)
    if plan is None:
        return None
    address, split, root, fold = plan
    terms: list[str] = []
    wide = False
    if split is not None:
        base, term = split_texts(rw, address, layout)
        terms.append(term)
        wide = split.wide
    else:
        base = address.base.id if isinstance(address.base, ast.Name) else rw.emit(address.base)
    for t in address.tensors:
        terms.append(term_text(rw.facts, rw.emit, t, layout, first=not terms))
        wide |= wide_term(rw.facts, rw.state, t)
    for t in address.scalars:
        text = scalar_text(rw.emit, t)
        if fold:
            if wide_term(rw.facts, rw.state, t):
                text = f"{operand(text)}.to(gl.int32)"
            terms.append(("- " if t.sign == "-" else "+ ") + factor(text, t.sign))
        else:
            base += f" {t.sign} {factor(text, t.sign)}"
    offsets = " ".join(terms).removeprefix("+ ")
    if wide:
        offsets = f"{operand(offsets)}.to(gl.int32)"
    return Access(base, offsets, root)


def factor(text: str, sign: str) -> str:
    """`text` fit to be added or subtracted: `(o - s) >> 3` -> `((o - s) >> 3)`, which `+` would tear apart."""
    if sign == "+":
        return f"({text})" if _is_loose(text) else text
    return operand(text)


def _is_loose(text: str) -> bool:
    """Whether an addition binds more tightly than what `text` does last."""
    node = expression(f"({text}\n)")
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)) and not is_atom(text)
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return (negated or isinstance(node, (ast.IfExp, ast.Compare, ast.BoolOp, ast.NamedExpr))) and not is_atom(text)


def plan_access(rw: Emission, node: ast.expr):
    """(address, split web's pointer or None, root parameter, fold scalars into the offsets) or None."""
    return found_with(rw, node, lambda: _plan(rw, node))


def _plan(rw: Emission, node: ast.expr):
    address = address_of(rw, node)
    if address is None:
        return None
    split = rw.state(address.web).split if address.web else None
    if split is None and not address.tensors:
        return None
    if split is not None:
        root = split.root
    elif any(t.variable for t in address.scalars):
        root = address.base.id
    else:
        root = root_parameter(rw.facts, address.base)
    if root is None or root not in rw.facts.kernel.small_pointers:
        return None
    proof = Signs(rw.facts, "offsets from a base that moved")
    fits = all(not_negative(proof, t) for t in address.tensors)
    if split is not None:
        bare = split.fold and not split.moves
    else:
        bare = any(t.variable for t in address.scalars) or is_bare_parameter(rw.facts, address.base)
    if split is not None and split.fold:
        fold = True
        if split.moves and (address.scalars or address.tensors):
            return None
    elif split is None and bare:
        fold = True  # one vector addition instead of a 64-bit base and its buffer descriptor
    elif not fits or not _reached(rw.facts, rw.state, rw.fresh, proof, address):
        return None
    elif split is not None:
        fold = not split.moves and proof.by_caller and all(not_negative(proof, t) for t in address.scalars)
    else:
        # Relative to a base that other statements moved: what is added here must not be negative either way.
        fold = isinstance(address.base, ast.Name) and all(not_negative(proof, t) for t in address.scalars)
    if bare:
        sure = fits and all(not_negative(proof, t) for t in address.scalars)
        rw.record.starts_at(root, split is None and sure and all(o.discharge == "proven" for o in proof.assumed))
    else:
        rw.record.obligations |= proof.assumed
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


def scalar_text(emit: Emit, t: Term) -> str:
    """The expression of a scalar addend, without its sign."""
    return _times(emit, t.variable or emit(t.node), t)


def _times(emit: Emit, text: str, t: Term) -> str:
    for scalar in t.factors:
        text = f"{operand(text)} * {operand(emit(scalar))}"
    return text


def term_text(facts: FunctionFacts, emit: Emit, t: Term, layout: Layout, first: bool) -> str:
    for axis in reversed(t.axes):
        layout = Slice(axis, layout)
    text = emit(t.node, layout)
    if t.axes:
        rank = facts.fact(t.node).rank + len(t.axes)
        text = operand(text) + "[" + ", ".join("None" if i in t.axes else ":" for i in range(rank)) + "]"
    if facts.fact(t.node).dtype in NARROW:  # offsets have 32 bits
        text = f"{operand(text)}.to(gl.int32)"
    text = factor(_times(emit, text, t), t.sign)
    return text if first and t.sign == "+" else f"{t.sign} {text}"


def split_texts(rw, address: Address, layout: Layout) -> tuple[str, str]:
    state = rw.state(address.web)
    for axis in reversed(address.web_axes):
        layout = Slice(axis, layout)
    rw.changed |= state.demand(layout, (address.base.lineno, address.base.col_offset))
    base, offsets = names_of(rw.fresh, rw.names, state, layout)
    if address.web_axes:
        rank = rw.facts.fact(address.base).rank + len(address.web_axes)
        offsets += "[" + ", ".join("None" if i in address.web_axes else ":" for i in range(rank)) + "]"
    return base, offsets
