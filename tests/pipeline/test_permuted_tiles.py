"""A tile in LDS that is read as it lies and permuted: both reads come before the barriers of what else the body puts there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, tensor, validated

from gluonize.judge.lower.jobs import lower_file

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def backward(k_ptr, q_ptr, z_ptr, n, B: tl.constexpr, D: tl.constexpr):
        o, d = tl.arange(0, B), tl.arange(0, D)
        k = tl.load(k_ptr + o[:, None] * D + d[None, :])
        acc = tl.zeros((B, D), tl.float32)
        for i in range(0, n, 32):
            columns = i + tl.arange(0, 32)
            q = tl.load(q_ptr + d[:, None] + columns[None, :] * D, mask=(columns < n)[None, :], other=0.0)
            s = tl.dot(k, q)
            acc = tl.dot(s.to(tl.float16), tl.trans(q), acc)
        tl.store(z_ptr + o[:, None] * D + d[None, :], acc)
    """)
SIGNATURE = {"k_ptr": "*fp16", "q_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32"}
READ = r"^ +q_t\w* = q_smem\.index\(slot\)\.permute\(\[1, 0\]\)\.load"


def translated(folder: Path, target: str, n: int = 80):
    values = dict.fromkeys(("k_ptr", "q_ptr", "z_ptr"), tensor(128, 16)) | {"n": n}
    spec = launch("backward", SIGNATURE, {"B": 64, "D": 16}, warps=2, values=values)
    return validated(folder, SOURCE, spec, target), spec


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n", [0, 16, 80])
def test_it_is_read_in_both_ways_before_the_body_s_own_operands(n: int, tmp_path: Path):
    text, spec = translated(tmp_path, "gfx942", n)
    body = text.partition("for i in range(0, n")[2]
    (read,) = re.finditer(READ, body, re.M)
    assert read.start() < body.index("s = cdna3.mfma(")
    ours, theirs = compiled(tmp_path, text, spec), lower_file(str(tmp_path / "source.py"), spec, "gfx942")
    assert ours.metrics.loop.barrier <= theirs.metrics.loop.barrier


def test_rdna_reads_it_where_it_is_used(tmp_path: Path):
    text, _ = translated(tmp_path, "gfx1201")
    assert "q_smem.index(slot).permute([1, 0]).load(" in text and not re.search(READ, text, re.M)
