"""The facts of one function of a kernel: its tree written out where that must be, its variables, its equal expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gluonize.facts import callees
from gluonize.facts.desugar import expand_promotions, unroll_loops
from gluonize.facts.function import FunctionFacts
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.variables.equal import equal_expressions
from gluonize.facts.webs import build_webs
from gluonize.trace.front.trace import Frame

MAX_CALL_DEPTH = 8


def read_function(kernel: KernelFacts, frame: Frame, path: tuple[int, ...] = ()) -> FunctionFacts:
    """The facts of the function of `frame`, reached by the chain of call visits `path`."""
    facts = FunctionFacts(kernel, frame, path, _called)
    expand_promotions(facts)
    unroll_loops(facts)
    facts.webs = build_webs(facts.tree, facts.taken, facts.unrolled, facts.dynamic)
    loops = [n for n in facts.nodes if isinstance(n, (ast.For, ast.While))]
    facts.looped |= {n for loop in loops for n in ast.walk(loop) if isinstance(n, ast.Call)}
    facts.equals |= equal_expressions(facts)
    return facts


def reached_functions(facts: FunctionFacts) -> Iterator[FunctionFacts]:
    """The function, and each helper that it calls, for each call anew."""
    yield facts
    for node in facts.nodes:
        if not isinstance(node, ast.Call) or not facts.visits(node) or not callees.is_helper(facts, node):
            continue
        inner = facts.callee(node)[0]
        if inner is None and len(facts.path) < MAX_CALL_DEPTH:
            frame, ident = callees.callee_frame(facts, node)  # one text for several specializations
            inner = read_function(facts.kernel, frame, (*facts.path, ident)) if frame is not None else None
        if inner is not None:
            yield from reached_functions(inner)


def _called(facts: FunctionFacts, node: ast.Call) -> tuple[FunctionFacts | None, dict[str, ast.expr]]:
    if not callees.is_helper(facts, node):
        return None, {}
    frame, ident = callees.callee_frame(facts, node)
    if frame is None or frame.joined or len(facts.path) >= MAX_CALL_DEPTH:
        return None, {}
    inner, given = read_function(facts.kernel, frame, (*facts.path, ident)), callees.bound(facts, node)
    if len(facts.visits(node)) == 1:
        inner.called = facts, given
    return inner, given
