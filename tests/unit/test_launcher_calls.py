"""Code that Helion generates: plain kernels, and a launcher that is given to the host function."""

from __future__ import annotations

import ast
from pathlib import Path

from translation_of import dedent

from gluonize.read.files.launcher_calls import with_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

HELION = dedent("""
    from __future__ import annotations

    import torch
    import triton
    import triton.language as tl
    from helion.runtime import default_launcher as _default_launcher


    @triton.jit
    def _helion_matmul(x, y, out, _BLOCK_SIZE_0: tl.constexpr, _BLOCK_SIZE_1: tl.constexpr, _BLOCK_SIZE_2: tl.constexpr):
        # src[matmul.py:9]: for tile_m, tile_n in hl.tile([m, n]):
        num_blocks_0 = tl.cdiv(256, _BLOCK_SIZE_0)
        pid_0 = tl.program_id(0) % num_blocks_0
        pid_1 = tl.program_id(0) // num_blocks_0
        offset_0 = pid_0 * _BLOCK_SIZE_0
        indices_0 = (offset_0 + tl.arange(0, _BLOCK_SIZE_0)).to(tl.int32)
        offset_1 = pid_1 * _BLOCK_SIZE_1
        indices_1 = (offset_1 + tl.arange(0, _BLOCK_SIZE_1)).to(tl.int32)
        # src[matmul.py:10]: acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        acc = tl.full([_BLOCK_SIZE_0, _BLOCK_SIZE_1], 0.0, tl.float32)
        for offset_2 in tl.range(0, 128, _BLOCK_SIZE_2):
            indices_2 = offset_2 + tl.arange(0, _BLOCK_SIZE_2).to(tl.int32)
            acc_copy = acc
            acc_copy_0 = acc_copy
            load = tl.load(x + (indices_0[:, None] * 128 + indices_2[None, :] * 1), None)
            load_1 = tl.load(y + (indices_2[:, None] * 192 + indices_1[None, :] * 1), None)
            acc = tl.dot(tl.cast(load, tl.float16), tl.cast(load_1, tl.float16), acc=acc_copy_0, input_precision='tf32', out_dtype=tl.float32)
        v_0 = tl.cast(acc, tl.float16)
        tl.store(out + (indices_0[:, None] * 192 + indices_1[None, :] * 1), v_0, None)


    def matmul(x: torch.Tensor, y: torch.Tensor, *, _launcher=_default_launcher):
        m, k = x.size()
        k2, n = y.size()
        out = torch.empty([256, 192], dtype=torch.float16, device=x.device)
        _BLOCK_SIZE_0 = 64
        _BLOCK_SIZE_1 = 32
        _BLOCK_SIZE_2 = 16
        _launcher(_helion_matmul, (triton.cdiv(256, _BLOCK_SIZE_0) * triton.cdiv(192, _BLOCK_SIZE_1),), x, y, out, _BLOCK_SIZE_0, _BLOCK_SIZE_1, _BLOCK_SIZE_2, num_warps=8, num_stages=3)
        return out
    """)


def test_a_launcher_s_call_is_the_launch(tmp_path: Path):
    source = tmp_path / "matmul.py"
    source.write_text(HELION)
    result = translate_kernel(TranslateRequest(str(source), "gfx942", search_path=(str(tmp_path),)))
    assert result.text is not None, result.diagnostics
    (spec,) = (outcome.spec for outcome in result.outcomes)
    assert spec.constexprs == {"_BLOCK_SIZE_0": 64, "_BLOCK_SIZE_1": 32, "_BLOCK_SIZE_2": 16}
    assert spec.options == {"num_warps": 8, "num_stages": 3}
    assert spec.signature["out"] == "*fp16"
    # The author's call stays as it is.
    call = next(line for line in HELION.splitlines() if "_launcher(_helion" in line)
    assert call in result.text.splitlines() and "default_launcher as _default_launcher" in result.text


def test_other_functions_that_are_given_a_kernel_launch_nothing():
    text = "def f(kernel, launch=print):\n    launch(kernel, (1,), 2)\n"
    assert ast.unparse(with_launches(ast.parse(text))) == ast.unparse(ast.parse(text))
