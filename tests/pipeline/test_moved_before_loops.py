"""Which loads are tiles of the data mover whose pointers were moved, or copied, between where they are made and the loop."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_wrapped_rows import loads
from translation_of import dedent, launch, tensor, validated

from gluonize.judge.verdict import validate_launch

BODY = """
    one = 1
    skipped = 0
    if FLAG:
        skipped = tl.maximum(M - 64, 0) // BLOCK
    p = a_ptr + offs_m[:, None] * K + offs_k[None, :] * one
    if skipped > 0:
        p += skipped * BLOCK
    p += M
    r = p
    for k in range(0, tl.cdiv(K, BLOCK)):
        a = tl.load(r)
        b = tl.load(q)
        acc = tl.dot(a, b, acc)
        r += BLOCK
        q += BLOCK * N
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))
"""
NEVER, PERHAPS = BODY.replace("FLAG", "BLOCK == 0"), BODY.replace("FLAG", "BLOCK == 64")


def test_what_is_never_added_leaves_a_tile(tmp_path: Path):
    found, reasons = loads(NEVER, tmp_path)
    assert found["a"].tile is not None, reasons
    assert found["a"].tile.axes[1].stride == {(): 1} and found["a"].tile.wide


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "text",
    [
        PERHAPS,
        NEVER.replace("skipped > 0", "skipped >= 0"),
        NEVER.replace("    p += M\n", "    if M > 3:\n        p += M\n"),
        NEVER.replace("    p += M\n", "    for i in range(M):\n        p += K\n"),
        NEVER.replace("    one = 1\n", "    one = M\n"),
    ],
    ids=["perhaps", "not less", "a branch", "a loop", "a stride that is any number"],
)
def test_what_may_be_added_leaves_none(text: str, tmp_path: Path):
    found, _ = loads(text, tmp_path)
    assert found["a"].tile is None


SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, first, K, stride, BLOCK: tl.constexpr):
        rows = tl.arange(0, BLOCK)
        one = 1
        p = a_ptr + rows[:, None] * stride + rows[None, :] * one
        skipped = 0
        if skipped > 0:
            p += skipped * BLOCK
        p += first * stride
        q = b_ptr + rows[:, None] * BLOCK + rows[None, :]
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        r = p
        for k in range(0, K, BLOCK):
            acc = tl.dot(tl.load(r), tl.load(q), acc)
            r += BLOCK
            q += BLOCK * BLOCK
        tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], acc)
    """)


def test_the_tile_begins_where_the_pointers_do(tmp_path: Path):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "first": "i32", "K": "i32", "stride": "i32"}
    attrs = {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "K": "D", "stride": "D"}
    values = {
        "a_ptr": tensor(72, 192),
        "b_ptr": tensor(192, 64),
        "c_ptr": tensor(64, 64),
        "first": 5,
        "K": 192,
        "stride": 192,
    }
    spec = launch("kernel", signature, {"BLOCK": 64}, attrs=attrs, values=values)
    text = validated(tmp_path, SOURCE, spec, "gfx1250")
    assert text.count("make_tensor_descriptor(") == 2 and "async_copy" not in text
    wrong = re.sub(r"first\.to\(gl\.int64\) \* stride|\(first \* stride\)\.to\(gl\.int64\)", "0", text)
    assert wrong != text, text
    (tmp_path / "output.py").write_text(wrong)
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    assert validate_launch(*files, spec, "gfx1250")["status"] == "mismatch"
