"""Pointer variables: which are kept as a base and offsets, and what then stands for their assignments."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field

from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers.signs import Signs
from gluonize.facts.variables.definitions import definition_node
from gluonize.facts.webs import Definition, Web
from gluonize.gluon.written import Assigned, Written, addend, binary, method, total
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses.addresses import (
    Addressing,
    base_variable,
    is_bare_parameter,
    names_of,
    root_parameter,
    scalar_name,
    tensors_from,
    wide_scalar,
    wide_term,
)
from gluonize.write.accesses.moved_bases import Reach, goes_far, of_address, of_variable, reaches
from gluonize.write.accesses.moving_parameters import may_be_negative, split_parameter
from gluonize.write.accesses.pointers import address_wants, base_text, not_negative, scalar_text, split_texts, term_text
from gluonize.write.accesses.uniform_parts import address_of, found_with
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.relations import Wants
from gluonize.write.state.variables import SplitPointer, WebState
from gluonize.write.state.writing import Rebound, StateOf, Writing

# Offsets per lane that cost less to move than a base, where warps have 32 lanes: one instruction each, against five scalar
# ones. CDNA3 and CDNA4 issue those beside the others.
SLIM = 2
REWRITE = "a pointer variable as base and offsets"
PROVISIONAL = SplitPointer("", "", False, False, False)  # of a variable that is being decided, for uses of itself


def split_scalar(addressing: Addressing, web: Web) -> SplitPointer | None:
    """`row_ptr = x_ptr + row * stride` as the integer `row * stride` that accesses add to their offsets.

    In a loop, where a base that changes every iteration costs a 64-bit addition and a new buffer descriptor each time; and
    where what an access adds may be negative, so that only offsets from the tensor's own start have 32 bits.
    """
    facts = addressing.facts
    if len(web.definitions) != 1 or facts.path:
        return None
    (d,) = web.definitions
    if d.value is None or d.augmented or not isinstance(d.value, ast.BinOp):
        return None
    fact = facts.fact(d.value)
    if not isinstance(fact, TensorFact) or not fact.is_pointer or fact.shape:
        return None
    address = address_of(addressing, d.value)
    if address is None or address.web is not None or not address.scalars or any(t.variable for t in address.scalars):
        return None
    if not is_bare_parameter(facts, address.base) or address.base.id not in facts.kernel.small_pointers:
        return None
    if addressing.rebound(address.base.id) or not (
        d.loop_depth or may_be_negative(facts, addressing.state_of, addressing.fresh, web)
    ):
        return None
    wide = any(wide_scalar(facts, t.node) for t in address.scalars)
    if wide and _serves_any_storage(addressing, web):
        return None  # what the source adds with 64 bits may lie beyond 2 GiB
    return SplitPointer(address.base.id, address.base.id, False, True, wide, address.base)


def _serves_any_storage(addressing: Addressing, web: Web) -> bool:
    """Whether all offsets from a scalar pointer variable reach what is accessed, whatever the storage."""
    facts = addressing.facts
    for node in tensors_from(facts, web):
        address = address_of(addressing, node)
        if address is None or address.web is not None or facts.webs.of_use.get(address.base) is not web:
            continue
        proof = Signs(facts, REWRITE, exactly=True)
        fits = all(not_negative(proof, t) for t in address.tensors)
        if not fits or reaches(facts, proof, of_address(address)) is not Reach.ALL:
            return False
    return True


def assign_scalar(writing: Writing, addressing: Addressing, s: ast.stmt, state: WebState) -> Assigned:
    """`row_offs = row * stride`, or `x_offs += stride`."""
    if isinstance(s, ast.AugAssign):
        return Assigned(scalar_name(addressing.fresh, state.web), writing.emit(s.value), "+")
    address = address_of(addressing, s.value)
    terms = [(t.sign, addend(writing.emit(t.node), t.sign)) for t in address.scalars]
    return Assigned(scalar_name(addressing.fresh, state.web), total(terms))


def split_web(addressing: Addressing, web: Web) -> SplitPointer | None:
    """Whether the pointer-tensor variable `web` can be kept as base and offsets at every definition."""
    if any(isinstance(d.node, ast.Assign) and not isinstance(d.node.targets[0], ast.Name) for d in web.definitions):
        return None  # one of several targets, in a statement that is rewritten as a whole
    if web.in_expression:
        return None
    if (
        scalar := split_scalar(addressing, web)
        or split_parameter(addressing.facts, addressing.state_of, addressing.fresh, web)
    ) is not None:
        return scalar
    facts = []
    for d in web.definitions:
        node = definition_node(d)
        fact = addressing.facts.fact(node) if node is not None else None
        if not (isinstance(fact, TensorFact) and fact.is_pointer and fact.shape):
            return None
        facts.append(fact)
    if not facts:
        return None
    addressing.state_of(web).split = PROVISIONAL
    try:
        value = web.definitions[0].value if len(web.definitions) == 1 else None
        return found_with(addressing, value, lambda: _split(addressing, web))
    finally:
        addressing.state_of(web).split = None


@dataclass
class _Definitions:
    """What the definitions of a pointer variable have in common. roots: the parameters that they point into. bases: how each
    base is spelled; empty for one that moves. aliases: names of bases that are the variable's own. wide: offsets of 64 bits.
    moving: its base moves. far: by numbers of 64 bits. placed: a base lies at a scalar offset. fits: offsets are not negative, as far as `proof` goes.
    """

    proof: Signs
    roots: set[str | None] = field(default_factory=set)
    bases: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)
    wide: bool = False
    moving: bool = False
    far: bool = False
    placed: bool = False
    fits: bool = True

    @property
    def bare(self) -> bool:
        """Whether all start at one parameter, or at a variable that is one."""
        return len(self.bases) == 1 and "" not in self.bases

    def moved(self, facts: FunctionFacts, d: Definition) -> bool:
        """Take in `p += x`; False where the variable cannot be split."""
        if not isinstance(d.node.op, (ast.Add, ast.Sub)):
            return False
        fact = facts.fact(d.value)
        if isinstance(fact, TensorFact) and fact.shape:
            if fact.rank != facts.fact(definition_node(d)).rank:
                return False
            self.fits &= isinstance(d.node.op, ast.Add) and self.proof.holds(d.value)
            self.wide |= fact.dtype in ("int64", "uint64")
            return True
        self.moving |= fact is not None
        self.far |= wide_scalar(facts, d.value)
        return fact is not None

    def assigned(self, addressing: Addressing, web: Web, d: Definition) -> bool:
        """Take in `p = x`; False where the variable cannot be split."""
        facts = addressing.facts
        address = address_of(addressing, d.value) if d.value is not None else None
        if address is None:
            return False
        if address.web is not None and address.web is not web:
            inner = addressing.state_of(address.web).split
            if inner is None or inner is PROVISIONAL or address.web_axes:
                return False  # a variable that is still being decided may become none of these
            self.roots.add(inner.root)
            self.wide |= inner.wide
            self.fits &= not inner.fold
            self.moving |= inner.moves
            start = inner.base or base_variable(addressing.fresh, address.web)
            self.bases.add(start if inner.fold and not inner.moves else "")
        elif address.web is web:
            self.moving |= bool(address.scalars)
        elif any(t.variable for t in address.scalars):
            self.roots.add(address.base.id)
            self.bases.add(address.base.id)
            self.moving |= len(address.scalars) > 1
        elif not address.tensors:
            return False
        else:
            self.placed |= bool(address.scalars)
            self.roots.add(root_parameter(facts, address.base))
            self.bases.add(facts.source.of(address.base) if is_bare_parameter(facts, address.base) else "")
            self.aliases.add(address.base.id if _settled(facts, addressing.rebound, address.base, d) else "")
        self.fits &= all(not_negative(self.proof, t) for t in address.tensors)
        self.wide |= any(wide_term(facts, addressing.state_of, t) for t in address.tensors)
        self.moving |= any(not t.variable for t in address.scalars)
        self.far |= any(not t.variable and wide_term(facts, addressing.state_of, t) for t in address.scalars)
        self.far |= address.web is None and goes_far(facts, address.base)
        return True


def _split(addressing: Addressing, web: Web) -> SplitPointer | None:
    facts = addressing.facts
    found = _found(addressing, web, Signs(facts, REWRITE))
    if found is not None and found.far and not found.fits:
        found = _found(addressing, web, Signs(facts, REWRITE, exactly=True))  # nothing else serves more than 2 GiB
    if found is None:
        return None
    if len(found.roots) != 1 or None in found.roots:
        return None
    (root,) = found.roots
    small = root in facts.kernel.small_pointers
    if found.wide and len(web.definitions) > 1:
        split = _split_narrow(addressing, web, found, root)
        return split if small or split is not None and split.of_any_storage else None
    proof, bare = found.proof, found.bare
    checked = not found.placed and any(o.condition is not None for o in proof.assumed)
    # In a helper, a tensor's own start is there in any case; a base of its own would be one more buffer descriptor. From
    # a tensor's start nothing has to be checked.
    at_start = bare and (not found.moving or _slim(facts, web) or proof.by_caller or checked)
    reach = Reach.SOME
    if found.fits and (found.far or not at_start):
        reach = _reaches(facts, addressing.state_of, addressing.fresh, proof, web)
    if reach is Reach.ALL or reach is Reach.WITHIN_2GIB and small and not at_start:
        single = len(found.aliases) == 1 and not found.moving and len(web.definitions) == 1
        alias = found.aliases.pop() if single else ""
        far = reach is Reach.ALL
        return SplitPointer(root, alias, True, False, found.wide, assumed=frozenset(proof.assumed), of_any_storage=far)
    if bare and small:
        base = found.bases.pop()
        return SplitPointer(root, "" if addressing.rebound(base) else base, False, True, found.wide)
    return None


def _found(addressing: Addressing, web: Web, proof: Signs) -> _Definitions | None:
    """What the definitions of a pointer variable have in common, with what that rests on in `proof`; None where it cannot be split."""
    found, facts = _Definitions(proof), addressing.facts
    taken = (found.moved(facts, d) if d.augmented else found.assigned(addressing, web, d) for d in web.definitions)
    return found if all(taken) else None


def _split_narrow(addressing: Addressing, web: Web, found: _Definitions, root: str) -> SplitPointer | None:
    """A variable with several definitions, some of 64 bits, whose offsets must keep one integer type: 32 bits, in which sums from the
    tensor's start may wrap. From a base that moves they do not: they are not negative, and those of elements that are read fit.
    """
    facts = addressing.facts
    plain = [d for d in web.definitions if not d.augmented]
    if not plain or len(plain) > 1 and len(plain) < len(web.definitions):
        return None
    if any(facts.tensor(d.value) is not None for d in web.definitions if d.augmented):
        return None
    if any((a := address_of(addressing, d.value)) is None or a.web is not None for d in plain):
        return None
    reach = Reach.SOME
    if found.fits and (found.far or not found.bare):
        reach = _reaches(facts, addressing.state_of, addressing.fresh, found.proof, web)
    if found.bare and reach is not Reach.ALL:
        return SplitPointer(root, found.bases.pop(), False, True, False, narrow=True)
    if reach is Reach.SOME:
        return None
    assumed, far = frozenset(found.proof.assumed), reach is Reach.ALL
    return SplitPointer(root, "", True, False, False, narrow=True, assumed=assumed, of_any_storage=far)


def _reaches(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, proof: Signs, web: Web) -> Reach:
    """What the offsets of the variable reach of the tensor from a base that moves."""
    made = of_variable(facts, state_of, fresh, web)
    return Reach.SOME if made is None else reaches(facts, proof, made)


def _slim(facts: FunctionFacts, web: Web) -> bool:
    """Whether a loop moves the pointers, and their offsets cost less to move than a base with its buffer descriptor."""
    if facts.kernel.target.warp_size != 32 or not any(d.augmented and d.loop_depth for d in web.definitions):
        return False
    shape = facts.fact(definition_node(web.definitions[0])).shape
    return math.prod(shape) <= SLIM * facts.kernel.num_warps * facts.kernel.target.warp_size


def _settled(facts: FunctionFacts, rebound: Rebound, base: ast.expr, definition) -> bool:
    """Whether `base` is a scalar pointer variable that nothing reassigns after this definition."""
    web = facts.webs.of_use.get(base)
    if web is None or rebound(web.name):
        return False
    line = definition.node.lineno
    return all(d.node.lineno < line and not set(d.in_loop) & set(definition.in_loop) for d in web.definitions)


def wants(addressing: Addressing, s: ast.stmt, layouts: list[Layout]) -> list[Wants]:
    """What an assignment to a split pointer variable wants, for each layout of its offsets."""
    if isinstance(s, ast.AugAssign):
        scalar = addressing.facts.tensor(s.value) is None
        return [{s.value: None if scalar else layout} for layout in layouts]
    address = address_of(addressing, s.value)
    return [address_wants(address, layout) for layout in layouts]


def assign(
    writing: Writing, addressing: Addressing, s: ast.stmt, state: WebState, layouts: list[Layout]
) -> list[Assigned]:
    """What replaces an assignment to a split pointer variable, whose offsets are assigned in `layouts`."""
    facts = writing.facts
    made: list[Assigned] = []
    for layout in layouts:
        base, offsets = names_of(addressing.fresh, writing.names, state, layout)
        first = layout == layouts[0]
        if isinstance(s, ast.AugAssign):
            sign = "+" if isinstance(s.op, ast.Add) else "-"
            fact = facts.fact(s.value)
            scalar = not (isinstance(fact, TensorFact) and fact.shape)
            if scalar and state.split.moves:
                if first:
                    made.append(Assigned(base, writing.emit(s.value), sign))
                continue
            text = writing.emit(s.value, None if scalar else layout)
            if wide_scalar(facts, s.value) and not state.split.wide:
                text = method(text, "to", "gl.int32")
            made.append(Assigned(offsets, text, sign))
            continue
        address = address_of(addressing, s.value)
        terms: list[tuple[str, Written]] = []
        if address.web is not None:
            start, inner = split_texts(addressing, writing.names, address, layout)
            terms.append(("+", inner))
        else:
            start = base_text(writing.emit, address)
        for t in address.tensors:
            terms.append((t.sign, term_text(facts, writing.emit, t, layout)))
        for t in address.scalars:
            text = scalar_text(writing.emit, t)
            if state.split.fold:
                if wide_term(facts, addressing.state_of, t) and not state.split.wide:
                    text = method(text, "to", "gl.int32")
                terms.append((t.sign, addend(text, t.sign)))
            else:
                start = binary(start, t.sign, addend(text, t.sign))
        if first and not state.split.base and start != base:
            made.append(Assigned(base, start))
        offset = method(total(terms), "to", "gl.int32") if state.split.narrow else total(terms)
        if offsets != offset:
            made.append(Assigned(offsets, offset))
    return made
