"""`x = f(x)` in several layouts: none is made of another's new value."""

from __future__ import annotations

from pathlib import Path

from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def moved(p, offs, B: tl.constexpr):
        return p + B, offs + B


    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, K, trips, B: tl.constexpr):
        r = tl.arange(0, B)
        p = a_ptr + r[:, None] * 256 + r[None, :]
        offs = r
        for t in range(trips):
            p, offs = moved(p, offs, B)
        p = p + K
        acc = tl.zeros((B, B), dtype=tl.float32)
        for k in range(0, K, B):
            offs += B // 2
            b = tl.load(b_ptr + offs[:, None] * B + r[None, :])
            offs += B // 2
            a = tl.load(p)
            p += B
            acc = tl.dot(a, b, acc)
        acc += tl.load(p).to(tl.float32)
        tl.store(c_ptr + r[:, None] * B + r[None, :], acc)
""")
B = 32


def test_variants_of_a_variable_redefined_from_itself(tmp_path: Path):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "trips": "i32"}
    values = {"a_ptr": tensor(B, 256), "b_ptr": tensor(256, B), "c_ptr": tensor(B, B), "K": 64, "trips": 1}
    spec = launch("kernel", signature, {"B": B}, values=values)
    text = validated(tmp_path, SOURCE, spec, "gfx1201")
    lines = [line.strip() for line in text.splitlines()]
    plain = lines.index("p = p + K")
    twins = [i for i, line in enumerate(lines) if line.startswith("p_") and line.endswith(" + K")]
    assert twins and max(twins) < plain, text
