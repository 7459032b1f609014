"""One table per architecture: wave size, LDS, registers, matrix instructions, async copies.

Every number carries its source. Short names of the sources:

* `triton`: `third_party/amd/lib` of Triton 3.9 (`TargetFeatures.cpp`, `TargetInfo.cpp`, `backends/amd/compiler.py`);
* `lowered`: the instruction was produced by compiling a Gluon kernel with the Triton 3.9.0 wheel, without a GPU;
* `isa`: the AMD instruction set manual of the family (CDNA3, CDNA4, RDNA3, RDNA4);
* `llvm`: `llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp` (register files, granules, waves);
* `peak`: AMD's published peak throughput, turned into cycles by
  `cycles = 2 * M * N * K / (peak / (compute units * SIMDs * clock))`;
* `calculator`: AMD's matrix instruction calculator;
* `tutorials`: measured in the ROCm Gluon tutorials (`docs/mfma_efficiency.md`, GEMM and attention notes).

Units: bytes for LDS, 32-bit registers per lane for VGPRs, cycles per SIMD for matrix instructions. A number nobody has
published is None, never a guess. This module imports nothing heavy, so that `gluonize --help` stays fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from translator.diagnostics import Diagnostic, TranslationError

FAMILIES = ("cdna3", "cdna4", "cdna5", "rdna3", "rdna4")
ASYNC_MECHANISMS = ("none", "direct_to_lds", "async_copy", "tdm")
# Bits per element of Triton's dtype names, for the self-checks below; e2m1 is the fp4 format of the scaled dots.
_BITS = {
    "fp64": 64,
    "fp32": 32,
    "fp16": 16,
    "bf16": 16,
    "int8": 8,
    "fp8e4nv": 8,
    "fp8e5": 8,
    "fp8e4b8": 8,
    "fp8e5b16": 8,
    "e2m1": 4,
}


@dataclass(frozen=True)
class MatrixRow:
    """One matrix instruction that Gluon reaches on a target.

    kind: `mfma`, `wmma`, `mfma_scaled` or `wmma_scaled`. shape: (M, N, K) in elements. dtypes: what both operands may
    be (mixes only within one row). accumulators: dtypes of C and D. k_width: consecutive K elements per lane that
    Triton's own compiler asks for. cycles: issue interval per SIMD, None where nobody published it. precision: what a
    fp32 dot means with this row (`ieee` or `tf32`).
    """

    kind: str
    shape: tuple[int, int, int]
    dtypes: tuple[str, ...]
    accumulators: tuple[str, ...]
    k_width: int
    source: str
    cycles: int | None = None
    precision: str = "ieee"

    def __post_init__(self):
        assert self.kind in (
            "mfma",
            "wmma",
            "mfma_scaled",
            "wmma_scaled",
        ), f"unknown matrix instruction kind {self.kind}"
        assert len(self.shape) == 3 and all(x > 0 and x & (x - 1) == 0 for x in self.shape), f"bad shape {self.shape}"
        unknown = [d for d in self.dtypes if d not in _BITS]
        assert self.dtypes and not unknown, f"{self.kind} {self.shape}: unknown operand dtypes {unknown}"
        assert self.precision in ("ieee", "tf32"), self.precision
        assert self.precision == "ieee" or self.dtypes == ("fp32",), f"tf32 is a precision of fp32 dots: {self}"
        assert self.source, f"{self.kind} {self.shape} states no source"


@dataclass(frozen=True)
class Target:
    """What the translator knows about one architecture.

    lds_bytes: what one workgroup may allocate; lds_pool_bytes: what the workgroups of one scheduling unit share.
    The scheduling unit is where a workgroup lives: a CU on CDNA, a WGP (two CUs) on RDNA, with `simds` SIMDs.
    vgpr_file: registers per lane of one SIMD, handed out in steps of vgpr_granule, at most vgpr_limit to one wave
    (on CDNA3 and CDNA4 accumulation registers come out of the same file). max_waves: waves per SIMD.
    direct_to_lds_bits: widths one lane may copy from global memory straight to LDS.

    What a target can do, for whoever has to choose (a family's name says nothing about that):
    copies_take_buffers: its copies to LDS come as buffer operations too, which leave zero where they are out of bounds.
    relaxed_lds_reads: Gluon has reads of copied tiles for it that no wait of the compiler's own stands before.
    copies_to_global: its copies go from LDS to global memory too. separate_matrix_pipe: matrix instructions run beside
    vector instructions of other waves on the same SIMD. lds_partitions: parts of LDS that are read at the same time.
    casts_fp8: Triton has instructions for casts of OCP's fp8 formats on it.
    """

    name: str
    product: str
    family: str
    warp_size: int
    lds_bytes: int
    lds_pool_bytes: int
    lds_banks: int
    simds: int
    vgpr_file: int
    vgpr_granule: int
    vgpr_limit: int
    max_waves: int
    matrix_version: int
    matrix: tuple[MatrixRow, ...]
    async_mechanism: str
    direct_to_lds_bits: tuple[int, ...]
    supports_tdm: bool
    supports_warp_specialization: bool
    copies_take_buffers: bool
    relaxed_lds_reads: bool
    copies_to_global: bool
    separate_matrix_pipe: bool
    lds_partitions: int
    casts_fp8: bool
    native_fp8: tuple[str, ...]
    compute_units: int | None
    clock_ghz: float | None
    sources: dict[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self):
        def check(condition: bool, message: str) -> None:
            assert condition, f"target {self.name}: {message}"

        check(self.family in FAMILIES, f"unknown family {self.family!r}")
        check(self.warp_size == (64 if self.family in ("cdna3", "cdna4") else 32), f"warp size {self.warp_size}")
        check(self.async_mechanism in ASYNC_MECHANISMS, f"unknown async mechanism {self.async_mechanism!r}")
        check(self.supports_tdm == (self.async_mechanism == "tdm"), "TDM and the async mechanism disagree")
        check(
            bool(self.direct_to_lds_bits) or self.async_mechanism in ("none",),
            f"{self.async_mechanism} needs direct-to-LDS widths",
        )
        check(0 < self.lds_bytes <= self.lds_pool_bytes, f"LDS {self.lds_bytes} of {self.lds_pool_bytes}")
        check(
            self.lds_pool_bytes % self.lds_bytes == 0,
            f"LDS {self.lds_pool_bytes} is not a multiple of {self.lds_bytes}",
        )
        check(self.lds_banks in (32, 64), f"{self.lds_banks} LDS banks")
        check(self.vgpr_limit <= self.vgpr_file, f"one wave may use {self.vgpr_limit} of {self.vgpr_file} VGPRs")
        check(self.vgpr_limit % 8 == 0 and self.vgpr_granule % 8 == 0, "VGPRs are handed out in steps of 8")
        check(self.waves_per_simd(1) == self.max_waves, "a small kernel must reach max_waves")
        for row in self.matrix:
            self._check_row(row, check)
        check(self.has_async_copies or not self.copies_take_buffers, "buffer copies without copies")
        check(self.has_async_copies or not self.copies_to_global, "copies from LDS without copies to it")
        check(self.relaxed_lds_reads <= self.has_async_copies, "relaxed reads of what no copy has written")
        for fact in ("lds", "registers", "async", "copies", "matrix pipe", "casts", "clock"):
            check(fact in self.sources, f"no source for {fact}")

    def _check_row(self, row: MatrixRow, check) -> None:
        m, n, k = row.shape
        check(row.kind.startswith("mfma") == (self.warp_size == 64), f"{row.kind} on wave{self.warp_size}")
        check(m * n % self.warp_size == 0, f"{m}x{n} accumulator does not spread over {self.warp_size} lanes")
        # WMMA version 1 keeps each operand twice, once per half wave (RDNA3 ISA, section 7.9).
        replicas = 2 if self.matrix_version == 1 and row.kind == "wmma" else 1
        for rows in (m, n):
            per_lane = rows * k * replicas // self.warp_size
            check(
                per_lane % row.k_width == 0 or row.k_width % per_lane == 0,
                f"{row.kind} {row.shape}: k_width {row.k_width} does not fit {per_lane} elements per lane",
            )
        check(
            row.cycles is None or 2 * m * n * k % row.cycles == 0,
            f"{row.kind} {row.shape}: {row.cycles} cycles is not a whole number of operations per cycle",
        )

    def waves_per_simd(self, vgprs: int) -> int:
        """Waves that one SIMD holds when each uses `vgprs` VGPRs (CDNA3/4: VGPRs and AGPRs together)."""
        granules = max(1, -(-vgprs // self.vgpr_granule))
        return min(self.max_waves, self.vgpr_file // (granules * self.vgpr_granule))

    def occupancy(self, vgprs: int, lds_bytes: int, num_warps: int) -> int:
        """Waves per SIMD that registers and LDS allow together; 0 when one workgroup does not fit."""
        if lds_bytes > self.lds_bytes or num_warps < 1:
            return 0
        waves = self.waves_per_simd(vgprs)
        per_simd = -(-num_warps // self.simds)
        by_registers = waves * self.simds // num_warps if waves >= per_simd else 0
        by_lds = self.lds_pool_bytes // lds_bytes if lds_bytes else by_registers
        workgroups = min(by_registers, by_lds)
        return min(waves, -(-workgroups * num_warps // self.simds))

    def matrix_rows(self, dtype: str, *, scaled: bool = False, precision: str | None = None) -> tuple[MatrixRow, ...]:
        """The instructions for operands of `dtype`, as listed (the shapes Triton prefers come first)."""
        return tuple(
            row
            for row in self.matrix
            if dtype in row.dtypes
            and row.kind.endswith("_scaled") == scaled
            and (precision is None or row.precision == precision)
        )

    @property
    def architecture(self) -> str:
        """The family as AMD writes it: `CDNA4`."""
        return self.family.upper()

    @property
    def gluon_module(self) -> str:
        """The module of `triton.experimental.gluon.language.amd` that has the target's own operations."""
        return self.family

    @property
    def has_async_copies(self) -> bool:
        """Whether tiles come to LDS by copies that a kernel waits for, and not through registers."""
        return self.async_mechanism != "none"

    @property
    def has_few_registers(self) -> bool:
        """Whether one wave has at most the 256 registers that an instruction can name: what waits there crowds out operands."""
        return self.vgpr_limit <= 256

    @property
    def has_tf32(self) -> bool:
        """Whether there are matrix instructions for fp32 operands of reduced precision."""
        return bool(self.matrix_rows("fp32", precision="tf32"))

    @property
    def has_scaled_dots(self) -> bool:
        """Whether there are matrix instructions that take scales."""
        return any(row.kind.endswith("_scaled") for row in self.matrix)

    @property
    def matrix_kind(self) -> str:
        """`mfma` on 64-lane targets, `wmma` on 32-lane ones."""
        return "mfma" if self.warp_size == 64 else "wmma"

    @property
    def buffer_module(self) -> str:
        """The Gluon module whose `buffer_load` and `buffer_store` are used; cdna3's lower on every target (`lowered`)."""
        return self.family if self.family.startswith("cdna") else "cdna3"


def _rows(
    kind: str, dtypes: str, acc: str, source: str, *shapes: tuple, precision: str = "ieee"
) -> tuple[MatrixRow, ...]:
    """Rows of one operand family; each shape is (M, N, K, k_width, cycles)."""
    return tuple(
        MatrixRow(kind, (m, n, k), tuple(dtypes.split()), tuple(acc.split()), k_width, source, cycles, precision)
        for m, n, k, k_width, cycles in shapes
    )


# k_width is what Triton 3.9's `OptimizeDotOperands`/`AccelerateAMDMatmul` print for a dot of that dtype (`lowered`).
_GFX942_MATRIX = (
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

_GFX950_MATRIX = (
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

_GFX1250_CYCLES = "cycles: llvm, which has one number for all of these; the announced peak agrees for fp8 16x16x128"
_GFX1250_MATRIX = (
    *_rows(
        "wmma",
        "fp16 bf16",
        "fp32",
        f"lowered (the only K; fp16 accumulators do not lower); {_GFX1250_CYCLES}",
        (16, 16, 32, 8, 8),
    ),
    *_rows("wmma", "fp8e4nv fp8e5", "fp32", f"lowered; {_GFX1250_CYCLES}", (16, 16, 128, 8, 8), (16, 16, 64, 8, 8)),
    *_rows("wmma", "int8", "int32", "lowered", (16, 16, 64, 8, None)),
    *_rows("wmma", "fp32", "fp32", "lowered; cycles: llvm, the latency", (16, 16, 4, 2, 16)),
    *_rows(
        "wmma_scaled",
        "fp8e4nv fp8e5 e2m1",
        "fp32",
        f"lowered through wmma_scaled; {_GFX1250_CYCLES}",
        (16, 16, 128, 16, 8),
    ),
    *_rows(
        "wmma_scaled",
        "e2m1",
        "fp32",
        f"lowered through wmma_scaled, both operands e2m1; {_GFX1250_CYCLES}",
        (32, 16, 128, 16, 8),
    ),
)

_RDNA3_MATRIX = (
    *_rows(
        "wmma",
        "fp16 bf16",
        "fp32 fp16",
        "lowered; cycles: peak 123 TFLOPS = 512 operations per clock and CU",
        (16, 16, 16, 16, 32),
    ),
    *_rows("wmma", "int8", "int32", "lowered; cycles: calculator", (16, 16, 16, 16, 32)),
)

_RDNA4_MATRIX = (
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

_KIB = 1024
_LDS = "triton: getSharedMemorySize, getSharedMemoryBanks"
_RDNA = dict(
    warp_size=32,
    lds_bytes=64 * _KIB,
    lds_pool_bytes=128 * _KIB,
    lds_banks=32,
    simds=4,
    vgpr_file=1536,
    vgpr_granule=24,
    vgpr_limit=256,
    max_waves=16,
    async_mechanism="none",
    direct_to_lds_bits=(),
    supports_tdm=False,
    supports_warp_specialization=False,
    copies_take_buffers=False,
    relaxed_lds_reads=False,
    copies_to_global=False,
    separate_matrix_pipe=False,
    lds_partitions=1,
    casts_fp8=False,
    sources={
        "copies": "triton: no copies to LDS",
        "matrix pipe": "isa: WMMA is a vector instruction (VOP3P), issued on the same unit as the others",
        "casts": "lowered: casts from and to fp8e4nv are compares and selects",
        "lds": _LDS + "; isa: 128 KiB per WGP, at most 64 KiB per workgroup",
        "registers": "llvm: 1536 VGPRs, granule 24, 16 waves in wave32; isa: at most 256 per wave; WGP mode, 4 SIMDs",
        "async": "triton: supportsDirectToLdsLoadBitWidth lists no width for RDNA",
        "clock": "AMD product pages (7900 XTX; R9700)",
    },
)

TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target(
            name="gfx942",
            product="MI300X",
            family="cdna3",
            warp_size=64,
            lds_bytes=64 * _KIB,
            lds_pool_bytes=64 * _KIB,
            # Triton and the CDNA3 ISA say 32; one public GEMM port models 64. The compiler's number decides its
            # swizzles, so it is the one used here.
            lds_banks=32,
            simds=4,
            vgpr_file=512,
            vgpr_granule=8,
            vgpr_limit=512,
            max_waves=8,
            matrix_version=3,
            matrix=_GFX942_MATRIX,
            # Triton does not pipeline with direct-to-LDS copies here (`is_async_copy_enabled`), only 32 bits lower.
            async_mechanism="none",
            direct_to_lds_bits=(32,),
            supports_tdm=False,
            supports_warp_specialization=False,
            copies_take_buffers=False,
            relaxed_lds_reads=False,
            copies_to_global=False,
            separate_matrix_pipe=True,
            lds_partitions=1,
            casts_fp8=False,
            native_fp8=("fp8e4b8", "fp8e5b16"),
            compute_units=304,
            clock_ghz=2.1,
            sources={
                "lds": _LDS,
                "registers": "llvm: 512 unified VGPRs and AGPRs, granule 8, 8 waves",
                "async": "triton: supportsDirectToLdsLoadBitWidth = 32; is_async_copy_enabled excludes gfx942",
                "copies": "triton: is_async_copy_enabled excludes gfx942",
                "matrix pipe": "isa: matrix core instructions execute beside vector instructions that do not depend on them",
                "casts": "lowered: casts from and to fp8e4nv are compares and selects",
                "clock": "MI300X data sheet: 304 CUs, 2.1 GHz",
            },
        ),
        Target(
            name="gfx950",
            product="MI355X",
            family="cdna4",
            warp_size=64,
            lds_bytes=160 * _KIB,
            lds_pool_bytes=160 * _KIB,
            lds_banks=64,
            simds=4,
            vgpr_file=512,
            vgpr_granule=8,
            vgpr_limit=512,
            max_waves=8,
            matrix_version=4,
            matrix=_GFX950_MATRIX,
            async_mechanism="direct_to_lds",
            direct_to_lds_bits=(128, 32),
            supports_tdm=False,
            supports_warp_specialization=False,
            copies_take_buffers=True,
            relaxed_lds_reads=True,
            copies_to_global=False,
            separate_matrix_pipe=True,
            lds_partitions=1,
            casts_fp8=True,
            native_fp8=("fp8e4nv", "fp8e5"),
            compute_units=256,
            clock_ghz=2.4,
            sources={
                "lds": _LDS,
                "registers": "llvm: 512 unified VGPRs and AGPRs, granule 8, 8 waves",
                "async": "triton: supportsDirectToLdsLoadBitWidth = 128, 32; is_async_copy_enabled",
                "copies": "lowered: cdna4.async_copy has buffer_load_to_shared and load_shared_relaxed, and no copy from LDS",
                "matrix pipe": "isa: matrix core instructions execute beside vector instructions that do not depend on them",
                "casts": "lowered: v_cvt_scalef32_pk_f16_fp8 and its like",
                "clock": "MI355X data sheet: 256 CUs, 2.4 GHz",
            },
        ),
        Target(
            name="gfx1250",
            product="MI450",
            family="cdna5",
            warp_size=32,
            lds_bytes=320 * _KIB,
            lds_pool_bytes=320 * _KIB,
            lds_banks=64,
            simds=4,
            vgpr_file=1024,
            vgpr_granule=16,
            vgpr_limit=1024,
            max_waves=16,
            matrix_version=3,
            matrix=_GFX1250_MATRIX,
            async_mechanism="tdm",
            direct_to_lds_bits=(128, 64, 32),
            supports_tdm=True,
            supports_warp_specialization=True,
            copies_take_buffers=False,
            relaxed_lds_reads=False,
            copies_to_global=True,
            separate_matrix_pipe=True,
            lds_partitions=2,
            casts_fp8=True,
            native_fp8=("fp8e4nv", "fp8e5"),
            compute_units=None,
            clock_ghz=None,
            sources={
                "lds": _LDS,
                "registers": "llvm: 1024 VGPRs, granule 16, 16 waves; 4 SIMDs: 4 waves of 1024 VGPRs fill a workgroup",
                "async": "triton: supportsDirectToLdsLoadBitWidth = 128, 64, 32; lowered: TDM, warp_specialize",
                "copies": "lowered: cdna5.async_copy has global_to_shared and shared_to_global, and no buffer form",
                "matrix pipe": "lowered: the scheduler fills the cycles of a WMMA with independent instructions (coexec)",
                "casts": "lowered: v_cvt_scale_pk8_f16_fp8 and its like",
                "clock": "not published",
            },
        ),
        Target(
            name="gfx1100",
            product="RX 7900 XTX",
            family="rdna3",
            matrix_version=1,
            matrix=_RDNA3_MATRIX,
            native_fp8=(),
            compute_units=96,
            clock_ghz=2.5,
            **_RDNA,
        ),
        Target(
            name="gfx1200",
            product="RX 9060 XT",
            family="rdna4",
            matrix_version=2,
            matrix=_RDNA4_MATRIX,
            native_fp8=("fp8e4nv", "fp8e5"),
            compute_units=32,
            clock_ghz=None,
            **_RDNA,
        ),
        Target(
            name="gfx1201",
            product="R9700",
            family="rdna4",
            matrix_version=2,
            matrix=_RDNA4_MATRIX,
            native_fp8=("fp8e4nv", "fp8e5"),
            compute_units=64,
            clock_ghz=2.92,
            **_RDNA,
        ),
    )
}

DEFAULT_TARGETS = ("gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201")


def target(name: str) -> Target:
    """The table of an architecture.

    Raises TranslationError (`unknown-target`), with the list, for a name that is not in it: hardware is never guessed.
    """
    row = TARGETS.get(name)
    if row is None:
        raise TranslationError(
            Diagnostic(
                code="unknown-target",
                message=f"unknown target {name!r}",
                why="gluonize has a table for " + ", ".join(TARGETS) + " and guesses no other",
                help="pass one of them with -t, several separated by commas, or all",
            )
        )
    return row


def parse_targets(names: str) -> tuple[Target, ...]:
    """The targets of a `-t` argument: `all`, or names separated by commas; each once, in the order given."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise TranslationError(
            Diagnostic(
                code="unknown-target", message="no target given", help="pass -t " + ",".join(TARGETS) + " or all"
            )
        )
    expanded = [t for name in wanted for t in (DEFAULT_TARGETS if name == "all" else (name,))]
    return tuple(target(name) for name in dict.fromkeys(expanded))
