"""What may give the layouts of tiles that lanes hold, or put into LDS themselves, where formulas of entries say little or nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from gluonize.decide.layouts.formulas import Formula, Product
from gluonize.general.rules.fitting import Fitting, Found, sized
from gluonize.general.rules.layouts import ByBases, ByRule, GeneralLayout, Numbers, Other, Plain
from gluonize.decide.layouts.rule_texts import ROTATED, TRANSPOSED, WIDE_STORE, spread, spread_pairs, spread_rows
from gluonize.trace.model.layouts import Blocked, Linear, Mfma
from gluonize.trace.model.shared_layouts import SharedLinear, Swizzled

_PACKED = 8  # values in a word, at most: of 4 bits in 32
_POWERS = (4, 8, 16, 32, 64, 128)  # elements of a line of banks, and vectors that are exchanged


def wide_stores(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    shape = fitting.shape(name)
    if shape is None:
        return
    # Where few samples have the layout of the rule, their sizes say too little of the shape.
    shapes = [shape, *map(sized, fitting.shapes(2))]
    for product in found:
        if all(isinstance(x, Mfma) for x in fitting.of(product)):
            known = found[product]
            made = (ByBases(product, known, each) for each in shapes)
            yield from (ByRule(WIDE_STORE, (Other(product, known), each)) for each in made)


def spread_tiles(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    layouts = fitting.of(name)
    if not all(isinstance(x, Blocked) and x.rank == 2 and not x.ctas for x in layouts):
        return
    orders = {x.order for x in layouts}  # type: ignore[attr-defined]
    if len(orders) != 1:
        return
    order = orders.pop()
    most, deep = (max(x.size_per_thread[d] for x in layouts) for d in order)  # type: ignore[attr-defined]
    blocks = (Plain(deep),) if deep > 1 else ()
    rule, in_order = (spread_rows, ()) if _all_by_rows(fitting) else (spread, (Plain(order),))
    for shape in _shapes(fitting):
        yield ByRule(rule(fitting.lanes), (shape, Plain(most), fitting.num_warps, *in_order, *blocks))


def _all_by_rows(fitting: Fitting) -> bool:
    """Whether no tile of the kernel is spread over lanes by its columns, so that one function does for all without being told."""
    every = (layout for sample in fitting.samples for layout in sample.layouts.values())
    return all(layout.order == (1, 0) for layout in every if isinstance(layout, Blocked) and layout.rank == 2)


def _shapes(fitting: Fitting) -> Iterator[Numbers]:
    """The shapes that tiles may have, whole sizes before parts of them, of which values are packed."""
    for parts in sorted(itertools.product(range(_PACKED.bit_length()), repeat=2), key=sum):
        for names in fitting.shapes(2):
            yield Numbers(tuple(Formula(Product(-part, ((name, 1),))) for part, name in zip(parts, names)))


def paired_tiles(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """Tiles whose columns are split into pairs."""
    layouts = fitting.of(name)
    if all(isinstance(x, Blocked) and x.rank == 3 and x.size_per_thread[2] == 2 and not x.ctas for x in layouts):
        most = max(x.size_per_thread[1] for x in layouts)  # type: ignore[attr-defined]
        for shape in _shapes(fitting):
            yield ByRule(spread_pairs(fitting.lanes), (shape, Plain(most), fitting.num_warps))


def transposed_tiles(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """Tiles that each lane has transposed after it loaded them."""
    shape = fitting.shape(name)
    if shape is None or not all(isinstance(x, (Linear, Blocked)) for x in fitting.of(name)):
        return
    for held, layout in found.items():
        if _are_blocked(fitting, held):
            yield ByRule(TRANSPOSED, (Other(held, layout), ByBases(held, layout, shape)))


def rotated_tiles(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """Tiles in LDS that each lane has transposed before it stored them."""
    layouts, shape = fitting.of(name), fitting.shape(name)
    linear = [x for x in layouts if isinstance(x, SharedLinear) and x.rank == 2 and not x.block]
    if shape is None or not all(x in linear or isinstance(x, Swizzled) for x in layouts):
        return
    for held, layout in found.items():
        if not _are_blocked(fitting, held):
            continue
        along = fitting.of(held)[0].order[1]  # type: ignore[attr-defined]
        if exchanged := [basis[along] for x in linear for basis in x.offsets if all(basis)]:
            for line, most in itertools.product(_POWERS, _POWERS):
                parts = (Other(held, layout), shape, Plain(min(exchanged)), Plain(line), Plain(most))
                yield ByRule(ROTATED, parts)


def _are_blocked(fitting: Fitting, name: str) -> bool:
    return all(isinstance(x, Blocked) and x.rank == 2 and not x.ctas for x in fitting.of(name))


__all__ = [
    "paired_tiles",
    "rotated_tiles",
    "spread_tiles",
    "transposed_tiles",
    "wide_stores",
]
