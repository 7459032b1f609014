"""What operations on buffers, barriers and global memory mean when copies happen as they are issued."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from gluonize.lift.machine.arguments import IMAGES
from gluonize.lift.machine.images import pixels
from gluonize.lift.machine.machine import Effect, NotLifted, Run, decided
from gluonize.lift.machine.sync_ops import landed
from gluonize.lift.values.order import LOADS
from gluonize.lift.values.scalars import Scalar
from gluonize.lift.values.slots import Blocks, Columns
from gluonize.lift.values.tensors import Alloc, Node, Value, View
from gluonize.trace.model.attributes import TENSOR_MEMORY_SCALES
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.op import Op
from gluonize.trace.model.op_text import author_name
from gluonize.trace.model.types import Type, pointee

# The columns of tensor memory that a type takes, and what lies in them when they are seen as another type.


def columns(run: Run, kind: Type) -> Columns | None:
    """How a type counts the columns of tensor memory; None for one of which that is not known.

    Rows beyond those of a block would lie in further columns.
    """
    layout = run.module.attribute(kind)
    block, stride = layout.get("blockM"), layout.get("colStride")
    rows = (kind.shape or (0, 0))[-2:][0] // run.module.clusters
    if None in (block, stride) or layout.get("fp4Padded") or rows > block:
        return None
    return Columns(kind.element, bits_of(kind.element) * stride // 8)


def tensor_memory(run: Run, view: View, kind: Type) -> View | None:
    """Tensor memory seen as another type, from the same column on; None where the columns of either are not known."""
    shape, tag = kind.shape or (), view.tag
    if not isinstance(tag, Columns) or view.steps or len(shape) != 2 or len(view.box) != 2:
        return None
    start = view.box[1][0] * tag.bytes
    layout = run.module.attribute(kind)
    if layout.kind == TENSOR_MEMORY_SCALES:
        # Chunks of 32 rows lie beside each other; a CTA of a cluster has those of its own rows.
        rows = shape[0] >> sum(basis[0] > 0 for basis in layout.get("CGALayout", ()))
        held = Blocks(kind.element, shape, start, -(-rows // 32) * shape[1])
        return replace(view, box=tuple((0, n) for n in shape), shape=shape, element=kind.element, tag=held)
    seen = columns(run, kind)
    if seen is None or view.box[0] != (0, shape[0]) or start % seen.bytes:
        return None
    first = start // seen.bytes
    return replace(view, box=((0, shape[0]), (first, first + shape[1])), shape=shape, element=kind.element, tag=seen)


SUFFIX = re.compile(r"_?(s?mem|tmem|bufs?|buffers?|shared|slots?|tiles?|ring)$")


def allocate(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A buffer in shared or tensor memory, perhaps with its first contents."""
    kind = op.type
    where = "tmem" if op.name == "ttng.tmem_alloc" else "smem"
    run.allocations += 1
    name = op.results[0].lstrip("%").rstrip("0123456789").rstrip("_")
    alloc = Alloc(run.allocations, where, kind, name, op.place)
    shape = kind.shape or ()
    tag = columns(run, kind) or () if where == "tmem" else ()
    view = View(alloc, (), tuple((0, n) for n in shape), shape, kind.element, tag=tag)
    source = [x for x in given if isinstance(x, Node)]
    if source:
        write(run, view, source[0])
    return [view, *[None] * (len(op.results) - 1)]


