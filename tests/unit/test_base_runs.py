"""Bases of layouts as runs whose bounds follow from sizes."""

from __future__ import annotations

import itertools

import pytest

from gluonize.decide.layouts.base_runs import Run, fit_runs, runs_of
from gluonize.decide.layouts.complete import is_complete
from gluonize.decide.layouts.constructors import constructor
from gluonize.decide.layouts.parametric import parametric
from gluonize.general.written_kernel import _FUNCTIONS
from gluonize.trace.model.layouts import Blocked, DotOperand, Linear, Wmma
from gluonize.trace.model.shared_layouts import Padded, SharedLinear

SIZES = [{"M": m, "N": n, "warps": w} for m, n, w in itertools.product((32, 64, 128), (16, 64, 256), (1, 2, 4, 8))]


def functions() -> dict:
    """What a general file defines, as Python."""
    space: dict = {}
    for text in _FUNCTIONS.values():
        exec(text.partition("\n")[2], space)
    return space


def steps(dim: int, first: int, end: int, rank: int = 2) -> tuple:
    found = []
    while first < end:
        found.append(tuple(first if d == dim else 0 for d in range(rank)))
        first *= 2
    return tuple(found)


@pytest.mark.parametrize(
    "bases, runs",
    [
        ((), ()),
        (((0, 1), (0, 2), (0, 4)), (Run(1, 1, 8),)),
        (((0, 1), (0, 2), (4, 0), (8, 0)), (Run(1, 1, 4), Run(0, 4, 16))),
        (((64, 0), (32, 0), (16, 0), (1, 0)), (Run(0, 16, 128, True), Run(0, 1, 2))),
        (((0, 1), (0, 4)), (Run(1, 1, 2), Run(1, 4, 8))),
        (((1,), (2,)), (Run(0, 1, 4),)),
        (((8, 1),), None),
        (((0, 0),), None),
    ],
)
def test_the_longest_runs(bases, runs):
    assert runs_of(bases) == runs


@pytest.mark.parametrize(
    "bases, text",
    [
        (lambda s: steps(1, 1, 8) + steps(0, 4, s["M"]), "columns(1, 8) + rows(4, M)"),
        (lambda s: steps(1, 8, s["N"])[::-1], "columns_down(8, N)"),
        (
            lambda s: steps(1, 1, min(s["N"], 64)) + steps(0, 1, s["warps"]),
            "columns(1, min(N, 64)) + rows(1, warps)",
        ),
        (lambda s: steps(2, 1, s["N"], 3), "along(2, 1, N, 3)"),
        (lambda s: steps(0, 16, s["M"], 3)[::-1], "along_down(0, 16, M, 3)"),
        (lambda s: steps(0, 2, s["M"])[::-1], "rows_down(2, M)"),
    ],
)
def test_the_text_gives_the_bases_of_every_launch(bases, text):
    formula = fit_runs([(sizes, bases(sizes)) for sizes in SIZES])
    assert formula is not None and formula.text() == text
    for sizes in SIZES:
        assert formula.at(sizes) == bases(sizes)
        assert tuple(map(tuple, eval(formula.text(), functions(), dict(sizes)))) == bases(sizes)


def test_bases_that_never_change_may_be_of_any_kind():
    rotated = ((8, 1), (0, 0))
    formula = fit_runs([(sizes, rotated) for sizes in SIZES])
    assert formula.at(SIZES[0]) == rotated and not formula.sizes and not formula.functions


def test_what_follows_from_no_size_has_no_formula():
    assert fit_runs([(s, steps(0, 1, 8) if s["M"] == 64 else steps(1, 1, 8)) for s in SIZES]) is None
    assert fit_runs([(s, ((s["M"], 1),)) for s in SIZES]) is None


def wmma(sizes: dict) -> Wmma:
    """Warps over a tile as Triton shares them out: to the longer side of a warp's part, columns first."""
    rows = columns = 1
    while rows * columns < sizes["warps"]:
        if sizes["M"] // 2 // rows >= sizes["N"] // columns:
            rows *= 2
        else:
            columns *= 2
    return Wmma(2, True, steps(1, 1, columns) + steps(0, 1, rows), (), (16, 16, 16))


def test_warps_are_shared_out_by_a_root():
    square = [s for s in SIZES if s["N"] > 16]
    found = parametric([(sizes, wmma(sizes)) for sizes in square])
    assert found is not None and "root" in found.functions
    assert all(found.at(sizes) == wmma(sizes) for sizes in square)
    text = constructor(found.written(str))
    for sizes in square:
        bases = eval(text.partition("warp_bases=")[2].partition(", instr_shape")[0], functions(), dict(sizes))
        assert tuple(map(tuple, bases)) == wmma(sizes).warp_bases


def test_padded_layouts_follow_the_tile():
    def layout(sizes):
        return Padded(((max(sizes["N"], 64), 8),), (), (1, 0), (sizes["M"], sizes["N"]))

    found = parametric([(sizes, layout(sizes)) for sizes in SIZES])
    assert all(found.at(sizes) == layout(sizes) for sizes in SIZES)
    text = constructor(found.written(str))
    assert text == "gl.PaddedSharedLayout.with_identity_for([[max(N, 64), 8]], [M, N], [1, 0])"


def test_a_layout_with_bases_is_none_of_one_without():
    plain, permuted = Padded(((64, 8),), (), (1, 0), (2, 2)), Padded(((64, 8),), ((1, 0), (0, 1)), (1, 0), (2, 2))
    assert parametric([(SIZES[0], plain), (SIZES[1], permuted)]) is None


@pytest.mark.parametrize(
    "layout, complete",
    [
        (Blocked((1,), (32,), (4,), (0,)), True),
        (Blocked((1,), (16,), (4,), (0,)), False),
        (Blocked((1,), (32,), (8,), (0,)), False),
        (DotOperand(0, Wmma(2, True, ((0, 1), (1, 0)), (), (16, 16, 16)), 8), True),
        (DotOperand(0, Wmma(2, True, ((0, 1),), (), (16, 16, 16)), 8), False),
        (Linear(steps(1, 1, 4), steps(0, 1, 32), steps(1, 4, 16), (), (32, 16)), True),
        (Linear(steps(1, 1, 4), steps(0, 1, 32), steps(1, 4, 16), (), (64, 16)), False),
        (Linear(steps(1, 1, 4), steps(0, 1, 32), steps(1, 4, 16), (), (32, 8)), False),
        (Padded(((64, 8),), steps(1, 1, 16) + steps(0, 1, 8), (), (8, 16)), True),
        (Padded(((64, 8),), steps(1, 1, 16) + steps(0, 1, 4), (), (8, 16)), False),
        (SharedLinear(((0, 1), (1, 0))), True),
    ],
)
def test_every_lane_and_element_has_its_place(layout, complete):
    assert is_complete(layout, 32, 4) == complete
