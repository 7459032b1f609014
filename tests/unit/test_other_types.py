"""General kernels made from a launch of one element type, for others too; a product is in `test_layout_rules.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from translation_of import TARGET, launch, translate
from gluonize.general.launches.trials import Trials
from gluonize.general.launches.types import launches_of_other_types
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec

SHIFT = """import triton
import triton.language as tl


@triton.jit
def shift(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(y_ptr + i, x + 1, mask=i < n)
"""


def shift(kind: str = "fp32", block: int = 1024, warps: int = 4) -> LaunchSpec:
    return launch(
        "shift", {"x_ptr": f"*{kind}", "y_ptr": f"*{kind}", "n": "i32"}, {"BLOCK": block}, id="shift", warps=warps
    )


def made(folder, target: str = TARGET):
    return translate(folder, SHIFT, shift(), target=target, general=True)


def told(result) -> str:
    (note,) = [note for note in result.notes if "holds for" in note]
    return note


def test_the_narrowest_floats_are_exchanged():
    signature = {"sums": "*fp32", "more": "*fp32", "a": "*fp16", "b": "*kfp16", "n": "i32", "codes": "*i8"}
    spec = replace(shift(), signature=signature, values={"n": 3})
    others = launches_of_other_types(spec, ("fp8e5",))
    assert [other.signature["a"] for other in others] == ["*bf16", "*fp32", "*fp8e5"]
    assert [other.signature["b"] for other in others] == ["*kbf16", "*kfp32", "*kfp8e5"]
    assert all(other.signature | {"a": "*fp16", "b": "*kfp16"} == signature for other in others)
    assert others[0].id == "shift with a, b bf16" and not others[0].values
    assert launches_of_other_types(shift("i32"), ("fp8e5",)) == []


@pytest.mark.slow
def test_the_header_says_for_which_types_it_was_proven(tmp_path):
    result = made(tmp_path)
    assert told(result).endswith("; for x_ptr, y_ptr *fp16, *bf16 as well")
    assert "#   and x_ptr, y_ptr *fp16, *bf16 as well" in result.text
    assert "128 // x_ptr.dtype.element_ty.primitive_bitwidth" in result.text
    assert result.text.count("# shift: 4 warps") == 1


@pytest.mark.compile
def test_other_types_are_computed_right(tmp_path):
    (tmp_path / "output.py").write_text(made(tmp_path).text)
    for spec in (shift("fp16", 512, 2), shift("bf16", 64, 4)):
        answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, TARGET)
        assert answer["status"] == "validated", answer


@pytest.mark.slow
def test_a_type_with_another_text_somewhere_is_none_of_them(tmp_path, monkeypatch):
    """Planted: at some sizes the launches of another type have another text."""
    real = Trials.at

    def with_another_text(trials, i, point):
        kind = trials.given[i].spec.signature["x_ptr"]
        if kind == "*bf16" and point[-1] == 16:
            trials.found[i, point] = None
        return real(trials, i, point)

    monkeypatch.setattr(Trials, "at", with_another_text)
    assert told(made(tmp_path)).endswith("num_warps 1 to 16; for x_ptr, y_ptr *fp16 as well")


def test_a_type_for_which_nothing_gives_the_layouts_is_none_of_them(tmp_path, monkeypatch):
    from gluonize.general.rules import search

    real = search.Fitting.gives

    def of_32_bits(fitting, layout, name, samples=None):
        return real(fitting, layout, name, samples) and all(32 in s.sizes.values() for s in fitting.samples)

    monkeypatch.setattr(search.Fitting, "gives", of_32_bits)
    monkeypatch.setattr("gluonize.general.general_kernels.EXTENSIONS", 0)
    result = translate(tmp_path, SHIFT, shift(block=1 << 14), target=TARGET, general=True)
    assert "as well" not in told(result) and "primitive_bitwidth" not in result.text
