"""Rules of Triton's passes, restated: they give what the passes choose for sizes that nothing was made from."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from triton.experimental.gluon import language as gl

from fixture_set import ROOT
from translation_of import compiled
from gluonize.decide.layouts.formulas import Formula, Product
from gluonize.decide.layouts.gluon_values import as_gluon, in_order_of, linear, of_gluon, same_places
from gluonize.decide.layouts.inferred import _scratch
from gluonize.decide.layouts.size_range import RatioBound, RoomBound
from gluonize.diagnostics import TranslationError
from gluonize.general.bounds import bounds_between
from gluonize.general.general_kernels import general_layouts
from gluonize.general.launches.trials import with_sizes
from gluonize.general.layout_roles import without_twin
from gluonize.decide.layouts import rule_texts as texts
from gluonize.general.rules import search
from gluonize.general.rules.layouts import ByRule, Numbers, OperandOfInstruction
from gluonize.general.rules.search import Before, Fitting, Sample, fitted_layouts
from gluonize.general.rules.tiles import spread_tiles
from gluonize.general.written_kernel import Spelled, named_functions
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.trace.model.layouts import Blocked, DotOperand, Linear, Mfma, Wmma
from gluonize.trace.model.shared_layouts import Padded, SharedLinear, Swizzled
from gluonize.translation import translate_kernel, translate_launch

SIZES = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps")
KERNEL = ROOT / "matmul" / "kernel.py"


def at(point: tuple[int, ...]):
    """The first launch of the matmul fixture with other sizes."""
    spec = read_launches(str(ROOT / "matmul" / "launches.json"))[0]
    return replace(with_sizes(spec, dict(zip(SIZES, point))), values=spec.values | dict(zip(SIZES[:3], point)))


def request(spec) -> TranslateRequest:
    return TranslateRequest(str(KERNEL), "gfx950", launches=(spec,))


@pytest.fixture(scope="module")
def general(tmp_path_factory):
    """The general form of the matmul for gfx950, made from one launch: (region, layouts, text)."""
    found = []

    def noted(*arguments):
        found.append(general_layouts(*arguments))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gluonize.general.general_versions.general_layouts", noted)
        patch.setattr("gluonize.general.general_kernels.EXTENSIONS", 1)
        text = translate_kernel(replace(request(at((128, 128, 64, 4))), general=True)).text
    region, every = found[-1]
    made = next(iter(every.values()))
    return region, made.layouts, text


@pytest.fixture
def matmul(general):
    return (*general[:2], {f"{p}.dtype.element_ty.primitive_bitwidth": 16 for p in ("a_ptr", "b_ptr", "c_ptr")})


@pytest.fixture
def output(general, tmp_path):
    (tmp_path / "output.py").write_text(general[2])
    return tmp_path / "output.py"


FAR = [
    (32, 32, 128, 1),
    (256, 64, 32, 8),
    (64, 256, 64, 2),
    (32, 64, 128, 4),
    (256, 256, 64, 8),
    (128, 32, 256, 4),
    (64, 128, 16, 4),
]


@pytest.mark.slow
@pytest.mark.parametrize("point", FAR)
def test_layouts_of_a_matmul_are_those_of_a_translation_for_its_own_sizes(matmul, point):
    region, layouts, widths = matmul
    assert region.holds(point)
    spec = at(point)
    exact = dict(translate_launch(replace(request(spec), general=True), spec)[2].kernel.laid_out.constants)
    sizes = dict(zip(SIZES, point)) | widths
    for name, layout in exact.items():
        assert same_places(layouts[name].at(sizes), without_twin(layout)), name


@pytest.mark.slow
def test_layouts_of_a_matmul_are_calls_that_a_person_would_write(matmul):
    _, layouts, _ = matmul
    written = {name: layout.written(Spelled("num_warps", {})) for name, layout in layouts.items()}
    assert written["mma"].text == "matrix_cores(BLOCK_M, BLOCK_N, BLOCK_K, gl.num_warps())"
    assert written["c_store"].text == "wide_store(mma, gl.to_linear_layout(mma, [BLOCK_M, BLOCK_N]))"
    assert (
        "cdna4.compute_efficient_padded_shared_layout(b_operand, [BLOCK_K, BLOCK_N], b_ptr" in written["b_shared"].text
    )
    assert written["a_load"].text.startswith("direct_copy(a_shared, [BLOCK_M, BLOCK_K], a_ptr.dtype")


@pytest.mark.slow
def test_element_types_are_asserted_where_functions_give_layouts(general):
    assert "a_ptr.dtype.element_ty == gl.float16" in general[2]


@pytest.mark.slow
def test_sizes_say_what_moves_from_tile_to_tile(general):
    """The base of addresses does for the launch that is given, offsets do for small tiles."""
    text = general[2]
    assert "a_base, a_offs = advanced(a_base, a_offs, BLOCK_K * stride_ak)" in text and "a_base += " not in text


@pytest.mark.slow
def test_tiles_without_room_in_lds_are_not_in_its_region(matmul):
    region, _, _ = matmul
    assert any(isinstance(bound, RoomBound) and bound.slots == 2 for bound in region.bounds)
    assert not region.holds((256, 256, 128, 4)) and region.holds((256, 256, 64, 4))


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("point", FAR)
def test_a_general_matmul_is_right_for_other_sizes(output, point):
    answer = validate_launch(str(KERNEL), str(output), at(point), "gfx950")
    assert answer["status"] == "validated", answer


@pytest.mark.slow
@pytest.mark.compile
def test_a_matmul_outside_of_its_region_is_refused_by_name(output):
    with pytest.raises(TranslationError, match="bytes of LDS"):
        compiled(output.parent, output.read_text(), at((256, 256, 128, 4)), "gfx950")


@pytest.mark.slow
@pytest.mark.compile
def test_a_general_matmul_made_for_fp16_is_right_for_bf16_and_refuses_fp32_by_name(output):
    def typed(kind: str):
        spec = at((128, 128, 64, 4))
        signature = {name: kind if value == "*fp16" else value for name, value in spec.signature.items()}
        return replace(spec, signature=signature, values={})

    answer = validate_launch(str(KERNEL), str(output), typed("*bf16"), "gfx950")
    assert answer["status"] == "validated", answer
    with pytest.raises(
        TranslationError, match=r"a_ptr.dtype.element_ty == gl.float16 or a_ptr.dtype.element_ty == gl.bfloat16"
    ):
        compiled(output.parent, output.read_text(), typed("*fp32"), "gfx950")


MMA = [Sample({"M": m, "N": n, "K": 64, "warps": w}, {"mma": Mfma(4, (32, 32, 16), True, over)})
       for m, n, w, over in ((64, 64, 4, (2, 2)), (32, 128, 4, (1, 4)), (128, 32, 4, (4, 1)), (128, 128, 8, (2, 4)))]  # fmt: skip


@pytest.mark.parametrize(
    "m, n, warps, wanted",
    [
        (128, 128, 4, ((0, 1), (1, 0))),
        (64, 128, 4, ((0, 1), (0, 2))),
        (128, 64, 8, ((0, 1), (1, 0), (2, 0))),
        (32, 64, 16, ((0, 1), (1, 0), (2, 0), (4, 0))),
        (512, 64, 2, ((1, 0),)),
    ],
)
def test_warps_of_wave_matrices_lie_as_triton_lays_them(m, n, warps, wanted):
    found = of_gluon(texts.wave_matrices(3, True).function(m, n, 32, warps))
    assert found == Wmma(3, True, wanted, (), (16, 16, 32))
    assert of_gluon(as_gluon(found)) == found


def test_rules_of_one_name_that_differ_are_two_functions():
    """Products of two element types in one kernel: neither calls the function of the other."""
    sizes = [Numbers((Formula(Product(0, ((size, 1),))),), False) for size in ("M", "N", "K", "num_warps")]
    narrow, wide = (ByRule(texts.matrix_cores(4, {32: [depth]}, True), tuple(sizes)) for depth in (16, 64))
    named = named_functions([wide, narrow, narrow], (), frozenset({"matrix_cores_2"}))
    assert len(named) == 2 and "matrix_cores_2" not in named
    for layout in (narrow, wide):
        called = layout.written(Spelled("num_warps", named)).text.partition("(")[0]
        assert named[called].text == layout.rule.text


def test_the_depth_of_wave_matrices_follows_the_element_type():
    samples = [
        Sample({"M": 64, "N": n, "warps": 4, "bits": bits}, {"wmma": Wmma(3, True, over, (), (16, 16, depth))})
        for bits, depth in ((16, 32), (8, 64))
        for n, over in ((64, ((0, 1), (1, 0))), (128, ((0, 1), (0, 2))))
    ]
    (found,) = fitted_layouts(Fitting(samples, ("M", "N"), "warps", 32), ["wmma"]).values()
    assert found.written(Spelled("", {})).text == "matrix_cores(M, N, 512 // bits, warps)"


def test_rows_too_short_to_be_padded_are_not():
    samples = [
        Sample({"K": 32, "N": n, "warps": 4}, {"shared": layout})
        for n, layout in (
            (16, Swizzled(1, 1, 1, (1, 0))),
            (32, Padded(((128, 16),), (), (1, 0), (32, 32))),
            (128, Padded(((128, 16),), (), (1, 0), (32, 128))),
            (256, Padded(((256, 16),), (), (1, 0), (32, 256))),
        )
    ]
    found = fitted_layouts(Fitting(samples, ("K", "N"), "warps", 32), ["shared"])
    assert found["shared"].written(Spelled("", {})).text == "padded_rows([32, N], max(N, 128), 16, order=[1, 0])"
    wrong = [*samples, Sample({"K": 32, "N": 64, "warps": 4}, {"shared": Swizzled(1, 1, 1, (1, 0))})]
    assert fitted_layouts(Fitting(wrong, ("K", "N"), "warps", 32), ["shared"]) == ("shared",)


def test_a_rule_that_gives_another_layout_is_not_used(monkeypatch):
    """Planted: a rule that gives all warps to the rows."""
    fitting = Fitting(MMA, ("M", "N", "K"), "warps", 64)
    found = fitted_layouts(fitting, ["mma"])
    assert isinstance(found["mma"], ByRule)
    wrong = texts.matrix_cores(4, {32: [16]}, True)
    wrong = replace(
        wrong,
        text=wrong.text.replace("if down else (rows, 2 * columns)", "if down else (2 * rows, columns)"),
    )
    monkeypatch.setattr("gluonize.general.rules.search.matrix_cores", lambda *_: wrong)
    found = fitted_layouts(fitting, ["mma"])
    assert isinstance(found, str) or not isinstance(found["mma"], ByRule)


def test_tiles_are_told_from_those_of_the_other_operand():
    """Gluon's function for operands in LDS aborts for some tiles that are none."""
    samples = [
        replace(s, layouts={**s.layouts, **{name: DotOperand(i, s.layouts["mma"], 8) for i, name in enumerate("ab")}})
        for s in MMA
    ]
    fitting = Fitting(samples, ("M", "N", "K"), "warps", 64)
    found = fitted_layouts(fitting, ["mma", "a", "b"])
    tile = Numbers(tuple(Formula(Product(0, ((size, 1),))) for size in ("M", "K")))
    assert search._is_tile_of(fitting, "a", found, tile) and not search._is_tile_of(fitting, "b", found, tile)
    padded = Padded(((512, 8),), ((0, 1), (1, 0)), (), (2, 2))
    assert search._is_contiguous(padded, 1) and not search._is_contiguous(Swizzled(8, 1, 8, (1, 0)), 0)


