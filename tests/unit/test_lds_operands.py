"""Matrix operands through LDS: what is never live together shares it, what several dots read is read once."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, translate

HEAD = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, out_ptr):
        i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
        x = tl.load(x_ptr + i * 64 + j)
        y = tl.load(y_ptr + i * 64 + j)
""")
STORE = "    tl.store(out_ptr + i * 64 + j, out)\n"
TILE = 64 * 64 * 2  # bytes of one tile


def translation(folder: Path, body: str):
    """The text of the translation, and its compiled kernel."""
    spec = launch("kernel", {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32"}, {})
    text = translate(folder, HEAD + body + STORE, spec).text
    return text, compiled(folder, text, spec)


def test_operands_of_one_dot_share_lds(tmp_path):
    text, kernel = translation(tmp_path, "    out = tl.dot(x, y)\n")
    assert text.count("gl.allocate_shared_memory(") == 2
    assert kernel.lds_bytes == TILE


def test_an_operand_of_two_dots_is_read_once(tmp_path):
    text, _ = translation(tmp_path, "    out = tl.dot(x, y)\n    out += tl.dot(x, (y * 2).to(tl.float16))\n")
    (read,) = [line for line in text.splitlines() if "gl.allocate_shared_memory(x.dtype" in line]
    assert read.strip().startswith("x_") and ".load(" in read
    assert text.index(read) > text.index("y = cdna3.buffer_load")  # no earlier than it is needed


def test_an_operand_of_both_sides_does_not_hold_lds_between(tmp_path):
    text, kernel = translation(tmp_path, "    out = tl.dot(x, y)\n    out = tl.dot(out.to(tl.float16), x)\n")
    assert "gl.allocate_shared_memory(x.dtype, x.shape" in text
    assert kernel.lds_bytes == TILE


def test_casts_narrow_before_they_move(tmp_path):
    body = "    out = tl.dot(x, y)\n    out = tl.dot(out.to(tl.float16), y) + tl.dot(out.to(tl.float16), x)\n"
    text, _ = translation(tmp_path, body)
    assert "gl.allocate_shared_memory(gl.float16, [64, 64], out_shared, out.to(gl.float16))" in text
    assert "gl.convert_layout(out, " not in text.replace("gl.convert_layout(out, out_store", "")


def test_a_cast_to_the_same_type_hides_no_operand(tmp_path):
    body = "    y = tl.load(y_ptr + j * 64 + i).to(x.dtype)\n    out = tl.dot(x, tl.trans(y)) + tl.dot(x, y)\n"
    text, _ = translation(tmp_path, body)
    assert "gl.convert_layout(y" not in text and "gl.permute(" not in text
    assert text.count("gl.allocate_shared_memory(y.dtype, y.shape") == 1  # stored once, read both ways


def test_a_factor_of_one_hides_no_operand(tmp_path):
    text, _ = translation(tmp_path, "    y = y * 1.0\n    out = tl.dot(x, y)\n")
    assert "gl.allocate_shared_memory(y.dtype, y.shape" in text and "gl.convert_layout(y" not in text


def test_a_factor_that_is_one_in_this_launch_is_kept(tmp_path):
    source = HEAD.replace("out_ptr):", "out_ptr, SCALE: tl.constexpr):")
    spec = launch("kernel", {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32"}, {"SCALE": 1})
    for body in ("    out = tl.dot(x, y * SCALE)\n", "    y = y * SCALE\n    out = tl.dot(x, y)\n"):
        text = translate(tmp_path, source + body + STORE, spec).text
        assert " * SCALE" in text and "gl.convert_layout(y" not in text


def test_what_is_scaled_for_a_dot_moves_before_that(tmp_path):
    body = "    s = tl.load(out_ptr + tl.arange(0, 64))\n    x = (x * tl.exp(s)[None, :]).to(tl.float16)\n    out = tl.dot(x, y)\n"
    text, _ = translation(tmp_path, body)
    assert (
        text.count("gl.allocate_shared_memory(x.dtype, x.shape") == 1
    )  # and is not moved again where it is multiplied
    assert "x = (gl.allocate_shared_memory(x.dtype, x.shape" in text.replace("\n        ", "")


def test_an_operand_that_a_loop_reads_moves_once_before_it(tmp_path):
    body = "    out = tl.zeros([64, 64], tl.float32)\n    for k in range(4):\n        out = tl.dot(x, tl.load(y_ptr + k), out)\n"
    body = body.replace("tl.load(y_ptr + k)", "(y * k).to(tl.float16)")
    text, _ = translation(tmp_path, body)
    before = text[: text.index("for k in")]
    assert "gl.allocate_shared_memory(x.dtype, x.shape" in before and "gl.convert_layout(x" not in text


def test_an_operand_across_k_is_transposed_within_lanes(tmp_path):
    text, kernel = translation(tmp_path, "    out = tl.dot(x, y)\n")
    assert "y.shape" in text and "gl.convert_layout(y, y_stored))" in text
    assert "x_stored" not in text  # its rows are along K
    assert "16" not in kernel.metrics.mix.widths["ds"]


def test_a_cast_that_stands_elsewhere_too_hides_no_operand(tmp_path):
    body = "    out = tl.dot(x, y)\n    tl.store(z_ptr + i * 64 + j, out.to(tl.float16))\n    OPERAND\n"
    spec = launch("kernel", {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32", "z_ptr": "*fp16"}, {})
    source = HEAD.replace("out_ptr):", "out_ptr, z_ptr):")
    for operand in ("out = tl.dot(y, out.to(tl.float16))", "z = out.to(tl.float16)\n    out = tl.dot(y, z)"):
        text = translate(tmp_path, source + body.replace("OPERAND", operand) + STORE, spec, target="gfx1250").text
        assert "gl.convert_layout(out" not in text and "gl.convert_layout(z" not in text, text
        compiled(tmp_path, text, spec, "gfx1250")
    changed = "out = out + 1\n    out = tl.dot(y, out.to(tl.float16))"  # another value, which has its own place
    text = translate(tmp_path, source + body.replace("OPERAND", changed) + STORE, spec, target="gfx1250").text
    compiled(tmp_path, text, spec, "gfx1250")


def test_a_transposed_operand_of_multiply_adds_is_moved_for_their_sake(tmp_path):
    spec = launch("kernel", {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32"}, {})
    source = HEAD + "    out = tl.dot(x, tl.trans(y))\n" + STORE
    text = translate(tmp_path, source, spec, target="gfx1201").text
    assert "gl.dot_fma(" in text and text.count("gl.allocate_shared_memory(") == 2, text
    assert "gl.convert_layout(gl.permute(" not in text, text


@pytest.mark.parametrize(("trips", "inside"), [("1", True), ("2", False), ("tl.cdiv(64, 64)", True)])
def test_an_operand_is_moved_before_a_loop_that_repeats(tmp_path, trips, inside):
    body = "    out = tl.zeros((64, 64), tl.float32)\n"
    body += f"    for k in range({trips}):\n        out += tl.dot(x, tl.load(y_ptr + 4096 * k + i * 64 + j)) + k\n"
    text, _ = translation(tmp_path, body)
    loop = text.partition("    for k in ")[2]
    assert ("(x.dtype, x.shape" in loop) == inside, text


def test_a_product_becomes_an_operand_of_the_same_instruction_in_registers(tmp_path):
    """Where Triton reads it from LDS for another product, too."""
    body = "    a = tl.dot(x, y)\n    out = tl.dot(a.to(tl.float16), y) + tl.dot(x, a.to(tl.float16))\n"
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32"}
    text = translate(tmp_path, HEAD + body + STORE, launch("kernel", signature, {}), target="gfx1201").text
    assert "gl.convert_layout(a.to(gl.float16), " in text
    assert text.count("a.to(gl.float16)).load(") == 1


TRANSPOSED = """
    x = tl.where(i >= j, x, 0)
    out = tl.zeros((64, 64), tl.float32)
    for k in tl.LOOP(tl.cdiv(128, 64)):
        y = tl.load(y_ptr + 4096 * k + i * 64 + j) + STEP
        out += tl.dot(y, x)
        out += tl.dot(tl.trans(x), y)
"""


@pytest.mark.parametrize(
    ("kind", "step"), [("static_range", "0"), ("range", "k"), ("range", "tl.sum(out, 1)[:, None]")]
)
def test_what_a_loop_reads_transposed_moves_once_before_it(tmp_path, kind, step):
    body = TRANSPOSED.replace("LOOP", kind).replace("STEP", f"({step}).to(tl.float16)" if "(" in step else step)
    text, _ = translation(tmp_path, body.replace("+ 0\n", "\n"))
    before, _, loop = text.partition("    for k in ")
    assert "x_invariant = gl.convert_layout(gl.permute(x, [1, 0])" in before
    assert "gl.permute(x" not in loop and "x_smem" not in loop, text


def test_what_a_loop_reads_transposed_is_not_held_on_rdna(tmp_path):
    body = TRANSPOSED.replace("LOOP", "static_range").replace(" + STEP", "")
    spec = launch("kernel", {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32"}, {})
    assert "x_invariant" not in translate(tmp_path, HEAD + body + STORE, spec, target="gfx1201").text


def test_a_buffer_is_filled_before_any_of_its_reads(tmp_path):
    """One read is first needed in a branch, and stands right behind the definition; the other one is needed before."""
    body = """\
    out = tl.dot(x, y)
    if BRANCH:
        out += tl.dot(out, x)
        out += tl.dot(out, x)
"""
    source = (HEAD + body + STORE).replace("out_ptr):", "out_ptr, BRANCH: tl.constexpr):").replace("64", "16")
    spec = launch("kernel", {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32"}, {"BRANCH": True})
    lines = translate(tmp_path, source, spec, target="gfx1201").text.splitlines()
    filled, *reads = [line for line in lines if "x_smem" in line]
    assert " x_smem = gl.allocate_shared_memory(" in filled and len(reads) == 2
