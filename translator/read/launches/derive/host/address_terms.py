"""The terms of a kernel's addresses: which arguments an index of each pointer is multiplied with, and whether one has no factor.

`x + b * s_b + h[:, None] * s_h + d[None, :]`: neighbours along `d` lie side by side, so `x` has one more dimension than strides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gluonize.read.launches.derive.host.launch_forms import pairs_given
from gluonize.read.launches.derive.kernel.address_calls import ADDRESS_CALLS
from gluonize.read.launches.derive.kernel.origins import Flow, JitSource, expressions

# Calls and methods that give the indices of their first operand.
_PASSES_ON = frozenset("broadcast_to expand_dims to multiple_of max_contiguous reshape trans cast".split())
_DEPTH = 12


@dataclass
class Terms:
    """Of one pointer. factors: arguments that an index is multiplied with; unit: an index of a tile is added as it is."""

    factors: set[str] = field(default_factory=set)
    unit: bool = False


def address_terms(flow: Flow) -> dict[str, Terms]:
    """The terms of every pointer that a kernel and its helpers load from or store to."""
    out: dict[str, Terms] = {}
    walker = _Walker(flow)
    for function, node, _ in expressions(flow):
        if not isinstance(node, ast.Call) or flow.callee(function, node) not in ADDRESS_CALLS or not node.args:
            continue
        for base in sorted(origin.name for origin in flow.of(node.args[0]).bases if not origin.loaded):
            found = out.setdefault(base, Terms())
            for inside, term in walker.terms(function, node.args[0], ()):
                if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult):
                    found.factors |= _arguments(flow, term.left) | _arguments(flow, term.right)
                elif not flow.is_address(flow.of(term)):
                    found.unit |= walker.has_range(inside, term, ())
    return out


@dataclass
class _Walker:
    """Follows names to what they are given, those of a helper's parameters to what its callers pass."""

    flow: Flow
    values: dict[tuple[str, str], list[tuple[JitSource, ast.expr]]] = field(default_factory=dict)

    def terms(
        self, function: JitSource, node: ast.expr, seen: tuple[tuple[str, str], ...]
    ) -> Iterator[tuple[JitSource, ast.expr]]:
        """What is added up, with the function that it stands in."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            yield from self.terms(function, node.left, seen)
            yield from self.terms(function, node.right, seen)
        elif isinstance(node, ast.Name) and self.follows(function, node, seen):
            values = self.given(function, node.id)
            for inside, value in values:
                yield from self.terms(inside, value, (*seen, (function.name, node.id)))
            if not values:
                yield function, node
        elif isinstance(node, ast.Subscript):
            yield from self.terms(function, node.value, seen)
        elif isinstance(node, ast.Call) and (inner := self.passed_on(function, node)) is not None:
            yield from self.terms(function, inner, seen)
        else:
            yield function, node

    def follows(self, function: JitSource, node: ast.Name, seen: tuple[tuple[str, str], ...]) -> bool:
        return (function.name, node.id) not in seen and len(seen) < _DEPTH

    def passed_on(self, function: JitSource, node: ast.Call) -> ast.expr | None:
        if self.flow.callee(function, node) not in _PASSES_ON:
            return None
        if self.flow.is_method(function, node) and isinstance(node.func, ast.Attribute):
            return node.func.value
        return node.args[0] if node.args else None

    def given(self, function: JitSource, name: str) -> list[tuple[JitSource, ast.expr]]:
        """What a name of a function is given, with the function in which that is written."""
        if (key := (function.name, name)) not in self.values:
            passed = [] if function is self.flow.kernel else self.passed(function, name)
            self.values[key] = [*((function, value) for value in _assigned(function, name)), *passed]
        return self.values[key]

    def passed(self, helper: JitSource, name: str) -> list[tuple[JitSource, ast.expr]]:
        """What the callers of a helper pass for one of its parameters."""
        if name not in helper.parameters:
            return []
        place, out = helper.parameters.index(name), []
        for function, node, _ in expressions(self.flow):
            if isinstance(node, ast.Call) and self.flow.helper(function, node) is helper:
                out += [(function, k.value) for k in node.keywords if k.arg == name]
                out += [(function, node.args[place])] if place < len(node.args) else []
        return out

    def has_range(self, function: JitSource, node: ast.expr, seen: tuple[tuple[str, str], ...]) -> bool:
        """Whether a value has a `tl.arange` in it that no factor spreads."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.RShift, ast.LShift)):
            return False
        if isinstance(node, ast.Name):
            inner = self.given(function, node.id) if self.follows(function, node, seen) else []
            return any(self.has_range(where, value, (*seen, (function.name, node.id))) for where, value in inner)
        if isinstance(node, ast.Call) and self.flow.callee(function, node) == "arange":
            return True
        parts = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        return any(self.has_range(function, part, seen) for part in parts)


def _assigned(function: JitSource, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(function.node):
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in pairs_given(target, node.value)]
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        yield from (value for target, value in pairs if isinstance(target, ast.Name) and target.id == name)


def _arguments(flow: Flow, node: ast.expr) -> set[str]:
    return {origin.name for origin in flow.of(node).origins if not origin.loaded}
