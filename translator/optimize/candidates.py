"""Which tunings are tried for one launch: data rows, each with the condition under which it can pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rules.targets import Target
from translator.optimize.tuning import Tuning

MAX_BUFFERS = 4  # a deeper ring hides no more latency than a compute-bound loop has


@dataclass(frozen=True)
class CandidateRow:
    """tuning: what is tried. when: whether it can pay on a target with that many warps. why: what it may buy."""

    tuning: Tuning
    when: Callable[[Target, int], bool]
    why: str


def _always(target: Target, num_warps: int) -> bool:
    return True


def _copies(target: Target, num_warps: int) -> bool:
    return target.has_async_copies


def two_waves(target: Target, num_warps: int) -> bool:
    """Two waves on each SIMD, on targets whose matrix instructions run beside other work."""
    return target.separate_matrix_pipe and num_warps == 2 * target.simds


def _two_waves_of_copies(target: Target, num_warps: int) -> bool:
    return two_waves(target, num_warps) and _copies(target, num_warps)


ROWS = (
    CandidateRow(Tuning(), _always, "what Triton's own choices give"),
    CandidateRow(Tuning(lean=True), _always, "no barrier between slots that differ, no ring for a loop that runs once"),
    CandidateRow(Tuning(num_buffers=2), _always, "one tile further ahead where Triton takes one slot"),
    CandidateRow(Tuning(num_buffers=3), _always, "memory latency of one more tile is hidden"),
    CandidateRow(Tuning(num_buffers=4), _copies, "memory latency of two more tiles is hidden"),
    CandidateRow(
        Tuning(matrix_size=16),
        lambda target, _: target.matrix_kind == "mfma",
        "less to wait for between dependent instructions, more freedom for the scheduler",
    ),
    CandidateRow(
        Tuning(matrix_size=32),
        lambda target, _: target.matrix_kind == "mfma",
        "half the operand reads per operation",
    ),
    CandidateRow(Tuning(unroll=True), _copies, "no slot is computed at run time"),
    CandidateRow(Tuning(num_buffers=3, unroll=True), _copies, "the same, one tile further ahead"),
    CandidateRow(
        Tuning(num_buffers=3, prefetch=True), _copies, "a product does not wait for the reads of its own operands"
    ),
    CandidateRow(Tuning(slices=(2, 1)), _always, "half of A in registers at a time"),
    CandidateRow(Tuning(slices=(4, 1)), _always, "a quarter of A in registers at a time"),
    CandidateRow(Tuning(slices=(1, 2)), _always, "half of B in registers at a time"),
    CandidateRow(Tuning(slices=(2, 2)), _always, "half of A and B in registers at a time"),
    CandidateRow(Tuning(slices=(4, 2)), _always, "a quarter of A and half of B in registers at a time"),
    CandidateRow(Tuning(ping_pong=True), two_waves, "one wave of a SIMD moves data while the other multiplies"),
    CandidateRow(Tuning(num_buffers=2, ping_pong=True), two_waves, "the same where Triton takes one slot"),
    CandidateRow(Tuning(num_buffers=3, ping_pong=True), two_waves, "the same, and copies have an iteration to land"),
    CandidateRow(
        Tuning(num_buffers=2, unroll=True, ping_pong=True),
        _two_waves_of_copies,
        "no slot is computed in a memory stage",
    ),
    CandidateRow(
        Tuning(num_buffers=3, unroll=True, ping_pong=True), _two_waves_of_copies, "the same, one tile further"
    ),
    CandidateRow(
        Tuning(partitioned=True),
        lambda target, num_warps: target.lds_partitions > 1 and num_warps in (4, 8),
        "warps that issue together read different partitions of LDS; predicted cycles know banks, not partitions",
    ),
    CandidateRow(
        Tuning(num_buffers=3, ping_pong=True, partitioned=True),
        lambda target, num_warps: target.lds_partitions > 1 and two_waves(target, num_warps),
        "the same, in stages",
    ),
    CandidateRow(
        Tuning(copied_stores=True),
        lambda target, _: target.copies_to_global,
        "whole rows leave without registers; what stands behind the loops hardly counts, so a measured time chooses it",
    ),
    CandidateRow(
        Tuning(l2_ahead=2),
        lambda target, _: target.supports_tdm,
        "copies find their tiles in L2; predicted cycles know no caches, so only a measured time can choose it",
    ),
)


def candidates(target: Target, num_warps: int, num_buffers: int = 0, ping_pong: bool = False) -> tuple[Tuning, ...]:
    """The tunings to try, parity first and the others lean; what was asked for holds for all of them."""
    found: list[Tuning] = []
    for row in ROWS:
        if not row.when(target, num_warps):
            continue
        lean = row.tuning != Tuning()
        tuning = replace(row.tuning, num_buffers=num_buffers or row.tuning.num_buffers, lean=lean)
        if ping_pong and tuning.slices != (1, 1):
            continue
        tuning = replace(tuning, ping_pong=tuning.ping_pong or ping_pong)
        if tuning not in found:
            found.append(tuning)
    return tuple(found)
