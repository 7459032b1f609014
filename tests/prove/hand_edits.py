"""Edits of generated files as people make them: those that keep what the kernel computes, and those that do not.

python tests/prove/hand_edits.py        # what the prover says of each
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE.parent, HERE.parent.parent) if str(p) not in sys.path]

import fixture_set  # noqa: E402

from gluonize.judge.machine.stages import source_stage, translated_stage  # noqa: E402
from gluonize.judge.prove.both_sides import Verdict  # noqa: E402
from gluonize.judge.verdict.proof import proved  # noqa: E402
from gluonize.read.spec.launch import read_launches  # noqa: E402


@dataclass(frozen=True)
class Edit:
    """keeps: what the kernel computes. changes: (text of a golden, what stands in its place)."""

    name: str
    keeps: bool
    golden: tuple[str, str]
    changes: tuple[tuple[str, str], ...]

    def verdict(self, folder: Path) -> Verdict:
        """What the prover says of the first launch. Raises: TranslationError where the file does not compile."""
        fixture, target = self.golden
        own = fixture_set.Fixture(fixture_set.ROOT / fixture)
        text = own.golden_file(target).read_text()
        for before, after in self.changes:
            assert before in text, f"{self.name}: there is no `{before}` in the golden any more"
            text = text.replace(before, after)
        file = folder / f"{fixture}_{target}.py"
        file.write_text(text)
        spec = read_launches(str(own.launches_file))[0]
        left, right = source_stage(str(own.kernel_file), spec, target), translated_stage(str(file), spec, target)
        return proved(left, right, spec, target, None)


ADD, SOFTMAX = ("vector_add", "gfx942"), ("softmax", "gfx950")
NORM, MATMUL = ("layer_norm", "gfx942"), ("matmul", "gfx950")
X_LOAD, Y_LOAD = (f"{name} = cdna3.buffer_load({name}_ptr, offsets, mask=mask)\n" for name in ("x", "y"))
FIRST_LOOP = """    for off in range(0, N, BLOCK_SIZE):
        cols = off + gl.arange(0, BLOCK_SIZE, layout=layout)
        a = cdna3.buffer_load(X, cols, mask=cols < N).to(gl.float32)
        _mean += a
"""
IN_TWO = """    half = gl.cdiv(N, BLOCK_SIZE) // 2 * BLOCK_SIZE
    for off in range(0, half, BLOCK_SIZE):
        cols = off + gl.arange(0, BLOCK_SIZE, layout=layout)
        a = cdna3.buffer_load(X, cols, mask=cols < N).to(gl.float32)
        _mean += a
    for off in range(half, N, BLOCK_SIZE):
        cols = off + gl.arange(0, BLOCK_SIZE, layout=layout)
        a = cdna3.buffer_load(X, cols, mask=cols < N).to(gl.float32)
        _mean += a
"""
A_READ = "        a = async_copy.load_shared_relaxed(a_smem.index(slot), a_operand)\n"
B_READ = "        b = async_copy.load_shared_relaxed(b_smem.index(slot), b_operand)\n"
A_STEP, B_STEP = ("        a_base += BLOCK_K * stride_ak\n", "        b_base += BLOCK_K * stride_bk\n")
A_SHARED = """cdna4.compute_efficient_padded_shared_layout(
        a_operand, [BLOCK_M, BLOCK_K], a_ptr.dtype.element_ty
    )
    # LDS: padded by 32"""
A_PADDED = """gl.PaddedSharedLayout(
        [[512, 16]],
        [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [64, 0], [32, 0], [16, 0], [1, 0], [2, 0], [4, 0]] + [[8, 0]],
        [],
        [128, 64],
    )
    # LDS: padded by 32"""
COLUMN = "col_offsets + row_offs"
MATMUL_LOOP = "    for k in range(0, gl.cdiv(K, BLOCK_K)):\n"

