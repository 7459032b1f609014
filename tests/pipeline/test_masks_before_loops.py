"""A mask made before the loop does not end with it, though its offsets move on."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from translator.request import TranslateRequest
from translator.source.launch_spec import LaunchSpec
from translator.translation import translate_kernel
from translator.validate import validate_launch

SOURCE = textwrap.dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, N, K, B: tl.constexpr):
        o = tl.arange(0, B)
        k = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        x_ptrs = x_ptr + o[:, None] * K + k[None, :]
        y_ptrs = y_ptr + k[:, None] * B + o[None, :]
        mask = (o[:, None] < N) & (k[None, :] < K)
        for i in range(tl.cdiv(K, B)):
            x = tl.load(x_ptrs, mask=mask, other=0.0)
            y = tl.load(y_ptrs)
            acc = tl.dot(x, y, acc)
            k += B
            x_ptrs += B
            y_ptrs += B * B
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B = 32
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "N": "i32", "K": "i32", "B": "constexpr"}


@pytest.mark.parametrize("target", ["gfx1250", "gfx950", "gfx942"])
def test_tiles_past_the_end_are_masked(target: str, tmp_path: Path):
    source, output = tmp_path / "source.py", tmp_path / "output.py"
    source.write_text(SOURCE)
    size = B * B * 2
    tensor = {"tensor": {"dtype": "", "shape": [size], "stride": [1], "storage": size, "offset": 0}}
    values = {name: tensor for name, kind in SIGNATURE.items() if kind[0] == "*"} | {"N": B, "K": 2 * B}
    attrs = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "DS") | {"K": "D"}
    options = {"num_warps": 4, "num_stages": 2}
    spec = LaunchSpec("p", "product", str(source), SIGNATURE, {"B": B}, attrs, options, (1,), values=values)
    result = translate_kernel(TranslateRequest(str(source), target, launches=(spec,)))
    assert result.text is not None and "NUM_BUFFERS" in result.text, result
    output.write_text(result.text)
    answer = validate_launch(str(source), str(output), spec, target)
    assert answer["status"] == "validated", answer
