"""Sizes that have another text than those of the launch: the kernel picks the one whose limits hold."""

from __future__ import annotations

import pytest
from translation_of import launch, translate

from gluonize.decide.layouts.size_range import RatioBound, SizeRange
from gluonize.diagnostics import TranslationError
from gluonize.general import other_texts
from gluonize.general.launches.trials import Trials
from gluonize.general.other_texts import takes
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch
from gluonize.output.merging.kernel_family import KernelVersion

TARGET = "gfx942"
SOURCE = """import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
"""


def spec(block: int = 1024, warps: int = 4):
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    return launch("scale", signature, {"BLOCK": block}, id="scale", warps=warps)


@pytest.fixture
def one_text_for_each_number_of_warps(monkeypatch):
    real = Trials.at

    def at(trials, i, point):
        if point[-1] != trials.points[0][-1]:
            trials.found[i, point] = None
        return real(trials, i, point)

    monkeypatch.setattr(Trials, "at", at)


def test_each_text_serves_its_sizes(tmp_path, one_text_for_each_number_of_warps):
    result = translate(tmp_path, SOURCE, spec(), target=TARGET, general=True)
    output = tmp_path / "output.py"
    output.write_text(result.text)
    assert [result.text.count(f"def {name}(") for name in ("scale", "_scale", "_scale_2", "_scale_3", "_scale_4")] == [
        1
    ] * 5
    for block, warps in ((1024, 4), (512, 4), (512, 8), (2048, 2), (1024, 1)):
        answer = validate_launch(str(tmp_path / "source.py"), str(output), spec(block, warps), TARGET)
        assert answer["status"] == "validated", answer
    with pytest.raises(TranslationError) as refused:
        lower_file(str(output), spec(1024, 16), TARGET)
    assert "scale is translated for BLOCK 8 to 65536, num_warps=4; or for BLOCK" in str(refused.value)


@pytest.mark.slow
def test_what_the_text_of_the_launch_holds_for_has_no_other(tmp_path):
    assert "def _scale" not in translate(tmp_path, SOURCE, spec(), target=TARGET, general=True).text


def test_sizes_are_within_ranges_and_bounds():
    ranges = (SizeRange("BLOCK", 64, 512), SizeRange("num_warps", 1, 8))
    bounds = (RatioBound((("BLOCK", 1), ("num_warps", -1)), 64),)
    version = KernelVersion(spec(), None, None, 4, ranges, bounds)  # type: ignore[arg-type]
    assert takes(version, {"BLOCK": 512, "num_warps": 8})
    assert not takes(version, {"BLOCK": 256, "num_warps": 8})
    assert not takes(version, {"BLOCK": 1024, "num_warps": 8})


def test_the_nearest_numbers_of_warps_come_first():
    assert other_texts._other_warps((64, 4)) == [(64, 4), (64, 2), (64, 8), (64, 1), (64, 16)]
