"""Tiles that travel through registers, stored as soon as both groups of warps have read what they replace: one slot is enough.

memory (read b, a_0, load a of tile k + N) | compute | memory (read a_1, a_2, load b) | compute | memory (store both) | compute

A tile is read in full before the last compute stage: its last part is read a stage earlier, or the last product needs no part of its
own. The stage between the last two products is then free for the stores, two stages behind the last read and two in front of the next
one. The loads stand in stages of their own, so that stages are of one length, and have most of an iteration to come back.
"""

from __future__ import annotations

from gluonize.gluon.nodes import Assign, Line, Load, Node, Product, places, walk
from gluonize.loops.passes import slices
from gluonize.loops.passes.slices import SlicedDot
from gluonize.loops.passes.stages import StagePlan, Statements

Contents = list[list[Statements]]


def stages_of(sliced: SlicedDot) -> tuple[StagePlan, ...]:
    """The stages of a loop that stores its tiles early: those of its slices, and one more of each kind where the last product
    reads nothing of its own."""
    rows, columns = sliced.parts
    extra = (StagePlan("memory", ()), StagePlan("compute", ())) if rows > 1 and columns > 1 else ()
    return (*slices.stages_of(sliced), *extra)


def with_stores(contents: Contents, stores: Statements) -> Contents:
    """What each of these stages holds. contents: of the stages of slices; stores: of the tiles that the iteration has loaded."""
    *before, last = contents
    products = [i for i, step in enumerate(last) if any(isinstance(n, Product) for n in walk(step))]
    if len(products) > 1:
        placed = [*before, last[: products[-1]], [stores], last[products[-1] :]]
    else:
        *before, early, compute, late = before
        placed = [*before, [*early, *late], compute, [stores], last]
    return _loads_apart(placed)


def _loads_apart(contents: Contents) -> Contents:
    """The second load in the second memory stage, the third in the third, if the stores are behind it; as they are where what
    stands behind a load may move what it reads."""
    first = [s for step in contents[0] for s in step]
    loads = [i for i, s in enumerate(first) if isinstance(s, Load)]
    if not loads or not all(_leaves_addresses(s) for s in first[loads[0] :]):
        return contents
    last = len(contents) - 4  # the last memory stage in front of that of the stores
    stage_of = {i: min(2 * n, last) for n, i in enumerate(loads)}
    apart = [[tuple(s for i, s in enumerate(first) if not stage_of.get(i))], *(list(stage) for stage in contents[1:])]
    for i, stage in stage_of.items():
        if stage:
            apart[stage].append((first[i],))
    return apart


def _leaves_addresses(s: Node) -> bool:
    """Whether a statement is a load, a comment, or names or reads a tile in LDS."""
    if isinstance(s, Assign):
        return bool(places(s.value))
    return isinstance(s, Load) or isinstance(s, Line) and s.is_comment


__all__ = ["stages_of", "with_stores"]
