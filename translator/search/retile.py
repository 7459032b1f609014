"""A search over the tile and the warps of a kernel's launches, judged by predicted cycles for the same work.

First it is found out which sizes may be doubled or halved: the source, run on the same inputs, has to give the same results, with the grid
that follows from the launch's numbers. Then tiles are walked with the loops as they are by default, from the best so far to its neighbours,
and the choices are searched for the best of them and for the launch's own tile. What a program pays outside of its loop is shared by as
many iterations as do the same work, so a deeper tile has fewer of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gluonize.decide.choices.chosen import Choices
from gluonize.diagnostics import TranslationError
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.spec.tiles import WARPS, GridFormula, Tile, formulas, moved, neighbours, tile_of, with_tile
from gluonize.request import TranslateRequest
from gluonize.search.choose import Tried, figures_of, try_candidates
from gluonize.search.cost import ITERATIONS, Cost, cost
from gluonize.search.search import search_tried

if TYPE_CHECKING:
    from gluonize.judge.lower.children.worker import WorkerPool

AGREE = "gluonize.judge.verdict.tiles_agree:why_tiles_differ"
SEARCHED = 3  # tiles that the choices are searched for, beside the launch's own


@dataclass(frozen=True)
class TriedTile:
    """cost: of the launches in the geometric mean, in the unit of `gluonize.search.cost`; efficiency: of the first one's matrix cores."""

    tile: Tile
    choices: Choices
    cost: float
    efficiency: float


@dataclass(frozen=True)
class Retiled:
    """launches: of the kernel, with the tile that was found. formulas: how their grids follow. why: it keeps its tile, "" if another is better.
    fixed: why no size could be changed at all, but for options; "" where some could."""

    kernel: str
    own: Tile
    tile: Tile
    launches: tuple[LaunchSpec, ...]
    formulas: tuple[GridFormula, ...] = ()
    tried: tuple[TriedTile, ...] = ()
    why: str = ""
    fixed: str = ""


@dataclass(frozen=True)
class _Follows:
    """How the grid of a launch follows from its tile, and which sizes can be changed alone: (name, 1) doubled, (name, -1) halved. why_not:
    one other cannot."""

    formula: GridFormula
    moves: frozenset[tuple[str, int]]
    why_not: str = ""


def retile_kernel(request: TranslateRequest, launches: tuple[LaunchSpec, ...], pool: "WorkerPool") -> Retiled:
    """The best tile for the launches of one kernel. Nothing raises where there is no other: the answer says why."""
    kernel, own = launches[0].kernel, tile_of(launches[0])

    def keeps(why: str) -> Retiled:
        return Retiled(kernel, own, own, launches, why=why)

    if any(tile_of(spec) != own for spec in launches):
        return keeps("its launches have several tiles already")
    if any(not spec.grid or not spec.values for spec in launches):
        return keeps("a launch without grid or values cannot be run with another tile")
    follows = [_follows(request, spec, pool) for spec in launches]
    moves = frozenset.intersection(*(each.moves for each in follows))
    walk = _Walk(request, launches, tuple(each.formula for each in follows), pool)
    if not walk.price((own,)):
        return keeps("its hottest loop multiplies no matrices, or cannot be translated as it is")
    walk.from_best(moves)
    tried = walk.with_choices(own)
    for found in sorted(tried, key=lambda t: t.cost):
        retiled = walk.launches_with(found.tile)
        if found.tile == own or not any(_why_not(request, a, b, pool) for a, b in zip(launches, retiled)):
            why = "no other tile costs less" if found.tile == own else ""
            fixed = "" if moves else next((x.why_not for x in follows if x.why_not), "it has none")
            return Retiled(kernel, own, found.tile, retiled, walk.formulas, tuple(tried), why, fixed)
    return keeps("the choices for its own tile cannot be made")


def _follows(request: TranslateRequest, spec: LaunchSpec, pool: "WorkerPool") -> _Follows:
    """The way in which most sizes can be changed, with the fewest programs among these (more than are needed may do no harm), and fewest
    sizes that cannot be."""
    own, best, rank = tile_of(spec), None, None
    for formula in formulas(spec):
        ways = [(name, way) for name, _ in own if name != WARPS for way in (1, -1)]
        made = {move: with_tile(spec, tile, formula) for move in ways if (tile := moved(own, move[:1], move[1]))}
        pending = {move: _submit(request, spec, other, pool) for move, other in made.items()}
        answers = {move: _answer(job) for move, job in pending.items()}
        agree = [move for move, why in answers.items() if not why]
        fixed = formula.blocks - {name for name, _ in agree}
        mine = (-len(agree), sum(math.prod(made[move].grid) for move in agree), len(fixed))
        if rank is None or mine < rank:
            best, rank = _Follows(formula, frozenset(agree), next(filter(None, answers.values()), "")), mine
    assert best is not None, "bug in gluonize: a grid that stays as it is is always one of the formulas"
    return best


