"""Which offsets of a tensor data mover's tiles count as not negative.

The data mover fills with zeros beyond a tensor's end, not before its start. An offset made of indices that come from memory,
from a helper's caller or from a division by a count is one that no program means to be negative: Triton's own compile of it
reads before the tensor. Such an offset is taken, and the output says so; one with a difference or a negative constant in it
is only taken where it is proved.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from translator.rewrite.ranges import NonNegative

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

# Of indices they are indices.
_OF_INDICES = ("sum", "cumsum", "gather")


class IndexNotNegative(NonNegative):
    """As `NonNegative`, but values read from memory and a helper's parameters count as indices, and divisors as counts.

    taken: whether the proof needed that.
    """

    def __init__(self, rewriter, arguments=None, caller: IndexNotNegative | None = None):
        super().__init__(rewriter, arguments, caller)
        self._taken: list[bool] = caller._taken if caller else []

    @property
    def taken(self) -> bool:
        return bool(self._taken)

    def holds(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self.holds(node.left)  # a remainder has the sign of what is divided
        if super().holds(node):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and self.holds(node.left):
            self._taken.append(True)
            return True
        return False

    def call(self, node: ast.Call) -> bool:
        callee = self.rewriter.fact(node.func)
        name = getattr(getattr(callee, "value", None), "__name__", "") or getattr(callee, "name", "")
        if name == "load":
            self._taken.append(True)
            return True
        if name in _OF_INDICES:
            method = isinstance(node.func, ast.Attribute) and hasattr(callee, "owner")
            inner = node.func.value if method else node.args[0] if node.args else None
            return inner is not None and self.holds(inner)
        return super().call(node)

    def definition(self, web: Any, d: Any) -> bool:
        if super().definition(web, d):
            return True
        if isinstance(d.node, ast.arg) and self.rewriter.path and d.name not in self.arguments:
            self._taken.append(True)
            return True
        return False


def offset_not_negative(rw: "FunctionRewriter", offset: ast.expr) -> bool:
    """Whether the data mover may take `offset`; what that assumes is recorded."""
    proof = IndexNotNegative(rw)
    if not proof.holds(offset):
        return False
    rw.record.non_negative |= proof.assumed
    if proof.taken:
        rw.record.offsets.add(ast.unparse(offset))
    return True
