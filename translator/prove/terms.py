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

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

COMMUTES = frozenset("addf mulf maxnumf minnumf maximumf minimumf andi ori xori maxf minf mulhi mulhu addo".split())
INFINITE = 1 << 200
Monomial = tuple["Term", ...]


class Term:
    """`op(data; args)`. element: `i32`, `i1`, `f16`, `ptr`, or a word for what is no value. number: in order of creation.

    free: symbols in it that a substitution may replace. height: of the binders in it. low, high: of an integer atom. op_of: by side,
    the operation that made it first.
    """

    __slots__ = ("op", "data", "args", "element", "number", "free", "height", "low", "high", "poly", "made_by")

    op: str
    data: Any
    args: tuple["Term", ...]
    element: str
    number: int
    free: frozenset["Term"]
    height: int
    low: int
    high: int
    poly: dict[Monomial, int] | None
    made_by: dict[int, Any]

    def __lt__(self, other: "Term") -> bool:
        return self.number < other.number

    def __repr__(self) -> str:
        return f"<{self.op} {self.number}>"

    @property
    def constant(self) -> int | None:
        """The integer that it is, None of anything else."""
        if self.poly is None or len(self.poly) > 1 or (self.poly and () not in self.poly):
            return None
        return self.poly.get((), 0)


def bits(element: str) -> int:
    """The width of an integer type."""
    return int(element[1:])


class Terms:
    """All terms of one proof, of both sides. residues: of atoms, (modulus, remainder), as far as a case of the proof has them."""

    def __init__(self):
        self._known: dict[tuple, Term] = {}
        self._polynomials: dict[frozenset, Term] = {}
        self.residues: dict[Term, tuple[int, int]] = {}
        self.side, self.at = 0, None
        self.fresh_numbers = 0
        self.true = self.node("true", (), (), "i1")
        self.false = self.node("false", (), (), "i1")
        self.exact: dict[Term, tuple[int, int]] = {}
        self.bounds: list[tuple[dict[Monomial, int], int]] = []
        self.programs = [(1 << 31) - 1] * 3  # how many there are at most
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

    # --- making

    def node(
        self, op: str, data: Any, args: Iterable[Term], element: str, low: int | None = None, high: int | None = None
    ) -> Term:
        """The term, made if it is new; low, high: the interval of an integer atom where it is known better than by its type."""
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

    def fresh(self, op: str, element: str, low: int | None = None, high: int | None = None, data: Any = None) -> Term:
        """A symbol that nothing else is."""
        self.fresh_numbers += 1
        return self.node(op, (self.fresh_numbers, data), (), element, low, high)

    def index(self, axis: int, extent: int) -> Term:
        """Where the element stands along an axis, as an integer."""
        if extent == 1:
            return self.integer(0)
        return self.integer_of(self.node("idx", (axis, extent), (), "int", 0, extent - 1))

    # --- integers

    def integer(self, value: int) -> Term:
        return self.poly({(): value} if value else {})

    def poly(self, given: Mapping[Monomial, int]) -> Term:
        """A polynomial; factors that are 0 have been left out."""
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

    def _interval(self, poly: Mapping[Monomial, int]) -> tuple[int, int]:
        low, high = self.within(poly, {})
        for known, most in self.bounds:
            if high > most and any(m in poly for m in known if m):
                high = min(high, most + self._excess(poly, known))
        return low, high

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
        low, high = self.exact.get(a, (-half, half - 1))
        if a in self.exact:
            return a
        if (split := self._apart(a, width)) is not None:
            return self.add(self.value(split[0], width), split[1])
        step = self.step(a)  # it is a multiple of that
        return self.integer_of(self.node("wrap", width, (a,), "int", -(-low // step) * step, high // step * step))

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
                if a.high < c:
                    return a
                if (known := self._residue(a, c)) is not None:
                    return self.integer(known)
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
            if x.op == wanted.op == "lt0" and self.add(wanted.args[0], x.args[0], -1).high <= 0:
                return True
            if x.op == "eq0" and wanted.op == "lt0" and self.add(wanted.args[0], x.args[0], -1).high < 0:
                return True
        return False

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
        """A store to all indices of a shape: data is (name, shape, element, bytes, what else is said)."""
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
                if out is t:
                    out = self.again(t, [walk(x) for x in t.args])
                    out = decided(out) if out is not t else t
            elif t.op == "rem" and self._less_for_sure(conditions, *t.args):
                out = walk(t.args[0])
            elif t.op in ("min", "max") and (least := self._first_of(conditions, *t.args)) is not None:
                out = walk(t.args[least if t.op == "min" else 1 - least])
            elif t.op in ("lam", "group"):
                out = self._bound_again(
                    t, [walk(x) for x in t.args]
                )  # the conditions do not speak of what is bound in it
            elif not t.args:
                out = t
            else:
                out = self.again(t, [walk(x) for x in t.args])
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

    # --- binders and substitution

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
            elif t.op in ("lam", "group"):
                out = self._bound_again(t, [walk(x) for x in t.args])
            else:
                out = self.again(t, [walk(x) for x in t.args])
            memo[t] = out
            return out

        return walk(term)

    def _bound_again(self, t: Term, args: list[Term]) -> Term:
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


BOUND = {"lam": ("bidx",), "group": ("bfun", "bcount")}
SYMBOLS = frozenset("idx idxf bidx count bcount fun bfun sym hole".split())


def is_integer(element: str) -> bool:
    """Whether it is an integer type wider than one bit."""
    return element == "int" or element[0] == "i" and element[1:].isdigit() and element != "i1"
