"""What a row of `rules/targets.py` holds: an architecture, its matrix instructions, what it can do."""

from __future__ import annotations

from dataclasses import dataclass, field

from gluonize.rules.timing import Timing

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
    casts_fp8: Triton has instructions for casts of OCP's fp8 formats on it. buffer_fp64_extremes: buffer atomics of fp64 `min` and
    `max` compile for it. cluster_ctas: the workgroups that may run together as one program (`num_ctas`) at most, 1 without clusters.
    native_tanh: libdevice's `tanh` is one instruction. packs_operands: Triton's passes put a lane's parts of an operand for two matrix
    instructions side by side where a launch asks for it (`kpack`).
    xcds: dies with an L2 cache each, to which the workgroups of a launch go in turn.
    scales: element types of the scales of a scaled product, as MLIR writes them.
    copies_end_with_program: S_ENDPGM waits for its copies to LDS. sanitizes: Triton has the concurrency sanitizer for it. emulated_as: what
    the instruction emulator calls its instruction set, "" where it has none. timing: how fast it issues, computes and moves data.
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
    cluster_ctas: int
    casts_fp8: bool
    buffer_fp64_extremes: bool
    native_fp8: tuple[str, ...]
    compute_units: int | None
    clock_ghz: float | None
    timing: Timing = field(hash=False, repr=False)
    sources: dict[str, str] = field(default_factory=dict, hash=False)
    native_tanh: bool = False
    packs_operands: bool = False
    xcds: int = 1
    scales: tuple[str, ...] = ("i8",)
    copies_end_with_program: bool = False
    sanitizes: bool = False
    emulated_as: str = ""

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
        check(self.cluster_ctas == 1 or "clusters" in self.sources, "no source for clusters")
        check(not self.native_tanh or "tanh" in self.sources, "no source for tanh")
        check(not self.packs_operands or "operands" in self.sources, "no source for operands")
        check(self.xcds == 1 or "xcds" in self.sources, "no source for XCDs")
        check(not self.compute_units or self.compute_units % self.xcds == 0, f"{self.xcds} XCDs are not alike")
        check(self.scales == ("i8",) or "scales" in self.sources, "no source for scales")
        check(not self.copies_end_with_program or "end" in self.sources, "no source for the end of programs")
        check(self.relaxed_lds_reads <= self.has_async_copies, "relaxed reads of what no copy has written")
        for fact in ("lds", "registers", "async", "copies", "matrix pipe", "casts", "atomics", "clock"):
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
        workgroups = self.workgroups(vgprs, lds_bytes, num_warps)
        return min(self.waves_per_simd(vgprs), -(-workgroups * num_warps // self.simds))

    def workgroups(self, vgprs: int, lds_bytes: int, num_warps: int) -> int:
        """Workgroups that a compute unit holds at a time; 0 when not even one fits."""
        if lds_bytes > self.lds_bytes or num_warps < 1:
            return 0
        waves = self.waves_per_simd(vgprs)
        by_registers = waves * self.simds // num_warps if waves >= -(-num_warps // self.simds) else 0
        return min(by_registers, self.lds_pool_bytes // lds_bytes) if lds_bytes else by_registers

    def roomiest_lds(self, lds_bytes: int, num_warps: int) -> int:
        """The most LDS a workgroup can have while a compute unit holds as many of them as it could where each has `lds_bytes`, whatever
        their registers."""
        by_waves = max(1, self.max_waves * self.simds // max(1, num_warps))
        workgroups = min(by_waves, max(1, self.lds_pool_bytes // max(1, lds_bytes)))
        return max(lds_bytes, min(self.lds_bytes, self.lds_pool_bytes // workgroups))

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
    def capability(self) -> tuple[int, int]:
        """The version that torch tells programs of: the digits of the name without the stepping, gfx942 (9, 4), gfx1201 (12, 0)."""
        digits = self.name.partition("-")[0].removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16)

    @property
    def has_fnuz_fp8(self) -> bool:
        """Whether the fp8 formats of its instructions have no infinities and no negative zero, where others have those of OCP."""
        return "fp8e4b8" in self.native_fp8

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
