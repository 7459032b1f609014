"""Conditions, and what is chosen by one or is so where some hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

from gluonize.judge.prove.terms.numbers import Numbers
from gluonize.judge.prove.terms.term import Term, conjuncts, is_integer


class Conditions(Numbers):
    """Comparisons of integers and what they are joined to; choices; pointers and what they reach."""

    # --- conditions

    def negative(self, a: Term) -> Term:
        """a < 0"""
        if a.high < 0:
            return self.true
        if a.low >= 0:
            return self.false
        common = reduce(math.gcd, (n for m, n in a.poly.items() if m), 0)
        if common > 1:
            a = self.poly({m: n for m, n in ((m, n // common) for m, n in a.poly.items()) if n})
            if a.high < 0 or a.low >= 0:
                return self.negative(a)
        for monomial, n in a.poly.items():
            if len(monomial) == 1 and monomial[0].op in ("min", "max"):
                rest = self.poly({m: f for m, f in a.poly.items() if m != monomial})
                ways = [self.add(rest, x, n) for x in monomial[0].args]
                if (monomial[0].op == "max") == (n < 0):  # it is enough for one of them to be negative
                    if any(x.low >= 0 for x in ways):
                        return self.either(*map(self.negative, ways))
                elif any(x.high < 0 for x in ways):
                    return self.both(*map(self.negative, ways))
            if len(monomial) == 1 and monomial[0].op == "sel":
                rest = self.poly({m: f for m, f in a.poly.items() if m != monomial})
                condition, *chosen = monomial[0].args
                first, second = (self.negative(self.add(rest, x, n)) for x in chosen)
                if {first, second} & {self.true, self.false}:
                    return self.select(condition, first, second)
            if n == 1 and len(monomial) == 1 and monomial[0].op == "uwrap":
                if (split := self._below(monomial[0], a)) is not None:
                    return split
        return self.node("lt0", (), (a,), "i1")

    def _below(self, number: Term, difference: Term) -> Term | None:
        """An unsigned number below one that the signed numbers have: the signed number is not negative, and below it."""
        limit = self.add(self.integer_of(number), difference, -1)
        if limit.low < 0 or limit.high >= 1 << (number.data - 1):
            return None
        signed = self.value(number.args[0], number.data)
        only = self._atom(limit)
        if only is not None and only.op == "max" and any(x.constant == 0 for x in only.args):
            limit = next((x for x in only.args if x.constant != 0), limit)
        return self.both(self.no(self.negative(signed)), self.less(signed, limit))

    def is_zero(self, a: Term) -> Term:
        """a == 0"""
        if a.constant is not None:
            return self.true if a.constant == 0 else self.false
        if a.low > 0 or a.high < 0:
            return self.false
        for monomial, n in a.poly.items():
            if len(monomial) == 1 and monomial[0].op == "sel":
                others = self.poly({m: f for m, f in a.poly.items() if m != monomial})
                condition, *chosen = monomial[0].args
                first, second = (self.is_zero(self.add(others, x, n)) for x in chosen)
                if {first, second} & {self.true, self.false}:
                    return self.select(condition, first, second)
        common = reduce(math.gcd, (n for m, n in a.poly.items() if m), 0)
        rest = a.poly.get((), 0)
        if rest % common:
            return self.false
        first = min((m for m in a.poly if m), key=lambda m: tuple(x.number for x in m))
        if a.poly[first] < 0:
            common = -common
        if common != 1:
            a = self.poly({m: n // common for m, n in a.poly.items()})
        return self.node("eq0", (), (a,), "i1")

    def less(self, a: Term, b: Term) -> Term:
        return self.negative(self.add(a, b, -1))

    def no(self, a: Term) -> Term:
        if a is self.true:
            return self.false
        if a is self.false:
            return self.true
        if a.op == "not":
            return a.args[0]
        if a.op == "lt0":
            return self.negative(self.add(self.integer(-1), a.args[0], -1))
        if a.op == "and":
            return self.either(*map(self.no, a.args))
        if a.op == "or":
            return self.both(*map(self.no, a.args))
        return self.node("not", (), (a,), "i1")

    def both(self, *given: Term) -> Term:
        return self._joined("and", given, self.true, self.false, True)

    def either(self, *given: Term) -> Term:
        return self._joined("or", given, self.false, self.true)

    def _joined(self, op: str, given: Sequence[Term], nothing: Term, ends: Term, narrow: bool = False) -> Term:
        parts: set[Term] = set()
        for x in given:
            parts |= set(x.args) if x.op == op else {x}
        parts.discard(nothing)
        if ends in parts or any(x.op == "not" and x.args[0] in parts for x in parts):
            return ends
        least: dict[Term, Term] = {}
        for x in sorted(parts):  # of `p < 0` and `p + 1 < 0` one says all
            if x.op == "lt0":
                body = self.poly({m: n for m, n in x.args[0].poly.items() if m})
                other = least.get(body)
                if other is not None:
                    mine, its = (t.args[0].poly.get((), 0) for t in (x, other))
                    if (mine > its) != (op == "and"):
                        continue
                    parts.discard(other)
                least[body] = x
        kept = {x for x in parts if x.op != "lt0"} | set(least.values())
        if narrow and (again := self._narrowed(kept)) is not None:
            return self._joined(op, again, nothing, ends)
        if op == "and" and (again := self._known_of_others(kept)) is not None:
            return self._joined(op, again, nothing, ends)
        if not kept:
            return nothing
        if len(kept) == 1:
            return next(iter(kept))
        return self.node(op, (), sorted(kept), "i1")

    def _narrowed(self, parts: set[Term]) -> list[Term] | None:
        """0 <= a < q of a number that is a little wider than 32 bits, where q has them: said of the number of 32 bits that it is modulo
        2**32, which is the same; None where there is no such pair."""
        half = 1 << 31
        for lower in parts:
            if lower.op != "lt0":
                continue
            a = self.add(self.integer(-1), lower.args[0], -1)
            if a.high < half or a.low < -half or a.high >= 3 * half:
                continue
            narrow = self.value(self.reduced(a, 32), 32)
            if narrow is a:
                continue
            limits = {x: self.add(a, x.args[0], -1) for x in parts if x.op == "lt0" and x is not lower}
            upper = {x: q for x, q in limits.items() if q.high < half}
            if upper:
                rest = [x for x in parts if x not in upper and x is not lower]
                return [*rest, self.no(self.negative(narrow)), *(self.less(narrow, q) for q in upper.values())]
        return None

    def _known_of_others(self, parts: set[Term]) -> list[Term] | None:
        """Conditions that all hold, without what the others say of one: `m and (not m or x)`, `m and (x if m else y) == 0`; None where they say
        nothing."""
        for x in parts:
            if x.op == "or" and (left := [y for y in x.args if not self._denied(y, parts)]) != list(x.args):
                return [*(parts - {x}), self.either(*left)]
            core = x.args[0] if x.op == "not" else x
            for monomial, n in core.args[0].poly.items() if core.op in ("eq0", "lt0") else ():
                if len(monomial) != 1 or monomial[0].op != "sel":
                    continue
                on, first, second = monomial[0].args
                way = first if parts >= set(conjuncts(on)) else second if self._denied(on, parts) else None
                if way is not None:
                    rest = self.poly({m: f for m, f in core.args[0].poly.items() if m != monomial})
                    again = (self.is_zero if core.op == "eq0" else self.negative)(self.add(rest, way, n))
                    return [*(parts - {x}), self.no(again) if x.op == "not" else again]
        return None

    @staticmethod
    def _denied(x: Term, parts: set[Term]) -> bool:
        """Whether one of some conditions is the contrary of another one."""
        if x.op == "not":
            return x.args[0] in parts
        if x.op != "lt0":
            return any(y.op == "not" and y.args[0] is x for y in parts)
        p = x.args[0].poly  # p < 0 and -1 - p < 0
        for q in (y.args[0].poly for y in parts if y.op == "lt0"):
            if p.get((), 0) + q.get((), 0) == -1 and all(q.get(m) == -n for m, n in p.items() if m):
                if len(p.keys() - {()}) == len(q.keys() - {()}):
                    return True
        return False

    def implied(self, conditions: Iterable[Term], wanted: Term) -> bool:
        """Whether one of the conditions that hold says that `wanted` does."""
        if wanted is self.true:
            return True
        if wanted.op == "and":
            given = list(conditions)
            return all(self.implied(given, x) for x in wanted.args)
        for x in conditions:
            if x is wanted:
                return True
            if x.op == wanted.op == "lt0":
                given = x.args[0].poly
                # p < 0 says that n p + r < 0 where r < n
                times = next(
                    (f // n for m, n in given.items() if m and (f := wanted.args[0].poly.get(m, 0)) % n == 0), 1
                )
                if self.add(wanted.args[0], x.args[0], -1).high <= 0:
                    return True
                if times > 1 and self.add(wanted.args[0], x.args[0], -times).high < times:
                    return True
            if x.op == "eq0" and wanted.op == "lt0" and self.add(wanted.args[0], x.args[0], -1).high < 0:
                return True
        return False

    def where(self, conditions: Iterable[Term]) -> dict[Term, tuple[int, int]]:
        """Intervals of atoms where conditions hold."""
        known: dict[Term, tuple[int, int]] = {}
        linear = [x.args[0].poly for x in conditions if x.op == "lt0"]
        for _ in range(2):
            for poly in linear:
                for monomial, n in poly.items():
                    if len(monomial) != 1:
                        continue
                    (x,) = monomial
                    rest, _ = self.within({m: f for m, f in poly.items() if m != monomial}, known)
                    low, high = known.get(x, (x.low, x.high))
                    if n < 0:  # -n * x > rest
                        low = max(low, rest // -n + 1)
                    else:
                        high = min(high, -(rest // n) - 1 if rest % n == 0 else (-rest - 1) // n)
                    if x.op in ("wrap", "uwrap"):
                        step = self.step(x.args[0])
                        low, high = -(-low // step) * step, high // step * step
                    known[x] = low, high
        return known

    # --- choices and pointers

    def select(self, condition: Term, a: Term, b: Term) -> Term:
        if condition is self.true or a is b:
            return a
        if condition is self.false:
            return b
        if a.element == "i1":
            return self.either(self.both(condition, a), self.both(self.no(condition), b))
        if condition.op == "not":
            return self.select(condition.args[0], b, a)
        if a.op == "sel" and a.args[0] is condition:
            a = a.args[1]
        if b.op == "sel" and b.args[0] is condition:
            b = b.args[2]
        if a.op == "ptr" and b.op == "ptr" and a.args[0] is b.args[0]:
            return self.pointer(a.args[0], self.select(condition, a.args[1], b.args[1]))
        if a.poly is not None and b.poly is not None:
            if a is b:
                return a
            made = self.node("sel", (), (condition, a, b), "int", min(a.low, b.low), max(a.high, b.high))
            return self.integer_of(made)
        if a is b:
            return a
        return self.node("sel", (), (condition, a, b), a.element)

    def pointer(self, base: Term, offset: Term) -> Term:
        """`offset` bytes behind `base`; a polynomial modulo 2**64."""
        if base.op == "ptr":
            return self.pointer(base.args[0], self.add(base.args[1], offset))
        return self.node("ptr", (), (base, self.reduced(offset, 64)), "ptr")

    def address(self, pointer: Term, size: int) -> Term:
        """The address of `size` bytes as it is compared. An argument whose storage is within 2 GiB (`tt.pointer_range`) is accessed less than
        2**31 bytes behind it, so that the number of the element modulo 2**32 says which one it is."""
        base, offset = pointer.args
        near = base.op == "argument" and base.data[1]
        return self.node("ptr", (), (base, self.reduced(offset, 31 + size.bit_length() if near else 64)), "ptr")

    def memory(self, data: tuple[str, int], pointer: Term, version: Term) -> Term:
        """What memory holds: data is the element and its bytes."""
        made = self.node("mem", data, (self.address(pointer, data[1]), version), data[0])
        return (
            self.integer_of(made)
            if is_integer(data[0])
            else made if data[0] != "ptr" else self.pointer(made, self.integer(0))
        )

    def store(self, data: tuple, pointer: Term, mask: Term, value: Term) -> Term:
        """A store to all indices of a shape, of what is known where its mask holds: data is (name, shape, element, bytes, what else is said)."""
        conditions = conjuncts(mask)
        pointer, value = self.assuming(pointer, conditions), self.assuming(value, conditions)
        return self.node("store", data, (self.address(pointer, data[3]), mask, value), "effect")

    def assuming(self, term: Term, conditions: Sequence[Term]) -> Term:
        """The term where the conditions hold: choices that they decide are made."""
        if not conditions:
            return term
        memo: dict[Term, Term] = {}
        negated = [self.no(x) for x in conditions]

        def decided(c: Term) -> Term:
            if self.implied(conditions, c):
                return self.true
            if self.implied(conditions, self.no(c)) or c in negated:
                return self.false
            if c.op in ("and", "or"):
                parts = [decided(x) for x in c.args]
                return self.both(*parts) if c.op == "and" else self.either(*parts)
            return c

        spoken = frozenset().union(*(x.free for x in conditions)) if all(x.free for x in conditions) else None

        def walk(t: Term) -> Term:
            if t in memo:
                return memo[t]
            if spoken is not None and spoken.isdisjoint(t.free):
                return t
            if t.op == "sel":
                c = walk(t.args[0])
                if c is self.true or c is self.false:
                    out = walk(t.args[1] if c is self.true else t.args[2])
                else:
                    out = self.select(c, walk(t.args[1]), walk(t.args[2]))
            elif t.element == "i1" and t.op in ("lt0", "eq0", "and", "or", "not"):
                out = decided(t)
                if out not in (self.true, self.false):
                    out = self.again(t, [walk(x) for x in t.args])
                    out = decided(out) if out is not t else t
            elif t.op == "rem" and self._less_for_sure(conditions, *t.args):
                out = walk(t.args[0])
            elif t.op in ("min", "max") and (least := self._first_of(conditions, *t.args)) is not None:
                out = walk(t.args[least if t.op == "min" else 1 - least])
            elif not t.args:
                out = t
            else:  # the conditions do not speak of what is bound in it
                out = self.rebuilt(t, [walk(x) for x in t.args])
            memo[t] = out
            return out

        return walk(term)

    def _less_for_sure(self, conditions: Sequence[Term], a: Term, b: Term) -> bool:
        """Whether 0 <= a < b where the conditions hold."""
        return (a.low >= 0 or self.implied(conditions, self.no(self.negative(a)))) and self.implied(
            conditions, self.less(a, b)
        )

    def _first_of(self, conditions: Sequence[Term], a: Term, b: Term) -> int | None:
        """Which of two numbers is not greater than the other where the conditions hold; None where that is not known."""
        if self.implied(conditions, self.no(self.less(b, a))):
            return 0
        return 1 if self.implied(conditions, self.no(self.less(a, b))) else None
