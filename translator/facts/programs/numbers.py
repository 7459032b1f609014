"""Whether the programs of a kernel may have each other's numbers: what all of them do together is then the same.

pid = tl.program_id(0)                       any permutation of the numbers along this axis gives the same set of programs
while tl.atomic_cas(lock, 0, 1) == 1: ...    a program that waits for another one may come to start before it
"""

from __future__ import annotations

import ast

from gluonize.facts.integers.operations import operation_of
from gluonize.facts.kernel import KernelFacts
from gluonize.trace.front.trace import ConstFact, Frame, node_key

_WAITED_FOR = ("load", "atomic_", "inline_asm")


def why_numbered(kernel: KernelFacts) -> str:
    """Why programs have to keep their numbers, "" where they need not. Asked for the first axis of the grid."""
    asked = False
    for frame in kernel.trace.frames:
        for node in ast.walk(ast.parse(frame.fn.src)):
            if isinstance(node, ast.While) and any(may_wait(frame, n) for n in ast.walk(node)):
                return "a loop may wait for another program, which has to be under way then"
            axis = _axis(frame, node)
            if axis is None:
                continue
            if axis.value != 0 or not _settled(frame, node):
                return "it asks for more than the first axis of the grid"
            if frame.fn.noinline:
                return f"`{frame.fn.__name__}`, which is not inlined, asks for the number"
            asked = True
    return "" if asked else "it does not ask for the number of a program"


def _axis(frame: Frame, node: ast.AST) -> ConstFact | None:
    """The axis that a call asks for the number of; None for anything else, and for what was not reached."""
    operation = operation_of(node, frame.fact(node.func)) if isinstance(node, ast.Call) else None
    if operation is None or operation.name != "program_id":
        return None
    axis = frame.fact(operation.first) if operation.first is not None else None
    return axis if isinstance(axis, ConstFact) else ConstFact(None)


def _settled(frame: Frame, call: ast.Call) -> bool:
    """Whether all visits of a call ask for one axis."""
    operation = operation_of(call, frame.fact(call.func))
    facts = [visit.fact for visit in frame.visits[node_key(operation.first)]]
    return all(fact == facts[0] for fact in facts)


def may_wait(frame: Frame, node: ast.AST) -> bool:
    """Whether a loop sees by `node` what another program has done: it reads memory itself, or a helper may."""
    if not isinstance(node, ast.Call):
        return False
    fact = frame.fact(node.func)
    function = getattr(fact, "function", getattr(fact, "value", None))
    name = getattr(function, "__name__", "")
    helper = hasattr(function, "src") and not (getattr(function, "__module__", "") or "").startswith("triton.")
    return name.startswith(_WAITED_FOR) or helper


__all__ = ["may_wait", "why_numbered"]
