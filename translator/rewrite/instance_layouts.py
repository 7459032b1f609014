"""Layouts of a helper that several specializations share, whose tensors have other shapes in each: asked of a tensor.

layout: gl.constexpr = gl.DistributedLinearLayout(...)     y = gl.reshape(x, shape)
y = gl.convert_layout(gl.reshape(x, shape), layout)    ->  layout: gl.constexpr = y.type.layout

One layout for all shapes would have the data move between lanes in each specialization but one. What the helper takes
and gives keeps its layout; the rest follows from that by Gluon's own inference.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from translator.rewrite.emission import Emission
from translator.facts.function import FunctionFacts
from translator.frontend.trace import TensorFact, node_key
from translator.rewrite.tuples import flatten
from translator.facts.source_text import SourceText, replace_spans
from translator.rewrite.statements import statement_of
from translator.ttgir.layouts import Layout

_DEFINITION = re.compile(r"__layout_\d+__")


def varies(facts: FunctionFacts, node: ast.expr) -> bool:
    """Whether the specializations that share this text give `node` different shapes."""
    seen = [v.fact for v in facts.frame.visits.get(node_key(node), [])]
    return facts.frame.joined and len({f.shape for f in seen if isinstance(f, TensorFact)}) > 1


def offer(rw: Emission, node: ast.expr, layout: Layout, tensor: str, shape: str) -> None:
    """`gl.reshape(tensor, shape)`, which the statement of `node` can make, has `layout`."""
    s = statement_of(rw.facts.tree, node)
    if isinstance(s, ast.stmt) and tensor.isidentifier() and layout.root == layout:
        rw.instance_layouts.setdefault((layout, s), f"gl.reshape({tensor}, {shape}).type.layout")


def insert(rw: Emission) -> None:
    """Define the layouts where they are offered; `chosen` keeps the definitions that serve."""
    if not rw.instance_layouts:
        return
    fixed = _agreed(rw).union(*(_agreed(rw.unit.helper_versions[i][0]) for i in rw.record.helpers))
    for (layout, statement), text in rw.instance_layouts.items():
        if layout not in fixed:
            rw.insert_before(statement, f"{rw.names.spell(layout)}: gl.constexpr = {text}")


def _agreed(rw: Emission) -> set[Layout]:
    """The layouts in which a helper takes tensors and gives them back: its callers know these."""
    own = [*rw.argument_homes.values(), rw.wants]
    own += [s.home for s in rw.states.values() if s.web.is_parameter]
    own += [layout for s in rw.states.values() if s.web.is_parameter for layout in s.variants]
    return {layout.root for layout in flatten(tuple(own)) if layout is not None}


def chosen(rw: Emission, text: str) -> str:
    """A function's text, with placeholders for layouts, with one definition for each layout, if that is before all its uses."""
    while rw.instance_layouts:
        source = SourceText(text)
        tree = ast.parse(text).body[0]
        edits = _edits(source, tree)
        if not edits:
            break
        text = replace_spans(text, 0, len(text), edits)
    return text


def _edits(source: SourceText, tree: Any) -> list[tuple[int, int, str]]:
    """What to change for the first layout whose definitions are not as they should be."""
    found: dict[str, list[tuple[list[ast.stmt], int]]] = {}
    for block in _blocks(tree):
        for i, s in enumerate(block):
            if isinstance(s, ast.AnnAssign) and _DEFINITION.fullmatch(s.target.id):
                found.setdefault(s.target.id, []).append((block, i))
    for name, places in found.items():
        uses = {n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name}
        uses -= {block[i].target for block, i in places}
        block, first = min(places, key=lambda place: place[0][place[1]].lineno)
        following = {n for s in block[first + 1 :] for n in ast.walk(s)}
        keeps = bool(uses) and uses <= following
        edits = [_without(source, b[i]) for b, i in places if not keeps or b[i] is not block[first]]
        if keeps and not edits and first + 1 < len(block):
            edits = _asked_of_the_result(source, block[first], block[first + 1])
        if edits:
            return edits
    return []


def _asked_of_the_result(source: SourceText, definition: Any, s: ast.stmt) -> list[tuple[int, int, str]]:
    """Where the next statement makes that very tensor, it defines the layout."""
    made = definition.value.value.value if isinstance(definition.value.value, ast.Attribute) else None
    if not (isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and isinstance(made, ast.Call)):
        return []
    moved = f"gl.convert_layout({source.of(made)}, {definition.target.id})"
    if source.of(s.value) != moved:
        return []
    name, indent = s.targets[0].id, source.indent(s)
    start, end = source.starts[definition.lineno - 1], source.span(s)[1]
    asked = f"{definition.target.id}: gl.constexpr = {name}.type.layout"
    return [(start, end, f"{indent}{name} = {source.of(made)}\n{indent}{asked}")]


def _without(source: SourceText, s: ast.stmt) -> tuple[int, int, str]:
    return source.starts[s.lineno - 1], source.line_end(s) + 1, ""


def _blocks(tree: Any) -> list[list[ast.stmt]]:
    return [b for n in ast.walk(tree) for f in ("body", "orelse") if isinstance(b := getattr(n, f, None), list) and b]
