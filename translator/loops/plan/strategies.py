"""How a loop that stages its loads may be written, and on which targets."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.rules.targets import Target


@dataclass(frozen=True)
class Strategy:
    """capability: the field of a target's row that says whether it can do it; "" for all. needs: what the others lack."""

    name: str
    what: str
    capability: str = ""
    needs: str = ""

    def serves(self, target: Target) -> bool:
        return not self.capability or getattr(target, self.capability)


PIPELINED = Strategy("pipelined", "the same warps copy tiles ahead and compute")
WARP_SPECIALIZED = Strategy(
    "warp-specialized",
    "some warps copy tiles, the others compute; mbarriers between them",
    "supports_warp_specialization",
    "barriers in LDS that copies arrive at",
)
PING_PONG = Strategy("ping-pong", "two groups of warps take turns between memory and compute")
STRATEGIES = {strategy.name: strategy for strategy in (PIPELINED, PING_PONG, WARP_SPECIALIZED)}
