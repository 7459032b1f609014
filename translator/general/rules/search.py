"""Finds for every layout of a kernel what gives it in all samples: formulas of its entries, or a rule of Triton's passes.

`fitted_layouts` looks at products first, then at their operands, tiles in LDS and what moves them: a rule may take another layout of
the same launch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gluonize.decide.layouts.formulas import ROOT, fit
from gluonize.decide.layouts.gluon_values import in_order_of
from gluonize.decide.layouts.parametric import ParametricLayout, parametric
from gluonize.general.rules.fitting import Fitting, Found, Sample, number, same_layout, sized
from gluonize.general.rules.layouts import (
    ByRule,
    ElementType,
    FirstOf,
    GeneralLayout,
    Numbers,
    OperandOf,
    OperandOfInstruction,
    Other,
    Plain,
    SwizzledFor,
)
from gluonize.decide.layouts.rule_texts import (
    PADDED_OPERAND,
    PADDED_ROWS,
    SWIZZLED_OPERAND,
    chained_cores,
    direct_copy,
    matrix_cores,
    second_cores,
    wave_matrices,
)
from gluonize.general.rules.tiles import paired_tiles, rotated_tiles, spread_tiles, transposed_tiles, wide_stores
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma, SharedLayout, Wmma
from gluonize.trace.model.shared_layouts import Padded, Swizzled


@dataclass(frozen=True)
class Before:
    """What gave layouts in other samples, tried first; new: the samples among those now that it was not compared with."""

    layouts: Mapping[str, GeneralLayout]
    new: Sequence[Sample]


def fitted_layouts(fitting: Fitting, names: Sequence[str], before: Before = Before({}, ())) -> Found | tuple[str, ...]:
    """What gives each of the layouts `names`, those that others are made of first; or the names of those that nothing gives."""
    found: Found = {}
    left = sorted(names, key=lambda name: _STEPS.index(_step(fitting.of(name)[0])))
    while left:  # one that is made of another comes after it
        known = len(found)
        for name in left:
            if (layout := _layout(fitting, name, found, before)) is not None:
                found[name] = layout
        if len(found) == known:
            return tuple(left)
        left = [name for name in left if name not in found]
    return found


def _layout(fitting: Fitting, name: str, found: Found, before: Before) -> GeneralLayout | None:
    known = before.layouts.get(name)
    if known is not None and _stands(known, found) and fitting.gives(known, name, before.new):
        return known
    given = (layout for layout in _candidates(fitting, name, found) if fitting.gives(layout, name))
    exact = next((layout for layout in given if all(map(fitting.stands_at(layout), fitting.beside))), None)
    return _right_for_most(fitting, name, found) if exact is None and fitting.most else exact


def _right_for_most(fitting: Fitting, name: str, found: Found) -> GeneralLayout | None:
    """Of the rules that give a layout in every sample, and the right one in the first, the one that does so in most."""
    everywhere = [*(sample.sizes for sample in fitting.samples), *fitting.beside]
    ways = (_operands,) if isinstance(fitting.of(name)[0], DotOperand) else _RULES
    rules = (layout for rule in ways for layout in rule(fitting, name, found))
    first = (layout for layout in rules if fitting.gives(layout, name, fitting.samples[:1]))
    whole = (layout for layout in first if all(map(fitting.stands_at(layout), everywhere)))
    return max(whole, key=lambda layout: sum(fitting.gives(layout, name, [s]) for s in fitting.samples), default=None)


_STEPS = ("product", "operand", "shared", "tile")


def _step(layout: Layout) -> str:
    if isinstance(layout, (Mfma, Wmma)):
        return "product"
    if isinstance(layout, DotOperand):
        return "operand"
    return "shared" if isinstance(layout, SharedLayout) else "tile"


def _stands(layout: GeneralLayout, found: Found) -> bool:
    """Whether the layouts that one is made of are those that were found now."""
    parts = [a for a in getattr(layout, "arguments", ()) if isinstance(a, Other)]
    parts += [Other(layout.name, layout.parent)] if isinstance(layout, (OperandOf, OperandOfInstruction)) else []
    if isinstance(layout, FirstOf):
        return _stands(layout.first, found)
    return all(found.get(part.name) == part.layout for part in parts)


def _candidates(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """What may give a layout, the most readable first."""
    layouts = fitting.of(name)
    alike = [in_order_of(layouts[0], layout) for layout in layouts]
    formulas = parametric([(sample.sizes, layout) for sample, layout in zip(fitting.samples, alike)])
    if isinstance(layouts[0], DotOperand):
        yield from _operands(fitting, name, found)
    if formulas is not None and _is_simple(fitting, formulas, layouts):
        yield formulas
    for rule in _RULES:
        yield from rule(fitting, name, found)
    if formulas is not None:
        yield formulas


def _is_simple(fitting: Fitting, formulas: ParametricLayout, layouts: Sequence[Layout]) -> bool:
    """Whether a reader sees at once why entries are what they are: no bases, no roots, and no tile sizes in how warps lie over a product."""
    rooted = any(ROOT in formula.functions for formula in formulas.formulas)
    by_tile = isinstance(layouts[0], (Mfma, Wmma)) and not formulas.sizes <= {fitting.warps}
    return not (rooted or by_tile or _has_bases(layouts))


def _has_bases(layouts: Sequence[Layout]) -> bool:
    return any(isinstance(layout, Linear) or isinstance(layout, Padded) and layout.offsets for layout in layouts)


def _operands(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """Operands of a product by its name."""
    layouts = fitting.of(name)
    indices = {layout.operand_index for layout in layouts if isinstance(layout, DotOperand)}
    if len(indices) != 1:
        return
    index, width = indices.pop(), fitting.fit([layout.k_width for layout in layouts])  # type: ignore[attr-defined]
    for parent, layout in found.items():
        if all(s.layouts[name].parent == s.layouts[parent] for s in fitting.samples):  # type: ignore[attr-defined]
            if width is not None or not any(layout.k_width for layout in layouts):  # type: ignore[attr-defined]
                yield OperandOf(index, parent, layout, width, layouts[0].k_width)  # type: ignore[attr-defined]
            yield OperandOfInstruction(index, parent, layout)
            most = max(layout.k_width for layout in layouts)  # type: ignore[attr-defined]
            if all(isinstance(x, Mfma) for x in fitting.of(parent)):
                yield OperandOfInstruction(index, parent, layout, most)
            return


def _products(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    layouts = fitting.of(name)
    if not all(isinstance(x, Mfma) and x.element_bitwidth == 32 and not x.ctas for x in layouts):
        return
    alike = {(x.version, x.transposed, len(x.warps_per_cta)) for x in layouts}  # type: ignore[attr-defined]
    depths: dict[int, list[int]] = {}
    for layout in layouts:
        rows, columns, depth = layout.instr_shape  # type: ignore[attr-defined]
        if rows != columns:
            return
        depths[rows] = sorted({*depths.get(rows, ()), depth}, reverse=True)
    if len(alike) != 1 or len(depths) > 2:
        return
    (version, transposed, rank), *_ = alike
    if rank == 2:
        whole_rows = all(x.warps_per_cta[1] == 1 for x in layouts)  # type: ignore[attr-defined]
        paired = any(x.tiles_per_warp for x in layouts)  # type: ignore[attr-defined]
        rules = [matrix_cores(version, depths, transposed)]
        rules += [(chained_cores if whole_rows else second_cores)(version, depths, transposed, paired)]
        for rule, sizes in itertools.product(rules, fitting.shapes(3)):
            yield ByRule(rule, (*map(number, sizes), fitting.num_warps))


def _wave_products(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    layouts = fitting.of(name)
    plain = all(isinstance(x, Wmma) and x.rank == 2 and not (x.reg_bases or x.ctas) for x in layouts)
    if not plain or {x.instr_shape[:2] for x in layouts} != {(16, 16)}:  # type: ignore[attr-defined]
        return
    kinds = {(x.version, x.transposed) for x in layouts}  # type: ignore[attr-defined]
    depth = fitting.fit([x.instr_shape[2] for x in layouts])  # type: ignore[attr-defined]
    if len(kinds) == 1 and depth is not None:
        rule = wave_matrices(*kinds.pop())
        for sizes in fitting.shapes(2):
            yield ByRule(rule, (*map(number, sizes), Numbers((depth,), False), fitting.num_warps))


def _padded_operands(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """Tiles that are copied straight to LDS for a product: as Gluon's own function has them, or swizzled where it has none."""
    layouts = fitting.of(name)
    if not all(isinstance(x, (Padded, Swizzled)) and not x.ctas for x in layouts) or not _has_bases(layouts):
        return
    if (shape := fitting.shape(name)) is None:
        return
    for pointer, operand, contiguous in itertools.product(fitting.pointers(name), found, (True, False)):
        # Gluon's function aborts the process for tiles that are no such operand.
        if not _is_operand_of_version_4(fitting, operand) or not _is_tile_of(fitting, operand, found, shape):
            continue
        if not all(_is_contiguous(x, 1 - _index(fitting, operand)) == contiguous for x in layouts):
            continue
        parts = (Other(operand, found[operand]), shape, ElementType(pointer), Plain(contiguous))
        rule = ByRule(PADDED_OPERAND, parts)
        given = [rule.at(sample.sizes) for sample in fitting.samples]
        if not all(layout is None or same_layout(layout, wanted) for layout, wanted in zip(given, layouts)):
            continue
        left = [(s, wanted) for s, layout, wanted in zip(fitting.samples, given, layouts) if layout is None]
        if not left:
            yield rule
        elif (other := _swizzled_for(operand, found[operand], left)) is not None:
            yield FirstOf(rule, other)
        if left and (plain := parametric([(s.sizes, wanted) for s, wanted in left])) is not None:
            yield FirstOf(rule, plain)
        yield from (FirstOf(rule, other) for other in _of_operand(fitting, operand, found, shape))


