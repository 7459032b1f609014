"""Upper bounds that the host works out before a launch: expressions of whole arguments, compile-time constants and counts of programs.

A row of `UPPER` takes bounds of two numbers that are not negative, and the least that the second may be, and gives one of the
result, where nothing wraps around; None where there is none. The tests compare the rows with real arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

_LOOSE = {"+": 1, "-": 1, "*": 2, "//": 2}


@dataclass(frozen=True)
class Bound:
    """op: `number`, `argument` (of the kernel), `programs` (along an axis of the grid), or what is done with the parts."""

    op: str
    parts: tuple

    @property
    def number(self) -> int | None:
        return self.parts[0] if self.op == "number" else None

    def value(self, arguments: Mapping[str, int], grid: Sequence[int] = ()) -> int:
        """What it is in one launch. Python's integers: nothing wraps around."""
        if self.op == "number":
            return self.parts[0]
        if self.op == "argument":
            return arguments[self.parts[0]]
        if self.op == "programs":
            return (*grid, 1, 1, 1)[self.parts[0]]
        a, b = (part.value(arguments, grid) for part in self.parts)
        return _DONE[self.op](a, b)

    def span(self, arguments: Mapping[str, tuple[int, int]], programs: int) -> tuple[int, int] | None:
        """(least, most) that it may be, for arguments between those given and up to so many programs; None where one is not
        given, or may be divided by."""
        if self.op in ("number", "programs"):
            return (self.parts[0], self.parts[0]) if self.op == "number" else (1, programs)
        if self.op == "argument":
            return arguments.get(self.parts[0])
        a, b = (part.span(arguments, programs) for part in self.parts)
        if a is None or b is None or self.op == "//" and b[0] < 1:
            return None
        corners = [_DONE[self.op](x, y) for x in a for y in b]
        return min(corners), max(corners)

    def knowing(self, positive: Set[str]) -> Bound:
        """The same bound where those arguments are not negative: `max(K, 0) + 3` -> `K + 3`."""
        if not any(isinstance(part, Bound) for part in self.parts):
            return self
        a, b = (part.knowing(positive) for part in self.parts)
        plain = self.op == "max" and b.number == 0 and _is_positive(a, positive)
        return a if plain else _of(self.op, a, b)

    def putting(self, bounds: Mapping[str, Bound]) -> Bound:
        """The same bound with others in the places of arguments."""
        if self.op == "argument":
            return bounds.get(self.parts[0], self)
        parts = [part.putting(bounds) for part in self.parts if isinstance(part, Bound)]
        return _of(self.op, *parts) if parts and parts != list(self.parts) else self

    def given(self, values: Mapping[str, int]) -> Bound:
        """The same bound where arguments have these values: `(K + BLOCK - 1) // BLOCK` -> `(K + 63) // 64`."""
        return self.putting({name: number(value) for name, value in values.items()})

    def axes(self) -> frozenset[int]:
        """The axes of the grid along which it counts programs."""
        if self.op == "programs":
            return frozenset(self.parts)
        return frozenset().union(*(part.axes() for part in self.parts if isinstance(part, Bound)))

    def arguments(self) -> frozenset[str]:
        """The kernel's arguments that it is made of."""
        if self.op == "argument":
            return frozenset(self.parts)
        return frozenset().union(*(part.arguments() for part in self.parts if isinstance(part, Bound)))

    def has(self, part: Bound) -> bool:
        return self == part or any(x.has(part) for x in self.parts if isinstance(x, Bound))

    def divisors(self) -> frozenset[str]:
        """Arguments that something is divided by, at once or as factors: no launch runs in which one is less than 1."""
        parts = [part for part in self.parts if isinstance(part, Bound)]
        own: frozenset[str] = frozenset()
        if self.op == "//" and (
            parts[1].op == "argument" or parts[1].op == "*" and parts[1].parts[0].number is not None
        ):
            own = parts[1].arguments()
        return own.union(*(part.divisors() for part in parts))

    def without_grid(self) -> Bound:
        """A bound that is no less, in which what is the least of two does not count programs where one of them does not."""
        parts = [part.without_grid() for part in self.parts if isinstance(part, Bound)]
        if not parts or self.op in ("-", "//") and parts[1].asks_grid():
            return self
        plain = [part for part in parts if not part.asks_grid()]
        return plain[0] if self.op == "min" and len(plain) == 1 else _of(self.op, *parts)

    def asks_grid(self) -> bool:
        return self.op == "programs" or any(part.asks_grid() for part in self.parts if isinstance(part, Bound))

    def divides_by_grid(self) -> bool:
        parts = [part for part in self.parts if isinstance(part, Bound)]
        return self.op == "//" and parts[1].asks_grid() or any(part.divides_by_grid() for part in parts)

    def text(self, argument: Callable[[str], str] = str, programs: str = "grid") -> str:
        """As Python. argument: how an argument is spelled; programs: a list with the counts along the axes."""
        return self._neat()._text(argument, programs, 0)

    def _neat(self) -> Bound:
        """The same number as a person writes it: `(n - 1) * BLOCK + BLOCK - 1` is `n * BLOCK - 1`."""
        if not any(isinstance(part, Bound) for part in self.parts):
            return self
        a, b = (part._neat() for part in self.parts)
        if self.op != "+" and (self.op != "-" or b.number is None):
            return Bound(self.op, (a, b))
        whole, constant = _constant_apart(_of(self.op, a, b))
        terms = [] if whole is None else whole._terms()
        for i, term in enumerate(terms):
            for before, times_ in (term.parts, term.parts[::-1]) if term.op == "*" else ():
                count, less_ = _constant_apart(before)
                if count is None or less_ != -1:
                    continue
                by = next((n for n, other in enumerate(terms) if other == times_ and n != i), None)
                if by is None and (times_.number or 0) > max(constant, 0) + 1 or times_.number is None and by is None:
                    continue
                constant -= times_.number or 0
                terms[i] = _of("*", count, times_)
                terms = [other for n, other in enumerate(terms) if n != by]
                return less(_sum(terms), -constant)._neat()
        return less(_sum(terms), -constant) if terms else number(constant)

    def _terms(self) -> list[Bound]:
        """What a sum is made of."""
        return [term for part in self.parts for term in part._terms()] if self.op == "+" else [self]

    def _text(self, argument: Callable[[str], str], programs: str, around: int) -> str:
        if self.op == "number":
            return str(self.parts[0])
        if self.op == "argument":
            return argument(self.parts[0])
        if self.op == "programs":
            return f"{programs}[{self.parts[0]}]"
        if self.op in ("min", "max"):
            return f"{self.op}({', '.join(part._text(argument, programs, 0) for part in self._all())})"
        own = _LOOSE[self.op]
        left, right = self.parts
        tight = own + (self.op != "+")
        text = f"{left._text(argument, programs, own)} {self.op} {right._text(argument, programs, tight)}"
        return f"({text})" if own < around else text

    def _all(self) -> list[Bound]:
        """Of the greatest, or the least, of several bounds: these."""
        inside = (part._all() if part.op == self.op else [part] for part in self.parts)
        return [bound for bounds in inside for bound in bounds]


