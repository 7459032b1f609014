"""The matrix instructions of each architecture. `rules/targets.py` says what the short names of sources mean."""

from __future__ import annotations

from gluonize.rules.architecture import MatrixRow


def _rows(
    kind: str, dtypes: str, acc: str, source: str, *shapes: tuple, precision: str = "ieee"
) -> tuple[MatrixRow, ...]:
    """Rows of one operand family; each shape is (M, N, K, k_width, cycles)."""
    return tuple(
        MatrixRow(kind, (m, n, k), tuple(dtypes.split()), tuple(acc.split()), k_width, source, cycles, precision)
        for m, n, k, k_width, cycles in shapes
    )


# k_width is what Triton 3.9's `OptimizeDotOperands`/`AccelerateAMDMatmul` print for a dot of that dtype (`lowered`).
GFX942_MATRIX = (
    *_rows(
        "mfma",
        "fp16 bf16",
        "fp32",
        "lowered; cycles: tutorials (gfx942 GEMM), peak 1307.4 TFLOPS = 304 CUs * 4 * 512 * 2.1 GHz",
        (32, 32, 8, 4, 32),
        (16, 16, 16, 4, 16),
    ),
    *_rows("mfma", "fp16 bf16", "fp32", "lowered, for M < 16 and transposed=False", (4, 64, 64, 4, None)),
    *_rows(
        "mfma",
        "fp8e4b8 fp8e5b16",
        "fp32",
        "lowered; cycles: peak 2614.9 TFLOPS",
        (32, 32, 16, 8, 32),
        (16, 16, 32, 8, 16),
    ),
    *_rows("mfma", "int8", "int32", "lowered; cycles: peak 2614.9 TOPS", (32, 32, 16, 8, 32), (16, 16, 32, 8, 16)),
    *_rows(
        "mfma",
        "fp32",
        "fp32",
        "lowered as v_mfma_*_xf32, what tl.dot means by default on this target; cycles: calculator",
        (32, 32, 4, 2, 32),
        (16, 16, 8, 2, 16),
        precision="tf32",
    ),
    *_rows(
        "mfma",
        "fp32",
        "fp32",
        "lowered; cycles: peak 163.4 TFLOPS for 32x32x2, calculator",
        (32, 32, 2, 1, 64),
        (16, 16, 4, 1, 32),
    ),
    *_rows("mfma", "fp64", "fp64", "lowered with element_bitwidth=64; cycles: peak 163.4 TFLOPS", (16, 16, 4, 1, 32)),
)

GFX950_MATRIX = (
    *_rows(
        "mfma",
        "fp16 bf16",
        "fp32",
        "lowered; cycles: tutorials (mfma_efficiency.md), CDNA4 ISA 8 passes of 4",
        (32, 32, 16, 8, 32),
        (16, 16, 32, 8, 16),
    ),
    *_rows(
        "mfma",
        "fp16 bf16",
        "fp32",
        "lowered, when BLOCK_K is smaller than the wide forms need; cycles: llvm, passes as on gfx942",
        (32, 32, 8, 4, 32),
        (16, 16, 16, 4, 16),
        (4, 64, 64, 4, None),
    ),
    *_rows(
        "mfma",
        "fp8e4nv fp8e5",
        "fp32",
        "lowered, for small K; cycles: llvm, passes as on gfx942",
        (32, 32, 16, 8, 32),
        (16, 16, 32, 8, 16),
    ),
    *_rows(
        "mfma",
        "int8",
        "int32",
        "lowered; cycles: peak 5000 TOPS for 32x32x32, llvm for the others",
        (32, 32, 32, 16, 32),
        (16, 16, 64, 16, 16),
        (32, 32, 16, 8, 32),
        (16, 16, 32, 8, 16),
    ),
    *_rows(
        "mfma",
        "fp32",
        "fp32",
        "lowered; cycles: peak 157.3 TFLOPS for 32x32x2; llvm, passes as on gfx942",
        (32, 32, 2, 1, 64),
        (16, 16, 4, 1, 32),
    ),
    *_rows("mfma", "fp64", "fp64", "lowered with element_bitwidth=64; cycles: peak 78.6 TFLOPS", (16, 16, 4, 1, 64)),
    *_rows(
        "mfma_scaled",
        "fp8e4nv fp8e5",
        "fp32",
        "lowered through mfma_scaled only; cycles: tutorials (a16w16 notes), peak 5.03 PFLOPS for 16x16x128; FlyDSL's"
        " tuning guide for 32x32x64 (where LLVM's schedule model has half of both)",
        (32, 32, 64, 16, 64),
        (16, 16, 128, 16, 32),
    ),
    *_rows(
        "mfma_scaled",
        "e2m1",
        "fp32",
        "lowered through mfma_scaled only; cycles: tutorials, peak 10.07 PFLOPS for 16x16x128; FlyDSL's tuning guide for"
        " 32x32x64",
        (32, 32, 64, 16, 32),
        (16, 16, 128, 16, 16),
    ),
)

_GFX1250_CYCLES = "cycles: llvm (GFX1250SpeedModel); the announced peak agrees for fp8 16x16x128"
GFX1250_MATRIX = (
    *_rows(
        "wmma",
        "fp16 bf16",
        "fp32",
        f"lowered (the only K; fp16 accumulators do not lower); {_GFX1250_CYCLES}",
        (16, 16, 32, 8, 8),
    ),
    *_rows("wmma", "fp8e4nv fp8e5", "fp32", f"lowered; {_GFX1250_CYCLES}", (16, 16, 128, 8, 8), (16, 16, 64, 8, 4)),
    *_rows("wmma", "int8", "int32", f"lowered; {_GFX1250_CYCLES}", (16, 16, 64, 8, 16)),
    *_rows("wmma", "fp32", "fp32", "lowered; cycles: llvm, the latency", (16, 16, 4, 2, 16)),
    *_rows(
        "wmma_scaled",
        "fp8e4nv fp8e5",
        "fp32",
        f"lowered through wmma_scaled; {_GFX1250_CYCLES}",
        (16, 16, 128, 16, 8),
    ),
    *_rows(
        "wmma_scaled",
        "e2m1",
        "fp32",
        f"lowered through wmma_scaled, both operands e2m1; {_GFX1250_CYCLES}",
        (16, 16, 128, 16, 4),
    ),
    *_rows(
        "wmma_scaled",
        "e2m1",
        "fp32",
        f"lowered through wmma_scaled, both operands e2m1; {_GFX1250_CYCLES}",
        (32, 16, 128, 16, 8),
    ),
)

RDNA3_MATRIX = (
    *_rows(
        "wmma",
        "fp16 bf16",
        "fp32 fp16",
        "lowered; cycles: peak 123 TFLOPS = 512 operations per clock and CU",
        (16, 16, 16, 16, 32),
    ),
    *_rows("wmma", "int8", "int32", "lowered; cycles: calculator", (16, 16, 16, 16, 32)),
)

RDNA4_MATRIX = (
    *_rows(
        "wmma",
        "fp16 bf16",
        "fp32 fp16",
        "lowered; cycles: peak 191 TFLOPS = 1024 operations per clock and CU",
        (16, 16, 16, 8, 16),
    ),
    *_rows("wmma", "int8", "int32", "lowered; cycles: calculator", (16, 16, 16, 8, 8)),
    *_rows("wmma", "fp8e4nv fp8e5", "fp32", "lowered; cycles: calculator", (16, 16, 16, 8, 8)),
)
