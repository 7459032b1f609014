"""How a page is put together: ids, owners, escaping, figures."""

import dataclasses
import re

import pytest

from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.prediction import KernelCycles
from gluonize.judge.lower.metrics import InstructionMix, KernelMetrics
from gluonize.product.report.checks import Checked
from gluonize.product.report.layouts.job import DrawnLayout, constructor_key, layout_constants
from gluonize.product.report.layouts.linear_map import DistributedMap
from gluonize.product.report.page import layouts as page_layouts
from gluonize.product.report.page.code import highlighted
from gluonize.product.report.page.on_demand import unpacked
from gluonize.product.report.page.page import ReportData, report_page
from gluonize.product.report.page.parity import parity_section, status_chips
from gluonize.product.report.review.correspondence import correspond
from gluonize.read.spec.launch import LaunchSpec

HELD = DistributedMap(((1,), (2,)), ((4,), (8,)), ((16,),), (32,))
METRICS = KernelMetrics(InstructionMix(insns=100, mma=8), 64, 0, 20, 0, 0, 0, 1024, 0, None, 4)


@dataclasses.dataclass(frozen=True)
class Compiled:
    target: str
    metrics: KernelMetrics
    cycles: KernelCycles | None = None

    def lds_overflow(self) -> None:
        return None


def launch(name: str, kernel: str, ours: KernelMetrics = METRICS, validation: str = "validated") -> Checked:
    spec = LaunchSpec(name, kernel)
    return Checked(spec, Compiled("gfx942", ours), Compiled("gfx942", METRICS), (), {"status": validation})


def drawn(name: str, spelled: str) -> DrawnLayout:
    return DrawnLayout(name, spelled, (32,), "f32", ("32 f32",), HELD)


def test_layouts_of_one_name_have_ids_of_their_own():
    source = "@triton.jit\ndef k(p):\n    row = 1\n"
    groups = {"1": (drawn("row", "gl.A"), drawn("col", "gl.C")), "2": (drawn("row", "gl.B"), drawn("col", "gl.C"))}
    checked = (launch("1", "first"), launch("2", "second"))
    page = report_page(ReportData(correspond(source, source), "a.py", "b.py", "gfx942", checked, groups))
    assert re.findall(r'id="(layout-\w+(?:-\d)?)"', page) == [
        "layout-row",
        "layout-col",
    ]  # what else the second has is packed
    assert re.findall(r'id="(layout-\w+(?:-\d)?)"', unpacked(page)) == ["layout-row", "layout-col", "layout-row-2"]
    assert "<b>2</b> has 1 other: row" in page
    owners = re.findall(r'<b>(\w+)</b><span class="soft"> of (.*?) 32 f32<', unpacked(page))
    assert owners == [("row", "first"), ("col", "first, second"), ("row", "second")]
    assert '<a href="#layout-row">row</a> = ' in page


def test_what_users_write_is_escaped():
    source = '@triton.jit\ndef k(p):\n    x = "<script>alert(1)</script>" # <b> & more\n'
    page = report_page(ReportData(correspond(source, source), "<a>.py", "b.py", "gfx942", assumptions=("n < 2 & m",)))
    assert (
        "<script>alert" not in page
        and "&lt;b&gt; &amp; more" in page
        and "<a>.py" not in page
        and "n &lt; 2 &amp; m" in page
    )


def test_ratios_of_an_unrolled_loop_are_per_tile():
    loop = InstructionMix(insns=100, mma=8, barrier=1)
    triton = dataclasses.replace(METRICS, loop=loop)
    ours = dataclasses.replace(METRICS, loop=dataclasses.replace(loop, insns=190, mma=16, barrier=2))
    checked = dataclasses.replace(launch("a", "k", ours), triton=Compiled("gfx942", triton))
    page = unpacked(parity_section((checked,), {}, {}))
    assert '<td>190</td><td>100</td><td class="better">0.95x</td>' in page
    assert '<td>16</td><td>8</td><td class="">1.00x</td>' in page


@pytest.mark.parametrize(
    "validation, worse, words",
    [
        (
            ["validated", "validated"],
            False,
            {"validated on the reference machine": "good", "no worse than Triton": "good"},
        ),
        (["validated", "mismatch"], False, {"computes something else than the source": "bad"}),
        (
            ["validated", "not_runnable"],
            True,
            {"validated for 1 of 2 launches": "warn", "worse than Triton in 1 of 2": "warn"},
        ),
        (["skipped", "skipped"], False, {"not validated": "warn"}),
    ],
)
def test_chips_say_how_it_stands(validation, worse, words):
    spilling = dataclasses.replace(METRICS, spill=9)
    checked = (
        launch("1", "k", validation=validation[0]),
        launch("2", "k", spilling if worse else METRICS, validation[1]),
    )
    assert words.items() <= dict(status_chips(checked)).items()