def index(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """One slot of a ring, one part of a slot."""
    view = given[0]
    at = decided(given[1], op).value if len(given) > 1 else op.indices[0]
    if view.steps or view.box[0] != (0, view.shape[0]):
        raise NotLifted("a slot of a view that is not whole", op)
    low, high = view.span
    step = (high - low) / view.shape[0]
    span = (low + at * step, low + (at + 1) * step)
    return [replace(view, slot=(*view.slot, at), box=view.box[1:], shape=view.shape[1:], span=span)]


def subslice(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A box of a buffer: offsets are written in the operation."""
    view, shape = given[0], op.type.shape or ()
    offsets = _offsets(op, len(shape))
    if view.steps:
        raise NotLifted("a part of a view that is transposed or reshaped", op)
    box = tuple((a + o, a + o + n) for (a, _), o, n in zip(view.box, offsets, shape))
    return [replace(view, box=box, shape=shape)]


def _offsets(op: Op, rank: int) -> list[int]:
    if op.name == "ttng.tmem_subslice":
        offset, axis = op.attribute("offset", op.attribute("N", 0)), op.attribute("dim", rank - 1)
        return [offset if d == axis else 0 for d in range(rank)]
    if not op.indices:
        raise NotLifted("a part of a buffer at an offset that is not written in it", op)
    return list(op.indices)


def transposed(run: Run, op: Op, given: list[Value]) -> list[Value]:
    order = op.integers("order")
    view = given[0]
    return [replace(view, steps=(*view.steps, ("trans", order)), shape=tuple(view.shape[i] for i in order))]


def reshaped(run: Run, op: Op, given: list[Value]) -> list[Value]:
    shape = op.type.shape or ()
    return [replace(given[0], steps=(*given[0].steps, ("reshape", shape)), shape=shape)]


def reinterpreted(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """The same bytes as another type: what is written through one type is read through the same."""
    view, kind = given[0], op.type
    shape = kind.shape or ()
    if view.alloc.kind == "tmem" and (seen := tensor_memory(run, view, kind)) is not None:
        return [seen]
    if shape == view.shape and kind.element == view.element:
        return [view]
    tag = (view.tag, op.name, shape, kind.element)
    return [replace(view, steps=(), box=tuple((0, n) for n in shape), shape=shape, element=kind.element, tag=tag)]


def write(run: Run, view: View, value: Node) -> None:
    """Store a tensor to a view of a buffer."""
    if not value.name and value.op in LOADS:
        value.name = held_name(view.alloc)
    shape = tuple(high - low for low, high in view.box)
    for step in reversed(view.steps):
        if step[0] == "trans":
            order = step[1]
            back = tuple(order.index(i) for i in range(len(order)))
            value = run.graph.node(
                "tt.trans", (value,), _shaped(value.type, [value.type.shape[i] for i in back]), (back,)
            )
        else:
            before = _shape_before(view, step)
            value = run.graph.node("tt.reshape", (value,), _shaped(value.type, before), ())
    assert value.type.shape == shape or math.prod(value.type.shape or ()) == math.prod(shape)
    run.memory.write(view, value)


def held_name(alloc: Alloc) -> str:
    """What a buffer holds, by the author's name of the buffer: `a` of `a_smem` or `a_bufs`."""
    return SUFFIX.sub("", alloc.name)


def _shape_before(view: View, wanted: tuple) -> tuple[int, ...]:
    shape: tuple[int, ...] = tuple(high - low for low, high in view.box)
    for step in view.steps:
        if step is wanted:
            break
        shape = tuple(shape[i] for i in step[1]) if step[0] == "trans" else step[1]
    return shape


def _shaped(kind: Type, shape: Sequence[int]) -> Type:
    return replace(kind, shape=tuple(shape), layout="")


def read(run: Run, view: Value) -> Node:
    """The tensor that a view of a buffer holds; a tensor is itself. Raises: Unreadable."""
    if isinstance(view, Node):
        return view
    value = run.memory.read(view)
    for step in view.steps:
        if step[0] == "trans":
            shape = [value.type.shape[i] for i in step[1]]
            value = run.graph.node(
                "tt.trans", (value,), _shaped(value.type, shape), (tuple(step[1]),), place=value.place
            )
        else:
            value = run.graph.node("tt.reshape", (value,), _shaped(value.type, step[1]), (), place=value.place)
    return value


# --- reading and writing buffers


def load(run: Run, op: Op, given: list[Value]) -> list[Value]:
    return [_named(read(run, given[0]), op), *[None] * (len(op.results) - 1)]


def load_and_reduce(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A load from tensor memory, perhaps with the maximum or minimum of each row."""
    value = _named(read(run, given[0]), op)
    how = op.attribute("redOp")
    if how is None:
        return [value, *[None] * (len(op.results) - 1)]
    if op.attribute("abs") or op.attribute("NaN"):
        raise NotLifted("a reduction of a load that takes absolute values or keeps NaN", op)
    kind = op.result_types[-1]
    combine = {"min": "arith.minnumf", "max": "arith.maxnumf"}.get(str(how))
    if combine is None:
        raise NotLifted(f"a load that reduces by {how}", op)
    reduced = run.graph.node("tt.reduce", (value,), kind, (combine, 1), place=op.place, context=run.around)
    return [value, *[None] * (len(op.results) - 2), reduced]


def _named(value: Node, op: Op) -> Node:
    name = result_name(op)
    if name and not value.name:
        value.name = name
    return value


def result_name(op: Op) -> str:
    """The author's name of the first result, "" where the printer made one up."""
    return author_name(op.results[0]) if op.results else ""


def store(run: Run, op: Op, given: list[Value]) -> list[Value]:
    value, view = (given[0], given[1]) if isinstance(given[1], View) else (given[1], given[0])
    if len(given) > 2 and isinstance(given[2], Scalar) and not given[2].value:
        return []
    write(run, view, value)
    return []


def copied(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """Shared memory to tensor memory. Raises: NotLifted where the shapes are of blocked scales in an unknown order."""
    source, target = given[0], given[1]
    value = read(run, source)
    if value.type.shape != target.shape:
        value = _unblocked(run, op, value, target.shape)
    write(run, target, value)
    return []


def _unblocked(run: Run, op: Op, value: Node, shape: tuple[int, ...]) -> Node:
    """Scales as the tensor core's copy takes them, `(rows / 128, columns / 4, 32, 4, 4)`, in their own order."""
    rows, columns = shape
    blocks = (rows // 128, columns // 4, 32, 4, 4)
    if rows % 128 or columns % 4 or math.prod(blocks) != math.prod(value.type.shape or ()):
        raise NotLifted(f"scales of shape {value.type.shape} are copied to {shape}", op)
    node = run.graph.node
    value = node("tt.reshape", (value,), _shaped(value.type, blocks), ())
    order = (0, 3, 2, 1, 4)
    value = node("tt.trans", (value,), _shaped(value.type, [blocks[i] for i in order]), (order,))
    return node("tt.reshape", (value,), _shaped(value.type, shape), ())


# --- global memory


def loaded(run: Run, op: Op, name: str, given: Sequence[Value], kind: Type, author: str = "") -> Node:
    """What a read of global memory gives; author: its name of it. Raises: Reordered."""
    node = run.graph.node(name, given, kind, (), author, op.place, run.around)
    return run.order.loaded(node, run.part.number)


def effect(run: Run, op: Op, kind: str, operands: tuple[Value, ...], attrs: tuple = ()) -> None:
    """A write to global memory through its first operand. Raises: Reordered."""
    run.order.stored(operands[0], operands[1:], run.part.number)
    run.effects.append(Effect(op, kind, operands, run.around, attrs))


def tile_load(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """TMA: a block of a descriptor into a slot, then its bytes to the barrier."""
    first, last = op.bracket()
    rest = given[last:]
    views = [x for x in rest if isinstance(x, View)]
    pred = rest[-1] if isinstance(rest[-1], Scalar) else None
    if pred is not None and not pred.value:
        return []
    target = next(v for v in views if v.element != "i64")
    bars = [v for v in views if v.element == "i64"]
    kind = Type("int" if target.element.startswith("i") else "float", target.element, op_block(op, given[0], target))
    if given[0].op == IMAGES:
        offsets = given[last : last + last - first - 2]
        pointers, inside = pixels(run, op.place, given[0], given[first:last], offsets)
        value = loaded(run, op, "tt.load", (pointers, inside, zeros(run, kind)), kind)
    else:
        value = loaded(run, op, "descriptor_load", (given[0], *given[first:last]), kind)
    write(run, target, value)
    for bar in bars:
        landed(run, op, bar, kind)
    return []


def op_block(op: Op, descriptor: Node, target: View) -> tuple[int, ...]:
    """The block's shape; a slot may have it without dimensions of 1."""
    block = descriptor.type.shape or ()
    return block if math.prod(block) == math.prod(target.shape) else target.shape


def gather(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """TMA: rows of a descriptor by their numbers."""
    descriptor, rows, column = given[:3]
    views = [x for x in given[3:] if isinstance(x, View)]
    pred = next((x for x in reversed(given[3:]) if isinstance(x, Scalar)), None)
    if pred is not None and not pred.value:
        return []
    target = next(v for v in views if v.element != "i64")
    kind = Type("int" if target.element.startswith("i") else "float", target.element, target.shape)
    value = loaded(run, op, "descriptor_gather", (descriptor, rows, column), kind)
    write(run, target, value)
    for bar in (v for v in views if v.element == "i64"):
        landed(run, op, bar, kind)
    return []


def tile_store(run: Run, op: Op, given: list[Value]) -> list[Value]:
    first, last = op.bracket()
    value = read(run, given[last])
    block = given[0].type.shape or ()
    if value.type.shape != block:
        value = run.graph.node("tt.reshape", (value,), _shaped(value.type, block), ())
    kind = "reduce" if op.name.endswith("reduce") else "tile"
    attrs = (op.word,) if kind == "reduce" else ()
    effect(run, op, kind, (given[0], *given[first:last], value), attrs)
    return []


def scatter(run: Run, op: Op, given: list[Value]) -> list[Value]:
    descriptor, rows, column, source = given[:4]
    effect(run, op, "scatter", (descriptor, rows, column, read(run, source)))
    return []


def pointer_store(run: Run, op: Op, given: list[Value]) -> list[Value]:
    effect(run, op, "store", tuple(given))
    return []


ATOMICS = {"fadd": "add", "exch": "xchg"} | {name: name for name in ("add", "max", "min", "and", "or", "xor")}


def compare_and_swap(run: Run, op: Op, given: list[Value]) -> list[Value]:
    raise _dependent(op)  # whether it swaps is what it is for


def _dependent(op: Op) -> NotLifted:
    why = "what an atomic operation reads is used, so that programs or threads depend on each other"
    return NotLifted(why, op)


def pointer_atomic(run: Run, op: Op, given: list[Value]) -> list[Value]:
    return atomic(run, op, given[0], given[1], given[2:])


def atomic(run: Run, op: Op, pointers: Node, value: Value, mask: Sequence[Value]) -> list[Value]:
    """An atomic write of which nothing is read back. Raises: NotLifted for any other: programs talk by these."""
    how, semantics, scope = op.words[:3]
    if any(op.results[0] in other.operands for other in run.module.walk()):
        raise _dependent(op)
    if how not in ATOMICS:
        raise NotLifted(f"an atomic operation {how}", op)
    effect(run, op, "atomic", (pointers, value, *mask), (ATOMICS[how], semantics, scope))
    return [None]


def pointer_load(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """`tt.load`: pointer, mask and other, those that are given."""
    kind = replace(op.type, layout="")
    return [loaded(run, op, "tt.load", given, kind, result_name(op))]


def async_copy(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """cp.async: the elements that a mask turns off are filled with `other`, or zero."""
    target = next(x for x in given if isinstance(x, View))
    pointers, *rest = [x for x in given if x is not target]
    fetched(run, op, target, pointers, rest)
    return [None]


def fetched(run: Run, op: Op, target: View, pointers: Node, rest: list[Value]) -> None:
    """What pointers point to, into a buffer. rest: mask and other, those that are given."""
    kind = replace(pointee(pointers.type), layout="")
    other = [zeros(run, kind)] if len(rest) == 1 else []
    write(run, target, loaded(run, op, "tt.load", (pointers, *rest, *other), kind))


def zeros(run: Run, kind: Type) -> Node:
    return run.graph.node("arith.constant", (), kind, ("0.0" if kind.is_float else "0",))


MEMORY: dict[str, Callable] = {
    "ttg.local_alloc": allocate,
    "ttng.tmem_alloc": allocate,
    "ttg.memdesc_index": index,
    "ttg.memdesc_subslice": subslice,
    "ttng.tmem_subslice": subslice,
    "ttg.memdesc_trans": transposed,
    "ttg.memdesc_reshape": reshaped,
    "ttg.memdesc_reinterpret": reinterpreted,
    "ttg.local_load": load,
    "ttng.tmem_load": load_and_reduce,
    "ttg.local_store": store,
    "ttng.tmem_store": store,
    "ttng.tmem_copy": copied,
    "ttng.async_tma_copy_global_to_local": tile_load,
    "ttng.async_tma_gather": gather,
    "ttng.async_tma_copy_local_to_global": tile_store,
    "ttng.async_tma_reduce": tile_store,
    "ttng.async_tma_scatter": scatter,
    "tt.store": pointer_store,
    "tt.load": pointer_load,
    "tt.atomic_rmw": pointer_atomic,
    "tt.atomic_cas": compare_and_swap,
    "ttg.async_copy_global_to_local": async_copy,
}
