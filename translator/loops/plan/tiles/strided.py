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

from gluonize.decide.choices.chosen import Choices
from gluonize.decide.readback.staging import Staged
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.polynomials import INDEX, Polynomial, add, fixed, moving, quotient
from gluonize.facts.loops.loop_range import int_of
from gluonize.facts.numbers.signs import Signs, obligation_at
from gluonize.facts.obligations import Obligation
from gluonize.loops.plan.tiles.address_reader import AddressReader
from gluonize.loops.plan.tiles.terms import NotATile, strides_of, times
from gluonize.loops.plan.tiles.wrapped_rows import reaches_only_masked
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.shared_layouts import Padded, Swizzled, partitioned
from gluonize.write.accesses.addresses import is_bare_parameter, root_parameter, wide_scalar

if TYPE_CHECKING:
    from gluonize.trace.model.layouts import SharedLayout

ONE: Polynomial = {(): 1}
ELEMENTS = ("fp16", "bf16", "fp32", "fp64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


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
        return fixed(self.start)

    @property
    def moving(self) -> Polynomial:
        return moving(self.start)


WRAPPED = "a tile of the data mover whose rows wrap"


@dataclass(frozen=True)
class StridedTile:
    """Tiles at `base + rest`, axes in the order of memory; order: dimension of the load behind each axis. wide: `rest` has 64 bits, but for
    `narrow`, the part of it that the source adds as a 32-bit number, wrapped around as that is.
    """

    base: ast.expr
    rest: Polynomial
    wide: bool
    axes: tuple[Axis, ...]
    order: tuple[int, ...]
    shared: "SharedLayout"
    names: dict[str, ast.expr] = field(hash=False)
    assumed: frozenset[Obligation] = frozenset()  # what the tile rests on
    small: str = ""  # the pointer whose tensor must be within 2 GiB
    narrow: Polynomial = field(default_factory=dict)

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

    @property
    def positioned(self) -> bool:
        """Whether coordinates that stay the same are worked into the descriptor before the loop."""
        return any(a.fixed for a in self.axes)

    @property
    def unclipped(self) -> bool:
        """Whether tiles move where nothing is clipped, so that copies need no bounds worked out."""
        return any(a.moving and a.limit is None for a in self.axes)


def strided_tile(
    facts: FunctionFacts,
    choices: Choices,
    loop: ast.For,
    low: ast.expr | None,
    step: ast.expr | None,
    call: ast.Call,
    staged: Staged,
) -> StridedTile:
    """The tile that the load `call` takes. Raises: NotATile."""
    given = callees.bound(facts, call)
    fact = _plain_load(facts, call, given)
    reader = AddressReader(facts, loop, low, step, fact.shape)
    base, address = reader.pointer(given["pointer"], tuple(range(fact.rank)))
    wide = reader.wide
    strides, rest = strides_of(address, fact.rank)
    contiguous = [d for d, s in enumerate(strides) if reader.numeric(s) == ONE]
    if not contiguous:
        raise NotATile("no dimension is known to be contiguous")
    if not all(isinstance(facts.fact(reader.names[atom]), ConstFact) for m in strides[contiguous[-1]] for atom in m):
        strides[contiguous[-1]] = ONE  # a descriptor asks for a compile-time constant
    if any(not reader.numeric(s) or d not in reader.extents for d, s in enumerate(strides)):
        raise NotATile("a dimension repeats what it reads")
    box = _Box(facts, reader, strides, rest)
    box.read_mask(given.get("mask"))
    if reader.wrapped and step is not None and int_of(facts, step) < 0:
        raise NotATile("its rows wrap and the loop's index goes down")
    for d, (start, limit) in reader.wrapped.items():
        box.check_unbounded(d)
        reaches_only_masked(facts, reader, call, d, start, limit)
        reader.assumed |= _rows_inside(facts, reader, base, d)
        reader.assumed.add(obligation_at(facts, call, "rows", WRAPPED, "proven"))
        box.bound(d, start, limit)
    box.move(contiguous)
    wide_axes = box.narrow(base)
    order = (*(d for d in range(fact.rank) if d != contiguous[-1]), contiguous[-1])
    axes = tuple(
        Axis(reader.extents[d], fact.shape[d], strides[d], box.starts[d], box.limits[d], d in wide_axes) for d in order
    )
    shared = tile_layout(staged, order, fact)
    if choices.asks("lds-partitions", "two") and (free := free_dimension(facts, loop, call)) is not None:
        shared = partitioned(shared, order.index(free)) or shared
    narrow = {m: c for m, c in box.rest.items() if wide and reader.narrow.get(m) == c}
    wide = wide or bool(wide_axes)
    assumed = frozenset(reader.assumed)
    tile = StridedTile(base, box.rest, wide, axes, order, shared, reader.names, assumed, box.small, narrow)
    for node in tile.nodes:
        reader.settled(node)
    return tile


def _rows_inside(facts: FunctionFacts, reader: AddressReader, base: ast.expr, d: int) -> set[Obligation]:
    """What makes sure that the wrapped rows of dimension `d` are not negative: those the source wraps to others. Raises: NotATile.

    Where the launch promises that nothing before the tensor is accessed, `row % M` shows it for a size M that is an argument, and not 1
    (Triton compiles that apart): of negative rows all but each M-th are rows before the tensor.
    """
    root, limit = root_parameter(facts, base), reader.wrapped[d][1]
    atoms = [reader.names[atom] for monomial in limit for atom in monomial]
    argument = len(atoms) == 1 and list(limit.values()) == [1] and is_bare_parameter(facts, atoms[0])
    argument = argument and isinstance(facts.fact(atoms[0]), TensorFact)
    proof = Signs(facts, WRAPPED)
    if proof.holds(reader.rows[d]) and not any(o.condition is not None for o in proof.assumed):
        return set(proof.assumed)
    if argument and root is not None and root in facts.kernel.small_pointers:
        return set()
    exact = Signs(facts, WRAPPED, exactly=True)
    if not exact.holds(reader.rows[d]):
        raise NotATile("its wrapped rows may begin before the tensor")
    return set(exact.assumed)


def _plain_load(facts: FunctionFacts, call: ast.Call, given: dict[str, ast.expr]) -> TensorFact:
    """What a load gives. Raises: NotATile for one that the data mover cannot do, wherever it reads."""
    extra = set(given) - {"pointer", "mask", "other", "cache_modifier", "eviction_policy", "volatile"}
    if extra or any(k in given and not callees.is_empty(facts, given[k]) for k in ("cache_modifier", "volatile")):
        raise NotATile("it has a modifier")
    fact = facts.tensor(call)
    if fact.dtype not in ELEMENTS and not fact.dtype.startswith("fp8"):
        raise NotATile(f"elements of type {fact.dtype}")
    if not 1 <= fact.rank <= 5:
        raise NotATile(f"{fact.rank} dimensions")
    other = given.get("other")
    if callees.is_given(facts, other) and not callees.is_zero(facts, other):
        raise NotATile("masked elements are something other than 0")
    return fact


class _Box:
    """Where a tile lies in its tensor, while that is worked out: first coordinates, limits, and what is left of the address.

    small: the pointer whose tensor must be within 2 GiB.
    """

    def __init__(self, facts: FunctionFacts, reader: AddressReader, strides: list[Polynomial], rest: Polynomial):
        self.facts, self.reader, self.strides, self.rest = facts, reader, strides, rest
        self.starts: list[Polynomial] = [{} for _ in strides]
        self.limits: list[Polynomial | None] = [None] * len(strides)
        self.small = ""

    def read_mask(self, mask: ast.expr | None) -> None:
        absent = mask is None or callees.is_absent(self.facts, mask)
        for conjunct in () if absent else self.reader.conjuncts(mask):
            self.bound(*self.reader.bound(conjunct))

    def check_unbounded(self, d: int) -> None:
        if self.limits[d] is not None:
            raise NotATile(f"dimension {d} has two bounds")

    def bound(self, d: int, start: Polynomial, limit: Polynomial) -> None:
        """Dimension `d` begins at `start`, and `limit` is the first coordinate that is not there. Raises: NotATile."""
        self.check_unbounded(d)
        self.starts[d], self.limits[d] = start, limit
        self.rest = add(self.rest, times(start, self.strides[d]), -1)

    def move(self, contiguous: list[int]) -> None:
        """What of the address changes from one iteration to the next becomes coordinates. Raises: NotATile."""
        walk = moving(self.rest)
        if walk and not self.reader.numeric(walk):
            raise NotATile("its address and its mask are only the same for these constants")
        if walk:
            self.rest = fixed(self.rest)
            free = [d for d, limit in enumerate(self.limits) if limit is None]
            found = [(d, q) for d in free if (q := quotient(walk, self.strides[d])) is not None]
            if not found:
                raise NotATile("it moves in another way than its mask")
            d, start = min(found, key=lambda item: item[0] in contiguous)
            self.starts[d] = start
            if any(limit is not None and moving(begin) for begin, limit in zip(self.starts, self.limits)):
                raise NotATile("it moves within its bounds and beyond them")
        if any(self._has_wide(moving(p)) for p in self.starts):
            raise NotATile("it moves by a 64-bit number")

    def _has_wide(self, p: Polynomial) -> bool:
        """Whether one of its values has 64 bits."""
        return any(wide_scalar(self.facts, self.reader.names[a]) for m in p for a in m if a != INDEX)

    def narrow(self, base: ast.expr) -> set[int]:
        """64-bit coordinates go into the base, and what is left to the limit is cut to 32 bits; -> the dimensions where.

        Raises: NotATile.
        """
        wide_axes = set()
        for d, limit in enumerate(self.limits):
            if limit is None or not (self._has_wide(self.starts[d]) or self._has_wide(limit)):
                continue
            still = fixed(self.starts[d])
            if moving(self.starts[d]) and any(wide_scalar(self.facts, self.reader.names[a]) for m in limit for a in m):
                # Within 2 GiB no element lies past the limit that 32 bits have room for.
                self.small = root_parameter(self.facts, base) or ""
                if self.small not in self.facts.kernel.small_pointers:
                    raise NotATile("it moves along a dimension of 64-bit size, and its tensor may exceed 2 GiB")
            self.rest = add(self.rest, times(still, self.strides[d]), 1)
            self.starts[d], self.limits[d] = moving(self.starts[d]), add(limit, still, -1)
            wide_axes.add(d)
        return wide_axes


def free_dimension(facts: FunctionFacts, loop: ast.For, call: ast.Call) -> int | None:
    """The dimension of the load `call` that is M or N of a product of the loop, which takes it as it is."""
    for dot in ast.walk(loop):
        if not callees.is_dot(facts, dot):
            continue
        given = callees.bound(facts, dot)
        for index, name in enumerate(("input", "other")):
            definition = facts.webs.definition_of(given.get(name))
            if given.get(name) is call or definition is not None and definition.value is call:
                return index
    return None


def tile_layout(staged: Staged, order: tuple[int, ...], fact: TensorFact) -> "SharedLayout":
    """Triton's padding for the tile as the data mover writes it, its contiguous dimension last."""
    shape = tuple(fact.shape[d] for d in order)
    natural = tuple(reversed(range(len(order))))
    shared = staged.shared
    held = (shared or staged.source).ctas
    ctas = tuple(tuple(basis[d] for d in order) for basis in held)
    if isinstance(shared, Padded) and len(shared.pairs) == 1 and not shared.offsets:
        return Padded(shared.pairs, (), natural, shape, ctas)
    if isinstance(shared, Swizzled) and shared.max_phase == 1:
        return Swizzled(1, 1, 1, natural, ctas)
    size = bits_of(fact.dtype) // 8
    return Padded(((256 // size, max(1, 16 // size)),), (), natural, shape, ctas)
