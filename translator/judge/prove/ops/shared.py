"""What operations on shared memory mean: allocations and views, loads and stores, copies, waits, barriers."""

from __future__ import annotations

from gluonize.judge.prove.op_table import row
from gluonize.judge.prove.ops.memory import buffer_parts, buffer_pointer, fetched, stored, tile
from gluonize.judge.prove.proof_values import (
    Allocation,
    Descriptor,
    Hazard,
    NeedConstant,
    NotProved,
    View,
    again_shaped,
    indices,
    like,
    linear,
    unravelled,
)
from gluonize.judge.prove.slot_boxes import Copy, part, whole
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.elements import bits
from gluonize.trace.model.op import Op


@row("ttg.local_alloc")
def local_alloc(m: Machine, op: Op, given: list) -> list:
    kind = op.type
    key = (op.line,)
    allocation = Allocation(key, op.place.name or op.results[0].lstrip("%"), kind.shape, kind.element, op)
    for cell in m.shared.cells.get(key, []):
        if cell.copies:
            raise Hazard(f"allocates again what is in flight to {allocation.name}", op)
    m.shared.cells[key] = []
    view = whole(m.terms, allocation)
    if given:
        m.shared.write(view, given[0].term, op)
    return [view]


@row("ttg.local_load")
def local_load(m: Machine, op: Op, given: list) -> list:
    view = given[0]
    _plain(view, op)
    return [like(m.shared.read(view, op, bool(op.attribute("ttg.amdg.syncedViaAsyncWait", False))), op.type)]


@row("ttg.local_store")
def local_store(m: Machine, op: Op, given: list) -> list:
    value, view = given
    _plain(view, op)
    m.shared.write(view, value.term, op)
    return []


def _plain(view: View, op: Op) -> None:
    if view.raw:
        raise NotProved("shared memory seen as another type", op)


@row("ttg.memdesc_index")
def memdesc_index(m: Machine, op: Op, given: list) -> list:
    view, index = given
    t = m.terms
    number = t.value(index.term, bits(index.element))
    if number.constant is None:
        raise NeedConstant(number, view.shape[0], op)
    if not 0 <= number.constant < view.shape[0]:
        raise Hazard(f"index {number.constant} of {view.allocation.name}, which has {view.shape[0]} slots", op)
    shape = view.shape[1:]
    to = [number, *indices(t, shape)]
    back = [t.index(d + 1, n) for d, n in enumerate(shape)]
    return [part(t, view, shape, to, back, op)]


@row("ttg.memdesc_subslice")
def memdesc_subslice(m: Machine, op: Op, given: list) -> list:
    (view,), t = given, m.terms
    shape, starts = op.type.shape, op.indices
    starts = starts[-len(shape) :]
    to = [t.add(t.index(d, n), t.integer(s)) for d, (n, s) in enumerate(zip(shape, starts))]
    back = [t.add(t.index(d, n), t.integer(-s)) for d, (n, s) in enumerate(zip(view.shape, starts))]
    return [part(t, view, shape, to, back, op)]


@row("ttg.memdesc_trans")
def memdesc_trans(m: Machine, op: Op, given: list) -> list:
    (view,), t = given, m.terms
    order, shape = op.integers("order"), op.type.shape
    to = [t.integer(0)] * len(order)
    for d, source in enumerate(order):
        to[source] = t.index(d, shape[d])
    back = [t.index(source, view.shape[source]) for source in order]
    return [part(t, view, shape, to, back, op)]


@row("ttg.memdesc_reshape")
def memdesc_reshape(m: Machine, op: Op, given: list) -> list:
    (view,), t = given, m.terms
    shape = op.type.shape
    to = unravelled(t, linear(t, indices(t, shape), shape), view.shape)
    back = unravelled(t, linear(t, indices(t, view.shape), view.shape), shape)
    return [part(t, view, shape, to, back, op)]


@row("ttg.memdesc_reinterpret")
def memdesc_reinterpret(m: Machine, op: Op, given: list) -> list:
    (view,), kind = given, op.type
    source = op.operand_types[0]
    if (source.element, source.shape, source.layout) == (kind.element, kind.shape, kind.layout):
        return [view]
    return [View(view.allocation, kind.shape, view.places, view.inverse, view.box, True)]


# --- copies


@row("amdg.buffer_load_to_local")
def buffer_load_to_local(m: Machine, op: Op, given: list) -> list:
    base, offsets, mask, other = buffer_parts(m, op, given)
    view = given[op.keyword("into")]
    _plain(view, op)
    element = view.allocation.element
    value = fetched(m, op, buffer_pointer(m, op, base, offsets, mask, element), mask, other, element, "buffer", True)
    m.shared.issue("async", view, again_shaped(m.terms, value, offsets.shape, view.shape), op)
    return [None]


