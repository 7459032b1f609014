"""Which choices are tried for one launch: data rows, each with the condition under which it can pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.rules.targets import Target


@dataclass(frozen=True)
class CandidateRow:
    """choices: what is tried. when: whether it can pay on a target with that many warps. why: what it may buy. timed: whether only a
    measured time can choose it, because predicted cycles know no caches."""

    choices: Choices
    when: Callable[[Target, int], bool]
    why: str
    timed: bool = False


def _clusters(target: Target, num_warps: int) -> bool:
    return target.cluster_ctas > 1


def _always(target: Target, num_warps: int) -> bool:
    return True


def _copies(target: Target, num_warps: int) -> bool:
    return target.has_async_copies


def _long_waits(target: Target, num_warps: int) -> bool:
    """Targets whose waves issue in order and have their matrix instructions beside other work."""
    return target.separate_matrix_pipe


def _few_waves(target: Target, num_warps: int) -> bool:
    """One wave on each SIMD, of a target on which it can have all registers."""
    return target.separate_matrix_pipe and num_warps <= target.simds


def two_waves(target: Target, num_warps: int) -> bool:
    """Two waves on each SIMD, on targets whose matrix instructions run beside other work."""
    return target.separate_matrix_pipe and num_warps == 2 * target.simds


def _two_waves_of_copies(target: Target, num_warps: int) -> bool:
    return two_waves(target, num_warps) and _copies(target, num_warps)


def _stores(target: Target, num_warps: int) -> bool:
    return not _copies(target, num_warps)


def _two_waves_of_stores(target: Target, num_warps: int) -> bool:
    return two_waves(target, num_warps) and _stores(target, num_warps)


def _registers_for(waves: int) -> Callable[[Target, int], bool]:
    """Targets on which so many waves do not have all the registers that each may use, with waves of which a SIMD can hold twice as many."""
    return lambda target, _: target.max_waves >= 2 * waves and target.waves_per_simd(target.vgpr_limit) < waves


def _scaled(target: Target, num_warps: int) -> bool:
    """Targets with matrix instructions of which the lanes that share a row have scales of their own."""
    return any(row.kind == "mfma_scaled" for row in target.matrix)


def _packs_operands(target: Target, num_warps: int) -> bool:
    return target.packs_operands


ROWS = (
    CandidateRow(Choices(), _always, "what Triton's own choices give"),
    CandidateRow(
        choices_of(slot_form="told-apart"),
        _always,
        "no barrier between slots that differ, no ring for a loop that runs once",
    ),
    CandidateRow(choices_of(depth="2"), _always, "one tile further ahead where Triton takes one slot"),
    CandidateRow(choices_of(depth="3"), _always, "memory latency of one more tile is hidden"),
    CandidateRow(choices_of(depth="4"), _copies, "memory latency of two more tiles is hidden"),
    CandidateRow(
        choices_of(matrix_size="16"),
        lambda target, _: target.matrix_kind == "mfma",
        "less to wait for between dependent instructions, more freedom for the scheduler",
    ),
    CandidateRow(
        choices_of(matrix_size="32"),
        lambda target, _: target.matrix_kind == "mfma",
        "half the operand reads per operation",
    ),
    CandidateRow(
        choices_of(transposed_operands="converted"),
        _always,
        "whole vectors are read where a transposed read takes one element at a time",
    ),
    CandidateRow(
        choices_of(operand_width="two"), _packs_operands, "half the reads of LDS, and half the addresses in registers"
    ),
    CandidateRow(
        choices_of(scale_reads="words"), _scaled, "a fourth of the reads of scales, and no bytes to be put together"
    ),
    CandidateRow(
        choices_of(copy_order="after-reads"), _copies, "operands are read before copies fill the queue of memory"
    ),
    CandidateRow(
        choices_of(depth="3", copy_order="after-reads"), _copies, "the same, and copies have an iteration more"
    ),
    CandidateRow(
        choices_of(tile_copies="lanes"),
        lambda target, _: target.supports_tdm,
        "requests of a small tile spread over waves, and the last one is waited for by the wave that made it",
    ),
    CandidateRow(
        choices_of(copies_past_end="repeated"),
        _copies,
        "no copy has an instruction for each of its vectors that masks it",
    ),
    CandidateRow(choices_of(load_order="before-reads"), _stores, "loads land sooner, where registers are left"),
    CandidateRow(
        choices_of(tile_stores="fenced"),
        _stores,
        "no tile is waited for in the middle of an iteration; fewer registers are live, so that another wave may fit",
    ),
    CandidateRow(
        choices_of(waiting_loads="own-iteration"),
        lambda target, _: target.separate_matrix_pipe and not target.supports_tdm,
        "nothing waits in registers for the next iteration, so that another wave may fit",
    ),
    CandidateRow(
        choices_of(scheduler="max-ilp"),
        _long_waits,
        "instructions that do not wait for each other stand between those that do",
    ),
    CandidateRow(choices_of(scheduler="iterative-ilp"), _long_waits, "the same with fewer registers"),
    CandidateRow(choices_of(waves_per_eu="2"), _always, "a second wave hides latency, where few registers are spilled"),
    CandidateRow(choices_of(waves_per_eu="3"), _always, "and a third one"),
    *(
        CandidateRow(
            choices_of(waves_per_eu=str(waves)), _registers_for(waves), "one more wave may need a few registers less"
        )
        for waves in (6, 8)
    ),
    CandidateRow(
        choices_of(waves_per_eu="1"),
        _few_waves,
        "registers for one wave of a SIMD, where the compiler keeps room for two",
    ),
    *(
        CandidateRow(
            choices_of(accumulator_registers=kind),
            lambda target, _: target.matrix_kind == "mfma",
            "accumulators that no instruction moves from one kind of register to the other",
        )
        for kind in ("agprs", "vgprs")
    ),
    CandidateRow(choices_of(slot_indices="literal"), _copies, "no slot is computed at run time"),
    CandidateRow(choices_of(depth="3", slot_indices="literal"), _copies, "the same, one tile further ahead"),
    CandidateRow(
        choices_of(depth="3", operand_reads="one-ahead"),
        _copies,
        "a product does not wait for the reads of its own operands",
    ),
    CandidateRow(
        choices_of(num_ctas="2"),
        _clusters,
        "half of a tile for each of two workgroups, operands that both need are read once",
    ),
    CandidateRow(choices_of(num_ctas="4"), _clusters, "a quarter of a tile for each of four workgroups"),
    CandidateRow(choices_of(accumulator_slices="2x1"), _always, "half of A in registers at a time"),
    CandidateRow(choices_of(accumulator_slices="4x1"), _always, "a quarter of A in registers at a time"),
    CandidateRow(choices_of(accumulator_slices="1x2"), _always, "half of B in registers at a time"),
    CandidateRow(choices_of(accumulator_slices="2x2"), _always, "half of A and B in registers at a time"),
    CandidateRow(choices_of(accumulator_slices="4x2"), _always, "a quarter of A and half of B in registers at a time"),
    CandidateRow(
        choices_of(warp_groups="alternating"), two_waves, "one wave of a SIMD moves data while the other multiplies"
    ),
    CandidateRow(choices_of(depth="2", warp_groups="alternating"), two_waves, "the same where Triton takes one slot"),
    CandidateRow(
        choices_of(depth="3", warp_groups="alternating"), two_waves, "the same, and copies have an iteration to land"
    ),
    *(
        CandidateRow(
            choices_of(accumulator_slices=slices, warp_groups="alternating"),
            two_waves,
            "the same in shorter stages: copies have most of an iteration to land",
        )
        for slices in ("2x1", "4x1", "1x2", "2x2", "4x2")
    ),
    *(
        CandidateRow(
            choices_of(accumulator_slices=slices, warp_groups="alternating", refill="after-read"),
            _two_waves_of_copies,
            "and the copies of the two operands stand in different stages, one of them a tile further ahead",
        )
        for slices in ("2x1", "1x2", "2x2")
    ),
    *(
        CandidateRow(
            choices_of(accumulator_slices=slices, warp_groups="alternating", refill="after-read"),
            _two_waves_of_stores,
            "one slot is enough, and the registers of loads have most of an iteration to arrive",
        )
        for slices in ("2x1", "4x1", "1x2", "2x2", "4x2")
    ),
    *(
        CandidateRow(
            choices_of(operand_width="two", accumulator_slices=slices, warp_groups="alternating", refill="after-read"),
            lambda target, num_warps: _packs_operands(target, num_warps) and two_waves(target, num_warps),
            "the same with half the addresses, where registers are short",
        )
        for slices in ("2x1", "4x1", "2x2")
    ),
    CandidateRow(
        choices_of(depth="2", slot_indices="literal", warp_groups="alternating"),
        _two_waves_of_copies,
        "no slot is computed in a memory stage",
    ),
    CandidateRow(
        choices_of(depth="3", slot_indices="literal", warp_groups="alternating"),
        _two_waves_of_copies,
        "the same, one tile further",
    ),
    CandidateRow(
        choices_of(lds_partitions="two"),
        lambda target, num_warps: target.lds_partitions > 1 and num_warps in (4, 8),
        "warps that issue together read different partitions of LDS; predicted cycles know banks, not partitions",
    ),
    CandidateRow(
        choices_of(depth="3", warp_groups="alternating", lds_partitions="two"),
        lambda target, num_warps: target.lds_partitions > 1 and two_waves(target, num_warps),
        "the same, in stages",
    ),
    CandidateRow(
        choices_of(stores="copied"),
        lambda target, _: target.copies_to_global,
        "whole rows leave without registers; what stands behind the loops hardly counts, so a measured time chooses it",
    ),
    *(
        CandidateRow(
            choices_of(loop_masks=masks),
            _always,
            "no compares and selections in most iterations; of loops that were one, predicted cycles count the one with the mask",
        )
        for masks in ("where-needed", "peeled")
    ),
    CandidateRow(
        choices_of(store_cache="streamed"),
        _always,
        "caches keep what is read",
        timed=True,
    ),
    CandidateRow(
        choices_of(load_cache="streamed"),
        _always,
        "caches keep what is read more than once",
        timed=True,
    ),
    CandidateRow(
        choices_of(program_order="per-xcd"),
        lambda target, _: target.xcds > 1,
        "neighbours share an L2 cache",
        timed=True,
    ),
    *(
        CandidateRow(
            choices_of(programs=programs),
            _always,
            "a program starts once for all its tiles; what a start costs is not predicted",
            timed=True,
        )
        for programs in ("persistent", "persistent-2")
    ),
    CandidateRow(
        choices_of(l2_prefetch="2"),
        lambda target, _: target.supports_tdm,
        "copies find their tiles in L2",
        timed=True,
    ),
)


def candidates(target: Target, num_warps: int, asked: Choices = Choices(), timed: bool = True) -> tuple[Choices, ...]:
    """The choices to try, those asked for first; slots are told apart where a row changes loops. What was asked for holds for all of them.

    timed: with those that only a measured time can choose.
    """
    found: list[Choices] = []
    for row in ROWS:
        if not row.when(target, num_warps) or row.timed and not timed:
            continue
        told = row.choices if row.choices.keeps_depth else row.choices.replacing(slot_form="told-apart")
        made = asked.over(told)
        if made not in found:
            found.append(made)
    return tuple(found)
