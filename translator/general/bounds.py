"""Bounds of several sizes that tell launches with the text of a kernel from those with another one.

Triton's passes choose another way where warps have too few elements, or tiles find no room in LDS. `bounds_between` finds what
tells apart the launches that were tried: a product of sizes over others that is large enough, or LDS that is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gluonize.decide.layouts.formulas import Product
from gluonize.decide.layouts.size_range import Bound, RatioBound, RoomBound, SizeRange
from gluonize.general.box import Point, points, some

MOST_BOUNDS = 4
MOST_SIZES = 3  # in one bound
MOST_BETWEEN = 200  # points that bounds are compared by
MOST_SLOTS = 8  # of a ring


def bounds_between(
    names: Sequence[str],
    good: Iterable[Point],
    bad: Iterable[Point],
    own: Sequence[Point],
    tiles: tuple[Product, ...] = (),
    room: int = 0,
) -> tuple[Bound, ...]:
    """As few bounds as exclude many of the points `bad`, and few of the points `good`; none of the points `own`.

    tiles: the bytes of what is in LDS several times, room: of LDS.
    """
    kept, left = {p: dict(zip(names, p)) for p in good}, {p: dict(zip(names, p)) for p in bad}
    between = [dict(zip(names, p)) for p in _between([*kept, *left])]
    found: list[Bound] = []
    while left and len(found) < MOST_BOUNDS:
        best: tuple[tuple[int, int, int], Bound] | None = None
        for bound in _candidates(names, kept, own, tiles, room):
            gained = sum(not bound.holds(sizes) for sizes in left.values())
            lost = sum(not bound.holds(sizes) for sizes in kept.values())
            if gained <= 2 * lost or best is not None and gained - 2 * lost < best[0][0]:
                continue
            # Of those that tell apart as many, the one that leaves most of what was not tried.
            rank = gained - 2 * lost, sum(map(bound.holds, between)), -len(bound.sizes) * isinstance(bound, RatioBound)
            if best is None or rank > best[0]:
                best = rank, bound
        if best is None:
            break
        found.append(best[1])
        kept = {p: sizes for p, sizes in kept.items() if best[1].holds(sizes)}
        left = {p: sizes for p, sizes in left.items() if best[1].holds(sizes)}
    return tuple(found)


def _between(tried: Sequence[Point]) -> list[Point]:
    """Some of all points between those that were tried."""
    ends = [(min(values), max(values)) for values in zip(*tried)]
    return some(list(points(tuple(SizeRange("", least, most) for least, most in ends))), MOST_BETWEEN)


def _candidates(
    names: Sequence[str],
    good: Mapping[Point, Mapping[str, int]],
    own: Sequence[Point],
    tiles: tuple[Product, ...],
    room: int,
) -> Iterator[Bound]:
    if tiles:
        for slots in range(1, MOST_SLOTS + 1):
            bound = RoomBound(tiles, slots, room)
            if all(bound.holds(dict(zip(names, point))) for point in own):
                yield bound
    for signs in itertools.product((0, 1, -1), repeat=len(names)):
        if not 2 <= sum(map(abs, signs)) <= MOST_SIZES:
            continue
        exponents = tuple((name, sign) for name, sign in zip(names, signs) if sign)
        logs = {point: _log(point, signs) for point in (*good, *own)}
        most = min(logs[point] for point in own)
        for log in sorted({value for value in logs.values() if value <= most}):
            yield RatioBound(exponents, 2**log if log >= 0 else -(2**-log))


def _log(point: Point, signs: Sequence[int]) -> int:
    return sum(sign * (value.bit_length() - 1) for sign, value in zip(signs, point))


__all__ = ["bounds_between"]
