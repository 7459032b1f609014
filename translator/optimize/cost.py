"""What a candidate costs: predicted clocks of a compute unit for the work of its hottest loop."""

from __future__ import annotations

from dataclasses import dataclass

from translator.cycles.prediction import KernelCycles

# What is outside of the loops is paid once for as many iterations: K = 4096 at a tile of 64. It decides between loops that are alike.
ITERATIONS = 64


@dataclass(frozen=True)
class Cost:
    """cycles: clocks of a compute unit per mega-operation of matrix work (per iteration without any), less is better.

    efficiency: of the matrix cores in the hottest loop, 0 to 1; None without matrix instructions. fits: LDS of one workgroup is
    within the target's.
    """

    cycles: float
    efficiency: float | None
    fits: bool

    @property
    def rank(self) -> tuple:
        return (not self.fits, round(self.cycles, 3))


def cost(found: KernelCycles, fits: bool) -> Cost:
    """What the hottest loop costs, with its share of what is outside; a kernel without loops is all outside."""
    loop = found.hot
    if loop is None:
        return Cost(found.outside, None, fits)
    clk = loop.per_workgroup + found.outside / loop.workgroups / ITERATIONS
    return Cost(clk / (loop.work / 1e6) if loop.work else clk, loop.efficiency, fits)
