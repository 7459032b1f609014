"""Texts of a kernel for other sizes than those of its launch, where the text of the launch does not hold for them.

Triton's passes pipeline a loop for some sizes and not for others, or copy other tiles to LDS: no layout makes one text of these. Each text
has limits of its own, and the kernel picks the one whose limits hold. Other numbers of warps, which an autotuner tries, have texts that
pipeline as Triton does there; what is left within a factor of two has one whose loops load as they go, which more sizes share.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gluonize.decide.layouts.size_range import RoomBound, SizeRange
from gluonize.general.box import Point, all_neighbours, limits_of
from gluonize.general.launches.trials import WARPS, Tools, with_sizes
from gluonize.output.merging.kernel_family import KernelVersion
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.contracts.contracts import shape_parameters

MOST_WARPS = 16
MOST_TEXTS = 3  # for other numbers of warps, and as many for what is left: each takes a search
MOST_LEFT = 2  # sizes that get texts of their own where there are no more without one

Alone = Callable[[LaunchSpec, Sequence[KernelVersion], Sequence[Point]], KernelVersion | None]


def with_other_texts(found: list[KernelVersion], alone: Alone, tools: Tools, lanes: int) -> list[KernelVersion]:
    """The versions of a launch, with those for other numbers of warps, and for sizes within a factor of two, that they do not hold for,
    but for want of LDS.

    alone: gives the version for other sizes, beside those that there are; with sizes whose neighbours are of interest, one for these.
    lanes: of a warp.
    """
    first = found[0]
    tiles = tile_sizes([first])
    own = (*(first.spec.constexprs[name] for name in tiles), first.num_warps)
    names = (*tiles, WARPS)
    texts = _Texts(names, alone, tools, [_told_whole(first, names, own)])
    texts.add(_other_warps(own), ())
    texts.add(_around(own, lanes), (own,))
    if len(left := list(itertools.islice(texts.without(_around(own, lanes)), MOST_LEFT + 1))) <= MOST_LEFT:
        texts.add(left, ())
    every = texts.found
    if len(every) == 1:
        return found
    if not any(size.least < size.most for text in every for size in text.holds_for):
        return [
            *found,
            *(replace(text, holds_for=(), bounds=()) for text in every[1:]),
        ]  # as launches that were asked for
    beside = [replace(v, holds_for=every[0].holds_for, bounds=every[0].bounds) for v in found[1:]]
    return [every[0], *beside, *every[1:]]


@dataclass
class _Texts:
    """The texts of a kernel so far, that of its launch first."""

    names: Sequence[str]
    alone: Alone
    tools: Tools
    found: list[KernelVersion]

    def add(self, points: Iterable[Point], around: Sequence[Point]) -> None:
        """Texts for points for which there is none; around: as of `alone`."""
        for point in itertools.islice(self.without(points), MOST_TEXTS):
            sizes = dict(zip(self.names, point))
            told = ", ".join(f"{name}={value}" for name, value in sizes.items())
            spec = replace(self._with(sizes), id=f"{self.found[0].spec.id} with {told}")
            other = self.alone(spec, self.found, around)
            if other is not None:
                self.found.append(_told_whole(other, self.names, point))

    def without(self, points: Iterable[Point]) -> Iterator[Point]:
        """The points for which there is no text when they are reached, of those that Triton takes."""
        for point in points:
            sizes = dict(zip(self.names, point))
            taken = any(takes(text, sizes) for text in self.found)
            if not taken and self.tools.trace(self._with(sizes)) is not None:
                yield point

    def _with(self, sizes: dict[str, int]) -> LaunchSpec:
        return with_sizes(self.found[0].spec, sizes)


def _other_warps(own: Point) -> list[Point]:
    """The same tiles with other numbers of warps, nearest first: what an autotuner's configurations mostly differ in."""
    warps = (1 << i for i in range(MOST_WARPS.bit_length()))
    return [(*own[:-1], w) for w in sorted(warps, key=lambda w: (abs(w.bit_length() - own[-1].bit_length()), w))]


def _around(own: Point, lanes: int) -> list[Point]:
    """All sizes within a factor of two: nearest first, and of these the greater ones, which matrix cores take as they do those of the launch."""
    every = all_neighbours(own, limits_of(len(own) - 1, lanes))

    def rank(point: Point) -> tuple[int, int]:
        pairs = list(zip(point, own))
        return sum(value != mine for value, mine in pairs), sum(value < mine for value, mine in pairs)

    return sorted(every, key=rank)


def _told_whole(version: KernelVersion, names: Sequence[str], own: Point) -> KernelVersion:
    """A version that says the ranges of all sizes: those that its layouts do not depend on are what tells it from other texts."""
    known = {size.name: size for size in version.holds_for}
    ranges = tuple(known.get(name, SizeRange(name, value, value)) for name, value in zip(names, own))
    return replace(version, holds_for=ranges)


def takes(version: KernelVersion, sizes: dict[str, int]) -> bool:
    """Whether a version holds for sizes, or would if there were more LDS: rings that find no room are no reason for a text without them."""
    inside = all(sizes[size.name] in size for size in version.holds_for if size.name in sizes)
    return inside and all(bound.holds(sizes) for bound in version.bounds if not isinstance(bound, RoomBound))


def tile_sizes(versions: Sequence[KernelVersion]) -> list[str]:
    """The tile sizes: powers of two in all launches, on which shapes depend."""
    shapes = shape_parameters(versions[0].loaded.fn)
    named = [name for name in versions[0].spec.constexprs if name in shapes]
    return [name for name in named if all(_is_size(v.spec.constexprs.get(name)) for v in versions)]


def _is_size(value: object) -> bool:
    return type(value) is int and value > 1 and value & (value - 1) == 0


__all__ = ["takes", "tile_sizes", "with_other_texts"]
