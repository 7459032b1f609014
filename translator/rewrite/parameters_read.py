"""Which parameters of a function the code that ran depends on; one that the translation does not name is fixed in it.

`tl.load(p, mask, other=PAD)` with `PAD` 0 needs no `other`: the translation is then right for that value only.
"""

from __future__ import annotations

import ast

from translator.facts.function import FunctionFacts

# Arguments that say how to get a result, not which.
_HINTS = frozenset(
    ("eviction_policy", "cache_modifier", "num_stages", "loop_unroll_factor", "flatten", "warp_specialize")
)
_HINTS |= frozenset(("disallow_acc_multi_buffer", "disable_licm", "max_num_imprecise_acc"))


def parameters_read(facts: FunctionFacts, body: list[ast.stmt]) -> set[str]:
    """Names of parameters in the statements of `body` that ran; hints to the compiler are left out."""
    arguments = facts.tree.args
    parameters = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.stmt) and not facts.taken(node):
            return
        if isinstance(node, ast.keyword) and node.arg in _HINTS:
            return
        if isinstance(node, ast.Name) and node.id in parameters:
            found.add(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for s in body:
        visit(s)
    return found


__all__ = ["parameters_read"]
