"""Terms: what one element of a tensor is, as a function of where it stands, of the arguments and of memory. Equal terms are one object.

A tensor is the term of its element at `idx(0), idx(1), ...`; layouts are not there, shapes are substitutions of these indices.
Integers are polynomials over atoms that stand for mathematical integers. A number of `w` bits is a polynomial modulo 2**w, whose signed
value is the polynomial itself where an interval says that it fits, else the atom `wrap`. Numbers that are divided, compared or widened
are always such values, so no rule below rests on an overflow not happening. Floating-point operations are uninterpreted; those that
commute have their operands sorted (`COMMUTES`).

What is bound (an index of a sum, the iteration of a loop, what it carries) is named by the height of its binder over the binders inside
it: terms that differ in names alone are one object, and a name is never captured (`Terms.close`, `Terms.substitute`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gluonize.judge.prove.terms.conditions import Conditions
from gluonize.judge.prove.terms.term import COMMUTES, INFINITE, Monomial, Term, bits, is_integer


class Terms(Conditions):
    """All terms of one proof, of both sides, with what is bound in them."""

    def __init__(self):
        super().__init__()
        self._rebuild: dict[str, Callable[[Any, Sequence[Term], str], Term]] = {
            "poly": self._again_poly, "div": self._again_two(self.div), "rem": self._again_two(self.rem),
            "min": self._again_two(self.smaller), "max": self._again_two(self.larger),
            "wrap": lambda data, args, e: self.value(self.reduced(args[0], data), data),
            "uwrap": lambda data, args, e: self.unsigned(self.reduced(args[0], data), data),
            "lt0": lambda data, args, e: self.negative(args[0]), "eq0": lambda data, args, e: self.is_zero(args[0]),
            "not": lambda data, args, e: self.no(args[0]), "and": lambda data, args, e: self.both(*args),
            "or": lambda data, args, e: self.either(*args), "sel": lambda data, args, e: self.select(*args),
            "mem": lambda data, args, e: self.memory(data, *args),
            "store": lambda data, args, e: self.store(data, *args),
            "ptr": lambda data, args, e: self.pointer(*args), "app": lambda data, args, e: self.apply(args[0], args[1:], e),
        }  # fmt: skip

    def apply(self, function: Term, args: Sequence[Term], element: str) -> Term:
        """A function symbol, or a `lam`, of indices."""
        if function.op == "lam":
            level, extents = function.data
            by = {
                self.node("bidx", (level, d, n), (), "int", 0, n - 1): x for d, (n, x) in enumerate(zip(extents, args))
            }
            return self.substitute(function.args[0], by)
        low, high = function.data[2] if function.op in ("fun", "bfun") else (None, None)
        made = self.node("app", (), (function, *args), element, low, high)
        return self.integer_of(made) if is_integer(element) else made

    def lam(self, body: Term, symbols: Sequence[Term]) -> Term:
        """What `body` is as a function of index symbols (atoms `idx` or `fresh`); one that is None is an axis of extent 1."""
        level = body.height + 1
        extents = tuple(x.high + 1 if x is not None else 1 for x in symbols)
        by = {
            x: self.integer_of(self.node("bidx", (level, d, n), (), "int", 0, n - 1))
            for d, (x, n) in enumerate(zip(symbols, extents))
            if x is not None
        }
        return self.node("lam", (level, extents), (self.substitute(body, by),), "lam")

    def group(self, functions: Sequence[Term], count: Term, terms: Sequence[Term]) -> Term:
        """What a loop carries, as a function of what it carries (`functions`) and of its iteration `count`: bound in `terms`."""
        level = 1 + max(x.height for x in terms)
        by: dict[Term, Term] = {
            f: self.node("bfun", (level, place, f.data[2]), (), f.element) for place, f in enumerate(functions)
        }
        by[count] = self.integer_of(self.node("bcount", (level, count.high), (), "int", 0, count.high))
        return self.node("group", (level, len(functions), count.high), [self.substitute(x, by) for x in terms], "group")

    def open_group(self, group: Term) -> tuple[list[Term], Term, list[Term]]:
        """(functions, count, terms) of a group, with new symbols for what is bound."""
        return self._opened_group(group.data, group.args)

    def _opened_group(self, data: tuple, args: Sequence[Term]) -> tuple[list[Term], Term, list[Term]]:
        level, number, most = data
        bound = {x.data[1]: x for t in args for x in t.free if x.op == "bfun" and x.data[0] == level}
        functions = []
        by: dict[Term, Term] = {}
        for place in range(number):
            old = bound.get(place)
            new = self._fun(old.element if old is not None else "f32", old.data[2] if old is not None else (None, None))
            functions.append(new)
            if old is not None:
                by[old] = new
        count = self.fresh("count", "int", 0, most)
        by[self.node("bcount", (level, most), (), "int", 0, most)] = self.integer_of(count)
        return functions, count, [self.substitute(x, by) for x in args]

    def _fun(self, element: str, limits: tuple[int | None, int | None]) -> Term:
        self.fresh_numbers += 1
        return self.node("fun", (self.fresh_numbers, "", limits), (), element)

    def function(self, element: str, name: str = "") -> Term:
        """A symbol for a tensor, whose elements are applications of it to indices."""
        limits: tuple[int | None, int | None] = (None, None)
        if is_integer(element):
            half = 1 << (bits(element) - 1)
            limits = (-half, half - 1)
        self.fresh_numbers += 1
        return self.node("fun", (self.fresh_numbers, name, limits), (), element)

    def substitute(self, term: Term, by: Mapping[Term, Term]) -> Term:
        """`term` with symbols replaced: atoms by integers, functions by functions or `lam`, anything else by its like."""
        wanted = {x: y for x, y in by.items() if x is not y}
        if not wanted:
            return term
        keys = frozenset(wanted)
        memo: dict[Term, Term] = {}

        def walk(t: Term) -> Term:
            if keys.isdisjoint(t.free):
                return t
            found = memo.get(t)
            if found is not None:
                return found
            if t in wanted:
                out = wanted[t]
            else:
                out = self.rebuilt(t, [walk(x) for x in t.args])
            memo[t] = out
            return out

        return walk(term)

    def rebuilt(self, t: Term, args: list[Term]) -> Term:
        """A term, or a binder, with other terms in it."""
        return self.bound_again(t, args) if t.op in ("lam", "group") else self.again(t, args)

    def bound_again(self, t: Term, args: list[Term]) -> Term:
        """A binder with other terms in it. What is put there has nothing in it that is bound outside of it; so only the binder's name may have
        to be another, where it is no longer one more than the height of what is in it."""
        if all(x is y for x, y in zip(args, t.args)):
            return t
        level = 1 + max(x.height for x in args)
        if level == t.data[0]:
            return self.node(t.op, t.data, args, t.element)
        if t.op == "lam":
            extents = t.data[1]
            atoms = [self.node("bidx", (t.data[0], d, n), (), "int", 0, n - 1) for d, n in enumerate(extents)]
            new = [self.fresh("idxf", "int", 0, n - 1) for n in extents]
            body = self.substitute(args[0], dict(zip(atoms, map(self.integer_of, new))))
            return self.lam(body, [x if x.high else None for x in new])
        functions, count, terms = self._opened_group(t.data, args)
        return self.group(functions, count, terms)

    def again(self, t: Term, args: Sequence[Term]) -> Term:
        """The term with other arguments, normalized again."""
        if all(x is y for x, y in zip(args, t.args)) and not self.residues:
            return t
        made = self._rebuild.get(t.op)
        if made is not None:
            return made(t.data, args, t.element)
        if t.op in COMMUTES:
            args = sorted(args)
        again = self.node(t.op, t.data, args, t.element, t.low, t.high)
        return again

    def _again_poly(self, data: Any, args: Sequence[Term], element: str) -> Term:
        total: dict[Monomial, int] = {}
        for places, factor in data:
            parts = [args[place] for place in places]
            if all(x.poly is None for x in parts):
                monomial = tuple(sorted(parts))
                total[monomial] = total.get(monomial, 0) + factor
                continue
            product = self.integer(factor)
            for x in parts:
                product = self.multiply(product, self.integer_of(x))
            for m, n in product.poly.items():
                total[m] = total.get(m, 0) + n
        return self.poly({m: n for m, n in total.items() if n})

    @staticmethod
    def _again_two(function: Callable[[Term, Term], Term]) -> Callable[[Any, Sequence[Term], str], Term]:
        return lambda data, args, element: function(args[0], args[1])


__all__ = ["COMMUTES", "INFINITE", "Monomial", "Term", "Terms", "bits", "is_integer"]
