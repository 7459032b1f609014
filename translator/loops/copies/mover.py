"""What the tensor data mover needs for a load of a pipelined loop: a descriptor before it, one copy per tile.

Each function takes the tile of the load, a `StridedTile` or a `DescriptorTile`.
"""

from __future__ import annotations

import ast
import functools

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.polynomials import INDEX, Polynomial, add
from gluonize.gluon.code import code_of
from gluonize.gluon.nodes import Code
from gluonize.gluon.written import (
    Written,
    attribute,
    binary,
    call,
    grouped,
    keyword,
    listed,
    literal,
    method,
    name,
    negative,
    operand,
    times,
    total,
)
from gluonize.loops.loop.loop import NOWHERE, PipelinedLoop, Ring
from gluonize.loops.plan.tiles.descriptors import DescriptorTile
from gluonize.loops.plan.tiles.strided import Axis, StridedTile
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.write.accesses.accesses import STREAMED, streams_load
from gluonize.write.descriptors import tdm
from gluonize.write.state.unit import Record
from gluonize.write.state.writing import Emit, Writing

NEVER = binary(Written("2**31", ast.Pow), "-", literal(1))  # a size at which no tile is clipped


def before(writing: Writing, loop: PipelinedLoop, ring: Ring) -> list[Code]:
    """The descriptor for a load, at what stays the same of its coordinates, and the ring of its tiles."""
    tile = ring.load.tile
    if isinstance(tile, StridedTile):
        return _make(writing, loop, ring, tile)
    return _take(writing.facts, writing.emit, writing.record, loop, ring, tile)


def copy(
    writing: Writing, loop: PipelinedLoop, ring: Ring, slot: str, target: Written, condition: Written | None
) -> Written:
    """Issue the copy of the tile at `loop.fetch.at` into `slot`, which is `target`."""
    facts = writing.facts
    tile = ring.load.tile
    barrier = loop.form.ready_of(ring, slot)
    if isinstance(tile, DescriptorTile):
        tdm.rests_on(facts, writing.record, tile.offsets)
        descriptor, offsets = _place(facts, writing.emit, ring, tile)
    else:
        descriptor, offsets = _position(ring, tile), [
            _text(facts, writing.emit, tile, a.moving, _index(facts, loop)) for a in tile.axes
        ]
        if tile.unclipped:
            descriptor = tdm.moved_text(writing.record, descriptor, offsets, condition)
            offsets, condition = [literal(0)], None
    streamed = isinstance(tile, StridedTile) and streams_load(writing, ring.load.call)
    return tdm.copy_text(writing.record, descriptor, offsets, target, condition, barrier, STREAMED if streamed else "")


def prefetch(
    facts: FunctionFacts, emit: Emit, record: Record, loop: PipelinedLoop, ring: Ring, condition: Written
) -> Written:
    """Ask for the tile at `loop.fetch.at` in the L2 cache."""
    tile = ring.load.tile
    if isinstance(tile, DescriptorTile):
        descriptor, offsets = _place(facts, emit, ring, tile)
    else:
        descriptor, offsets = _position(ring, tile), [
            _text(facts, emit, tile, a.moving, loop.fetch.at) for a in tile.axes
        ]
    return tdm.prefetch_text(record, descriptor, offsets, condition)


# Descriptors of the source ---------------------------------------------------------------------------------------------


def _positioned(facts: FunctionFacts, tile: DescriptorTile) -> bool:
    """Whether offsets that stay the same are worked into the descriptor before the loop."""
    return any(f and not tdm.constant_zero(facts, o) for f, o in zip(tile.fixed, tile.offsets))


def _take(
    facts: FunctionFacts, emit: Emit, record: Record, loop: PipelinedLoop, ring: Ring, tile: DescriptorTile
) -> list[Code]:
    owner = emit(tile.owner)
    lines = [_allocated(loop, ring, owner)]
    if not _positioned(facts, tile):
        return lines
    offsets = [tdm.index_text(facts, emit, o) if f else literal(0) for f, o in zip(tile.fixed, tile.offsets)]
    return [*lines, code_of(f"{ring.tiles} = ", tdm.position_text(record, owner, offsets))]


def _allocated(loop: PipelinedLoop, ring: Ring, descriptor: Written) -> Code:
    """The ring, in LDS, for the tiles of a descriptor."""
    shape = binary(listed(loop.buffers), "+", attribute(descriptor, "block_shape"))
    made = call("gl.allocate_shared_memory", attribute(descriptor, "dtype"), shape, attribute(descriptor, "layout"))
    return code_of(f"{ring.smem} = ", made)


def _place(facts: FunctionFacts, emit: Emit, ring: Ring, tile: DescriptorTile) -> tuple[Written, list[Written]]:
    """The descriptor that a copy of the tile takes, and the offsets in it."""
    given = callees.bound(facts, ring.fetch)
    moved = _positioned(facts, tile)
    offsets = [
        literal(0) if f and moved else tdm.index_text(facts, emit, o) for f, o in zip(tile.fixed, given["offsets"].elts)
    ]
    return (name(ring.tiles) if moved else emit(tile.owner)), offsets


