"""Expressions that are nested too deeply for Python to walk through are refused with their line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gluonize.diagnostics import TranslationError
from gluonize.product.cli.edge import run
from gluonize.read.files.modules import parse_file
from gluonize.read.text.depth import LESS_DEEP, TOO_DEEP, too_deep
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel
from translation_of import dedent, launch, translate

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, B: tl.constexpr):
        x = tl.load(x_ptr + tl.arange(0, B))
        y = {}
        tl.store(x_ptr + tl.arange(0, B), y)
""")
DEEP = {
    "terms": " + ".join(["x"] * 1000),
    "thousands of terms": " + ".join(["x"] * 5000),
    "lines": "(\n        " + "\n        + ".join(["x"] * 1000) + "\n    )",
    "signs": "-" * 1000 + "x",
    "methods": "x" + ".abs()" * 1000,
}


@pytest.mark.parametrize("case", DEEP)
def test_a_chain_without_end_is_refused_with_its_line(case: str, tmp_path: Path, capsys):
    path = tmp_path / "deep.py"
    path.write_text(SOURCE.format(DEEP[case]))
    with pytest.raises(TranslationError) as refused:
        parse_file(str(path))
    (found,) = refused.value.diagnostics
    lines = range(8, 1010) if case == "lines" else [8]
    assert found.code == "source-syntax" and "nested too deeply" in found.message and found.line in lines
    assert run(["translate", str(path), "-t", "gfx950"]) == 2
    assert "nested too deeply" in capsys.readouterr().err


def test_what_is_long_and_not_deep_is_read(tmp_path: Path):
    path = tmp_path / "long.py"
    path.write_text(SOURCE.format("x * 2") + "table = [" + ", ".join(["1 + 2"] * 5000) + "]\n")
    assert not too_deep(parse_file(str(path)).tree, path.read_text().split("\n"))


def test_a_sum_that_triton_reads_is_translated_and_one_that_it_does_not_is_refused_with_its_line(tmp_path: Path):
    spec = launch("k", {"x_ptr": "*fp32"}, {"B": 256})
    begun = time.process_time()
    text = translate(tmp_path, SOURCE.format(" + ".join(f"x * {i}.5" for i in range(280))), spec).text
    # The cost of a layout is asked for once for each term, not once more for each sum that it is part of.
    assert text is not None and text.count("x * ") == 280 and time.process_time() - begun < 15
    path = tmp_path / "source.py"
    path.write_text(SOURCE.format(" + ".join(["x"] * 330)))
    (outcome,) = translate_kernel(TranslateRequest(str(path), "gfx942", launches=(spec,), keep_going=True)).outcomes
    (found,) = outcome.diagnostics
    assert found.line == 8 and found.why == TOO_DEEP and found.help == LESS_DEEP
