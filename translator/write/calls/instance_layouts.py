"""Layouts of a helper whose tensors have other shapes in other specializations: asked of a tensor, so that one text may do for all.

layout: gl.constexpr = gl.BlockedLayout([1, 1, 4], ...)     y = gl.reshape(x, shape)
y = gl.reshape(x, shape)                                ->  layout: gl.constexpr = y.type.layout

What the helper takes and gives in one shape keeps its layout; the rest follows from that by Gluon's own inference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst
from gluonize.facts.function import FunctionFacts
from gluonize.facts.variables.siblings import varies
from gluonize.gluon.code import code_of
from gluonize.gluon.layout_names import Asked, LayoutNames, Variant
from gluonize.gluon.trees.function import GluonFunction, Statement, code, constant
from gluonize.gluon.trees.references import Reference, References, references
from gluonize.gluon.trees.walk import walk
from gluonize.gluon.written import Part, Written, attribute, call
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear
from gluonize.write.calls.tuples import flatten
from gluonize.write.state.site import Site
from gluonize.write.state.statements import statement_of
from gluonize.write.state.variables import WebState
from gluonize.write.state.writing import Writing


def offer(writing: Writing, node: ast.expr, layout: Layout, tensor: Written, shape: Part) -> None:
    """`gl.reshape(tensor, shape)`, which the statement of `node` can make, has `layout`."""
    s = statement_of(writing.facts, node)
    if isinstance(s, ast.stmt) and tensor.is_name and isinstance(layout, (Blocked, Linear)):
        writing.record.instance_layouts.setdefault(
            (layout, s), attribute(call("gl.reshape", tensor, shape), "type.layout")
        )


def insert(site: Site, states: Mapping[int, WebState], agreed: set[Layout]) -> None:
    """Define the layouts where they are offered; `chosen` keeps the definitions that serve. agreed: those that callers know."""
    variables = list(_variables(site.facts, states))
    fixed = agreed | {layout.parent.root for layout in site.names.spelled if isinstance(layout, DotOperand)}
    for (layout, statement), text in site.record.instance_layouts.items():
        if layout not in fixed:
            site.edits.insert_before(statement, code_of(site.names.spell(layout), ": gl.constexpr = ", text))
    for layout, statement, name in variables:
        if layout not in fixed:
            line = code_of(site.names.spell(layout), f": gl.constexpr = {name}.type.layout")
            site.edits.insert_behind(statement, [line])


def _variables(facts: FunctionFacts, states: Mapping[int, WebState]) -> Iterator[tuple[Layout, ast.stmt, str]]:
    """(layout, statement, name) of the variables that have other shapes elsewhere, where the function's own block defines them."""
    own = {s for s in facts.tree.body if isinstance(s, ast.Assign)}
    for web in facts.webs.all:
        state = states.get(web.index)
        if state is None or state.split is not None or web.is_parameter:
            continue
        layout = state.variants[0] if state.cheap and state.variants else state.home
        d = web.definitions[0]
        plain = isinstance(layout, (Blocked, Linear)) and d.node in own and d.value is not None
        if plain and isinstance(d.node.targets[0], ast.Name) and varies(facts, d.value):
            yield layout, d.node, d.name


def agreed(argument_homes: Mapping[str, Any], wants: Any, states: Mapping[int, WebState]) -> set[Layout]:
    """The layouts in which a helper takes tensors and gives them back: its callers know these."""
    own = [*argument_homes.values(), wants]
    own += [s.home for s in states.values() if s.web.is_parameter]
    own += [layout for s in states.values() if s.web.is_parameter for layout in s.variants]
    return {layout.root for layout in flatten(tuple(own)) if layout is not None}


def chosen(trees: References, names: LayoutNames, function: GluonFunction) -> GluonFunction:
    """A function with one definition for each layout that a tensor is asked for, if that is before all its uses."""
    blocks = [node.body for node in walk(function.node) if isinstance(node, cst.IndentedBlock)]
    places: dict[Layout, list[tuple[Sequence[Statement], int]]] = {}
    for block in blocks:
        for i, s in enumerate(block):
            if (found := constant(s)) is not None and isinstance(found.target, Reference):
                places.setdefault(found.target.of, []).append((block, i))
    instead: dict[Any, Any] = {}
    gone: list[Statement] = []
    for layout, own in places.items():
        kept = _serving(function, layout, own)
        if kept is not None:
            instead[layout] = Asked(code(constant(kept).value), layout.rank)
            names.know(instead[layout], layout, names)
        gone += [block[i] for block, i in own if block[i] is not kept]
    if not places:
        return function
    left = function.without(gone)
    for one in references(left.node.body):
        if isinstance(one, Variant) and one.root in instead:
            instead[one] = replace(one, root=instead[one.root])
    return trees.exchanged(left, instead)


def _serving(
    function: GluonFunction, layout: Layout, places: list[tuple[Sequence[Statement], int]]
) -> Statement | None:
    """The definition that stands before all uses: of a variable rather than of an expression, then the first one."""
    own = [constant(block[i]).target for block, i in places]
    uses = {n for n in walk(function.node) if isinstance(n, Reference) and n.of == layout}.difference(own)
    serving = []
    for block, i in places:
        if uses and uses <= {n for s in block[i + 1 :] for n in walk(s)}:
            tensor = constant(block[i]).value.value.value  # type: ignore[union-attr]
            serving.append((not isinstance(tensor, cst.Name), block[i]))
    return min(serving, key=lambda found: found[0])[1] if serving else None
