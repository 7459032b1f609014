"""What may give the layouts of tiles that lanes hold, or put into LDS themselves, where formulas of entries say little or nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from translator.general.fitting import Fitting, Found, sized
from translator.general.rule_layouts import ByBases, ByRule, GeneralLayout, Other, Plain
from translator.general.rule_texts import ROTATED, TRANSPOSED, WIDE_STORE, spread
from translator.ttgir.layouts import Blocked, Linear, Mfma
from translator.ttgir.shared_layouts import SharedLinear, Swizzled

_POWERS = (4, 8, 16, 32, 64, 128)  # elements of a line of banks, and vectors that are exchanged


def wide_stores(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    shape = fitting.shape(name)
    for product in found:
        if shape is not None and all(isinstance(x, Mfma) for x in fitting.of(product)):
            yield ByRule(WIDE_STORE, (Other(product, found[product]), ByBases(product, found[product], shape)))


def spread_tiles(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    layouts = fitting.of(name)
    if not all(isinstance(x, Blocked) and x.rank == 2 and not x.ctas for x in layouts):
        return
    orders = {x.order for x in layouts}  # type: ignore[attr-defined]
    if len(orders) != 1:
        return
    order = orders.pop()
    most, deep = (max(x.size_per_thread[d] for x in layouts) for d in order)  # type: ignore[attr-defined]
    for shape in itertools.permutations(fitting.tiles, 2):
        blocks = (Plain(deep),) if deep > 1 else ()
        yield ByRule(spread(fitting.lanes), (sized(shape), Plain(most), fitting.num_warps, Plain(order), *blocks))


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
    "rotated_tiles",
    "spread_tiles",
    "transposed_tiles",
    "wide_stores",
]
