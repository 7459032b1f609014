"""Whether a load's own mask already excludes every tile past the end of its loop.

A tile fetched ahead may lie past the last iteration and must then be masked out. Where the author masks the tail of
the loop (`offs_k < K - k * BLOCK_K` in `range(0, cdiv(K, BLOCK_K))`), the mask is false there anyway; elsewhere the
condition has to be added. The proof writes `right - left` of a comparison as a polynomial over the kernel's values.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.host_bounds import Condition, number
from gluonize.facts.integers.operations import operation_of
from gluonize.facts.integers.polynomials import INDEX, OPERATORS, Polynomial, add, operated
from gluonize.facts.integers.ranges import int_type
from gluonize.facts.loops.loop_range import every_iteration, int_of, is_index, step_of, varies
from gluonize.facts.numbers.overflow import Beyond, conditions_beyond, index_conditions
from gluonize.facts.numbers.signs import Signs, checked_at, least_for, obligation_at
from gluonize.facts.numbers.values import Question
from gluonize.facts.obligations import Obligation
from gluonize.facts.syntax import less_than
from gluonize.facts.variables.same_value import value_key
from gluonize.trace.front.trace import TensorFact


class TailProof:
    """Proof attempts for one loop over `range(low or 0, high, step or 1)`.

    ahead: how many tiles past the end are asked about at most. assumed: what successful proofs rest on.
    """

    def __init__(
        self,
        facts: FunctionFacts,
        loop: ast.For,
        low: ast.expr | None,
        high: ast.expr,
        step: ast.expr | None,
        ahead: int = 0,
    ):
        self.facts, self.loop, self.low, self.high, self.step, self.ahead = facts, loop, low, high, step, ahead
        self.moves: dict[int, tuple[ast.AST, int]] = {}
        self.runs_asked = False  # whether the first tiles have to be asked whether the loop runs
        self.descending = step is not None and int_of(facts, step) < 0
        self.tensors: dict[str, ast.expr] = {}
        self.assumed: set[Obligation] = set()

    def implied(self, mask: ast.expr) -> bool:
        """Whether `mask` is false on every lane when the loop index is at or past the end."""
        return any(self._ends(c) for c in self.conjuncts(mask))

    def shrinks(self, mask: ast.expr) -> frozenset[Obligation] | None:
        """What makes sure that a lane that `mask` enables in some iteration is enabled in the first one too; None where nothing does."""
        rests: set[Obligation] = set()
        for conjunct in self.conjuncts(mask):
            if not self.varies(conjunct):
                continue
            found = self._fits(conjunct) if self._monotone(conjunct) else None
            if found is None:
                return None
            rests |= self._obligations(conjunct, "shrinks", "a base that moves from tile to tile", *found)
        return frozenset(rests)

    def ends(self, start: ast.expr, bound: ast.expr) -> bool:
        """Whether `start` is at or past `bound` when the loop index is at or past the end."""
        return self._ends(ast.Compare(start, [ast.Lt()], [bound]))

    def _ends(self, conjunct: ast.expr) -> bool:
        """Whether a comparison is false past the end, in full numbers and in those of its type."""
        before = set(self.assumed)
        found = self._fits(conjunct) if self._conjunct(conjunct) else None
        if found is None:
            self.assumed = before
            return False
        self.assumed |= self._obligations(conjunct, "ends", "tiles ahead that their own mask ends", *found)
        return True

    def _fits(self, comparison: ast.expr) -> tuple[frozenset[Condition], frozenset[str]] | None:
        """What makes sure that the sides of a comparison do not overflow, in no iteration and in no tile ahead."""
        if (sides := less_than(comparison)) is None:
            return None
        beyond = self.beyond()
        return least_for(self.facts, lambda ask: conditions_beyond(ask, self.facts, sides, beyond))

    def _obligations(
        self, node: ast.expr, kind: str, rewrite: str, conditions: frozenset[Condition], names: frozenset[str]
    ) -> set[Obligation]:
        """What makes sure that nothing in `node` overflows, written down."""
        found = {checked_at(self.facts, node, kind, rewrite, c) for c in conditions}
        if names:
            found.add(obligation_at(self.facts, node, "not-negative", rewrite, "launch", tuple(sorted(names))))
        return found or {obligation_at(self.facts, node, kind, rewrite, "proven")}

    def counts_on(self, dtype: str) -> bool:
        """Whether the index fits its type in the tiles past the end too, so that it can be compared with the end there."""
        type, rewrite = int_type(dtype), "tiles ahead that the end of their loop ends"
        by = abs(int_of(self.facts, self.step) or 1) if self.step is not None else 1
        if self.descending:
            least = Question(self.facts).value(self.high).range.lo - self.ahead * by
            found = (frozenset(), frozenset()) if least >= type.least else None
        else:
            beyond = self.beyond()
            found = least_for(self.facts, lambda ask: index_conditions(ask, self.facts, beyond, type))
            if found is None and self.low is not None:
                beyond = replace(beyond, starts_anywhere=False)
                found = least_for(self.facts, lambda ask: index_conditions(ask, self.facts, beyond, type))
                self.runs_asked = True
        if found is not None:
            self.assumed |= self._obligations(self.high, "ends", rewrite, *found)
        return found is not None

    def rest_type(self, dtype: str) -> str:
        """The type that what is left of the loop fits in each iteration: that of the index where the start is not negative, else
        the unsigned one of its width. "" where it fits none."""
        start = 0 if self.low is None else int_of(self.facts, self.low)
        by = step_of(self.facts, self.step)
        if self.descending or not by or dtype not in ("int32", "int64"):
            return ""
        rewrite = "tiles ahead that what is left of their loop ends"
        self.assumed |= self._obligations(self.high, "ends", rewrite, frozenset(), frozenset())
        return dtype if start is not None and 0 <= start <= int_type(dtype).most - self.ahead * by else f"u{dtype}"

    def beyond(self) -> Beyond:
        """The tiles past the end."""
        step = step_of(self.facts, self.step)
        return Beyond(self.loop, number(self.ahead * abs(step or 1)), dict(self.moves))

    def conjuncts(self, node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            return [*self.conjuncts(node.left), *self.conjuncts(node.right)]
        if isinstance(node, ast.Subscript) and self._is_expansion(node):
            return self.conjuncts(node.value)
        if (value := self.facts.webs.value_of(node)) is not None:
            return self.conjuncts(value)
        return [node]

    def _margin(self, node: ast.expr) -> Polynomial | None:
        """`right - left` of `left < right`: the lane is enabled where it is positive."""
        sides = less_than(node)
        if sides is None:
            return None
        a, b = map(self.polynomial, sides)
        return None if a is None or b is None else add(b, a, -1)

    def _conjunct(self, node: ast.expr) -> bool:
        margin = self._margin(node)
        if margin is None or self.descending:
            return False
        step = -margin.pop((INDEX,), 0)
        if step <= 0 or any(INDEX in m for m in margin):
            return False
        proof = Signs(self.facts, "a mask that ends with its loop")
        for monomial in [m for m in margin if any(x in self.tensors for x in m)]:
            coefficient = margin.pop(monomial)
            if coefficient > 0 or len(monomial) != 1 or not proof.holds(self.tensors[monomial[0]]):
                return False
        # Past the end the index is at least `high`; that has to bring the margin to zero or below.
        end, ceiling = self.polynomial(self.high) if step == 1 else None, self._ceiling(self.high)
        for high in (end, ceiling[0] if ceiling is not None and ceiling[1] == step else None):
            rest = add(margin, high, -1) if high is not None else None
            if rest is not None and set(rest) <= {()} and rest.get((), 0) <= 0:
                self.assumed |= proof.assumed
                return True
        return False

    def _monotone(self, node: ast.expr) -> bool:
        if not self.varies(node):
            return True
        margin = self._margin(node)
        return (
            margin is not None
            and not self.descending
            and all(INDEX not in m or (m == (INDEX,) and c < 0) for m, c in margin.items())
        )

    def varies(self, node: ast.expr) -> bool:
        """Whether the value may differ between iterations."""
        return varies(self.facts, self.loop, node)

    def _ceiling(self, node: ast.expr) -> tuple[Polynomial, int] | None:
        """(E, S) where `node` is `cdiv(E, S)` or `(E + S - 1) // S`."""
        if (value := self.facts.webs.value_of(node)) is not None:
            return self._ceiling(value)
        if isinstance(node, ast.Call):
            called = operation_of(node, self.facts.fact(node.func))
            if called is None or called.name != "cdiv" or set(called.operands) != {"x", "div"}:
                return None
            divisor, top = int_of(self.facts, called.operands["div"]), self.polynomial(called.operands["x"])
            return (top, divisor) if divisor and top is not None else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            divisor, top = int_of(self.facts, node.right), self.polynomial(node.left)
            if divisor and top is not None:
                return add(top, {(): divisor - 1}, -1), divisor
        return None

    def polynomial(self, node: ast.expr) -> Polynomial | None:
        """`node` over atoms: names of kernel values, and tensors taken as a whole; None when it grows too large."""
        constant = int_of(self.facts, node)
        if constant is not None:
            return {(): int(constant)} if constant else {}
        fact = self.facts.fact(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
            a, b = self.polynomial(node.left), self.polynomial(node.right)
            if a is None or b is None or not isinstance(fact, TensorFact):
                return None
            return operated(node.op, a, b)
        if isinstance(node, ast.Subscript) and self._is_expansion(node):
            return self.polynomial(node.value)
        if (inner := self._widened(node)) is not None:
            return self.polynomial(inner)
        if isinstance(node, ast.Name):
            web = self.facts.webs.of_use.get(node)
            if is_index(self.facts, self.loop, node):
                return {(INDEX,): 1}
            moved = self._moved(node)
            if moved is not None:
                return moved
            value = self.facts.webs.value_of(node)
            if value is not None and (self.varies(node) or not (isinstance(fact, TensorFact) and fact.shape)):
                return self.polynomial(value)
            if web is None:
                return None
        if self.varies(node):
            return None
        return self._atom(value_key(self.facts, node, self.loop), node, fact)

    def _atom(self, key: str, node: ast.expr, fact) -> Polynomial:
        if isinstance(fact, TensorFact) and fact.shape:
            self.tensors[key] = node
        return {(key,): 1}

    def _moved(self, node: ast.Name) -> Polynomial | None:
        """`x` where `x += c` once per iteration, after this use: its first value plus `c` per iteration."""
        web = self.facts.webs.of_use.get(node)
        if web is None or len(web.definitions) != 2 or self.low is not None:
            return None
        if not any(use is node and self.loop in loops for use, loops in web.uses):
            return None  # read before the loop: a mask that stays as it was
        first, moved = sorted(web.definitions, key=lambda d: d.augmented)
        move = moved.node
        if (
            not isinstance(move, ast.AugAssign)
            or not isinstance(move.op, ast.Add)
            or move not in every_iteration(self.facts, self.loop.body)
        ):
            return None
        if first.augmented or first.value is None or self.loop in first.in_loop or node.lineno >= move.lineno:
            return None
        if first.in_loop != tuple(x for x in moved.in_loop if x is not self.loop):
            return None  # it goes on from one run of the loop to the next
        by = int_of(self.facts, move.value)
        step = step_of(self.facts, self.step)
        if not by or not step or by % step:
            return None
        fact = self.facts.fact(node)
        start = (
            self._atom(f"start of {web.name}#{web.index}", first.value, fact)
            if isinstance(fact, TensorFact) and fact.shape
            else self.polynomial(first.value)
        )
        self.moves[web.index] = first.value, by // step
        return None if start is None else add(start, {(INDEX,): by // step}, 1)

    def _widened(self, node: ast.expr) -> ast.expr | None:
        """`x` of `x.to(tl.int64)`, for a signed integer `x`."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "to":
            return None
        before, after = self.facts.fact(node.func.value), self.facts.fact(node)
        kinds = [f.dtype if isinstance(f, TensorFact) else "" for f in (before, after)]
        return node.func.value if kinds in (["int32", "int64"], ["int32", "int32"], ["int64", "int64"]) else None

    def _is_expansion(self, node: ast.Subscript) -> bool:
        fact = self.facts.fact(node.value)
        return isinstance(fact, TensorFact) and bool(fact.shape)
