"""The fewest conditions that say what several say, each no longer than a person reads.

    (K + 63) // 64 + 2 <= 2**31 - 1, K + 191 <= 2**31 - 1   ->   K <= 2**31 - 192
    (grid[0] - 1) * row <= 2**31 - 1, the same of `column`  ->   (grid[0] - 1) * max(row, column) <= 2**31 - 1

Nothing is asked for that the conditions do not ask for, and nothing less: they hold for the same launches.
"""

from __future__ import annotations

from collections.abc import Mapping

from gluonize.facts.integers.host_bounds import (
    Bound,
    Condition,
    argument,
    greatest_of,
    least_number,
    needed,
    programs,
)

_MOST = 2**64  # no argument of a kernel is a greater number
_ANY = "?"  # in the place of an argument


def fewest(
    conditions: Mapping[Condition, str], least: Mapping[str, int], values: Mapping[str, int]
) -> tuple[tuple[Condition, str], ...]:
    """The conditions, each with the expression that one of those which it stands for is about.

    least: of arguments, what they are no less than in any launch that runs; values: of those that are the same number in all of these.
    """
    given = {Condition(c.bound.given(values), c.most): what for c, what in conditions.items()}
    every = {name: 1 for c in given for name in c.bound.divisors()} | dict(least)
    spelled_out = {Condition(_uncapped(c.bound, every, c.most), c.most): what for c, what in given.items()}
    found: dict[Condition, str] = {}
    for condition, what in spelled_out.items():
        if condition.bound.number is not None and condition.bound.number <= condition.most:
            continue  # whatever the launch
        alone = _of_one_number(condition, every)
        if alone is not None:
            found.setdefault(alone, what)
    known: dict[Bound, int] = {}
    for c in found:
        known[c.bound] = min(c.most, known.get(c.bound, _MOST))
    for condition in [c for c in found if c.bound.asks_grid()]:
        plain = condition.bound.without_grid()
        if plain.asks_grid():
            continue
        more = _of_one_number(Condition(plain, condition.most), every)
        if more is None or known.get(more.bound, _MOST) <= more.most:
            del found[condition]
    return tuple(_together({c: found[c] for c in needed(found, every)}, every))


def _uncapped(bound: Bound, least: Mapping[str, int], most: int) -> Bound:
    """A bound for which `most` asks the same, without a least of some number and a greater one: `min(2**31, T) + 30 <= 2**29` is false for any
    greater T too. Of sums, products and greatest ones of what is not negative: a product with 0 is 0 either way."""
    if bound.op == "min" and any(part.number is not None and part.number > most for part in bound.parts):
        return next(part for part in bound.parts if part.number is None or part.number <= most)
    if bound.op not in ("+", "*", "max"):
        return bound
    a, b = bound.parts
    low, high = least_number(a, least), least_number(b, least)  # None where it may be negative
    first = _uncapped(a, least, most) if high is not None and high >= 0 else a
    second = _uncapped(b, least, most) if low is not None and low >= 0 else b
    return Bound(bound.op, (first, second))


def _of_one_number(condition: Condition, least: Mapping[str, int]) -> Condition | None:
    """What a condition on one number says of it; None where it always holds, and the condition itself where it is about more."""
    bound = condition.bound
    names, axes = bound.arguments(), bound.axes()
    if len(names) + len(axes) != 1:
        return condition
    one = argument(*names) if names else programs(*axes)
    if not rises(bound, least, one):
        return condition

    def holds(number: int) -> bool:
        return condition.holds(dict.fromkeys(names, number), [number if axis in axes else 1 for axis in range(3)])

    low, high = 0, _MOST
    if not holds(low):
        return condition
    if holds(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return Condition(one, low)


def rises(bound: Bound, least: Mapping[str, int], part: Bound) -> bool:
    """Whether a bound never becomes less where a part of it, an argument or a number of programs, becomes more."""
    if bound == part or not bound.has(part):
        return True
    a, b = bound.parts
    if not rises(a, least, part) or not rises(b, least, part):
        return False
    if bound.op in ("-", "//"):
        return not b.has(part)  # what is divided by is no less than 1
    if bound.op != "*":
        return True
    others = [other for one, other in ((a, b), (b, a)) if one.has(part)]
    return all((low := least_number(other, least)) is not None and low >= 0 for other in others)


def _together(conditions: Mapping[Condition, str], least: Mapping[str, int]) -> list[tuple[Condition, str]]:
    """The conditions, those that differ in one argument as one about the greatest of them."""
    left = dict(conditions)
    out: list[tuple[Condition, str]] = []
    while left:
        condition, what = next(iter(left.items()))
        del left[condition]
        for name in sorted(condition.bound.arguments()):
            alike = {name: condition}
            form = condition.bound.putting({name: argument(_ANY)})
            for other in left:
                own = [n for n in other.bound.arguments() if other.bound.putting({n: argument(_ANY)}) == form]
                if other.most == condition.most and own and own[0] not in alike:
                    alike[own[0]] = other
            if len(alike) > 1 and rises(form, least, argument(_ANY)):
                left = {c: w for c, w in left.items() if c not in alike.values()}
                condition = Condition(form.putting({_ANY: greatest_of(map(argument, sorted(alike)))}), condition.most)
                break
        out.append((condition, what))
    return sorted(out, key=lambda pair: str(pair[0]))


__all__ = ["fewest"]
