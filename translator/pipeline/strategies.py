"""How a loop that stages its loads may be written, and on which targets."""

from __future__ import annotations

from dataclasses import dataclass

from rules.targets import Target


@dataclass(frozen=True)
class Strategy:
    """families: of the targets that can do it; empty for all. needs: what the others lack."""

    name: str
    what: str
    families: tuple[str, ...] = ()
    needs: str = ""

    def serves(self, target: Target) -> bool:
        return not self.families or target.family in self.families


PIPELINED = Strategy("pipelined", "the same warps copy tiles ahead and compute")
WARP_SPECIALIZED = Strategy(
    "warp-specialized",
    "some warps copy tiles, the others compute; mbarriers between them",
    ("cdna5",),
    "barriers in LDS that copies arrive at",
)
PING_PONG = Strategy("ping-pong", "two groups of warps take turns between memory and compute")
STRATEGIES = {strategy.name: strategy for strategy in (PIPELINED, PING_PONG, WARP_SPECIALIZED)}
