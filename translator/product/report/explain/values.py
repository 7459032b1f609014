"""Why every tensor variable has its layout, or exists in several."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gluonize.facts.variables.definitions import definition_node
from gluonize.product.report.explain.explanation import Choice
from gluonize.product.report.explain.function_view import FunctionView
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.layouts import Layout


def values(view: FunctionView) -> Iterator[Choice]:
    """One choice per definition and layout of every tensor variable, and one per tensor that is only named in a store."""
    function = view.written
    for web in function.facts.webs.all:
        state = function.states.get(web.index)
        for d in web.definitions:
            node = definition_node(d)
            fact = (
                function.facts.frame.args.get(d.name)
                if isinstance(d.node, ast.arg)
                else function.facts.fact(node) if node is not None else None
            )
            if not isinstance(fact, TensorFact) or not fact.shape or state is None:
                continue
            layouts = (state.variants if state.cheap or state.split else [state.home]) or [state.home]
            found = [layout for layout in layouts if isinstance(layout, Layout)]
            for layout in found:
                origin, why = _origin(view, web, state, d, layout)
                yield view.choice(
                    d.node,
                    "value",
                    _called(view, state, d.name, layout, found),
                    choice=view.name(layout),
                    shape=fact.shape,
                    dtype="int32" if state.split else fact.dtype,
                    origin=origin,
                    why=why,
                    cost=_cost(view, state, layout, fact, found),
                    depth=d.loop_depth,
                )


def _called(view: FunctionView, state, name: str, layout: Layout, layouts: list[Layout]) -> str:
    if state.split:
        return f"{name} (base and offsets)"
    return name if len(layouts) < 2 or layout == layouts[0] else view.variant(name, layout)


def _origin(view: FunctionView, web, state, d, layout: Layout) -> tuple[str, str]:
    function = view.written
    node = definition_node(d)
    if node is not None:
        for op in function.facts.placed(node):
            if any(ty.layout == layout for ty in op.results):
                done = "convert to it" if op.name == "ttg.convert_layout" else f"give it to `{op.name}`"
                return "anchor", f"Triton's passes {done} here"
    for other in web.definitions:
        other_node = definition_node(other)
        if other is not d and other_node is not None and layout in function.facts.placed_layouts(other_node):
            return "anchor", f"Triton's passes give it to the definition in line {view.line(other.node)}"
    use = state.first_use.get(layout)
    if use is not None:
        line = view.file_line(use[0])
        return "solver", f"the use in line {line} needs it, and recomputing is cheaper than converting"
    if (
        isinstance(node, ast.AST)
        and (fact := function.facts.tensor(node)) is not None
        and layout == function.facts.default_layout(fact.shape)
    ):
        return "default", "Triton's default for a tensor that nothing constrains"
    return "solver", "taken from its operands"


def _cost(view: FunctionView, state, layout: Layout, fact: TensorFact, layouts: list[Layout]) -> str:
    registers = view.costs.registers(layout, fact.shape, "int32" if state.split else fact.dtype)
    said = [f"{registers} register{'s' if registers != 1 else ''} per lane"] if registers else []
    if len(layouts) > 1:
        said.append(f"computed {len(layouts)} times")
    return ", ".join(said)
