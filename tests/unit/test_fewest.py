"""Fewer conditions than were found, for the same launches: each form by hand, and any conditions against what they say of numbers."""

from __future__ import annotations

from gluonize.facts.integers.host_bounds import (
    Bound,
    Condition,
    argument,
    at_least_zero,
    ceiling,
    least_of,
    less,
    most_of_two,
    number,
    plus,
    programs,
    quotient,
    times,
)
from gluonize.output.contracts.fewest import fewest
from hypothesis import given, settings
from hypothesis import strategies as st

K, N, BLOCK, ROW, COLUMN = map(argument, ("K", "N", "BLOCK", "row", "column"))


def asked(*conditions: Condition, least: dict[str, int] = {}, values: dict[str, int] = {}) -> list[str]:
    return [str(c) for c, _ in fewest({c: "" for c in conditions}, least, values)]


def at_most(bound: Bound, most: int = 2**31 - 1) -> Condition:
    return Condition(bound, most)


def trips(size: Bound, block: Bound) -> Bound:
    return plus(ceiling(size, block), number(2))


def test_conditions_on_one_number_are_one():
    tiles = trips(K, BLOCK)
    found = (
        at_most(plus(K, number(127))),
        at_most(tiles),
        at_most(times(tiles, BLOCK)),
        at_most(times(tiles, BLOCK), 2**63 - 1),
    )
    assert asked(*found, values={"BLOCK": 64}) == ["K <= 2**31 - 192"]
    assert asked(*found[::-1], values={"BLOCK": 64}) == ["K <= 2**31 - 192"]


def test_of_a_block_that_may_be_any_the_largest_product_is_left():
    tiles = trips(K, BLOCK)
    found = at_most(less(plus(K, BLOCK), 1)), at_most(tiles), at_most(times(tiles, BLOCK))
    assert asked(*found, least={"K": 0}) == ["((K + BLOCK - 1) // BLOCK + 2) * BLOCK <= 2**31 - 1"]
    assert len(asked(*found)) > 1  # of a number that may be negative


def test_a_least_that_the_condition_excludes_anyway_is_not_said():
    capped = plus(times(plus(Bound("min", (number(2**31), N)), number(30)), K), number(63))
    assert asked(at_most(capped, 2**30 - 2), least={"K": 0}) == ["(N + 30) * K + 63 <= 2**30 - 2"]
    assert "min" in asked(at_most(capped, 2**30 - 2))[0]  # `K` may be negative
    assert "min" in asked(at_most(capped, 2**32), least={"K": 0})[0]


def test_what_always_holds_is_not_asked():
    assert asked(at_most(times(BLOCK, number(4))), values={"BLOCK": 64}) == []
    assert (
        asked(at_most(least_of(K, number(5)))) == ["min(K, 5) <= 2**31 - 1"]
        or asked(at_most(least_of(K, number(5)))) == []
    )
    assert asked(at_most(times(BLOCK, number(4)), 100), values={"BLOCK": 64}) == ["256 <= 100"]  # never


def test_what_the_least_of_two_bounds_needs_no_grid():
    first = times(less(programs(0), 1), number(128))
    bound = plus(times(quotient(at_least_zero(least_of(first, N)), number(64)), number(64)), number(192))
    assert asked(at_most(bound), at_most(plus(N, number(255)))) == ["N <= 2**31 - 256"]
    assert len(asked(at_most(bound), at_most(plus(N, number(3))))) == 2  # which says less
    assert len(asked(at_most(bound))) == 1


def test_alike_conditions_are_about_the_greatest_of_their_arguments():
    last = less(times(programs(0), BLOCK), 1)
    found = [at_most(times(last, stride)) for stride in (ROW, COLUMN)]
    values = {"BLOCK": 64}
    assert asked(*found, values=values) == ["(grid[0] * 64 - 1) * max(column, row) <= 2**31 - 1"]
    other = at_most(times(last, N), 2**30 - 1)
    assert len(asked(*found, other, values=values)) == 2  # of another bound
    negative = [at_most(times(argument("x"), stride)) for stride in (ROW, COLUMN)]
    assert len(asked(*negative)) == 2  # times a number that may be negative, the least counts
    assert asked(*negative, least={"x": 0}) == ["x * max(column, row) <= 2**31 - 1"]