EDITS = (
    Edit("renamed", True, ADD, (("block_start", "first"),)),
    Edit("statements in another order", True, ADD, ((X_LOAD + "    " + Y_LOAD, Y_LOAD + "    " + X_LOAD),)),
    Edit("another layout", True, ADD, (("gl.BlockedLayout([4], [64], [4], [0])", "gl.BlockedLayout([8], [64], [4], [0])"),)),
    Edit("operands of a sum swapped", True, ADD, (("output = x + y", "output = y + x"),)),
    Edit("computed twice", True, ADD, (("mask = offsets < n_elements", "mask = (block_start + gl.arange(0, BLOCK_SIZE, layout=layout)) < n_elements"),)),
    Edit("a comparison the other way round", True, ADD, (("offsets < n_elements", "n_elements > offsets"),)),
    Edit("a mask that says no more", True, ADD, (("offsets < n_elements", "(offsets < n_elements) & (offsets <= n_elements)"),)),
    Edit("hoisted invariant", True, SOFTMAX, (("    for row_idx in", "    safe = -float(\"inf\")\n    for row_idx in"), ("other=-float(\"inf\")", "other=safe"))),
    Edit("offsets put together otherwise", True, SOFTMAX, ((COLUMN, "row_offs + col_offsets"),)),
    Edit("a mask within the loop", True, SOFTMAX, (("        row_offs =", "        inside = col_offsets < n_cols\n        row_offs ="), ("mask=mask, other", "mask=inside, other"))),
    Edit("a layout of fewer elements", True, SOFTMAX, (("gl.BlockedLayout([4], [64], [4], [0])", "gl.BlockedLayout([2], [64], [4], [0])"),)),
    Edit("a load earlier", True, NORM, (("        b = cdna3.buffer_load(B, cols, mask=mask)\n", ""), ("        w = cdna3", "        b = cdna3.buffer_load(B, cols, mask=mask)\n        w = cdna3"))),
    Edit("a product the other way round", True, NORM, (("x_hat * w + b", "b + w * x_hat"),)),
    Edit("a loop in two", True, NORM, ((FIRST_LOOP, IN_TWO),)),
    Edit("a mask combined", True, NORM, (("        mask = cols < N\n", "        mask = (cols < N) & (cols >= 0)\n"),)),
    Edit("three buffers", True, MATMUL, (("NUM_BUFFERS: gl.constexpr = 2", "NUM_BUFFERS: gl.constexpr = 3"),)),
    Edit("four buffers", True, MATMUL, (("NUM_BUFFERS: gl.constexpr = 2", "NUM_BUFFERS: gl.constexpr = 4"),)),
    Edit("another padding", True, MATMUL, ((A_SHARED, A_PADDED),)),
    Edit("reads in another order", True, MATMUL, ((A_READ, ""), (B_READ, B_READ + A_READ))),
    Edit("a step at another place", True, MATMUL, ((B_STEP + "    # Copies past", "    # Copies past"), (A_READ, B_STEP + A_READ))),
    Edit("a mask of one more", False, ADD, (("offsets < n_elements", "offsets <= n_elements"),)),
    Edit("no mask of a store", False, ADD, (("output_ptr, offsets, mask=mask", "output_ptr, offsets"),)),
    Edit("another operation", False, ADD, (("output = x + y", "output = x - y"),)),
    Edit("another block", False, ADD, (("block_start = pid * BLOCK_SIZE", "block_start = pid * (BLOCK_SIZE // 2)"),)),
    Edit("one argument twice", False, ADD, (("buffer_load(y_ptr", "buffer_load(x_ptr"),)),
    Edit("another fill", False, SOFTMAX, (("other=-float(\"inf\")", "other=0.0"),)),
    Edit("a row left out", False, SOFTMAX, (("range(row_start, n_rows, row_step)", "range(row_start, n_rows - 1, row_step)"),)),
    Edit("another base of an exponential", False, SOFTMAX, (("gl.exp(", "gl.exp2("),)),
    Edit("the stride of the other tensor", False, SOFTMAX, (("row_idx * output_row_stride", "row_idx * input_row_stride"),)),
    Edit("a quotient upside down", False, SOFTMAX, (("numerator / denominator", "denominator / numerator"),)),
    Edit("a sum that begins late", False, NORM, ((FIRST_LOOP, FIRST_LOOP.replace("range(0, N", "range(BLOCK_SIZE, N")),)),
    Edit("a variance around nothing", False, NORM, (("gl.where(cols < N, x - mean, 0.0)", "gl.where(cols < N, x, 0.0)"),)),
    Edit("a mean of the whole block", False, NORM, (("mean = gl.sum(_mean, axis=0) / N", "mean = gl.sum(_mean, axis=0) / BLOCK_SIZE"),)),
    Edit("a wait for one less", False, MATMUL, (("async_copy.wait_group(NUM_BUFFERS - 2)", "async_copy.wait_group(NUM_BUFFERS - 1)"),)),
    Edit("the slot that is filled", False, MATMUL, (("a_smem.index(slot)", "a_smem.index(free_slot)"),)),
    Edit("a step too many", False, MATMUL, ((A_READ, A_STEP + A_READ),)),
    Edit("the tile behind", False, MATMUL, (("k_ahead = k + NUM_BUFFERS - 1", "k_ahead = k + NUM_BUFFERS"),)),
    Edit("an iteration too few", False, MATMUL, ((MATMUL_LOOP, MATMUL_LOOP.replace("gl.cdiv(K, BLOCK_K)", "gl.cdiv(K, BLOCK_K) - 1")),)),
    Edit("rows that wrap at another number", False, MATMUL, (("% M\n", "% N\n"),)),
    Edit("rows of a store", False, MATMUL, (("(offs_cm[:, None] < M)", "(offs_cm[:, None] < N)"),)),
)  # fmt: skip


def main() -> int:
    wrong = kept = 0
    with tempfile.TemporaryDirectory() as folder:
        for edit in EDITS:
            verdict = edit.verdict(Path(folder))
            wrong += verdict.holds and not edit.keeps
            kept += verdict.holds and edit.keeps
            print(f"{'keeps' if edit.keeps else 'wrong'}  {edit.name}: {verdict.word} {verdict.why}")
    print(f"{kept} of {sum(e.keeps for e in EDITS)} that keep the meaning are proved, {wrong} of the others")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
