"""One text for other tile sizes and numbers of warps than those of its launches."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from gluonize.decide.layouts.constructors import constructor
from gluonize.decide.layouts.size_range import RatioBound, SizeRange, in_words
from gluonize.diagnostics import TranslationError
from gluonize.general.box import Region, largest_box, neighbours
from gluonize.general.general_kernels import general_layouts
from gluonize.general.launches.trials import Trials
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.layouts import Mfma
from slow_rows import slow_but
from translation_of import TARGET, compiled, launch, translate

SCALE = """import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * 2, mask=i < n)


@triton.jit
def rows(x_ptr, y_ptr, n, stride, M: tl.constexpr, N: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * stride + j[None, :], mask=m[:, None] < n, other=0.0)
    tl.store(y_ptr + m, tl.sum(x, axis=1), mask=m < n)
"""
TWICE = """import triton
import triton.language as tl


@triton.jit
def twice(x_ptr, y_ptr, BLOCK: tl.constexpr):
    min = tl.arange(0, BLOCK)
    tl.store(y_ptr + min, tl.load(x_ptr + min) * 2)
"""
POINTERS = {"x_ptr": "*fp32", "y_ptr": "*fp32"}
ROWS = POINTERS | {"n": "i32", "stride": "i32"}


def scale(kind: str = "fp32", block: int = 1024, warps: int = 4, id: str = "scale") -> LaunchSpec:
    signature = dict.fromkeys(POINTERS, f"*{kind}") | {"n": "i32"}
    return launch("scale", signature, {"BLOCK": block}, id=id, warps=warps)


def made(folder: Path, *specs: LaunchSpec, target: str = TARGET):
    return translate(folder, SCALE, *specs, target=target, general=True)


@pytest.fixture(scope="module")
def of_scale(tmp_path_factory):
    """(the folder of the source, with `output.py`; what is made of it for one launch)."""
    folder = tmp_path_factory.mktemp("scale")
    result = made(folder, scale())
    (folder / "output.py").write_text(result.text)
    return folder, result


def test_layouts_are_formulas_of_the_launch(of_scale):
    _, result = of_scale
    bits = "128 // x_ptr.dtype.element_ty.primitive_bitwidth"
    assert f"[min(max(BLOCK // (64 * gl.num_warps()), 1), {bits})]" in result.text and "num_warps=4" not in result.text
    assert "8 <= BLOCK and BLOCK <= 65536 and gl.num_warps() <= 16" in " ".join(result.text.split())
    assert any("holds for BLOCK 8 to 65536, num_warps 1 to 16" in note for note in result.notes)


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("block, warps", slow_but([(64, 16), (512, 2), (8, 2), (4096, 8), (16384, 1)]))
def test_the_text_is_right_for_other_sizes(of_scale, block, warps):
    folder, _ = of_scale
    other = scale(block=block, warps=warps)
    answer = validate_launch(str(folder / "source.py"), str(folder / "output.py"), other, TARGET)
    assert answer["status"] == "validated", answer


@pytest.mark.compile
def test_sizes_outside_are_refused_by_name(of_scale, tmp_path):
    text = of_scale[1].text
    with pytest.raises(TranslationError, match="BLOCK 8 to 65536"):
        compiled(tmp_path, text, scale(block=4))


@pytest.mark.slow
def test_a_formula_is_that_of_the_translation_for_its_own_sizes(tmp_path, monkeypatch):
    """What the formulas give for sizes that they were not made from is what a translation for these has."""
    found = []

    def noted(*arguments):
        found.append(general_layouts(*arguments))
        return found[-1]

    monkeypatch.setattr("gluonize.general.general_versions.general_layouts", noted)
    made(tmp_path, launch("rows", ROWS, {"M": 16, "N": 64}, warps=4))
    ((region, every),) = found
    made_general = next(iter(every.values()))
    layouts = made_general.layouts
    assert layouts
    for m, n, warps in ((8, 128, 2), (32, 32, 4), (64, 256, 8)):
        assert region.holds((m, n, warps)), region
        exact = translate(tmp_path, SCALE, launch("rows", ROWS, {"M": m, "N": n}, warps=warps)).text
        for layout in layouts.values():
            assert constructor(layout.at({"M": m, "N": n, "num_warps": warps})) in exact


@pytest.mark.slow
def test_launches_of_several_element_types_have_one_formula(tmp_path):
    result = made(tmp_path, scale("fp32", id="wide"), scale("fp16", id="narrow"))
    assert "128 // x_ptr.dtype.element_ty.primitive_bitwidth" in result.text
    assert result.text.count("def scale(") == 1 and "scale_layouts" not in result.text


@pytest.mark.slow
def test_the_least_and_the_greatest_sizes_are_launches_to_be_checked(of_scale):
    outcomes = of_scale[1].outcomes
    assert [o.spec.id for o in outcomes] == [
        "scale", "scale with BLOCK=8, num_warps=1", "scale with BLOCK=65536, num_warps=16",
        "scale with x_ptr, y_ptr fp16", "scale with x_ptr, y_ptr bf16",
    ]  # fmt: skip
    assert outcomes[1].spec.constexprs == {"BLOCK": 8} and outcomes[1].spec.options["num_warps"] == 1


def test_a_name_of_the_source_is_left_to_it(tmp_path):
    spec = launch("twice", POINTERS, {"BLOCK": 1024})
    text = translate(tmp_path, TWICE, spec, target=TARGET, general=True).text
    assert "min = gl.arange(" in text and "def lesser(" in text and "lesser(max(BLOCK" in text


@pytest.mark.slow
def test_without_a_formula_the_launches_are_those_given(tmp_path, monkeypatch):
    monkeypatch.setattr("gluonize.general.rules.search.parametric", lambda samples: None)
    result = made(tmp_path, scale())
    assert "gl.num_warps() == 4" in result.text and "max(" not in result.text
    (note,) = [note for note in result.notes if "holds for" in note]
    assert "holds for the launches given: no formula" in note
    assert note.endswith(
        "; or for BLOCK=1024, num_warps=2; or for BLOCK=1024, num_warps=8; or for BLOCK=1024, num_warps=1"
    )


def test_without_the_option_nothing_changes(tmp_path):
    assert "gl.num_warps() == 4" in translate(tmp_path, SCALE, scale()).text


@pytest.mark.slow
def test_a_range_holds_throughout(tmp_path, monkeypatch):
    """A translation inside a range that no formula agrees with ends it, though its corners agree."""
    real = Trials.at

    def with_another_text_inside(trials, i, point):
        if point[0] in (1024, 2048) and point[1] == 4:
            trials.found[i, point] = None
        return real(trials, i, point)

    monkeypatch.setattr(Trials, "at", with_another_text_inside)
    (note,) = [note for note in made(tmp_path, scale(block=256)).notes if "holds for" in note]
    assert int(re.search(r"BLOCK \d+ to (\d+)", note)[1]) < 1024, note


def test_a_sample_of_many_sizes_is_the_same_each_time():
    many = Region((SizeRange("M", 1, 1024), SizeRange("N", 1, 1024)))
    assert many.sample() == many.sample() and len(set(many.sample())) == 24 and all(map(many.holds, many.sample()))
    few = Region((SizeRange("M", 16, 64), SizeRange("num_warps", 2, 4)))
    assert few.sample() == few.points() and len(few.sample()) == 6


def test_a_region_keeps_to_its_bounds():
    bound = RatioBound((("M", 1), ("num_warps", -1)), 16)
    region = Region((SizeRange("M", 16, 64), SizeRange("num_warps", 1, 4)), (bound,))
    assert region.points() == [(16, 1), (32, 1), (32, 2), (64, 1), (64, 2), (64, 4)]
    assert region.trimmed() == region


def test_what_bounds_exclude_wholly_is_no_part_of_a_range():
    bound = RatioBound((("M", 1), ("num_warps", -1)), 16)
    region = Region((SizeRange("M", 16, 64), SizeRange("num_warps", 4, 8)), (bound,))
    assert region.trimmed() == Region((SizeRange("M", 64, 64), SizeRange("num_warps", 4, 4)))


PRODUCT = """import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))
"""


@pytest.mark.slow
def test_warps_of_a_product_follow_its_tile(tmp_path):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}

    def sized(m, n, k, warps):
        return launch("product", signature, {"M": m, "N": n, "K": k}, warps=warps)

    result = translate(tmp_path, PRODUCT, sized(64, 64, 32, 4), target="gfx1250", general=True)
    assert "matrix_cores(M, N, 32, gl.num_warps())" in result.text, result.notes
    (tmp_path / "output.py").write_text(result.text)
    for sizes in ((32, 64, 32, 2), (128, 64, 32, 4), (64, 128, 32, 2), (256, 256, 32, 4), (16, 64, 64, 8)):
        answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), sized(*sizes), "gfx1250")
        assert answer["status"] == "validated", (sizes, answer)


@pytest.mark.slow
def test_where_formulas_give_no_layout_the_kernel_is_translated(tmp_path, monkeypatch):
    """Formulas that fit the neighbours and share out too few warps elsewhere are found anew, with what was missing."""
    from gluonize.general.rules import sampled as sampled_layouts

    asked = []
    real = sampled_layouts.is_complete

    def complete(layout, lanes, warps):
        asked.append(warps)
        return real(layout, lanes, warps) and len(asked) > 1

    monkeypatch.setattr(sampled_layouts, "is_complete", complete)
    result = made(tmp_path, scale())
    assert len(asked) > 1 and any("holds for BLOCK 8 to 65536" in note for note in result.notes)


def test_what_is_said_of_several_layouts_in_a_row_is_said_once():
    from gluonize.decide.layouts.constructors import Called
    from gluonize.gluon.trees.function import parsed
    from gluonize.trace.model.layouts import Blocked
    from gluonize.write.function.layout_constants import with_constants
    from gluonize.write.state.emitted import LaidOut

    function = parsed("def kernel(x):\n    gl.store(x, 1)\n")
    called = tuple(
        (name, Called(f"given({i})", about)) for i, (name, about) in enumerate(zip("abc", ("A.", "A.", "B.")))
    )
    text = with_constants(LaidOut(function, called)).text
    assert text.count("# A.") == 1 and text.index("# A.") < text.index("a:") and text.index("# B.") > text.index("b:")
    plain = tuple((name, Blocked((4,), (64,), (warps,), (0,))) for name, warps in (("a", 4), ("b", 2)))
    assert with_constants(LaidOut(function, plain)).text.count("# 4") == 2


def test_ranges_are_told_from_bounds():
    from gluonize.write.contracts.contracts import within

    sizes = SizeRange("M", 16, 64), SizeRange("num_warps", 4, 4)
    assert within("kernel", sizes)[0].startswith("gl.static_assert(16 <= M and M <= 64 and gl.num_warps() == 4, ")
    assert within("kernel", sizes[:1])[0].startswith("gl.static_assert(16 <= M and M <= 64, ")
    assert within("kernel", [SizeRange("N", 1, 64)])[0].startswith("gl.static_assert(N <= 64, ")


def test_sizes_of_one_range_are_told_together():
    m, n, k = (SizeRange(name, 16, most) for name, most in (("M", 64), ("N", 64), ("K", 128)))
    bound = RatioBound((("M", 1),), 32)
    assert in_words([m, n, k, bound]) == "M, N 16 to 64, K 16 to 128, M >= 32"
    assert (
        in_words([bound, m]) == "M >= 32, M 16 to 64" and in_words([m, k, n]) == "M 16 to 64, K 16 to 128, N 16 to 64"
    )


def test_neighbours_keep_to_their_limits():
    assert neighbours((32, 4), [(2, 64), (1, 4)]) == [(16, 2), (16, 4), (32, 2), (32, 4), (64, 2), (64, 4)]
    many = neighbours((32, 32, 32, 4), [(2, 64)] * 3 + [(1, 16)])
    assert (32, 32, 32, 4) in many and (64, 64, 64, 8) in many and (16, 32, 32, 4) in many and len(many) < 27


def test_the_largest_box_has_only_good_points():
    tried = [(m, w) for m in (16, 32, 64) for w in (2, 4, 8)]
    good = {p for p in tried if p != (64, 8)}
    box = largest_box(("M", "num_warps"), [(32, 4)], tried, good)
    assert box in (
        (SizeRange("M", 16, 64), SizeRange("num_warps", 2, 4)),
        (SizeRange("M", 16, 32), SizeRange("num_warps", 2, 8)),
    )
    assert all(p in good for p in tried if Region(box).holds(p))
    assert largest_box(("M", "num_warps"), [(64, 8)], tried, good) is None


@pytest.mark.slow
def test_a_wrong_formula_ends_the_range(tmp_path, monkeypatch):
    """A range is not extended beyond what translations for its corners agree with."""
    from gluonize.general.rules import search

    real = search.Fitting.gives

    def up_to_2048(fitting, layout, name, samples=None):
        return real(fitting, layout, name, samples) and all(sample.sizes["BLOCK"] <= 2048 for sample in fitting.samples)

    monkeypatch.setattr(search.Fitting, "gives", up_to_2048)
    result = made(tmp_path, scale())
    assert any("BLOCK 8 to 2048" in note for note in result.notes), result.notes


@pytest.mark.slow
def test_what_a_far_end_spoils_is_given_up_first(tmp_path, monkeypatch):
    """Translations in the middle of the last range that was added have another text: the ranges before it stay."""
    real = Trials.at

    def with_another_text(trials, i, point):
        if point[0] >= 8192 and 1 < point[1] < 16:
            trials.found[i, point] = None
        return real(trials, i, point)

    monkeypatch.setattr(Trials, "at", with_another_text)
    (note,) = [note for note in made(tmp_path, scale()).notes if "holds for" in note]
    assert "BLOCK 8 to 4096, num_warps 1 to 16" in note, note


def test_a_size_of_which_bounds_speak_is_told_though_it_has_one_value(tmp_path, monkeypatch):
    """No layout depends on the number of warps, which is 4 throughout."""
    real = Trials.at
    bound = RatioBound((("BLOCK", 1), ("num_warps", -1)), 32)

    def with_four_warps(trials, i, point):
        if point[1] != 4:
            trials.found[i, point] = None
        return real(trials, i, point)

    def bounded(*arguments):
        region, found = general_layouts(*arguments)
        return replace(region, bounds=(bound,)), found

    monkeypatch.setattr("gluonize.general.other_texts.MOST_TEXTS", 0)

    monkeypatch.setattr(Trials, "at", with_four_warps)
    monkeypatch.setattr("gluonize.general.general_versions.general_layouts", bounded)
    (note,) = [note for note in made(tmp_path, scale()).notes if "holds for" in note]
    assert "num_warps=4, BLOCK >= 32 * num_warps" in note, note


def test_it_is_recorded_as_an_option():
    from gluonize.product.project.cache.translation import request_options, with_options
    from gluonize.request import TranslateRequest

    plain = TranslateRequest("kernel.py", TARGET)
    words = request_options(replace(plain, general=True), "kernel_gfx942.py")
    assert "--general" in words and with_options(plain, words, "kernel_gfx942.py").general


@pytest.mark.parametrize(
    "words, is_general", [((), False), (("--exact",), False), (("--general", "--exact"), False), (("--general",), True)]
)
def test_exact_is_the_name_of_what_is_written_without_it(words, is_general):
    from gluonize.product.cli.apps.translate import translate as command

    app = typer.Typer()
    app.command()(command)
    parsed = typer.main.get_command(app).make_context("gluonize", ["--target", "gfx950", *words]).params
    assert parsed["general"] is is_general


def test_greatest_sizes_that_fit_neither_are_no_refusal():
    from gluonize.diagnostics import Diagnostic
    from gluonize.product.project.translate.run import CheckedLaunch, _passed_over
    from gluonize.request import LaunchOutcome, TranslateRequest

    own, most = scale(), replace(scale(), id="scale with BLOCK=65536, num_warps=16")
    checked = [
        CheckedLaunch(LaunchOutcome(own, "translated"), "translated"),
        CheckedLaunch(LaunchOutcome(most, "translated"), "refused", (Diagnostic("lds", "needs 90 KiB of LDS"),)),
    ]
    launches, notes = _passed_over(TranslateRequest("kernel.py", TARGET, launches=(own,)), tuple(checked))
    assert [x.status for x in launches] == ["translated", "passed-over"] and "such a launch is refused" in notes[0]
    launches, notes = _passed_over(TranslateRequest("kernel.py", TARGET, launches=(own, most)), tuple(checked))
    assert launches[1].status == "refused" and not notes, "it was asked for"


def test_an_instruction_that_no_translation_has_is_a_doubt(monkeypatch):
    """A rule may give a matrix instruction that the target lacks, at sizes that nothing was compared at."""
    from gluonize.general.rules import sampled as sampled_layouts
    from gluonize.general.rules.sampled import SampledLayouts

    trials = SimpleNamespace(given=[None], found={}, sizes=lambda _: {})
    sampled = SampledLayouts(trials, ("M",), 64)
    monkeypatch.setattr(sampled_layouts, "is_complete", lambda *_: True)
    monkeypatch.setattr(SampledLayouts, "_instructions", lambda _: {(16, 16, 32), (16, 16, 128)})
    for depth, doubtful in ((32, False), (64, True), (128, False)):
        layout = SimpleNamespace(at=lambda _, depth=depth: Mfma(4, (16, 16, depth), True, (2, 2)))
        sampled.forget()
        assert sampled._doubtful({"mma": layout}, (64, 4)) is doubtful


SCATTERED = """import triton
import triton.language as tl


