"""Pointer parameters that are moved, as the parameter and how far it has moved.

Before:                                     After:
                                                x_offs = gl.to_tensor(0).to(gl.int64)
    while n < N:                                while n < N:
        x = tl.load(x_ptr + offsets)                x = buffer_load(x_ptr, offsets + x_offs.to(gl.int32))
        x_ptr += stride                             x_offs += stride

From a base that moves, buffer operations take offsets that are not negative; from the tensor's start any offset of an element
that is read fits 32 bits. So this is for parameters with offsets of which nothing is known, and for those that a loop moves with
such a one: two in one way take fewer instructions than each in its own.
"""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers.signs import Signs
from gluonize.facts.webs import Web
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.write.accesses.addresses import address_of, is_pointer, scalar_name, tensors_from
from gluonize.write.accesses.pointers import not_negative
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.variables import SplitPointer
from gluonize.write.state.writing import StateOf


def split_parameter(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, web: Web) -> SplitPointer | None:
    """The split of a parameter that is moved by integers, if offsets from it, or from another one that a loop moves with
    it, may be negative."""
    if facts.path or not _moves_by_integers(facts, web):
        return None
    if not may_be_negative(facts, state_of, fresh, web) and not any(
        _is_split(facts, state_of, fresh, other) for other in _moved_beside(facts, web)
    ):
        return None
    return SplitPointer(web.name, web.name, False, True, True, ast.Name(web.name, ast.Load()))


def _moves_by_integers(facts: FunctionFacts, web: Web) -> bool:
    """Whether a parameter within 2 GiB only grows by integers, and is used in tensors of pointers only."""
    if not web.is_parameter or web.name not in facts.kernel.small_pointers:
        return False
    moves = [d for d in web.definitions if not isinstance(d.node, ast.arg)]
    if not moves or len(moves) != len(web.definitions) - 1:
        return False
    if not all(d.augmented and isinstance(d.node.op, ast.Add) and _is_integer(facts, d.value) for d in moves):
        return False
    return all(_in_tensor(facts, use, facts.parents) for use, _ in web.uses)


def _moved_beside(facts: FunctionFacts, web: Web) -> list[Web]:
    """The other parameters that the loops which move `web` move too."""
    loops = {loop for d in web.definitions for loop in d.in_loop}
    moved = [w for w in facts.webs.all if any(loops & set(d.in_loop) for d in w.definitions)]
    return [w for w in moved if w is not web and _moves_by_integers(facts, w)]


def _is_split(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, web: Web) -> bool:
    return state_of(web).split is not None or may_be_negative(facts, state_of, fresh, web)


def starts(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames) -> list[str]:
    """What the integers that stand for moved parameters start with, one line each."""
    found = [state_of(web) for web in facts.webs.all if web.is_parameter and not facts.path]
    return [
        f"{scalar_name(fresh, state.web)} = gl.to_tensor(0).to(gl.int64)"
        for state in found
        if state.split is not None and state.split.node is not None
    ]


def _is_integer(facts: FunctionFacts, node: ast.expr) -> bool:
    fact = facts.fact(node)
    if isinstance(fact, ConstFact):
        return type(fact.value) is int
    return isinstance(fact, TensorFact) and not fact.shape and fact.dtype in ("int32", "int64")


def _in_tensor(facts: FunctionFacts, use: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether `use` is an addend of a tensor of pointers, or asked for its type."""
    node: ast.AST = use
    while (parent := parents.get(node)) is not None:
        if isinstance(parent, ast.Attribute):
            return node is use and parent.attr == "dtype"
        if not isinstance(parent, ast.BinOp) or not is_pointer(facts, parent):
            return False
        if facts.tensor(parent) is not None:
            return True
        node = parent
    return False


def may_be_negative(facts: FunctionFacts, state_of: StateOf, fresh: FreshNames, web: Web) -> bool:
    """Whether offsets from the scalar pointer variable are not known to have a sign."""
    proof = Signs(facts, "offsets from a parameter that moves")
    for node in tensors_from(facts, web):
        address = address_of(facts, state_of, fresh, node)
        if address is None or address.web is not None or facts.webs.of_use.get(address.base) is not web:
            continue
        if not all(not_negative(proof, t) for t in address.tensors):
            return True
    return False
