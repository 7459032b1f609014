"""Layouts of tiles in LDS: which element sits at which offset, spelled as Gluon constructors, read from TTGIR.

`read_shared` takes the attribute as MLIR prints it. Triton's rotating layout has no Gluon class of its own; it is
XOR-linear and becomes a `SharedLinearLayout` (formula: `sharedToLinearLayoutAMDRotating` of Triton 3.9.0,
lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp).
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass

from translator.ttgir.layouts import Bases, Ints, SharedLayout, lists

PARTITIONS = 2  # of the LDS of gfx1250


@dataclass(frozen=True)
class Swizzled(SharedLayout):
    """Vectors of `vec` elements exchanged within a row; the row phase is `row // per_phase % max_phase`."""

    vec: int
    per_phase: int
    max_phase: int
    order: Ints

    @property
    def rank(self) -> int:
        return len(self.order)

    def spelled(self) -> str:
        return f"gl.SwizzledSharedLayout({self.vec}, {self.per_phase}, {self.max_phase}, {lists(self.order)})"

    def described(self) -> str:
        if self.max_phase == 1:
            return "LDS: rows one after the other."
        return f"LDS: vectors of {self.vec} elements swizzled within each row against bank conflicts."


@dataclass(frozen=True)
class Padded(SharedLayout):
    """`pairs` of (interval, padding) in elements; `offsets` are the bases, or () for the identity along `order`."""

    pairs: Bases
    offsets: Bases
    order: Ints
    shape: Ints

    @property
    def rank(self) -> int:
        return len(self.shape)

    def spelled(self) -> str:
        if self.offsets:
            return f"gl.PaddedSharedLayout({lists(self.pairs)}, {lists(self.offsets)}, [], {lists(self.shape)})"
        return f"gl.PaddedSharedLayout.with_identity_for({lists(self.pairs)}, {lists(self.shape)}, {lists(self.order)})"

    def described(self) -> str:
        padding = ", ".join(f"{pad} elements after each {interval}" for interval, pad in self.pairs)
        rows = ", rows permuted" if self.offsets and not _is_identity(self.offsets) else ""
        return f"LDS: padded by {padding}{rows} against bank conflicts."


def slots_bytes(shared: SharedLayout, shape: tuple[int, ...], bits: int, slots: int) -> int:
    """The bytes of `slots` tiles one after the other; padding stands between elements, not behind the last one."""
    elements = slots * math.prod(shape)
    pairs = shared.pairs if isinstance(shared, Padded) else ()
    return (elements + sum((elements - 1) // interval * padding for interval, padding in pairs)) * bits // 8


@dataclass(frozen=True)
class SharedLinear(SharedLayout):
    offsets: Bases

    @property
    def rank(self) -> int:
        return len(self.offsets[0])

    def spelled(self) -> str:
        return f"gl.SharedLinearLayout({lists(self.offsets)})"

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

    def spelled(self) -> str:
        return f"cdna5.PartitionedSharedLayout({PARTITIONS}, 1, {self.dim}, {self.piece.spelled()})"

    def described(self) -> str:
        return f"{self.piece.described().removesuffix('.')}, halves in two partitions."


def partitioned(shared: SharedLayout | None, dim: int) -> SharedLayout | None:
    """`shared` in two partitions along `dim`; None where its pieces would not be rows in order."""
    if not isinstance(shared, Padded) or shared.offsets or shared.shape[dim] < PARTITIONS:
        return None
    shape = tuple(size // PARTITIONS if d == dim else size for d, size in enumerate(shared.shape))
    return Partitioned(dim, Padded(shared.pairs, (), shared.order, shape))


def _is_identity(offsets: Bases) -> bool:
    """Whether the bases of each dimension come in ascending order, one dimension after the other."""
    places = [(next(i for i, x in enumerate(basis) if x), max(basis)) for basis in offsets]
    dims = list(dict.fromkeys(dim for dim, _ in places))
    return places == sorted(places, key=lambda place: (dims.index(place[0]), place[1]))


def rotating(vec: int, per_phase: int, max_phase: int, order: Ints, shape: Ints) -> SharedLinear:
    """Triton's rotating layout of a two-dimensional tile of `shape`; rows run along `order[1]`."""
    column, row = order[0], order[1]
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
    return SharedLinear(tuple(bases))


def read_shared(text: str, shape: Ints) -> SharedLayout | None:
    """The layout of `#ttg.<kind><...>` for a tile of `shape`; None for a kind without a Gluon constructor."""
    if m := re.fullmatch(r"#ttg\.(swizzled_shared|amd_rotating_shared)<\{(.*)\}>", text):
        fields = _fields(m.group(2))
        if set(fields) != {"vec", "perPhase", "maxPhase", "order"}:
            return None
        vec, per_phase, max_phase, order = (fields[k] for k in ("vec", "perPhase", "maxPhase", "order"))
        if m.group(1) == "swizzled_shared":
            return Swizzled(vec, per_phase, max_phase, order)
        return rotating(vec, per_phase, max_phase, order, shape) if len(shape) == 2 else None
    if m := re.fullmatch(r"#ttg\.padded_shared<\[(.*?)\] \{(.*)\}>", text):
        pairs = tuple((int(a), int(b)) for a, b in re.findall(r"(\d+):\+(\d+)", m.group(1)))
        fields = _fields(m.group(2))
        if set(fields) == {"order", "shape"}:
            return Padded(pairs, (), fields["order"], fields["shape"])
        if set(fields) == {"offset", "block"} and not fields["block"]:
            return Padded(pairs, fields["offset"], (), shape)
        return None
    if m := re.fullmatch(r"#ttg\.shared_linear<\{(.*)\}(?:, alignment = \d+)?>", text):
        fields = _fields(m.group(1))
        return SharedLinear(fields["offset"]) if "offset" in fields and not fields.get("block") else None
    return None


def _fields(text: str) -> dict:
    """`a = 1, b = [0, 1]` as a dictionary with tuples for lists."""
    out = {}
    for name, value in re.findall(r"(\w+) = (\[.*?\](?=, \w+ =|$)|-?\d+)", text):
        out[name] = _tuples(ast.literal_eval(value))
    return out


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
