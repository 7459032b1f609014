"""Layouts as plain values, parsed from TTGIR attributes.

Every layout says which lane and register of which warp holds which tensor element. The classes mirror Gluon's
constructors (Triton 3.9.0) so that spelling one is one expression; nothing here imports Triton.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from gluonize.trace.model.attributes import Attribute, parse_attribute

Ints = tuple[int, ...]
Bases = tuple[Ints, ...]


@dataclass(frozen=True)
class Layout:
    """Base of all distributed layouts.

    Classes that are no part of another layout have a number `twin`: 0, but for one that has to stay apart from another layout
    with the same entries, as other launches of the kernel have different layouts there.
    """

    @property
    def rank(self) -> int:
        raise NotImplementedError

    @property
    def root(self) -> "Layout":
        """The layout that slices and dot operands are cut from."""
        return self

    @property
    def ctas(self) -> Bases:
        """How the CTAs of a cluster share the tensor: for each bit of a CTA's number the step in every dimension, in units of
        the part of one CTA; a basis of zeros is a bit whose CTAs hold the same. () for a program of one workgroup."""
        raise NotImplementedError


@dataclass(frozen=True)
class Blocked(Layout):
    size_per_thread: Ints
    threads_per_warp: Ints
    warps_per_cta: Ints
    order: Ints
    ctas: Bases = ()
    twin: int = field(default=0, repr=False)

    @property
    def rank(self) -> int:
        return len(self.order)


@dataclass(frozen=True)
class Slice(Layout):
    dim: int
    parent: Layout

    @property
    def rank(self) -> int:
        return self.parent.rank - 1

    @property
    def root(self) -> Layout:
        return self.parent.root

    @property
    def ctas(self) -> Bases:
        return tuple(basis[: self.dim] + basis[self.dim + 1 :] for basis in self.parent.ctas)


@dataclass(frozen=True)
class Linear(Layout):
    register: Bases
    lane: Bases
    warp: Bases
    block: Bases
    shape: Ints
    twin: int = field(default=0, repr=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def copies(self) -> int:
        """How many warps hold the same element."""
        return 2 ** sum(not any(basis) for basis in self.warp)

    @property
    def ctas(self) -> Bases:
        return in_parts(self.block, (*self.register, *self.lane, *self.warp))


@dataclass(frozen=True)
class Mfma(Layout):
    version: int
    instr_shape: Ints
    transposed: bool
    warps_per_cta: Ints
    element_bitwidth: int = 32
    tiles_per_warp: Ints = ()
    ctas: Bases = ()
    twin: int = field(default=0, repr=False)

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)


@dataclass(frozen=True)
class Wmma(Layout):
    version: int
    transposed: bool
    warp_bases: Bases
    reg_bases: Bases
    instr_shape: Ints
    tensor_rank: int = 2
    ctas: Bases = ()
    twin: int = field(default=0, repr=False)

    @property
    def rank(self) -> int:
        return self.tensor_rank


@dataclass(frozen=True)
class DotOperand(Layout):
    operand_index: int
    parent: Layout
    k_width: int

    @property
    def rank(self) -> int:
        return self.parent.rank

    @property
    def root(self) -> Layout:
        return self.parent.root

    @property
    def ctas(self) -> Bases:
        shared = self.rank - 1 - self.operand_index  # K, which every CTA has whole
        return tuple((*basis[:shared], 0, *basis[shared + 1 :]) for basis in self.parent.ctas)


@dataclass(frozen=True)
class SharedLayout(Layout):
    """Base of the layouts of tiles in LDS (`gluonize.trace.model.shared_layouts`)."""

    def spelled(self) -> str:
        """The Gluon constructor."""
        raise NotImplementedError

    def described(self) -> str:
        """One line for the reader."""
        raise NotImplementedError


@dataclass(frozen=True)
class Opaque(Layout):
    """An encoding without a Gluon constructor; it is never spelled, only recognised."""

    text: str

    @property
    def rank(self) -> int:
        return 0

    @property
    def ctas(self) -> Bases:
        return ()


def in_parts(block: Bases, own: Bases) -> Bases:
    """The bases of CTAs in units of the part of one CTA, given in elements; own: the bases of that part."""
    extents = [1 << max([basis[d] for basis in own], default=0).bit_length() for d in range(len((*block, *own, ())[0]))]
    return tuple(tuple(step // extent for step, extent in zip(basis, extents)) for basis in block)


def part_of(shape: Ints, ctas: Bases) -> Ints:
    """The shape of one CTA's part of a tensor of `shape`; what is smaller than its CTAs is held by several."""
    splits = [1 << sum(bool(basis[d]) for basis in ctas) for d in range(len(shape))]
    return tuple(max(1, size // split) for size, split in zip(shape, splits))


def warps_of(layout: Layout) -> Ints:
    """How many warps share each dimension of what a matrix instruction adds up; () for another layout."""
    if isinstance(layout, Mfma):
        return layout.warps_per_cta
    if isinstance(layout, Wmma):
        return tuple(1 << sum(bool(basis[d]) for basis in layout.warp_bases) for d in range(layout.rank))
    return ()


def lists(value: object) -> str:
    """Nested tuples as Python list syntax; what is spelled otherwise as that."""
    if isinstance(value, tuple) and type(value).__repr__ is tuple.__repr__:
        return "[" + ", ".join(lists(v) for v in value) + "]"
    return repr(value)


# From the attributes of a module --------------------------------------------------------------------------------------


class AttributeReader:
    """Reads the layouts of tensors; `aliases` maps `#blocked1` to the attribute text it stands for."""

    def __init__(self, aliases: Mapping[str, str]):
        self.aliases = aliases
        self._cache: dict[str, Layout] = {}

    def layout(self, text: str) -> Layout:
        text = text.strip()
        if text not in self._cache:
            self._cache[text] = layout_of(parse_attribute(text, self.aliases))
        return self._cache[text]


def layout_of(attribute: Attribute) -> Layout:
    """The layout that an attribute says; `Opaque` of a kind without a Gluon constructor."""
    get = attribute.get
    if attribute.kind == "ttg.blocked":
        parts = (get("sizePerThread"), get("threadsPerWarp"), get("warpsPerCTA"), get("order"))
        return Blocked(*parts, get("CGALayout", ()))
    if attribute.kind == "ttg.slice":
        return Slice(get("dim"), layout_of(get("parent")))
    if attribute.kind == "ttg.linear":
        groups = [get(name) for name in ("register", "lane", "warp", "block")]
        bases = [basis for group in groups for basis in group]
        shape = reduce(lambda a, b: tuple(x | y for x, y in zip(a, b)), bases) if bases else (0,)
        return Linear(*groups, tuple(1 << int(s).bit_length() for s in shape))
    if attribute.kind == "ttg.amd_mfma":
        tiles = get("tilesPerWarp", ())
        return Mfma(
            get("version"),
            get("instrShape"),
            get("isTransposed"),
            get("warpsPerCTA"),
            get("elementBitWidth", 32),
            tiles if set(tiles) - {1} else (),
            get("CGALayout", ()),
        )
    if attribute.kind == "ttg.amd_wmma":
        cta = get("ctaLayout", Attribute())
        warp, register = cta.get("warp", ()), cta.get("register", ())
        rank = len((warp or register or ((0, 0),))[0])
        # Versions 1 and 2 have one shape, which the attribute leaves out.
        shape, ctas = get("instrShape", (16, 16, 16)), get("CGALayout", ())
        return Wmma(get("version"), get("isTranspose"), warp, register, shape, rank, ctas)
    if attribute.kind == "ttg.dot_op":
        return DotOperand(get("opIdx"), layout_of(get("parent")), get("kWidth", 0))
    return Opaque(f"#{attribute.kind}")


def dealt(count: int, shape: tuple[int, ...], held: Sequence[int]) -> list[int]:
    """`count` lanes or warps over what is left of `shape` where each has `held` of it, the last dimension first."""
    out = [1] * len(shape)
    for d in reversed(range(len(shape))):
        out[d] = max(1, min(count, shape[d] // held[d]))
        count //= out[d]
    out[0] *= count
    return out
