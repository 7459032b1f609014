"""Which integer expressions are provably non-negative.

A buffer operation takes an unsigned 32-bit offset from its base, so moving the uniform part of an address into the
base is only right when what is left cannot be negative. Launch parameters that the proof needs to be non-negative
(strides, sizes) are recorded as assumptions, which the output checks at launch.
"""

from __future__ import annotations

import ast

from translator.frontend.trace import ConstFact, TensorFact

_NON_NEGATIVE_CALLS = {"program_id", "num_programs", "arange"}
_MONOTONE_CALLS = {"cdiv", "to", "cast", "multiple_of", "max_contiguous", "max_constancy", "broadcast_to", "expand_dims"}


class NonNegative:
    """One proof attempt over the variables of a function; `assumed` collects the parameters it relies on."""

    def __init__(self, rewriter):
        self.rewriter = rewriter
        self.assumed: set[str] = set()
        self._webs: dict[int, bool] = {}

    def holds(self, node: ast.AST) -> bool:
        fact = self.rewriter.fact(node)
        if isinstance(fact, ConstFact):
            return isinstance(fact.value, (int, bool)) and fact.value >= 0
        if not isinstance(fact, TensorFact):
            return False
        if fact.dtype.startswith("uint") or fact.dtype == "int1":
            return fact.dtype not in ("uint64",)
        if isinstance(node, ast.Name):
            web = self.rewriter.webs.of_use.get(node)
            return web is not None and self.web(web)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.Add, ast.Mult, ast.FloorDiv, ast.Mod, ast.RShift, ast.LShift, ast.BitOr)):
                return self.holds(node.left) and self.holds(node.right)
            if isinstance(node.op, ast.BitAnd):
                return self.holds(node.left) or self.holds(node.right)
            return False
        if isinstance(node, ast.IfExp):
            return self.holds(node.body) and self.holds(node.orelse)
        if isinstance(node, ast.Subscript):
            return self.holds(node.value)
        if isinstance(node, ast.Call):
            return self.call(node)
        return False

    def call(self, node: ast.Call) -> bool:
        callee = self.rewriter.fact(node.func)
        name = getattr(callee, "name", None) or getattr(getattr(callee, "value", None), "__name__", "")
        if name in _NON_NEGATIVE_CALLS:
            return True
        arguments = list(node.args)
        if isinstance(node.func, ast.Attribute) and hasattr(callee, "owner"):
            arguments = [node.func.value, *arguments]
        if name in _MONOTONE_CALLS:
            return bool(arguments) and self.holds(arguments[0])
        if name in ("maximum", "max", "builtin_max"):
            return any(self.holds(a) for a in arguments[:2])
        if name in ("minimum", "min", "builtin_min"):
            return len(arguments) >= 2 and all(self.holds(a) for a in arguments[:2])
        if name == "where":
            return len(arguments) == 3 and all(self.holds(a) for a in arguments[1:])
        return False

    def web(self, web) -> bool:
        if web.index not in self._webs:
            self._webs[web.index] = True  # induction over loops
            self._webs[web.index] = all(self.definition(web, d) for d in web.definitions)
        return self._webs[web.index]

    def definition(self, web, d) -> bool:
        if isinstance(d.node, ast.arg):
            # Only the kernel's own parameters can be checked at launch.
            fact = self.rewriter.frame.args.get(d.name)
            if self.rewriter.path or not isinstance(fact, TensorFact) or fact.shape or not fact.dtype.startswith("int"):
                return False
            self.assumed.add(d.name)
            return True
        if isinstance(d.node, ast.For):
            iterator = d.node.iter
            args = getattr(iterator, "args", [])
            return bool(args) and (len(args) == 1 or self.holds(args[0])) and (len(args) < 3 or self.holds(args[2]))
        if d.augmented:
            return isinstance(d.node.op, (ast.Add, ast.Mult, ast.FloorDiv)) and self.holds(d.node.value)
        return d.value is not None and self.holds(d.value)
