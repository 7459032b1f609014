"""Values that are the same for all lanes: buffer accesses and asynchronous copies take them only as tensors.

Triton makes a constant of an argument that is 1, and what is computed from constants is one, too:

    buffer_load(x_ptr, offs, mask=n > 0)    ->    buffer_load(x_ptr, offs, mask=gl.to_tensor(n > 0))
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.written import Written, call
from gluonize.trace.front.trace import ConstFact

# Builtins that compute a constant from constants; the others give tensors whatever they are given.
_FOLDED = frozenset("cdiv min max builtin_min builtin_max constexpr abs".split())


def may_be_fixed(facts: FunctionFacts, node: ast.expr) -> bool:
    """Whether a value may be a constant in some launch."""
    return facts.tensor(node) is None and not is_run_time(facts, node)


def as_tensor(facts: FunctionFacts, node: ast.expr, text: Written) -> Written:
    """`text`, which is the value of `node`, as a tensor in every launch."""
    return call("gl.to_tensor", text) if may_be_fixed(facts, node) else text


def is_run_time(facts: FunctionFacts, node: ast.expr, unrolled: ast.For | None = None) -> bool:
    """Whether a value is a tensor in every launch; False where that is not known. unrolled: a loop whose index may be a constant."""
    if isinstance(facts.fact(node), ConstFact):
        return False
    if isinstance(node, ast.Name):
        # An assignment makes a tensor of a constant. Arguments stay what they are.
        made = [d.node for d in facts.webs.reaching.get(node, [])]
        return bool(made) and not any(isinstance(n, (ast.arg, ast.NamedExpr)) or n is unrolled for n in made)
    if isinstance(node, ast.Call):
        if callees.is_helper(facts, node):
            return False
        callee = callees.callee_of(facts, node)
        if callee is None or callee.row is None:
            return False
        if callee.name not in _FOLDED:
            return True
        return any(is_run_time(facts, x, unrolled) for x in callees.bind(node, callee).values())
    if isinstance(node, ast.IfExp):
        return all(is_run_time(facts, x, unrolled) for x in (node.body, node.orelse))
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        parts = [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]
        return any(is_run_time(facts, x, unrolled) for x in parts)
    return False
