"""Tensor descriptors of gfx1250 as what they consist of, and TDM copies as masked cp.async.

A descriptor value becomes a tuple of scalars: pointer, bounds (i32), strides (i64), tile position (i32) and predicate (i1).
Where a descriptor passes through a loop, a partition or the kernel's parameters, the tuple does. A TDM copy becomes one
masked `ttg.async_copy_global_to_local` and one commit, so that wait counts map one to one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget.encodings import blocked_text
from gluonize.judge.device.retarget.memory import Names, zero_filled
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Bases, part_of
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type, parse_type

COPY_BYTES = 16  # bytes per lane of one cp.async, the widest there is


@dataclass(frozen=True)
class Described:
    """Names of the scalars that make up one descriptor of a tile of `block` elements of type `element`."""

    pointer: str
    bounds: tuple[str, ...]
    strides: tuple[str, ...]
    position: tuple[str, ...]
    predicate: str
    block: tuple[int, ...]
    element: str

    def values(self) -> list[str]:
        return [self.pointer, *self.bounds, *self.strides, *self.position, self.predicate]

    def types(self) -> list[str]:
        rank = len(self.block)
        return [f"!tt.ptr<{self.element}>", *["i32"] * rank, *["i64"] * rank, *["i32"] * rank, "i1"]


_UNBOUNDED = "%c2147483647_i32"  # the printer names constants by their value, and numbers further ones


def _tile(kind: Type) -> tuple[tuple[int, ...], str]:
    """Shape and element type of a descriptor's tile; signs, which tensors do not have, are left out."""
    return kind.shape, kind.element[1:] if kind.element.startswith(("si", "ui")) else kind.element


def described(kind: str, values: list[str]) -> Described:
    """The descriptor of type `kind` (`!tt.tensordesc<...>`) whose scalars are `values`, in the order of `values()`."""
    block, element = _tile(parse_type(kind))
    n = len(block)
    parts = (values[1 : 1 + n], values[1 + n : 1 + 2 * n], values[1 + 2 * n : 1 + 3 * n])
    return Described(values[0], *(tuple(p) for p in parts), values[1 + 3 * n], block, element)


def width(kind: str) -> int:
    """How many scalars a descriptor of this type has."""
    return 2 + 3 * len(parse_type(kind).shape)


def make(op: Op, names: Names) -> tuple[list[str], str, Described]:
    """`%d = tt.make_tensor_descriptor %p, [bounds], [strides] : <f16>, <128x64xf16, #shared>`."""
    if "nan" in str(op.attribute("padding", "")).lower():
        raise Refused(op.name, "NaN padding")
    bounds, strides = (list(op.operands[slice(*op.bracket(which))]) for which in (0, 1))
    block, element = _tile(op.type)
    if len(block) != len(bounds):
        raise Refused(op.name, "a block of lower rank than the tensor")
    zero, on = names("zero"), names("on")
    lines = [f"{zero} = arith.constant 0 : i32", f"{on} = arith.constant true"]
    for axis, bound in enumerate(bounds):
        if bound == _UNBOUNDED or bound.startswith(f"{_UNBOUNDED}_"):
            # Divisible by 16, so that 16 bytes are inside or outside together; far from where moving it overflows.
            bounds[axis] = names("unbounded")
            lines.append(f"{bounds[axis]} = arith.constant {1 << 30} : i32")
    made = Described(op.operands[0], tuple(bounds), tuple(strides), (zero,) * len(block), on, block, element)
    return lines, op.results[0], made


def update(op: Op, names: Names, known: dict[str, Described]) -> tuple[list[str], str, Described]:
    """`%d = amdg.update_tensor_descriptor %s add_offsets = [..] set_bounds = [..] pred = %p {clamp_bounds}`."""
    old = lookup(known, op.operands[0], op.name)
    lines, new = [], old
    if added := op.listed("add_offsets"):
        moved = tuple(names("position") for _ in added)
        lines += [f"{m} = arith.addi {p}, {a} : i32" for m, p, a in zip(moved, old.position, added)]
        new = replace(new, position=moved)
        if not op.attribute("clamp_bounds"):  # the bounds count from the tile, so they move with it
            bounds = tuple(names("bound") for _ in added)
            lines += [f"{m} = arith.addi {b}, {a} : i32" for m, b, a in zip(bounds, old.bounds, added)]
            new = replace(new, bounds=bounds)
    if bounds := op.listed("set_bounds"):
        shifted = tuple(names("bound") for _ in bounds)
        lines += [f"{s} = arith.addi {b}, {p} : i32" for s, b, p in zip(shifted, bounds, new.position)]
        new = replace(new, bounds=shifted)
    if (pred := op.keyword("pred")) is not None:
        zero, on = names("zero"), names("on")
        lines += [f"{zero} = arith.constant 0 : i32", f"{on} = arith.cmpi ne, {op.operands[pred]}, {zero} : i32"]
        new = replace(new, predicate=on)
    return lines, op.results[0], new


