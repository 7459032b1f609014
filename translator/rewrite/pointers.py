"""Addresses: a tensor of pointers as a scalar base and 32-bit element offsets, where that is provably the same.

`x_ptr + pid * stride + offs` becomes base `x_ptr + pid * stride` and offsets `offs`, ready for a buffer operation. The
rules, for a pointer whose storage is within 2 GiB (`S` in the launch spec):

* offsets that cannot be negative may be relative to a moved base;
* otherwise everything goes into the offsets from the kernel's own pointer argument: 32-bit wrap-around is harmless
  there, because the true offset of every access that happens fits 31 bits;
* anything else keeps its tensor of pointers.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from translator.frontend.trace import ConstFact, TensorFact
from translator.layout.model import Layout, Slice
from translator.rewrite.ranges import NonNegative
from translator.rewrite.splice import closed, operand
from translator.rewrite.variables import SplitPointer, WebState
from translator.rewrite.webs import Web

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


NARROW = ("int1", "int8", "uint8", "int16", "uint16")


@dataclass
class Term:
    """One addend of an address: `axes` are the new axes that a surrounding `[:, None]` gave it."""

    node: ast.expr
    sign: str
    axes: tuple[int, ...] = ()
    variable: str = ""  # the integer variable that stands for the node, where there is one


@dataclass
class Address:
    """base (a scalar pointer expression, or a split web) plus scalar and tensor terms."""

    base: ast.expr
    web: Web | None = None
    web_axes: tuple[int, ...] = ()
    scalars: list[Term] = field(default_factory=list)
    tensors: list[Term] = field(default_factory=list)


def address_of(rw: "FunctionRewriter", node: ast.expr) -> Address | None:
    """Decompose a pointer expression; None if it is not base plus integers."""
    fact = rw.fact(node)
    if not isinstance(fact, TensorFact) or not fact.is_pointer:
        return None
    if not fact.shape:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _pointer(rw, node.left):
            inner = address_of(rw, node.left)
            if inner is not None and rw.fact(node.right) is not None:
                inner.scalars.append(Term(node.right, "+"))
            return inner
        if isinstance(node, ast.Name) and (web := rw.webs.of_use.get(node)) is not None:
            if (split := rw.state(web).split) is not None:
                return Address(
                    ast.copy_location(split.node, node), None, (), [Term(node, "+", (), scalar_name(rw, web))]
                )
        return Address(node)
    if isinstance(node, ast.Name):
        web = rw.webs.of_use.get(node)
        if web is None or rw.state(web).split is None:
            return None
        return Address(node, web)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        pointer, integer = (node.left, node.right) if _pointer(rw, node.left) else (node.right, node.left)
        if not _pointer(rw, pointer) or (isinstance(node.op, ast.Sub) and pointer is not node.left):
            return None
        address = address_of(rw, pointer)
        if address is None:
            return None
        sign = "-" if isinstance(node.op, ast.Sub) else "+"
        own = rw.fact(integer)
        if isinstance(own, TensorFact) and own.shape:
            if own.rank != fact.rank:
                return None
            address.tensors.append(Term(integer, sign))
        elif isinstance(own, (TensorFact, ConstFact)):
            address.scalars.append(Term(integer, sign))
        else:
            return None
        inner = rw.fact(pointer)
        if inner.shape and inner.rank != fact.rank:
            return None
        return address
    if isinstance(node, ast.Subscript) and rw.tensor(node.value) is not None:
        address = address_of(rw, node.value)
        if address is None:
            return None
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        axes = tuple(i for i, p in enumerate(parts) if isinstance(p, ast.Constant) and p.value is None)
        if any(t.axes for t in address.tensors) or address.web_axes:
            return None
        address.tensors = [Term(t.node, t.sign, axes) for t in address.tensors]
        address.web_axes = axes
        return address
    return None


def _pointer(rw, node) -> bool:
    fact = rw.fact(node)
    return isinstance(fact, TensorFact) and fact.is_pointer


def root_parameter(rw: "FunctionRewriter", node: ast.AST, seen: frozenset = frozenset()) -> str | None:
    """The kernel parameter that a scalar pointer expression is derived from by adding integers."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        pointer = node.left if _pointer(rw, node.left) else node.right
        return root_parameter(rw, pointer, seen)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _pointer(rw, node.func.value):
        return None
    if not isinstance(node, ast.Name):
        return None
    web = rw.webs.of_use.get(node)
    if web is None or web.index in seen:
        return None
    roots = set()
    for d in web.definitions:
        if isinstance(d.node, ast.arg):
            roots.add(rw.pointer_roots.get(d.name) if rw.path else d.name)
        elif not d.augmented:
            if d.value is None:
                return None
            roots.add(root_parameter(rw, d.value, seen | {web.index}))
    return roots.pop() if len(roots) == 1 else None


