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

import re

from gluonize.diagnostics import Diagnostic, TranslationError, nearest
from gluonize.rules.architecture import MatrixRow, Target
from gluonize.rules.matrix_rows import GFX1250_MATRIX, GFX942_MATRIX, GFX950_MATRIX, RDNA3_MATRIX, RDNA4_MATRIX
from gluonize.rules.timing import TIMINGS

__all__ = ["DEFAULT_TARGETS", "TARGETS", "MatrixRow", "Target", "parse_targets", "target"]

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
    cluster_ctas=1,
    casts_fp8=False,
    buffer_fp64_extremes=False,
    sources={
        "copies": "triton: no copies to LDS",
        "matrix pipe": "isa: WMMA is a vector instruction (VOP3P), issued on the same unit as the others",
        "casts": "lowered: casts from and to fp8e4nv are compares and selects",
        "atomics": "lowered: LLVM selects no buffer_atomic_max_f64",
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
            matrix=GFX942_MATRIX,
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
            cluster_ctas=1,
            casts_fp8=False,
            buffer_fp64_extremes=True,
            native_fp8=("fp8e4b8", "fp8e5b16"),
            packs_operands=True,
            xcds=8,
            compute_units=304,
            clock_ghz=2.1,
            timing=TIMINGS["gfx942"],
            copies_end_with_program=True,
            emulated_as="cdna",
            sources={
                "operands": "triton: HIPOptions keeps kpack for gfx942 and sets it to 1 for gfx950, whose instructions have twice the depth",
                "lds": _LDS,
                "registers": "llvm: 512 unified VGPRs and AGPRs, granule 8, 8 waves",
                "async": "triton: supportsDirectToLdsLoadBitWidth = 32; is_async_copy_enabled excludes gfx942",
                "copies": "triton: is_async_copy_enabled excludes gfx942",
                "matrix pipe": "isa: matrix core instructions execute beside vector instructions that do not depend on them",
                "casts": "lowered: casts from and to fp8e4nv are compares and selects",
                "atomics": "lowered: buffer_atomic_max_f64",
                "end": "isa: copies count in vmcnt, for which S_ENDPGM waits (CDNA3, S_ENDPGM)",
                "xcds": "MI300X data sheet: 8 XCDs; workgroups go to them in turn (AMD's kernel optimization guide)",
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
            matrix=GFX950_MATRIX,
            async_mechanism="direct_to_lds",
            direct_to_lds_bits=(128, 32),
            supports_tdm=False,
            supports_warp_specialization=False,
            copies_take_buffers=True,
            relaxed_lds_reads=True,
            copies_to_global=False,
            separate_matrix_pipe=True,
            lds_partitions=1,
            cluster_ctas=1,
            casts_fp8=True,
            buffer_fp64_extremes=True,
            native_fp8=("fp8e4nv", "fp8e5"),
            xcds=8,
            compute_units=256,
            clock_ghz=2.4,
            timing=TIMINGS["gfx950"],
            copies_end_with_program=True,
            emulated_as="cdna",
            sources={
                "lds": _LDS,
                "registers": "llvm: 512 unified VGPRs and AGPRs, granule 8, 8 waves",
                "async": "triton: supportsDirectToLdsLoadBitWidth = 128, 32; is_async_copy_enabled",
                "copies": "lowered: cdna4.async_copy has buffer_load_to_shared and load_shared_relaxed, and no copy from LDS",
                "matrix pipe": "isa: matrix core instructions execute beside vector instructions that do not depend on them",
                "casts": "lowered: v_cvt_scalef32_pk_f16_fp8 and its like",
                "atomics": "lowered: buffer_atomic_max_f64",
                "end": "isa: copies count in vmcnt, for which S_ENDPGM waits (CDNA4, S_ENDPGM)",
                "xcds": "MI355X data sheet: 8 XCDs; workgroups go to them in turn (AMD's kernel optimization guide)",
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
            matrix=GFX1250_MATRIX,
            async_mechanism="tdm",
            direct_to_lds_bits=(128, 64, 32),
            supports_tdm=True,
            supports_warp_specialization=True,
            copies_take_buffers=False,
            relaxed_lds_reads=False,
            copies_to_global=True,
            separate_matrix_pipe=True,
            lds_partitions=2,
            cluster_ctas=16,
            casts_fp8=True,
            buffer_fp64_extremes=True,
            native_fp8=("fp8e4nv", "fp8e5"),
            compute_units=None,
            native_tanh=True,
            scales=("i8", "f8E4M3FN"),
            clock_ghz=None,
            timing=TIMINGS["gfx1250"],
            sanitizes=True,
            sources={
                "lds": _LDS,
                "registers": "llvm: 1024 VGPRs, granule 16, 16 waves; 4 SIMDs: 4 waves of 1024 VGPRs fill a workgroup",
                "async": "triton: supportsDirectToLdsLoadBitWidth = 128, 64, 32; lowered: TDM, warp_specialize",
                "copies": "lowered: cdna5.async_copy has global_to_shared and shared_to_global, and no buffer form",
                "matrix pipe": "llvm: WMMA has a unit of its own (SISchedule.td, HWXDL), and vector instructions execute beside it"
                " (GCNHazardRecognizer, checkWMMACoexecutionHazards)",
                "casts": "lowered: v_cvt_scale_pk8_f16_fp8 and its like",
                "atomics": "lowered: buffer_atomic_max_num_f64",
                "tanh": "lowered: libdevice's tanh of fp32 is v_tanh_f32",
                "scales": "lowered: v_wmma_scale16 with scales of e4m3; elsewhere Triton's passes fail",
                "end": "isa: nothing promises that S_ENDPGM waits for the counters of its copies",
                "sanitizer": "triton: the concurrency sanitizer of Triton 3.9 instruments gfx1250",
                "clusters": "triton: supportsMultiCTALaunch; lowered: the mask of a multicast copy has 16 bits",
                "clock": "not published",
            },
        ),
        Target(
            name="gfx1100",
            product="RX 7900 XTX",
            family="rdna3",
            matrix_version=1,
            matrix=RDNA3_MATRIX,
            native_fp8=(),
            compute_units=96,
            clock_ghz=2.5,
            timing=TIMINGS["gfx1100"],
            emulated_as="rdna3",
            **_RDNA,
        ),
        Target(
            name="gfx1200",
            product="RX 9060 XT",
            family="rdna4",
            matrix_version=2,
            matrix=RDNA4_MATRIX,
            native_fp8=("fp8e4nv", "fp8e5"),
            compute_units=32,
            clock_ghz=None,
            timing=TIMINGS["gfx1200"],
            emulated_as="rdna4",
            **_RDNA,
        ),
        Target(
            name="gfx1201",
            product="R9700",
            family="rdna4",
            matrix_version=2,
            matrix=RDNA4_MATRIX,
            native_fp8=("fp8e4nv", "fp8e5"),
            compute_units=64,
            clock_ghz=2.92,
            timing=TIMINGS["gfx1201"],
            emulated_as="rdna4",
            **_RDNA,
        ),
    )
}

