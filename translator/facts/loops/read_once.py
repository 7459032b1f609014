"""Loads whose elements nothing else of the launch reads: what they bring into a cache is of no use there.

x = tl.load(x_ptr + tl.program_id(0) * B + tl.arange(0, B))    every program has elements of its own
a = tl.load(a_ptr + (tl.program_id(0) // n) * B + offs)        n programs read the same

A hint to caches rests on this and no result does: that elements are apart is taken from what an address is the sum of, and strides
that overlap are not looked for.
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import SAME_ELEMENTS, operation_of, range_of_loop
from gluonize.facts.webs import Definition, Web, written_nodes
from gluonize.trace.front.trace import ConstFact, TensorFact, node_key

# An axis of the grid, a loop, or the name of a pointer parameter.
Source = int | ast.AST | str
_PASSES_ON = SAME_ELEMENTS | {"to", "cast"}
_READS = ("load", "atomic")


def read_once(facts: FunctionFacts, call: ast.Call, pointer: ast.expr) -> bool:
    """Whether the address of a load moves with all programs and all loops around it, and no other load has its parameter.

    Not of what helpers load: where else they are called is not looked at.
    """
    if facts.path:
        return False
    moved = sources_of(facts, pointer)
    around = {n for n in facts.nodes if isinstance(n, ast.For | ast.While) and call in written_nodes(n)}
    roots = {source for source in moved if isinstance(source, str)}
    axes = _axes(facts, frozenset())
    if len(roots) != 1 or not axes or not around | axes <= moved:
        return False
    others = (n for n in facts.nodes if isinstance(n, ast.Call) and node_key(n) != node_key(call))
    return not any(roots & _read_by(facts, other) for other in others)


def sources_of(facts: FunctionFacts, node: ast.expr, seen: frozenset[int] = frozenset()) -> frozenset[Source]:
    """What a number or a pointer is a sum of, each perhaps times something; nothing of quotients, remainders and selections."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return sources_of(facts, node.left, seen) | sources_of(facts, node.right, seen)
    if isinstance(node, ast.Subscript) and facts.tensor(node.value) is not None:
        return sources_of(facts, node.value, seen)
    if isinstance(node, ast.Call) and (operation := operation_of(node, facts.fact(node.func))) is not None:
        if operation.name == "program_id" and operation.first is not None:
            axis = facts.settled(operation.first)
            return frozenset({axis.value} if isinstance(axis, ConstFact) else ())
        passed = operation.first if operation.name in _PASSES_ON else None
        return sources_of(facts, passed, seen) if passed is not None else frozenset()
    web = facts.webs.of_use.get(node)
    if web is None or web.index in seen:
        return frozenset()
    definition = facts.webs.definition_of(node)
    within = seen | {web.index}
    return _carried(facts, web, within) if definition is None else _defined(facts, definition, within)


def _defined(facts: FunctionFacts, definition: Definition, seen: frozenset[int]) -> frozenset[Source]:
    """The sources of what one definition binds."""
    if isinstance(definition.node, ast.arg):
        fact = facts.fact(definition.node)
        pointer = isinstance(fact, TensorFact) and fact.is_pointer
        return frozenset({definition.name} if pointer or _points(facts, definition.name) else ())
    if isinstance(definition.node, ast.For):
        loop = definition.node
        bounds = range_of_loop(loop.iter, facts.fact(loop.iter.func)) if isinstance(loop.iter, ast.Call) else None
        low = bounds[0] if bounds is not None else None
        return frozenset({loop}) | (sources_of(facts, low, seen) if low is not None else frozenset())
    plain = definition.value is not None and not definition.augmented
    return sources_of(facts, definition.value, seen) if plain else frozenset()


def _points(facts: FunctionFacts, parameter: str) -> bool:
    """Whether a parameter is a pointer: its uses say so."""
    uses = (n for n in facts.nodes if isinstance(n, ast.Name) and n.id == parameter)
    return any(isinstance(fact := facts.fact(n), TensorFact) and fact.is_pointer and not fact.shape for n in uses)


def _carried(facts: FunctionFacts, web: Web, seen: frozenset[int]) -> frozenset[Source]:
    """The sources of a variable that loops move on: of what it starts from, and these loops."""
    moves = [d for d in web.definitions if d.augmented or _reads(facts, d, web)]
    starts = [d for d in web.definitions if d not in moves]
    if len(starts) != 1 or not all(d.in_loop for d in moves):
        return frozenset()
    return _defined(facts, starts[0], seen) | {d.in_loop[-1] for d in moves}


def _reads(facts: FunctionFacts, definition: Definition, web: Web) -> bool:
    value = definition.value
    return value is not None and any(
        facts.webs.of_use.get(n) is web for n in ast.walk(value) if isinstance(n, ast.Name)
    )


def _axes(facts: FunctionFacts, seen: frozenset[str]) -> frozenset[Source]:
    """The axes of the grid that a function asks for, itself or in helpers."""
    found: set[Source] = set()
    for node in facts.nodes:
        if not isinstance(node, ast.Call):
            continue
        operation = operation_of(node, facts.fact(node.func))
        if operation is not None and operation.name == "program_id":
            axis = facts.settled(operation.first) if operation.first is not None else None
            found.add(axis.value if isinstance(axis, ConstFact) else node)
        elif (helper := facts.callee(node)[0]) is not None and helper.frame.name not in seen:
            found |= _axes(helper, seen | {helper.frame.name})
    return frozenset(found)


def _read_by(facts: FunctionFacts, call: ast.Call) -> frozenset[Source]:
    """The sources of what a call may read by: of a load or an atomic operation its pointer, of a helper all that it is given."""
    helper = callees.is_helper(facts, call)
    if not helper and callees.kind_of(facts, call) not in _READS:
        return frozenset()
    callee = callees.callee_of(facts, call)
    given = callees.bind(call, callee) if callee is not None else {}
    return frozenset().union(*(sources_of(facts, a) for k, a in given.items() if helper or k in ("pointer", "self")))


__all__ = ["read_once", "sources_of"]
