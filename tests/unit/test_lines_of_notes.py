"""Lines in notes are lines of the file, not of the function."""

import re

from translation_of import dedent, launch, translate

SOURCE = dedent("""
    import triton
    import triton.language as tl


    # Ten lines
    # before
    # the kernel.
    @triton.jit
    def product(x, w, y, K, B: tl.constexpr):
        r = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            a = tl.load(w + r[:, None] * K + k + r[None, :])  # this one
            b = tl.load(w + (k + r)[:, None] * B + r[None, :])  # this one
            acc = tl.dot(a, b, acc)
            tl.store(w + (k * 3 + r)[:, None] * B + r[None, :], b)  # this one
        tl.store(y + r[:, None] * B + r[None, :], acc)
    """)


def test_the_line_of_a_load_is_that_of_the_file(tmp_path):
    spec = launch(
        "product",
        {**dict.fromkeys("xwy", "*fp16"), "K": "i32"},
        {"B": 32},
        attrs=dict.fromkeys("xwy", "DS") | {"K": "D"},
    )
    (outcome,) = translate(tmp_path, SOURCE, spec, target="gfx950").outcomes
    (kept,) = outcome.kept_loops
    said = [int(n) for n in re.findall(r"in line (\d+)", kept.reason)]
    assert len(said) == 2 and {SOURCE.splitlines()[n - 1].partition("# ")[2] for n in said} == {"this one"}, kept
    assert "for k in" in SOURCE.splitlines()[kept.line - 1]
