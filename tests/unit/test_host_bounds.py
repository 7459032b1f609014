"""Bounds that the host works out: each rule against real arithmetic, and conditions against what the types make of a number."""

from __future__ import annotations

import functools
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gluonize.facts.integers import host_bounds
from gluonize.facts.integers.host_bounds import (
    UPPER,
    Bound,
    Condition,
    argument,
    at_least_zero,
    beyond,
    least_of,
    less,
    most_of_two,
    needed,
    number,
    plus,
    programs,
    quotient,
    times,
)
from gluonize.facts.integers.ranges import CONCRETE, IntType

WIDE = IntType(100)  # nothing wraps around


def unsound(rule, name: str, most: int) -> str:
    """The first case in which a bound is below what two numbers up to `most` give; empty where there is none."""
    for a, b in itertools.product(range(most + 1), repeat=2):
        for least in range(b + 1):
            said = rule(number(a), number(b), least)
            if said is None:
                continue
            for x, y in itertools.product(range(a + 1), range(least, b + 1)):
                made = CONCRETE[name](WIDE, x, y)
                if made is not None and made > said.value({}):
                    return f"{name}: {x} and {y} give {made}, which is above {said.text()} for {a} and {b}"
    return ""


@pytest.mark.parametrize("name", UPPER)
def test_every_rule_for_small_numbers(name):
    assert unsound(UPPER[name], name, 9 if name != "lshift" else 5) == ""


@pytest.mark.parametrize("name", UPPER)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_rules_for_large_numbers(name, data):
    most = 2**63 if name not in ("lshift", "rshift") else 40
    b = data.draw(st.integers(0, most))
    a = data.draw(st.integers(0, 2**63))
    least = data.draw(st.integers(0, b))
    x, y = data.draw(st.integers(0, a)), data.draw(st.integers(least, b))
    said, made = UPPER[name](number(a), number(b), least), CONCRETE[name](IntType(200), x, y)
    assert said is None or made is None or made <= said.value({})


WRONG = {
    "add": lambda a, b, least: a,
    "sub": lambda a, b, least: less(a, 1),
    "mul": lambda a, b, least: plus(a, b),
    "floordiv": lambda a, b, least: Bound("//", (a, b)) if b.number else None,
    "mod": lambda a, b, least: less(b, 1) if b.number and b.number > 1 else number(0),
    "cdiv": UPPER["floordiv"],
    "or": lambda a, b, least: Bound("max", (a, b)),
    "xor": lambda a, b, least: Bound("max", (a, b)),
    "minimum": lambda a, b, least: less(a, 1),
    "maximum": lambda a, b, least: a,
    "rshift": lambda a, b, least: Bound("//", (a, number(2 << least))),
    "lshift": lambda a, b, least: times(a, number(2)),
    "and": lambda a, b, least: number(0),
}


@pytest.mark.parametrize("name", [name for name in WRONG if name != "mod"])
def test_wrong_rules_are_found(name):
    assert unsound(WRONG[name], name, 5) != ""


LEAVES = st.one_of(
    st.integers(0, 9).map(number), st.sampled_from("ab").map(argument), st.integers(0, 2).map(host_bounds.programs)
)
KINDS = st.sampled_from(["number", "argument", "programs", "+", "-", "*", "//", "min", "max"])
SMALL = st.integers(0, 9)


@functools.cache  # a strategy is checked once
def bounds(depth: int = 3) -> st.SearchStrategy[Bound]:
    return LEAVES if depth == 0 else _grown(bounds(depth - 1))


@st.composite
def _grown(draw, inner):
    kind = draw(KINDS)
    if kind in ("number", "argument", "programs"):
        return draw(LEAVES)
    left, right = draw(inner), draw(inner)
    if kind == "-":
        return less(left, draw(SMALL))
    right = host_bounds.positive(right) if kind == "//" else right
    return host_bounds._of(kind, left, right)


def plainly(bound: Bound, arguments: dict, grid) -> int:
    """The value of a bound by Python's own reading of its text."""
    return eval(bound.text(), {"min": min, "max": max}, {**arguments, "grid": (*grid, 1, 1, 1)})


@given(bounds(), st.integers(0, 50), st.integers(0, 50), st.tuples(st.integers(1, 9), st.integers(1, 9)))
@settings(max_examples=200, deadline=None)
def test_the_text_says_the_value(bound, a, b, grid):
    assert plainly(bound, {"a": a, "b": b}, grid) == bound.value({"a": a, "b": b}, grid)


@given(bounds(), st.integers(-20, 20), st.integers(0, 20), st.integers(-5, 20), st.integers(1, 9))
@settings(max_examples=250, deadline=None)
def test_the_span_holds_every_value(bound, a, wide, b, programs):
    span = bound.span({"a": (a, a + wide), "b": (b, b)}, programs)
    for value in (a, a + wide // 2, a + wide):
        assert span is None or span[0] <= bound.value({"a": value, "b": b}, (programs, 1)) <= span[1]


def test_sums_keep_their_numbers_at_the_end():
    n, block = argument("N"), argument("BLOCK")
    assert plus(less(n, 1), less(block, 1)).text() == "N + BLOCK - 2"
    assert times(less(block, 1), argument("stride")).text() == "(BLOCK - 1) * stride"
    assert str(Condition(plus(n, number(3)), 2**31 - 1)) == "N + 3 <= 2**31 - 1"
    assert at_least_zero(at_least_zero(n)) == at_least_zero(n)


@given(bounds(), bounds(), st.tuples(*[st.integers(-3, 9)] * 2), st.tuples(*[st.integers(0, 9)] * 2), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_a_bound_is_at_most_so_far_beyond_another(a, b, least, above, programs):
    lows = dict(zip("ab", least))
    values = {name: low + more for (name, low), more in zip(lows.items(), above)}
    grown = plus(a, number(2))
    for x, y in ((a, b), (a, plus(b, a)), (at_least_zero(a), at_least_zero(grown)), (times(b, a), times(grown, b))):
        more = beyond(x, y, lows)
        if more is not None:
            assert x.value(values, (programs,)) - y.value(values, (programs,)) <= more


def test_conditions_that_follow_are_left_out():
    """Of an attention kernel: what its two loops ask for."""
    n, block = argument("N"), argument("BLOCK")
    full = times(quotient(at_least_zero(n), block), block)
    begun = times(quotient(at_least_zero(least_of(times(programs(0), block), n)), block), block)
    last = Condition(plus(plus(most_of_two(full, less(n, 1)), block), number(191)), 2**31 - 1)
    others = [
        Condition(plus(full, number(191)), 2**31 - 1),
        Condition(plus(begun, number(191)), 2**31 - 1),
        Condition(plus(most_of_two(begun, less(least_of(n, block), 1)), number(192)), 2**31 - 1),
    ]
    assert needed([*others, last], {"BLOCK": 64}) == [last]
    assert needed([*others, last]) != [last]  # of a block that may be negative
    one, other = (Condition(times(x, argument("stride")), 2**31 - 1) for x in (n, plus(n, number(1))))
    assert needed([one, other]) == sorted([one, other], key=str) and needed([one, other], {"stride": 0}) == [other]


def test_conditions_that_others_imply_are_left_out():
    n = argument("N")
    small, large = Condition(n, 9), Condition(plus(n, number(3)), 9)
    assert needed([small, large, large]) == [large]
    assert needed([small, Condition(argument("M"), 9)]) != needed([small])
