"""Addresses that a loop computes anew: what all lanes share goes into the base, what is left stays the same.

    rows = start + tl.arange(0, BLOCK)          x_base = x_ptr + start * stride
    ... x_ptr + rows[:, None] * stride    ->    x_offs = gl.arange(0, BLOCK, ...)[:, None] * stride

Tensors of 64-bit offsets then cost a few scalar instructions per iteration, and 32-bit offsets are left.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

from gluonize.facts.callees import bind, callee_of
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import varies
from gluonize.facts.syntax import index_parts, is_new_axis, is_whole_axis
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.write.accesses import addresses
from gluonize.write.accesses.addresses import Address, Addressing, Term, is_bare_parameter, is_pointer
from gluonize.write.state.variables import WebState

T = TypeVar("T")
_ACCESSES = ("load", "store", "atomic")


def mark(addressing: Addressing, states: dict[int, WebState], pipelined: Collection[ast.AST]) -> None:
    """Note the pointer expressions of loops that are not pipelined as recomputed, once all loops are planned.

    With few registers only those that are no base and offsets otherwise: what stays the same is held in vector registers.
    These are the candidates of `uniform`. pipelined: the loops that are.
    """
    facts = addressing.facts
    marked = addressing.uniform if facts.kernel.target.has_few_registers else addressing.recomputed
    loops = [n for n in facts.nodes if isinstance(n, (ast.For, ast.While))]
    touched = {n for p in pipelined for n in ast.walk(p) if n in loops}  # their statements run ahead, renamed
    touched |= {loop for loop in loops if any(n in touched for n in ast.walk(loop))}
    for web in facts.webs.all:
        around = {loop for d in web.definitions for loop in d.in_loop} | {loop for _, used in web.uses for loop in used}
        if around & touched:
            continue
        if len(web.definitions) == 1 and (d := web.definitions[0]).in_loop and not d.augmented and d.value is not None:
            if facts.tensor(d.value) is not None and is_pointer(facts, d.value):
                marked[d.value] = d.in_loop[-1], False
        if web.index in states and (states[web.index].split is not None or marked is addressing.uniform):
            del states[web.index]  # planning looked at it as it was
    for loop in [loop for loop in loops if loop not in touched]:
        for call in [n for n in ast.walk(loop) if isinstance(n, ast.Call)]:
            callee = callee_of(facts, call)
            if callee is not None and callee.row is not None and callee.row.kind in _ACCESSES:
                pointer = bind(call, callee).get("pointer")
                if isinstance(pointer, ast.BinOp) and facts.tensor(pointer) is not None:
                    marked[pointer] = loop, True  # the innermost loop comes last


def found_with(addressing: Addressing, node: ast.expr | None, plan: Callable[[], T | None]) -> T | None:
    """What `plan` makes of the pointers `node`, with what all lanes share in the base where there is nothing otherwise."""
    found = plan()
    if found is None and node in addressing.uniform:
        addressing.recomputed[node] = addressing.uniform.pop(node)
        found = plan()
        if found is None:
            del addressing.recomputed[node]
    return found


def address_of(addressing: Addressing, node: ast.expr) -> Address | None:
    """The address `node`; what changes in its loop in its tensors, and is the same in all lanes, is a scalar addend.

    Tensors of 32 bits only where an access adds the scalars to its offsets (these wrap as the tensors do, a base does not),
    and a multiplication by a run-time stride is saved.
    """
    address = addresses.address_of(addressing.facts, addressing.state_of, addressing.fresh, node)
    if address is None or node not in addressing.recomputed:
        return address
    (loop, access), scalars, tensors = addressing.recomputed[node], list(address.scalars), []
    folded = access and (any(t.variable for t in scalars) or is_bare_parameter(addressing.facts, address.base))
    kinds = ("int64", "int32") if folded else ("int64",)
    for term in address.tensors:
        parts = (
            taken_apart(addressing.facts, term, loop)
            if addressing.facts.fact(term.node).dtype in kinds and term.sign == "+"
            else None
        )
        wide = addressing.facts.fact(term.node).dtype == "int64"
        if (
            parts is None
            or not wide
            and not any(isinstance(addressing.facts.fact(f), TensorFact) for f in parts[1].factors)
        ):
            tensors.append(term)
            continue
        scalars += parts[0]
        tensors.append(parts[1])
    return replace(address, scalars=tuple(scalars), tensors=tuple(tensors))


def taken_apart(facts: FunctionFacts, term: Term, loop: ast.AST) -> tuple[list[Term], Term] | None:
    """(scalar addends, the tensor that is left and does not change in `loop`); None where there is no such form."""
    node, axes, factors, scalars = term.node, term.axes, (), []
    while True:
        if isinstance(node, ast.Name) and not varies(facts, loop, node):
            break
        if (
            isinstance(node, ast.Name)
            and (value := facts.webs.value_of(node)) is not None
            and _steady(facts, loop, value)
        ):
            node = value
        elif isinstance(node, ast.Subscript) and not axes and facts.tensor(node.value) is not None:
            parts = index_parts(node)
            new = [is_new_axis(p) for p in parts]
            if not any(new) or not all(n or is_whole_axis(p) for n, p in zip(new, parts)):
                return None
            node, axes = node.value, tuple(i for i, n in enumerate(new) if n)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            tensor, scalar = (node.left, node.right) if facts.tensor(node.left) is not None else (node.right, node.left)
            if facts.tensor(tensor) is None or facts.tensor(scalar) is not None or not is_integer(facts, scalar):
                return None
            if isinstance(node.op, ast.Mult):
                factors = (*factors, scalar)
            else:
                scalars.append(Term(scalar, "+", factors=factors))
            node = tensor
        else:
            break
    if varies(facts, loop, node) or any(varies(facts, loop, f) for f in factors):
        return None
    if not any(varies(facts, loop, s.node) for s in scalars):
        return None
    return scalars, Term(node, "+", axes, factors=factors)


def is_integer(facts: FunctionFacts, node: ast.expr) -> bool:
    """Whether `node` is one integer, known at compile time or not."""
    fact = facts.fact(node)
    return isinstance(fact, ConstFact) and type(fact.value) is int or isinstance(fact, TensorFact) and not fact.shape


def _steady(facts: FunctionFacts, loop: ast.AST, value: ast.expr) -> bool:
    """Whether the names in the value of a variable still mean the same where the variable is used in `loop`."""
    webs = [web for n in ast.walk(value) if (web := facts.webs.of_use.get(n)) is not None]
    return all(len(web.definitions) == 1 or not any(loop in d.in_loop for d in web.definitions) for web in webs)


__all__ = ["address_of", "found_with", "is_integer", "mark", "taken_apart"]