@pytest.mark.slow
def test_a_general_product_of_fp8_is_no_abort(monkeypatch):
    monkeypatch.setattr("gluonize.general.general_kernels.EXTENSIONS", 1)
    folder = ROOT / "fp8_matmul"
    spec = next(s for s in read_launches(str(folder / "launches.json")) if s.id == "fp8_matmul/64x64x128")
    made = translate_kernel(TranslateRequest(str(folder / "kernel.py"), "gfx950", launches=(spec,), general=True))
    assert "BLOCK_M, BLOCK_N 16 to 256" in made.notes[-1], made.notes


def test_vectors_that_are_not_padded_are_those_of_the_operand():
    """Where Gluon's function gives no padding, LDS has vectors of what lanes read at once; they are not told from sizes by chance."""
    samples = []
    product = ByRule(
        texts.matrix_cores(4, {32: [16], 16: [32]}, True), tuple(map(search.number, ("M", "N", "K", "warps")))
    )
    operand = OperandOfInstruction(0, "mma", product)
    for m, k, warps in itertools.product((16, 64, 128), (16, 32, 64), (1, 4)):
        sizes = {"M": m, "N": 64, "K": k, "warps": warps, "a.dtype.element_ty.primitive_bitwidth": 16}
        mma, a = product.at(sizes), operand.at(sizes)
        padded = texts.PADDED_OPERAND.given(as_gluon(a), [m, k], gl.float16, True)
        shared = of_gluon(padded) if padded else Swizzled(a.k_width, 128 // k, k // 8, (1, 0))
        samples.append(Sample(sizes, {"mma": mma, "a_operand": a, "a_shared": shared}))
    found = fitted_layouts(Fitting(samples, ("M", "N", "K"), "warps", 64), ["mma", "a_operand", "a_shared"])
    text = found["a_shared"].written(Spelled("warps", {})).text
    assert text.endswith(" or gl.SwizzledSharedLayout(a_operand.k_width, 128 // K, K // 8, [1, 0])"), text
    assert all(found["a_shared"].at(s.sizes) == s.layouts["a_shared"] for s in samples)


def test_what_held_in_fewer_samples_is_given_up_where_it_does_not():
    fewer = fitted_layouts(Fitting(MMA[:1], ("M", "N", "K"), "warps", 64), ["mma"])
    more = fitted_layouts(Fitting(MMA, ("M", "N", "K"), "warps", 64), ["mma"], Before(fewer, MMA[1:]))
    assert more["mma"].at(MMA[2].sizes) == MMA[2].layouts["mma"]


@pytest.mark.parametrize(
    "shape, most, warps, order, wanted",
    [
        ([64, 64], 8, 4, [1, 0], Blocked((1, 8), (8, 8), (4, 1), (1, 0))),
        ([16, 1024], 4, 8, [1, 0], Blocked((1, 4), (1, 64), (2, 4), (1, 0))),
        ([64, 32], 8, 2, [0, 1], Blocked((8, 1), (8, 8), (1, 2), (0, 1))),
        ([4, 16], 8, 4, [1, 0], Blocked((1, 1), (4, 16), (4, 1), (1, 0))),
    ],
)
def test_elements_of_rows_are_spread_over_lanes_and_warps(shape, most, warps, order, wanted):
    assert of_gluon(texts.spread(64).function(shape, most, warps, order)) == wanted
    if order == [1, 0]:
        assert of_gluon(texts.spread_rows(64).function(shape, most, warps)) == wanted


@pytest.mark.parametrize(
    "others, called", [((1, 0), "spread([M, N], 8, warps)"), ((0, 1), "spread([M, N], 8, warps, order=[1, 0])")]
)
def test_tiles_of_which_some_are_spread_by_columns_say_so(others, called):
    """A tile is spread by rows; another one is too, or is not."""
    fitting = []
    for m, n, warps in itertools.product((32, 64), (64, 128), (2, 4)):
        load = of_gluon(texts.spread_rows(64).function([m, n], 8, warps))
        other = of_gluon(texts.spread(64).function([m, n], 8, warps, list(others)))
        fitting.append(Sample({"M": m, "N": n, "warps": warps}, {"load": load, "other": other}))
    made = next(spread_tiles(Fitting(fitting, ("M", "N"), "warps", 64), "load", {}))
    assert made.written(Spelled("warps", {})).text.replace("gl.num_warps()", "warps") == called


@pytest.mark.parametrize(
    "layout",
    [
        Mfma(4, (32, 32, 16), True, (2, 2)),
        Padded(((512, 8),), ((0, 1), (0, 2), (1, 0), (2, 0)), (), (4, 4)),
        Swizzled(8, 2, 8, (1, 0)),
        SharedLinear(((0, 1), (0, 2), (1, 1), (2, 2))),
        DotOperand(1, Mfma(4, (16, 16, 32), True, (4, 1)), 8),
        Blocked((1, 8), (8, 8), (4, 1), (1, 0)),
    ],
)
def test_layouts_of_gluon_and_back(layout):
    assert of_gluon(as_gluon(layout)) == layout


def test_a_blocked_layout_by_its_bases():
    copies = linear(Blocked((1, 2), (2, 32), (8, 1), (1, 0)), (8, 64))
    assert copies.warp == ((2, 0), (4, 0), (0, 0)) and copies.register == ((0, 1),)
    repeated = linear(Blocked((1, 2), (8, 8), (1, 1), (1, 0)), (16, 32))
    assert repeated == Linear(
        ((0, 1), (0, 16), (8, 0)), ((0, 2), (0, 4), (0, 8), (1, 0), (2, 0), (4, 0)), (), (), (16, 32)
    )
    assert same_places(repeated, Blocked((1, 2), (8, 8), (1, 1), (1, 0)))
    assert not same_places(repeated, Blocked((2, 1), (8, 8), (1, 1), (1, 0)))


def test_the_order_of_a_dimension_without_lanes_says_nothing():
    rows = Blocked((1, 1), (64, 1), (4, 1), (0, 1))
    assert same_places(rows, replace(rows, order=(1, 0))) and in_order_of(rows, replace(rows, order=(1, 0))) == rows
    tile = Blocked((1, 4), (8, 8), (4, 1), (1, 0))
    assert not same_places(tile, replace(tile, order=(0, 1)))
    assert not same_places(rows, replace(rows, order=(1, 0), threads_per_warp=(32, 2)))
    samples = [
        Sample({"M": 64 * n, "warps": n}, {"tile": Blocked((1, 1), (64, 1), (n, 1), order)})
        for n, order in ((2, (0, 1)), (4, (1, 0)), (8, (0, 1)))
    ]
    (found,) = fitted_layouts(Fitting(samples, ("M",), "warps", 64), ["tile"]).values()
    assert found.at({"M": 64, "warps": 1}) == Blocked((1, 1), (64, 1), (1, 1), (0, 1))


POINTS = [(m, n, w) for m in (16, 32, 64, 128) for n in (16, 64, 256) for w in (1, 2, 4, 8)]


@pytest.mark.parametrize(
    "good, text",
    [
        (lambda m, n, w: m >= 16 * w, "M >= 16 * warps"),
        (lambda m, n, w: m * n <= 4096, "M * N <= 4096"),
        (lambda m, n, w: n * m >= 1024 * w, "M * N >= 1024 * warps"),
    ],
)
def test_bounds_tell_good_points_from_bad_ones(good, text):
    inside = [p for p in POINTS if good(*p)]
    outside = [p for p in POINTS if p not in inside]
    own = [p for p in inside if p[0] == 64][:1] or inside[:1]
    bounds = bounds_between(("M", "N", "warps"), inside, outside, own)
    assert [str(bound) for bound in bounds] == [text]


def test_a_bound_of_lds_counts_what_is_there_several_times():
    tiles = (Product(1, (("M", 1),)), Product(1, (("N", 1),)))
    inside = [p for p in POINTS if 3 * (2 * p[0] + 2 * p[1]) <= 1024]
    bounds = bounds_between(
        ("M", "N", "warps"), inside, [p for p in POINTS if p not in inside], [(32, 64, 4)], tiles, 1024
    )
    assert bounds == (RoomBound(tiles, 3, 1024),)
    assert str(bounds[0]) == "3 * (2 * (M + N)) <= 1024 (bytes of LDS)"


def test_no_bound_excludes_a_launch_that_was_given():
    assert bounds_between(("M", "warps"), [(64, 4)], [(16, 8)], [(16, 8)]) == ()
    assert RatioBound((("M", 1), ("warps", -1)), 32).holds({"M": 64, "warps": 2})


@pytest.mark.parametrize(
    "shape, warps, wanted",
    [
        ([64, 128], 2, Blocked((4, 8), (4, 16), (2, 1), (1, 0))),
        ([256, 32], 8, Blocked((2, 8), (16, 4), (8, 1), (1, 0))),
        ([32, 128], 8, Blocked((1, 8), (4, 16), (8, 1), (1, 0))),
    ],
)
def test_lanes_hold_blocks_of_several_rows_where_they_have_more_than_one_access(shape, warps, wanted):
    assert of_gluon(texts.spread(64).function(shape, 8, warps, [1, 0], 4)) == wanted
    assert of_gluon(texts.spread_rows(64).function(shape, 8, warps, 4)) == wanted


def test_an_operand_follows_from_the_instruction_of_its_product():
    shapes = ((64, (32, 32, 16), 8), (32, (16, 16, 32), 8), (16, (16, 16, 16), 4))
    made = [(m, Mfma(4, shape, True, (2, 2)), width) for m, shape, width in shapes]
    samples = [
        Sample({"M": m, "warps": 4}, {"mma": mma, "a_operand": DotOperand(0, mma, width)}) for m, mma, width in made
    ]
    product = SimpleNamespace(at=lambda sizes: next(mma for m, mma, _ in made if m == sizes["M"]))
    found = OperandOfInstruction(0, "mma", product)
    fitting = Fitting(samples, ("M",), "warps", 64)
    assert fitting.gives(found, "a_operand")
    assert found.written(Spelled("warps", {})).text == (
        "gl.DotOperandLayout(0, mma, mma.instr_shape[0] * mma.instr_shape[2] // 64)"
    )
    wrong = [*samples, Sample({"M": 64, "warps": 4}, {"a_operand": DotOperand(0, made[0][1], 16)})]
    assert not fitting.gives(found, "a_operand", wrong)


@pytest.mark.parametrize("shape, width", [((32, 32, 16), 8), ((16, 16, 32), 8), ((16, 16, 16), 4), ((32, 32, 64), 16)])
def test_operands_have_up_to_so_many_elements_of_one_instruction(shape, width):
    mma = Mfma(4, shape, True, (2, 2))
    found = OperandOfInstruction(1, "mma", SimpleNamespace(at=lambda sizes: mma), most=16)
    assert found.at({}) == DotOperand(1, mma, width)
    text = "gl.DotOperandLayout(1, mma, min(mma.instr_shape[0] * mma.instr_shape[2] // 64, 16))"
    assert found.written(Spelled("warps", {})).text == text


@pytest.mark.parametrize(
    "side, transposed, warps, shape", [(32, True, (2, 2), (128, 64)), (16, False, (1, 4), (16, 32))]
)
def test_a_product_by_its_bases_is_what_triton_says(side, transposed, warps, shape):
    mma = Mfma(4, (side, side, 16), transposed, warps)
    builder = _scratch("gfx950", 4, 64, 1).builder
    assert linear(mma, shape) == of_gluon(builder.to_linear_layout(as_gluon(mma)._to_ir(builder), list(shape)))
    assert linear(replace(mma, tiles_per_warp=(2, 1)), shape) is None


@pytest.mark.parametrize(
    "side, warps, lane, register",
    [(32, (2, 2), [0, 8], [0, 4]), (16, (4, 1), [0, 16], [0, 4]), (16, (2, 2), [0, 4], None)],
)
def test_a_product_is_stored_with_eight_columns_in_a_row(side, warps, lane, register):
    mma = as_gluon(Mfma(4, (side, side, 16), True, warps))
    bases = as_gluon(linear(of_gluon(mma), (128, 64)))
    found = texts.WIDE_STORE.function(mma, bases)
    if register is None:  # the next columns are those of another warp
        assert found is mma
    else:
        assert found.lane_bases[bases.lane_bases.index([0, 4])] == lane
        assert found.reg_bases[bases.reg_bases.index(lane)] == register


def test_a_transposed_block_has_its_rows_first():
    held = Blocked((4, 8), (8, 8), (4, 1), (1, 0))
    bases = as_gluon(linear(held, (128, 64)))
    turned = of_gluon(texts.TRANSPOSED.function(as_gluon(held), bases))
    assert turned.register == ((1, 0), (2, 0), (0, 1), (0, 2), (0, 4))
    one_row = Blocked((1, 8), (8, 8), (4, 1), (1, 0))
    bases = as_gluon(linear(one_row, (32, 64)))
    assert of_gluon(texts.TRANSPOSED.function(as_gluon(one_row), bases)) == linear(one_row, (32, 64))


@pytest.mark.parametrize(
    "rows, shape, last",
    [
        (4, [64, 64], ((4, 1), (8, 2), (16, 4), (32, 8), (4, 16), (8, 32))),
        (4, [32, 64], ((0, 1), (4, 2), (8, 4), (16, 8), (4, 16), (8, 32))),
        (2, [16, 128], ((0, 1), (0, 2), (4, 4), (8, 8), (4, 16), (8, 32), (0, 64))),
    ],
)
def test_columns_of_a_transposed_tile_are_rotated(rows, shape, last):
    held = as_gluon(Blocked((rows, 8), (8, 8), (4, 1), (1, 0)))
    found = of_gluon(texts.ROTATED.function(held, shape, 4, 64, 16))
    assert found.offsets[-len(last) :] == last and len(found.offsets) == (shape[0] * shape[1]).bit_length() - 1
    held = as_gluon(Blocked((1, 8), (8, 8), (4, 1), (1, 0)))
    assert of_gluon(texts.ROTATED.function(held, shape, 4, 64, 16)) == Swizzled(1, 1, 1, (1, 0))


@pytest.mark.slow
@pytest.mark.compile
def test_a_general_matmul_through_registers_is_right_for_other_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr("gluonize.general.general_kernels.EXTENSIONS", 0)
    spec = at((128, 128, 64, 4))
    made = translate_kernel(TranslateRequest(str(KERNEL), "gfx942", launches=(spec,), general=True))
    assert "rotated(b_load" in made.text, made.notes
    (tmp_path / "output.py").write_text(made.text)
    for point in ((64, 64, 32, 4), (64, 128, 64, 2), (128, 64, 32, 8)):
        answer = validate_launch(str(KERNEL), str(tmp_path / "output.py"), at(point), "gfx942")
        assert answer["status"] == "validated", answer


@pytest.mark.slow
@pytest.mark.compile
def test_a_general_matmul_for_few_registers_is_right_for_other_sizes(tmp_path, monkeypatch):
    """Tiles of 64 columns would be padded in LDS in a translation for them alone, and are rotated as all others here."""
    monkeypatch.setattr("gluonize.general.general_kernels.EXTENSIONS", 0)
    spec = at((128, 128, 64, 4))
    made = translate_kernel(TranslateRequest(str(KERNEL), "gfx1201", launches=(spec,), general=True))
    assert "rotated(b_load" in made.text and re.search(r"num_warps(, \w+)* 2 to 8", made.notes[-1]), made.notes
    (tmp_path / "output.py").write_text(made.text)
    for point in ((64, 64, 32, 2), (64, 256, 64, 8)):
        answer = validate_launch(str(KERNEL), str(tmp_path / "output.py"), at(point), "gfx1201")
        assert answer["status"] == "validated", answer


def test_copies_of_rows_that_fill_a_warp_go_row_by_row():
    """Rows that LDS has in another order are copied in their own where a warp copies no more than one at a time."""
    columns = [[0, 1 << i] for i in range(9)]
    shared = as_gluon(Padded(((512, 8),), (*map(tuple, columns), (1, 0), (4, 0), (2, 0)), (), (8, 512)))
    found = of_gluon(texts.direct_copy(64).function(shared, [8, 512], gl.float16, 2))
    assert found.warp == ((1, 0),) and found.register[3:] == ((2, 0), (4, 0))
    shared = as_gluon(Padded(((256, 8),), (*map(tuple, columns[:8]), (1, 0), (4, 0), (2, 0)), (), (8, 256)))
    found = of_gluon(texts.direct_copy(64).function(shared, [8, 256], gl.float16, 2))
    assert found.lane[-1] == (1, 0) and found.warp == ((4, 0),) and found.register[3:] == ((2, 0),)


@pytest.mark.parametrize("vector, phases, each", [(8, 2, 3), (4, 2, 1), (1, 1, 3)])
def test_copies_are_as_wide_as_the_vectors_that_lds_exchanges(vector, phases, each):
    shared = as_gluon(Swizzled(vector, 8, phases, (1, 0)))
    found = of_gluon(texts.direct_copy(64).function(shared, [32, 16], gl.float16, 1))
    assert found.lane[0] == (0, 1 << each)
