"""Tiles in shared memory and zero accumulators are written with the names that their dimensions come from."""

from __future__ import annotations

import re

import pytest

from translation_of import dedent, launch, tensor, translate, validated

SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp32"}


def shapes(tmp_path, body: str, **constexprs) -> list[str]:
    """The shapes of the zero accumulators of a kernel."""
    text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    text += f"def k(x_ptr, y_ptr, {', '.join(f'{name}: tl.constexpr' for name in constexprs)}):\n"
    text += "".join(f"    {line}\n" for line in dedent(body).splitlines())
    return re.findall(r"gl\.zeros\((\[.*?\]), ", translate(tmp_path, text, launch("k", SIGNATURE, constexprs)).text)


@pytest.mark.one_of(3)
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


SPREAD = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(a_ptr, b_ptr, y_ptr, N: tl.constexpr, M: tl.constexpr):
        n, m = tl.arange(0, N), tl.arange(0, M)
        a = tl.load(a_ptr + n[:, None] * M + m[None, :])
        b = tl.load(b_ptr + tl.arange(0, 4)[:, None, None] * N * M + n[None, :, None] * M + m[None, None, :])
        CALL
        tl.store(y_ptr + n[:, None] * 4 + tl.arange(0, 4)[None, :], tl.trans(tl.sum(x * y, axis=2)))
""")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize(
    "call", ["x, y = tl.broadcast(a, b)", "y, x = tl.broadcast(b, a)", "x, y = tl.broadcast(a, b)[0], b"]
)
def test_a_tensor_is_broadcast_with_one_that_has_more_dimensions(call: str, target: str, tmp_path):
    signature = {"a_ptr": "*fp32", "b_ptr": "*fp32", "y_ptr": "*fp32"}
    values = {"a_ptr": tensor(512), "b_ptr": tensor(2048), "y_ptr": tensor(128)}
    validated(tmp_path, SPREAD.replace("CALL", call), launch("k", signature, {"N": 32, "M": 16}, values=values), target)
