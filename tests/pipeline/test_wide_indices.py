"""Loops whose index has 64 bits: the coordinates of the tensor data mover have 32, also before the loop."""

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
    def product(x_ptr, y_ptr, z_ptr, n, start, B: tl.constexpr):
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(FIRST, n, B):
            rows = i + o
            x = tl.load(x_ptr + rows[:, None] * B + o[None, :])
            y = tl.load(y_ptr + rows[:, None] * B + o[None, :])
            acc = tl.dot(tl.trans(x), y, acc)
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B, ROWS = 32, 256
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i64", "start": "i64", "B": "constexpr"}


@pytest.mark.parametrize("first", ["0", "B", "start"])
def test_coordinates_of_the_first_tiles(first: str, tmp_path: Path):
    source, output = tmp_path / "source.py", tmp_path / "output.py"
    source.write_text(SOURCE.replace("FIRST", first))
    tensor = {"tensor": {"dtype": "", "shape": [ROWS, B], "stride": [B, 1], "storage": ROWS * B, "offset": 0}}
    values = {name: tensor for name, kind in SIGNATURE.items() if kind[0] == "*"} | {"n": ROWS, "start": B}
    attrs = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "DS")
    options = {"num_warps": 4, "num_stages": 2}
    spec = LaunchSpec("p", "product", str(source), SIGNATURE, {"B": B}, attrs, options, (1,), values=values)
    result = translate_kernel(TranslateRequest(str(source), "gfx1250", launches=(spec,)))
    assert result.text is not None and "NUM_BUFFERS" in result.text, result
    output.write_text(result.text)
    answer = validate_launch(str(source), str(output), spec, "gfx1250")
    assert answer["status"] == "validated", answer
    assert "tdm." in result.text, result.text
