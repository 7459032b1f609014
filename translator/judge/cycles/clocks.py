"""What a translation costs in predicted clocks, beside Triton's own compile: the number that decides before counts of instructions do."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.judge.cycles.prediction import KernelCycles, LoopCycles
from gluonize.judge.lower.compile import Lowered

# Above this a translation is called slower: the model orders loops that are further apart than that (`bench/results/cycles.md`).
GATE = 1.05


@dataclass(frozen=True)
class Clocks:
    """The hottest loops of both sides. ratio: predicted clocks of a compute unit for the same matrix work, translation / Triton."""

    ratio: float
    ours: LoopCycles
    theirs: LoopCycles

    def line(self) -> str:
        """In words, for people."""
        sides = (f"{loop.cycles:.0f} clk an iteration, matrix cores busy {loop.efficiency:.1%}" for loop in self.both)
        return f"{self.ratio:.2f}x the predicted clocks of Triton in the hottest loop: " + "; Triton ".join(sides)

    @property
    def both(self) -> tuple[LoopCycles, LoopCycles]:
        return self.ours, self.theirs

    def as_json(self) -> dict:
        """For JSON results, beside other ratios; slower: why a loop takes more clocks than it should."""
        return {"clocks": round(self.ratio, 4)} | ({"slower": self.above(GATE)} if self.ratio > GATE else {})

    def above(self, gate: float) -> str:
        """What is wrong where the ratio exceeds `gate`, and why; "" where it does not."""
        if self.ratio <= gate:
            return ""
        return f"hottest loop is predicted to take {self.ratio:.2f}x the clocks: {self.reason}"

    @property
    def reason(self) -> str:
        """What a workgroup has more of than in Triton's kernel: of the others on its compute unit less, else of a resource more."""
        ours, theirs = self.ours.workgroups, self.theirs.workgroups
        if ours < theirs:
            return f"a compute unit holds {ours} workgroup{'s' * (ours > 1)} of it, and {theirs} of Triton's"
        mine, other = self._needs(self.ours), self._needs(self.theirs)
        needs = {name: (clk, other.get(name, 0.0)) for name, clk in mine.items()}
        name, (clk, less) = max(needs.items(), key=lambda x: x[1][0] - x[1][1])
        if clk - less > (GATE - 1) * self.theirs.per_workgroup:
            return f"{name} takes {clk:.0f} clk an iteration, and {less:.0f} of Triton's"
        return "its instructions need no more, and wait for each other longer"

    def _needs(self, loop: LoopCycles) -> dict[str, float]:
        """What an iteration of one workgroup needs of each resource, in clocks for the matrix work of our loop."""
        scale = self.ours.work / loop.work
        return {name: clk * scale for name, clk in loop.of_one.bounds.items()}


def clocks_beside(ours: Lowered, theirs: Lowered) -> Clocks | None:
    """`clocks_of` two compiles; None where Triton's needs more LDS than there is: a kernel that is never launched takes no clocks."""
    if theirs.lds_overflow() is not None:
        return None
    return clocks_of(getattr(ours, "cycles", None), getattr(theirs, "cycles", None))


def clocks_of(ours: KernelCycles | None, theirs: KernelCycles | None) -> Clocks | None:
    """None where not both have a loop with products: iterations of other loops need not be of the same work."""
    mine, other = (side.hot if side is not None else None for side in (ours, theirs))
    if mine is None or other is None or not mine.work or not other.work:
        return None
    cost, limit = (loop.per_workgroup / side.work for loop, side in ((mine, ours), (other, theirs)))
    return Clocks(cost / limit, mine, other)


__all__ = ["GATE", "Clocks", "clocks_beside", "clocks_of"]
