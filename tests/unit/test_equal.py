"""Expressions that stand twice and that Triton makes once: made in one layout, so that Gluon's passes make them once too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from translation_of import dedent, launch, lower_file, tensor, translate, validated

KERNEL = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, u_ptr, v_ptr, n):
        i, j = tl.arange(0, 16)[:, None], tl.arange(0, 64)[None, :]
        h = tl.zeros((64, 64), tl.float32)
        for t in range(n):
            x = tl.load(x_ptr + t * 1024 + i * 64 + j)
            y = tl.load(y_ptr + t * 1024 + i * 64 + j)
            d = tl.dot(x, h.to(x.dtype))
            u = d - x * tl.sum(x * d, axis=1, keep_dims=True)
            BETWEEN
            v = d * tl.sum(x * y, axis=1, keep_dims=True) + y * tl.sum(SECOND, axis=1, keep_dims=True)
            h += tl.dot(tl.trans(x), (u + v).to(x.dtype))
            tl.store(u_ptr + t * 1024 + i * 64 + j, u)
            tl.store(v_ptr + t * 1024 + i * 64 + j, v)
""")
POINTERS = {"x_ptr": "*fp16", "y_ptr": "*fp16", "u_ptr": "*fp32", "v_ptr": "*fp32"}
LAUNCH = launch(
    "kernel", POINTERS | {"n": "i32"}, {}, warps=2, values={name: tensor(2, 16, 64) for name in POINTERS} | {"n": 2}
)


def sums(folder: Path, second: str = "x * d", between: str = "pass") -> list[str]:
    """What the translation sums of the first product and of the last."""
    text = translate(folder, KERNEL.replace("SECOND", second).replace("BETWEEN", between), LAUNCH).text
    found = re.findall(r"gl\.sum\( ?(.*?), axis=1", re.sub(r"\s+", " ", text))
    return [found[0], found[-1]]


def test_equal_sums_are_made_in_one_layout(tmp_path):
    first, second = sums(tmp_path)
    assert first == second == "gl.convert_layout(x, mma) * d"


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "change", [{"second": "x * u"}, {"second": "d * x"}, {"between": "x += y"}, {"between": "d = d + u"}]
)
def test_what_differs_is_made_at_its_own_place(tmp_path, monkeypatch, change):
    """Without Triton's place for the second sum it would be made where its operands lie."""
    found = sums(tmp_path, **change)
    monkeypatch.setattr("gluonize.facts.variables.equal.equal_expressions", lambda rw: {})
    assert sums(tmp_path, **change) == found


def test_gluon_makes_equal_sums_once(tmp_path):
    text = KERNEL.replace("SECOND", "x * d").replace("BETWEEN", "pass")
    validated(tmp_path, text, LAUNCH)
    stages = lower_file(str(tmp_path / "output.py"), LAUNCH, "gfx942", (), False, True).stages
    assert stages["ttgir"].count('"tt.reduce"') == 2
