"""Ranges of tile sizes and numbers of warps, all powers of two, that a kernel holds for."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gluonize.decide.layouts.size_range import Bound, SizeRange

Point = tuple[int, ...]  # a value for each size, in one order
MOST_POINTS = 27  # all neighbours of three sizes; of more sizes, those in which they move together or alone
MOST_SAMPLES = 24
MOST_LANES = 1024  # of a workgroup
LARGEST_TILE = 65536  # elements along one dimension

Limits = Sequence[tuple[int, int]]  # the least and the most that each size may be

Box = tuple[SizeRange, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Region:
    """Sizes in a box that keep to bounds of several of them. elsewhere: regions whose points are not of this one: others have them."""

    box: Box
    bounds: tuple[Bound, ...] = ()
    elsewhere: tuple[Region, ...] = ()

    def holds(self, point: Point) -> bool:
        inside = holds(self.box, point) and within(self.bounds, [size.name for size in self.box], point)
        return inside and not any(region.holds(point) for region in self.elsewhere)

    def points(self) -> list[Point]:
        return [point for point in points(self.box) if self.holds(point)]

    def sample(self, known: int = 0) -> list[Point]:
        """Points all over it: each where they are few, else the same ones at every call. known: how many were tried before, which
        stand for some of them."""
        return some(self.points(), MOST_SAMPLES - min(known, MOST_SAMPLES // 2))

    def trimmed(self) -> Region:
        """The same sizes, without ends of ranges that bounds exclude and bounds that exclude nothing."""
        inside = self.points()
        box = tuple(SizeRange(s.name, min(v), max(v)) for s, v in zip(self.box, zip(*inside))) if inside else self.box
        left = list(self.bounds)
        for bound in self.bounds:
            others = tuple(b for b in left if b is not bound)
            if Region(box, others, self.elsewhere).points() == inside:
                left.remove(bound)
        return Region(box, tuple(left), self.elsewhere)


def some(every: list[T], most: int) -> list[T]:
    """All of them, or `most` of many, the same ones at every call."""
    return every if len(every) <= most else random.Random(len(every)).sample(every, most)


def holds(box: Box, point: Point) -> bool:
    return all(value in size for size, value in zip(box, point))


def within(bounds: Iterable[Bound], names: Sequence[str], point: Point) -> bool:
    return all(bound.holds(dict(zip(names, point))) for bound in bounds)


def corners(box: Box) -> Iterator[Point]:
    """Every combination of least and most values."""
    yield from dict.fromkeys(itertools.product(*((size.least, size.most) for size in box)))


def points(box: Box) -> Iterator[Point]:
    """Every combination of powers of two in the ranges."""
    yield from itertools.product(*([v for i in range(size.most.bit_length()) if (v := 1 << i) in size] for size in box))


def limits_of(tiles: int, lanes: int) -> Limits:
    """The limits of some tile sizes, and of the number of warps last; lanes: of a warp."""
    return [(2, LARGEST_TILE)] * tiles + [(1, MOST_LANES // lanes)]


def all_neighbours(point: Point, limits: Limits) -> list[Point]:
    """All combinations of half, once and twice each size, within the limits of each."""
    return list(itertools.product(*_steps(point, limits)))


def _steps(point: Point, limits: Limits) -> list[list[int]]:
    return [
        [v for v in (value // 2, value, value * 2) if low <= v <= high] for value, (low, high) in zip(point, limits)
    ]


def neighbours(point: Point, limits: Limits) -> list[Point]:
    """`point` and what is a factor of two away from it; of many sizes, some of that."""
    steps = _steps(point, limits)
    every = list(itertools.product(*steps))
    if len(every) <= MOST_POINTS:
        return every
    together = [tuple(steps[i][min(which, len(steps[i]) - 1)] for i in range(len(steps))) for which in range(3)]
    alone = [(*point[:i], value, *point[i + 1 :]) for i, values in enumerate(steps) for value in values]
    mixed = [(*row[:-1], last) for row in together for last in steps[-1]]  # the number of warps comes last
    return list(dict.fromkeys([point, *together, *mixed, *alone]))


def far_alone(point: Point, limits: Limits) -> list[Point]:
    """What is a factor of four away from `point` in one size, within the limits of each."""
    ends = [[v for v in (value // 4, value * 4) if low <= v <= high] for value, (low, high) in zip(point, limits)]
    return [(*point[:i], value, *point[i + 1 :]) for i, values in enumerate(ends) for value in values]


def largest_box(names: Sequence[str], own: Sequence[Point], tried: Iterable[Point], good: set[Point]) -> Box | None:
    """The largest ranges around the points `own` in which every point that was tried is good; None where there are none."""
    tried = list(tried)
    choices = []
    for i in range(len(names)):
        values = sorted({p[i] for p in tried})
        low = [v for v in values if v <= min(p[i] for p in own)]
        high = [v for v in values if v >= max(p[i] for p in own)]
        choices.append([(a, b) for a in low for b in high])
    best: tuple[tuple[int, int], Box] | None = None
    for spans in itertools.product(*choices):
        box = tuple(SizeRange(name, low, high) for name, (low, high) in zip(names, spans))
        inside = [p for p in tried if holds(box, p)]
        if all(p in good for p in inside):
            rank = len(inside), sum(high // low for low, high in spans)
            if best is None or rank > best[0]:
                best = rank, box
    return None if best is None else best[1]


def smaller(box: Box, own: Sequence[Point]) -> Box | None:
    """The box with fewer values of one size that has others than the points `own`; None where none has."""
    for i in reversed(range(len(box))):
        size, values = box[i], [point[i] for point in own]
        if size.most > max(values):
            return (*box[:i], replace(size, most=size.most // 2), *box[i + 1 :])
        if size.least < min(values):
            return (*box[:i], replace(size, least=size.least * 2), *box[i + 1 :])
    return None


def doubled(size: SizeRange, limits: tuple[int, int]) -> SizeRange | None:
    """A range with twice its most, within limits; None where there are no more."""
    return replace(size, most=size.most * 2) if size.most * 2 <= limits[1] else None


def halved(size: SizeRange, limits: tuple[int, int]) -> SizeRange | None:
    """A range with half its least, within limits; None where there are no less."""
    return replace(size, least=size.least // 2) if size.least // 2 >= limits[0] else None


__all__ = [
    "Box",
    "Limits",
    "Point",
    "Region",
    "all_neighbours",
    "corners",
    "doubled",
    "far_alone",
    "halved",
    "holds",
    "largest_box",
    "limits_of",
    "neighbours",
    "points",
    "smaller",
    "some",
    "within",
]
