"""Tiles in shared memory and zero accumulators are written with the names that their dimensions come from."""

from __future__ import annotations

import re

import pytest

from translation_of import dedent, launch, translate

SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp32"}


def shapes(tmp_path, body: str, **constexprs) -> list[str]:
    """The shapes of the zero accumulators of a kernel."""
    text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    text += f"def k(x_ptr, y_ptr, {', '.join(f'{name}: tl.constexpr' for name in constexprs)}):\n"
    text += "".join(f"    {line}\n" for line in dedent(body).splitlines())
    return re.findall(r"gl\.zeros\((\[.*?\]), ", translate(tmp_path, text, launch("k", SIGNATURE, constexprs)).text)


@pytest.mark.parametrize(
    "rows, columns, expected",
    [
        ("tl.arange(0, M)", "tl.arange(0, N)", "[M, N]"),
        ("tl.arange(0, 64)", "tl.arange(0, N)", "[64, N]"),
        ("tl.arange(0, 2 * H)", "tl.arange(0, N)", "[2 * H, N]"),
        ("7 + tl.arange(0, M) % 5", "tl.arange(0, N) * 3", "[M, N]"),
        ("tl.arange(64, 128)", "tl.arange(0, N)", "[64, N]"),
    ],
)
def test_dimensions_keep_their_names(rows: str, columns: str, expected: str, tmp_path):
    body = f"""
        m = {rows}
        n = {columns}
        k = tl.arange(0, 32)
        a = tl.load(x_ptr + m[:, None] * 32 + k[None, :])
        b = tl.load(x_ptr + k[:, None] * 32 + n[None, :])
        tl.store(y_ptr + m[:, None] * 128 + n[None, :], tl.dot(a, b))
    """
    assert shapes(tmp_path, body, M=64, N=128, H=32) == [expected]


def test_the_transposed_operand_gives_its_other_dimension(tmp_path):
    body = """
        m = tl.arange(0, M)
        a = tl.load(x_ptr + m[:, None] * K + tl.arange(0, K)[None, :])
        tl.store(y_ptr + m[:, None] * M + m[None, :], tl.dot(a, tl.trans(a)) + tl.dot(a, a.T))
    """
    assert set(shapes(tmp_path, body, M=64, K=32)) == {"[M, M]"}


def test_a_name_that_means_something_else_there_is_not_used(tmp_path):
    # `i` is another number in each round of the loop; `SIZE` is one number everywhere.
    body = """
        for i in tl.static_range(2):
            m = tl.arange(0, 32 * (i + 1))
            a = tl.load(x_ptr + m[:, None] * 64 + m[None, :])
            tl.store(y_ptr + m[:, None] * 64 + m[None, :], tl.dot(a, a))
        SIZE: tl.constexpr = M // 2
        m = tl.arange(0, SIZE)
        a = tl.load(x_ptr + m[:, None] * 64 + m[None, :])
        tl.store(y_ptr + m[:, None] * 64 + m[None, :], tl.dot(a, a))
    """
    found = shapes(tmp_path, body, M=128)
    assert found == ["[32, 32]", "[64, 64]", "[SIZE, SIZE]"]
