"""Which offsets of a descriptor's tiles the data mover may take, and what is said about them."""

import pytest
from translation_of import dedent

from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, y_ptr, sizes_ptr, N, start, BLOCK: tl.constexpr):
        x = tl.make_tensor_descriptor(x_ptr, shape=[N, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
        pid = tl.program_id(0)
        i = tl.arange(0, BLOCK)
        sizes = tl.load(sizes_ptr + i)
        {lines}
        tile = x.load([offset, 0])
        tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], tile)
    """)
TAKEN = {
    "grown-after-the-guard": (
        "offset = 0\n    t = pid\n    if t >= start and t < N:\n        for _ in range(3):\n            offset = t - start\n            t += 1",
        ("start >= 0", "grid[0] <= 2**31 - 3"),
    ),
    "program": ("offset = pid * BLOCK", ""),
    "parameter": ("offset = start", "start >= 0"),
    "remainder": ("offset = pid % start", ""),
    "guarded-difference": ("offset = 0\n    if pid >= start:\n        offset = pid - start", "start >= 0"),
    "maximum": ("offset = max(pid - start, 0)", ""),
}  # fmt: skip
REFUSED = {
    "sum-of-loaded": "offset = tl.sum(tl.where(i < pid, sizes, 0), 0)",
    "loaded": "offset = tl.load(sizes_ptr + pid)",
    "divided-by-a-count": "offset = pid // min(4, N - pid)",
    # Nothing bounds what `t` grows to, so it may overflow.
    "grown-by-what-may-be-negative": "offset = 0\n    t = pid\n    if t >= start and t < N:\n        for _ in range(3):\n            offset = t - start\n            t += tl.sum(sizes, 0)",
    "difference": "offset = pid - start",
    "negative-constant": "offset = pid * BLOCK - 1",
    "maximum-of-a-tensor": "offset = tl.max(sizes - 5, 0)",
    "other-difference": "offset = 0\n    if pid >= start:\n        offset = start - pid",
    "shrunk-after-the-guard": "offset = 0\n    t = pid\n    if t >= start:\n        t -= 2\n        offset = t - start",
    "bound-moved-after-the-guard": "offset = 0\n    t = start\n    if pid >= t:\n        t += 2\n        offset = pid - t",
    "other-branch": "offset = 0\n    if pid >= start:\n        offset = 1\n    else:\n        offset = pid - start",
}


def translated(lines: str, tmp_path):
    source = tmp_path / "source.py"
    source.write_text(SOURCE.replace("{lines}", lines))
    kinds = {"x_ptr": "*fp16", "y_ptr": "*fp16", "sizes_ptr": "*i32", "N": "i32", "start": "i32", "BLOCK": "constexpr"}
    spec = LaunchSpec("k", "k", str(source), kinds, {"BLOCK": 32}, {}, {"num_warps": 4}, (1,))
    result = translate_kernel(TranslateRequest(str(source), "gfx1250", launches=(spec,)))
    assert result.text is not None, result
    return result


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", TAKEN)
def test_indices_are_taken(name, tmp_path):
    lines, assumed = TAKEN[name]
    result = translated(lines, tmp_path)
    assert "load_tile(x, " in result.text
    assumed = assumed if isinstance(assumed, tuple) else (assumed,) if assumed else ()
    assert tuple(a for a in result.outcomes[0].assumptions if "2 GiB" not in a and a != "N >= 0") == assumed


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_negative_is_not(name, tmp_path):
    result = translated(REFUSED[name], tmp_path)
    assert "load_tile_2d" in result.text
    assert any("may be negative" in choice for choice in result.outcomes[0].choices)
