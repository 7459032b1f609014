"""Statements of loops behind a branch, which most iterations do not change anything by.

x = gl.where(rows[:, None] >= cols[None, :], x, other)    ->    if crosses(n, N, row, M):
                                                                    x = gl.where(rows[:, None] >= cols[None, :], x, other)
acc = acc * alpha[:, None]                                ->    if rescales(alpha):
                                                                    acc = acc * alpha[:, None]
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass

from gluonize.facts.loops.masks import Ordered, Run, Selection, is_of_itself, selection_of
from gluonize.facts.loops.rescales import Rescale, rescale_of
from gluonize.gluon.written import Written, addend, binary, call, literal, total
from gluonize.trace.model.layouts import Layout, Slice
from gluonize.write.state.relations import Wants
from gluonize.write.state.site import Site, Spot
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import Writing

_TEXT = '''@gluon.jit
def {name}(low, LOWS: gl.constexpr, high, HIGHS: gl.constexpr):
    """Whether one of the `LOWS` numbers from `low` on is {beyond} one of the `HIGHS` from `high` on."""
    last_low, last_high = low + (LOWS - 1), high + (HIGHS - 1)
    # A number that has wrapped around is less than the one before it.
    return (last_low {sign} high) | (last_low < low) | (last_high < high)
'''
_CROSSES = Synthesized("crosses", _TEXT.format(name="crosses", beyond="beyond", sign=">"))
_MEETS = Synthesized("meets", _TEXT.format(name="meets", beyond="beyond, or the same as,", sign=">="))


_RESCALES = Synthesized(
    "rescales",
    '''@gluon.jit
def rescales(factor):
    """Whether one of the factors is not 1; NaN is none either."""
    return gl.max((factor != 1.0).to(gl.int32), 0) != 0
''',
)


@dataclass(frozen=True)
class Needed:
    """What decides whether a statement `x = f(x)` changes anything. kept: the `x` that it reads, None where that is its target.
    condition: of which it does. reads: the expressions of the source in it."""

    kept: ast.Name | None
    condition: Written
    reads: tuple[ast.expr, ...]


def needed(site: Site, s: ast.stmt, layout: Layout) -> Needed | None:
    """What decides whether a statement of a loop, which gives a tensor in `layout`, is needed; None where it always is, or no choice
    asks."""
    choices = site.decided.choices
    if not site.loops:
        return None
    if choices.asks("loop-masks", "where-needed"):
        selection = selection_of(site.facts, getattr(s, "value", s), site.loops[-1])
        if selection is not None and is_of_itself(s, selection):
            return Needed(selection.kept, _leaves_out(site, selection), tuple(selection.numbers))
    if (rescale := _rescaled(site, s)) is not None:
        factor = site.texts(wants(site, s, layout))[rescale.factor]
        return Needed(rescale.kept, call(site.added(_RESCALES), factor), (rescale.factor,))
    return None


def _rescaled(site: Site, s: ast.stmt) -> Rescale | None:
    """What a statement of a loop multiplies by, where a choice asks whether it has to."""
    lazy = site.loops and site.decided.choices.asks("rescaling", "lazy") and may_reduce(site)
    return rescale_of(site.facts, s) if lazy else None


def wants(site: Spot, s: ast.stmt, layout: Layout) -> Wants:
    """What asking whether a statement is needed, which gives a tensor in `layout`, wants; masks are asked by numbers alone."""
    rescale = _rescaled(site, s)
    return {} if rescale is None else {rescale.factor: Slice(rescale.axis, layout)}


def may_reduce(site: Site) -> bool:
    """Whether all warps of a program may meet for one number: not those that take turns or have parts of their own, nor workgroups."""
    apart = site.partitioned or site.decided.choices.asks("warp-groups", "alternating") or site.decided.strategy
    return not apart and site.facts.kernel.num_ctas == 1


def _leaves_out(writing: Writing, selection: Selection) -> Written:
    """Whether a mask leaves something out."""
    parts = [_left_out(writing, mask) for mask in selection.masks]
    return functools.reduce(lambda a, b: binary(a, "|", b), parts)


def _left_out(writing: Writing, mask: Ordered) -> Written:
    function = writing.added(_MEETS if mask.strict else _CROSSES)
    return call(function, *_arguments(writing, mask.low), *_arguments(writing, mask.high))


def _arguments(writing: Writing, run: Run) -> tuple[Written, Written]:
    start = total([(sign, addend(writing.emit(node), sign)) for sign, node in run.start]) if run.start else literal(0)
    return start, literal(1) if run.size is None else writing.emit(run.size)


__all__ = ["Needed", "needed", "wants"]
