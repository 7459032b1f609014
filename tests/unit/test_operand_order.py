"""When matrix operands are made: once before a loop that leaves them alone, after the conversion of an accumulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

HEAD = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n):
        i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
        h = tl.zeros((64, 64), tl.float32)
""")
STORE = "    tl.store(out_ptr + i * 64 + j, h)\n"
POINTERS = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "out_ptr": "*fp32"}


def translation(folder: Path, body: str, target: str = "gfx942") -> str:
    text = HEAD + body + STORE
    return translate(folder, text, launch("kernel", POINTERS | {"n": "i32"}, {}), target=target).text


def test_an_operand_that_a_loop_leaves_alone_is_converted_before_it(tmp_path):
    text = translation(
        tmp_path,
        """\
    for k in range(n):
        s = tl.zeros((64, 64), tl.float32)
        for l in range(n):
            x = tl.load(x_ptr + l * 4096 + i * 64 + j)
            s += tl.dot(x, h.to(x.dtype))
        h += s
""",
    )
    (line,) = re.findall(r"^( *)h_invariant = gl.convert_layout\(h.to\(gl.float16\), \w+\)$", text, re.M)
    assert len(line) == 8 and text.index("h_invariant =") < text.index("for l in")
    assert re.search(r"mfma\(.*, h_invariant, s\)", text)


def test_an_operand_that_a_loop_changes_is_converted_in_it(tmp_path):
    text = translation(
        tmp_path,
        """\
    for l in range(n):
        x = tl.load(x_ptr + l * 4096 + i * 64 + j)
        h += tl.dot(x, h.to(x.dtype))
""",
    )
    assert "invariant" not in text


def test_an_accumulator_is_converted_before_operands_are_read(tmp_path):
    body = """\
    x = tl.load(x_ptr + i * 64 + j)
    y = tl.load(y_ptr + i * 64 + j)
    z = tl.load(z_ptr + i * 64 + j)
    h = tl.dot(x, y, z)
"""
    text = translation(tmp_path, body)
    assert re.search(r"acc=gl.convert_layout\(z, \w+\)", text)  # keywords are evaluated first


def test_a_narrower_addend_is_the_accumulator(tmp_path):
    body = """\
    x = tl.load(x_ptr + i * 64 + j)
    y = tl.load(y_ptr + i * 64 + j)
    h = x + tl.dot(x, y)
"""
    text = translation(tmp_path, body)
    assert (
        re.search(r"acc=gl.convert_layout\(x, \w+\)\.to\(gl.float32\)", text)
        and "gl.zeros" not in text.partition("mfma")[2]
    )


def test_what_is_read_as_an_operand_is_widened_after_the_read(tmp_path):
    text = dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, z_ptr, out_ptr):
            i, j, k = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :], tl.arange(0, 16)[None, :]
            z = tl.load(z_ptr + i + j * 64)
            x = tl.load(x_ptr + i * 16 + k)
            y = tl.load(y_ptr + i * 64 + j)
            out = tl.dot(z, x.to(z.dtype), allow_tf32=False)
            out = tl.dot(y, x, out)
            tl.store(out_ptr + i * 16 + k, out)
        """)
    text = translate(tmp_path, text, launch("kernel", POINTERS, {}, warps=2), target="gfx1201").text
    x = re.search(r"b=gl.allocate_shared_memory\(x.dtype, x.shape, \w+, x\).load\(\w+\).to\(z.dtype\)", text)
    z = re.search(r"a=gl.allocate_shared_memory\(z.dtype, z.shape, \w+, z\)", text)
    assert x.start() < z.start()  # the smaller one is held while the other is written


def test_of_several_layouts_a_value_has_one_that_is_not_held_by_every_warp(tmp_path):
    body = """\
    x = tl.load(x_ptr + i * 64 + j)
    y = tl.load(y_ptr + i * 64 + j)
    z = tl.load(z_ptr + tl.arange(0, 64))
    y = (y * z[:, None]).to(tl.float16)
    s = tl.dot(x, tl.trans(y))
    h = tl.dot(s.to(x.dtype), x) * y
"""
    text = translation(tmp_path, body, "gfx1201")
    held = re.findall(r"(\w+): gl.constexpr = gl.DistributedLinearLayout", text)
    (product,) = [line for line in text.splitlines() if "y * " in line]
    assert held and not any(name in product for name in held)


def test_a_product_that_is_an_accumulator_comes_before_the_operands_of_the_next(tmp_path):
    body = """\
    x = tl.load(x_ptr + i * 64 + j)
    y = tl.load(y_ptr + i * 64 + j)
    s, t = tl.dot(x, y), tl.dot(y, x)
    h = tl.dot(s.to(x.dtype), x) + tl.dot(t.to(x.dtype), y)
