"""Names of the source that Gluon's modules have in the output."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

from translator.request import TranslateRequest
from translator.translation import translate_kernel

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def scaled(x, factor):
        gl = x * factor  # gl: the gated value
        return gl


    @triton.jit
    def gate(x_ptr, y_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
        gl = tl.load(x_ptr + o, mask=o < n, other=0.0)
        gl_ = 1
        gl += tl.sum(gl, 0)
        for gluon in range(2):
            gl = scaled(gl, 0.5) + gluon
        tl.store(y_ptr + o, gl.to(y_ptr.dtype.element_ty) + gl_, mask=o < n)
""")
SIGNATURE = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
SPEC = launch("gate", SIGNATURE, {"B": 256}, values={"x_ptr": tensor(256), "y_ptr": tensor(256), "n": 200})


def test_variables_give_way(tmp_path: Path):
    text = validated(tmp_path, SOURCE, SPEC, "gfx950")
    assert "import language as gl\n" in text, text
    assert "gl_2 += gl.sum(gl_2, 0)" in text and "for gluon_ in range(2)" in text, text
    assert "gl_ = x * factor  # gl: the gated value" in text, text


@pytest.mark.parametrize(
    "before, after, line",
    [("n, B: tl", "n, gl, B: tl", 12), ("def scaled(x, factor)", "def scaled(x, factor, gl=2)", 6)],
    ids=["of the kernel", "of a helper"],
)
def test_a_parameter_is_refused(before: str, after: str, line: int, tmp_path: Path):
    (tmp_path / "source.py").write_text(SOURCE.replace(before, after))
    given = SPEC if "scaled" in before else launch("gate", SIGNATURE | {"gl": "i32"}, {"B": 256})
    result = translate_kernel(TranslateRequest(str(tmp_path / "source.py"), "gfx950", launches=(given,)))
    assert result.text is None
    (found,) = result.outcomes[0].diagnostics
    assert (found.code, found.line) == ("name-taken", line) and "parameter `gl`" in found.message, found


def test_a_function_is_refused(tmp_path: Path):
    source = SOURCE.replace("def scaled(", "def gluon(").replace("gluon in range(2)", "i in range(2)")
    source = source.replace("scaled(gl, 0.5) + gluon", "gluon(gl, 0.5) + i")
    (tmp_path / "source.py").write_text(source)
    result = translate_kernel(TranslateRequest(str(tmp_path / "source.py"), "gfx950", launches=(SPEC,)))
    assert result.text is None and result.outcomes[0].diagnostics[0].code == "name-taken"


def test_other_names_stay(tmp_path: Path):
    text = translate(tmp_path, SOURCE.replace("gluon", "i").replace("gl", "g"), SPEC, target="gfx950").text
    assert "g_ = 1" in text and "gl_" not in text, text
