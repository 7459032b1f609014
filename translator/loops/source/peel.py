"""Loops in two: iterations in which no mask leaves anything out, and the others.

for n in range(0, end, N):                       n_whole = min(... // N * N, end)
    x = tl.dot(q, k)                             for n in range(0, n_whole, N):
    x = tl.where(rows >= n + cols, x, other)         x = tl.dot(q, k)
    ...                                              ...
                                                 for n in range(n_whole, end, N):
                                                     x = tl.dot(q, k)
                                                     x = tl.where(rows >= n + cols, x, other)
                                                     ...

The new source is traced again, so nothing else has to know.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import int_of, is_index, loop_bounds, varies
from gluonize.facts.loops.masks import Ordered, Selection, is_mask, is_number, is_of_itself, selection_of
from gluonize.facts.syntax import blocks_of
from gluonize.gluon.written import Written, addend, form_of, operand, total
from gluonize.numbered import numbered
from gluonize.read.text.source_text import edited_copy, replace_spans
from gluonize.triton_api.front_end import CompilationError

_Selections = list[tuple[ast.stmt, Selection]]  # with the statement that each stands in


def peel_masks(launch: Any, facts: FunctionFacts, retrace: Callable[[Any], Any]) -> Any:
    """`launch`, traced again with the loops of its kernel in two where that takes masks out of the first. facts: of the kernel.

    Where Triton does not take the loops, they stay.
    """
    fn = _peeled(facts)
    if fn is None:
        return launch
    try:
        return retrace(fn)
    except CompilationError:
        return launch


def _peeled(facts: FunctionFacts) -> Any | None:
    """A copy of the kernel with such loops in two; None where there are none."""
    edits: list[tuple[int, int, str]] = []
    for loop in facts.for_loops:
        selections = _selections(facts, loop)
        if selections and not _within(loop, edits, facts) and (text := _in_two(facts, loop, selections)) is not None:
            edits.append((*facts.source.span(loop), text))
    return edited_copy(facts.frame.fn, facts.source, edits) if edits else None


def _within(loop: ast.For, edits: list[tuple[int, int, str]], facts: FunctionFacts) -> bool:
    """Whether a loop stands in one that is in two already."""
    start, end = facts.source.span(loop)
    return any(a <= start and end <= b for a, b, _ in edits)


def _selections(facts: FunctionFacts, loop: ast.For) -> _Selections:
    """The selections of a loop, those in loops and in selections within it left out."""
    found = [
        (s, selection_of(facts, node, loop))
        for s in _statements(loop.body)
        if facts.taken(s) and isinstance(s, ast.Assign | ast.AugAssign)
        for node in ast.walk(s.value)
    ]
    whole = [(s, x) for s, x in found if x is not None and _ends(facts, loop, x)]
    within = {n for _, x in whole for n in ast.walk(x.call) if n is not x.call}
    return [(s, x) for s, x in whole if x.call not in within]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for s in body:
        yield s
        if isinstance(s, ast.If | ast.With):
            for inner in blocks_of(s):
                yield from _statements(inner)


def _ends(facts: FunctionFacts, loop: ast.For, selection: Selection) -> bool:
    """Whether everything is kept up to some iteration of a loop from 0 on, whose steps are as long as what is compared."""
    bounds = loop_bounds(facts, loop)
    if bounds is None or bounds[0] is not None or len(loop.iter.args) != 3 or not is_number(facts, bounds[1]):
        return False
    step = int_of(facts, loop.iter.args[2])
    return all(_ends_at(facts, loop, mask, step) for mask in selection.masks)


def _ends_at(facts: FunctionFacts, loop: ast.For, mask: Ordered, step: int | None) -> bool:
    low, high = mask.low, mask.high
    if len(low.start) != 1 or not high.start or low.size is None or int_of(facts, low.size) != step:
        return False
    ((sign, index),) = low.start
    if sign != "+" or not isinstance(index, ast.Name) or not is_index(facts, loop, index):
        return False
    # The last number of several is none that one could not be added to.
    several = high.size is not None and (int_of(facts, high.size) or 0) > 1
    return (several or mask.strict and high.size is None) and not any(varies(facts, loop, n) for _, n in high.start)


def _in_two(facts: FunctionFacts, loop: ast.For, selections: _Selections) -> str | None:
    """The text of both loops, as it replaces that of the one."""
    source, indent = facts.source, facts.source.indent(loop)
    start, end = source.span(loop)
    first = _without(facts, loop, selections)
    if first is None or source.lines[loop.lineno - 1][: loop.col_offset].strip():
        return None
    index = numbered(f"{loop.target.id}_whole", facts.source_names.__contains__)
    low, high, step = loop.iter.args
    masks = list(dict.fromkeys(_end_text(facts, m, step) for _, x in selections for m in x.masks))
    whole = f"{index} = {_least([*masks, source.of(high)])}"
    one = replace_spans(source.text, start, end, sorted([*first, (*source.span(high), index)]))
    other = replace_spans(source.text, start, end, [(*source.span(low), index)])
    note = f"# Before `{index}` the masks of the loop leave nothing out; a sum that wraps around is less than its first number."
    return f"\n{indent}".join([note, whole, one, other])


def _least(numbers: list[str]) -> str:
    """The least of several numbers, two at a time."""
    first, *rest = numbers
    return f"min({first}, {_least(rest)})" if rest else first


def _end_text(facts: FunctionFacts, mask: Ordered, step: ast.expr) -> str:
    """The first multiple of the step at which something may be left out."""

    def spelled(node: ast.expr) -> Written:
        return Written(facts.source.of(node), form_of(node))

    by = operand(spelled(step))
    first = total([(sign, addend(spelled(n), sign)) for sign, n in mask.high.start])
    if mask.high.size is None:
        return f"max({first}, 0) // {by} * {by}"
    least = f"min({first}, {first} + ({operand(spelled(mask.high.size))} - 1))"
    return f"max({least}, 0) // {by} * {by}" if mask.strict else f"(max({least}, -1) + 1) // {by} * {by}"


def _without(facts: FunctionFacts, loop: ast.For, selections: _Selections) -> list[tuple[int, int, str]] | None:
    """The edits that take selections out of a loop, with what makes their masks alone; None where one shares a line."""
    source, edits = facts.source, []
    blocks = [loop.body, *(b for s in _statements(loop.body) for b in blocks_of(s))]
    gone = [s for s, x in selections if is_of_itself(s, x)]
    gone += list(_only_for(facts, loop, selections, gone))
    for s, x in selections:
        if s not in gone:
            edits.append((*source.span(x.call), operand(Written(source.of(x.kept), form_of(x.kept))).text))
    for s in gone:
        start, end = source.starts[s.lineno - 1], source.line_end(s) + 1
        own = source.text[start:end].strip()
        if own != source.of(s) and not own.startswith(f"{source.of(s)}  #"):
            return None
        block = next(b for b in blocks if s in b)
        edits.append((*source.span(s), "pass") if all(x in gone for x in block) else (start, end, ""))
    return edits


def _only_for(facts: FunctionFacts, loop: ast.For, selections: _Selections, gone: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop that give a name to what nothing but `selections` reads, and those that are gone with them."""
    inside = {n for _, x in selections for n in ast.walk(x.call)} - {n for _, x in selections for n in ast.walk(x.kept)}
    inside |= {n for s in gone for n in ast.walk(s)}
    for s in _statements(loop.body):
        if isinstance(s, ast.Assign) and s not in gone and isinstance(s.targets[0], ast.Name) and len(s.targets) == 1:
            web = facts.webs.of_definition.get((s, s.targets[0].id))
            reads = {name for name, _ in web.reads} if web is not None and len(web.definitions) == 1 else set()
            if reads and reads <= inside and is_mask(facts, s.value):
                yield s


__all__ = ["peel_masks"]
