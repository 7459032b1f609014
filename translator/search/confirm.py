"""Rules that a compile confirms.

What registers leave of a compute unit, and whether a loop waits for memory, is known behind the compiler alone. Where its figures for what
the rules write say that another choice can pay, that is compiled too, on top of what was better so far:

    276 registers, 256 of which leave room for a second wave  ->  waves-per-eu=2  ->  no more spills, 0.82 of the clocks: it is taken

It is taken where the hottest loop of no launch takes more clocks, and those of all launches together fewer, clearly so where registers are spilled for it;
and all that was taken is kept where the model can tell it from what the rules have.
What is tried depends on figures alone, never on time, so the same source, launches, target and versions give the same choices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.cycles.clocks import GATE
from gluonize.judge.cycles.prediction import Walked
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest, TranslateResult
from gluonize.rules.choices import BY_NAME
from gluonize.rules.targets import Target, target
from gluonize.search.choose import Tried, figures_of, try_candidates
from gluonize.search.cost import ITERATIONS

if TYPE_CHECKING:
    from gluonize.judge.lower.children.worker import WorkerPool

MOST_COMPILES = 14  # for one kernel, of all of its launches together
NEAR = 1.25  # registers over those of one more wave, which the compiler may do without
IDLE = 1.25  # clocks over those that the busiest unit needs: instructions wait for each other, or for memory
STEP = 1.01  # clocks over those of what is better; of one launch, of which others of the kernel make up for no more
RESHAPED = 1.02  # the same of a loop in another shape, on which less can be built
SPILLS = 1.1  # the same, where registers are spilled for it


@dataclass(frozen=True)
class Proposal:
    """made: what may pay on a target where the compiler's figures are these; None for nothing. why: what it may buy."""

    made: Callable[[Target, Walked], Choices | None]
    why: str

    def of(self, row: Target, best: Sequence[Walked]) -> list[Choices]:
        """What may pay for the launches of a kernel, each once."""
        made = (self.made(row, found) for found in best)
        return list(dict.fromkeys(choices for choices in made if choices is not None))


def _wave_more(row: Target, found: Walked) -> Choices | None:
    """One more wave of a SIMD, where few registers are too many for it."""
    registers, warps = found.metrics.vgpr, found.num_warps
    now = row.workgroups(registers, found.lds_bytes, warps)
    for waves in (int(n) for n in BY_NAME["waves-per-eu"].values if n.isdigit()):
        least = row.vgpr_file // waves // row.vgpr_granule * row.vgpr_granule
        if least < registers and row.workgroups(least, found.lds_bytes, warps) > now:
            return choices_of(waves_per_eu=str(waves)) if registers <= NEAR * least else None
    return None


def _fenced_wave(row: Target, found: Walked) -> Choices | None:
    waves = _wave_more(row, found)
    return waves.replacing(tile_stores="fenced") if waves is not None and not row.has_async_copies else None


def _deeper(depth: int) -> Callable[[Target, Walked], Choices | None]:
    """So many slots, where waves wait and LDS may have room."""

    def made(row: Target, found: Walked) -> Choices | None:
        waits = _waits(found) and row.has_async_copies and 2 * found.lds_bytes <= row.lds_bytes
        return choices_of(depth=str(depth)) if waits else None

    return made