def lookup(known: dict[str, Described], name: str, op: str) -> Described:
    if name not in known:
        raise Refused(op, f"the descriptor {name} comes from an op that is not followed")
    return known[name]


def tile_pointers(d: Described, warps: int, names: Names, ctas: Bases = ()) -> tuple[list[str], str, str, str]:
    """Addresses and in-bounds mask of the descriptor's tile; -> (lines, pointers, their type, mask). ctas: how CTAs share the tile."""
    layout = tile_layout(d, warps, ctas)
    rank, lines = len(d.block), []
    sizes = "".join(f"{n}x" for n in d.block)
    whole = {kind: f"tensor<{sizes}{kind}, {layout}>" for kind in ("i32", "i64", "i1", f"!tt.ptr<{d.element}>")}
    offset = mask = None
    for axis in range(rank):
        index, kind = _axis_index(d, axis, layout, lines, names)
        for what in ("low", "high"):
            limit, splat, inside = names("limit"), names("limits"), names(what)
            if what == "low":
                lines.append(f"{limit} = arith.constant 0 : i32")
            bound = limit if what == "low" else d.bounds[axis]
            lines.append(f"{splat} = tt.splat {bound} : i32 -> {kind}")
            lines.append(f"{inside} = arith.cmpi {'sge' if what == 'low' else 'slt'}, {index}, {splat} : {kind}")
            mask = _combine(lines, names, "arith.andi", mask, inside, kind.replace("xi32,", "xi1,"), whole["i1"])
        wide, stride, scaled = names("wide"), names("stride"), names("scaled")
        wide_kind = kind.replace("xi32,", "xi64,")
        lines.append(f"{wide} = arith.extsi {index} : {kind} to {wide_kind}")
        lines.append(f"{stride} = tt.splat {d.strides[axis]} : i64 -> {wide_kind}")
        lines.append(f"{scaled} = arith.muli {wide}, {stride} : {wide_kind}")
        offset = _combine(lines, names, "arith.addi", offset, scaled, wide_kind, whole["i64"])
    on = names("enabled")
    both = names("mask")
    lines.append(f"{on} = tt.splat {d.predicate} : i1 -> {whole['i1']}")
    lines.append(f"{both} = arith.andi {mask}, {on} : {whole['i1']}")
    pointer = whole[f"!tt.ptr<{d.element}>"]
    base, moved = names("base"), names("pointers")
    lines.append(f"{base} = tt.splat {d.pointer} : !tt.ptr<{d.element}> -> {pointer}")
    lines.append(f"{moved} = tt.addptr {base}, {offset} : {pointer}, {whole['i64']}")
    return lines, moved, pointer, both