def _submit(request: TranslateRequest, own: LaunchSpec, other: LaunchSpec, pool: "WorkerPool"):
    arguments = (request.source, own, other, request.target, request.search_path, request.import_hosts)
    return pool.submit(AGREE, *arguments, what=f"running {own.kernel} with another tile")


def _answer(job) -> str:
    try:
        return job.result()
    except TranslationError as error:
        return error.diagnostics[0].message if error.diagnostics else str(error)


def _why_not(request: TranslateRequest, own: LaunchSpec, other: LaunchSpec, pool: "WorkerPool") -> str:
    return _answer(_submit(request, own, other, pool))


class _Walk:
    """Tiles and what they cost by default, best first found among equals."""

    def __init__(
        self,
        request: TranslateRequest,
        launches: tuple[LaunchSpec, ...],
        formulas: tuple[GridFormula, ...],
        pool: "WorkerPool",
    ):
        self.request, self.launches, self.formulas, self.pool = request, launches, formulas, pool
        self.own = tile_of(launches[0])
        self.work: list[float] = []  # of an iteration with the launches' own tile
        self.costs: dict[Tile, float | None] = {}
        self.needs: dict[Tile, float] = (
            {}
        )  # clk of all units together for the same work: what has to be hidden behind each other

    def launches_with(self, tile: Tile) -> tuple[LaunchSpec, ...]:
        return tuple(with_tile(spec, tile, formula) for spec, formula in zip(self.launches, self.formulas))

    def from_best(self, moves: frozenset[tuple[str, int]]) -> None:
        """From the best tile to its neighbours until none is better, or as many are priced as the budget says."""
        while len(self.costs) <= self.request.budget:
            best = self.ranked()[0]
            fresh = [tile for tile in dict.fromkeys(neighbours(best, moves)) if tile not in self.costs]
            self.price(fresh[: self.request.budget + 1 - len(self.costs)])
            if self.ranked()[0] == best:
                return

    def ranked(self) -> list[Tile]:
        return sorted((t for t, c in self.costs.items() if c is not None), key=lambda t: self.costs[t])

    def price(self, tiles: Iterable[Tile]) -> bool:
        """Compile the loops of these tiles as they are by default; -> whether all of them could be."""
        tiles = tuple(tiles)
        with ThreadPoolExecutor(self.pool.jobs) as threads:
            every = list(threads.map(self._by_default, tiles))
        for tile, figures in zip(tiles, every):
            found = self.cost_of(tile, figures)
            self.costs[tile] = found[0] if found else None
            if found:
                self.needs[tile] = sum(
                    sum(t.lowered.cycles.hot.bounds.values()) / t.lowered.cycles.work for t in figures
                )
        return all(self.costs[tile] is not None for tile in tiles)

    def _by_default(self, tile: Tile) -> list[Tried | None]:
        asked = (self.request.asked,)
        found = [
            (spec, try_candidates(self.request, spec, self.pool, asked, costs_only=True)) for spec in self._spread(tile)
        ]
        return [figures_of(tried, spec.id, *asked) for spec, tried in found]

    def _spread(self, tile: Tile) -> list[LaunchSpec]:
        """The launches with a tile, on a grid that fills the compute units whatever the tile is."""
        return [replace(spec, grid=()) for spec in self.launches_with(tile)]

    def cost_of(self, tile: Tile, figures: list[Tried | None]) -> tuple[float, float] | None:
        """Cost for the same work, and efficiency of the first launch; None where a launch has no matrix work or does not fit."""
        works = [t.lowered.cycles.work if t is not None and t.lowered is not None else 0 for t in figures]
        if not all(works):
            return None
        self.work = self.work or works
        made: list[Cost] = []
        for t, work, own, formula in zip(figures, works, self.work, self.formulas):
            larger = math.prod(b / a for (n, a), (_, b) in zip(self.own, tile) if n in formula.blocks)
            iterations = ITERATIONS * larger * own / work
            made.append(cost(t.lowered.cycles, t.lowered.lds_overflow() is None, (), iterations))
        if not all(x.fits for x in made):
            return None
        mean = math.exp(sum(math.log(max(x.cycles, 1e-9)) for x in made) / len(made))
        return round(mean, 3), made[0].efficiency or 0.0

    def with_choices(self, own: Tile) -> list[TriedTile]:
        """The best tiles with different numbers of warps, the one with the least to hide, and `own`, each with the choices that a search finds
        for it."""
        found = []
        best: dict[int, Tile] = {}  # of each number of warps, on which it depends what there is to choose
        for tile in self.ranked():
            best.setdefault(dict(tile)[WARPS], tile)
        least = min(self.costs, key=lambda tile: self.needs.get(tile, math.inf))
        for tile in dict.fromkeys((*list(best.values())[:SEARCHED], least, own)):
            specs = self._spread(tile)
            chosen, tried = search_tried(self.request, specs, self.pool)
            costs = self.cost_of(tile, [figures_of(tried, spec.id, chosen) for spec in specs])
            if costs is not None:
                found.append(TriedTile(tile, chosen, *costs))
        return found


__all__ = ["Retiled", "TriedTile", "retile_kernel"]
