"""Homes of a function's values (the layout a value has when nobody asks for another) and what it costs to move them."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.decide.layouts.demands import Round
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.syntax import ELEMENTWISE_NODES
from gluonize.facts.variables.definitions import definition_node, definition_placed, is_filled
from gluonize.facts.webs import Web
from gluonize.trace.front.trace import ConstFact, OpaqueFact, TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.write import costs
from gluonize.write.accesses import pointer_variables
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.calls import calls
from gluonize.write.calls.helpers import Helpers
from gluonize.write.calls.kind import for_tensors
from gluonize.write.calls.tuples import flat_targets, flatten
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.unit import Unit
from gluonize.write.state.variables import WebState


class Homes:
    """The function's variables as webs of definitions and uses, each with its home and what is wanted of it."""

    addressing: Addressing
    helpers: Helpers
    demanded: Round
    of_loops: FunctionLoops

    def __init__(self, unit: Unit, facts: FunctionFacts, argument_homes: dict[str, Any] | None):
        self.unit, self.facts = unit, facts
        self.argument_homes = argument_homes or {}
        self.states: dict[int, WebState] = {}
        self._cheap: dict[int, bool] = {}
        self._costs: list[dict[ast.AST, bool]] = [
            {}
        ]  # the last one: of expressions, with what is supposed of variables now
        self._rests_on: tuple[int, ...] = ()
        self._said = 0
        self._homes: dict[int, Any] = {}
        self._busy_homes: set[int] = set()

    def demand(self, state: WebState, layout: Layout, place: tuple[int, int]) -> None:
        """The use at `place` needs a variable in `layout`."""
        self.demanded.demand(state.web.name, state.wanted, layout, place)

    def home(self, node: ast.AST) -> Any:
        """The natural layout of `node`: Triton's choice, else its operands', else the default."""
        fact = self.facts.fact(node)
        if isinstance(fact, TupleFact):
            if isinstance(node, (ast.Tuple, ast.List)):
                return tuple(self.home(e) for e in node.elts)
            if isinstance(node, ast.Name) and node in self.facts.webs.of_use:
                return self.web_home(self.facts.webs.of_use[node])
            if isinstance(node, ast.Call):
                return calls.tuple_home(self.helpers, node, fact)
            return for_tensors(fact, lambda f: self.facts.default_layout(f.shape))
        if not (isinstance(fact, TensorFact) and fact.shape):
            return None
        if isinstance(node, ast.Name):
            web = self.facts.webs.of_use.get(node)
            return self.web_home(web) if web else self.facts.default_layout(fact.shape)
        placed = self.facts.placed_layouts(node)
        if placed:
            is_call = isinstance(node, ast.Call)
            return placed[-1] if is_call and callees.is_helper(self.facts, node) else placed[0]
        return self.structural_home(node) or self.facts.default_layout(fact.shape)

    def structural_home(self, node: ast.AST) -> Layout | None:
        fact = self.facts.tensor(node)
        if isinstance(node, ELEMENTWISE_NODES):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                for dot, other in ((node.right, node.left), (node.left, node.right)):
                    if products.can_accumulate(self.facts, dot, other, fact):
                        return self.home(dot)
            children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            tensors = [c for c in children if (f := self.facts.tensor(c)) and f.rank == fact.rank]
            for child in sorted(tensors, key=self.is_one_value):
                return self.home(child)
        if isinstance(node, ast.Subscript) and isinstance(self.facts.fact(node.value), TupleFact):
            homes = self.home(node.value)
            index = self.facts.fact(node.slice)
            if homes and isinstance(index, ConstFact):
                return homes[index.value]
        if isinstance(node, ast.Call):
            return calls.home(self.helpers, self.of_loops.held, node)
        return None

    def state(self, web: Web) -> WebState:
        if web.index not in self.states:
            cheap = self.web_cheap(web)
            self.states[web.index] = WebState(web, cheap)
            self.states[web.index].split = pointer_variables.split_web(self.addressing, web)
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
                placed = definition_placed(self.facts, d)
                if placed:
                    home = placed[0]
                    break
        if home is None:
            for d in sorted(ordered, key=lambda d: is_filled(self.facts, d.value)):
                home = self.definition_home(d)
                if home is not None:
                    break
        if home is None and web.index in self.states and self.states[web.index].variants:
            home = self.states[web.index].variants[0]
        self._busy_homes.discard(web.index)
        if home is not None:
            self._homes[web.index] = home
        return home

    def found_home(self, web: Web) -> Any:
        """The home that a variable was found to have; None for one that nobody asked for."""
        return self._homes.get(web.index)

    def make_cheap(self, web: Web, cheap: bool = True) -> None:
        """Say whether a variable is computed again for each layout, whatever that costs."""
        self._cheap[web.index] = cheap
        self._said += 1

    def settle_home(self, web: Web, layout: Layout) -> None:
        """Give a variable another home than the one it was found to have; uses are then walked through once more."""
        self._homes[web.index] = self.state(web).home = layout
        self.demanded.again = True

    def lies_anywhere(self, node: ast.expr) -> bool:
        """Whether an argument is made in any layout alike: a tensor of one value, as an accumulator that a helper adds to, or
        index arithmetic. It is where the helper has it."""
        fact = self.facts.tensor(node)
        if fact is None or not fact.shape:
            return False
        if not fact.is_pointer and self.cheap(node):
            return True
        return self.is_one_value(node)

    def is_one_value(self, node: ast.expr) -> bool:
        """Whether a tensor has the same value everywhere, as zeros, and Triton gives it no layout of its own."""
        web = self.facts.webs.of_use.get(node)
        if web is None:
            return is_filled(self.facts, node)
        if web.is_parameter or any(definition_placed(self.facts, d) for d in web.definitions):
            return False
        return all(is_filled(self.facts, d.value) for d in web.definitions)

    def definition_home(self, d) -> Any:
        if d.augmented:
            return self.home(d.value) if self.facts.tensor(d.value) else None
        if d.value is not None:
            return self.home(d.value) if self.facts.fact(d.value) is not None else None
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
            self._costs.append({})
            self._cheap[web.index] = not (web.is_parameter or web.in_expression) and all(
                d.value is not None and self.cheap(d.value) for d in web.definitions
            )
            self._costs.pop()
            if web.is_parameter and all(not isinstance(d.node, ast.arg) for d in web.definitions):
                self._cheap[web.index] = True
        return self._cheap[web.index]

    def cheap(self, node: ast.AST) -> bool:
        """Whether recomputing `node` costs less than moving it: index and mask arithmetic."""
        rests_on = len(self.of_loops.staged), len(self.of_loops.held), self._said
        if rests_on != self._rests_on:
            self._rests_on, self._costs = rests_on, [{} for _ in self._costs]
        known = self._costs[-1]
        if node not in known:  # an expression is asked for by each that it is part of
            known[node] = self._is_cheap(node)
        return known[node]

    def _is_cheap(self, node: ast.AST) -> bool:
        fact = self.facts.fact(node)
        if isinstance(fact, (TupleFact, OpaqueFact)):
            return False
        if not (isinstance(fact, TensorFact) and fact.shape):
            return True
        if isinstance(node, ast.Name):
            web = self.facts.webs.of_use.get(node)
            return web is None or self.web_cheap(web)
        if isinstance(node, ast.Call):
            staged, handed = self.of_loops.staged, self.unit.decided.handed
            small = costs.small_load(self.facts, self.cheap, node) or costs.handed_over(self.facts, handed, node)
            return small or calls.cheap(self.facts, self.cheap, staged, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return False
        if isinstance(node, ast.Subscript):
            return self.cheap(node.value)
        if costs.outer_product(self.facts, self.of_loops.held, self.of_loops.staged, node) or costs.of_rows(
            self.facts, self.cheap, node
        ):
            return True
        if isinstance(node, ELEMENTWISE_NODES):
            return all(self.cheap(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
        return isinstance(node, ast.Attribute) and self.cheap(node.value)

    def rebound(self, name: str) -> bool:
        """Whether the author uses one name for several variables, so that it does not always mean the same."""

        def split(web: Web) -> bool:
            facts = [self.facts.fact(n) for d in web.definitions if (n := definition_node(d)) is not None]
            pointers_only = facts and all(isinstance(f, TensorFact) and f.is_pointer and f.shape for f in facts)
            return bool(pointers_only) and self.state(web).split is not None

        return sum(w.name == name and not split(w) for w in self.facts.webs.all) > 1
