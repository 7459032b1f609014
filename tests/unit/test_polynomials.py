"""Polynomials over the values of a kernel: sums and products hold modulo any power of two, quotients where they come out even."""

from __future__ import annotations

import itertools
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gluonize.facts.integers.polynomials import INDEX, MAX_TERMS, Polynomial, add, fixed, moving, product, quotient

ATOMS = ("a", "b", INDEX)


def value(polynomial: Polynomial, values: dict[str, int], bits: int) -> int:
    """What it is in a type of so many bits, where every step wraps around."""
    total = 0
    for monomial, c in polynomial.items():
        total = (total + c * prod(values[atom] for atom in monomial)) % (1 << bits)
    return total


MONOMIALS = st.lists(st.sampled_from(ATOMS), max_size=2).map(lambda atoms: tuple(sorted(atoms)))
POLYNOMIALS = st.dictionaries(MONOMIALS, st.integers(-9, 9).filter(bool), max_size=4)
SMALL: list[Polynomial] = [
    {},
    {(): 1},
    {(): -3},
    {("a",): 1},
    {("a",): 2, (): 5},
    {("a", "b"): 1, (INDEX,): -1},
    {("a",): -1, ("b",): 1},
    {("a", "a"): 3, (): 8},
]


def unsound(sum_of, product_of, pairs) -> str:
    """The first two polynomials and values for which a rule is wrong in 4 bits; empty where there are none."""
    numbers = [
        dict(zip(ATOMS, found)) for found in itertools.product(range(-8, 8, 3), range(-8, 8, 5), range(-8, 8, 5))
    ]
    for a, b in pairs:
        results = [(sum_of(a, b, 1), 1, 1), (sum_of(a, b, -1), 1, -1)]
        for values in numbers:
            x, y = value(a, values, 4), value(b, values, 4)
            if any(value(found, values, 4) != (x + sign * y) % 16 for found, _, sign in results):
                return f"sum of {a} and {b} at {values}"
            if value(product_of(a, b), values, 4) != x * y % 16:
                return f"product of {a} and {b} at {values}"
    return ""


def test_sums_and_products_of_four_bits():
    assert unsound(add, product, itertools.product(SMALL, SMALL)) == ""


PLANTED = {
    "signs": (lambda a, b, sign: add(a, b, 1), product),
    "terms that meet": (lambda a, b, sign: a | {m: sign * c for m, c in b.items()}, product),
    "orders": (add, lambda a, b: {tuple(sorted(m + n)): c * d for m, c in a.items() for n, d in b.items()}),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_wrong_rules_are_found(planted: str):
    assert unsound(*PLANTED[planted], itertools.product(SMALL, SMALL))


@settings(max_examples=250, deadline=None)
@given(POLYNOMIALS, POLYNOMIALS, st.sampled_from([8, 32, 64]), st.data())
def test_sums_and_products_of_real_types(a: Polynomial, b: Polynomial, bits: int, data):
    ends = st.sampled_from([-(1 << (bits - 1)), -1, 0, 1, (1 << (bits - 1)) - 1])
    values = {
        atom: data.draw(st.one_of(ends, st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))) for atom in ATOMS
    }
    x, y = value(a, values, bits), value(b, values, bits)
    assert value(add(a, b, 1), values, bits) == (x + y) % (1 << bits)
    assert value(add(a, b, -1), values, bits) == (x - y) % (1 << bits)
    found = product(a, b)
    assert found is not None and value(found, values, bits) == x * y % (1 << bits)
    assert all(found.values()) and all(add(a, b, 1).values()), "terms that cancel are none"


@settings(max_examples=200, deadline=None)
@given(POLYNOMIALS, POLYNOMIALS)
def test_a_quotient_times_what_it_was_divided_by_is_what_was_divided(a: Polynomial, b: Polynomial):
    whole = quotient(a, b)
    assert whole is None or product(whole, b) == a
    if len(b) == 1:
        assert quotient(product(a, b), b) == a


@settings(max_examples=200, deadline=None)
@given(POLYNOMIALS)
def test_what_moves_and_what_does_not_are_all(a: Polynomial):
    assert add(moving(a), fixed(a), 1) == a
    assert not any(INDEX in m for m in fixed(a)) and all(INDEX in m for m in moving(a))


def test_products_of_too_many_terms_are_none():
    long: Polynomial = {(f"x{i}",): 1 for i in range(6)}
    assert product(long, {(f"y{i}",): 1 for i in range(6)}) is None and 6 * 6 > MAX_TERMS
    assert product(long, {("y",): 1}) is not None