def _swizzled_for(name: str, operand: GeneralLayout, samples: Sequence[tuple[Sample, Layout]]) -> SwizzledFor | None:
    """What gives tiles whose vectors are as wide as what lanes read of an operand, where that is not the same everywhere."""
    swizzled = [(sample, x) for sample, x in samples if isinstance(x, Swizzled) and not x.ctas]
    if (
        len(swizzled) < len(samples)
        or len({x.order for _, x in swizzled}) > 1
        or len({x.vec for _, x in swizzled}) == 1
    ):
        return None
    if any(sample.layouts[name].k_width != x.vec for sample, x in swizzled):  # type: ignore[attr-defined]
        return None
    alike = fit([(sample.sizes, x.per_phase) for sample, x in swizzled])
    phases = fit([(sample.sizes, x.max_phase) for sample, x in swizzled])
    return SwizzledFor(name, operand, alike, phases, swizzled[0][1].order) if alike and phases else None


def _swizzled_operands(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """Tiles in LDS whose rows lie along the K of a product."""
    layouts = fitting.of(name)
    if not all(isinstance(x, Swizzled) and x.vec > 1 and not x.ctas for x in layouts):
        return
    for operand in found:
        if not all(isinstance(x, DotOperand) for x in fitting.of(operand)):
            continue
        along = 1 - _index(fitting, operand)
        if all(x.order[0] == along for x in layouts):  # type: ignore[attr-defined]
            for shape in fitting.shapes(2):
                yield from _of_operand(fitting, operand, found, sized(shape))


def _of_operand(fitting: Fitting, operand: str, found: Found, shape: Numbers) -> Iterator[ByRule]:
    for line in _LINES:
        yield ByRule(SWIZZLED_OPERAND, (Other(operand, found[operand]), shape, Plain(line)))


def _index(fitting: Fitting, operand: str) -> int:
    return fitting.of(operand)[0].operand_index  # type: ignore[attr-defined]


def _is_tile_of(fitting: Fitting, operand: str, found: Found, shape: Numbers) -> bool:
    """Whether an operand has tiles of a shape, as far as what gives the layout of its product tells."""
    samples = fitting.samples
    product = next((x for n, x in found.items() if all(s.layouts[operand].parent == s.layouts[n] for s in samples)), None)  # type: ignore[attr-defined]
    if not isinstance(product, ByRule) or len(product.arguments) != 4:
        return True
    m, n, k, _ = product.arguments
    wanted = (m, k) if _index(fitting, operand) == 0 else (k, n)
    return all([size.value(s.sizes) for size in wanted] == shape.value(s.sizes) for s in samples)


def _is_contiguous(layout: Layout, dim: int) -> bool:
    """Whether elements along a dimension lie next to each other in LDS."""
    if isinstance(layout, Padded) and layout.offsets:
        return layout.offsets[0][dim] != 0
    return layout.order[0] == dim  # type: ignore[attr-defined]


def _is_operand_of_version_4(fitting: Fitting, name: str) -> bool:
    return all(
        isinstance(x, DotOperand) and isinstance(x.parent, Mfma) and x.parent.version == 4 for x in fitting.of(name)
    )


def _padded_rows(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    """Padded tiles, some of whose rows are too short to be padded."""
    every = zip(fitting.samples, fitting.of(name))
    padded = [
        (s.sizes, x) for s, x in every if isinstance(x, Padded) and not (x.offsets or x.ctas) and len(x.pairs) == 1
    ]
    orders = {x.order for _, x in padded}
    shape = fitting.shape(name)
    if len(orders) != 1 or shape is None or len(padded) == len(fitting.samples):
        return
    pairs = [fit([(sizes, x.pairs[0][i]) for sizes, x in padded]) for i in range(2)]
    if None not in pairs:
        numbers = (Numbers((formula,), False) for formula in pairs if formula is not None)
        yield ByRule(PADDED_ROWS, (shape, *numbers, Plain(orders.pop())))


def _direct_copies(fitting: Fitting, name: str, found: Found) -> Iterator[GeneralLayout]:
    if not all(isinstance(x, (Linear, Blocked)) and not x.ctas for x in fitting.of(name)):
        return
    rule = direct_copy(fitting.lanes)
    for shared in found:
        shape = fitting.shape(shared)
        if shape is not None and all(isinstance(x, (Padded, Swizzled)) for x in fitting.of(shared)):
            for pointer in fitting.pointers(name):
                yield ByRule(rule, (Other(shared, found[shared]), shape, ElementType(pointer), fitting.num_warps))


_LINES = (32, 64, 128, 256)  # elements of a line of banks

_RULES = (
    _products,
    _wave_products,
    _padded_operands,
    _swizzled_operands,
    _padded_rows,
    rotated_tiles,
    _direct_copies,
    wide_stores,
    spread_tiles,
    paired_tiles,
    transposed_tiles,
)

__all__ = ["Before", "Fitting", "Found", "Sample", "fitted_layouts", "same_layout"]
