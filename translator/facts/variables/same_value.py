"""When two scalar expressions of the source are the same number: a variable that was assigned in between has kept its name only.

end = m                              `end` and the `m` of the mask are two numbers, though the text and the variable of both is `m`
if n > 5:
    m = 7
for k in range(0, end, BLOCK): tl.load(ptrs + k, mask=offs + k < m)
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import operation_of
from gluonize.facts.webs import Definition

# Operations that give the same number wherever a program asks.
_STEADY = ("program_id", "num_programs")


def value_key(facts: FunctionFacts, node: ast.expr, loop: ast.AST) -> str:
    """A text that two expressions which do not change in `loop` share only if they are the same number: those in the loop and in its
    range, and those before it whose values come from there. Both are written alike, and what they read was assigned at the same places.
    """
    header = set(ast.walk(loop.iter)) if isinstance(loop, ast.For) else set()
    found = [node.id if isinstance(node, ast.Name) else ast.dump(node)]
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and not _is_steady(facts, n):
            found.append(f"called at {_place(n)}")
        elif (web := facts.webs.of_use.get(n)) is not None:
            made = facts.webs.reaching[n]
            found.append(", ".join(map(_place, (d.node for d in made))))
            around = next((loops for use, loops in web.reads if use is n), ())
            if loop not in around and n not in header and _comes_again(facts, made, around):
                found.append(f"read at {_place(n)}")
    return "#".join(found)


def _comes_again(facts: FunctionFacts, made: list[Definition], around: tuple[ast.AST, ...]) -> bool:
    """Whether a name that is read in the loops `around` may be assigned anew, at the places `made`, before it is read elsewhere."""
    shared = {loop for d in made for loop in d.in_loop if loop in around}
    return bool(shared) and (len(made) > 1 or any(isinstance(s, ast.For) and facts.unrolled(s) for s in shared))


def _is_steady(facts: FunctionFacts, call: ast.Call) -> bool:
    operation = operation_of(call, facts.fact(call.func))
    known = operation is not None and operation.name in _STEADY
    return known or callees.kind_of(facts, call) in callees.PURE_KINDS


def _place(node: ast.AST) -> str:
    """Where a node stands, and in which iteration of loops that are written out."""
    written = getattr(node, "iteration", ())
    return f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}{written or ''}"


__all__ = ["value_key"]
