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
MOVER, SPLIT = ("descriptor_matmul", "gfx1250"), ("split_k_matmul", "gfx942")
ATTENTION, LOSS = ("flash_attention", "gfx950"), ("cross_entropy", "gfx1201")
ROTARY, INT8, ROWS = ("rotary_embedding", "gfx1250"), ("int8_matmul", "gfx1201"), ("embedding", "gfx950")
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
A_TILE, B_TILE = (f"        tdm.async_load({x}_tiles, [0, off_k_ahead], {x}_smem.index(free_slot))\n" for x in "ab")
A_TILE_READ = "        a = a_smem.index(slot).load(a_operand)\n"
BY_OFFSET = "    for off_k in range(0, K, BLOCK_K):\n"
BY_NUMBER = "    for k in range(0, gl.cdiv(K, BLOCK_K)):\n        off_k = k * BLOCK_K\n"
SPLIT_LOOP = "    for k in range(0, gl.cdiv(K, BLOCK_K * SPLIT_K)):\n"
A_MOVES, B_MOVES = (f"        {x}_base += BLOCK_K * SPLIT_K * stride_{x}k\n" for x in "ab")
SPLIT_PRODUCT, A_KEPT = "        acc = cdna3.mfma(a, b, acc)\n", "        a_smem.index(slot).store(a_next)\n"
RESCALED = "        acc = acc * alpha[:, None]\n"
V_READ = "        v = async_copy.load_shared_relaxed(v_smem.index(slot), v_operand)\n"
V_PRODUCT = "cdna4.mfma(gl.convert_layout(p.to(v.dtype), p_operand), v, acc)"
SCALE_A = "    scale_a = cdna3.buffer_load(scale_a_ptr, offs_m_wmma, mask=offs_m_wmma < M)\n"
INT8_LOOP = "    for k in range(0, gl.cdiv(K, BLOCK_K)):\n"
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
    Edit("three buffers of the data mover", True, MOVER, (("NUM_BUFFERS: gl.constexpr = 2", "NUM_BUFFERS: gl.constexpr = 3"),)),
    Edit("copies in another order", True, MOVER, ((A_TILE + B_TILE, B_TILE + A_TILE),)),
    Edit("more padding", True, MOVER, (("[[128, 8]]", "[[128, 16]]"),)),
    Edit("reads before copies", True, MOVER, ((A_TILE_READ, ""), (A_TILE, A_TILE_READ + A_TILE))),
    Edit("a loop by numbers of tiles", True, MOVER, ((BY_OFFSET, BY_NUMBER),)),
    Edit("steps before a product", True, SPLIT, ((SPLIT_PRODUCT + A_MOVES, A_MOVES + SPLIT_PRODUCT),)),
    Edit("a hoisted step", True, SPLIT, ((SPLIT_LOOP, "    step = stride_ak * SPLIT_K * BLOCK_K\n" + SPLIT_LOOP), (SPLIT_PRODUCT + A_MOVES, SPLIT_PRODUCT + "        a_base += step\n"))),
    Edit("two tiles in flight", True, SPLIT, (("NUM_BUFFERS: gl.constexpr = 1", "NUM_BUFFERS: gl.constexpr = 2"),)),
    Edit("masks the other way round", True, SPLIT, (("(offs_m[:, None] < M) & (offs_k[None, :] < k_remaining)", "(offs_k[None, :] < k_remaining) & (offs_m[:, None] < M)"),)),
    Edit("three buffers of two tensors", True, ATTENTION, (("NUM_BUFFERS: gl.constexpr = 2", "NUM_BUFFERS: gl.constexpr = 3"),)),
    Edit("a maximum of what is scaled", True, ATTENTION, (("gl.max(qk_unscaled, 1) * qk_scale", "gl.max(qk, 1)"),)),
    Edit("rescaled later", True, ATTENTION, ((RESCALED, ""), (V_READ, RESCALED + V_READ))),
    Edit("added up behind the product", True, ATTENTION, ((V_PRODUCT, V_PRODUCT.replace("acc)", "gl.zeros([BLOCK_M, HEAD_DIM], gl.float32, layout=mma)) + acc")),)),
    Edit("fewer elements per lane", True, LOSS, (("gl.BlockedLayout([8], [32], [8], [0])", "gl.BlockedLayout([4], [32], [8], [0])"),)),
    Edit("factors swapped", True, LOSS, (("d * gl.exp(m - m_new)", "gl.exp(m - m_new) * d"),)),
    Edit("an offset in two steps", True, ROTARY, (("    offs = token * stride_token + heads", "    begin = token * stride_token\n    offs = begin + heads"),)),
    Edit("terms of a sum swapped", True, ROTARY, (("second * cos[None, :] + first * sin[None, :]", "first * sin[None, :] + second * cos[None, :]"),)),
    Edit("scales before the loop", True, INT8, ((SCALE_A, ""), (INT8_LOOP, SCALE_A + INT8_LOOP))),
    Edit("a factor in front", True, INT8, (("acc.to(gl.float32) * scale_a[:, None]", "scale_a[:, None] * acc.to(gl.float32)"),)),
    Edit("an index put together otherwise", True, ROWS, (("indices[:, None] * dim + cols[None, :]", "cols[None, :] + dim * indices[:, None]"),)),
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
    Edit("a copy that is not waited for", False, MOVER, (("(NUM_BUFFERS - 2) * 2", "(NUM_BUFFERS - 2) * 2 + 1"),)),
    Edit("no wait behind the loop", False, MOVER, (("    tdm.async_wait(0)\n    c = acc", "    c = acc"),)),
    Edit("a tile further", False, MOVER, (("off_k + (NUM_BUFFERS - 1) * BLOCK_K", "off_k + NUM_BUFFERS * BLOCK_K"),)),
    Edit("rows of the other tensor", False, MOVER, (("b_desc, add_offsets=[off_n, 0]", "b_desc, add_offsets=[off_m, 0]"),)),
    Edit("the stride of another tensor", False, MOVER, (("shape=[M, N], strides=[N, 1]", "shape=[M, N], strides=[M, 1]"),)),
    Edit("a store that is not waited for", False, MOVER, (("    tdm.async_store(desc, offsets, smem)\n    tdm.async_wait(0)\n", "    tdm.async_store(desc, offsets, smem)\n"),)),
    Edit("all programs from the first tile", False, SPLIT, (("offs_k_b = pid_k * BLOCK_K + ", "offs_k_b = "),)),
    Edit("a step of one tile", False, SPLIT, ((B_MOVES, B_MOVES.replace(" * SPLIT_K", "")),)),
    Edit("columns masked as rows", False, SPLIT, (("(offs_k_b[:, None] < k_remaining) & (offs_n[None, :] < N)", "(offs_k_b[:, None] < k_remaining) & (offs_n[None, :] < M)"),)),
    Edit("the next tile before its turn", False, SPLIT, ((SPLIT_LOOP, SPLIT_LOOP + "        k_next = k + 1\n"), ("k_remaining = K - k_ahead", "k_remaining = K - k_next"), ("NUM_BUFFERS: gl.constexpr = 1", "NUM_BUFFERS: gl.constexpr = 2"))),
    Edit("a sum that is not rescaled", False, ATTENTION, (("l_i = l_i * alpha + gl.sum(p, 1)", "l_i = l_i + gl.sum(p, 1)"),)),
    Edit("a maximum of one block", False, ATTENTION, (("gl.maximum(m_i, gl.max(qk_unscaled, 1) * qk_scale)", "gl.max(qk_unscaled, 1) * qk_scale"),)),
    Edit("a key past the end", False, ATTENTION, (("gl.where(cols[None, :] < N_CTX", "gl.where(cols[None, :] <= N_CTX"),)),
    Edit("a wait for one group less", False, ATTENTION, (("async_copy.wait_group(NUM_BUFFERS - 2)", "async_copy.wait_group(NUM_BUFFERS - 1)"),)),
    Edit("a sum of the last block", False, LOSS, (("d = d * gl.exp(m - m_new) + gl.sum", "d = gl.sum"),)),
    Edit("a promise of a size", False, LOSS, (("    m = -float(\"inf\")\n", "    gl.assume(n_cols % 8 == 0)\n    m = -float(\"inf\")\n"),)),
    Edit("another sign", False, ROTARY, (("first * cos[None, :] - second", "first * cos[None, :] + second"),)),
    Edit("the first half twice", False, ROTARY, (("buffer_load(x_ptr, offs + half", "buffer_load(x_ptr, offs"),)),
    Edit("scales of rows for columns", False, INT8, (("buffer_load(scale_b_ptr", "buffer_load(scale_a_ptr"),)),
    Edit("a promise of indices", False, ROWS, (("    mask = row_mask", "    indices = gl.multiple_of(indices, [8])\n    mask = row_mask"),)),
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
