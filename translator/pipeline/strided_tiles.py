"""Loads of a pipelined loop through tensors of pointers that are strided tiles with their bounds as mask.

`base + (r0 + arange(M))[:, None] * stride + (c0 + arange(N))[None, :]` under `r < R & c < C` is a tile of a tensor: the data
mover fetches it with a descriptor (base, [R, C], [stride, 1]) at the coordinates [r0, c0]. `strided_tile` proves that by
writing addresses and masks as polynomials over the values that stay the same in the loop, the loop index and one variable
per axis.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from translator.frontend.trace import ConstFact, TensorFact
from translator.memory.staging import Staged
from translator.pipeline.loop_range import loop_bounds
from translator.pipeline.tail import INDEX, MAX_TERMS, Monomial, Polynomial, add, is_index
from translator.rewrite import calls, tdm
from translator.rewrite.ranges import NonNegative
from translator.rewrite.splice import operand

if TYPE_CHECKING:
    from translator.layout.model import SharedLayout
    from translator.pipeline.loop import PipelinedLoop, Ring
    from translator.rewrite.function import FunctionRewriter

ONE: Polynomial = {(): 1}
NEVER = "2**31 - 1"  # a size at which no tile is clipped
ELEMENTS = ("fp16", "bf16", "fp32", "fp64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SAME = ("multiple_of", "max_contiguous", "max_constancy")
_INTEGERS = ("int32", "int64", "uint32")


class NotATile(Exception):
    """Why a load is not a strided tile with its bounds as mask."""


@dataclass(frozen=True)
class Axis:
    """One dimension of the tiles. start: coordinate of the first element; limit: of the first one that does not exist,
    None where no tile is clipped; wide: the limit is a 64-bit number."""

    extent: ast.expr
    size: int
    stride: Polynomial
    start: Polynomial
    limit: Polynomial | None
    wide: bool = False

    @property
    def fixed(self) -> Polynomial:
        """What `start` is in every iteration."""
        return {m: c for m, c in self.start.items() if INDEX not in m}

    @property
    def moving(self) -> Polynomial:
        return {m: c for m, c in self.start.items() if INDEX in m}


@dataclass(frozen=True)
class StridedTile:
    """Tiles at `base + rest`, axes in the order of memory; order: dimension of the load behind each axis."""

    base: ast.expr
    rest: Polynomial
    wide: bool
    axes: tuple[Axis, ...]
    order: tuple[int, ...]
    shared: "SharedLayout"
    names: dict[str, ast.expr] = field(hash=False)
    assumed: frozenset[str] = frozenset()  # parameters that must not be negative

    @property
    def counts_tiles(self) -> bool:
        return any(a.moving for a in self.axes)

    @property
    def permutation(self) -> tuple[int, ...]:
        """Dimension of the tile in LDS behind each dimension of the load."""
        return tuple(self.order.index(d) for d in range(len(self.order)))

    @property
    def nodes(self) -> list[ast.expr]:
        """The expressions that the descriptor is written with."""
        texts = [self.rest, *(p for a in self.axes for p in (a.stride, a.start, a.limit or {}))]
        used = {atom for p in texts for m in p for atom in m if atom != INDEX}
        return [self.base, *(self.names[atom] for atom in sorted(used)), *(a.extent for a in self.axes)]

    def before(self, rw: "FunctionRewriter", loop: "PipelinedLoop", ring: "Ring") -> list[str]:
        """The descriptor for this load, at what stays the same of the coordinates, and the ring of its tiles."""
        rw.record.non_negative |= self.assumed
        rw.names.suggest(self.shared, f"{ring.load.name}_shared", 1, ring.load.line)
        base = rw.emit(self.base)
        if self.rest:
            rest = self._text(rw, self.rest, "", self.wide)
            base += f" - ({rest[1:]})" if rest.startswith("-") else f" + {rest}"
        shape = ", ".join(self._size(rw, a) for a in self.axes)
        strides = ", ".join(self._text(rw, a.stride, "") for a in self.axes)
        block = ", ".join(rw.emit(a.extent) for a in self.axes)
        lines = [
            f"{ring.desc} = {tdm.module(rw)}.make_tensor_descriptor({base}, shape=[{shape}], strides=[{strides}], "
            f"block_shape=[{block}], layout={rw.names.spell(self.shared)})"
        ]
        if self.positioned:
            fixed = [self._text(rw, a.fixed, "") for a in self.axes]
            lines.append(f"{ring.tiles} = {tdm.position_text(rw, ring.desc, fixed)}")
        shape = f"[{loop.buffers}] + {ring.desc}.block_shape"
        lines.append(f"{ring.smem} = gl.allocate_shared_memory({ring.desc}.dtype, {shape}, {ring.desc}.layout)")
        return lines

    def copy(self, rw: "FunctionRewriter", loop: "PipelinedLoop", ring: "Ring", slot: str, condition: str) -> str:
        """Issue the copy of the tile at `loop.at` into `slot`."""
        name = ring.tiles if self.positioned else ring.desc
        index = loop.at
        variable = index.isidentifier() and index != loop.tile  # else it is known at compile time, or has a start added
        if loop.plan.index_dtype != "int32" and (variable or loop.plan.low is not None):
            index = f"{operand(index)}.to(gl.int32)"
        offsets = [self._text(rw, a.moving, index) for a in self.axes]
        if self.unclipped:
            name = tdm.moved_text(rw, name, offsets, condition)
            offsets, condition = ["0"], ""
        barrier = loop.ready_of(ring, slot)
        return tdm.copy_text(rw, name, offsets, f"{ring.smem}.index({slot})", condition, barrier)

    @property
    def positioned(self) -> bool:
        """Whether coordinates that stay the same are worked into the descriptor before the loop."""
        return any(a.fixed for a in self.axes)

    @property
    def unclipped(self) -> bool:
        """Whether tiles move where nothing is clipped, so that copies need no bounds worked out."""
        return any(a.moving and a.limit is None for a in self.axes)

    def _size(self, rw: "FunctionRewriter", axis: Axis) -> str:
        """The size of the tensor along `axis`, not negative."""
        if axis.limit is None:
            return NEVER
        text = self._text(rw, axis.limit, "")
        if axis.wide:
            return f"gl.minimum(gl.maximum({text}, 0), {NEVER}).to(gl.int32)"
        clamped = self.positioned or (self.counts_tiles and not self.unclipped)
        clamped |= all(isinstance(rw.fact(self.names[a]), ConstFact) for m in axis.limit for a in m)
        return text if clamped else f"gl.maximum({text}, 0)"

    def _text(self, rw: "FunctionRewriter", polynomial: Polynomial, index: str, wide: bool = False) -> str:
        """`polynomial` at the loop index `index`; wide: its products take 64 bits."""
        out = ""
        for monomial, coefficient in sorted(polynomial.items(), key=lambda item: item[1] < 0):
            atoms = sorted(monomial, key=lambda atom: _rank(rw, self.names.get(atom)))
            factors = [index if atom == INDEX else rw.emit(self.names[atom]) for atom in atoms]
            if len(polynomial) > 1 or len(factors) > 1 or wide or abs(coefficient) != 1:
                factors = [operand(text) for text in factors]
            if wide and _rank(rw, self.names.get(atoms[0]) if atoms else None) == _TENSOR:
                factors[0] = f"{factors[0]}.to(gl.int64)"
            if abs(coefficient) != 1 or not factors:
                factors.append(str(abs(coefficient)))
            out += (" - " if coefficient < 0 else " + ") + " * ".join(factors)
        return "-" + out[3:] if out.startswith(" - ") else out.removeprefix(" + ") or "0"


_TENSOR = 2


def _rank(rw: "FunctionRewriter", node: ast.expr | None) -> int:
    """The place of a factor in a product: the loop index, 64-bit values, other values, constants."""
    fact = rw.fact(node) if node is not None else None
    if isinstance(fact, TensorFact):
        return 1 if fact.dtype in ("int64", "uint64") else _TENSOR
    return 0 if node is None else 3


def strided_tile(
    rw: "FunctionRewriter", loop: ast.For, low: ast.expr | None, step: ast.expr | None, call: ast.Call, staged: Staged
) -> StridedTile:
    """The tile that the load `call` takes. Raises: NotATile."""
    given = calls.bind(rw, call, calls.callee_of(rw, call))
    extra = set(given) - {"pointer", "mask", "other", "cache_modifier", "eviction_policy", "volatile"}
    if extra or any(k in given and not calls._is_empty(rw, given[k]) for k in ("cache_modifier", "volatile")):
        raise NotATile("it has a modifier")
    fact = rw.tensor(call)
    if fact.dtype not in ELEMENTS and not fact.dtype.startswith("fp8"):
        raise NotATile(f"elements of type {fact.dtype}")
    if not 1 <= fact.rank <= 5:
        raise NotATile(f"{fact.rank} dimensions")
    other = given.get("other")
    if other is not None and not calls._is_none(rw, other) and not calls._is_zero(rw, other):
        raise NotATile("masked elements are something other than 0")
    reader = _Reader(rw, loop, low, step, fact.shape)
    base, address = reader.pointer(given["pointer"], tuple(range(fact.rank)))
    wide = reader.wide
    strides: list[Polynomial] = [{} for _ in fact.shape]
    rest: Polynomial = {}
    for monomial, coefficient in address.items():
        axes = [_axis_number(a) for a in monomial if a.startswith(AXIS)]
        if not axes:
            rest[monomial] = coefficient
        elif len(axes) > 1 or INDEX in monomial:
            raise NotATile("its address is not affine")
        else:
            left = tuple(a for a in monomial if not a.startswith(AXIS))
            strides[axes[0]] = add(strides[axes[0]], {left: coefficient}, 1)
    contiguous = [d for d, s in enumerate(strides) if reader.numeric(s) == ONE]
    if not contiguous:
        raise NotATile("no dimension is known to be contiguous")
    if any(not reader.numeric(s) or d not in reader.extents for d, s in enumerate(strides)):
        raise NotATile("a dimension repeats what it reads")
    starts: list[Polynomial] = [{} for _ in fact.shape]
    limits: list[Polynomial | None] = [None] * fact.rank
    mask = given.get("mask")
    for conjunct in reader.conjuncts(mask) if mask is not None and not calls._is_absent(rw, mask) else ():
        d, start, limit = reader.bound(conjunct)
        if limits[d] is not None:
            raise NotATile(f"dimension {d} has two bounds")
        starts[d], limits[d] = start, limit
        rest = add(rest, _product(start, strides[d]), -1)
    moving = {m: c for m, c in rest.items() if INDEX in m}
    if moving and not reader.numeric(moving):
        raise NotATile("its address and its mask are only the same for these constants")
    if moving:
        rest = add(rest, moving, -1)
        free = [d for d in range(fact.rank) if limits[d] is None]
        found = [(d, q) for d in free if (q := _quotient(moving, strides[d])) is not None]
        if not found:
            raise NotATile("it moves in another way than its mask")
        d, start = min(found, key=lambda item: item[0] in contiguous)
        starts[d] = start
        if any(limits[e] is not None and any(INDEX in m for m in starts[e]) for e in range(fact.rank)):
            raise NotATile("it moves within its bounds and beyond them")
    wide_axes = set()
    for d, limit in enumerate(limits):
        if limit is None or not any(
            _is_wide(rw, reader.names[a]) for p in (starts[d], limit) for m in p for a in m if a != INDEX
        ):
            continue
        # 64-bit coordinates go into the base, and what is left to the limit is cut to 32 bits.
        fixed = {m: c for m, c in starts[d].items() if INDEX not in m}
        if len(fixed) < len(starts[d]) and any(_is_wide(rw, reader.names[a]) for m in limit for a in m):
            raise NotATile("it moves along a dimension of 64-bit size")
        rest = add(rest, _product(fixed, strides[d]), 1)
        starts[d], limits[d] = add(starts[d], fixed, -1), add(limit, fixed, -1)
        wide_axes.add(d)
        wide = True
    order = (*(d for d in range(fact.rank) if d != contiguous[-1]), contiguous[-1])
    axes = tuple(
        Axis(reader.extents[d], fact.shape[d], strides[d], starts[d], limits[d], d in wide_axes) for d in order
    )
    shared = tile_layout(staged, order, fact)
    tile = StridedTile(base, rest, wide, axes, order, shared, reader.names, frozenset(reader.assumed))
    for node in tile.nodes:
        reader.settled(node)
    return tile


AXIS = "<axis "


def _is_wide(rw: "FunctionRewriter", node: ast.expr) -> bool:
    return _rank(rw, node) == 1


def _axis_number(atom: str) -> int:
    return int(atom[len(AXIS) : -1])


def tile_layout(staged: Staged, order: tuple[int, ...], fact: TensorFact) -> "SharedLayout":
    """Triton's padding for the tile as the data mover writes it, its contiguous dimension last."""
    from translator.layout.shared import Padded, Swizzled

    shape = tuple(fact.shape[d] for d in order)
    natural = tuple(reversed(range(len(order))))
    shared = staged.shared
    if isinstance(shared, Padded) and len(shared.pairs) == 1 and not shared.offsets:
        return Padded(shared.pairs, (), natural, shape)
    if isinstance(shared, Swizzled) and shared.max_phase == 1:
        return Swizzled(1, 1, 1, natural)
    size = max(1, _BYTES.get(fact.dtype, 1))
    return Padded(((256 // size, max(1, 16 // size)),), (), natural, shape)


_BYTES = {
    "fp64": 8,
    "int64": 8,
    "uint64": 8,
    "fp32": 4,
    "int32": 4,
    "uint32": 4,
    "fp16": 2,
    "bf16": 2,
    "int16": 2,
    "uint16": 2,
}


class _Reader:
    """Integer expressions of one loop as polynomials; what was met on the way.

    names: atoms and the expressions they stand for; extents: by dimension, the end of its `arange`; wide: 64-bit
    arithmetic was met.
    """

    def __init__(self, rw: "FunctionRewriter", loop: ast.For, low: ast.expr | None, step: ast.expr | None, shape):
        self.rw, self.loop, self.low, self.step, self.shape = rw, loop, low, step, shape
        self.names: dict[str, ast.expr] = {}
        self.extents: dict[int, ast.expr] = {}
        self.wide = False
        self.moved_bases: set[ast.Name] = set()
        self.assumed: set[str] = set()
        loops = [n for n in ast.walk(rw.tree) if isinstance(n, (ast.For, ast.While))]
        self.around = {n for n in loops if any(inner is loop for inner in ast.walk(n))}

    # Addresses and masks.

    def pointer(self, node: ast.expr, axes: tuple[int, ...]) -> tuple[ast.expr, Polynomial]:
        """(scalar base, elements from it) of a pointer expression whose dimensions are `axes` of the tile."""
        rw, fact = self.rw, self.rw.fact(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = rw.fact(node.left), rw.fact(node.right)
            pointer, integer = (node.left, node.right)
            if not (isinstance(left, TensorFact) and left.is_pointer):
                pointer, integer = integer, pointer
            if isinstance(node.op, ast.Sub) and pointer is not node.left or (left is None or right is None):
                raise NotATile("its address is not affine")
            base, address = self.pointer(pointer, self._lower(pointer, axes))
            return base, add(
                address, self.affine(integer, self._lower(integer, axes)), -1 if isinstance(node.op, ast.Sub) else 1
            )
        if isinstance(node, ast.Subscript) and (inner := self._expanded(node, axes)) is not None:
            return self.pointer(node.value, inner)
        if isinstance(node, ast.Call) and (inner_node := self._passed(node)) is not None:
            return self.pointer(inner_node, axes)
        if isinstance(node, ast.Name):
            moved = self._moves(node)
            if moved is not None:
                first, by = moved
                if not (isinstance(fact, TensorFact) and fact.shape):
                    return self._unmoved(node), by
                base, address = self.pointer(first, axes)
                return base, add(address, by, 1)
            if isinstance(fact, TensorFact) and fact.shape:
                value = self._value(node)
                if value is not None:
                    return self.pointer(value, axes)
            elif self._varies(node) and (value := self._value(node)) is not None:
                return self.pointer(value, axes)
        if not isinstance(fact, TensorFact) or fact.shape or not fact.is_pointer or self._varies(node):
            raise NotATile("its address is not a base and offsets")
        return node, {}

    def _unmoved(self, node: ast.Name) -> ast.expr:
        """The name of a scalar pointer, which the loop starts with."""
        self.moved_bases.add(node)
        return node

    def conjuncts(self, node: ast.expr, axes: tuple[int, ...] | None = None) -> list[tuple[ast.expr, tuple[int, ...]]]:
        axes = self._lower(node, tuple(range(len(self.shape)))) if axes is None else axes
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            return [c for side in (node.left, node.right) for c in self.conjuncts(side, self._lower(side, axes))]
        if isinstance(node, ast.Subscript) and (inner := self._expanded(node, axes)) is not None:
            return self.conjuncts(node.value, inner)
        if isinstance(node, ast.Name) and (value := self._value(node)) is not None:
            return self.conjuncts(value, axes)
        return [(node, axes)]

    def bound(self, conjunct: tuple[ast.expr, tuple[int, ...]]) -> tuple[int, Polynomial, Polynomial]:
        """(dimension, start, limit) of `start + axis < limit`."""
        node, axes = conjunct
        if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Lt, ast.Gt))):
            raise NotATile(f"its mask has `{ast.unparse(node)}`")
        sides = [node.left, node.comparators[0]]
        if isinstance(node.ops[0], ast.Gt):
            sides.reverse()
        left, right = (self.affine(side, self._lower(side, axes)) for side in sides)
        margin = add(right, left, -1)
        on_axis = [(m, c) for m, c in margin.items() if any(a.startswith(AXIS) for a in m)]
        if len(on_axis) != 1 or len(on_axis[0][0]) != 1 or on_axis[0][1] != -1:
            raise NotATile(f"its mask `{ast.unparse(node)}` is no bound of one dimension")
        (axis,) = on_axis[0][0]
        margin.pop((axis,))
        start = {m: c for m, c in left.items() if m != (axis,)}
        start = {m: c for m, c in start.items() if INDEX not in m}
        start = add(start, {m: c for m, c in margin.items() if INDEX in m}, -1)
        if any(m.count(INDEX) > 1 for m in start):
            raise NotATile(f"its mask `{ast.unparse(node)}` is not affine")
        return _axis_number(axis), start, add(margin, start, 1)

    # Polynomials.

    def affine(self, node: ast.expr, axes: tuple[int, ...]) -> Polynomial:
        rw, fact = self.rw, self.rw.fact(node)
        if isinstance(fact, ConstFact):
            return self._constant(node, fact.value)
        if not isinstance(fact, TensorFact) or fact.dtype not in _INTEGERS:
            raise NotATile(f"`{ast.unparse(node)}` is not an integer")
        self.wide |= fact.dtype == "int64"
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            try:
                a, b = (self.affine(side, self._lower(side, axes)) for side in (node.left, node.right))
            except NotATile:
                if fact.shape or self._varies(node):
                    raise
                return self._atom(node)
            if isinstance(node.op, ast.Mult):
                return _product(a, b)
            return add(a, b, -1 if isinstance(node.op, ast.Sub) else 1)
        if isinstance(node, ast.Call) and (inner := self._passed(node)) is not None:
            return self.affine(inner, axes)
        if not fact.shape:
            return self._scalar(node)
        if isinstance(node, ast.Subscript) and (lower := self._expanded(node, axes)) is not None:
            return self.affine(node.value, lower)
        if isinstance(node, ast.Name):
            if (moved := self._moves(node)) is not None:
                return add(self.affine(moved[0], axes), moved[1], 1)
            if (value := self._value(node)) is not None:
                return self.affine(value, axes)
        if isinstance(node, ast.Call) and len(node.args) == 2 and self._called(node) == "arange":
            start, end = (rw.fact(a) for a in node.args)
            if (
                isinstance(start, ConstFact)
                and isinstance(end, ConstFact)
                and end.value - start.value == self.shape[axes[0]]
            ):
                extent = node.args[1] if start.value == 0 else ast.Constant(end.value - start.value)
                self.extents.setdefault(axes[0], extent)
                return add({(f"{AXIS}{axes[0]}>",): 1}, {(): start.value} if start.value else {}, 1)
        raise NotATile(f"`{ast.unparse(node)}` is not a sum of an arange and values that stay the same")

    def _constant(self, node: ast.expr, value) -> Polynomial:
        """A compile-time integer, by name where it has one: another launch may have another value."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise NotATile(f"`{ast.unparse(node)}` is not an integer")
        if isinstance(node, ast.Constant):
            return {(): value} if value else {}
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            facts = [self.rw.fact(side) for side in (node.left, node.right)]
            if all(isinstance(f, ConstFact) for f in facts):
                a, b = (self._constant(side, f.value) for side, f in zip((node.left, node.right), facts))
                if isinstance(node.op, ast.Mult):
                    return _product(a, b)
                return add(a, b, -1 if isinstance(node.op, ast.Sub) else 1)
        return self._atom(node)

    def numeric(self, polynomial: Polynomial) -> Polynomial:
        """`polynomial` with the values of its compile-time constants."""
        out: Polynomial = {}
        for monomial, coefficient in polynomial.items():
            left = []
            for atom in monomial:
                fact = self.rw.fact(self.names[atom]) if atom in self.names else None
                if isinstance(fact, ConstFact):
                    coefficient *= fact.value
                else:
                    left.append(atom)
            out = add(out, {tuple(left): coefficient}, 1)
        return {m: c for m, c in out.items() if c}

    def _scalar(self, node: ast.expr) -> Polynomial:
        if isinstance(node, ast.Name):
            if is_index(self.rw, self.loop, node):
                return {(INDEX,): 1}
            if (moved := self._moves(node)) is not None:
                return add(self.affine(moved[0], ()), moved[1], 1)
            if self._varies(node) and (value := self._value(node)) is not None:
                return self.affine(value, ())
        if self._varies(node):
            raise NotATile(f"`{ast.unparse(node)}` changes from tile to tile in no regular way")
        return self._atom(node)

    def _atom(self, node: ast.expr) -> Polynomial:
        key = ast.dump(node)
        if isinstance(node, ast.Name) and (web := self.rw.webs.of_use.get(node)) is not None:
            key = f"{node.id}#{web.index}"
        self.names.setdefault(key, node)
        return {(key,): 1}

    # What names stand for.

    def _called(self, node: ast.Call) -> str:
        fact = self.rw.fact(node.func)
        return getattr(getattr(fact, "value", None), "__name__", "") or getattr(fact, "name", "")

    def _passed(self, node: ast.Call) -> ast.expr | None:
        """`x` of `tl.multiple_of(x, n)`, `x.to(tl.int64)` and the like, which is the same integer or pointer."""
        name = self._called(node)
        method = isinstance(node.func, ast.Attribute) and hasattr(self.rw.fact(node.func), "owner")
        inner = node.func.value if method else node.args[0] if node.args else None
        if inner is None or not isinstance(before := self.rw.fact(inner), TensorFact):
            return None
        after = self.rw.fact(node)
        if name in _SAME and before == after:
            return inner
        if name in ("to", "cast") and isinstance(after, TensorFact) and before.shape == after.shape:
            kinds = (before.dtype, after.dtype)
            if kinds in (("int32", "int64"), ("int32", "int32"), ("int64", "int64")):
                self.wide |= after.dtype == "int64"
                return inner
        return None

    def _expanded(self, node: ast.Subscript, axes: tuple[int, ...]) -> tuple[int, ...] | None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        new = [isinstance(p, ast.Constant) and p.value is None for p in parts]
        plain = all(
            n or (isinstance(p, ast.Slice) and (p.lower, p.upper, p.step) == (None,) * 3) for n, p in zip(new, parts)
        )
        fact = self.rw.fact(node.value)
        if not plain or not isinstance(fact, TensorFact) or not fact.shape or len(parts) != len(axes):
            return None
        return tuple(a for a, n in zip(axes, new) if not n)

    def _lower(self, node: ast.expr, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The axes of an operand: the last ones, where it has fewer dimensions than the result."""
        fact = self.rw.fact(node)
        rank = fact.rank if isinstance(fact, TensorFact) else 0
        return axes[len(axes) - rank :]

    def _varies(self, node: ast.expr) -> bool:
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and (web := self.rw.webs.of_use.get(name)) is not None:
                if any(self.loop in d.in_loop or d.node is self.loop for d in web.definitions):
                    return True
        return False

    def _value(self, node: ast.Name) -> ast.expr | None:
        definitions = self.rw.webs.reaching.get(node, [])
        if len(definitions) != 1 or definitions[0].augmented:
            return None
        (d,) = definitions
        return d.value if isinstance(d.node, (ast.Assign, ast.AnnAssign)) else None

    def _moves(self, node: ast.Name) -> tuple[ast.expr, Polynomial] | None:
        """(first value, what was added to it since) of a name that moves once per iteration, after this use.

        It may have moved in loops before this one as well, by as much as their bounds say.
        """
        reaching = self.rw.webs.reaching.get(node, [])
        inside = [d for d in reaching if self.loop in d.in_loop]
        if len(inside) != 1:
            return None
        (move,) = inside
        before = tuple(x for x in move.in_loop if x is not self.loop)
        if move.node not in self.loop.body or node.lineno >= move.node.lineno:
            return None
        amount = self._per_index(move.node, node.id, self.step)
        if amount is None:
            return None
        tiles: Polynomial = {(INDEX,): 1}
        if self.low is not None:
            tiles = add(tiles, self.affine(self.low, ()), -1)
        total = _product(amount, tiles)
        fact = self.rw.fact(node)
        if isinstance(fact, TensorFact) and fact.is_pointer and not fact.shape:
            return node, total  # its name is what the loop starts with
        first = [d for d in reaching if d.in_loop == before]
        if len(first) != 1 or first[0].augmented or first[0].value is None:
            return None
        for d in reaching:
            if d is not move and d is not first[0]:
                moved = self._moved_by(d, before, node.id)
                if moved is None:
                    return None
                total = add(total, moved, 1)
        return first[0].value, total

    def _moved_by(self, d, before: tuple, name: str) -> Polynomial | None:
        """What a loop before this one added in all, where it walks from 0 to a multiple of its step."""
        loop = d.in_loop[-1] if d.in_loop[:-1] == before and len(d.in_loop) == len(before) + 1 else None
        if not isinstance(loop, ast.For) or loop.end_lineno >= self.loop.lineno or d.node not in loop.body:
            return None
        bounds = loop_bounds(self.rw, loop)
        if bounds is None or bounds[0] is not None:
            return None
        _, high, step = bounds
        proof = NonNegative(self.rw)
        if not self._multiple(high, step) or not proof.holds(high):
            return None
        amount = self._per_index(d.node, name, step)
        if amount is None:
            return None
        self.assumed |= proof.assumed
        return _product(amount, self.affine(high, ()))

    def _multiple(self, node: ast.expr, of: ast.expr | None) -> bool:
        """Whether an integer is a multiple of the step `of`."""
        if of is None or ast.dump(node) == ast.dump(of):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._multiple(node.left, of) or self._multiple(node.right, of)
        value = self._value(node) if isinstance(node, ast.Name) else None
        return value is not None and self._multiple(value, of)

    def _per_index(self, s: ast.stmt, name: str, step: ast.expr | None) -> Polynomial | None:
        """What `x += c` of a loop with this step adds while its index grows by 1."""
        by = self._added(s, name)
        if by is None or self._varies(by):
            return None
        amount = self.affine(by, ())
        if any(INDEX in m for m in amount):
            return None
        return amount if step is None else _quotient(amount, self.affine(step, ()))

    def _added(self, s: ast.stmt, name: str) -> ast.expr | None:
        """`c` of `x += c` and `x = x + c`, a scalar."""
        by = None
        if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add):
            by = s.value
        elif isinstance(s, ast.Assign) and isinstance(s.value, ast.BinOp) and isinstance(s.value.op, ast.Add):
            if isinstance(s.value.left, ast.Name) and s.value.left.id == name:
                by = s.value.right
        fact = self.rw.fact(by) if by is not None else None
        scalar = isinstance(fact, ConstFact) or (isinstance(fact, TensorFact) and not fact.shape)
        return by if scalar else None

    def settled(self, node: ast.expr) -> None:
        """Raises: NotATile unless `node` has the same value right before the loop as where it was met."""
        for name in ast.walk(node):
            if not isinstance(name, ast.Name) or (web := self.rw.webs.of_use.get(name)) is None:
                continue
            if name in self.moved_bases:
                continue
            around = next((loops for use, loops in web.uses if use is name), ())
            for d in (d for w in self.rw.webs.all if w.name == name.id for d in w.definitions):
                after = name.lineno <= getattr(d.node, "lineno", 0) <= self.loop.lineno and not isinstance(
                    d.node, ast.arg
                )
                if after or any(loop in self.around and loop not in around for loop in d.in_loop):
                    raise NotATile(f"`{name.id}` is not the same everywhere")


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    out: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            out = add(out, {tuple(sorted((*m, *n))): c * d}, 1)
    if len(out) > MAX_TERMS:
        raise NotATile("its address is too long a sum")
    return out


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """`a / b` for a `b` of one term, where it comes out even."""
    if len(b) != 1:
        return None
    ((divisor, by),) = b.items()
    out: Polynomial = {}
    for monomial, c in a.items():
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if c % by:
            return None
        out[tuple(left)] = c // by
    return out


__all__ = ["Monomial", "NotATile", "StridedTile", "strided_tile"]