def is_bare_parameter(rw: "FunctionRewriter", node: ast.AST) -> bool:
    """Whether `node` names a kernel parameter that is never reassigned, so that it still points at its tensor's start."""
    if not isinstance(node, ast.Name):
        return False
    web = rw.webs.of_use.get(node)
    return (
        web is not None
        and len(web.definitions) == 1
        and isinstance(web.definitions[0].node, ast.arg)
        and (not rw.path or node.id in rw.bare_pointers)
    )


@dataclass
class Access:
    """A buffer access: scalar base and offset texts."""

    base: str
    offsets: str
    root: str


def access_of(rw: "FunctionRewriter", node: ast.expr, layout: Layout) -> Access | None:
    """The buffer form of the pointer tensor `node` in `layout`; None where pointers must stay pointers."""
    plan = plan_access(rw, node)
    if plan is None:
        return None
    address, split, root, fold = plan
    terms: list[str] = []
    wide = False
    if split is not None:
        base, term = _split_texts(rw, address, layout)
        terms.append(term)
        wide = split.wide
    else:
        base = address.base.id if isinstance(address.base, ast.Name) else rw.emit(address.base)
    for t in address.tensors:
        terms.append(_term(rw, t, layout, first=not terms))
        wide |= rw.fact(t.node).dtype in ("int64", "uint64")
    for t in address.scalars:
        text = t.variable or rw.emit(t.node)
        if fold:
            if not t.variable and _wide_scalar(rw, t.node):
                text = f"{operand(text)}.to(gl.int32)"
            terms.append(("- " if t.sign == "-" else "+ ") + _factor(text, t.sign))
        else:
            base += f" {t.sign} {_factor(text, t.sign)}"
    offsets = " ".join(terms).removeprefix("+ ")
    if wide:
        offsets = f"{operand(offsets)}.to(gl.int32)"
    return Access(base, offsets, root)


def _factor(text: str, sign: str) -> str:
    if sign == "+":
        return text if not _is_loose(text) else f"({text})"
    return operand(text)


def _is_loose(text: str) -> bool:
    node = ast.parse(f"({text}\n)", mode="eval").body
    return isinstance(node, (ast.IfExp, ast.Compare, ast.BoolOp)) or (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift))
        and not text.startswith("(")
    )


def _wide_scalar(rw, node) -> bool:
    fact = rw.fact(node)
    return isinstance(fact, TensorFact) and fact.dtype in ("int64", "uint64")


def plan_access(rw: "FunctionRewriter", node: ast.expr):
    """(address, split web's pointer or None, root parameter, fold scalars into the offsets) or None."""
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
        root = root_parameter(rw, address.base)
    if root is None or root not in rw.unit.small_pointers:
        return None
    proof = NonNegative(rw)
    fits = all(t.sign == "+" and proof.holds(t.node) for t in address.tensors)
    if split is not None:
        bare = split.fold and not split.moves
    else:
        bare = any(t.variable for t in address.scalars) or is_bare_parameter(rw, address.base)
    if split is not None:
        if split.moves and not fits:
            return None
        if split.fold or not (split.moves or fits):
            fold = True
        else:
            fold = not fits
        if fold and split.moves and (address.scalars or address.tensors):
            return None
    elif bare:
        fold = True  # one vector addition instead of a 64-bit base and its buffer descriptor
    elif fits:
        # Relative to a base that other statements moved: what is added here must not be negative either way.
        fold = isinstance(address.base, ast.Name) and all(
            t.sign == "+" and proof.holds(t.node) for t in address.scalars
        )
        rw.record.non_negative |= proof.assumed
    else:
        return None
    if split is not None and split.moves:
        rw.record.non_negative |= proof.assumed
    return address, split, root, fold


def _term(rw, t: Term, layout: Layout, first: bool) -> str:
    for axis in reversed(t.axes):
        layout = Slice(axis, layout)
    text = rw.emit(t.node, layout)
    if t.axes:
        rank = rw.fact(t.node).rank + len(t.axes)
        text = operand(text) + "[" + ", ".join("None" if i in t.axes else ":" for i in range(rank)) + "]"
    if rw.fact(t.node).dtype in NARROW:  # offsets have 32 bits
        text = f"{operand(text)}.to(gl.int32)"
    text = _factor(text, t.sign)
    return text if first and t.sign == "+" else f"{t.sign} {text}"


# Pointer variables --------------------------------------------------------------------------------------------------


