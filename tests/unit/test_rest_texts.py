"""Sizes that no other text of a kernel holds for: one text whose loops load as they go, in layouts that need not be Triton's everywhere."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from translation_of import launch, translate

from gluonize.decide.layouts.gluon_values import of_gluon
from gluonize.decide.layouts.size_range import RatioBound, SizeRange
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.general import other_texts
from gluonize.general.box import Region, points
from gluonize.general.launches.trials import Loose, Trials
from gluonize.general.launches.wanted import Rest
from gluonize.general.layout_roles import classes, loosened, roles, told_apart
from gluonize.general.rules.sampled import SampledLayouts
from gluonize.general.rules.search import Fitting, Sample, fitted_layouts
from gluonize.decide.layouts.rule_texts import spread, spread_pairs
from gluonize.judge.verdict import validate_launch
from gluonize.trace.model.layouts import Blocked, DotOperand, Mfma
from gluonize.trace.passes.anchors import Anchors, PlacedOp, TensorType
from gluonize.write.contracts import contracts

TARGET = "gfx942"
SOURCE = """import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, stride: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * stride, mask=i < n)
    x = tl.reshape(tl.expand_dims(x, 0), (BLOCK,))
    tl.store(y_ptr + i, x * tl.full(x.shape, 2, x.dtype), mask=i < n)