def tile_layout(d: Described, warps: int, ctas: Bases = ()) -> str:
    """Lanes along the last dimension first, 16 bytes each; warps along the first. ctas: how the CTAs of a cluster share the tile."""
    part = part_of(d.block, ctas)
    rank = len(part)
    vector = min(part[-1], COPY_BYTES * 8 // bits_of(d.element))
    size, threads, left = [1] * rank, [1] * rank, 32
    size[-1] = vector
    for axis in reversed(range(rank)):
        threads[axis] = min(left, max(1, part[axis] // size[axis]))
        left //= threads[axis]
    threads[0] *= left
    shared = f", CGALayout = {[list(basis) for basis in ctas]}" if ctas else ""
    return blocked_text(size, threads, [warps] + [1] * (rank - 1), list(reversed(range(rank))), shared)


def _axis_index(d: Described, axis: int, layout: str, lines: list[str], names: Names) -> tuple[str, str]:
    """Position in the tensor along `axis`, as a tensor of extent 1 in all other dimensions."""
    rank, extent = len(d.block), d.block[axis]
    others = [i for i in reversed(range(rank)) if i != axis]
    nested, layouts = layout, [layout]
    for other in others:
        nested = f"#ttg.slice<{{dim = {other}, parent = {nested}}}>"
        layouts.append(nested)
    value = names("range")
    kind = f"tensor<{extent}xi32, {nested}>"
    lines.append(f"{value} = tt.make_range {{end = {extent} : i32, start = 0 : i32}} : {kind}")
    start, index = names("start"), names("index")
    lines.append(f"{start} = tt.splat {d.position[axis]} : i32 -> {kind}")
    lines.append(f"{index} = arith.addi {start}, {value} : {kind}")
    shape = [extent]
    for other, outer in zip(reversed(others), reversed(layouts[:-1])):
        shape.insert(other, 1)
        wider, wider_kind = names("index"), f"tensor<{''.join(f'{n}x' for n in shape)}i32, {outer}>"
        lines.append(f"{wider} = tt.expand_dims {index} {{axis = {other} : i32}} : {kind} -> {wider_kind}")
        index, kind = wider, wider_kind
    return index, kind


def _combine(lines: list[str], names: Names, op: str, so_far: str | None, value: str, kind: str, whole: str) -> str:
    """`so_far op value`, the value broadcast to the whole tile."""
    if kind != whole:
        spread = names("spread")
        lines.append(f"{spread} = tt.broadcast {value} : {kind} -> {whole}")
        value = spread
    if so_far is None:
        return value
    out = names("both")
    lines.append(f"{out} = {op} {so_far}, {value} : {whole}")
    return out


def copy_in(op: Op, names: Names, known: dict[str, Described], warps: int, ctas: Bases = ()) -> list[str]:
    """`%t = amdg.async_tdm_copy_global_to_local %d into %lds(, barrier = %b) : ... -> LDS`.

    Each CTA of a cluster copies what it has of the tile for itself, where the data mover may bring one to several of them.
    """
    d = lookup(known, op.operands[0], op.name)
    local, result = op.operands[op.keyword("into")], op.results[0]
    lines, pointers, kind, mask = tile_pointers(d, warps, names, ctas)
    token = names("copy")
    filled = zero_filled(lines, names, mask, parse_type(kind).of(d.element))
    lines.append(f"{token} = ttg.async_copy_global_to_local {pointers}, {local}{filled} : {kind} -> {op.target.short}")
    lines.append(f"{result} = ttg.async_commit_group tokens {token}")
    if (barrier := op.keyword("barrier")) is not None:
        # One arrival per wave and copy, by one lane that carries the sum; the copy has landed before.
        barrier_type = next(k for k in op.memdescs if (k.shape, k.element) == ((1,), "i64")).printed
        landed = names("landed")
        lines.append(f"{landed} = ttg.async_wait {result} {{num = 0 : i32}}")
        lines.append(f"ttng.arrive_barrier {op.operands[barrier]}, {warps} : {barrier_type}")
    return lines


def copy_out(op: Op, names: Names, known: dict[str, Described], warps: int, ctas: Bases = ()) -> list[str]:
    """`%t = amdg.async_tdm_copy_local_to_global %d from %lds : ...` as a masked store and an empty commit group."""
    if op.keyword("barrier") is not None:
        raise Refused(op.name, "a store that signals an mbarrier")
    by_name = [o for o in op.operands if o in known]
    local = next((o for o in op.operands if o not in known), None)
    if len(by_name) != 1 or local is None:
        raise Refused(op.name, "an operand form that is not known")
    d = known[by_name[0]]
    lines, pointers, kind, mask = tile_pointers(d, warps, names, ctas)
    value, value_type = names("tile"), kind.replace(f"!tt.ptr<{d.element}>", d.element)
    lines.append(f"{value} = ttg.local_load {local} : {op.memdesc.printed} -> {value_type}")
    lines.append(f"tt.store {pointers}, {value}, {mask} : {kind}")
    lines.append(f"{op.results[0] if op.results else names('commit')} = ttg.async_commit_group")
    return lines
