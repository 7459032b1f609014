"""Roles of layouts: what is equal in one launch and not in another is told apart."""

from __future__ import annotations

import pytest

from fixture_set import ROOT
from translation_of import TARGET, launch
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.general.launches.trials import Given, Trials
from gluonize.general.layout_roles import classes, roles, told_apart
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.trace.model.layouts import Blocked
from gluonize.trace.passes.anchors import Anchors, PlacedOp, TensorType
from gluonize.translation import tools_of, translate_launch

ROWS, COLUMNS = Blocked((1, 4), (4, 16), (4, 1), (1, 0)), Blocked((4, 1), (16, 4), (1, 4), (0, 1))
BOTH = """import triton
import triton.language as tl


@triton.jit
def both(a_ptr, b_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(a_ptr + m[:, None] * N + n[None, :])
    b = tl.load(b_ptr + n[:, None] * M + m[None, :])
    tl.store(y_ptr + m, tl.sum(a, axis=1))
    tl.store(y_ptr + M + m, tl.sum(b, axis=0))
"""


def launched(*layouts: Blocked) -> TracedLaunch:
    """A launch with one load per layout, each of which makes a mask in the same layout."""
    ops = []
    for path, layout in enumerate(layouts):
        ty = TensorType((64, 64), "f32", layout)
        ops += [PlacedOp("tt.splat", (path,), (), (ty,)), PlacedOp("tt.load", (path,), (), (ty,))]
    return TracedLaunch(None, None, None, Anchors.of(ops), 4, 1, {})


def twins(traced: TracedLaunch) -> list[int]:
    return [op.results[0].layout.twin for op in traced.anchors.ops]


def test_equal_layouts_that_another_launch_has_apart_are_twins():
    known = classes([roles(launched(ROWS, COLUMNS))])
    assert twins(told_apart(launched(ROWS, ROWS), known)) == [0, 0, 1, 1]


def test_what_is_different_already_stays_as_it_is():
    one = launched(ROWS, COLUMNS)
    assert told_apart(one, classes([roles(one)])) is one
    same = launched(ROWS, ROWS)
    assert told_apart(same, classes([roles(same)])) is same


def test_classes_are_those_of_all_launches_with_the_same_roles():
    same, apart, more = launched(ROWS, ROWS), launched(ROWS, COLUMNS), launched(ROWS, ROWS, COLUMNS)
    assert len(set(classes([roles(same), roles(apart)]).values())) == 2
    assert len(set(classes([roles(same), roles(more)]).values())) == 1


def sized(m: int, n: int):
    return launch("both", dict.fromkeys(("a_ptr", "b_ptr", "y_ptr"), "*fp16"), {"M": m, "N": n})


SIZES = [(m, n, warps) for m in (32, 64, 128) for n in (32, 64, 128) for warps in (2, 4, 8)]


def shared_text(folder, m: int, n: int) -> list[tuple[int, int, int]]:
    """The sizes of which a translation has the text of the one for m and n."""
    (folder / "source.py").write_text(BOTH)
    spec = sized(m, n)
    request = TranslateRequest(str(folder / "source.py"), TARGET, launches=(spec,))
    _, traced, emitted = translate_launch(request, spec)
    trials = Trials([Given(spec, traced, emitted, 4)], ("M", "N", "num_warps"), tools_of(request))
    trials.start([(0, point) for point in SIZES])
    return [point for point in SIZES if trials.good(point)]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("m, n", [(64, 64), (64, 128)])
def test_one_text_for_tiles_of_one_shape_and_of_two(tmp_path, m, n):
    assert shared_text(tmp_path, m, n) == SIZES


def test_without_twins_squares_have_a_text_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("gluonize.general.launches.trials.told_apart", lambda traced, known: traced)
    assert shared_text(tmp_path, 64, 64) == [point for point in SIZES if point[0] == point[1]]


def test_a_base_that_moves_does_so_at_all_sizes():
    """Small tiles would move their offsets; in the words of the launch that was given they move the base too."""
    spec, *_ = read_launches(str(ROOT / "matmul" / "launches.json"))
    request = TranslateRequest(str(ROOT / "matmul" / "kernel.py"), "gfx950", launches=(spec,))
    _, traced, emitted = translate_launch(request, spec)
    trials = Trials(
        [Given(spec, traced, emitted, 4)], ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"), tools_of(request)
    )
    assert trials.moved[0] and trials.good((64, 64, 32, 4)) and trials.good((64, 16, 64, 4))
    trials.moved[0] = frozenset()
    trials.start(())
    assert not trials.good((64, 64, 32, 4))