# Other GPUs of an architecture than the one that its row names (AMD's ROCm documentation, "Accelerator and GPU hardware
# specifications"): what people call a target.
_OTHER_PRODUCTS = {
    "gfx942": ("MI300A", "MI325X"),
    "gfx950": ("MI350X",),
    "gfx1100": ("RX 7900 XT", "RX 7900 GRE", "PRO W7900", "PRO W7800"),
    "gfx1201": ("RX 9070", "RX 9070 XT", "RX 9070 GRE"),
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
                help=_meant(name) or known_targets(),
            )
        )
    return row


def known_targets() -> str:
    """What there is to choose from, each with a GPU that has it: `-t gfx942 (MI300X), gfx950 (MI355X), ...`."""
    names = ", ".join(f"{row.name} ({row.product})" for row in TARGETS.values())
    return f"-t {names}, several of them separated by commas, or all"


def _meant(name: str) -> str:
    """What is said of the name of a GPU or of a family, and of a misspelled architecture; empty for other names."""
    asked = _plain(name)
    for row in TARGETS.values():
        for product in (row.product, *_OTHER_PRODUCTS.get(row.name, ())):
            if asked == _plain(product):
                return f"did you mean {row.name}? {product} is {row.name}"
    products = {
        product: row.name for row in TARGETS.values() for product in (row.product, *_OTHER_PRODUCTS.get(row.name, ()))
    }
    series = {p: name for p, name in products.items() if len(asked) > 3 and _plain(p).startswith(asked)}
    if len({*series.values()}) == 1:
        product, name = next(iter(series.items()))
        return f"did you mean {name}? {product} is {name}"
    if family := [row for row in TARGETS.values() if asked == row.family]:
        names = ",".join(row.name for row in family)
        return f"did you mean {names}? {family[0].family.upper()} is {' and '.join(row.name for row in family)}"
    near = nearest(name, TARGETS, 0.9)  # gfx90a is no misspelled gfx950
    return f"did you mean {near}?" if near else ""


def _plain(product: str) -> str:
    """`7900xtx` for `AMD Radeon RX 7900-XTX`: the name of a GPU as people may write it."""
    words = re.split(r"[\s_-]+", product.lower())
    return "".join(word for word in words if word not in ("amd", "instinct", "radeon", "pro", "rx")).removeprefix("rx")


def parse_targets(names: str) -> tuple[Target, ...]:
    """The targets of a `-t` argument: `all`, or names separated by commas; each once, in the order given."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise TranslationError(Diagnostic(code="unknown-target", message="no target given", help=known_targets()))
    expanded = [t for name in wanted for t in (DEFAULT_TARGETS if name == "all" else (name,))]
    return tuple(target(name) for name in dict.fromkeys(expanded))