@triton.jit
def scattered(x_ptr, rows_ptr, out_ptr, n, stride: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    m, j = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    rows = tl.load(rows_ptr + m, mask=m < n, other=0)
    x = tl.load(x_ptr + m[:, None] * stride + j[None, :], mask=(m[:, None] < n) & (j[None, :] < stride), other=0.0)
    offsets = rows[:, None] * stride + j[None, :]
    tl.atomic_add(out_ptr + offsets, x, mask=(m[:, None] < n) & (j[None, :] < stride))
"""


@pytest.mark.slow
def test_of_indices_made_of_a_loaded_row_the_row_is_moved(tmp_path, monkeypatch):
    """A tile of indices would take LDS for all of its elements, which sizes that the kernel holds for may not have."""
    monkeypatch.setattr("gluonize.general.general_kernels.EXTENSIONS", 0)
    monkeypatch.setattr("gluonize.general.other_texts.MOST_TEXTS", 0)
    signature = {"x_ptr": "*bf16", "rows_ptr": "*i64", "out_ptr": "*bf16", "n": "i32"}
    spec = launch("scattered", signature, {"stride": 512, "M": 128, "N": 128})
    text = translate(tmp_path, SCATTERED, spec, target="gfx950", general=True).text
    assert "gl.convert_layout(offsets, " not in text
    assert re.search(r"gl.convert_layout\(rows, gl.SliceLayout\(1, \w+\)\)\[:, None\] \* stride", text)
