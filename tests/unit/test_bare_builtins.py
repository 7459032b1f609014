"""Functions of Triton's language under names of the file's own: `from triton.language import arange as iota`."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.judge.verdict import validate_launch

ELEMENTWISE = """
    import triton
    from triton import jit
    from triton.language import arange, constexpr, exp as e_to, float32, load, maximum, program_id as pid, store
    from triton.language import sum as total, where, zeros as none_yet, softmax

    iota = arange


    @jit
    def applied(x, f: constexpr):
        return f(x)


    @jit
    def k(x_ptr, y_ptr, n, B: constexpr):
        i = pid(0) * B + iota(0, B)
        acc = none_yet((B,), float32) + applied(load(x_ptr + i, mask=i < n, other=0.0), e_to)
        acc = maximum(where(i < n, acc, 0.0), softmax(acc))
        store(y_ptr + i, acc / total(acc, 0), mask=i < n)
"""
PRODUCT = """
    from triton import jit
    from triton.language import arange as span, cdiv, constexpr, dot, float32, load, range as steps, store, trans, zeros


    @jit
    def k(x_ptr, y_ptr, n, B: constexpr):
        r = span(0, B)
        acc = zeros((B, B), float32)
        for i in steps(0, cdiv(n, B), num_stages=2):
            a = load(x_ptr + r[:, None] * n + (i * B + r)[None, :])
            acc = dot(a, trans(a), acc)
        store(y_ptr + r[:, None] * B + r[None, :], acc)
"""
SOURCES = {
    "elementwise": (ELEMENTWISE, "fp32", {"x_ptr": tensor(200), "y_ptr": tensor(200), "n": 200}, 256),
    "a product": (PRODUCT, "fp16", {"x_ptr": tensor(32, 96), "y_ptr": tensor(32, 32), "n": 96}, 32),
}


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize("case", SOURCES)
def test_called_by_names_of_their_own(case: str, target: str, tmp_path: Path):
    source, dtype, values, block = SOURCES[case]
    signature = {"x_ptr": f"*{dtype}", "y_ptr": "*fp32", "n": "i32"}
    validated(tmp_path, dedent(source), launch("k", signature, {"B": block}, values=values), target)


HELPERS = """
    from triton import jit
    from triton.language import arange as span, broadcast_to as wide, full, load as fetch, where


    @jit
    def tile(p, B):
        r = span(0, B)
        chosen = where(r < 3, full((B,), 2.0, p.dtype.element_ty), fetch(p + r))
        return wide(chosen[None, :], (4, B))
"""
USER = """
    import triton
    import triton.language as tl
    from helpers import tile


    @triton.jit
    def k(x_ptr, y_ptr, B: tl.constexpr):
        rows = tl.arange(0, 4)[:, None] * B
        tl.store(y_ptr + rows + tl.arange(0, B)[None, :], tile(x_ptr, B))
"""


@pytest.mark.parametrize("standalone", [False, True])
def test_called_in_a_helper_of_another_module(standalone: bool, tmp_path: Path):
    (tmp_path / "helpers.py").write_text(dedent(HELPERS))
    spec = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {"B": 64})
    output = tmp_path / "output.py"
    output.write_text(translate(tmp_path, dedent(USER), spec, standalone=standalone).text)
    answer = validate_launch(str(tmp_path / "source.py"), str(output), spec, "gfx942")
    assert answer["status"] == "validated", (answer, output.read_text())
