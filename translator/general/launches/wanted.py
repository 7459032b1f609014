"""The sizes that a region of one text is sought for, and which of two regions is the better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gluonize.decide.layouts.size_range import SizeRange
from gluonize.general.box import Limits, Point, Region, corners, neighbours
from gluonize.general.launches.trials import Key, Loose

# What translations do without, None for the kernel as it is without its neighbours. A kernel keeps what runs ahead of its loops.
STARTS = (None, Loose.NOTHING, Loose.PLACES, Loose.ROWS)

Rank = tuple[int, int, int]  # the points around in a region, those that are good, and less for what does without more


@dataclass(frozen=True)
class Rest:
    """Sizes for which a text is sought whose loops load as they go. around: those of which neighbours are of interest; elsewhere: the
    regions of texts that come first."""

    around: tuple[Point, ...]
    elsewhere: tuple[Region, ...]

    def tried(self, limits: Limits) -> list[Point]:
        """What is looked at: neighbours, and all of them that are furthest away, but for those that other texts have."""
        near = [p for point in self.around for p in neighbours(point, limits)]
        ends = [SizeRange("", min(values), max(values)) for values in zip(*near)]
        every = dict.fromkeys([*near, *corners(tuple(ends))])
        return [point for point in every if not any(region.holds(point) for region in self.elsewhere)]


@dataclass(frozen=True)
class Sought:
    """What a general text is sought for: launches, and sizes beside them. brief: no sizes further away than a factor of two, nor other
    element types and flags. rest: what is looked at instead of neighbours of the launches, which are among it; then nothing runs ahead of
    its loop.
    """

    brief: bool = False
    rest: Rest | None = None

    @property
    def starts(self) -> Sequence[Loose | None]:
        return STARTS if self.rest is None else (Loose.LOOPS,)

    @property
    def elsewhere(self) -> tuple[Region, ...]:
        return () if self.rest is None else self.rest.elsewhere

    def tried(self, points: Sequence[Point], limits: Limits) -> list[Point]:
        """The sizes that are looked at first; points: those of the launches."""
        if self.rest is not None:
            return self.rest.tried(limits)
        return [near for point in points for near in neighbours(point, limits)]


@dataclass(frozen=True)
class Wanted:
    """tried: the points that a region is sought among; taken: all that Triton takes, those further away too; keys: of all."""

    tried: Sequence[Point]
    taken: Sequence[Point]
    keys: Sequence[Key]

    @cached_property
    def around(self) -> frozenset[Point]:
        return frozenset(self.tried) & frozenset(self.taken)

    @property
    def perfect(self) -> Rank:
        """No region has a higher rank, and none has this one that does without anything."""
        return len(self.around), len(self.taken), 0


__all__ = ["Rank", "Rest", "Sought", "Wanted"]
