"""The index of an emitted loop: the author's, in steps of a tile, where all that uses it can be told by it, else a count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gluonize.lift.machine.spelled import ATOM
from gluonize.lift.values.scalars import Expr, apply, atom, atoms_of, const, floored, substitute, terms
from gluonize.lift.values.tree import Fold, LoopText


@dataclass(frozen=True)
class Index:
    """`for name in range(low, high, step)`; variable counts the iterations from 0."""

    name: str
    variable: Expr
    low: Expr
    high: Expr
    step: Expr

    @property
    def atom(self) -> Expr:
        """What stands for the index in expressions."""
        return atom("var", self.name)

    @property
    def text(self) -> tuple[str, int]:
        return self.name, ATOM

    @property
    def counts(self) -> bool:
        return self.low == const(0) and self.step == const(1)

    def told(self, expr: Expr, variable: Expr) -> Expr:
        """`expr` by the index instead of the count `variable`, the loop's or that of one that was joined with it."""
        if self.counts:
            return substitute(expr, {variable: self.atom})
        found = by_index(expr, variable, self.low, self.step, self.atom)
        assert found is not None
        return found

    def header(self, text: Callable[[Expr], str]) -> str:
        if self.counts:
            return f"for {self.name} in range({text(self.high)}):"
        step = f", {text(self.step)}" if self.step != const(1) else ""
        return f"for {self.name} in range({text(self.low)}, {text(self.high)}{step}):"


def index_of(loop: LoopText | Fold, exprs: Sequence[Expr], name: str) -> Index:
    """The author's index where every expression that needs the count can be told by it."""
    trips = without_floor(loop.trips)
    probe = atom("var", name)
    needing = [e for e in exprs if loop.variable in atoms_of(e)]
    plain = loop.step.is_const or loop.step.is_atom
    told = plain and all(by_index(e, loop.variable, loop.low, loop.step, probe) is not None for e in needing)
    if (loop.low == const(0) and loop.step == const(1)) or not told:
        return Index(name, loop.variable, const(0), trips, const(1))
    return Index(name, loop.variable, loop.low, apply("add", loop.low, _span(trips, loop.step)), loop.step)


def without_floor(trips: Expr) -> Expr:
    """`max(n, 0)` as `n`: a range that is negative is empty."""
    found = floored(trips)
    return found[0] if found is not None and found[1] <= 0 else trips


def _span(trips: Expr, step: Expr) -> Expr:
    """How far the index goes: of `(x + step - 1) // step` steps it is `x`."""
    if trips[0] == "div" and trips[2] is step:
        return apply("sub", trips[1], apply("sub", step, const(1)))
    return apply("mul", trips, step)


def by_index(expr: Expr, variable: Expr, low: Expr, step: Expr, index: Expr) -> Expr | None:
    """`expr` with `variable * step + low` as `index`; None where the count stands for itself."""
    if variable not in atoms_of(expr):
        return expr
    if expr[0] not in ("add", "sub", "mul") and expr is not variable:
        inner = [by_index(x, variable, low, step, index) for x in expr[1:]]
        return None if any(x is None for x in inner) else apply(expr[0], *inner)
    total = const(0)
    by = step[1] if step.is_const else 1
    for key, factor in terms(expr).items():
        if key.count(variable) > 1 or (variable in key and (factor % by or not (step.is_const or step in key))):
            return None
        product = const(factor // by if variable in key else factor)
        if variable in key and not step.is_const:
            at = key.index(step)
            key = key[:at] + key[at + 1 :]
        for x in key:
            told = apply("sub", index, low) if x is variable else by_index(x, variable, low, step, index)
            if told is None:
                return None
            product = apply("mul", product, told)
        total = apply("add", total, product)
    return total
