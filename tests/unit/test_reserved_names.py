"""Names of the source that Gluon's modules have in the output."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

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


BESIDE = dedent("""
    from typing import NamedTuple
    import triton
    import triton.language as tl


    class KIND(NamedTuple):
        low: tl.tensor
        high: tl.tensor


    @triton.jit
    def HELPER(x, by, INNER):
        y = x.to(tl.float32) * INNER.to(tl.float32)
        return y + by * INNER


    @triton.jit
    def gate(POINTER, y_ptr, n, B: tl.constexpr, FLAG: tl.constexpr):
        o = tl.arange(0, B)
        pair = KIND(o, o + 1)
        LOCAL = tl.load(POINTER + o, mask=o < n, other=0.0)
        LOCAL = LOCAL.to(tl.float32) + tl.sum(LOCAL, 0) + pair.high
        if FLAG == 1:
            LOCAL = HELPER(LOCAL, 2, INNER=n)
        tl.store(y_ptr + o, LOCAL.to(POINTER.dtype.element_ty) + FLAG, mask=o < n)
""")
PLACES = "KIND HELPER INNER POINTER FLAG LOCAL".split()
NAMES = "gl gluon cdna4 tdm hint async_copy".split()
TURNS = {" ".join(f"{p.lower()}={n}" for p, n in zip(PLACES, turn)): turn for turn in (NAMES, NAMES[1:] + NAMES[:1])}
TURNS |= {"helper=gl pointer=gluon": "tdm gl gluon gluon gl_ gluon_".split()}
TURNS |= {"all parameters=gl": "gluon hint gl gl tdm cdna4".split()}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_what_callers_name_keeps_its_name(turn: list[str], target: str, tmp_path: Path):
    source = BESIDE
    for place, given in zip(PLACES, turn):
        source = source.replace(place, given)
    kind, helper, inner, pointer, flag, _ = turn
    signature = {pointer: "*fp32", "y_ptr": "*fp32", "n": "i32"}
    values = {pointer: tensor(256), "y_ptr": tensor(256), "n": 200}
    text = validated(tmp_path, source, launch("gate", signature, {"B": 256, flag: 1}, values=values), target)
    assert text.isascii(), text
    for line in (f"class {kind}(NamedTuple)", f"def {helper}(x, by, {inner})", f"def gate({pointer}, y_ptr, n, B: "):
        assert line in text, text


PRODUCT = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(gl, tdm, gluon, K, cdna4: tl.constexpr):
        r = tl.arange(0, cdna4)
        acc = tl.zeros((cdna4, cdna4), tl.float32)
        for kk in range(0, K, cdna4):
            a = tl.load(gl + r[:, None] * K + (kk + r)[None, :])
            b = tl.load(tdm + (kk + r)[:, None] * cdna4 + r[None, :])
            acc = tl.dot(a, b.to(gl.dtype.element_ty), acc)
        tl.store(gluon + r[:, None] * cdna4 + r[None, :], acc.to(gluon.type.element_ty))
""")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx1250", "gfx1201"])
def test_pointers_of_a_pipelined_loop(target: str, tmp_path: Path):
    """One text for two element types asks pointers for theirs, in the loop, in its buffers and in what is asserted."""
    values = {"gl": tensor(32, 96), "tdm": tensor(96, 32), "gluon": tensor(32, 32), "K": 96}
    types = [{"gl": f"*{t}", "tdm": f"*{t}", "gluon": f"*{t}", "K": "i32"} for t in ("fp16", "bf16")]
    specs = [launch("k", signature, {"cdna4": 32}, values=values) for signature in types]
    text = translate(tmp_path, PRODUCT, *specs, target=target).text
    assert text.isascii() and "def k(gl, tdm, gluon, K, cdna4: gl_.constexpr" in text, text
    for spec in specs:
        validated(tmp_path, PRODUCT, spec, target)


def test_other_names_stay(tmp_path: Path):
    text = translate(tmp_path, SOURCE.replace("gluon", "i").replace("gl", "g"), SPEC, target="gfx950").text
    assert "g_ = 1" in text and "gl_" not in text, text
