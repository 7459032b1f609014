"""Selections of loops behind a branch: their masks are made only where something is left out.

x = gl.where(rows[:, None] >= cols[None, :], x, other)    ->    if crosses(n, N, row, M):
                                                                    x = gl.where(rows[:, None] >= cols[None, :], x, other)
"""

from __future__ import annotations

import functools

from translator.facts.loop_masks import Ordered, Run, Selection
from translator.gluon.written import Written, addend, binary, call, literal, total
from translator.rewrite.unit import Synthesized
from translator.rewrite.writing import Writing

_TEXT = '''@gluon.jit
def {name}(low, LOWS: gl.constexpr, high, HIGHS: gl.constexpr):
    """Whether one of the `LOWS` numbers from `low` on is {beyond} one of the `HIGHS` from `high` on."""
    last_low, last_high = low + (LOWS - 1), high + (HIGHS - 1)
    # A number that has wrapped around is less than the one before it.
    return (last_low {sign} high) | (last_low < low) | (last_high < high)
'''
_CROSSES = Synthesized("crosses", _TEXT.format(name="crosses", beyond="beyond", sign=">"))
_MEETS = Synthesized("meets", _TEXT.format(name="meets", beyond="beyond, or the same as,", sign=">="))


def condition(writing: Writing, selection: Selection) -> Written:
    """Whether a mask leaves something out."""
    parts = [_left_out(writing, mask) for mask in selection.masks]
    return functools.reduce(lambda a, b: binary(a, "|", b), parts)


def _left_out(writing: Writing, mask: Ordered) -> Written:
    function = writing.added(_MEETS if mask.strict else _CROSSES)
    return call(function, *_arguments(writing, mask.low), *_arguments(writing, mask.high))


def _arguments(writing: Writing, run: Run) -> tuple[Written, Written]:
    start = total([(sign, addend(writing.emit(node), sign)) for sign, node in run.start]) if run.start else literal(0)
    return start, literal(1) if run.size is None else writing.emit(run.size)


__all__ = ["condition"]
