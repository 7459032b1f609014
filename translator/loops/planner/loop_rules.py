"""What the loop of matrix products is by default, where that is not what Triton's passes have.

With one workgroup, nothing else runs while its waves wait: what is left of LDS goes to tiles that are under way, and where each SIMD has
two waves of it, one moves data while the other multiplies. In step, both would fill the queue of memory, and then wait for it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.products.scaled import is_scaled_product, scaled_product
from gluonize.loops.passes.slices import accumulator_of, multiplies
from gluonize.loops.plan.plan import PipelinedLoad, PipelinePlan
from gluonize.loops.plan.schedule import Copied, Refilled, Stored
from gluonize.loops.plan.tiles.strided import StridedTile
from gluonize.loops.planner.planner import plan_loop
from gluonize.rules.choices import CHOICES
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import SharedLayout, warps_of
from gluonize.trace.model.shared_layouts import slots_bytes
from gluonize.write.state.unit import Decided

MOST_SLOTS = 4  # further ahead, a tile is in LDS long before it is read
MOST_PARTS = 4
# Of the registers of a lane: for addresses, masks, and what the compiler moves.
BESIDE = 8


@dataclass(frozen=True)
class Ruled:
    """choices: what holds; why: in words, for who reads the result."""

    choices: Choices
    why: str


@dataclass(frozen=True)
class _Loop:
    """The one loop of a kernel, which adds up one product. sums, operands: registers of a lane; operands: of either one; rows: how far
    the part of a wave reaches along M and N; slot: bytes of a tile of each load; loaded: registers of what waits to be stored there.
    scaled: whether operands have scales.
    """

    plan: PipelinePlan
    sums: int
    operands: tuple[int, int]
    rows: tuple[int, int]
    slot: int
    loaded: int
    scaled: bool


def ruled(facts: FunctionFacts, decided: Decided) -> Iterator[Ruled]:
    """What the kernel's loop is by default, the best first; nothing where that is as Triton's passes have it."""
    options, target = {choice.name for choice in CHOICES if choice.option is not None}, facts.kernel.target
    asked = {name: value for name, value in decided.choices.overrides if name not in options}
    if (
        asked.items() - {("warp-groups", "together"), ("depth", "launch")}
        or decided.strategy
        or facts.kernel.loose
        or facts.kernel.num_ctas > 1
    ):
        return
    loop = _loop(facts, decided)
    if loop is None:
        return
    plan, held = loop.plan, max(loop.plan.schedule.buffers, min(MOST_SLOTS, target.lds_bytes // loop.slot))
    deeper = "depth" not in asked and held > plan.schedule.buffers
    depth = {"depth": str(held)} if deeper else {}
    slots = held if deeper else plan.schedule.buffers
    one = "a compute unit holds one workgroup in any case"
    under_way = f"{one}: LDS has room for {held} tiles of each" if deeper else one
    waves = -(-facts.kernel.num_warps // target.simds)
    takes_turns = target.separate_matrix_pipe and not target.supports_tdm and waves == 2
    if loop.loaded:
        if takes_turns and "warp-groups" not in asked and (parts := _parts(loop, target.vgpr_file // waves)):
            wide = {"operand_width": "two"} if target.packs_operands else {}
            chosen = {"warp_groups": "alternating", "accumulator_slices": parts, "refill": "after-read"}
            yield Ruled(decided.choices.replacing(**wide, **chosen), f"{one}, and the two waves of a SIMD take turns")
        return
    if takes_turns and "warp-groups" not in asked and (parts := _parts(loop, target.vgpr_file // waves)) is not None:
        sliced = {"accumulator_slices": parts} if parts != "1x1" else {}
        refill = {"refill": "after-read"} if slots == 2 else {}
        chosen = decided.choices.replacing(**depth, warp_groups="alternating", **sliced, **refill)
        turns = f"{under_way}, and the two waves of a SIMD take turns"
        if loop.scaled:  # no scales are put together from bytes between the matrix instructions
            yield Ruled(chosen.replacing(scale_reads="words"), turns)
        yield Ruled(chosen, turns)
    # A wave whose own copies wait in the queue of memory does nothing else meanwhile, however far ahead they are.
    if deeper and target.supports_tdm:
        yield Ruled(decided.choices.replacing(**depth), under_way)


def _loop(facts: FunctionFacts, decided: Decided) -> _Loop | None:
    """The kernel's loop, where it has one whose tiles are all copied to LDS, and that adds up one product."""
    if any(len(path) > 1 for path in facts.kernel.staging) or not facts.kernel.staging:
        return None
    loops = [n for n in facts.for_loops if facts.taken(n)]
    dots = [n for s in loops[:1] for n in ast.walk(s) if multiplies(facts, n)]
    if len(loops) != 1 or len(dots) != 1 or facts.tensor(dots[0]).rank != 2:
        return None
    scaled = is_scaled_product(facts, dots[0])
    made = scaled_product(facts, dots[0]) if scaled else products.DotPlan(facts, dots[0])
    warps = warps_of(made.result) if made is not None else ()
    if len(warps) != 2:
        return None
    shape, lanes = facts.tensor(made.node).shape, facts.kernel.target.warp_size
    rows = (max(1, shape[0] // warps[0]), max(1, shape[1] // warps[1]))
    bits = [bits_of(facts.tensor(x).dtype) for x in (made.a, made.b)]
    depths = facts.tensor(made.a).shape[1], facts.tensor(made.b).shape[0]  # of two elements in a byte, their bytes
    scales = [_groups(facts, x) for x in made.scales] if scaled else [0, 0]  # each in a register of its own
    operands = tuple(n * (k * size // 32 + groups) // lanes for n, k, size, groups in zip(rows, depths, bits, scales))
    sums = math.prod(rows) // lanes
    # Before a loop is planned for that: its tiles without padding, of which Triton keeps one in registers where it copies none.
    tiles = sum(own * k * size // 8 for own, k, size in zip(shape, depths, bits))
    slots = max(staged.buffers + (staged.copy in ("registers", "held")) for staged in facts.kernel.staging.values())
    if not _alone(facts, sums + sum(operands), tiles * slots):
        return None
    plan = plan_loop(facts, decided, loops[0])
    if not isinstance(plan, PipelinePlan) or plan.written_out is not None or isinstance(plan.schedule, Refilled):
        return None
    stored = [load.stored for load in plan.loads]
    if not isinstance(plan.schedule, Copied | Stored) or any(load.held for load in plan.loads):
        return None
    if any(stored) and not all(stored):
        return None
    statement = next((a for a in plan.atoms if dots[0] in ast.walk(a)), None)
    if statement is None or accumulator_of(facts, plan, statement, dots[0]) is None:
        return None
    slot = sum(
        slots_bytes(_shared(load), load.staged.shape, bits_of(facts.tensor(load.call).dtype), 1) for load in plan.loads
    )
    alone = _alone(facts, sums + sum(operands), slot * plan.schedule.buffers)
    loaded = tiles // (4 * facts.kernel.num_warps * lanes) if any(stored) else 0
    return _Loop(plan, sums, operands, rows, slot, loaded, scaled) if alone else None


def _groups(facts: FunctionFacts, scale: ast.expr | None) -> int:
    """How many scales a row of an operand has."""
    return facts.tensor(scale).shape[1] if scale is not None else 0


def _shared(load: PipelinedLoad) -> SharedLayout:
    """Where a tile lies in LDS."""
    return load.tile.shared if isinstance(load.tile, StridedTile) else load.staged.shared


def _alone(facts: FunctionFacts, registers: int, lds: int) -> bool:
    """Whether a compute unit holds one workgroup, by the registers of its sums and operands, or by its tiles in LDS."""
    target = facts.kernel.target
    return target.workgroups(min(registers, target.vgpr_limit), min(lds, target.lds_bytes), facts.kernel.num_warps) <= 1


def _parts(loop: _Loop, registers: int) -> str | None:
    """In how many parts of its longer side the accumulator is kept, so that it and live operands fit; None where they never do. Of tiles
    that are stored, the other group reads one part while the slot of another is filled."""
    side = 0 if loop.rows[0] >= loop.rows[1] else 1
    parts = 2 if loop.loaded else 1
    while parts <= MOST_PARTS:
        live = loop.sums + loop.loaded + loop.operands[1 - side] + loop.operands[side] // parts
        if live < registers - registers // BESIDE:
            return f"{parts}x1" if side == 0 else f"1x{parts}"
        parts *= 2
    return None


def packs_operands(facts: FunctionFacts, decided: Decided) -> bool:
    """Whether the kernel's loop is to have operands of which a lane has parts for two instructions, which Triton's passes lay out."""
    return any(found.choices.asks("operand-width", "two") for found in ruled(facts, decided))


__all__ = ["Ruled", "packs_operands", "ruled"]
