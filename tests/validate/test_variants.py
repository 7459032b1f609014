"""Inputs that the machine makes beside the launch's: each finds a mistake that the launch itself does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import LaunchSpec

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
KERNEL = HEAD + """def _largest(x):
    largest = tl.max(x, 0)
    return largest


@triton.jit
def kernel(x_ptr, out_ptr, n, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    x_ptrs = x_ptr + i
    for k in range(0, K, BLOCK):
        x = tl.load(x_ptrs, mask=i < n, other=0.0)
        acc += tl.where(x > 0, x, -1.0) + _largest(tl.where(i < n, x, -9.0))
        x_ptrs += BLOCK
    tl.store(out_ptr + i, acc, mask=i < n)
"""


def launch(n: int, k: int, storage: int) -> LaunchSpec:
    """`n` of 64 lanes are on, for `k` / 64 trips."""
    shape = {"x_ptr": storage, "out_ptr": 64}
    tensors = {
        name: {"tensor": {"dtype": "float32", "shape": [count], "stride": [1], "storage": count, "offset": 0}}
        for name, count in shape.items()
    }
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "K": "i32", "BLOCK": "constexpr"}
    attrs = {"x_ptr": "DS", "out_ptr": "DS"}
    values = tensors | {"n": n, "K": k}
    return LaunchSpec("variants", "kernel", "", signature, {"BLOCK": 64}, attrs, {"num_warps": 1}, (1,), {}, values)


@pytest.mark.parametrize(
    "before, after, spec, variant, found",
    [
        # Storage is long enough for one lane more, so only its end where the source stops shows that lane.
        ("tl.load(x_ptrs, mask=i < n", "tl.load(x_ptrs, mask=i <= n", launch(40, 64, 128), "", "out-of-bounds"),
        # Two trips read two tiles; from the third on the pointer stands still.
        ("x_ptrs += BLOCK", "x_ptrs += BLOCK * (k < BLOCK)", launch(64, 128, 128), "K = 192", "mismatch"),
        # No drawn float is exactly zero.
        ("x > 0", "x >= 0", launch(64, 64, 64), "values with ties", "mismatch"),
        # Of 64 drawn floats some is above zero.
        (
            "return largest",
            "return tl.where(largest == 0, 1.0, largest)",
            launch(64, 128, 128),
            "values with ties",
            "mismatch",
        ),
    ],
    ids=["end-of-storage", "more-trips", "ties", "none-positive"],
)
def test_a_variant_finds_what_the_launch_does_not_show(
    tmp_path: Path, before: str, after: str, spec: LaunchSpec, variant: str, found: str
):
    assert KERNEL.count(before) == 1
    source, other = tmp_path / "source.py", tmp_path / "other.py"
    source.write_text(KERNEL)
    left = source_stage(str(source), spec, "gfx950")
    for text, expected in ((KERNEL, "validated"), (KERNEL.replace(before, after), found)):
        other.write_text(text)
        right = translated_stage(str(other), spec, "gfx950")
        result = validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)
        assert (result.hazards[0].kind if result.hazards else result.status) == expected, result.reason
    assert result.variant == variant