"""
    text = translation(tmp_path, body, target="gfx1100")
    inner = re.search(r"acc=rdna3.wmma\(", text)
    assert inner is not None and text.count("rdna3.wmma(") == 4, text  # keywords are evaluated first


def test_what_many_lanes_hold_is_cast_where_it_is_stored(tmp_path):
    text = dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, out_ptr, n):
            i, j = tl.arange(0, 64), tl.arange(0, 32)
            p_x, p_y, p_out = x_ptr + i, y_ptr + j, out_ptr + i
            h = tl.zeros((64, 32), tl.float32)
            for _ in range(n):
                x = tl.load(p_x).to(tl.float32)
                y = tl.load(p_y).to(tl.float32)
                h += x[:, None] * y[None, :]
                s = tl.sum(h * y[None, :], axis=1)
                tl.store(p_out, s.to(tl.bfloat16))
                h -= y[None, :]
                p_x += 64
                p_y += 32
                p_out += 64
        """)
    pointers = dict.fromkeys(("x_ptr", "y_ptr", "out_ptr"), "*bf16")
    text = translate(tmp_path, text, launch("kernel", pointers | {"n": "i32"}, {}, warps=2), target="gfx1201").text
    assert re.search(r"gl.convert_layout\(s, \w+\)\.to\(gl.bfloat16\)", text), text


TWICE = """\
    x = tl.load(x_ptr + i * 64 + j)
    y = tl.load(y_ptr + i * 64 + j)
    p = tl.dot(x, y)
    h = tl.dot(tl.trans(p).to(tl.float16), x)
    h = tl.dot(tl.trans(p).to(tl.float16), y, h)
"""
MOVED = r"^ *p_t_fp16_\w+ = "
CHANGES = {
    "as it is": ("tl.float16), y", "tl.float16), y", True),
    "of another value": ("    h = tl.dot(tl.trans(p).to(tl.float16), y", "    p += 1.0\n{}", False),
    "of another type": ("tl.trans(p).to(tl.float16), y", "tl.trans(p).to(tl.bfloat16), y.to(tl.bfloat16)", False),
    "not transposed": ("tl.trans(p).to(tl.float16), y", "p.to(tl.float16), y", False),
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_an_operand_of_two_dots_is_made_once(target: str, what: str, tmp_path):
    old, new, once = CHANGES[what]
    assert old in TWICE
    body = TWICE.replace(old, new.replace("{}", old))
    tile = tensor(64, 64)
    spec = launch("kernel", POINTERS | {"n": "i32"}, {}, values={name: tile for name in POINTERS} | {"n": 2})
    text = validated(tmp_path, HEAD + body + STORE, spec, target)
    assert bool(re.findall(MOVED, text, re.M)) is once, text


ROW = """\
    w = tl.load(z_ptr + tl.arange(0, 64))
    total = tl.zeros((64,), tl.float32)
    for k in range(n):
        w = w.to(tl.float32)
        x = tl.load(x_ptr + i * 64 + j)
        h += tl.dot(x, tl.load(y_ptr + i * 64 + j)) * w[None, :]
        total += tl.sum(x * w[None, :], axis=1)
    h += total[:, None]
"""


@pytest.mark.parametrize("what, before", [("w.to(tl.float32)", True), ("w.to(tl.float32) + k", False)])
def test_a_cast_to_the_type_that_it_has_does_not_change_a_variable(what: str, before: bool, tmp_path):
    assert "w.to(tl.float32)" in ROW
    tile, row = tensor(64, 64), tensor(64)
    values = {"x_ptr": tile, "y_ptr": tile, "z_ptr": row, "out_ptr": tile, "n": 3}
    spec = launch("kernel", POINTERS | {"n": "i32"}, {}, values=values)
    text = validated(tmp_path, HEAD + ROW.replace("w.to(tl.float32)", what) + STORE, spec)
    moves = re.findall(r"^( *).*gl\.convert_layout\(w, ", text, re.M)
    assert moves and {len(indent) == 4 for indent in moves} == {before}, text


HELD = """\
    z = tl.load(z_ptr + i * 64 + j)
    x = tl.load(x_ptr + i * 64 + j)
    e = tl.exp(z)
    for l in range(n):
        y = tl.load(y_ptr + l * 4096 + i * 64 + j)
        h += tl.dot(y, x)
        h += tl.dot(y.to(tl.float32) * e, z, input_precision="ieee")
    for l in range(n):
        h += tl.dot(x, x)
"""


def moves_of(text: str, *names: str) -> list[int]:
    """Where variables get their values: operands of `x` and `z` have other names than what is loaded."""
    return [text.index(f"\n    {name} = ") for name in names]


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_what_a_loop_holds_is_moved_where_it_is_loaded(target, tmp_path):
    text = translation(tmp_path, HELD, target)
    places = moves_of(text, "z", "z_dot", "x", "x_dot", "e")
    assert places == sorted(places), text


def product(folder: Path, m: int, n: int, target: str) -> str:
    source = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, out_ptr):
            i, j, k = tl.arange(0, {m})[:, None], tl.arange(0, {n})[None, :], tl.arange(0, 64)
            x = tl.load(x_ptr + i * 64 + k[None, :])
            y = tl.load(y_ptr + k[:, None] * {n} + j)
            tl.store(out_ptr + i * {n} + j, tl.dot(x, y))
    """)
    spec = launch("kernel", {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32"}, {})
    return translate(folder, source, spec, target=target).text


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_rdna_reads_the_operand_first_of_which_a_warp_holds_less(target, tmp_path):
    """Keywords are evaluated first."""
    held = re.compile(
        r"wmma\(\s*gl\.allocate_shared_memory\(x\..*?,\s*acc=.*?,\s*b=gl\.allocate_shared_memory\(y\.", re.S
    )
    assert held.search(product(tmp_path, 256, 32, target))
    assert "b=" not in product(tmp_path, 32, 256, target)


def test_cdna_reads_operands_in_their_order(tmp_path):
    assert "b=" not in product(tmp_path, 256, 32, "gfx942")
