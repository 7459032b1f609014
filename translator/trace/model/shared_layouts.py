"""Layouts of tiles in LDS: which element sits at which offset, spelled as Gluon constructors, read from TTGIR.

Triton's rotating layout has no Gluon class of its own; it is
XOR-linear and becomes a `SharedLinearLayout` (formula: `sharedToLinearLayoutAMDRotating` of Triton 3.9.0,
lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gluonize.trace.model.attributes import Attribute
from gluonize.trace.model.layouts import Bases, Ints, SharedLayout, in_parts, lists, part_of

PARTITIONS = 2  # of the LDS of gfx1250


@dataclass(frozen=True)
class Swizzled(SharedLayout):
    """Vectors of `vec` elements exchanged within a row; the row phase is `row // per_phase % max_phase`."""

    vec: int
    per_phase: int
    max_phase: int
    order: Ints
    ctas: Bases = ()
    twin: int = field(default=0, repr=False)

    @property
    def rank(self) -> int:
        return len(self.order)

    def spelled(self) -> str:
        ctas = f", {lists(self.ctas)}" if self.ctas else ""
        return f"gl.SwizzledSharedLayout({self.vec}, {self.per_phase}, {self.max_phase}, {lists(self.order)}{ctas})"

    def described(self) -> str:
        if self.max_phase == 1:
            return "LDS: rows one after the other."
        return f"LDS: vectors of {self.vec} elements swizzled within each row against bank conflicts."


@dataclass(frozen=True)
class Padded(SharedLayout):
    """`pairs` of (interval, padding) in elements; `offsets` are the bases, or () for the identity along `order`.

    The tile is that of all CTAs of a cluster, each of which has its part of it (`ctas`).
    """

    pairs: Bases
    offsets: Bases
    order: Ints
    shape: Ints
    ctas: Bases = ()
    twin: int = field(default=0, repr=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def spelled(self) -> str:
        if self.offsets:
            parts = (self.pairs, self.offsets, self.ctas, self.shape)
            return f"gl.PaddedSharedLayout({', '.join(map(lists, parts))})"
        parts = (self.pairs, self.shape, self.order, *([self.ctas] if self.ctas else []))
        return f"gl.PaddedSharedLayout.with_identity_for({', '.join(map(lists, parts))})"

    def described(self) -> str:
        padding = ", ".join(f"{pad} elements after each {interval}" for interval, pad in self.pairs)
        rows = ", rows permuted" if self.offsets and not _is_identity(self.offsets) else ""
        return f"LDS: padded by {padding}{rows} against bank conflicts."


def slots_bytes(shared: SharedLayout, shape: tuple[int, ...], bits: int, slots: int) -> int:
    """The bytes that `slots` tiles take in the LDS of a CTA; padding stands between elements, not behind the last one."""
    elements = slots * math.prod(part_of(shape, shared.ctas))
    pairs = shared.pairs if isinstance(shared, Padded) else ()
    return (elements + sum((elements - 1) // interval * padding for interval, padding in pairs)) * bits // 8


@dataclass(frozen=True)
class SharedLinear(SharedLayout):
    """offsets: the element at each power of two; block: the bases of CTAs, in elements."""

    offsets: Bases
    block: Bases = ()
    twin: int = field(default=0, repr=False)

    @property
    def rank(self) -> int:
        return len(self.offsets[0])

    @property
    def ctas(self) -> Bases:
        return in_parts(self.block, self.offsets)

    def spelled(self) -> str:
        block = f", {lists(self.block)}" if self.block else ""
        return f"gl.SharedLinearLayout({lists(self.offsets)}{block})"

    def described(self) -> str:
        return "LDS: columns rotated from row to row against bank conflicts."


@dataclass(frozen=True)
class Partitioned(SharedLayout):
    """Halves of a tile along `dim`, each laid out as `piece`, in partitions of LDS that are read at the same time."""

    dim: int
    piece: Padded

    @property
    def rank(self) -> int:
        return self.piece.rank

    @property
    def ctas(self) -> Bases:
        return self.piece.ctas

    def spelled(self) -> str:
        return f"cdna5.PartitionedSharedLayout({PARTITIONS}, 1, {self.dim}, {self.piece.spelled()})"

    def described(self) -> str:
        return f"{self.piece.described().removesuffix('.')}, halves in two partitions."


def partitioned(shared: SharedLayout | None, dim: int) -> SharedLayout | None:
    """`shared` in two partitions along `dim`; None where its pieces would not be rows in order."""
    if not isinstance(shared, Padded) or shared.offsets or shared.ctas or shared.shape[dim] < PARTITIONS:
        return None
    shape = tuple(size // PARTITIONS if d == dim else size for d, size in enumerate(shared.shape))
    return Partitioned(dim, Padded(shared.pairs, (), shared.order, shape))


def _order_of(offsets: Bases, shape: Ints) -> Ints:
    """The order of dimensions for which `offsets` are the identity on a tile of `shape`, () without one."""
    moved = dict.fromkeys(next(d for d, step in enumerate(basis) if step) for basis in offsets if any(basis))
    order = (*moved, *(d for d in reversed(range(len(shape))) if d not in moved))
    identity = tuple(
        tuple(1 << bit if d == dim else 0 for d in range(len(shape)))
        for dim in order
        for bit in range(shape[dim].bit_length() - 1)
    )
    return order if offsets == identity else ()


def _is_identity(offsets: Bases) -> bool:
    """Whether the bases of each dimension come in ascending order, one dimension after the other."""
    places = [(next(i for i, x in enumerate(basis) if x), max(basis)) for basis in offsets]
    dims = list(dict.fromkeys(dim for dim, _ in places))
    return places == sorted(places, key=lambda place: (dims.index(place[0]), place[1]))


def rotating(vec: int, per_phase: int, max_phase: int, order: Ints, whole: Ints, ctas: Bases = ()) -> SharedLinear:
    """Triton's rotating layout of a two-dimensional tile of `whole`; rows run along `order[1]`."""
    column, row = order[0], order[1]
    shape = part_of(whole, ctas)
    bases = []

    def basis(r: int, c: int) -> Ints:
        out = [0] * len(shape)
        out[row], out[column] = r, c
        return tuple(out)

    size = 1
    while size < shape[column]:
        bases.append(basis(0, size))
        size *= 2
    r = 1
    while r < shape[row]:
        phase = (r // per_phase) % max_phase
        block = r // max_phase // per_phase % max_phase
        bases.append(basis(r, vec * (phase ^ block) % shape[column]))
        r *= 2
    return SharedLinear(tuple(bases), tuple(tuple(step * size for step, size in zip(cta, shape)) for cta in ctas))


def read_shared(attribute: Attribute, shape: Ints) -> SharedLayout | None:
    """The layout that an attribute says for a tile of `shape`; None for a kind without a Gluon constructor."""
    get, ctas = attribute.get, attribute.get("CGALayout", ())
    names = attribute.names - {"CGALayout"}
    if attribute.kind in ("ttg.swizzled_shared", "ttg.amd_rotating_shared"):
        if names != {"vec", "perPhase", "maxPhase", "order"}:
            return None
        vec, per_phase, max_phase, order = (get(k) for k in ("vec", "perPhase", "maxPhase", "order"))
        if attribute.kind == "ttg.swizzled_shared":
            return Swizzled(vec, per_phase, max_phase, order, ctas)
        return rotating(vec, per_phase, max_phase, order, shape, ctas) if len(shape) == 2 else None
    if attribute.kind == "ttg.padded_shared":
        if names == {"order", "shape"}:
            return Padded(attribute.padding, (), get("order"), get("shape"), ctas)
        if names == {"offset", "block"}:
            offsets, ctas = get("offset"), in_parts(get("block"), get("offset"))
            # Of a cluster Triton prints the bases where it prints the order for one workgroup.
            order = _order_of(offsets, part_of(shape, ctas)) if ctas and len(offsets[0]) == len(shape) else ()
            return Padded(attribute.padding, () if order else offsets, order, shape, ctas)
        return None
    if attribute.kind == "ttg.shared_linear":
        return SharedLinear(get("offset"), get("block", ())) if "offset" in names else None
    return None
