"""Pointer variables: which are kept as a base and offsets, and what then stands for their assignments."""

from __future__ import annotations

import ast
import math

from translator.rewrite.emission import Emission
from translator.facts.function import FunctionFacts
from translator.facts.definitions import assigned_fact, definition_node
from translator.frontend.trace import TensorFact
from translator.rewrite.addresses import (
    base_variable,
    is_bare_parameter,
    names_of,
    root_parameter,
    scalar_name,
    wide_scalar,
    wide_term,
)
from translator.rewrite.moving_parameters import may_be_negative, split_parameter
from translator.rewrite.pointers import factor, not_negative, scalar_text, split_texts, term_text
from translator.facts.signs import Signs
from translator.rewrite.splice import closed, operand
from translator.rewrite.uniform_parts import address_of, found_with
from translator.rewrite.variables import SplitPointer, WebState
from translator.facts.webs import Web

# Offsets per lane that cost less to move than a base, where warps have 32 lanes: one instruction each, against five scalar
# ones. CDNA3 and CDNA4 issue those beside the others.
SLIM = 2


def split_scalar(rw: Emission, web: Web) -> SplitPointer | None:
    """`row_ptr = x_ptr + row * stride` as the integer `row * stride` that accesses add to their offsets.

    In a loop, where a base that changes every iteration costs a 64-bit addition and a new buffer descriptor each time; and
    where what an access adds may be negative, so that only offsets from the tensor's own start have 32 bits.
    """
    if len(web.definitions) != 1 or rw.facts.path:
        return None
    (d,) = web.definitions
    if d.value is None or d.augmented or not isinstance(d.value, ast.BinOp):
        return None
    fact = rw.facts.fact(d.value)
    if not isinstance(fact, TensorFact) or not fact.is_pointer or fact.shape:
        return None
    address = address_of(rw, d.value)
    if address is None or address.web is not None or not address.scalars or any(t.variable for t in address.scalars):
        return None
    if not is_bare_parameter(rw, address.base) or address.base.id not in rw.facts.kernel.small_pointers:
        return None
    if rw.rebound(address.base.id) or not (d.loop_depth or may_be_negative(rw, web)):
        return None
    wide = any(wide_scalar(rw.facts, t.node) for t in address.scalars)
    return SplitPointer(address.base.id, address.base.id, False, True, wide, address.base)


def assign_scalar(rw: Emission, s: ast.stmt, state: WebState) -> str:
    """`row_offs = row * stride`, or `x_offs += stride`."""
    if isinstance(s, ast.AugAssign):
        return f"{scalar_name(rw, state.web)} += {rw.emit(s.value)}"
    address = address_of(rw, s.value)
    terms = [f"{t.sign} {factor(rw.emit(t.node), t.sign)}" for t in address.scalars]
    return f"{scalar_name(rw, state.web)} = {closed(' '.join(terms).removeprefix('+ '))}"


def split_web(rw: Emission, web: Web) -> SplitPointer | None:
    """Whether the pointer-tensor variable `web` can be kept as base and offsets at every definition."""
    if any(isinstance(d.node, ast.Assign) and not isinstance(d.node.targets[0], ast.Name) for d in web.definitions):
        return None  # one of several targets, in a statement that is rewritten as a whole
    if (scalar := split_scalar(rw, web) or split_parameter(rw, web)) is not None:
        return scalar
    facts = []
    for d in web.definitions:
        node = definition_node(d)
        fact = rw.facts.fact(node) if node is not None else None
        if not (isinstance(fact, TensorFact) and fact.is_pointer and fact.shape):
            return None
        facts.append(fact)
    if not facts:
        return None
    rw.states[web.index].split = SplitPointer("", "", False, False, False)  # provisional, for uses of itself
    try:
        value = web.definitions[0].value if len(web.definitions) == 1 else None
        return found_with(rw, value, lambda: _split(rw, web))
    finally:
        rw.states[web.index].split = None