@row("ttg.async_copy_global_to_local")
def async_copy_global_to_local(m: Machine, op: Op, given: list) -> list:
    pointer, view = given[:2]
    _plain(view, op)
    mask, other = op.keyword("mask"), op.keyword("other")
    on = m.terms.true if mask is None else given[mask].term
    value = fetched(
        m, op, pointer.term, on, None if other is None else given[other].term, view.allocation.element, "pointer", False
    )
    m.shared.issue("async", view, again_shaped(m.terms, value, pointer.shape, view.shape), op)
    return [None]


@row("ttg.async_commit_group")
def async_commit_group(m: Machine, op: Op, given: list) -> list:
    m.shared.commit("async")
    return [None]


@row("ttg.async_wait", "amdg.async_wait")
def async_wait(m: Machine, op: Op, given: list) -> list:
    m.shared.wait("async", op.attribute("num", op.attribute("num_inst", 0)))
    return [None]


@row("ttg.barrier", "gpu.barrier")
def barrier(m: Machine, op: Op, given: list) -> list:
    # Copies that are under way may read and store global memory behind it.
    m.shared.barrier(everywhere="local" not in op.words and not any(m.shared.under_way()))
    return []


# --- the tensor data mover, whose waits count operations


def _to_local(m: Machine, op: Op, d: Descriptor, view: View) -> None:
    _plain(view, op)
    if d.enabled is not m.terms.true:
        if d.enabled is m.terms.false:
            m.shared.queues["tensor"].open.append(Copy(op))
            m.shared.write(view, m.unset(d.element, view.shape), op)
            return
    pointer, inside = tile(m, d, (m.terms.integer(0),) * len(d.sizes))
    if d.padding != 1:
        raise NotProved("a descriptor that fills with other numbers than 0", op)
    if m.side == 1 and d.enabled is m.terms.true and d.base.args[0].op == "argument":
        for offset in d.offsets:
            if offset.low < 0:
                fact = m.terms.no(m.terms.negative(offset))
                m.given[fact, frozenset(m.conditions), m.inside()] = d.base.args[0].data[0]
    m.conditions.append(d.enabled)
    value = fetched(m, op, pointer, inside, None, d.element, "copy", True)
    m.conditions.pop()
    if d.enabled is not m.terms.true:  # else the place stays as it was, which nothing here may depend on
        value = m.terms.select(d.enabled, value, m.unset(d.element, d.block))
    m.shared.issue("tensor", view, again_shaped(m.terms, value, d.block, view.shape), op)


@row("amdg.async_tdm_copy_global_to_local")
def async_tdm_copy_global_to_local(m: Machine, op: Op, given: list) -> list:
    if op.keyword("barrier") is not None:
        raise NotProved("a copy that signals a barrier", op)
    _to_local(m, op, given[0], given[1])
    m.shared.commit("tensor")
    return [None]


@row("amdg.async_tdm_fused_copy_global_to_local")
def async_tdm_fused_copy(m: Machine, op: Op, given: list) -> list:
    members = len(given) // 2
    for descriptor, view in zip(given[:members], given[members:]):
        _to_local(m, op, descriptor, view)
    m.shared.commit("tensor")
    return [None]


@row("amdg.async_tdm_copy_local_to_global")
def async_tdm_copy_local_to_global(m: Machine, op: Op, given: list) -> list:
    if op.keyword("barrier") is not None:
        raise NotProved("a copy that signals a barrier", op)
    d, view = given[0], given[1]
    _plain(view, op)
    if d.enabled is not m.terms.true:
        raise NotProved("a copy with a condition", op)
    pointer, inside = tile(m, d, (m.terms.integer(0),) * len(d.sizes))
    value = again_shaped(m.terms, m.shared.issue_store("tensor", view, op), view.shape, d.block)
    m.shared.commit("tensor")
    stored(m, op, pointer, inside, value, d.block, d.element, "copy")
    return [None]


@row("amdg.async_tdm_wait", "amdg.async_tdm_intrinsic_wait")
def async_tdm_wait(m: Machine, op: Op, given: list) -> list:
    m.shared.wait("tensor", op.attribute("num", op.attribute("count", 0)))
    return [None]


@row("amdg.tdm_prefetch")
def tdm_prefetch(m: Machine, op: Op, given: list) -> list:
    return []
