"""What a helper is called with decides whether its accesses are buffer operations: their offsets must not be negative."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def row(x_ptr, start, n, B: tl.constexpr):
        o = start + tl.arange(0, B)
        return tl.load(x_ptr + o, mask=o < n, other=0.0)


    @triton.jit
    def outer(x_ptr, first, n, B: tl.constexpr):
        return row(x_ptr, first + 1, n, B)


    @triton.jit
    def kernel(x_ptr, y_ptr, n, skipped, B: tl.constexpr):
        pid = tl.program_id(0)
        x_ptr += B
        y = row(x_ptr, pid * B, n, B)
        tl.store(y_ptr + tl.arange(0, B), y)
""")
CALL = "row(x_ptr, pid * B, n, B)"
LOOP = "y = row(x_ptr, pid * B, n, B)"
B = 64


def translated(folder: Path, source: str) -> str:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "skipped": "i32"}
    values = {"x_ptr": tensor(4 * B), "y_ptr": tensor(B), "n": 2 * B - 3, "skipped": 7}
    return validated(folder, source, launch("kernel", signature, {"B": B}, values=values))


@pytest.mark.parametrize(
    "call",
    [CALL, "row(x_ptr, 0, n, B)", "outer(x_ptr, pid, n, B)", "row(x_ptr, skipped, n, B)"],
    ids=["program", "constant", "two levels", "parameter"],
)
def test_arguments_that_are_not_negative(call: str, tmp_path: Path):
    text = translated(tmp_path, SOURCE.replace(CALL, call))
    assert "gl.load(" not in text and "cdna3.buffer_load(" in text, text
    assert ("0 <= skipped <=" in text) == ("skipped" in call), text


@pytest.mark.parametrize(
    "statement",
    [
        "y = row(x_ptr, pid * B - 1, n, B)",
        "y = outer(x_ptr, pid - B // 2, n, B)",
        "y = row(x_ptr, tl.load(x_ptr).to(tl.int32) // 1000 - 5, n, B)",
        "y = tl.zeros((B,), tl.float32)\n    for i in tl.static_range(2):\n        y += row(x_ptr, 3 - 5 * i, n, B)",
    ],
    ids=["below 0", "below 0 two levels up", "from memory", "differs from call to call"],
)
def test_arguments_that_may_be_negative(statement: str, tmp_path: Path):
    assert "gl.load(" in translated(tmp_path, SOURCE.replace(LOOP, statement))


def test_numbers_of_an_unrolled_loop(tmp_path: Path):
    """Not negative in its first iteration only."""
    loop = "y = tl.zeros((B,), tl.float32)\n    for i in tl.static_range(2):\n        o = 3 - 5 * i + tl.arange(0, B)\n        y += tl.load(x_ptr + o)"
    translated(tmp_path, SOURCE.replace(LOOP, loop))


def test_a_version_for_each_kind_of_call(tmp_path: Path):
    text = translated(tmp_path, SOURCE.replace(LOOP, f"{LOOP}\n    y += row(x_ptr, pid * B - 1, n, B)"))
    assert text.count("def row_gluon") == 2 and text.count("gl.load(") == 1 == text.count("cdna3.buffer_load("), text


def test_a_tensor_s_own_start_stays_the_base(tmp_path: Path):
    """A base of its own would be one more buffer descriptor, for which the start of the tensor has one already."""
    source = SOURCE.replace("    x_ptr += B\n", "").replace(
        "    o = start + tl.arange(0, B)\n    return tl.load(x_ptr + o, mask=o < n, other=0.0)",
        "    o = start + tl.arange(0, B)\n    x_ptrs = x_ptr + start * 2 + o\n    return tl.load(x_ptrs, mask=o < n, other=0.0)",
    )
    text = translated(tmp_path, source)
    assert "cdna3.buffer_load(x_ptr, x_offs" in text, text
