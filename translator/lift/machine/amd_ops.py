"""What the operations of AMD GPUs mean: the tensor data mover with its descriptors, buffer operations, copies to LDS, barriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from gluonize.lift.machine.machine import NotLifted, Run
from gluonize.lift.machine.memory_ops import atomic, effect, fetched, loaded, read, result_name, write, zeros
from gluonize.lift.machine.sync_ops import init, nothing, same
from gluonize.lift.values.induction import added, moved_by, wide
from gluonize.lift.values.scalars import Scalar, combine, const, never_negative, number
from gluonize.lift.values.tensors import Node, Value, View
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type


@dataclass(frozen=True)
class Moved:
    """A tensor descriptor whose tile begins at `offsets`; `enabled` is false after a predicate that was."""

    descriptor: Node
    offsets: tuple[Scalar, ...]
    enabled: bool = True


def make_descriptor(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """`tt.make_tensor_descriptor base, [shape], [strides]`."""
    kind = replace(op.type, layout="")
    return [run.graph.node("make_descriptor", given, kind, (), result_name(op) or "desc", op.place, run.around)]


def moved(run: Run, op: Op, given: list[Value]) -> list[Value]:
    known = given[0] if isinstance(given[0], Moved) else Moved(given[0], ())
    if op.listed_at("set_bounds"):
        raise NotLifted("a descriptor whose bounds are changed", op)
    first, last = op.bracket()
    offsets = tuple(given[first:last])
    if not op.attribute("clamp_bounds") and any(map(_bounded, _shape(known.descriptor), offsets)):
        raise NotLifted("a descriptor whose bounds move with its tile", op)
    if known.offsets:
        offsets = tuple(combine("add", a, b) for a, b in zip(known.offsets, offsets))
    at = op.keyword("pred")
    enabled = known.enabled and (at is None or bool(given[at].value))
    return [Moved(known.descriptor, offsets, enabled)]


def _shape(descriptor: Node) -> tuple[Value, ...]:
    """How far a descriptor made in the kernel goes, of another one nothing that is known."""
    rank = len(descriptor.type.shape or ())
    return descriptor.args[1 : 1 + rank] if descriptor.op == "make_descriptor" else (None,) * rank


def _bounded(extent: Value, offset: Scalar) -> bool:
    """Whether a tile that is moved by `offset` ends elsewhere than one at that offset: not where there is no bound."""
    return offset.expr != const(0) and not (_endless(extent) and offset.value >= 0)


def _endless(extent: Value) -> bool:
    return isinstance(extent, Scalar) and extent.expr == const(2**31 - 1)


def _pointed(run: Run, op: Op, tile: Moved, kind: Type) -> tuple[Node, ...]:
    """Pointers of a tile of a tensor that is without bounds along some axis, and its mask, with zeros outside, where it has others.

    Where the tile begins is a 64-bit number, as the pointers are.
    """
    node, shape = run.graph.node, tile.descriptor.type.shape or ()
    base, strides = tile.descriptor.args[0], tile.descriptor.args[1 + len(shape) :]
    first, inside, masks = number(0), [], []
    for axis, (offset, stride, extent) in enumerate(zip(_offsets(tile), strides, _shape(tile.descriptor))):
        first = combine("add", first, combine("mul", wide(offset), wide(stride)))
        inside.append(_along(run, axis, shape, stride))
        if not _endless(extent):
            masks += _within(run, axis, shape, offset, extent)
    if first.expr != const(0):
        base = node("tt.addptr", (base, first), replace(base.type, shape=None), (), "", op.place, run.around)
        base = added(run.graph, base)
    spread = node("tt.splat", (base,), replace(base.type, shape=shape))
    offsets = reduce(lambda a, b: node("arith.addi", (a, b), a.type, (), "", op.place, run.around), inside)
    pointers = node("tt.addptr", (spread, offsets), spread.type, (), "", op.place, run.around)
    if not masks:
        return (pointers,)
    return pointers, reduce(lambda a, b: node("arith.andi", (a, b), a.type), masks), zeros(run, kind)


def _along(run: Run, axis: int, shape: tuple[int, ...], stride: Scalar) -> Node:
    """How far each element of a tile is along one axis."""
    at = _places(run, axis, shape)
    if stride.expr[0] == "i64":
        stride = Scalar(stride.value, stride.expr[1])  # an argument of 32 bits: a tile is less than 2**31 elements long
    if stride.expr != const(1):
        at = run.graph.node(
            "arith.muli", (run.graph.node("tt.splat", (stride,), at.type, context=run.around), at), at.type
        )
    return _over(run, at, shape)


def _places(run: Run, axis: int, shape: tuple[int, ...]) -> Node:
    """The number of each element along one axis, the other axes being 1 long."""
    kind = Type("int", "i32", (shape[axis],))
    at = run.graph.node("tt.make_range", (), kind, (0, shape[axis]))
    for d in range(len(shape)):
        if d != axis:
            kind = replace(kind, shape=(*kind.shape[:d], 1, *kind.shape[d:]))
            at = run.graph.node("tt.expand_dims", (at,), kind, (d,))
    return at


def _over(run: Run, x: Node, shape: tuple[int, ...]) -> Node:
    return run.graph.node("tt.broadcast", (x,), replace(x.type, shape=shape)) if x.type.shape != shape else x


def _within(run: Run, axis: int, shape: tuple[int, ...], offset: Scalar, extent: Value) -> list[Node]:
    """Which elements of a tile lie within the bounds of one axis."""
    at = _places(run, axis, shape)
    answers = replace(at.type, element="i1")
    at = moved_by(run.graph, at, offset, replace(at, context=run.around))
    bounds = [("slt", extent)] + ([] if never_negative(offset.expr) else [("sge", number(0))])
    spread = [(how, run.graph.node("tt.splat", (bound,), at.type, context=run.around)) for how, bound in bounds]
    return [_over(run, run.graph.node("arith.cmpi", (at, bound), answers, (how,)), shape) for how, bound in spread]


def tile_in(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A tile from global memory to LDS, and the arrival of its barrier."""
    source, target = given[:2]
    source = source if isinstance(source, Moved) else Moved(source, tuple())
    at = op.keyword("barrier")
    if source.enabled:
        kind = Type("int" if target.element.startswith("i") else "float", target.element, source.descriptor.type.shape)
        if any(map(_endless, _shape(source.descriptor))):
            value = loaded(run, op, "tt.load", _pointed(run, op, source, kind), kind)
        else:
            value = loaded(run, op, "descriptor_load", (source.descriptor, *_offsets(source)), kind)
        write(run, target, value)
    if at is not None:
        run.barrier(given[at], op).arrive(run.part.warps)
    return [None] * len(op.results)