def split_scalar(rw: "FunctionRewriter", web: Web) -> SplitPointer | None:
    """`row_ptr = x_ptr + row * stride` in a loop, as the integer `row * stride` that accesses add to their offsets.

    A base that changes every iteration costs a 64-bit addition and a new buffer descriptor each time.
    """
    if len(web.definitions) != 1 or rw.path:
        return None
    (d,) = web.definitions
    if d.value is None or d.augmented or not d.loop_depth or not isinstance(d.value, ast.BinOp):
        return None
    fact = rw.fact(d.value)
    if not isinstance(fact, TensorFact) or not fact.is_pointer or fact.shape:
        return None
    address = address_of(rw, d.value)
    if address is None or address.web is not None or not address.scalars or any(t.variable for t in address.scalars):
        return None
    if not is_bare_parameter(rw, address.base) or address.base.id not in rw.unit.small_pointers:
        return None
    if rw.rebound(address.base.id):
        return None
    if any(_wide_scalar(rw, t.node) for t in address.scalars):
        return None
    return SplitPointer(address.base.id, address.base.id, False, True, False, address.base)


def scalar_name(rw: "FunctionRewriter", web: Web) -> str:
    """The integer variable that stands for the split scalar pointer."""
    stem = re.sub(r"_?(ptrs?|pointers?)$", "", web.name) or web.name
    return _fresh(rw, f"{stem}_offs", rw.state(web))


def assign_scalar(rw: "FunctionRewriter", s: ast.Assign, state: WebState) -> str:
    """`row_offs = row * stride`."""
    address = address_of(rw, s.value)
    terms = [f"{t.sign} {_factor(rw.emit(t.node), t.sign)}" for t in address.scalars]
    return f"{scalar_name(rw, state.web)} = {closed(' '.join(terms).removeprefix('+ '))}"


def split_web(rw: "FunctionRewriter", web: Web) -> SplitPointer | None:
    """Whether the pointer-tensor variable `web` can be kept as base and offsets at every definition."""
    if any(isinstance(d.node, ast.Assign) and not isinstance(d.node.targets[0], ast.Name) for d in web.definitions):
        return None  # one of several targets, in a statement that is rewritten as a whole
    if (scalar := split_scalar(rw, web)) is not None:
        return scalar
    facts = []
    for d in web.definitions:
        node = rw.definition_node(d)
        fact = rw.fact(node) if node is not None else None
        if not (isinstance(fact, TensorFact) and fact.is_pointer and fact.shape):
            return None
        facts.append(fact)
    if not facts:
        return None
    rw.states[web.index].split = SplitPointer("", "", False, False, False)  # provisional, for uses of itself
    try:
        return _split(rw, web)
    finally:
        rw.states[web.index].split = None


def _split(rw, web: Web) -> SplitPointer | None:
    roots, bases, aliases, wide, moving, fits = set(), set(), set(), False, False, True
    proof = NonNegative(rw)
    for d in web.definitions:
        if d.augmented:
            if not isinstance(d.node.op, ast.Add):
                return None
            fact = rw.fact(d.value)
            if isinstance(fact, TensorFact) and fact.shape:
                if fact.rank != rw.fact(rw.definition_node(d)).rank:
                    return None
                fits &= proof.holds(d.value)
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
            roots.add(root_parameter(rw, address.base))
            bases.add(rw.source.of(address.base) if is_bare_parameter(rw, address.base) else "")
            aliases.add(address.base.id if _settled(rw, address.base, d) else "")
        fits &= all(t.sign == "+" and proof.holds(t.node) for t in address.tensors)
        wide |= any(rw.fact(t.node).dtype in ("int64", "uint64") for t in address.tensors)
        moving |= any(not t.variable for t in address.scalars)
    if len(roots) != 1 or None in roots:
        return None
    (root,) = roots
    if root not in rw.unit.small_pointers:
        return None
    bare = len(bases) == 1 and "" not in bases and "__inner__" not in bases
    if wide and len(web.definitions) > 1:
        # The offsets must keep one integer type: 32 bits, in which sums from the tensor's start may wrap.
        plain = [d for d in web.definitions if not d.augmented]
        if not bare or len(plain) != 1 or any(rw.tensor(d.value) is not None for d in web.definitions if d.augmented):
            return None
        if any((a := address_of(rw, d.value)) is None or a.web is not None for d in plain):
            return None
        return SplitPointer(root, bases.pop(), False, True, False, narrow=True)
    if bare and not moving:
        base = bases.pop()
        return SplitPointer(root, "" if rw.rebound(base) else base, False, True, wide)
    if fits:
        alias = aliases.pop() if len(aliases) == 1 and not moving and len(web.definitions) == 1 else ""
        return SplitPointer(root, alias, True, False, wide, assumed=frozenset(proof.assumed))
    if bare:
        base = bases.pop()
        return SplitPointer(root, "" if rw.rebound(base) else base, False, True, wide)
    return None


