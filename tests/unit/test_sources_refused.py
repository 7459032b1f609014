"""Kernels and launches that are refused as a whole, with what they are and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch

from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

TRITON = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, y_ptr, B: tl.constexpr):
        o = tl.arange(0, B)
        tl.store(y_ptr + o, tl.load(x_ptr + o))
""")
GLUON = dedent("""
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl


    @gluon.jit
    def k(x_ptr, y_ptr, B: gl.constexpr):
        o = gl.arange(0, B, layout=gl.BlockedLayout([1], [64], [4], [0]))
        gl.store(y_ptr + o, gl.load(x_ptr + o))
""")


def refused(folder: Path, text: str, target: str = "gfx950", **options):
    (folder / "source.py").write_text(text)
    spec = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {"B": 256})
    spec.options.update(options)
    result = translate_kernel(TranslateRequest(str(folder / "source.py"), target, launches=(spec,)))
    assert result.text is None
    (found,) = result.outcomes[0].diagnostics
    return found


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_clusters(target: str, tmp_path: Path):
    found = refused(tmp_path, TRITON, target, num_ctas=2)
    assert (found.code, found.line) == ("clusters", 6) and "num_ctas=2" in found.message, found
    assert "gfx1250 (at most 16)" in found.help, found


def test_clusters_that_are_too_large(tmp_path: Path):
    found = refused(tmp_path, TRITON, "gfx1250", num_ctas=32)
    assert (found.code, found.line) == ("clusters", 6) and "at most 16" in found.why, found


def test_options_that_triton_does_not_take(tmp_path: Path):
    found = refused(tmp_path, TRITON, num_warps=3)
    assert (found.code, found.line) == ("launch-option", 6) and "power of 2" in found.why, found


def test_gluon_is_named(tmp_path: Path):
    found = refused(tmp_path, GLUON)
    assert (found.code, found.line) == ("source-gluon", 6) and "gluonize compile" in found.help, found


def test_gluon_is_named_where_launches_are_derived(tmp_path: Path):
    (tmp_path / "source.py").write_text(GLUON)
    result = translate_kernel(TranslateRequest(str(tmp_path / "source.py"), "gfx950"))
    assert any("k is a Gluon kernel already; compile it" in note for note in result.notes), result


def test_gluon_beside_triton_stays(tmp_path: Path):
    (tmp_path / "source.py").write_text(TRITON + "\n\n" + GLUON.replace("def k", "def g"))
    result = translate_kernel(TranslateRequest(str(tmp_path / "source.py"), "gfx950"))
    assert result.text.count("@gluon.jit") == 2 and any("g is a Gluon kernel" in note for note in result.notes), result
