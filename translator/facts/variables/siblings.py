"""Specializations of a helper that the rounds of unrolled loops reach by one call: they may share a text."""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.trace.front.trace import Frame, TensorFact, Trace, node_key


def varies(facts: FunctionFacts, node: ast.AST) -> bool:
    """Whether `node` has another shape in some sibling of the specialization that is written."""
    key = node_key(node)
    seen = {v.fact for frame in siblings(facts.kernel.trace, facts.frame) for v in frame.visits.get(key, [])}
    return len({fact.shape for fact in seen if isinstance(fact, TensorFact)}) > 1


def siblings(trace: Trace, frame: Frame) -> tuple[Frame, ...]:
    """The specializations of the function of `frame` that one call reaches, or one call in siblings of the caller; with `frame`."""
    if not trace.siblings:
        trace.siblings |= {f.name: group for group in _groups(trace) for f in group}
    return trace.siblings.get(frame.name, (frame,))


def _groups(trace: Trace) -> list[tuple[Frame, ...]]:
    group = {frame.name: {frame.name} for frame in trace.frames}
    changed = True
    while changed:
        changed = False
        for names in {id(g): g for g in group.values()}.values():
            for reached in _reached(trace, names):
                together = set().union(*(group[name] for name in reached))
                if len(together) > len(group[min(reached)]):
                    changed = True
                    group |= dict.fromkeys(together, together)
            if changed:
                break
    distinct = {id(g): g for g in group.values()}.values()
    return [tuple(sorted((trace.by_name[n] for n in g), key=lambda f: f.index)) for g in distinct if len(g) > 1]


def _reached(trace: Trace, names: set[str]) -> list[set[str]]:
    """For each call in specializations of one function: the specializations that it reaches."""
    out: dict[tuple, set[str]] = {}
    for frame in (trace.by_name[name] for name in names if name in trace.by_name):
        for place, visits in frame.visits.items():
            for callee in (frame.calls.get(v.ident) for v in visits) if place[0] == "Call" else ():
                if callee in trace.by_name:
                    out.setdefault((place, id(trace.by_name[callee].fn)), set()).add(callee)
    return [reached for reached in out.values() if len(reached) > 1]
