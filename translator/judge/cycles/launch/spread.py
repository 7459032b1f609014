"""How the workgroups of a launch spread over compute units, and what an iteration of a loop takes of these then.

1 program of 1 workgroup, 2 compute units     one works, and takes in all that the program reads
1 program of 2 workgroups                     both work, and each takes in its own tiles and those that both need
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gluonize.judge.cycles.prediction import LoopCycles
from gluonize.judge.cycles.traffic import Traffic
from gluonize.rules.targets import Target
from gluonize.rules.timing import Timing


@dataclass(frozen=True)
class Spread:
    """rounds: how often the compute units take workgroups in, or go on to other tiles. resident: workgroups that share one then, `full` at most. running:
    workgroups at once, of all `units`. price: clk of a compute unit, idle ones too, that a clk of a round costs each program.
    """

    rounds: int
    resident: int
    full: int
    running: float
    units: float
    price: float


def spread(grid: Sequence[int], ctas: int, full: int, target: Target, timing: Timing) -> Spread:
    """The spread of a launch, or, without a grid, of one that fills all compute units for long.

    ctas: workgroups of a program. full: as many as share a compute unit at most. Programs that go from tile to tile count as one for each tile.
    """
    units = compute_units(target, timing)
    programs = math.prod(grid) if grid else 0
    if not programs or not units:
        return Spread(1, full, full, units * full, units, ctas / full)
    workgroups = programs * ctas
    rounds = math.ceil(workgroups / (units * full))
    resident = min(full, math.ceil(workgroups / units))
    return Spread(rounds, resident, full, min(workgroups, units * full), units, units * rounds / programs)


def compute_units(target: Target, timing: Timing) -> float:
    """What a workgroup lives on, of which the target has so many: a pair of RDNA's compute units."""
    if target.compute_units is None:
        return float(timing.units)
    return target.compute_units / (1 if target.warp_size == 64 else 2)


def iteration_clk(loop: LoopCycles, traffic: Traffic, ctas: int, launch: Spread, timing: Timing) -> float:
    """Clocks of one iteration of all workgroups that share a compute unit: what they execute, what arrives at it, what L2 has to give to
    all of them, or what the L2 cache of an XCD has to fetch, whichever takes longest. traffic: of the loop.
    """
    # What fewer would wait for each other is not waited for, but what one waits for memory and LDS is.
    executed = max(loop.alone, loop.cycles * launch.resident / launch.full)
    arriving = launch.resident * traffic.received / timing.port_bytes
    given = launch.running / ctas * traffic.read / (launch.units * timing.l2_bytes) if launch.units else 0.0
    fetched = traffic.fetched / timing.fetch_bytes if timing.fetch_bytes else 0.0
    return max(executed, arriving, given, fetched)
