"""`gluonize.translate`: the whole tool as a function."""

from __future__ import annotations

from pathlib import Path

import gluonize
import pytest
from gluonize.diagnostics import TranslationError

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "vector_add"


def test_exported_names():
    assert gluonize.__all__ == ["__version__", "translate"]
    assert callable(gluonize.translate)


def test_translation_is_the_golden():
    result = gluonize.translate(
        str(FIXTURE / "kernel.py"), "gfx950", launches=str(FIXTURE / "launches.json"), kernels=["add_kernel"]
    )
    assert result.status == "translated"
    assert [o.status for o in result.outcomes] == ["translated", "translated"]
    golden = (FIXTURE / "golden" / "gfx950.py").read_text()
    body = result.text[result.text.index("@gluon.jit") :]
    assert body == golden[golden.index("@gluon.jit") :]


def test_refusal_is_a_result(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x):\n    tl.store(x, missing)\n"
    )
    launch = {"id": "k", "kernel": "k", "signature": {"x": "*fp32"}, "grid": [1]}
    result = gluonize.translate(str(source), "gfx942", launches={"version": 1, "launches": [launch]})
    assert result.status == "refused" and result.text is None
    (diagnostic,) = result.outcomes[0].diagnostics
    assert diagnostic.line == 7 and "missing" in diagnostic.message


def test_unknown_target_names_the_known_ones():
    with pytest.raises(TranslationError, match="gfx950"):
        gluonize.translate(str(FIXTURE / "kernel.py"), "gfx900")


def test_a_damaged_output_is_noticed():
    from gluonize.diagnostics import InternalError
    from gluonize.gluon.trees.function import parsed

    damaged = "def f(:\n    pass\n"
    with pytest.raises(InternalError, match="not Python"):
        parsed(damaged)


def test_rank_one_reduction_that_keeps_its_dimension(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x, o, B: tl.constexpr):\n"
        "    i = tl.arange(0, B)\n    v = tl.load(x + i)\n    tl.store(o + i, v / tl.sum(v, 0, keep_dims=True))\n"
    )
    launch = {
        "id": "k",
        "kernel": "k",
        "signature": {"x": "*fp32", "o": "*fp32", "B": "constexpr"},
        "constexprs": {"B": 256},
        "grid": [1],
    }
    result = gluonize.translate(str(source), "gfx942", launches={"version": 1, "launches": [launch]})
    # Gluon's reduction gives a scalar here, which has no dimension to keep.
    assert "v / gl.full([1], gl.sum(v, 0), gl.float32, layout=layout)" in result.text
