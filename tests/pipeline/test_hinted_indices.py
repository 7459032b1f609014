"""A loop whose index is given a hint (`i = tl.multiple_of(i, n)`) is pipelined; the hint holds for tiles that there are."""

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
    def product(x_ptr, y_ptr, z_ptr, first, n, B: tl.constexpr):
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(first, n, B):
            i = tl.multiple_of(i, B)
            rows = i + o
            x = tl.load(x_ptr + rows[:, None] * B + o[None, :], mask=(rows < n)[:, None], other=0.0)
            y = tl.load(y_ptr + rows[:, None] * B + o[None, :])
            acc = tl.dot(tl.trans(x), y, acc)
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B, ROWS = 32, 160
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "first": "i32", "n": "i32", "B": "constexpr"}


@pytest.mark.parametrize("target", ["gfx1250", "gfx950", "gfx942"])
@pytest.mark.parametrize("tiles", [0, 1, 4])
def test_it_is_pipelined(tiles: int, target: str, tmp_path: Path):
    source, output = tmp_path / "source.py", tmp_path / "output.py"
    source.write_text(SOURCE)
    tensor = {"tensor": {"dtype": "", "shape": [ROWS, B], "stride": [B, 1], "storage": ROWS * B, "offset": 0}}
    values = {name: tensor for name, kind in SIGNATURE.items() if kind[0] == "*"} | {"first": B, "n": B + B * tiles}
    attrs = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "DS")
    options = {"num_warps": 4, "num_stages": 2}
    spec = LaunchSpec("p", "product", str(source), SIGNATURE, {"B": B}, attrs, options, (1,), values=values)
    result = translate_kernel(TranslateRequest(str(source), target, launches=(spec,)))
    assert result.text is not None and "NUM_BUFFERS" in result.text, result
    output.write_text(result.text)
    answer = validate_launch(str(source), str(output), spec, target)
    assert answer["status"] == "validated", (answer, result.text)