_DONE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "min": min,
    "max": max,
}


def number(value: int) -> Bound:
    return Bound("number", (value,))


def argument(name: str) -> Bound:
    return Bound("argument", (name,))


def programs(axis: int) -> Bound:
    return Bound("programs", (axis,))


def _of(op: str, a: Bound, b: Bound) -> Bound:
    x, y = a.number, b.number
    if x is not None and y is not None:
        return number(_DONE[op](x, y))
    if op == "max" and y == 0 and _is_positive(a):
        return a
    if op in ("min", "max") and a == b or op in ("+", "-") and y == 0 or op in ("*", "//") and y == 1:
        return a
    if op == "+" and x == 0 or op == "*" and x == 1:
        return b
    if op == "+" or op == "-" and y is not None:
        (left, m), (right, n) = _constant_apart(a), _constant_apart(b)
        n = n if op == "+" else -n
        kept = [part for part in (left, right) if part is not None]
        whole = Bound("+", tuple(kept)) if len(kept) == 2 else kept[0]
        return whole if m + n == 0 else Bound("+" if m + n > 0 else "-", (whole, number(abs(m + n))))
    return Bound(op, (a, b))


def _is_positive(a: Bound, positive: Set[str] = frozenset()) -> bool:
    """Whether a bound is known to be no less than 0, where the arguments `positive` are."""
    if a.op == "argument":
        return a.parts[0] in positive
    if a.op in ("number", "programs"):
        return a.op == "programs" or a.parts[0] >= 0
    parts = [_is_positive(part, positive) for part in a.parts]
    if a.op == "max":
        return any(parts)
    return parts[0] if a.op == "//" else a.op != "-" and all(parts)


def _constant_apart(a: Bound) -> tuple[Bound | None, int]:
    """A sum without the number at its end, and that number."""
    if a.number is not None:
        return None, a.number
    last = a.parts[1].number if a.op in ("+", "-") else None
    return (a, 0) if last is None else (a.parts[0], last if a.op == "+" else -last)


def _sum(terms: Sequence[Bound]) -> Bound:
    first, *others = terms
    for other in others:
        first = _of("+", first, other)
    return first