NAMES = ("a", "b", "c")
LEAVES = st.one_of(
    st.sampled_from([argument(name) for name in NAMES]),
    st.integers(0, 9).map(number),
    st.integers(0, 1).map(programs),
)


def grown(inner: st.SearchStrategy[Bound]) -> st.SearchStrategy[Bound]:
    pairs = st.tuples(inner, inner)
    divisors = st.one_of(
        st.integers(1, 5).map(number), st.sampled_from([argument("c"), times(number(2), argument("c"))])
    )
    return st.one_of(
        pairs.map(lambda p: plus(*p)),
        pairs.map(lambda p: times(*p)),
        pairs.map(lambda p: most_of_two(*p)),
        pairs.map(lambda p: least_of(*p)),
        st.tuples(inner, st.integers(-3, 5)).map(lambda p: less(*p)),
        st.tuples(inner, divisors).map(lambda p: quotient(*p)),
    )


BOUNDS = st.recursive(LEAVES, grown, max_leaves=6)
CONDITIONS = st.lists(st.builds(Condition, BOUNDS, st.integers(0, 60)), min_size=1, max_size=4)


@settings(max_examples=500, deadline=None)
@given(
    CONDITIONS,
    st.dictionaries(st.sampled_from(NAMES[:2]), st.sampled_from([0, 1]), max_size=2),
    st.booleans(),
    st.lists(
        st.tuples(*[st.integers(-8, 40)] * 2, st.integers(1, 6), st.integers(1, 9), st.integers(1, 9)), max_size=40
    ),
)
def test_they_hold_for_the_same_launches(conditions, least, constant, launches):
    """`c` divides, so that it is no less than 1; in half of the cases it is the same number in every launch."""
    values = {"c": 3} if constant else {}
    fewer = [c for c, _ in fewest({c: "" for c in conditions}, least | {"c": 1}, values)]
    for a, b, c, *grid in launches:
        arguments = {"a": max(a, least.get("a", a)), "b": max(b, least.get("b", b)), "c": 3 if constant else c}
        holds = [all(condition.holds(arguments, grid) for condition in some) for some in (conditions, fewer)]
        assert holds[0] == holds[1], (list(map(str, conditions)), list(map(str, fewer)), arguments, grid)


def test_a_product_of_trips_says_what_its_factors_say_and_no_more():
    """Every launch with small numbers, for bounds that are just, and just not, implied."""
    product = times(plus(quotient(K, BLOCK), number(1)), BLOCK)
    for more in range(-2, 3):
        conditions = [
            at_most(product, 20),
            at_most(K, 19 + more),
            at_most(plus(quotient(K, BLOCK), number(1)), 20 + more),
        ]
        fewer = [c for c, _ in fewest({c: "" for c in conditions}, {"K": 0}, {})]
        for k in range(60):
            for block in range(1, 30):
                arguments = {"K": k, "BLOCK": block}
                holds = [all(c.holds(arguments) for c in some) for some in (conditions, fewer)]
                assert holds[0] == holds[1], (more, list(map(str, fewer)), arguments)
        assert (len(fewer) == 1) == (more >= 0), list(map(str, fewer))


def test_of_bounds_of_one_number_the_least_counts_whatever_the_order():
    tiles = quotient(at_least_zero(least_of(times(programs(0), number(128)), N)), number(64))
    grid = at_most(plus(times(tiles, number(64)), number(192)))
    for bounds in ((3, 255), (255, 3)):
        assert asked(grid, *(at_most(plus(N, number(more))) for more in bounds)) == ["N <= 2**31 - 256"]