"""
BOX = (SizeRange("M", 16, 64), SizeRange("num_warps", 1, 4))


def spec(block: int = 1024, warps: int = 4):
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    return launch("scale", signature, {"stride": 1, "BLOCK": block}, id="scale", warps=warps)


@pytest.fixture
def small_tiles_have_another_text(monkeypatch):
    real = Trials.at

    def at(trials, i, point):
        if point[0] < 1024 and trials.loose is not Loose.LOOPS:
            trials.found[i, point] = None
        return real(trials, i, point)

    monkeypatch.setattr(Trials, "at", at)


@pytest.mark.slow
def test_sizes_without_a_text_get_one(tmp_path, small_tiles_have_another_text):
    result = translate(tmp_path, SOURCE, spec(), target=TARGET, general=True)
    note = next(note for note in result.notes if "holds for" in note)
    assert note.endswith("; or for BLOCK=512, num_warps 2 to 8") and "stride" not in note
    tried = [o.spec for o in result.outcomes if o.spec.constexprs["BLOCK"] < 1024]
    assert tried, "what no text has that comes first is tried"
    output = tmp_path / "output.py"
    output.write_text(result.text)
    for block, warps in ((512, 4), (512, 8), (1024, 4)):
        answer = validate_launch(str(tmp_path / "source.py"), str(output), spec(block, warps), TARGET)
        assert answer["status"] == "validated", answer


def test_the_nearest_and_greater_tiles_come_first():
    assert other_texts._around((64, 2), 64) == [
        (64, 2), (64, 4), (128, 2), (32, 2), (64, 1), (128, 4), (32, 4), (128, 1), (32, 1)
    ]  # fmt: skip


def test_what_other_texts_have_is_not_of_a_region():
    first = Region(BOX, (RatioBound((("M", 1), ("num_warps", -1)), 16),))
    rest = Region(BOX, (), (first,))
    assert not rest.holds((64, 4)) and rest.holds((16, 4))
    assert rest.trimmed().elsewhere == (first,)
    assert sorted(rest.points() + first.points()) == sorted(points(BOX))


def test_the_ends_of_the_neighbourhood_are_tried():
    first = Region((SizeRange("M", 32, 32), SizeRange("num_warps", 2, 2)))
    tried = Rest(((32, 2),), (first,)).tried([(2, 1024), (1, 16)])
    assert (32, 2) not in tried and {(16, 1), (16, 4), (64, 1), (64, 4)} <= set(tried)


ROWS = Blocked((1, 4), (4, 16), (4, 1), (1, 0))


def test_what_masked_lanes_read_is_told_apart_with_its_load():
    """One constant has the place of the first visit that makes it; its layout is that of the load there."""
    ty = TensorType((64, 64), "f32", ROWS)
    ops = [PlacedOp("arith.constant", (1,), (), (ty,))]
    ops += [PlacedOp("tt.load", (path,), (), (ty,)) for path in range(2)]
    launched = TracedLaunch(None, None, None, Anchors.of(ops), 4, 1, {}, operands_in_lds={})
    apart = TensorType((64, 64), "f32", replace(ROWS, order=(0, 1)))
    other = replace(launched, anchors=Anchors.of([ops[0], ops[1], PlacedOp("tt.load", (1,), (), (apart,))]))
    loose = [loosened(x, False) for x in (launched, other)]
    found = told_apart(loose[0], classes(list(map(roles, loose))))
    assert [op.results[0].layout.twin for op in found.anchors.ops] == [1, 0, 1]


def test_nothing_runs_ahead_of_its_loop():
    launched = TracedLaunch(None, None, None, Anchors.of([]), 4, 1, {}, staging={(1,): None})  # type: ignore[dict-item]
    assert loosened(launched, True).staging and not loosened(launched, True, nothing_ahead=True).staging


def test_a_stride_is_no_size(tmp_path):
    (tmp_path / "source.py").write_text(SOURCE)
    from gluonize.read.kernels.load import load_kernel

    loaded = load_kernel(str(tmp_path / "source.py"), "scale")
    assert contracts.shape_parameters(loaded.fn) == {"BLOCK"}


def mma(rows: int, columns: int, **changes) -> Mfma:
    return replace(Mfma(4, (32, 32, 16), True, (rows, columns)), **changes)


def test_a_product_may_have_one_size_twice():
    samples = [
        Sample({"M": m, "K": k, "warps": w}, {"mma": layout})
        for m, k, w, layout in (
            (64, 32, 2, mma(1, 2)),
            (32, 16, 4, mma(4, 1)),
            (128, 64, 4, mma(2, 2)),
            (128, 32, 2, mma(1, 2)),
            (32, 32, 2, mma(2, 1)),
        )
    ]
    found = fitted_layouts(Fitting(samples, ("M", "K"), "warps", 64), ["mma"])
    assert found["mma"].at({"M": 64, "K": 32, "warps": 4}) == mma(2, 2)


def test_the_operands_of_a_product_without_matrix_cores_have_its_layout():
    samples = []
    for m, w in ((16, 1), (32, 2), (64, 4)):
        dot = Blocked((2, 2), (m // 4, 256 // m), (w, 1), (1, 0))
        samples.append(Sample({"M": m, "warps": w}, {"dot": dot, "a": DotOperand(0, dot, 0)}))
    found = fitted_layouts(Fitting(samples, ("M",), "warps", 64), ["a", "dot"])
    assert found["a"].name == "dot" and found["a"].at(samples[1].sizes) == samples[1].layouts["a"]


def sampled(loose: Loose) -> tuple[SampledLayouts, Region]:
    """Translations with one or two warps, one of which has a product the other way round."""
    layouts = {
        (m, w): mma(w, 1, transposed=(m, w) != (32, 2)) if m < 64 else mma(1, w) for m in (32, 64) for w in (1, 2)
    }
    found = {
        (0, point): SimpleNamespace(kernel=SimpleNamespace(laid_out=SimpleNamespace(constants=(("mma", layout),))))
        for point, layout in layouts.items()
    }
    trials = SimpleNamespace(
        given=[None],
        points=[(64, 1)],
        found=dict(sorted(found.items(), key=lambda item: item[0][1] != (64, 1))),
        own=[found[0, (64, 1)]],
        loose=loose,
        sizes=lambda key: {"M": key[1][0], "K": 16, "num_warps": key[1][1]},
    )
    box = (SizeRange("M", 32, 64), SizeRange("num_warps", 1, 2))
    return SampledLayouts(trials, ("M", "K"), 64), Region(box)  # type: ignore[arg-type]


def test_what_has_another_form_is_left_out_where_any_layout_is_right():
    layouts, region = sampled(Loose.LOOPS)
    found = layouts.fitted(region)
    assert layouts.unlike == {(0, (32, 2))}
    assert found["mma"].at({"M": 32, "K": 16, "num_warps": 2}) in (mma(2, 1), mma(1, 2))


def test_all_is_as_triton_has_it_where_tiles_run_ahead():
    layouts, region = sampled(Loose.ROWS)
    assert layouts.fitted(region) is None and layouts.missing == "mma"


def test_a_rule_that_is_right_for_most_will_do_there():
    """Warps over rows in one launch where the rule has them over columns."""
    samples = [
        Sample({"M": m, "K": 16, "warps": w}, {"mma": mma(1, w) if (m, w) != (128, 2) else mma(2, 1)})
        for m, w in ((64, 1), (64, 2), (128, 2), (256, 2))
    ]
    fitting = Fitting(samples, ("M", "K"), "warps", 64)
    assert fitted_layouts(fitting, ["mma"]) == ("mma",)
    found = fitted_layouts(replace(fitting, most=True), ["mma"])
    assert found["mma"].at(samples[2].sizes) == mma(1, 2)
    wrong_first = replace(fitting, samples=[samples[2], *samples[:2]], most=True)
    given = fitted_layouts(wrong_first, ["mma"])
    assert isinstance(given, tuple) or given["mma"].at(samples[2].sizes) == mma(2, 1)


@pytest.mark.parametrize(
    "shape, warps, wanted",
    [
        ([32, 32], 2, Blocked((1, 4, 2), (8, 8, 1), (2, 1, 1), (2, 1, 0))),
        ([8, 8], 8, Blocked((1, 1, 2), (8, 8, 1), (8, 1, 1), (2, 1, 0))),
        ([2, 256], 4, Blocked((1, 2, 2), (1, 64, 1), (2, 2, 1), (2, 1, 0))),
    ],
)
def test_pairs_are_spread_over_lanes_and_warps(shape, warps, wanted):
    assert of_gluon(spread_pairs(64).function(shape, 4, warps)) == wanted


def test_packed_tiles_have_parts_of_sizes():
    samples = [
        Sample({"M": m, "K": k, "warps": w}, {"out": of_gluon(spread(64).function([m, k // 2], 8, w, [1, 0]))})
        for m, k, w in ((16, 32, 4), (8, 16, 2), (32, 64, 8), (32, 64, 2), (8, 32, 4), (32, 128, 4))
    ]
    found = fitted_layouts(Fitting(samples, ("M", "K"), "warps", 64), ["out"])
    wanted = of_gluon(spread(64).function([64, 64], 8, 4, [1, 0]))
    assert found["out"].at({"M": 64, "K": 128, "warps": 4}) == wanted