def _split(rw, web: Web) -> SplitPointer | None:
    roots, bases, aliases, wide, moving, fits, placed = set(), set(), set(), False, False, True, False
    proof = Signs(rw.facts, "a pointer variable as base and offsets")
    for d in web.definitions:
        if d.augmented:
            if not isinstance(d.node.op, (ast.Add, ast.Sub)):
                return None
            fact = rw.facts.fact(d.value)
            if isinstance(fact, TensorFact) and fact.shape:
                if fact.rank != rw.facts.fact(definition_node(d)).rank:
                    return None
                fits &= isinstance(d.node.op, ast.Add) and proof.holds(d.value)
                wide |= fact.dtype in ("int64", "uint64")
            elif fact is None:
                return None
            else:
                moving = True
            continue
        if d.value is None:
            return None
        address = address_of(rw, d.value)
        if address is None:
            return None
        if address.web is not None and address.web is not web:
            inner = rw.state(address.web).split
            if inner is None or address.web_axes:
                return None
            roots.add(inner.root)
            wide |= inner.wide
            fits &= not inner.fold
            moving |= inner.moves
            start = inner.base or base_variable(rw, rw.state(address.web))
            bases.add(start if inner.fold and not inner.moves else "__inner__")
        elif address.web is web:
            moving |= bool(address.scalars)
        elif any(t.variable for t in address.scalars):
            roots.add(address.base.id)
            bases.add(address.base.id)
            moving |= len(address.scalars) > 1
        else:
            if not address.tensors:
                return None
            placed |= bool(address.scalars)
            roots.add(root_parameter(rw, address.base))
            bases.add(rw.facts.source.of(address.base) if is_bare_parameter(rw, address.base) else "")
            aliases.add(address.base.id if _settled(rw, address.base, d) else "")
        fits &= all(not_negative(proof, t) for t in address.tensors)
        wide |= any(wide_term(rw, t) for t in address.tensors)
        moving |= any(not t.variable for t in address.scalars)
    if len(roots) != 1 or None in roots:
        return None
    (root,) = roots
    if root not in rw.facts.kernel.small_pointers:
        return None
    bare = len(bases) == 1 and "" not in bases and "__inner__" not in bases
    if wide and len(web.definitions) > 1:
        # The offsets must keep one integer type: 32 bits, in which sums from the tensor's start may wrap. From a base that
        # moves they do not: they are not negative, and those of elements that are read fit.
        plain = [d for d in web.definitions if not d.augmented]
        if not plain or len(plain) > 1 and len(plain) < len(web.definitions):
            return None
        if any(rw.facts.tensor(d.value) is not None for d in web.definitions if d.augmented):
            return None
        if any((a := address_of(rw, d.value)) is None or a.web is not None for d in plain):
            return None
        if bare:
            return SplitPointer(root, bases.pop(), False, True, False, narrow=True)
        assumed = frozenset(proof.assumed)
        return SplitPointer(root, "", True, False, False, narrow=True, assumed=assumed) if fits else None
    checked = not placed and any(o.condition is not None for o in proof.assumed)
    # In a helper, a tensor's own start is there in any case; a base of its own would be one more buffer descriptor. From
    # a tensor's start nothing has to be checked.
    if bare and (not moving or _slim(rw.facts, web) or proof.by_caller or checked):
        base = bases.pop()
        return SplitPointer(root, "" if rw.rebound(base) else base, False, True, wide)
    if fits:
        alias = aliases.pop() if len(aliases) == 1 and not moving and len(web.definitions) == 1 else ""
        return SplitPointer(root, alias, True, False, wide, assumed=frozenset(proof.assumed))
    if bare:
        base = bases.pop()
        return SplitPointer(root, "" if rw.rebound(base) else base, False, True, wide)
    return None


def _slim(facts: FunctionFacts, web: Web) -> bool:
    """Whether a loop moves the pointers, and their offsets cost less to move than a base with its buffer descriptor."""
    if facts.kernel.target.warp_size != 32 or not any(d.augmented and d.loop_depth for d in web.definitions):
        return False
    shape = facts.fact(definition_node(web.definitions[0])).shape
    return math.prod(shape) <= SLIM * facts.kernel.num_warps * facts.kernel.target.warp_size


def _settled(rw, base: ast.expr, definition) -> bool:
    """Whether `base` is a scalar pointer variable that nothing reassigns after this definition."""
    web = rw.facts.webs.of_use.get(base) if isinstance(base, ast.Name) else None
    if web is None or rw.rebound(web.name):
        return False
    line = definition.node.lineno
    return all(d.node.lineno < line and not set(d.in_loop) & set(definition.in_loop) for d in web.definitions)


def assign(rw: Emission, s: ast.stmt, state: WebState) -> list[str]:
    """The statements that replace an assignment to a split pointer variable."""
    layouts = state.variants or [rw.web_home(state.web) or rw.facts.default_layout(assigned_fact(rw.facts, s).shape)]
    lines: list[str] = []
    for layout in layouts:
        base, offsets = names_of(rw, state, layout)
        first = layout == layouts[0]
        if isinstance(s, ast.AugAssign):
            sign = "+" if isinstance(s.op, ast.Add) else "-"
            fact = rw.facts.fact(s.value)
            scalar = not (isinstance(fact, TensorFact) and fact.shape)
            if scalar and state.split.moves:
                if first:
                    lines.append(f"{base} {sign}= {rw.emit(s.value)}")
                continue
            text = rw.emit(s.value, None if scalar else layout)
            if wide_scalar(rw.facts, s.value) and not state.split.wide:
                text = f"{operand(text)}.to(gl.int32)"
            lines.append(f"{offsets} {sign}= {text}")
            continue
        address = address_of(rw, s.value)
        terms: list[str] = []
        base_text = ""
        if address.web is not None:
            base_text, inner = split_texts(rw, address, layout)
            terms.append(inner)
        else:
            base_text = address.base.id if isinstance(address.base, ast.Name) else rw.emit(address.base)
        for t in address.tensors:
            terms.append(term_text(rw, t, layout, first=not terms))
        for t in address.scalars:
            text = scalar_text(rw, t)
            if state.split.fold:
                if wide_term(rw, t) and not state.split.wide:
                    text = f"{operand(text)}.to(gl.int32)"
                terms.append(f"{t.sign} {factor(text, t.sign)}")
            else:
                base_text += f" {t.sign} {factor(text, t.sign)}"
        if first and not state.split.base and base_text != base:
            lines.append(f"{base} = {closed(base_text)}")
        sum_text = closed(" ".join(terms))
        if state.split.narrow:
            sum_text = f"{operand(' '.join(terms))}.to(gl.int32)"
        if offsets != sum_text:
            lines.append(f"{offsets} = {sum_text}")
    return lines or ["pass"]
