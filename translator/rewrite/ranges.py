"""Which integer expressions are provably non-negative.

A buffer operation takes an unsigned 32-bit offset from its base, so moving the uniform part of an address into the
base is only right when what is left cannot be negative. Launch parameters that the proof needs to be non-negative
(strides, sizes) are recorded as assumptions, which the output checks at launch.
"""

from __future__ import annotations

import ast

from translator.frontend.trace import ConstFact, TensorFact, node_key

_NON_NEGATIVE_CALLS = {"program_id", "num_programs", "arange"}
_MONOTONE_CALLS = {
    "cdiv",
    "to",
    "cast",
    "multiple_of",
    "max_contiguous",
    "max_constancy",
    "broadcast_to",
    "expand_dims",
    "sum",
    "cumsum",
}


class NonNegative:
    """One proof attempt over the variables of a function; `assumed` collects the parameters it relies on, `by_caller` says that
    it relies on what a helper is called with."""

    def __init__(self, rewriter, arguments: dict[str, ast.expr] | None = None, caller: NonNegative | None = None):
        self.rewriter = rewriter
        self.arguments, self.caller = arguments or {}, caller  # of a helper: what it is called with, and where
        self.assumed: set[str] = caller.assumed if caller else set()
        self._webs: dict[int, bool] = {}
        self._outer: NonNegative | None = None
        self.by_caller = False

    def holds(self, node: ast.AST) -> bool:
        fact = self.rewriter.fact(node)
        if isinstance(fact, ConstFact):
            return all(type(value) in (int, bool) and value >= 0 for value in self._constants(node))
        if not isinstance(fact, TensorFact):
            return False
        if fact.dtype.startswith("uint") or fact.dtype == "int1":
            return fact.dtype not in ("uint64",)
        if isinstance(node, ast.Name):
            web = self.rewriter.webs.of_use.get(node)
            return web is not None and (self.web(web) or self.guarded(node, web))
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.Add, ast.Mult, ast.FloorDiv, ast.Mod, ast.RShift, ast.LShift, ast.BitOr)):
                return self.holds(node.left) and self.holds(node.right)
            if isinstance(node.op, ast.BitAnd):
                return self.holds(node.left) or self.holds(node.right)
            return isinstance(node.op, ast.Sub) and self.difference(node)
        if isinstance(node, ast.IfExp):
            return self.holds(node.body) and self.holds(node.orelse)
        if isinstance(node, ast.Subscript):
            return self.holds(node.value)
        if isinstance(node, ast.Call):
            return self.call(node)
        return False

    def _constant(self, node: ast.AST, at_least: int | None = None, at_most: int | None = None) -> bool:
        """Whether `node` is a compile-time integer within the bounds."""
        return all(
            type(value) is int and (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
            for value in self._constants(node)
        )

    def _constants(self, node: ast.AST) -> list:
        """The compile-time values that `node` has, in unrolled loops and for each call of a helper; None: not one of them."""
        iteration = getattr(node, "iteration", None)
        if iteration is None:
            visits = self.rewriter.frame.visits.get(node_key(node), [])
        else:
            visits = self.rewriter.iteration_visits(node, iteration)
        return [v.fact.value if isinstance(v.fact, ConstFact) else None for v in visits] or [None]

    def call(self, node: ast.Call) -> bool:
        if self.returned(node, None):
            return True
        callee = self.rewriter.fact(node.func)
        name = getattr(callee, "name", None) or getattr(getattr(callee, "value", None), "__name__", "")
        if name in _NON_NEGATIVE_CALLS:
            return True
        arguments = list(node.args)
        if isinstance(node.func, ast.Attribute) and hasattr(callee, "owner"):
            arguments = [node.func.value, *arguments]
        if name in _MONOTONE_CALLS:
            return bool(arguments) and self.holds(arguments[0])
        if name == "max" and arguments and getattr(self.rewriter.fact(arguments[0]), "shape", ()):
            return self.holds(arguments[0])  # a reduction
        if name in ("maximum", "max", "builtin_max"):
            return any(self.holds(a) for a in arguments[:2])
        if name in ("minimum", "min", "builtin_min"):
            return len(arguments) >= 2 and all(self.holds(a) for a in arguments[:2])
        if name == "where":
            return len(arguments) == 3 and all(self.holds(a) for a in arguments[1:])
        return False

    def returned(self, node: ast.Call, part: int | None) -> bool:
        """Whether a helper returns a value that is not negative, or a tuple with such a part."""
        inner, arguments = self.rewriter.callee(node)
        if inner is None:
            return False
        proof = type(self)(inner, arguments, self)
        values = [s.value for s in ast.walk(inner.tree) if isinstance(s, ast.Return) and inner.taken(s)]
        if part is not None:
            values = [v.elts[part] if isinstance(v, ast.Tuple) and part < len(v.elts) else None for v in values]
        return bool(values) and all(v is not None and proof.holds(v) for v in values)

    def web(self, web) -> bool:
        if web.index not in self._webs:
            self._webs[web.index] = True  # induction over loops
            self._webs[web.index] = all(self.definition(web, d) for d in web.definitions)
        return self._webs[web.index]

    def guarded(self, node: ast.Name, web) -> bool:
        """Whether the use stands in a branch that is only taken where the variable is not negative."""
        for branch in self.rewriter.branches_around(node):
            inside = {n for s in branch.body for n in ast.walk(s)}
            if any(d.node in inside for d in web.definitions):
                continue
            for name in _not_negative(branch.test):
                if self.rewriter.webs.reaching.get(name, []) == self.rewriter.webs.reaching.get(node, [None]):
                    return True
        return False

    def difference(self, node: ast.BinOp) -> bool:
        """Whether `a - b` stands in a branch that is only taken where `a >= b`, in which `a` only grows and `b` stays."""
        large, small = node.left, node.right
        if not isinstance(large, ast.Name) or not isinstance(small, ast.Name):
            return False
        for branch in self.rewriter.branches_around(node):
            inside = {n for s in branch.body for n in ast.walk(s)}
            changes = [d for w in self.rewriter.webs.all for d in w.definitions if d.node in inside]
            if any(d.name == small.id for d in changes):
                continue
            grows = [d.augmented and isinstance(d.node.op, ast.Add) for d in changes if d.name == large.id]
            if all(grows) and (small.id, large.id) in _ordered(branch.test):
                return all(self.holds(d.node.value) for d in changes if d.name == large.id)
        return False

    def given(self, parameter: str) -> bool:
        """Whether what a helper that is being rewritten is called with is not negative."""
        outer, arguments = getattr(self.rewriter, "called", None) or (None, {})
        if parameter not in arguments:
            return False
        if self._outer is None:
            self._outer = NonNegative(outer)
            self._outer.assumed = self.assumed
        self.by_caller = True
        return self._outer.holds(arguments[parameter])

    def definition(self, web, d) -> bool:
        if isinstance(d.node, ast.arg):
            fact = self.rewriter.frame.args.get(d.name)
            if self.caller is not None and d.name in self.arguments:
                return self.caller.holds(self.arguments[d.name])
            if self.rewriter.path:
                return self.given(d.name)
            if not isinstance(fact, TensorFact) or fact.shape or not fact.dtype.startswith("int"):
                return False
            self.assumed.add(d.name)
            return True
        if isinstance(d.node, ast.For):
            iterator = d.node.iter
            args = getattr(iterator, "args", [])
            if len(args) == 3 and self._constant(args[2], at_most=-1):
                return self._constant(args[1], at_least=-1) or self.holds(args[1])  # every index is above the stop
            return bool(args) and (len(args) == 1 or self.holds(args[0])) and (len(args) < 3 or self.holds(args[2]))
        if d.augmented:
            return isinstance(d.node.op, (ast.Add, ast.Mult, ast.FloorDiv)) and self.holds(d.node.value)
        if d.value is None and isinstance(d.node, ast.Assign) and isinstance(d.node.value, ast.Call):
            parts = getattr(d.node.targets[0], "elts", [])
            names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
            return names.count(d.name) == 1 and self.returned(d.node.value, names.index(d.name))
        return d.value is not None and self.holds(d.value)


def _not_negative(test: ast.expr) -> list[ast.Name]:
    """The variables that are not negative where `test` is true: `x >= 0`, `0 <= x < n`, in any conjunction."""
    return [
        large
        for small, large in _inequalities(test)
        if isinstance(large, ast.Name)
        and isinstance(small, ast.Constant)
        and type(small.value) is int
        and small.value >= 0
    ]


def _ordered(test: ast.expr) -> set[tuple[str, str]]:
    """The pairs of variables of which the first is not greater where `test` is true."""
    pairs = [(small, large) for small, large in _inequalities(test)]
    return {(a.id, b.id) for a, b in pairs if isinstance(a, ast.Name) and isinstance(b, ast.Name)}


def _inequalities(test: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """(smaller side, larger side) of the comparisons that hold where `test` is true."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [pair for value in test.values for pair in _inequalities(value)]
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitAnd):
        return [*_inequalities(test.left), *_inequalities(test.right)]
    if not isinstance(test, ast.Compare):
        return []
    found = []
    sides = [test.left, *test.comparators]
    for small, op, large in zip(sides, test.ops, sides[1:]):
        if isinstance(op, (ast.Gt, ast.GtE)):
            found.append((large, small))
        elif isinstance(op, (ast.Lt, ast.LtE)):
            found.append((small, large))
    return found
