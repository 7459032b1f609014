"""A value that a store or an atomic casts to a narrower type moves between layouts in that type, with fewer bits in LDS."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, tensor, validated

from gluonize.judge.lower.jobs import lower_file

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, z_ptr, B: tl.constexpr):
        o = tl.arange(0, B)
        at = o[:, None] * B + o[None, :]
        x = tl.load(x_ptr + at)
        convert_layout = tl.dot(x, x)
        STORE
    """)
STORES = {
    "store": ("tl.store(z_ptr + at, convert_layout)", "*fp16"),
    "atomic": ("tl.atomic_add(z_ptr + at, convert_layout, sem='relaxed')", "*bf16"),
}


@pytest.mark.parametrize("kind", STORES)
def test_it_is_cast_before_it_moves(kind: str, tmp_path: Path):
    store, pointer = STORES[kind]
    values = {"x_ptr": tensor(64, 64), "z_ptr": tensor(64, 64)}
    spec = launch("product", {"x_ptr": "*fp16", "z_ptr": pointer}, {"B": 64}, values=values)
    text = validated(tmp_path, SOURCE.replace("STORE", store), spec, "gfx950")
    assert "gl.convert_layout(convert_layout.to(z_ptr.dtype.element_ty), z_" in text, text
    ours, theirs = compiled(tmp_path, text, spec, "gfx950"), lower_file(str(tmp_path / "source.py"), spec, "gfx950")
    assert ours.metrics.lds_bytes <= theirs.metrics.lds_bytes


def test_a_wider_one_is_cast_after_it(tmp_path: Path):
    source = SOURCE.replace("STORE", "tl.atomic_add(z_ptr + at, convert_layout.to(tl.float16), sem='relaxed')")
    values = {"x_ptr": tensor(64, 64), "z_ptr": tensor(64, 64)}
    spec = launch("product", {"x_ptr": "*fp16", "z_ptr": "*fp32"}, {"B": 64}, values=values)
    text = validated(tmp_path, source, spec, "gfx950")
    assert ".to(gl.float16), z_atomic).to(z_ptr.dtype.element_ty)" in text, text