def plus(a: Bound, b: Bound) -> Bound:
    return _of("+", a, b)


def less(a: Bound, by: int) -> Bound:
    return _of("-", a, number(by)) if by >= 0 else _of("+", a, number(-by))


def times(a: Bound, b: Bound) -> Bound:
    return _of("*", a, b)


def at_least_zero(a: Bound) -> Bound:
    return _of("max", a, number(0))


def positive(a: Bound) -> Bound:
    """`a`, or 1 where there is nothing to divide by."""
    return _of("max", a, number(1))


def least_of(a: Bound | None, b: Bound | None) -> Bound | None:
    """One of two bounds, each of which holds: a number, or else the less of the two."""
    if a is None or b is None:
        return b if a is None else a
    numbers = [x for x in (a, b) if x.number is not None]
    return numbers[0] if len(numbers) == 1 else _of("min", a, b)


def most_of_two(a: Bound | None, b: Bound | None) -> Bound | None:
    return None if a is None or b is None else _of("max", a, b)


def greatest_of(bounds: Iterable[Bound]) -> Bound:
    """The greatest of several bounds."""
    first, *others = bounds
    for bound in others:
        first = _of("max", first, bound)
    return first


def _both(row: Callable[[Bound, Bound, int], Bound]) -> Callable[[Bound | None, Bound | None, int], Bound | None]:
    return lambda a, b, least: None if a is None or b is None else row(a, b, least)


def _quotient(a: Bound | None, b: Bound | None, least: int) -> Bound | None:
    return None if a is None else quotient(a, number(max(least, 1)))


def quotient(a: Bound, by: Bound) -> Bound:
    """A bound of what is divided by a number that is known in a launch, and not less than 1."""
    return _of("//", a, by)


def _remainder(a: Bound | None, b: Bound | None, least: int) -> Bound | None:
    return least_of(a, None if b is None else _of("max", less(b, 1), number(0)))  # by 0 there is no remainder


def _ceiling(a: Bound | None, b: Bound | None, least: int) -> Bound | None:
    return None if a is None else ceiling(a, number(max(least, 1)))


def ceiling(a: Bound, by: Bound) -> Bound:
    return _of("//", plus(a, less(by, 1)), by)


def _shifted_left(a: Bound, b: Bound, least: int) -> Bound | None:
    return None if b.number is None or b.number > 64 else times(a, number(1 << b.number))


UPPER: dict[str, Callable[[Bound | None, Bound | None, int], Bound | None]] = {
    "add": _both(lambda a, b, least: plus(a, b)),
    "sub": lambda a, b, least: a,
    "mul": _both(lambda a, b, least: times(a, b)),
    "floordiv": _quotient,
    "mod": _remainder,
    "lshift": _both(_shifted_left),
    "rshift": lambda a, b, least: None if a is None else _of("//", a, number(1 << min(max(least, 0), 64))),
    "and": lambda a, b, least: least_of(a, b),
    "or": _both(lambda a, b, least: plus(a, b)),
    "xor": _both(lambda a, b, least: plus(a, b)),
    "minimum": lambda a, b, least: least_of(a, b),
    "maximum": lambda a, b, least: most_of_two(a, b),
    "cdiv": _ceiling,
}


def operated_bound(name: str, a: Bound | None, b: Bound | None, least: tuple[int, int]) -> Bound | None:
    """A bound of what an operation makes of two numbers, of which these are bounds; least: the least that either may be."""
    if name == "and":  # what is not negative bounds it
        a, b = (x if low >= 0 else None for x, low in zip((a, b), least))
    elif name == "sub":
        return None if a is None else less(a, least[1])
    elif name == "mod":
        b = b if least[1] >= 0 else None
        a = at_least_zero(a) if a is not None and least[0] < 0 else a
    elif name not in ("add", "minimum", "maximum"):
        if least[1] < 0 or name in ("or", "xor", "lshift") and least[0] < 0:
            return None
        if least[0] < 0 and a is not None:
            a = at_least_zero(a)
    return UPPER[name](a, b, least[1])


@dataclass(frozen=True)
class Condition:
    """That a bound is not above `most`, which is checked before each launch. Its arguments are whole numbers of the launch."""

    bound: Bound
    most: int

    def holds(self, arguments: Mapping[str, int], grid: Sequence[int] = ()) -> bool:
        return self.bound.value(arguments, grid) <= self.most

    def __str__(self) -> str:
        """`(BLOCK - 1) * stride <= 2**31 - 1`."""
        return f"{self.bound.text()} <= {spelled(self.most)}"


