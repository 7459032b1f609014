"""What accesses to global memory mean: through pointers, through a base with 32-bit offsets, through tensor descriptors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gluonize.judge.prove.op_table import row
from gluonize.judge.prove.promises import ordered, told, within_reach
from gluonize.judge.prove.proof_values import (
    ACQUIRE,
    RELEASE,
    Access,
    Descriptor,
    NotProved,
    Tensor,
    again_shaped,
    argument,
    indices,
    like,
    reached,
)
from gluonize.judge.prove.symbolic_program import Machine, zero
from gluonize.judge.prove.terms.elements import Term, bits, is_integer
from gluonize.judge.prove.terms.term import conjuncts
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.op import Op

_PAST_CACHES = re.compile(r"\bcache(?:Modifier|_modifier)? = cv\b")  # what other programs store meanwhile


def bytes_of(element: str) -> int:
    return bits_of(element) // 8 if element not in ("ptr",) else 8


def fetched(
    m: Machine, op: Op, pointer: Term, mask: Term, other: Term | None, element: str, kind: str, dropped_is_zero: bool
) -> Term:
    """What a load gives at each index. other: None where nothing is said; then what is masked is 0 (dropped_is_zero) or anything."""
    t = m.terms
    size = bytes_of(element)
    if pointer.op != "ptr":
        raise NotProved("an address that is a choice", op)
    note(m, op, pointer, mask, size, kind)
    ordered(m, op, pointer.args[0], False)
    told(m, op, pointer.args[0])
    if mask is t.false:
        value = None
    else:
        place = t.assuming(pointer, conjuncts(mask)) if pointer.args[1].free or pointer.args[1].args else pointer
        value = t.memory((element, size), place, m.version(pointer.args[0]))
    if mask is t.true:
        return value
    if other is None:
        other = zero(t, element) if dropped_is_zero else m.unset(element, op.operand_types[0].shape)
    if value is None:
        return other
    return t.select(mask, value, other)


def note(m: Machine, op: Op, pointer: Term, mask: Term, size: int, kind: str) -> None:
    """Remember that memory is accessed. Raises: NotProved behind an asynchronous store that has not been waited for, which may come later."""
    its = [copy for copy in m.shared.under_way() if copy.reads and copy.op is not op]
    if its and not (kind == "copy" and all(copy.op.name == op.name for copy in its)):
        raise NotProved("memory is accessed while an asynchronous store is under way", op)
    m.accesses.append(Access(pointer, m.terms.both(*m.conditions, mask), size, kind, op, m.inside()))


def stored(
    m: Machine, op: Op, pointer: Term, mask: Term, value: Term, shape: tuple[int, ...], element: str, kind: str
) -> None:
    """A store at all indices of a shape."""
    t = m.terms
    if pointer.op != "ptr":
        raise NotProved("an address that is a choice", op)
    if mask is t.false:
        return
    size = bytes_of(element)
    note(m, op, pointer, mask, size, kind)
    narrow = tuple(n for n in shape if n > 1)
    conditions = conjuncts(mask)
    place, value = t.assuming(pointer, conditions), t.assuming(value, conditions)
    place, mask, value = (again_shaped(t, x, shape, narrow) for x in (place, mask, value))
    ordered(m, op, pointer.args[0], True)
    m.stored(reached(pointer.args[0]))
    m.effects.append(t.store(("store", narrow, element, size, ""), place, mask, value))


@row("tt.load")
def load(m: Machine, op: Op, given: list) -> list:
    pointer, mask, other = (*given, None, None)[:3]
    kind = op.type
    element = "ptr" if kind.kind == "ptr" else kind.element
    if op.attribute("isVolatile", False) or _PAST_CACHES.search(op.text):
        raise NotProved("a volatile load", op)
    term = fetched(
        m, op, pointer.term, m.terms.true if mask is None else mask.term, None if other is None else other.term, element,
        "pointer", m.side == 0,
    )  # fmt: skip
    return [like(term, kind)]


@row("tt.store")
def store(m: Machine, op: Op, given: list) -> list:
    pointer, value, mask = (*given, None)[:3]
    on = m.terms.true if mask is None else mask.term
    stored(m, op, pointer.term, on, value.term, value.shape, value.element, "pointer")
    return []


def buffer_pointer(m: Machine, op: Op, base: Tensor, offsets: Tensor, mask: Term, element: str) -> Term:
    """The address of a buffer operation: its offsets are unsigned, and reach 2 GiB behind its base."""
    t = m.terms
    step = t.scaled(t.unsigned(offsets.term, 32), bytes_of(element))
    within_reach(m, op, base.term, step, mask, bytes_of(element))
    return t.pointer(base.term, step)


def buffer_parts(m: Machine, op: Op, given: list) -> tuple[Tensor, Tensor, Term, Term | None]:
    base, offsets, mask, other = (None if i is None else given[i] for i in op.buffer_indices)
    return base, offsets, m.terms.true if mask is None else mask.term, None if other is None else other.term


@row("amdg.buffer_load")
def buffer_load(m: Machine, op: Op, given: list) -> list:
    base, offsets, mask, other = buffer_parts(m, op, given)
    element = op.type.element
    return [
        like(
            fetched(m, op, buffer_pointer(m, op, base, offsets, mask, element), mask, other, element, "buffer", True),
            op.type,
        )
    ]


@row("amdg.buffer_store")
def buffer_store(m: Machine, op: Op, given: list) -> list:
    value = given[0]
    base, offsets, mask, _ = buffer_parts(m, op, given)
    stored(
        m,
        op,
        buffer_pointer(m, op, base, offsets, mask, value.element),
        mask,
        value.term,
        value.shape,
        value.element,
        "buffer",
    )
    return []


# --- atomics


def atomic(
    m: Machine, op: Op, how: str, pointer: Term, mask: Term, operands: Sequence[Tensor], shape, element: str, kind: str
) -> list:
    """Atomic operations at all indices, in an order that nobody knows; a result stands for itself, by its place among all of them."""
    t = m.terms
    if pointer.op != "ptr":
        raise NotProved("an address that is a choice", op)
    size = bytes_of(element)
    note(m, op, pointer, mask, size, kind)
    base = pointer.args[0]
    version = m.version(base)
    ordered(m, op, base, True)
    m.stored(reached(base))
    values = tuple(argument(t, x) for x in operands)
    made = t.node("operands", (), values, "operands") if len(values) > 1 else values[0]
    used = bool(op.results) and m.module.mentions[op.results[0]] > 1
    if "relaxed" not in op.words:
        m.stored(ACQUIRE if used else RELEASE)
    m.effects.append(t.store((f"atomic {how}", shape, element, size, ""), pointer, mask, made))
    if not op.results:
        return []
    if not used:
        return [like(m.unset(op.type.element, op.type.shape), op.type)]
    result = t.node("old", (how, shape), (t.address(pointer, size), mask, made, version, *indices(t, shape)), element)
    return [like(t.integer_of(result) if is_integer(element) else result, op.type)]


def _how(op: Op) -> str:
    order = [word for word in op.words[1:] if not word.isdigit()]
    return " ".join([{"fadd": "fadd"}.get(op.word, op.word), *order])


@row("tt.atomic_rmw")
def atomic_rmw(m: Machine, op: Op, given: list) -> list:
    pointer, value, mask = (*given, None)[:3]
    on = m.terms.true if mask is None else mask.term
    return atomic(m, op, _how(op), pointer.term, on, [value], value.shape, value.element, "pointer")


@row("amdg.buffer_atomic_rmw")
def buffer_atomic_rmw(m: Machine, op: Op, given: list) -> list:
    value = given[0]
    base, offsets, mask, _ = buffer_parts(m, op, given)
    pointer = buffer_pointer(m, op, base, offsets, mask, value.element)
    return atomic(m, op, _how(op), pointer, mask, [value], value.shape, value.element, "buffer")


@row("tt.atomic_cas")
def atomic_cas(m: Machine, op: Op, given: list) -> list:
    pointer, compare, value = given
    how = " ".join(["cas", *op.words])
    return atomic(m, op, how, pointer.term, m.terms.true, [compare, value], value.shape, value.element, "pointer")


# --- descriptors


@row("tt.make_tensor_descriptor")
def make_tensor_descriptor(m: Machine, op: Op, given: list) -> list:
    rank, t = len(op.type.shape), m.terms
    sizes = tuple(t.value(x.term, bits(x.element)) for x in given[1 : 1 + rank])
    strides = tuple(t.value(x.term, bits(x.element)) for x in given[1 + rank : 1 + 2 * rank])
    element = op.type.element.removeprefix("s").removeprefix("u")
    if given[0].term.op != "ptr":
        raise NotProved("a descriptor of what is no pointer", op)
    zeros = (t.integer(0),) * rank
    return [
        Descriptor(
            given[0].term, sizes, strides, op.type.shape, element, zeros, sizes, t.true, op.attribute("padding", 1)
        )
    ]


def tile(m: Machine, d: Descriptor, offsets: Sequence[Term]) -> tuple[Term, Term]:
    """(addresses, which are inside) of the tile at offsets, at its indices."""
    t, mask, step = m.terms, m.terms.true, m.terms.integer(0)
    for axis, (offset, n) in enumerate(zip(offsets, d.block)):
        at = t.add(t.add(d.offsets[axis], offset), t.index(axis, n))
        inside = t.add(offset, t.index(axis, n))  # bounds move with a descriptor that is moved
        step = t.add(step, t.multiply(at, d.strides[axis]))
        mask = t.both(mask, within(m, inside, d.bounds[axis]))
    return t.pointer(d.base, t.scaled(step, bytes_of(d.element))), mask


def within(m: Machine, index: Term, size: Term) -> Term:
    """0 <= index < size. Where sizes have 32 bits, an index that is a little wider is the one of 32 bits that it is modulo 2**32."""
    t, half = m.terms, 1 << 31
    if size.high < half and -half <= index.low and index.high < 3 * half:
        index = t.value(t.reduced(index, 32), 32)
    return t.both(t.no(t.negative(index)), t.less(index, size))


def offsets_of(m: Machine, given: Sequence[Any]) -> list[Term]:
    return [m.terms.value(x.term, bits(x.element)) for x in given]


@row("tt.descriptor_load")
def descriptor_load(m: Machine, op: Op, given: list) -> list:
    d = given[0]
    pointer, mask = tile(m, d, offsets_of(m, given[1:]))
    t = m.terms
    if d.padding != 1:
        raise NotProved("a descriptor that fills with other numbers than 0", op)
    term = fetched(m, op, pointer, mask, None, d.element, "pointer", True)
    return [like(again_shaped(t, term, d.block, op.type.shape), op.type)]


@row("tt.descriptor_store")
def descriptor_store(m: Machine, op: Op, given: list) -> list:
    first, last = op.bracket()
    d, value = given[0], given[last] if first == 1 else given[1]
    pointer, mask = tile(m, d, offsets_of(m, given[first:last]))
    term = again_shaped(m.terms, value.term, value.shape, d.block)
    stored(m, op, pointer, mask, term, d.block, d.element, "pointer")
    return []


@row("amdg.update_tensor_descriptor")
def update_tensor_descriptor(m: Machine, op: Op, given: list) -> list:
    d, t = given[0], m.terms
    offsets, bounds = list(d.offsets), list(d.bounds)
    for word in ("add_offsets", "set_bounds"):
        if (at := op.listed_at(word)) is None:
            continue
        values = offsets_of(m, given[slice(*at)])
        if word == "add_offsets":
            offsets = [t.add(a, b) for a, b in zip(offsets, values)]
            if op.attribute("clamp_bounds", False):
                # An index that is not negative is below a number where it is below that number or 0.
                bounds = [
                    t.add(a, b, -1) if b.low >= 0 else t.larger(t.add(a, b, -1), t.integer(0))
                    for a, b in zip(bounds, values)
                ]
        else:
            bounds = values
    enabled = d.enabled
    if (at := op.keyword("pred")) is not None:
        enabled = _enabled(m, given[at])
    return [
        Descriptor(d.base, d.sizes, d.strides, d.block, d.element, tuple(offsets), tuple(bounds), enabled, d.padding)
    ]


def _enabled(m: Machine, x: Tensor) -> Term:
    return x.term if x.element == "i1" else m.terms.no(m.terms.is_zero(m.terms.value(x.term, bits(x.element))))


__all__ = ["Descriptor", "buffer_parts", "buffer_pointer", "bytes_of", "fetched", "tile"]
