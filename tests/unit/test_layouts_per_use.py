"""Values that are wanted in several layouts: what is made anew in each, and where tiles are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from translation_of import dedent, launch, translate

OUTER = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n):
        i, j = tl.arange(0, 16), tl.arange(0, 32)
        h = tl.zeros((256, 32), tl.float32)
        z = tl.zeros((256,), tl.float32)
        for t in range(0, n, 16):
            x = tl.load(x_ptr + i[:, None] + (t + i)[None, :] * 16, mask=(t + i)[None, :] < n, other=0.0)
            y = tl.load(y_ptr + (t + i)[:, None] * 32 + j[None, :], mask=(t + i)[:, None] < n, other=0.0)
            xx = tl.reshape(x[:, None, :] * x[None, :, :], (256, 16))
            z += tl.sum(xx, axis=1)
            h += tl.dot(xx, y)
            z += tl.sum(y) + tl.sum(tl.dot(y, tl.trans(y)))
        tl.store(out_ptr + tl.arange(0, 256)[:, None] * 32 + j[None, :], h)
        tl.store(z_ptr + tl.arange(0, 256), z)
""")
POINTERS = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "out_ptr": "*fp32"}


def translation(folder: Path, text: str, target: str = "gfx1250") -> str:
    return translate(folder, text, launch("kernel", POINTERS | {"n": "i32"}, {}), target=target).text


@pytest.fixture
def room(monkeypatch):
    """LDS for rings: without it the tiles wait in registers, as Triton's do (`gluonize.loops.planner.lds_room`)."""
    monkeypatch.setattr("gluonize.decide.readback.traced_launch.lds_bytes", lambda module, options: 1 << 20)


def test_an_outer_product_is_made_in_each_layout_that_triton_makes_it_in(tmp_path, room):
    text = translation(tmp_path, OUTER)
    assert len(re.findall(r"gl\.reshape\(", text)) == 2
    assert not re.search(r"gl\.sum\(gl\.convert_layout", text)


def test_an_outer_product_of_tiles_in_registers_is_made_in_each_layout(tmp_path, monkeypatch):
    monkeypatch.setattr("gluonize.loops.planner.lds_room.most_lds", lambda facts: 1)
    text = translation(tmp_path, OUTER)
    assert "x_next" in text and "x_smem" not in text
    assert len(re.findall(r"gl\.reshape\(", text)) == 2 and not re.search(r"gl\.sum\(gl\.convert_layout", text)


@pytest.mark.parametrize("added", ["z += tl.sum(xx, axis=1)", "if n > 64:\n            z += 1"])
def test_on_rdna_tiles_are_loaded_where_they_are_used(tmp_path, added):
    text = translation(
        tmp_path, OUTER.replace("z += tl.sum(xx, axis=1)", f"z += tl.sum(xx, axis=1)\n        {added}"), "gfx1201"
    )
    assert "x_smem" not in text
    assert len(re.findall(r"gl\.reshape\(", text)) == 2 and not re.search(r"gl\.sum\(gl\.convert_layout", text)


def test_on_rdna_what_a_branch_reads_is_moved(tmp_path):
    body = OUTER.replace("z += tl.sum(xx, axis=1)", "if n > 64:\n            z += tl.sum(xx, axis=1)")
    assert len(re.findall(r"gl\.reshape\(", translation(tmp_path, body, "gfx1201"))) == 1


def test_what_triton_makes_in_one_layout_is_converted(tmp_path):
    one = OUTER.replace("z += tl.sum(xx, axis=1)", "pass")
    assert len(re.findall(r"gl\.reshape\(", translation(tmp_path, one))) == 1


def test_a_tile_in_three_layouts_is_read_at_once(tmp_path, room):
    text = translation(tmp_path, OUTER)
    reads = [m.start() for m in re.finditer(r"^ +y\w* = y_smem.index\(slot\).*\.load", text, re.M)]
    assert len(reads) == 3 and reads[2] < text.index("gl.reshape(")


def test_a_tile_in_two_layouts_is_read_at_once(tmp_path, room):
    text = translation(tmp_path, OUTER.replace(" + tl.sum(tl.dot(y, tl.trans(y)))", ""))
    reads = [m.start() for m in re.finditer(r"^ +y\w* = y_smem.index\((?:slot|0)\).*\.load", text, re.M)]
    assert len(reads) == 2 and reads[1] < text.index("gl.reshape(")


def test_a_tile_is_read_before_its_name_is_used(tmp_path, room):
    """`y.dtype` names the variable before any layout of it is needed."""
    body = OUTER.replace("        xx = tl.reshape(", "        x = x.to(y.dtype)\n        xx = tl.reshape(")
    text = translation(tmp_path, body)
    first = text.index("y = y_smem.index(slot)")
    assert "y.dtype" not in text[:first]


def test_a_cast_to_the_own_type_is_no_work_for_a_loop(tmp_path):
    """The operand is moved through LDS once, where it is made, as Triton does."""
    text = dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n):
            i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
            a = tl.load(x_ptr + i + j * 64)
            a = tl.where(i <= j, a, 0).to(out_ptr.dtype.element_ty)
            for k in range(0, n, 64):
                y = tl.load(y_ptr + i * n + k + j)
                tl.store(out_ptr + i * n + k + j, tl.dot(a.to(y.dtype), y))
        """)
    pointers = POINTERS | {"out_ptr": "*fp16"}
    text = translate(tmp_path, text, launch("kernel", pointers | {"n": "i32"}, {}), target="gfx1250").text
    before = text.partition("for k in")[0]
    assert "_invariant" not in text and "convert_layout(a" not in text
    assert re.search(r"gl.allocate_shared_memory\(a.dtype, a.shape, \w+, a\).load\(", before)


ROWS = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n):
        i, j = tl.arange(0, 128), tl.arange(0, 64)
        x = tl.load(x_ptr + i[:, None] * 64 + j[None, :])
        row = tl.load(z_ptr + i, mask=i < n, other=0.0)
        out = tl.zeros((128, 64), tl.float32)
        for t in range(tl.load(z_ptr).to(tl.int64), n, 64):
            y = tl.load(y_ptr + (t + j)[:, None] * 64 + j[None, :])
            p = tl.exp2(tl.dot(x, tl.trans(y)) - row[:, None])
            # changed
            out += tl.dot(p.to(tl.float16), y)
        tl.store(out_ptr + i[:, None] * 64 + j[None, :], out)
""")


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("cast", "change"),
    [("", "pass"), (".to(tl.float32)", "row += tl.load(z_ptr + t)")],
    ids=["from before", "changed by scalars"],
)
@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_rows_from_before_a_loop_are_not_moved_in_it(cast: str, change: str, target: str, tmp_path):
    source = ROWS.replace("# changed", change).replace("other=0.0)", f"other=0.0){cast}")
    spec = launch("kernel", POINTERS | {"z_ptr": "*bf16", "n": "i32"}, {})
    text = translate(tmp_path, source, spec, target=target).text
    loop = text.partition("    for t in range")[2].partition("out_ptr")[0]
    assert "row" in loop and not re.search(r"gl\.convert_layout\(row", loop), text
