"""Layouts of a helper whose tensors have other shapes in other specializations: asked of a tensor, so that one text may do for all.

layout: gl.constexpr = gl.BlockedLayout([1, 1, 4], ...)     y = gl.reshape(x, shape)
y = gl.reshape(x, shape)                                ->  layout: gl.constexpr = y.type.layout

What the helper takes and gives in one shape keeps its layout; the rest follows from that by Gluon's own inference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from translator.facts.siblings import varies
from translator.facts.source_text import SourceText, replace_spans
from translator.layout.names import Asked
from translator.rewrite.emission import Emission
from translator.rewrite.statements import statement_of
from translator.rewrite.tuples import flatten
from translator.ttgir.layouts import Blocked, DotOperand, Layout, Linear


def offer(rw: Emission, node: ast.expr, layout: Layout, tensor: str, shape: str) -> None:
    """`gl.reshape(tensor, shape)`, which the statement of `node` can make, has `layout`."""
    s = statement_of(rw.facts.tree, node)
    if isinstance(s, ast.stmt) and tensor.isidentifier() and isinstance(layout, (Blocked, Linear)):
        rw.instance_layouts.setdefault((layout, s), f"gl.reshape({tensor}, {shape}).type.layout")


def insert(rw: Emission) -> None:
    """Define the layouts where they are offered; `chosen` keeps the definitions that serve."""
    variables = list(_variables(rw))
    if not rw.instance_layouts and not variables:
        return
    fixed = _agreed(rw).union(*(_agreed(rw.unit.helper_versions[i][0]) for i in rw.record.helpers))
    fixed |= {layout.parent.root for layout in rw.names.order if isinstance(layout, DotOperand)}
    for (layout, statement), text in rw.instance_layouts.items():
        if layout not in fixed:
            rw.insert_before(statement, f"{rw.names.spell(layout)}: gl.constexpr = {text}")
    for layout, statement, name in variables:
        if layout not in fixed:
            rw.append_lines(statement, [f"{rw.names.spell(layout)}: gl.constexpr = {name}.type.layout"])


def _variables(rw: Emission) -> Iterator[tuple[Layout, ast.stmt, str]]:
    """(layout, statement, name) of the variables that have other shapes elsewhere, where the function's own block defines them."""
    own = {s for s in rw.facts.tree.body if isinstance(s, ast.Assign)}
    for web in rw.facts.webs.all:
        state = rw.states.get(web.index)
        if state is None or state.split is not None or web.is_parameter:
            continue
        layout = state.variants[0] if state.cheap and state.variants else state.home
        d = web.definitions[0]
        plain = isinstance(layout, (Blocked, Linear)) and d.node in own and d.value is not None
        if plain and isinstance(d.node.targets[0], ast.Name) and varies(rw.facts, d.value):
            yield layout, d.node, d.name


def _agreed(rw: Emission) -> set[Layout]:
    """The layouts in which a helper takes tensors and gives them back: its callers know these."""
    own = [*rw.argument_homes.values(), rw.wants]
    own += [s.home for s in rw.states.values() if s.web.is_parameter]
    own += [layout for s in rw.states.values() if s.web.is_parameter for layout in s.variants]
    return {layout.root for layout in flatten(tuple(own)) if layout is not None}


def chosen(rw: Emission, text: str) -> str:
    """A function's text, with placeholders for layouts, with one definition for each layout that a tensor is asked for, if that is
    before all its uses."""
    offered = {rw.names.spell(layout): layout for layout in rw.names.order}
    instead: dict[Layout, Layout] = {}
    done: set[str] = set()
    while True:
        source = SourceText(text)
        tree = ast.parse(text).body[0]
        found = _definitions(tree, offered.keys() - done)
        if not found:
            return rw.names.moved_to(rw.names, text, instead) if instead else text
        name, places = next(iter(found.items()))
        done.add(name)
        kept = _serving(tree, name, places)
        if kept is not None:
            layout, value = offered[name], source.of(kept.value)
            instead[layout] = Asked(value, layout.rank)
        text = replace_spans(text, 0, len(text), [_without(source, b[i]) for b, i in places if b[i] is not kept])


def _definitions(tree: Any, names) -> dict[str, list[tuple[list[ast.stmt], int]]]:
    """The definitions of layouts: the block and place of each."""
    found: dict[str, list[tuple[list[ast.stmt], int]]] = {}
    for block in _blocks(tree):
        for i, s in enumerate(block):
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.target.id in names:
                found.setdefault(s.target.id, []).append((block, i))
    return found


def _serving(tree: Any, name: str, places: list[tuple[list[ast.stmt], int]]) -> Any:
    """The definition that stands before all uses: of a variable rather than of an expression, then the first one."""
    own = {block[i].target for block, i in places}
    uses = {n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name} - own
    serving = []
    for block, i in places:
        following = {n for s in block[i + 1 :] for n in ast.walk(s)}
        if uses and uses <= following:
            value = block[i].value.value.value  # type: ignore[attr-defined]
            serving.append((not isinstance(value, ast.Name), block[i].lineno, block[i]))
    return min(serving, key=lambda found: found[:2])[2] if serving else None


def _without(source: SourceText, s: ast.stmt) -> tuple[int, int, str]:
    return source.starts[s.lineno - 1], source.line_end(s) + 1, ""


def _blocks(tree: Any) -> list[list[ast.stmt]]:
    return [b for n in ast.walk(tree) for f in ("body", "orelse") if isinstance(b := getattr(n, f, None), list) and b]
