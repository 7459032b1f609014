"""What functions of a kernel use by one name, in files for several launches, each of which has loaded its kernel anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate

from gluonize.judge.verdict import validate_launch
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = dedent("""
    import triton
    import triton.language as tl

    SCALE = tl.constexpr(2.0)


    @triton.jit
    def scaled(x):
        return x * SCALE


    @triton.jit
    def combine(a, b, x, y):
        return a * x, scaled(b) * x + y


    @triton.jit
    def scan(x_ptr, y_ptr, B: tl.constexpr):
        at = tl.arange(0, B)
        x = tl.load(x_ptr + at).to(tl.float32)
        _, y = tl.associative_scan((x, x), 0, combine)
        tl.store(y_ptr + at, y)
    """)


def spec(id: str, dtype: str, **given):
    values = {"x_ptr": tensor(64), "y_ptr": tensor(64)}
    made = launch("scan", {"x_ptr": f"*{dtype}", "y_ptr": "*fp32"}, {"B": 64}, id=id, values=values)
    return replace(made, **given)


@pytest.mark.compile
def test_one_kernel_for_several_element_types(tmp_path: Path):
    specs = spec("full", "fp32"), spec("half", "fp16")
    made = translate(tmp_path, SOURCE, *specs, target="gfx1250", standalone=True).text
    assert made.count("def combine(") == 1 and made.count("def scaled(") == 1
    output = tmp_path / "output.py"
    output.write_text(made)
    for each in specs:
        assert validate_launch(str(tmp_path / "source.py"), str(output), each, "gfx1250")["status"] == "validated"


def test_another_constant_is_another_function(tmp_path: Path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    other = spec("half", "fp16", globals={"source:SCALE": {"$constexpr": 3.0}})
    request = TranslateRequest(str(path), "gfx1250", launches=(spec("full", "fp32"), other), standalone=True)
    found = translate_kernel(request)
    assert found.text is None
    assert "mean different things" in str([o.diagnostics for o in found.outcomes] + [found.diagnostics])