def test_highlighting_keeps_every_character():
    text = 'def f(x):  # a < b\n    """Two\n    lines."""\n    return gl.load(x) + 1.5e3\n'
    lines = highlighted(text, {"x": "layout-x"})
    plain = [re.sub(r"<[^>]+>", "", line).replace("&lt;", "<").replace("&quot;", '"') for line in lines]
    assert plain == text.splitlines()
    assert '<i class="keyword">return</i>' in lines[3] and '<a href="#layout-x">x</a>' in lines[3]
    assert lines[1].count('class="string"') == lines[2].count('class="string"') == 1


def test_layout_constants_are_found_whatever_their_spelling():
    text = """
@gluon.jit
def k(p):
    mma: gl.constexpr = gl.amd.AMDMFMALayout(version=4, instr_shape=[32, 32, 16], transposed=True, warps_per_cta=[2, 2])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma, 8)
    n: gl.constexpr = 4
"""
    found = layout_constants(text, "k")
    mma = "gl.amd.AMDMFMALayout(4, [32,32,16], True, [2, 2])"
    assert found == {
        constructor_key(mma): "mma",
        constructor_key(f"gl.DotOperandLayout(0, {mma}, k_width=8)"): "a_operand",
    }


def test_layouts_of_a_table_have_their_names_in_every_branch():
    text = """
@gluon.constexpr_function
def k_layouts(BLOCK):
    if BLOCK == 64:
        mma = gl.A.Layout(1)
        a_operand = gl.DotOperandLayout(0, mma, 8)
        return mma, a_operand
    if BLOCK == 32:
        mma = gl.A.Layout(2)
        return mma, gl.DotOperandLayout(0, mma, 8)
    return None


def other_k_layouts():
    no = gl.A.Layout(3)
"""
    found = layout_constants(text, "k")
    keys = ("gl.A.Layout(1)", "gl.DotOperandLayout(0,gl.A.Layout(1),8)", "gl.A.Layout(2)")
    assert found == dict(zip(map(constructor_key, keys), ("mma", "a_operand", "mma")))


def test_a_page_of_many_launches_is_small_until_it_is_opened(monkeypatch):
    """Drawings are packed, and what further launches have is told in a line."""
    source = "@triton.jit\ndef k(p):\n    row = 1\n"
    groups = {str(n): tuple(drawn(f"l{i}", f"gl.A({n if i < 3 else 0}, {i})") for i in range(12)) for n in range(20)}
    checked = tuple(launch(str(n), "k") for n in range(20))
    page = report_page(ReportData(correspond(source, source), "a.py", "b.py", "gfx942", checked, groups))
    assert "<svg" not in page and unpacked(page).count("<svg") == 2 * (12 + 19 * 3)
    assert page.count('<details class="card') == 12 + 19 + 20 and len(page) < len(unpacked(page)) / 3
    monkeypatch.setattr(page_layouts, "ROOM", 20_000)
    short = report_page(ReportData(correspond(source, source), "a.py", "b.py", "gfx942", checked, groups))
    assert len(short) < len(page) and "gluonize layout " in unpacked(short) and "gluonize layout " not in unpacked(page)
    assert page.index('id="verdict"') < page.index('id="code"')


def test_cycles_have_a_card_with_a_lane_per_wave():
    text = "\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n" * 4 + "\ts_nop 15\n\ts_cbranch_scc1 .L\n"
    cycles = analyze(f".L:\n{text}\ts_endpgm\n", "gfx950", 4, 160 * 1024)
    entry = Checked(LaunchSpec("one", "k"), Compiled("gfx950", METRICS, cycles), Compiled("gfx950", METRICS, cycles))
    page = report_page(ReportData(correspond("x = 1\n", "x = 1\n"), "a.py", "b.py", "gfx950", (entry,)))
    assert (
        unpacked(page).count(">wave ") == 4
        and page.count(">wave ") == 0
        and "Triton, .L" in page
        and f"{cycles.hot.efficiency:.1%}" in page
    )
    assert "s_nop 15" in page and "held by: matrix pipe" in unpacked(page)
    without = report_page(ReportData(correspond("x = 1\n", "x = 1\n"), "a.py", "b.py", "gfx950", (launch("1", "k"),)))
    assert "Clocks of the shader" not in without
