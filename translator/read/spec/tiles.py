"""Launches with other tiles: constexpr parameters called `BLOCK_...` that are powers of two, the number of warps, and the grid that follows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gluonize.read.spec.launch import LaunchSpec

WARPS = "num_warps"
FEWEST_ELEMENTS, MOST_WARPS = 16, 16  # the least extent of a product in Triton; 1024 lanes of 64-lane warps
MOST_FORMULAS, MOST_TRIED = 8, 1000

Tile = tuple[tuple[str, int], ...]  # (parameter or `num_warps`, value), sorted by name
Terms = tuple[tuple[str, str], ...]  # (number, block): the product of `cdiv(number, block)`


@dataclass(frozen=True)
class GridFormula:
    """axes: of each axis of the grid the terms, none where it does not depend on the tile. extents: those of the launch."""

    axes: tuple[Terms, ...]
    extents: tuple[int, ...]

    def grid(self, numbers: dict[str, int], tile: Tile) -> tuple[int, ...]:
        """The grid of a launch with these numbers and this tile."""
        return tuple(_product(terms, numbers, dict(tile)) if terms else n for terms, n in zip(self.axes, self.extents))

    @property
    def blocks(self) -> frozenset[str]:
        """The parameters on which the number of programs depends."""
        return frozenset(block for terms in self.axes for _, block in terms)

    def __str__(self) -> str:
        axes = (" * ".join(f"cdiv({n}, {b})" for n, b in terms) for terms in self.axes)
        return f"({', '.join(text or str(n) for text, n in zip(axes, self.extents))})"


def tile_of(spec: LaunchSpec) -> Tile:
    """The tile of a launch."""
    found = {k: v for k, v in spec.constexprs.items() if k.startswith("BLOCK") and _is_size(v)}
    return tuple(sorted((found | {WARPS: int(spec.options.get(WARPS, 4))}).items()))


def with_tile(spec: LaunchSpec, tile: Tile, formula: GridFormula) -> LaunchSpec:
    """The launch with another tile, and as many programs as the formula says."""
    sizes = {name: value for name, value in tile if name != WARPS}
    given = {name: sizes[name] for name in spec.values if name in sizes}
    return replace(
        spec,
        constexprs=spec.constexprs | sizes,
        options=spec.options | {WARPS: dict(tile)[WARPS]},
        values=spec.values | given,
        grid=formula.grid(numbers_of(spec), tile),
    )


def numbers_of(spec: LaunchSpec) -> dict[str, int]:
    """The integers that a launch passes, blocks apart."""
    own = {name for name, _ in tile_of(spec)}
    given = {**spec.values, **spec.constexprs}
    return {k: v for k, v in given.items() if isinstance(v, int) and not isinstance(v, bool) and v > 0 and k not in own}


def formulas(spec: LaunchSpec) -> list[GridFormula]:
    """The ways in which the grid of a launch can follow from its numbers and its tile, the likeliest first; none without a grid.

    One that matches by chance gives other results with another tile: whoever uses one finds that out.
    """
    numbers, tile = numbers_of(spec), dict(tile_of(spec))
    blocks = {name: value for name, value in tile.items() if name != WARPS}
    axes = [_terms(extent, numbers, blocks) for extent in spec.grid]
    made = (GridFormula(axes, spec.grid) for axes in itertools.product(*axes)) if spec.grid else iter(())
    single = (x for x in made if len(x.blocks) == sum(map(len, x.axes)))
    found = sorted(itertools.islice(single, MOST_TRIED), key=_unlikely)
    return [*(x for x in found[:MOST_FORMULAS] if x.blocks), *(x for x in found if not x.blocks)]


def neighbours(tile: Tile, moves: frozenset[tuple[str, int]]) -> Iterator[Tile]:
    """Tiles with one size, or up to three together, twice as large or half as large. moves: (name, 1 or -1) that keep the results."""
    names = [name for name, _ in tile]
    for count, way in itertools.product((1, 2, 3), (1, -1)):
        free = [name for name in names if name == WARPS or (name, way) in moves]
        for chosen in itertools.combinations(free, count):
            if (found := moved(tile, chosen, way)) is not None:
                yield found


def moved(tile: Tile, names: tuple[str, ...], way: int) -> Tile | None:
    """`tile` with the sizes of these names doubled (way 1) or halved (way -1); None where there is no such tile."""
    made = tuple((n, (v * 2 if way > 0 else v // 2) if n in names else v) for n, v in tile)
    fits = all(1 <= v <= MOST_WARPS if n == WARPS else v >= FEWEST_ELEMENTS for n, v in made)
    return made if fits else None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value >= FEWEST_ELEMENTS and value & (value - 1) == 0


def _product(terms: Terms, numbers: dict[str, int], blocks: dict[str, int]) -> int:
    return math.prod(-(-numbers[number] // blocks[block]) for number, block in terms)


def _terms(extent: int, numbers: dict[str, int], blocks: dict[str, int]) -> list[Terms]:
    pairs = list(itertools.product(numbers, blocks))
    two = ((x, y) for x, y in itertools.combinations(pairs, 2) if x[0] != y[0] and x[1] != y[1])
    every = [*two, *((pair,) for pair in pairs)]
    return [*(terms for terms in every if _product(terms, numbers, blocks) == extent), ()]


def _unlikely(formula: GridFormula) -> tuple[int, int]:
    """Less for formulas with more terms whose names belong together (`M` and `BLOCK_M`), then for those with fewer others."""
    terms = [term for terms in formula.axes for term in terms]
    alike = sum(block.rpartition("_")[2].upper() == number.upper() for number, block in terms)
    return (-alike, len(terms) - alike)


__all__ = ["WARPS", "GridFormula", "Tile", "formulas", "moved", "neighbours", "numbers_of", "tile_of", "with_tile"]
