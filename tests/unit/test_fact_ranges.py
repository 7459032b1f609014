"""Rules of ranges against real arithmetic: every range and every value of small types, and samples of the real ones."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gluonize.facts.integers import ranges
from gluonize.facts.integers.ranges import CONCRETE, TRANSFER, IntType, Range, absolute, converted, counted, summed

SIGNS = pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])


def all_ranges(type: IntType, every: int = 1) -> list[Range]:
    """All ranges of a type; every: only those that begin and end at these steps, at the ends of the type, and around 0."""
    values = range(type.least, type.most + 1)
    kept = [v for v in values if v in (type.least, type.most, -1, 0, 1) or (v - type.least) % every == 0]
    return [Range(lo, hi) for lo, hi in itertools.combinations_with_replacement(kept, 2)]


@functools.cache
def results(name: str, type: IntType) -> tuple[np.ndarray, np.ndarray]:
    """What the operation gives for all pairs of values: where there is no result, the least and the greatest of none."""
    values = range(type.least, type.most + 1)
    found = [[CONCRETE[name](type, x, y) for y in values] for x in values]
    none = 1 << 20
    least = np.array([[none if z is None else z for z in row] for row in found])
    return least, np.array([[-none if z is None else z for z in row] for row in found])


def unsound(name: str, type: IntType, some: list[Range]) -> str:
    """The first case in which a rule of two operands leaves out a result; empty where there is none."""
    least, most = results(name, type)
    for a in some:
        rows = slice(a.lo - type.least, a.hi - type.least + 1)
        lows, highs = least[rows].min(axis=0), most[rows].max(axis=0)
        for b in some:
            columns = slice(b.lo - type.least, b.hi - type.least + 1)
            lo, hi = int(lows[columns].min()), int(highs[columns].max())
            said = TRANSFER[name](type, a, b)
            if lo <= hi and not (said.lo <= lo and hi <= said.hi):
                return f"{name} of {a} and {b} in {type} may be {lo} to {hi}, not {said}"
            if not said.within(type.whole):
                return f"{name} of {a} and {b} in {type} is no {said}"
    return ""


@SIGNS
@pytest.mark.parametrize("name", TRANSFER)
def test_every_range_of_four_bits(name, signed):
    type = IntType(4, signed)
    assert unsound(name, type, all_ranges(type)) == ""


@pytest.mark.one_of(4)
@SIGNS
@pytest.mark.parametrize("bits, every", [(1, 1), (2, 1), (3, 1), (6, 9), (8, 51)])
@pytest.mark.parametrize("name", TRANSFER)
def test_ranges_of_other_widths(name, signed, bits, every):
    type = IntType(bits, signed)
    assert unsound(name, type, all_ranges(type, every)) == ""


def unsound_conversion(rule, source: IntType, to: IntType) -> str:
    for a in all_ranges(source, 1 if source.bits < 8 else 3):
        made = [to.wrap(x) for x in range(a.lo, a.hi + 1)]
        said = rule(to, a)
        if not (said.lo <= min(made) and max(made) <= said.hi and said.within(to.whole)):
            return f"{a} in {to} is {min(made)} to {max(made)}, not {said}"
    return ""


@SIGNS
@pytest.mark.parametrize("from_bits, to_bits", [(4, 4), (4, 3), (6, 4), (8, 4), (4, 8), (8, 1), (1, 8)])
def test_conversions(signed, from_bits, to_bits):
    for to_signed in (True, False):
        assert unsound_conversion(converted, IntType(from_bits, signed), IntType(to_bits, to_signed)) == ""


@SIGNS
def test_absolute_values(signed):
    for bits in (1, 4, 6):
        type = IntType(bits, signed)
        for a in all_ranges(type):
            made = [type.wrap(abs(x)) for x in range(a.lo, a.hi + 1)]
            said = absolute(type, a)
            assert said.lo <= min(made) and max(made) <= said.hi and said.within(type.whole), a


@SIGNS
def test_sums(signed):
    type = IntType(4, signed)
    for a in all_ranges(type):
        reached = sums = set(range(a.lo, a.hi + 1))
        for count in range(1, 9):
            said = summed(type, a, count)
            assert said.within(type.whole)
            assert all(s in said for s in reached), (a, count)
            sums = {type.wrap(s + x) for s in sums for x in range(a.lo, a.hi + 1)}
            reached = reached | sums


def unsound_indices(rule, type: IntType) -> str:
    numbers = range(type.least, type.most + 1)
    steps = [Range(-2, -1), Range(-3, -3), Range(-1, 2), Range(0, 1), Range(1, 1), Range(1, 3)]
    reached = {(lo, hi, by): range(lo, hi, by) for lo in numbers for hi in numbers for by in range(-3, 4) if by}
    for low, high, step in itertools.product(all_ranges(type), all_ranges(type), steps):
        said = rule(type, low, high, step)
        ends = itertools.product(range(low.lo, low.hi + 1), range(high.lo, high.hi + 1), range(step.lo, step.hi + 1))
        for key in ends:
            made = reached.get(key)
            if made and (said is None or made[0] not in said or made[-1] not in said):
                return f"the index from {low} to {high} by {step} takes {made}, not {said}"
    return ""


@SIGNS
def test_indices_of_loops(signed):
    assert unsound_indices(counted, IntType(3, signed)) == ""


UNSOUND_INDICES = {
    "the step leads up": lambda t, low, high, step: Range(low.lo, max(high.hi - 1, low.lo)),
    "the end is one of the values": lambda t, low, high, step: Range(max(low.lo, high.lo), max(low.hi, high.hi)),
    "what starts at 0 or above stays there": lambda t, low, high, step: Range(max(low.lo, 0), t.most),
}


@pytest.mark.parametrize("planted", UNSOUND_INDICES)
def test_an_unsound_index_is_found(planted):
    assert unsound_indices(UNSOUND_INDICES[planted], IntType(3))


# Types as they are -------------------------------------------------------------------------------------------------------


@st.composite
def cases(draw):
    type = IntType(draw(st.sampled_from([8, 16, 32, 64])), draw(st.booleans()))
    near = [type.least, type.most, 0, type.most // 2]
    number = st.one_of(
        st.integers(type.least, type.most),
        st.sampled_from(near).flatmap(lambda n: st.integers(max(type.least, n - 70), min(type.most, n + 70))),
    )
    ranges_of = []
    for _ in range(2):
        x, lo, hi = (draw(number) for _ in range(3))
        ranges_of.append((x, Range(min(x, lo, hi), max(x, lo, hi))))
    return type, *ranges_of


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(TRANSFER)), cases())
@example("mul", (IntType(32), (2**16, Range(0, 2**16)), (2**15, Range(0, 2**15))))
@example("cdiv", (IntType(32), (2**31 - 1, Range(0, 2**31 - 1)), (64, Range(64, 64))))
@example("floordiv", (IntType(32), (-(2**31), Range(-(2**31), 0)), (-1, Range(-1, -1))))
def test_values_of_the_real_types(name, case):
    type, (x, a), (y, b) = case
    found = CONCRETE[name](type, x, y)
    said = TRANSFER[name](type, a, b)
    assert said.within(type.whole) and (found is None or found in said)


@settings(max_examples=300, deadline=None)
@given(cases(), st.sampled_from([1, 8, 16, 32, 64]), st.booleans())
def test_conversions_of_the_real_types(case, bits, signed):
    _, (x, a), _ = case
    to = IntType(bits, signed)
    assert to.wrap(x) in converted(to, a) and converted(to, a).within(to.whole)


# Rules say something, too -------------------------------------------------------------------------------------------------


INT32, UINT32 = IntType(32), IntType(32, signed=False)
ANY, NOT_NEGATIVE = INT32.whole, Range(0, 2**31 - 1)


@pytest.mark.parametrize(
    "name, a, b, said",
    [
        ("add", Range(0, 63), Range(1, 2), Range(1, 65)),
        ("add", NOT_NEGATIVE, Range(1, 1), ANY),
        ("sub", Range(0, 63), Range(64, 64), Range(-64, -1)),
        ("mul", Range(0, 63), Range(0, 100), Range(0, 6300)),
        ("mul", Range(0, 63), NOT_NEGATIVE, ANY),
        ("mod", NOT_NEGATIVE, ANY, NOT_NEGATIVE),
        ("mod", ANY, Range(8, 8), Range(-7, 7)),
        ("floordiv", NOT_NEGATIVE, NOT_NEGATIVE, NOT_NEGATIVE),
        ("floordiv", Range(-7, 7), Range(8, 8), Range(0, 0)),
        ("and", ANY, Range(0, 15), Range(0, 15)),
        ("rshift", NOT_NEGATIVE, Range(4, 4), Range(0, 2**27 - 1)),
        ("lshift", Range(0, 7), Range(0, 3), Range(0, 56)),
        ("minimum", ANY, Range(0, 5), Range(-(2**31), 5)),
        ("maximum", ANY, Range(0, 5), NOT_NEGATIVE),
        ("cdiv", Range(0, 1000), Range(16, 16), Range(0, 63)),
    ],
)
def test_what_rules_say(name, a, b, said):
    assert TRANSFER[name](INT32, a, b) == said


def test_what_conversions_say():
    assert converted(INT32, Range(2**31, 2**32 - 1)) == Range(-(2**31), -1)
    assert converted(UINT32, Range(-5, -1)) == Range(2**32 - 5, 2**32 - 1)
    assert converted(UINT32, Range(-1, 0)) == UINT32.whole
    assert converted(INT32, Range(0, 255)) == Range(0, 255) == converted(IntType(8, signed=False), Range(0, 255))
    assert converted(IntType(8), Range(0, 255)) == Range(-128, 127)


# Unsound rules are found --------------------------------------------------------------------------------------------------


def _no_wrap(exact):
    return lambda t, a, b: (lambda r: Range(max(r.lo, t.least), min(max(r.hi, t.least), t.most)))(exact(a, b))


UNSOUND = {
    "add keeps to the type's ends": ("add", _no_wrap(ranges.exact_add)),
    "sub keeps to the type's ends": ("sub", _no_wrap(ranges.exact_sub)),
    "mul keeps to the type's ends": ("mul", _no_wrap(ranges.exact_mul)),
    "a sum of what is not negative is not": (
        "add",
        lambda t, a, b: Range(0, t.most) if a.lo >= 0 and b.lo >= 0 else t.whole,
    ),
    "a product of what is not negative is not": (
        "mul",
        lambda t, a, b: Range(0, t.most) if a.lo >= 0 and b.lo >= 0 else t.whole,
    ),
    "a difference of what is not negative is not": (
        "sub",
        lambda t, a, b: Range(0, t.most) if a.lo >= 0 and b.lo >= 0 else t.whole,
    ),
    "products of the first corner": ("mul", lambda t, a, b: converted(t, Range(*sorted((a.lo * b.lo, a.hi * b.hi))))),
    "a remainder has the divisor's sign": ("mod", lambda t, a, b: Range(0, b.hi - 1) if b.lo > 0 else t.whole),
    "a remainder is less than the divisor's least": (
        "mod",
        lambda t, a, b: Range(0, min(a.hi, b.lo)) if a.lo >= 0 and b.lo > 0 else t.whole,
    ),
    "a quotient has the dividend's sign": ("floordiv", lambda t, a, b: a if a.lo >= 0 else t.whole),
    "a quotient rounds down": (
        "floordiv",
        lambda t, a, b: Range(a.lo // b.lo, a.hi // b.lo) if a.hi < 0 < b.lo else t.whole,
    ),
    "the least number divided by -1 fits": (
        "floordiv",
        lambda t, a, b: Range(0, min(-a.lo, t.most)) if a.hi <= 0 and b == Range(-1, -1) else t.whole,
    ),
    "a shift to the left keeps the sign": (
        "lshift",
        lambda t, a, b: Range(0, t.most) if a.lo >= 0 and b.lo >= 0 else t.whole,
    ),
    "a shift to the right is not negative": ("rshift", lambda t, a, b: Range(0, t.most)),
    "a shift to the right is by the least": (
        "rshift",
        lambda t, a, b: Range(a.lo >> b.lo, a.hi >> b.lo) if b.lo >= 0 and b.hi < t.bits else t.whole,
    ),
    "and of one that is not negative is below the other": (
        "and",
        lambda t, a, b: Range(0, max(b.hi, 0)) if a.lo >= 0 else t.whole,
    ),
    "and of two negative ones is not below either": (
        "and",
        lambda t, a, b: Range(min(a.lo, b.lo), max(a.hi, b.hi, 0)),
    ),
    "or is no more than the greater": (
        "or",
        lambda t, a, b: Range(max(a.lo, b.lo), max(a.hi, b.hi)) if a.lo >= 0 and b.lo >= 0 else t.whole,
    ),
    "or of one that is not negative is not": ("or", lambda t, a, b: Range(0, t.most) if a.lo >= 0 else t.whole),
    "xor is no more than the greater": (
        "xor",
        lambda t, a, b: Range(0, max(a.hi, b.hi)) if a.lo >= 0 and b.lo >= 0 else t.whole,
    ),
    "the minimum is one of the first": ("minimum", lambda t, a, b: a),
    "the minimum of one that is not negative is not": ("minimum", lambda t, a, b: Range(max(a.lo, 0), max(a.hi, 0))),
    "the maximum is not over the first": ("maximum", lambda t, a, b: Range(a.lo, max(a.hi, b.lo))),
    "cdiv of what is not negative is not": (
        "cdiv",
        lambda t, a, b: Range(0, t.most) if a.lo >= 0 and b.lo > 0 else t.whole,
    ),
    "cdiv rounds down": ("cdiv", lambda t, a, b: ranges._floordiv(t, a, b)),
}


@pytest.mark.parametrize("planted", UNSOUND)
def test_an_unsound_rule_is_found(planted, monkeypatch):
    name, rule = UNSOUND[planted]

    def in_order(type, a, b):
        try:
            return rule(type, a, b)
        except AssertionError:  # no range at all: not what was planted
            return type.whole

    monkeypatch.setitem(TRANSFER, name, in_order)
    signed, unsigned = IntType(4), IntType(4, signed=False)
    assert any(unsound(name, type, all_ranges(type)) for type in (signed, unsigned))


UNSOUND_CONVERSIONS = {
    "what is not negative stays so": lambda to, a: Range(0, to.most) if a.lo >= 0 else to.whole,
    "unsigned numbers keep their value": lambda to, a: Range(max(a.lo, to.least), max(min(a.hi, to.most), to.least)),
    "both ends wrap around alone": lambda to, a: Range(*sorted((to.wrap(a.lo), to.wrap(a.hi)))),
}


@pytest.mark.parametrize("planted", UNSOUND_CONVERSIONS)
def test_an_unsound_conversion_is_found(planted):
    types = [IntType(bits, signed) for bits in (4, 6) for signed in (True, False)]
    rule = UNSOUND_CONVERSIONS[planted]
    assert any(unsound_conversion(rule, source, to) for source in types for to in types)
