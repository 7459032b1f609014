"""Layouts spelled with the names of other layouts, written out."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping


def inlined(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """`node` with every name of `values` replaced by its value, names in that too; a name within its own value stays.

    before: gl.DotOperandLayout(0, mma, 8)
    after:  gl.DotOperandLayout(0, gl.amd.AMDMFMALayout(version=4, ...), 8)
    """
    return _Inlined(values).visit(copy.deepcopy(node))


class _Inlined(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]):
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.values:
            return node
        return inlined(self.values[node.id], {name: v for name, v in self.values.items() if name != node.id})