def _fewer_waves(row: Target, found: Walked) -> Choices | None:
    """Registers for as few waves as a workgroup has on a SIMD, where some are spilled."""
    return choices_of(waves_per_eu=str(-(-found.num_warps // row.simds))) if found.metrics.spill else None


def _where(condition: Callable[[Target, Walked], bool], **values: str) -> Callable[[Target, Walked], Choices | None]:
    return lambda row, found: choices_of(**values) if condition(row, found) else None


def _waits(found: Walked) -> bool:
    """Whether more than its busiest unit takes the time of the loop."""
    return found.cycles.hot is not None and found.cycles.hot.distance > IDLE


PROPOSALS = (
    Proposal(_deeper(4), "memory latency of tiles further ahead is hidden, where as many workgroups fit"),
    Proposal(_deeper(3), "the same with less of LDS"),
    Proposal(
        _where(
            lambda row, found: bool(found.cycles.hot and found.cycles.hot.conflicts), transposed_operands="converted"
        ),
        "no banks of LDS conflict in a second read of a tile",
    ),
    Proposal(
        _where(lambda row, found: row.packs_operands, operand_width="two"),
        "half the reads of LDS, and half the addresses in registers",
    ),
    *(
        Proposal(
            _where(lambda row, found: row.matrix_kind == "mfma" and _waits(found), matrix_size=size),
            "less to wait for between instructions, or fewer reads of operands",
        )
        for size in ("16", "32")
    ),
    Proposal(
        _where(lambda row, found: row.has_async_copies, copies_past_end="repeated"),
        "no copy has an instruction for each of its vectors that masks it",
    ),
    Proposal(
        _where(lambda row, found: not row.has_async_copies and _waits(found), load_order="before-reads"),
        "loads land sooner, where registers are left",
    ),
    Proposal(
        _where(lambda row, found: not row.has_async_copies and _waits(found), tile_stores="fenced"),
        "no tile that goes through registers is waited for in the middle of an iteration",
    ),
    Proposal(
        _where(lambda row, found: row.separate_matrix_pipe and _waits(found), scheduler="max-ilp"),
        "instructions that do not wait for each other stand between those that do",
    ),
    Proposal(
        _where(lambda row, found: row.matrix_kind == "mfma" and _waits(found), accumulator_registers="vgprs"),
        "accumulators that no instruction moves from one kind of register to the other",
    ),
    Proposal(
        _where(lambda row, found: _waits(found), slot_form="told-apart"),
        "no barrier between slots that differ, no ring for a loop that runs once",
    ),
    Proposal(_wave_more, "one more wave hides latency"),
    Proposal(_fenced_wave, "the same, where tiles that go through registers wait at the end of the loop alone"),
    Proposal(_fewer_waves, "registers that are not spilled"),
)


@dataclass(frozen=True)
class Confirmed:
    """choices: of a kernel, better than what the rules have. ratio: its clocks over those before."""

    kernel: str
    choices: Choices
    ratio: float

    @property
    def line(self) -> str:
        return f"{', '.join(self.choices.words())}: a compile confirms {self.ratio:.2f} of the predicted clocks"


def with_confirmed(
    request: TranslateRequest, pool: "WorkerPool", translated: Callable[[TranslateRequest], TranslateResult]
) -> TranslateResult:
    """What `translated` makes of a request, with choices that compiles of it confirmed; `chosen` of the result says which."""
    result = translated(request)
    if not _open(request) or result.status != "translated":
        return result
    specs: dict[str, list[LaunchSpec]] = {}
    for outcome in result.outcomes:
        if outcome.status == "translated" and outcome.multiplies:
            specs.setdefault(outcome.spec.kernel, []).append(outcome.spec)
    made = [confirmed(request, own, pool) for own in specs.values()]
    found = {one.kernel: one for one in made if one is not None}
    if not found:
        return result
    chosen = tuple((kernel, one.choices) for kernel, one in sorted(found.items()))
    better = translated(replace(request, chosen=chosen))
    if better.status != "translated":
        return result
    outcomes = tuple(
        replace(o, choices=(*o.choices, found[o.spec.kernel].line)) if o.spec.kernel in found else o
        for o in better.outcomes
    )
    return replace(better, outcomes=outcomes, chosen=chosen)


def _open(request: TranslateRequest) -> bool:
    """Whether nothing is asked for that a choice could be at odds with."""
    asked = request.chosen or request.asked.overrides or request.strategy or request.fallback or request.general
    return not (asked or request.keep_structure or request.emit or request.optimize != "parity")


def confirmed(request: TranslateRequest, launches: Sequence[LaunchSpec], pool: "WorkerPool") -> Confirmed | None:
    """What is better for one kernel than what the rules have."""
    row, kept, tried = target(request.target), Choices(), list[Tried]()
    if 2 * len(launches) > MOST_COMPILES:
        return None
    first = _walked(request, launches, pool, kept, tried)
    best = [*first]
    if not best or not all(found.cycles.work for found in best):
        return None
    for made in (choices for proposal in PROPOSALS for choices in proposal.of(row, best)):
        if len(tried) + len(launches) > MOST_COMPILES:
            break
        if dict(made.overrides).keys() <= dict(kept.overrides).keys():
            continue
        found = _walked(request, launches, pool, made.over(kept), tried)
        if found and _better(found, best, max(RESHAPED if BY_NAME[n].reshapes else STEP for n, _ in made.overrides)):
            kept, best[:] = made.over(kept), found
    ratio = _ratio(best, first)
    return Confirmed(launches[0].kernel, kept, ratio) if ratio * GATE < 1 else None


def _walked(
    request: TranslateRequest, launches: Sequence[LaunchSpec], pool: "WorkerPool", choices: Choices, tried: list[Tried]
) -> list[Walked]:
    """The compiles of a kernel's launches with some choices; none where one of them does not compile or fit. Text that was compiled before
    is none: it is no better."""
    for spec in launches:
        tried += try_candidates(request, spec, pool, (choices,), tried, costs_only=True)
    own = [figures_of(tried, spec.id, choices) for spec in launches]
    return [t.lowered for t in own] if all(t is not None and t.cost and t.cost.fits for t in own) else []


def _better(found: Sequence[Walked], before: Sequence[Walked], step: float) -> bool:
    pairs = list(zip(found, before))
    spills, ratio = any(a.metrics.spill > b.metrics.spill for a, b in pairs), _ratio(found, before)
    slower = any(_clocks(a) > STEP * _clocks(b) for a, b in pairs)
    return not slower and (SPILLS if spills else step) * ratio < 1


def _ratio(found: Sequence[Walked], before: Sequence[Walked]) -> float:
    """In the geometric mean over launches."""
    return math.exp(sum(math.log(_clocks(a) / _clocks(b)) for a, b in zip(found, before)) / len(found))


def _clocks(found: Walked) -> float:
    """For the work of the hottest loop, with its share of what is outside."""
    cycles = found.cycles
    assert cycles.hot is not None, "bug in gluonize: only kernels with loops are compared"
    return (cycles.hot.per_workgroup + cycles.outside / ITERATIONS) / max(cycles.work, 1)


__all__ = ["Confirmed", "confirmed", "with_confirmed"]