def _offsets(moved: Moved) -> tuple[Scalar, ...]:
    return moved.offsets or (number(0),) * len(moved.descriptor.type.shape or ())


def tile_out(run: Run, op: Op, given: list[Value]) -> list[Value]:
    target = given[0] if isinstance(given[0], Moved) else Moved(given[0], ())
    value = read(run, given[1])
    at = op.keyword("barrier")
    if target.enabled:
        effect(run, op, "tile", (target.descriptor, *_offsets(target), value))
    if at is not None:
        run.barrier(given[at], op).arrive(run.part.warps)
    return [None] * len(op.results)


def arrive(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """Each thread of the partition arrives."""
    run.barrier(given[0], op).arrive(op.counted * run.part.warps * run.module.lanes)
    return [None] * len(op.results)


def buffer_load(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """What its mask excludes reads as zero, unless another value is given for it."""
    pointers, rest = _addressed(run, op, given)
    kind = replace(op.type, layout="")
    if len(rest) == 1:
        rest.append(zeros(run, kind))
    return [loaded(run, op, "tt.load", (pointers, *rest), kind, result_name(op))]


def _addressed(run: Run, op: Op, given: list[Value]) -> tuple[Node, list[Value]]:
    """Pointers, and mask and other where there are any, of a buffer operation."""
    base, offsets, mask, other = op.buffer_indices
    pointer, offset = given[base], given[offsets]
    kind = replace(pointer.type, shape=offset.type.shape)
    spread = run.graph.node("tt.splat", (pointer,), kind)
    rest = [given[i] for i in (mask, other) if i is not None]
    if mask is None and other is not None:
        raise NotLifted("a value for elements outside without a mask", op)
    return run.graph.node("tt.addptr", (spread, offset), kind, place=op.place, context=run.around), rest


def buffer_store(run: Run, op: Op, given: list[Value]) -> list[Value]:
    pointers, rest = _addressed(run, op, given)
    effect(run, op, "store", (pointers, given[0], *rest[:1]))
    return []


def buffer_atomic(run: Run, op: Op, given: list[Value]) -> list[Value]:
    pointers, rest = _addressed(run, op, given)
    return atomic(run, op, pointers, given[0], rest[:1])


def buffer_to_lds(run: Run, op: Op, given: list[Value]) -> list[Value]:
    pointers, rest = _addressed(run, op, given)
    fetched(run, op, next(x for x in given if isinstance(x, View)), pointers, rest)
    return [None] * len(op.results)


def lds_to_global(run: Run, op: Op, given: list[Value]) -> list[Value]:
    source = next(x for x in given if isinstance(x, View))
    pointers, *rest = [x for x in given if x is not source]
    effect(run, op, "store", (pointers, read(run, source), *rest[:1]))
    return [None] * len(op.results)


def gather(run: Run, op: Op, given: list[Value]) -> list[Value]:
    raise NotLifted(f"{op.name} is not lifted yet", op)


AMD: dict[str, Callable] = {
    "tt.make_tensor_descriptor": make_descriptor,
    "amdg.update_tensor_descriptor": moved,
    "amdg.async_tdm_copy_global_to_local": tile_in,
    "amdg.async_tdm_copy_local_to_global": tile_out,
    "amdg.init_barrier": init,
    "amdg.arrive_barrier": arrive,
    "amdg.buffer_load": buffer_load,
    "amdg.buffer_store": buffer_store,
    "amdg.buffer_atomic_rmw": buffer_atomic,
    "amdg.buffer_load_to_local": buffer_to_lds,
    "amdg.async_copy_local_to_global": lds_to_global,
    "amdg.in_thread_transpose": same,
    "amdg.async_tdm_gather": gather,
    "amdg.async_tdm_scatter": gather,
    **dict.fromkeys(
        ("amdg.async_tdm_wait", "amdg.async_tdm_intrinsic_wait", "amdg.tdm_prefetch", "amdg.cluster_barrier_arrive")
        + (
            "amdg.cluster_barrier_wait",
            "amdg.async_wait",
            "amdg.cond_barrier",
            "rocdl.sched.barrier",
            "rocdl.s.setprio",
        )
        + ("amdg.memory_counter_wait", "amdg.instruction_sched_hint", "rocdl.sched.group.barrier", "rocdl.s.barrier"),
        nothing,
    ),
}
