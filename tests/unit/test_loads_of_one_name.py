"""Two loads of a pipelined loop that assign the same variable have tiles of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent

from translator.lowering.worker import WorkerPool
from translator.request import TranslateRequest
from translator.source.launch_spec import LaunchSpec

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(w_ptr, h_ptr, c_ptr, T, B: tl.constexpr):
        o = tl.arange(0, B)
        h = tl.load(h_ptr + o[:, None] * B + o[None, :])
        for t in range(0, T):
            rows = (t * B + o)[:, None] * (2 * B)
            w = tl.load(w_ptr + rows + o[None, :])
            c = tl.dot(w, h)
            w = tl.load(w_ptr + rows + (B + o)[None, :])
            c = tl.dot(w, h, c)
            tl.store(c_ptr + (t * B + o)[:, None] * B + o[None, :], c)
""")
SIGNATURE = {"w_ptr": "*fp16", "h_ptr": "*fp16", "c_ptr": "*fp32", "T": "i32", "B": "constexpr"}


@pytest.mark.parametrize("target", ["gfx1250", "gfx950", "gfx942"])
def test_each_load_has_its_own_tiles(target: str, tmp_path: Path):
    source, output = tmp_path / "source.py", tmp_path / "output.py"
    source.write_text(SOURCE)
    tensor = {"tensor": {"dtype": "", "shape": [1 << 15], "stride": [1], "storage": 1 << 15, "offset": 0}}
    values = {name: tensor for name, kind in SIGNATURE.items() if kind[0] == "*"} | {"T": 5}
    attrs = dict.fromkeys(("w_ptr", "h_ptr", "c_ptr"), "DS")
    options = {"num_warps": 4, "num_stages": 2}
    spec = LaunchSpec("t", "kernel", str(source), SIGNATURE, {"B": 32}, attrs, options, (1,), values=values)
    with WorkerPool(1) as pool:
        request = TranslateRequest(str(source), target, launches=(spec,))
        text = pool.call("translator.translation:translate_kernel", request).text
        assert text is not None and "NUM_BUFFERS" in text, text
        output.write_text(text)
        answer = pool.call("translator.validate:validate_launch", str(source), str(output), spec, target)
    assert answer["status"] == "validated", answer
    assert "w_smem" in text and "w_2_smem" in text, text
