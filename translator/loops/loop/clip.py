"""Masks of tiles ahead that end with their loop: the loop's end goes into the bound of a comparison.

    before: rows = start + tl.arange(0, B)            (rows[:, None] < n) & (k_ahead < end)
    after:  tl.arange(0, B)[:, None] < gl.where(k_ahead < end, n - start, 0)

What is compared does not change from tile to tile then, and the end costs two scalar instructions instead of one for
each access and lane mask. A mask that is false past the end anyway keeps its bound: `... < n - start`. Only for 64-bit
indices, whose difference does not overflow: on 32 bits `n - start` might. There the bound alone changes:

    after:  rows[:, None] < gl.where(k_ahead < end, n, -(2**31))
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import varies
from gluonize.facts.numbers.signs import Signs
from gluonize.facts.obligations import Obligation
from gluonize.facts.syntax import less_than
from gluonize.gluon.written import Written, addend, binary, call, operand, total
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses.addresses import Term
from gluonize.write.accesses.pointers import scalar_text, term_text
from gluonize.write.accesses.uniform_parts import is_integer, taken_apart
from gluonize.write.state.relations import Wants, operands_in, sliced
from gluonize.write.state.writing import Asking, Writing

if TYPE_CHECKING:
    from gluonize.loops.plan.tiles.tail import TailProof


@dataclass(frozen=True)
class Clip:
    """A comparison `starts + steady < bound` of a tile ahead.

    steady: the same in every iteration, and not negative. ends: whether the loop's end has to go into the bound.
    """

    loop: PipelinedLoop
    starts: tuple[Term, ...]
    steady: Term
    bound: ast.expr
    ends: bool = True

    def text(self, writing: Writing, layout: Layout) -> Written:
        """The comparison in `layout`, for the tile that is being fetched."""
        start = total([("+", addend(scalar_text(writing.emit, s), "+")) for s in self.starts])
        end = counts.condition(writing.emit, self.loop, self.loop.fetch.at)
        first = self.starts[0].node
        product = len(self.starts) == 1 and isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mult)
        left = binary(operand(writing.emit(self.bound)), "-", start if product else operand(start))
        limit = call("gl.where", end, left, "0") if self.ends else left
        return binary(term_text(writing.facts, writing.emit, self.steady, layout), "<", limit)

    def wants(self, asking: Asking, layout: Layout) -> Wants:
        """In which layouts its parts are wanted."""
        return {self.steady.node: sliced(layout, self.steady.axes)}


@dataclass(frozen=True)
class Bounded:
    """A comparison `below < bound` of a tile ahead that is false past the loop's end: nothing is less than the least number."""

    loop: PipelinedLoop
    node: ast.expr
    below: ast.expr
    bound: ast.expr
    ends: bool = True

    def text(self, writing: Writing, layout: Layout) -> Written:
        """The comparison in `layout`, for the tile that is being fetched."""
        end = counts.condition(writing.emit, self.loop, self.loop.fetch.at)
        below = operand(writing.operand_in(self.below, writing.facts.tensor(self.node), layout))
        return binary(below, "<", call("gl.where", end, writing.emit(self.bound), "-(2**31)"))

    def wants(self, asking: Asking, layout: Layout) -> Wants:
        """In which layouts its parts are wanted."""
        return operands_in(asking.facts, [self.below], asking.facts.tensor(self.node), layout)


@dataclass(frozen=True)
class Clipped:
    """clips: by the comparisons of tiles ahead that end with the loop. rings: the names of those whose masks do. guarded: loads of
    row numbers whose masks do, too. assumed: what that rests on."""

    clips: Mapping[ast.AST, Clip | Bounded]
    rings: frozenset[str]
    guarded: frozenset[ast.AST]
    assumed: frozenset[Obligation]


def clipped_masks(
    facts: FunctionFacts, loop: PipelinedLoop, tail: "TailProof", twins: Mapping[ast.AST, ast.AST]
) -> Clipped:
    """The comparisons of masks that can end with `loop`. twins: the syntax for tiles ahead, by what it was made from."""
    clips: dict[ast.AST, Clip | Bounded] = {}
    rings, guarded, assumed = set(), set(), set()
    for ring in loop.rings:
        mask = callees.bound(facts, ring.load.call).get("mask")
        if ring.load.tile is not None or mask is None or callees.is_absent(facts, mask):
            continue
        for node in tail.conjuncts(mask):
            clip = _clip(facts, loop, node, twins, assumed)
            if clip is None and not ring.load.covered and ring.smem not in rings:
                clip = _bounded(facts, loop, node, twins)
            if clip is not None:
                made = twins[node]
                ends = not ring.load.covered or made in clips and clips[made].ends
                clips[made] = replace(clip, ends=ends)
                rings.add(ring.smem)
    for call in loop.plan.runs.guarded:
        mask = callees.bound(facts, call).get("mask")
        for node in tail.conjuncts(mask) if mask is not None else ():
            clip = clips.get(twins.get(node)) or _bounded(facts, loop, node, twins)
            if clip is not None and clip.ends:
                clips[twins[node]] = clip
                guarded.add(twins[call])
    return Clipped(clips, frozenset(rings), frozenset(guarded), frozenset(assumed))


def _bounded(
    facts: FunctionFacts, loop: PipelinedLoop, node: ast.expr, twins: Mapping[ast.AST, ast.AST]
) -> Bounded | None:
    """Only for 32-bit indices that differ from tile to tile: other comparisons are made once, before the loop."""
    if node not in twins or (sides := less_than(twins[node])) is None:
        return None
    below, bound = sides
    fact = facts.tensor(below)
    if fact is None or fact.dtype != "int32" or not is_integer(facts, bound):
        return None
    if getattr(facts.fact(bound), "dtype", "int32") != "int32":  # a compile-time number has none
        return None
    changes = any(varies(facts, loop.plan.loop, side) for side in less_than(node))
    return Bounded(loop, twins[node], below, bound) if changes else None


def _clip(
    facts: FunctionFacts,
    loop: PipelinedLoop,
    node: ast.expr,
    twins: Mapping[ast.AST, ast.AST],
    assumed: set[Obligation],
) -> Clip | None:
    """assumed: what it rests on is added."""
    if node not in twins or (sides := less_than(node)) is None:
        return None
    below, bound = sides
    fact = facts.tensor(below)
    if fact is None or fact.dtype != "int64" or not is_integer(facts, bound):
        return None
    found = taken_apart(facts, Term(below, "+"), loop.plan.loop)
    if found is None:
        return None
    starts, steady = found
    proof = Signs(facts, "a mask that ends with its loop")
    if steady.factors or any(s.factors for s in starts) or not proof.holds(steady.node):
        return None
    assumed |= proof.assumed
    return Clip(loop, tuple(Term(twins.get(s.node, s.node), "+") for s in starts), steady, twins.get(bound, bound))


__all__ = ["Bounded", "Clip", "Clipped", "clipped_masks"]
