"""What a candidate costs: predicted clocks of compute units for the work of its hottest loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gluonize.judge.cycles.launch.spread import iteration_clk, spread
from gluonize.judge.cycles.prediction import KernelCycles
from gluonize.rules.targets import target as target_row

# What is outside of the loops is paid once for as many iterations: K = 4096 at a tile of 64. It decides between loops that are alike.
ITERATIONS = 64


@dataclass(frozen=True)
class Cost:
    """cycles: clocks of compute units per mega-operation of matrix work (per iteration of a program without any), less is better. Those
    that have nothing to do for a launch count too.

    efficiency: of the matrix cores in the hottest loop, 0 to 1; None without matrix instructions. fits: LDS of one workgroup is
    within the target's.
    """

    cycles: float
    efficiency: float | None
    fits: bool

    @property
    def rank(self) -> tuple:
        return (not self.fits, round(self.cycles, 3))


def cost(
    found: KernelCycles, fits: bool, grid: Sequence[int] = (), iterations: float = ITERATIONS, work: float = 0
) -> Cost:
    """What the hottest loop costs, with its share of what is outside; a kernel without loops is all outside.

    grid: of the launch; without one, of one that fills the compute units. iterations: that pay for what is outside once. work: of matrices in
    each of these, where that of the loop's own would favour loops that are unrolled.
    """
    row, loop = target_row(found.target), found.hot
    timing = row.timing
    launch = spread(grid, found.ctas, loop.workgroups if loop else 1, row, timing)
    if loop is None:
        return Cost(found.outside * launch.resident * launch.price, None, fits)
    own = found.work
    if work and own:
        iterations *= work / own
    clk = iteration_clk(loop, found.traffic, found.ctas, launch, timing) + found.outside / iterations
    clk *= launch.price
    return Cost(clk / (own / 1e6) if own else clk, loop.efficiency, fits)