def _settled(rw, base: ast.expr, definition) -> bool:
    """Whether `base` is a scalar pointer variable that nothing reassigns after this definition."""
    web = rw.webs.of_use.get(base) if isinstance(base, ast.Name) else None
    if web is None or rw.rebound(web.name):
        return False
    line = definition.node.lineno
    return all(d.node.lineno < line and not set(d.in_loop) & set(definition.in_loop) for d in web.definitions)


def names_of(rw: "FunctionRewriter", state: WebState, layout: Layout) -> tuple[str, str]:
    """(base expression, offsets variable) of a split pointer variable."""
    name = state.web.name
    stem = re.sub(r"_?(ptrs?|pointers?)$", "", name) or name
    offsets = _fresh(rw, f"{stem}_offs" if stem != name else f"{name}_offs", state)
    base = state.split.base or base_variable(rw, state)
    if not state.variants or state.variants[0] == layout:
        return base, offsets
    return base, rw.names.variant(offsets, layout)


def base_variable(rw: "FunctionRewriter", state: WebState) -> str:
    """The variable that holds the base of a split pointer variable, where it needs one."""
    name = state.web.name
    stem = re.sub(r"_?(ptrs?|pointers?)$", "", name) or name
    return _fresh(rw, f"{stem}_base" if stem != name else f"{name}_base", state)


def _fresh(rw, name: str, state: WebState) -> str:
    key = (state.web.index, name)
    if key not in rw.fresh_names:
        candidate, n = name, 2
        while candidate in rw.locals or candidate in rw.fresh_names.values():
            candidate, n = f"{name}_{n}", n + 1
        rw.fresh_names[key] = candidate
    return rw.fresh_names[key]


def _split_texts(rw, address: Address, layout: Layout) -> tuple[str, str]:
    state = rw.state(address.web)
    for axis in reversed(address.web_axes):
        layout = Slice(axis, layout)
    rw.changed |= state.demand(layout, (address.base.lineno, address.base.col_offset))
    base, offsets = names_of(rw, state, layout)
    if address.web_axes:
        rank = rw.fact(address.base).rank + len(address.web_axes)
        offsets += "[" + ", ".join("None" if i in address.web_axes else ":" for i in range(rank)) + "]"
    return base, offsets


def assign(rw: "FunctionRewriter", s: ast.stmt, state: WebState) -> list[str]:
    """The statements that replace an assignment to a split pointer variable."""
    layouts = state.variants or [rw.web_home(state.web) or rw.default_layout(rw.assigned_fact(s).shape)]
    lines: list[str] = []
    for layout in layouts:
        base, offsets = names_of(rw, state, layout)
        first = layout == layouts[0]
        if isinstance(s, ast.AugAssign):
            fact = rw.fact(s.value)
            scalar = not (isinstance(fact, TensorFact) and fact.shape)
            if scalar and state.split.moves:
                if first:
                    lines.append(f"{base} += {rw.emit(s.value)}")
                continue
            text = rw.emit(s.value, None if scalar else layout)
            if _wide_scalar(rw, s.value) and not state.split.wide:
                text = f"{operand(text)}.to(gl.int32)"
            lines.append(f"{offsets} += {text}")
            continue
        address = address_of(rw, s.value)
        terms: list[str] = []
        base_text = ""
        if address.web is not None:
            base_text, inner = _split_texts(rw, address, layout)
            terms.append(inner)
        else:
            base_text = address.base.id if isinstance(address.base, ast.Name) else rw.emit(address.base)
        for t in address.tensors:
            terms.append(_term(rw, t, layout, first=not terms))
        for t in address.scalars:
            text = t.variable or rw.emit(t.node)
            if state.split.fold:
                if not t.variable and _wide_scalar(rw, t.node) and not state.split.wide:
                    text = f"{operand(text)}.to(gl.int32)"
                terms.append(f"{t.sign} {_factor(text, t.sign)}")
            else:
                base_text += f" {t.sign} {_factor(text, t.sign)}"
        if first and not state.split.base and base_text != base:
            lines.append(f"{base} = {closed(base_text)}")
        sum_text = closed(" ".join(terms))
        if state.split.narrow:
            sum_text = f"{operand(' '.join(terms))}.to(gl.int32)"
        if offsets != sum_text:
            lines.append(f"{offsets} = {sum_text}")
    return lines or ["pass"]