# Strided tiles ---------------------------------------------------------------------------------------------------------


def _make(writing: Writing, loop: PipelinedLoop, ring: Ring, tile: StridedTile) -> list[Code]:
    facts = writing.facts
    writing.record.obligations |= tile.assumed
    if tile.small:
        writing.record.reaches(tile.small)
    writing.names.suggest(tile.shared, f"{ring.load.name}_shared", 1, ring.load.line)
    base = _further(facts, writing.emit, tile, writing.emit(tile.base), tile.narrow)
    base = _further(facts, writing.emit, tile, base, add(tile.rest, tile.narrow, -1), tile.wide)
    made = call(
        f"{tdm.module(writing.record)}.make_tensor_descriptor",
        base,
        keyword("shape", listed(*(_size(facts, writing.emit, tile, a) for a in tile.axes))),
        keyword("strides", listed(*(_text(facts, writing.emit, tile, a.stride) for a in tile.axes))),
        keyword("block_shape", listed(*(writing.emit(a.extent) for a in tile.axes))),
        keyword("layout", writing.names.spell(tile.shared)),
    )
    lines = [code_of(f"{ring.desc} = ", made)]
    if tile.positioned:
        fixed = [_text(facts, writing.emit, tile, a.fixed) for a in tile.axes]
        lines.append(code_of(f"{ring.tiles} = ", tdm.position_text(writing.record, ring.desc, fixed)))
    return [*lines, _allocated(loop, ring, name(ring.desc))]


def _further(
    facts: FunctionFacts, emit: Emit, tile: StridedTile, base: Written, by: Polynomial, wide: bool = False
) -> Written:
    """The pointer `base` with `by` added to it, or taken off it."""
    if not by:
        return base
    if all(coefficient < 0 for coefficient in by.values()):
        taken = {monomial: -coefficient for monomial, coefficient in by.items()}
        return binary(base, "-", grouped(_text(facts, emit, tile, taken, wide=wide)))
    text = _text(facts, emit, tile, by, wide=wide)
    return binary(base, "+", grouped(text) if len(by) > 1 and not wide and tile.wide else text)


def _position(ring: Ring, tile: StridedTile) -> Written:
    return name(ring.tiles if tile.positioned else ring.desc)


def _index(facts: FunctionFacts, loop: PipelinedLoop) -> Written:
    """The index of the tile that is copied, as the 32-bit number that coordinates are."""
    index = loop.fetch.at
    variable = index.is_name and index != loop.tile  # else it is the number of a tile times step, plus start
    ends = [end for end in (loop.plan.range.low, loop.plan.range.step) if end is not None]
    wide = variable or any(isinstance(facts.fact(e), TensorFact) for e in ends)
    return method(index, "to", "gl.int32") if loop.plan.range.dtype != "int32" and wide else index


def _size(facts: FunctionFacts, emit: Emit, tile: StridedTile, axis: Axis) -> Written:
    """The size of the tensor along `axis`, not negative."""
    if axis.limit is None:
        return NEVER
    text = _text(facts, emit, tile, axis.limit)
    if axis.wide:
        return method(call("gl.minimum", call("gl.maximum", text, "0"), NEVER), "to", "gl.int32")
    clamped = tile.positioned or (tile.counts_tiles and not tile.unclipped)
    clamped |= all(isinstance(facts.fact(tile.names[a]), ConstFact) for m in axis.limit for a in m)
    return text if clamped else call("gl.maximum", text, "0")


def _text(
    facts: FunctionFacts,
    emit: Emit,
    tile: StridedTile,
    polynomial: Polynomial,
    index: Written = NOWHERE,
    wide: bool = False,
) -> Written:
    """`polynomial` at the loop index `index`; wide: its products take 64 bits."""
    terms: list[tuple[str, Written]] = []
    for monomial, coefficient in sorted(polynomial.items(), key=lambda item: item[1] < 0):
        atoms = sorted(monomial, key=lambda atom: _rank(facts, tile.names.get(atom)))
        factors = [index if atom == INDEX else emit(tile.names[atom]) for atom in atoms]
        if len(polynomial) > 1 or len(factors) > 1 or wide or coefficient != 1:
            factors = [operand(text) for text in factors]
        if wide and _rank(facts, tile.names.get(atoms[0]) if atoms else None) == _TENSOR:
            factors[0] = method(factors[0], "to", "gl.int64")
        if abs(coefficient) != 1 or not factors:
            factors.append(literal(abs(coefficient)))
        terms.append(("-" if coefficient < 0 else "+", functools.reduce(times, factors)))
    if not terms:
        return literal(0)
    (sign, first), *rest = terms
    return total([("+", first if sign == "+" else negative(first)), *rest])


_TENSOR = 2


def _rank(facts: FunctionFacts, node: ast.expr | None) -> int:
    """The place of a factor in a product: the loop index, 64-bit values, other values, constants."""
    fact = facts.fact(node) if node is not None else None
    if isinstance(fact, TensorFact):
        return 1 if fact.dtype in ("int64", "uint64") else _TENSOR
    return 0 if node is None else 3
