"""Entries of layouts as functions of sizes, and layouts made of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from gluonize.decide.layouts.constructors import constructor
from gluonize.decide.layouts.formulas import Formula, Product, fit, sum_text
from gluonize.decide.layouts.parametric import parametric
from gluonize.trace.model.layouts import Blocked, DotOperand, Linear, Mfma

SIZES = [{"M": m, "N": n, "warps": w} for m, n, w in itertools.product((32, 64, 128), (16, 64, 256), (2, 4, 8))]


def spelled(name: str) -> str:
    return "gl.num_warps()" if name == "warps" else name


@pytest.mark.parametrize(
    "entry, text",
    [
        (lambda s: 4, "4"),
        (lambda s: s["warps"], "gl.num_warps()"),
        (lambda s: s["M"] // 8, "M // 8"),
        (lambda s: 64 * s["N"] // s["M"], "64 * N // M"),
        (lambda s: min(max(s["N"] * 8 // (64 * s["warps"]), 1), 4), "min(max(N // (8 * gl.num_warps()), 1), 4)"),
        (lambda s: max(s["N"] // 64, 1), "max(N // 64, 1)"),
        (lambda s: min(s["N"] // 4, 8), "min(N // 4, 8)"),
        (lambda s: min(s["warps"], s["M"] // 16), "min(gl.num_warps(), M // 16)"),
        (lambda s: s["warps"] // min(s["warps"], s["M"] // 16), "max(16 * gl.num_warps() // M, 1)"),
    ],
)
def test_the_simplest_formula_is_found(entry, text):
    formula = fit([(sizes, entry(sizes)) for sizes in SIZES])
    assert formula is not None and formula.text(spelled) == text
    assert all(formula.at(sizes) == entry(sizes) for sizes in SIZES)


@pytest.mark.parametrize(
    "products, text",
    [
        ([(1, "MK"), (1, "NK")], "2 * K * (M + N)"),
        ([(1, "MK"), (2, "KN")], "2 * K * (M + 2 * N)"),
        ([(1, "MK")], "2 * M * K"),
        ([(1, "MK"), (1, "MK")], "2 * M * K + 2 * M * K"),
        ([(0, "M"), (0, "N")], "M + N"),
        ([(0, "M"), (-1, "M")], "M + M // 2"),
    ],
)
def test_what_several_products_share_is_written_once(products, text):
    made = [Product(power, tuple((name, 1) for name in names)) for power, names in products]
    assert sum_text(made, str) == text
    sizes = {"M": 64, "N": 32, "K": 16}
    assert eval(text, {}, sizes) == sum(2 ** product.log(sizes) for product in made)


def test_what_is_no_such_function_has_none():
    assert fit([(sizes, 1 if sizes["M"] == 64 else 2) for sizes in SIZES]) is None
    assert fit([(sizes, 3 * sizes["M"]) for sizes in SIZES]) is None
    assert fit([(sizes, 0) for sizes in SIZES]) is None


EXPONENTS = st.sampled_from((-1, 0, 1))


@settings(max_examples=300, deadline=None)
@given(st.integers(-6, 4), EXPONENTS, EXPONENTS, EXPONENTS, st.integers(0, 2), st.integers(0, 4), st.booleans())
def test_a_fit_agrees_with_every_sample(power, m, n, w, least, more, by_size):
    most = Product(least + more, (("warps", 1),)) if by_size else Product(least + more)
    made = Formula(Product(power, (("M", m), ("N", n), ("warps", w))), 2**least, most)
    samples = [(sizes, made.at(sizes)) for sizes in SIZES]
    found = fit(samples)
    assert found is not None
    for sizes, entry in samples:
        values = {name: value for name, value in sizes.items()}
        assert found.at(sizes) == entry == eval(found.text(), {}, values)


def test_a_blocked_layout_of_any_number_of_warps():
    def layout(sizes):
        per_lane = min(max(sizes["N"] * 8 // (64 * sizes["warps"]), 1), 4)
        return Blocked((1, per_lane), (64 // 16, 16), (sizes["warps"], 1), (1, 0))

    found = parametric([(sizes, layout(sizes)) for sizes in SIZES])
    assert found is not None and found.sizes == {"N", "warps"}
    assert all(found.at(sizes) == layout(sizes) for sizes in SIZES)
    text = "gl.BlockedLayout([1, min(max(N // (8 * gl.num_warps()), 1), 4)], [4, 16], [gl.num_warps(), 1], [1, 0])"
    assert constructor(found.written(spelled)) == text


def test_an_operand_takes_its_parent_along():
    def layout(sizes):
        return DotOperand(0, Mfma(4, (16, 16, 32), True, (sizes["warps"] // 2, 2)), 8 if sizes["N"] > 16 else 4)

    found = parametric([(sizes, layout(sizes)) for sizes in SIZES])
    assert found is not None and all(found.at(sizes) == layout(sizes) for sizes in SIZES)
    parent = found.layout.parent
    assert constructor(found.written(spelled), {parent: "mma"}) == "gl.DotOperandLayout(0, mma, min(N // 4, 8))"


def test_layouts_of_other_orders_or_classes_are_none():
    rows = Blocked((1, 4), (4, 16), (4, 1), (1, 0))
    other = Blocked((1, 4), (4, 16), (4, 1), (0, 1))
    linear = Linear(((0, 1),), ((0, 2),), (), (), (1, 4))
    for last in (other, linear):
        assert parametric([(SIZES[0], rows), (SIZES[1], last)]) is None
    assert parametric([(SIZES[0], linear), (SIZES[1], linear)]).at(SIZES[1]) == linear


def test_one_sample_among_many_tells_formulas_apart():
    """All but one agree with a simpler formula, which comes first."""
    samples = [({"A": 1 << i, "B": 1 << i}, 1 << i) for i in range(8)] * 8
    assert fit(samples).text() == "B"
    samples.insert(10, ({"A": 8, "B": 2}, 8))
    assert fit(samples).text() == "A"


def test_sizes_that_are_the_same_everywhere_explain_nothing():
    assert fit([({"M": 16}, 1), ({"M": 16}, 2)]) is None
