"""Offsets of the data mover's tiles that a loop moves: not negative, if how often it goes round is bounded before the launch."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.judge.verdict import validate_launch

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr):
        first = tl.program_id(0) * N
        a = tl.make_tensor_descriptor(a_ptr, shape=[N, BLOCK], strides=[BLOCK, 1], block_shape=[BLOCK, BLOCK])
        b = tl.make_tensor_descriptor(b_ptr, shape=[N, BLOCK], strides=[BLOCK, 1], block_shape=[BLOCK, BLOCK])
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        y = first
        for k in range(0, N, BLOCK):
            acc = tl.dot(a.load([y, 0]), b.load([y, 0]), acc)
            y += BLOCK
        rows = tl.arange(0, BLOCK)
        tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], acc)
    """)
SIZE = 160
LOOP = "    for k in range(0, N, BLOCK):\n"


def spec():
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "N": "i32"}
    attrs = {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "N": "D"}
    values = {"a_ptr": tensor(SIZE, 64), "b_ptr": tensor(SIZE, 64), "c_ptr": tensor(64, 64), "N": SIZE}
    return launch("kernel", signature, {"BLOCK": 64}, attrs=attrs, values=values)


def test_what_each_iteration_adds_is_checked_before_the_launch(tmp_path: Path):
    text = validated(tmp_path, SOURCE, spec(), "gfx1250")
    assert text.count("tdm.async_load(") == 4 and "buffer_load" not in text and "async_copy" not in text
    bound = "(grid[0] - 1) * N + (max(N - 1, 0) // 64 + 1) * 64 <= 2**31 - 1"
    assert bound in " ".join(line.strip("# ") for line in text.splitlines()), text
    (tmp_path / "output.py").write_text(
        text.replace("y_ahead += BLOCK", "y_ahead += 2 * BLOCK").replace("y += BLOCK", "y += 2 * BLOCK")
    )
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    assert validate_launch(*files, spec(), "gfx1250")["status"] == "mismatch"


@pytest.mark.parametrize(
    "old, new",
    [
        ("y += BLOCK", "y -= BLOCK"),
        ("y = first", "y = first - 1"),
        (LOOP, "    for k in range(tl.load(c_ptr).to(tl.int32), N, BLOCK):\n"),
        (LOOP, "    k = 0\n    while k < N:\n        k += BLOCK\n"),
    ],
    ids=["down", "from before the tensor", "from anywhere", "until anything"],
)
def test_what_nothing_bounds_is_masked(old: str, new: str, tmp_path: Path):
    assert old in SOURCE
    text = translate(tmp_path, SOURCE.replace(old, new), spec(), target="gfx1250").text
    assert "async_load" not in text, text


def test_what_goes_on_from_one_run_of_the_loop_to_the_next_is_masked(tmp_path: Path):
    body = SOURCE[SOURCE.index(LOOP) : SOURCE.index("    rows =")]
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    assert (
        "async_load"
        not in translate(
            tmp_path, SOURCE.replace(body, "    for t in range(N):\n" + inner), spec(), target="gfx1250"
        ).text
    )
    again = SOURCE.replace(body, "    for t in range(N):\n        y = first\n" + inner)
    assert "async_load" in translate(tmp_path, again, spec(), target="gfx1250").text
