"""Terms as they are made, and integers: polynomials over atoms that are mathematical integers, and the numbers of some bits that these are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from gluonize.judge.prove.terms.term import BOUND, INFINITE, SYMBOLS, Monomial, Term, TooMuch, bits


class Numbers:
    """All terms of one proof, of both sides. residues: of atoms, (modulus, remainder), as far as a case of the proof has them. left: how many
    terms may still be asked for, negative where there is no limit: a measure of time that is the same on every machine.
    """

    def __init__(self):
        self.left = -1
        self._known: dict[tuple, Term] = {}
        self._polynomials: dict[frozenset, Term] = {}
        self.residues: dict[Term, tuple[int, int]] = {}
        self.side, self.at = 0, None
        self.fresh_numbers = 0
        self.true = self.node("true", (), (), "i1")
        self.false = self.node("false", (), (), "i1")
        self.exact: dict[tuple[Term, int], Term] = (
            {}
        )  # the number that one of so many bits is, where it does not overflow
        self.bounds: list[tuple[dict[Monomial, int], int]] = []
        self.counted: dict[Term, Term] = {}  # of the symbol of an iteration: how many there are
        self.positive: frozenset[Term] = frozenset()
        self.programs = [(1 << 31) - 1] * 3  # how many there are at most

    # --- making

    def node(
        self, op: str, data: Any, args: Iterable[Term], element: str, low: int | None = None, high: int | None = None
    ) -> Term:
        """The term, made if it is new; low, high: the interval of an integer atom where it is known better than by its type."""
        self.left -= 1
        if not self.left:
            raise TooMuch
        args = tuple(args)
        key = (op, data, args, element)
        term = self._known.get(key)
        if term is None:
            term = Term()
            term.op, term.data, term.args, term.element = op, data, args, element
            term.number = len(self._known)
            term.poly = None
            if op in SYMBOLS:
                term.free = frozenset((term,))
            elif args:
                term.free = args[0].free.union(*(x.free for x in args[1:]))
            else:
                term.free = frozenset()
            term.height = max((x.height for x in args), default=0)
            if op in ("lam", "group"):
                term.height = data[0]
                term.free = frozenset(x for x in term.free if x.op not in BOUND[op] or x.data[0] != data[0])
            if element[0] == "i" and element[1:].isdigit() and element != "i1":
                half = 1 << (bits(element) - 1)
                term.low, term.high = -half, half - 1
            else:
                term.low, term.high = -INFINITE, INFINITE
            if low is not None:
                term.low = low
            if high is not None:
                term.high = high
            term.made_by = {}
            self._known[key] = term
        if self.side not in term.made_by:
            term.made_by[self.side] = self.at
        return term

    def all(self, op: str) -> list[Term]:
        """All terms of an operation that were made so far."""
        return [x for x in self._known.values() if x.op == op]

    def fresh(self, op: str, element: str, low: int | None = None, high: int | None = None, data: Any = None) -> Term:
        """A symbol that nothing else is."""
        self.fresh_numbers += 1
        return self.node(op, (self.fresh_numbers, data), (), element, low, high)

    def index(self, axis: int, extent: int) -> Term:
        """Where the element stands along an axis, as an integer."""
        if extent == 1:
            return self.integer(0)
        return self.integer_of(self.node("idx", (axis, extent), (), "int", 0, extent - 1))

    def program(self, axis: int) -> Term:
        """The number of the source's program along an axis of the grid."""
        return self.integer_of(self.node("program", axis, (), "i32", 0, self.programs[axis] - 1))

    def number_of_programs(self, axis: int) -> Term:
        return self.integer_of(self.node("programs", axis, (), "i32", 1, self.programs[axis]))

    # --- integers

    def integer(self, value: int) -> Term:
        return self.poly({(): value} if value else {})

    def poly(self, given: Mapping[Monomial, int]) -> Term:
        """A polynomial; factors that are 0 have been left out."""
        self.left -= 1
        if not self.left:
            raise TooMuch
        key = frozenset(given.items())
        known = self._polynomials.get(key)
        if known is not None:
            return known
        items = tuple(sorted(given.items(), key=lambda item: tuple(x.number for x in item[0])))
        atoms = sorted({x for monomial, _ in items for x in monomial})
        place = {x: i for i, x in enumerate(atoms)}
        data = tuple((tuple(place[x] for x in monomial), factor) for monomial, factor in items)
        term = self.node("poly", data, atoms, "int")
        if term.poly is None:
            term.poly = dict(given)
            term.low, term.high = self._interval(term.poly)
        self._polynomials[key] = term
        return term

    @staticmethod
    def within(poly: Mapping[Monomial, int], known: Mapping[Term, tuple[int, int]]) -> tuple[int, int]:
        """The interval of a polynomial, of the intervals of its atoms; known: better ones of some of them."""
        low = high = 0
        for monomial, factor in poly.items():
            a = b = factor
            for x in monomial:
                least, most = known.get(x) or (x.low, x.high)
                ends = [a * least, a * most, b * least, b * most]
                a, b = min(ends), max(ends)
            low, high = low + a, high + b
        return low, high

    def _interval(self, poly: Mapping[Monomial, int]) -> tuple[int, int]:
        low, high = self.within(poly, {})
        for known, most in self.bounds:
            if (high > most or -low > most) and any(m in poly for m in known if m):
                high = min(high, most + self._excess(poly, known))
                low = max(low, -most - self._excess({m: -n for m, n in poly.items()}, known))
        if self.bounds and (larger := self._with_dividends(poly)) is not None:
            for known, most in self.bounds:
                if high > most and any(m in larger for m in known if m):
                    high = min(high, most + self._excess(larger, known))
        return low, high

    @staticmethod
    def _with_dividends(poly: Mapping[Monomial, int]) -> dict[Monomial, int] | None:
        """A polynomial that is not less: with what remainders that are not negative are made of in their place; None where there are none."""
        out: dict[Monomial, int] = {}
        found = False
        for monomial, factor in poly.items():
            whole = next((x for x in monomial if x.op == "rem" and x.args[0].low >= 0), None)
            if whole is None or factor < 0 or any(x.low < 0 for x in monomial):
                out[monomial] = out.get(monomial, 0) + factor
                continue
            found, rest = True, list(monomial)
            rest.remove(whole)
            for inner, n in whole.args[0].poly.items():
                key = tuple(sorted([*rest, *inner], key=lambda t: t.number))
                out[key] = out.get(key, 0) + factor * n
        return out if found else None

    def _excess(self, poly: Mapping[Monomial, int], known: Mapping[Monomial, int]) -> int:
        """What a polynomial is greater than another one by at most."""
        rest = dict(poly)
        for monomial, factor in known.items():
            rest[monomial] = rest.get(monomial, 0) - factor
        most: dict[Monomial, int] = {}
        for monomial, factor in rest.items():
            others = []
            for x in monomial:  # indices are as great, or as small, as they can be
                if x.op in ("idx", "bidx", "idxf") and all(y.low >= 0 for y in monomial):
                    factor *= x.high if factor > 0 else x.low
                else:
                    others.append(x)
            key = tuple(others)
            most[key] = most.get(key, 0) + factor
        total = 0
        for monomial, factor in most.items():
            a = b = factor
            for x in monomial:
                ends = [a * x.low, a * x.high, b * x.low, b * x.high]
                a, b = min(ends), max(ends)
            total += b
        return total

    def integer_of(self, atom: Term) -> Term:
        """An integer atom as a polynomial."""
        return atom if atom.poly is not None else self.poly({(atom,): 1})

    def add(self, a: Term, b: Term, factor: int = 1) -> Term:
        """a + factor * b"""
        assert a.poly is not None and b.poly is not None
        out = dict(a.poly)
        for monomial, n in b.poly.items():
            out[monomial] = out.get(monomial, 0) + factor * n
        return self.poly({m: n for m, n in out.items() if n})

    def multiply(self, a: Term, b: Term) -> Term:
        assert a.poly is not None and b.poly is not None
        out: dict[Monomial, int] = {}
        for x, m in a.poly.items():
            for y, n in b.poly.items():
                key = tuple(sorted(x + y, key=lambda t: t.number))
                out[key] = out.get(key, 0) + m * n
        return self.poly({m: n for m, n in out.items() if n})

    def scaled(self, a: Term, by: int) -> Term:
        assert a.poly is not None
        return self.poly({m: n * by for m, n in a.poly.items()} if by else {})

    def reduced(self, a: Term, width: int) -> Term:
        """What is equal modulo 2**width: factors as signed numbers of that width, `wrap` atoms opened that the modulus sees through."""
        assert a.poly is not None
        opened = self._opened(a, width)
        half, whole = 1 << (width - 1), 1 << width
        out = {m: ((n + half) % whole) - half for m, n in opened.poly.items()}
        return self.poly({m: n for m, n in out.items() if n})

    def _opened(self, a: Term, width: int) -> Term:
        while True:
            for monomial, n in a.poly.items():
                twos = (n & -n).bit_length() - 1
                inner = next((x for x in monomial if x.op in ("wrap", "uwrap") and x.data + twos >= width), None)
                if inner is not None:
                    rest = list(monomial)
                    rest.remove(inner)
                    others = self.poly({m: f for m, f in a.poly.items() if m != monomial})
                    product = self.multiply(self.poly({tuple(rest): n}), inner.args[0])
                    a = self.add(others, product)
                    break
            else:
                return a

    def value(self, a: Term, width: int) -> Term:
        """The signed number of `width` bits that a polynomial modulo 2**width stands for."""
        half = 1 << (width - 1)
        if a.low >= -half and a.high < half:
            return a
        if (known := self.exact.get((a, width))) is not None:
            return known
        if (split := self._apart(a, width)) is not None:
            return self.add(self.value(split[0], width), split[1])
        step = self.step(a)  # it is a multiple of that
        return self.integer_of(self.node("wrap", width, (a,), "int", -half, (half - 1) // step * step))

    @staticmethod
    def step(a: Term) -> int:
        """The power of 2 that a polynomial is a multiple of."""
        common = math.gcd(*a.poly.values()) if a.poly else 0
        return common & -common or 1

    def unsigned(self, a: Term, width: int) -> Term:
        """The unsigned number of `width` bits."""
        signed = self.value(a, width)
        if signed.low >= 0:
            return signed
        if a.low >= 0 and a.high < 1 << width:
            return a
        if signed.high < 0:
            return self.add(signed, self.integer(1 << width))
        if (split := self._apart(a, width)) is not None:
            return self.add(self.unsigned(split[0], width), split[1])
        return self.integer_of(self.node("uwrap", width, (a,), "int", 0, (1 << width) - self.step(a)))

    def _apart(self, a: Term, width: int) -> tuple[Term, Term] | None:
        """(p, r) with a = p + r, p a multiple of a power of 2 and 0 <= r less than it: adding r carries into nothing."""
        powers = sorted({n & -n for n in a.poly.values()}, reverse=True)
        for power in powers:
            if power == 1 or power >= 1 << width:
                continue
            rest = {m: n for m, n in a.poly.items() if n % power}
            if not rest:
                continue
            r = self.poly(rest)
            if r.low >= 0 and r.high < power:
                return self.poly({m: n for m, n in a.poly.items() if n % power == 0}), r
        return None

    def div(self, a: Term, b: Term) -> Term:
        """Quotient, rounded toward zero."""
        assert a.poly is not None and b.poly is not None
        x, c = a.constant, b.constant
        if x == 0:
            return a
        if c is not None and c != 0:
            if x is not None:
                return self.integer(abs(x) // abs(c) * (1 if (x < 0) == (c < 0) else -1))
            if c == 1:
                return a
            if c == -1:
                return self.scaled(a, -1)
            if all(n % c == 0 for n in a.poly.values()):
                return self.poly({m: n // c for m, n in a.poly.items()})
            if c > 0 and a.low >= 0:
                return self._floor(a, c)
        low, high = self._quotients(a, b)
        return self.integer_of(self.node("div", (), (a, b), "int", low, high))

    def _floor(self, a: Term, c: int) -> Term:
        """a // c, both not negative."""
        whole = {m: n // c for m, n in a.poly.items() if n % c == 0}
        part = self.poly({m: n for m, n in a.poly.items() if n % c})
        if whole and part.low >= 0:
            rest = self._floor(part, c) if part.poly else part
            return self.add(self.poly(whole), rest)
        if a.high < c:
            return self.integer(0)
        if (split := self._split(a, c)) is not None:
            step, big, _ = split
            return self.div(big, self.integer(c // step))
        if len(a.poly) == 1 and (only := self._atom(a)) is not None and only.op == "div" and only.args[0].low >= 0:
            inner = only.args[1].constant
            if inner is not None and inner > 0:
                return self._floor(only.args[0], c * inner)
        return self.integer_of(self.node("div", (), (a, self.integer(c)), "int", a.low // c, a.high // c))

    def _split(self, a: Term, c: int) -> tuple[int, Term, Term] | None:
        """(g, q, r) with a = g * q + r, g a proper divisor of c greater than 1, 0 <= r < g, q not negative."""
        for step in sorted({math.gcd(n, c) for m, n in a.poly.items() if m} - {1}, reverse=True):
            if step >= c:
                continue
            big, small = {}, {}
            for m, n in a.poly.items():
                if n % step == 0:
                    big[m] = n // step
                elif not m:
                    big[m], small[m] = n // step, n % step
                else:
                    small[m] = n
            q, r = self.poly({m: n for m, n in big.items() if n}), self.poly(small)
            if r.low >= 0 and r.high < step and q.low >= 0:
                return step, q, r
        return None

    def _atom(self, a: Term) -> Term | None:
        """The atom that a polynomial is, None of another."""
        if a.poly is not None and len(a.poly) == 1:
            ((monomial, factor),) = a.poly.items()
            if factor == 1 and len(monomial) == 1:
                return monomial[0]
        return None

    def _quotients(self, a: Term, b: Term) -> tuple[int, int]:
        most = max(abs(a.low), abs(a.high))
        if b.low > 0:
            return (0 if a.low >= 0 else -(-a.low // b.low)), (0 if a.high <= 0 else a.high // b.low)
        return -most, most

    def rem(self, a: Term, b: Term) -> Term:
        """Remainder with the sign of `a`."""
        assert a.poly is not None and b.poly is not None
        x, c = a.constant, b.constant
        if x == 0:
            return a
        if c is not None and c != 0:
            if x is not None:
                return self.integer(abs(x) % abs(c) * (-1 if x < 0 else 1))
            if abs(c) == 1:
                return self.integer(0)
            if all(n % c == 0 for n in a.poly.values()):
                return self.integer(0)
            if c > 0 and a.low >= 0:
                if (known := self._residue(a, c) if self.residues else None) is not None:
                    return self.integer(known)
                if a.high < c:
                    return a
                part = self.poly({m: n for m, n in a.poly.items() if n % c})
                if len(part.poly) < len(a.poly) and part.low >= 0:
                    return self.rem(part, b)
                if (split := self._split(a, c)) is not None:
                    step, big, small = split
                    return self.add(small, self.rem(big, self.integer(c // step)), step)
        if a.low >= 0 and b.low > a.high:
            return a
        limit = max(abs(b.low), abs(b.high)) - 1
        low, high = max(a.low, -limit), min(a.high, limit)
        low, high = (0 if a.low >= 0 else low), (0 if a.high <= 0 else high)
        return self.integer_of(self.node("rem", (), (a, b), "int", low, high))

    def _residue(self, a: Term, c: int) -> int | None:
        """a modulo c where the case of the proof says so."""
        total = 0
        for monomial, n in a.poly.items():
            if n % c == 0:
                continue
            if not monomial:
                total += n
                continue
            product = n
            for x in monomial:
                known = self.residues.get(x)
                if known is None or known[0] % (c // math.gcd(c, n)):
                    return None
                product *= known[1]
            total += product
        return total % c

    def smaller(self, a: Term, b: Term) -> Term:
        if a is b or a.high <= b.low:
            return a
        if b.high <= a.low:
            return b
        difference = self.add(a, b, -1)
        if difference.high <= 0:
            return a
        if difference.low >= 0:
            return b
        a, b = sorted((a, b))
        return self.integer_of(self.node("min", (), (a, b), "int", min(a.low, b.low), min(a.high, b.high)))

    def larger(self, a: Term, b: Term) -> Term:
        if a is b or a.low >= b.high:
            return a
        if b.low >= a.high:
            return b
        difference = self.add(a, b, -1)
        if difference.low >= 0:
            return a
        if difference.high <= 0:
            return b
        a, b = sorted((a, b))
        return self.integer_of(self.node("max", (), (a, b), "int", max(a.low, b.low), max(a.high, b.high)))
