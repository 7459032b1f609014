"""Homes of a function's values (the layout a value has when nobody asks for another) and what it costs to move them."""

from __future__ import annotations

import ast
import functools
from typing import Any

from translator.frontend.trace import ConstFact, Frame, OpaqueFact, TensorFact, TupleFact
from translator.rewrite import callees, calls, costs, dots, equal, helpers, pointer_variables
from translator.rewrite.expand import augmented_binop, expand_promotions, unroll_loops
from translator.rewrite.facts import FunctionFacts
from translator.rewrite.syntax import ELEMENTWISE_NODES
from translator.rewrite.unit import Unit
from translator.rewrite.variables import WebState
from translator.rewrite.webs import Definition, Web, build_webs
from translator.ttgir.layouts import DotOperand, Layout


class Homes(FunctionFacts):
    """The function's variables as webs of definitions and uses, each with its home and its state over the rounds."""

    def __init__(self, unit: Unit, frame: Frame, path: tuple[int, ...], argument_homes: dict[str, Any] | None):
        super().__init__(unit, frame, path)
        self.argument_homes = argument_homes or {}
        expand_promotions(self)
        unroll_loops(self)
        self.webs = build_webs(self.tree, self.taken, self.unrolled, self.dynamic)
        loops = [n for n in ast.walk(self.tree) if isinstance(n, (ast.For, ast.While))]
        self.looped = {n for loop in loops for n in ast.walk(loop) if isinstance(n, ast.Call)}
        self.states: dict[int, WebState] = {}
        self._cheap: dict[int, bool] = {}
        self._homes: dict[int, Any] = {}
        self._busy_homes: set[int] = set()
        self._callees: dict[ast.Call, tuple[Homes | None, dict[str, ast.expr]]] = {}

    @functools.cached_property
    def equals(self) -> dict[ast.expr, list[ast.expr]]:
        return equal.equal_expressions(self)

    def visits(self, node: ast.AST) -> list[int]:
        """The visits of `node`; where Triton left nothing of them, those of an equal expression of which it did."""
        own = super().visits(node)
        if not isinstance(node, ast.expr) or node not in self.equals or self._left(own):
            return own
        return next((v for other in self.equals[node] if self._left(v := super(Homes, self).visits(other))), own)

    def _left(self, visits: list[int]) -> bool:
        return any(self.unit.anchors.at((*self.path, v)) for v in visits)

    def callee(self, node: ast.Call) -> tuple[Homes | None, dict[str, ast.expr]]:
        """The helper that `node` calls, to be read, and its arguments; None where there is not one helper."""
        if node not in self._callees:
            self._callees[node] = None, {}
            if callees.is_helper(self, node):
                frame, ident = helpers.callee_frame(self, node)
                if frame is not None and not frame.joined and len(self.path) < helpers.MAX_CALL_DEPTH:
                    inner = type(self)(self.unit, frame, (*self.path, ident))
                    self._callees[node] = inner, callees.bind(self, node, callees.callee_of(self, node))
        return self._callees[node]

    def reader(self, frame: Frame, path: tuple[int, ...], argument_homes: dict[str, Any]) -> Homes:
        """Another function of the kernel, to be read where its arguments lie so."""
        inner = type(self)(self.unit, frame, path)
        inner.argument_homes = argument_homes
        return inner

    def home(self, node: ast.AST) -> Any:
        """The natural layout of `node`: Triton's choice, else its operands', else the default."""
        fact = self.fact(node)
        if isinstance(fact, TupleFact):
            if isinstance(node, (ast.Tuple, ast.List)):
                return tuple(self.home(e) for e in node.elts)
            if isinstance(node, ast.Name) and node in self.webs.of_use:
                return self.web_home(self.webs.of_use[node])
            if isinstance(node, ast.Call):
                return calls.tuple_home(self, node, fact)
            return tuple(
                self.default_layout(f.shape) if isinstance(f, TensorFact) and f.shape else None for f in fact.items
            )
        if not (isinstance(fact, TensorFact) and fact.shape):
            return None
        if isinstance(node, ast.Name):
            web = self.webs.of_use.get(node)
            return self.web_home(web) if web else self.default_layout(fact.shape)
        placed = self.placed_layouts(node)
        if placed:
            is_call = isinstance(node, ast.Call)
            return placed[-1] if is_call and callees.is_helper(self, node) else placed[0]
        return self.structural_home(node) or self.default_layout(fact.shape)

    def structural_home(self, node: ast.AST) -> Layout | None:
        fact = self.tensor(node)
        if isinstance(node, ELEMENTWISE_NODES):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                for dot, other in ((node.right, node.left), (node.left, node.right)):
                    if dots.can_accumulate(self, dot, other, fact):
                        return self.home(dot)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr) and (f := self.tensor(child)) and f.rank == fact.rank:
                    return self.home(child)
        if isinstance(node, ast.Subscript) and isinstance(self.fact(node.value), TupleFact):
            homes = self.home(node.value)
            index = self.fact(node.slice)
            if homes and isinstance(index, ConstFact):
                return homes[index.value]
        if isinstance(node, ast.Call):
            return calls.home(self, node)
        return None

    def state(self, web: Web) -> WebState:
        if web.index not in self.states:
            cheap = self.web_cheap(web)
            self.states[web.index] = WebState(web, cheap)
            self.states[web.index].split = pointer_variables.split_web(self, web)
        return self.states[web.index]

    def web_home(self, web: Web) -> Any:
        if web.index in self._homes:
            return self._homes[web.index]
        if web.index in self._busy_homes:
            return None
        self._busy_homes.add(web.index)
        home = None
        if web.is_parameter:
            home = self.argument_homes.get(web.name)
        ordered = sorted(web.definitions, key=lambda d: -d.loop_depth)
        if home is None:
            for d in ordered:
                placed = self.definition_placed(d)
                if placed:
                    home = placed[0]
                    break
        if home is None:
            for d in sorted(ordered, key=lambda d: self.is_filled(d.value)):
                home = self.definition_home(d)
                if home is not None:
                    break
        if home is None and web.index in self.states and self.states[web.index].variants:
            home = self.states[web.index].variants[0]
        self._busy_homes.discard(web.index)
        if home is not None:
            self._homes[web.index] = home
        return home

    def settle_home(self, web: Web, layout: Layout) -> None:
        """Give a variable another home than the one it was found to have; the text is then made once more."""
        self._homes[web.index] = self.state(web).home = layout
        self.changed = True

    def definition_node(self, d) -> ast.AST | None:
        """The node whose visit produced the defined value."""
        if d.augmented:
            return augmented_binop(d.node)
        return d.value

    def changing(self, web: Web) -> list[Definition]:
        """The definitions of `web` that do not leave it as it is."""
        return [d for d in web.definitions if not self.keeps(d)]

    def keeps(self, d) -> bool:
        """Whether a definition leaves the variable as it is: `x = x.to(dtype)` where that is its type."""
        value = callees.cast_of(self, d.value) if isinstance(d.value, ast.Call) and not d.augmented else None
        same = isinstance(value, ast.Name) and self.webs.of_use.get(value) is self.webs.of_definition.get(
            (d.node, d.name)
        )
        return same and self.fact(value) is not None and self.fact(value) == self.fact(d.value)

    def definition_placed(self, d) -> list[Layout]:
        node = self.definition_node(d)
        if isinstance(node, ast.Name):  # a copy lies where the variable that it copies was placed
            made = self.webs.definition_of(node)
            node = self.definition_node(made) if made is not None else None
        if node is None or isinstance(node, ast.Name):
            return []
        placed = self.placed_layouts(node)
        if isinstance(node, ast.Call) and callees.is_helper(self, node):
            placed.sort(
                key=lambda layout: isinstance(layout, DotOperand)
            )  # what it returns is hardly an operand inside
        return placed

    def is_filled(self, node: ast.AST | None) -> bool:
        """Whether a value is `tl.zeros` or `tl.full`, which any layout suits."""
        callee = callees.callee_of(self, node) if isinstance(node, ast.Call) else None
        return callee is not None and callee.row is not None and callee.name in ("zeros", "full")

    def lies_anywhere(self, node: ast.expr) -> bool:
        """Whether an argument is made in any layout alike: a tensor of one value, as an accumulator that a helper adds to, or
        index arithmetic. It is where the helper has it."""
        fact = self.tensor(node)
        if fact is None or not fact.shape:
            return False
        if not fact.is_pointer and self.cheap(node):
            return True
        web = self.webs.of_use.get(node) if isinstance(node, ast.Name) else None
        if web is None:
            return self.is_filled(node)
        if web.is_parameter or any(self.definition_placed(d) for d in web.definitions):
            return False
        return all(self.is_filled(d.value) for d in web.definitions)

    def definition_home(self, d) -> Any:
        if d.augmented:
            return self.home(d.value) if self.tensor(d.value) else None
        if d.value is not None:
            return self.home(d.value) if self.fact(d.value) is not None else None
        if isinstance(d.node, ast.Assign):  # part of a tuple
            homes = self.home(d.node.value)
            for target, home in zip(flat_targets(d.node.targets[0]), flatten(homes)):
                if isinstance(target, ast.Name) and target.id == d.name:
                    return home
        return None

    # Cost --------------------------------------------------------------------------------------------------------

    def web_cheap(self, web: Web) -> bool:
        if web.index not in self._cheap:
            self._cheap[web.index] = True  # while recursing through loops
            self._cheap[web.index] = not web.is_parameter and all(
                d.value is not None and self.cheap(d.value) for d in web.definitions
            )
            if web.is_parameter and all(not isinstance(d.node, ast.arg) for d in web.definitions):
                self._cheap[web.index] = True
        return self._cheap[web.index]

    def cheap(self, node: ast.AST) -> bool:
        """Whether recomputing `node` costs less than moving it: index and mask arithmetic."""
        fact = self.fact(node)
        if isinstance(fact, (TupleFact, OpaqueFact)):
            return False
        if not (isinstance(fact, TensorFact) and fact.shape):
            return True
        if isinstance(node, ast.Name):
            web = self.webs.of_use.get(node)
            return web is None or self.web_cheap(web)
        if isinstance(node, ast.Call):
            return calls.cheap(self, node) or costs.small_load(self, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return False
        if isinstance(node, ast.Subscript):
            return self.cheap(node.value)
        if costs.outer_product(self, node):
            return True
        if isinstance(node, ELEMENTWISE_NODES):
            return all(self.cheap(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
        return isinstance(node, ast.Attribute) and self.cheap(node.value)

    def rebound(self, name: str) -> bool:
        """Whether the author uses one name for several variables, so that it does not always mean the same."""

        def split(web: Web) -> bool:
            facts = [self.fact(n) for d in web.definitions if (n := self.definition_node(d)) is not None]
            pointers_only = facts and all(isinstance(f, TensorFact) and f.is_pointer and f.shape for f in facts)
            return bool(pointers_only) and self.state(web).split is not None

        return sum(w.name == name and not split(w) for w in self.webs.all) > 1


def flat_targets(target: ast.AST) -> list[ast.AST]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [t for e in target.elts for t in flat_targets(e)]
    return [target]


def flatten(value: Any) -> list:
    if isinstance(value, tuple):
        return [v for item in value for v in flatten(item)]
    return [value]


def flatten_like(value: Any, n: int) -> tuple:
    return value if isinstance(value, tuple) and len(value) == n else (None,) * n
