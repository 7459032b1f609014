"""What the operations of AMD GPUs mean: the tensor data mover with its descriptors, buffer operations, copies to LDS, barriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from translator.lift.machine import NotLifted, Run
from translator.lift.memory_ops import atomic, effect, loaded, read, result_name, write, zeros
from translator.lift.scalars import Scalar, combine, const, number
from translator.lift.sync_ops import init, nothing, same
from translator.lift.values import Node, Value, View
from translator.ttgir.module import Op
from translator.ttgir.types import Type, parse_type


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
    if "set_bounds" in op.body:
        raise NotLifted("a descriptor whose bounds are changed", op)
    first, last = op.bracket()
    offsets = tuple(given[first:last])
    if "clamp_bounds" not in op.text and any(map(_bounded, _shape(known.descriptor), offsets)):
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
    endless = isinstance(extent, Scalar) and extent.expr == const(2**31 - 1)
    return offset.expr != const(0) and not (endless and offset.value >= 0)


def tile_in(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A tile from global memory to LDS, and the arrival of its barrier."""
    source, target = given[:2]
    source = source if isinstance(source, Moved) else Moved(source, tuple())
    at = op.keyword("barrier")
    if source.enabled:
        kind = Type("int" if target.element.startswith("i") else "float", target.element, source.descriptor.type.shape)
        args = (source.descriptor, *_offsets(source))
        write(run, target, loaded(run, op, "descriptor_load", args, kind))
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
    count = int(op.body.split(",")[1].split()[0])
    run.barrier(given[0], op).arrive(count * run.part.warps * run.module.lanes)
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
    target = next(x for x in given if isinstance(x, View))
    element = pointers.type.element
    kind = Type(parse_type(element).kind, element, pointers.type.shape)
    if len(rest) == 1:
        rest.append(zeros(run, kind))
    write(run, target, loaded(run, op, "tt.load", (pointers, *rest), kind))
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
