"""The static cost model: cycles that the hottest loop keeps a SIMD busy, per wave and mega-operation of matrix work.

A model of order, not of time: it ranks candidates of one kernel on one target and nothing else. Every number names
where it comes from; what nobody published is taken from the nearest published target and says so.

    tutorials: ROCm Gluon tutorials (LDS throughput, MFMA efficiency, attention and GEMM notes)
    planning:  GEAK hardware tables (planning constants, compiler-derived occupancy)
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.targets import Target
from translator.lowering.metrics import InstructionMix, KernelMetrics


@dataclass(frozen=True)
class Pace:
    """Cycles of one SIMD per instruction of a wave, by class.

    issue: any instruction's slot. lds_b128: a 16-byte LDS access of all lanes, narrower ones in proportion. global_op:
    a load, a store or a copy. barrier: arrival and release. scratch: a spilled value's round trip. matrix: default for
    a matrix instruction of 16x16 by 32 halves where no cycles are published; shapes in proportion to their work.
    """

    issue: int
    lds_b128: int
    global_op: int
    barrier: int
    scratch: int
    matrix: int
    source: str


PACES = {
    "cdna": Pace(
        4, 16, 64, 40, 400, 16,
        "issue: tutorials (attention: a VALU instruction takes 4 cycles); lds_b128: tutorials (one ds_read_b128 per SIMD"
        " in 16 cycles); global_op: planning (buffer_load issue about 64); barrier: tutorials (LDS round trip 50 to 70"
        " cycles, less the slots counted apart); scratch: tutorials (HBM latency, 400 cycles or more)",
    ),
    "rdna": Pace(
        1, 16, 16, 40, 400, 16,
        "issue: wave32 on 32 lanes, one cycle; lds_b128, barrier, scratch: as CDNA; global_op: CDNA's, a quarter for a"
        " wave of half the lanes at twice the rate",
    ),
}  # fmt: skip

# How much of what is not matrix work stays visible beside the matrix instructions, by waves per SIMD. Fitted to
# published efficiencies of one design, a 256x256x64 GEMM (tutorials): with one wave per SIMD and no interleaving 58 %,
# with two waves 69.7 % to 80 %; with two in ping-pong 99.8 %.
EXPOSED_ALONE = 1.0
EXPOSED_IN_COMPANY = 0.5
EXPOSED_IN_PING_PONG = 0.1

# A kernel with spills has scratch memory set up for every wave and loses registers to its addressing, also where the
# spills lie outside of the loop: counted as this part of the loop. A judgement, not a measurement.
SCRATCH = 0.1


@dataclass(frozen=True)
class Cost:
    """cycles: per mega-operation of matrix work in the hottest loop (per instruction without any), less is better.

    matrix, lds, other: the same for each unit alone; fits: LDS of one workgroup is within the target's.
    """

    cycles: float
    matrix: float
    lds: float
    other: float
    fits: bool

    @property
    def rank(self) -> tuple:
        return (not self.fits, round(self.cycles, 3))


def cost(metrics: KernelMetrics, target: Target, num_warps: int, ping_pong: bool = False) -> Cost:
    """What the hottest loop costs; a kernel without loops is one."""
    pace = PACES["cdna" if target.warp_size == 64 else "rdna"]
    loop = metrics.loop or metrics.mix
    matrix = matrix_cycles(loop, target, pace)
    lds = lds_cycles(loop, pace)
    memory = pace.global_op * (loop.load + loop.store + loop.atomic + loop.lds_dma)
    plain = loop.insns - loop.mma - loop.ds - loop.load - loop.store - loop.atomic - loop.lds_dma - loop.scratch
    other = (
        pace.issue * (plain + loop.mma + loop.ds) + memory + pace.barrier * loop.barrier + pace.scratch * loop.scratch
    )
    company = (metrics.occupancy or 1) > 1
    exposed = EXPOSED_IN_COMPANY if company else EXPOSED_ALONE
    if ping_pong and company and num_warps == 2 * target.simds:
        exposed = EXPOSED_IN_PING_PONG
    busiest = max(matrix, lds, other)
    total = busiest + exposed * (matrix + lds + other - busiest)
    if metrics.spill:
        # Spills outside of the loop are paid once; a thousandth of an iteration each is enough to break ties.
        total += SCRATCH * total + 0.001 * pace.scratch * metrics.spill
    work = loop.matrix_flops / 1e6 or 1.0
    return Cost(total / work, matrix / work, lds / work, other / work, metrics.lds_bytes <= target.lds_bytes)


def matrix_cycles(loop: InstructionMix, target: Target, pace: Pace) -> float:
    published = {"x".join(map(str, row.shape)): row.cycles for row in target.matrix if row.cycles}
    by_work = pace.matrix / (2 * 16 * 16 * 32)
    return sum(n * (published.get(shape) or by_work * _work(shape)) for shape, n in loop.matrix.items())


def _work(shape: str) -> int:
    m, n, k = (int(x) for x in shape.split("x"))
    return 2 * m * n * k


def lds_cycles(loop: InstructionMix, pace: Pace) -> float:
    """Accesses of unknown width count as 16 bytes."""
    found = loop.widths.get("ds", {})
    sized = sum(n * max(int(bits), 32) / 128 for bits, n in found.items() if int(bits))
    unknown = loop.ds_read + loop.ds_write - sum(n for bits, n in found.items() if int(bits))
    return pace.lds_b128 * (sized + unknown)