def needed(conditions: Iterable[Condition], least: Mapping[str, int] = {}) -> list[Condition]:
    """The conditions without those that another one implies: `K <= 9` where there is `K + 3 <= 9`.

    least: of arguments, what they are no less than in any launch that runs.
    """
    found = sorted(set(conditions), key=str)
    for condition in list(found):
        others = [other for other in found if other != condition]
        if any(_implies(other, condition, least) for other in others):
            found = others
    return found


def _implies(one: Condition, other: Condition, least: Mapping[str, int]) -> bool:
    more = beyond(other.bound, one.bound, least)
    return more is not None and one.most + more <= other.most


def beyond(a: Bound, b: Bound, least: Mapping[str, int]) -> int | None:
    """How far `a` is at most above `b` where arguments are no less than `least`, as far as their forms tell; None where they do not."""
    (x, m), (y, n) = _constant_apart(a), _constant_apart(b)
    if x is None:
        low = 0 if y is None else least_number(y, least)
        return None if low is None else m - n - low
    found = None if y is None else _beyond(x, y, least)
    return None if found is None else found + m - n


def _beyond(a: Bound, b: Bound, least: Mapping[str, int]) -> int | None:
    """`beyond` of bounds that are no sums with a number."""
    if a == b:
        return 0
    if a.op == "max" or b.op == "min":
        pairs = [(part, b) for part in a.parts] if a.op == "max" else [(a, part) for part in b.parts]
        every = [beyond(x, y, least) for x, y in pairs]
        return None if None in every else max(every)  # type: ignore[type-var]
    found: list[int | None] = []
    if a.op == "min":
        found += [beyond(part, b, least) for part in a.parts]
    if b.op == "max":
        found += [beyond(a, part, least) for part in b.parts]
    if b.op == "+":
        for part, other in (b.parts, b.parts[::-1]):
            low, more = least_number(other, least), beyond(a, part, least)
            found += [more - low] if low is not None and more is not None else []
    if a.op == b.op == "+":
        for y, z in (b.parts, b.parts[::-1]):
            first, second = beyond(a.parts[0], y, least), beyond(a.parts[1], z, least)
            found += [first + second] if first is not None and second is not None else []
    if a.op == b.op == "*":
        for x, factor in (a.parts, a.parts[::-1]):
            for y, also in (b.parts, b.parts[::-1]):
                low, more = least_number(factor, least), beyond(x, y, least)
                same = factor == also and low is not None and low >= 0
                found += [0] if same and more is not None and more <= 0 else []
    if b.op == "*":
        for factor, by in (b.parts, b.parts[::-1]):
            whole, added = _constant_apart(factor)
            if whole is not None and whole.op == "//" and whole.parts[1] == by and added >= 1:
                # x <= (x // by + 1) * by - 1: what is divided by is not less than 1
                more = beyond(a, whole.parts[0], least)
                found += [more - 1] if more is not None else []
            low, other = least_number(by, least), least_number(factor, least)
            if low is not None and low >= 1 and other is not None and other >= 0 and factor.number is None:
                found.append(beyond(a, factor, least))
    if a.op == b.op == "//" and a.parts[1] == b.parts[1]:  # what is divided by is not less than 1
        more = beyond(a.parts[0], b.parts[0], least)
        found += [0] if more is not None and more <= 0 else []
    known = [more for more in found if more is not None]
    return min(known) if known else None


def least_number(a: Bound, least: Mapping[str, int]) -> int | None:
    """What a bound is no less than; None where that is not known."""
    if a.op == "argument":
        return least.get(a.parts[0])
    if a.op in ("number", "programs"):
        return a.parts[0] if a.op == "number" else 1
    x, y = (least_number(part, least) for part in a.parts)
    if a.op == "max":
        return max((low for low in (x, y) if low is not None), default=None)
    if x is None or y is None:
        return None if a.op != "//" or x is None or x < 0 else 0
    if a.op in ("+", "min"):
        return x + y if a.op == "+" else min(x, y)
    if a.op == "*":
        return x * y if x >= 0 and y >= 0 else None
    number = a.parts[1].number
    if a.op == "-":
        return None if number is None else x - number
    return None if x < 0 else 0 if number is None else x // number


def spelled(most: int) -> str:
    """`2**31 - 1`, of a number not far below a power of two."""
    power = most.bit_length()
    below = (1 << power) - most
    return f"2**{power} - {below}" if below == 1 < most or power > 15 and below < 1 << power // 2 else str(most)


__all__ = [
    "UPPER",
    "Bound",
    "Condition",
    "argument",
    "at_least_zero",
    "beyond",
    "greatest_of",
    "ceiling",
    "least_number",
    "least_of",
    "less",
    "most_of_two",
    "needed",
    "number",
    "plus",
    "positive",
    "programs",
    "quotient",
    "spelled",
    "times",
]
