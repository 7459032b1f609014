"""The schedule of a warp-specialized loop as data: what its barriers count.

The producer copies tile t into slot t mod buffers once the slot is empty; the consumer reads it once it is ready. Loads
that are read together form a group with two barriers per slot: `ready` counts the lanes of the producer (the warps, for
copies of the tensor data mover), whose arrivals follow their copies, `empty` counts the lanes of the consumer. A barrier's phase
flips when all have arrived; `wait(p)` passes when the phase is not p, so waiting for the phase before the first one passes at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.loops.plan.schedule import Schedule


@dataclass(frozen=True)
class Partitions:
    """groups: names of the tiles that are copied and read together, in order. tensor: how many tiles of each group the
    tensor data mover copies: each warp arrives for each of them; lanes arrive once for all other copies of the group.
    """

    buffers: int
    groups: tuple[tuple[str, ...], ...]
    producer_warps: int
    consumer_warps: int
    lanes: int
    tensor: tuple[int, ...] = ()

    mechanism = "partitions"
    copies = True
    in_slots = grouped = stored = False
    tensor_loads = 0
    why_fewer = Schedule.why_fewer

    def ready_count(self, group: int) -> str:
        """The arrivals at the barriers of a group's ready slots, by what they are made of: warps times lanes, and warps times copies
        of the tensor data mover."""
        tensor, warps = self.tensor[group] if self.tensor else 0, self.producer_warps
        terms = [f"{warps} * {self.lanes}"] if tensor < len(self.groups[group]) else []
        terms += [f"{warps} * {tensor}" if tensor > 1 and warps > 1 else f"{warps * tensor}"] if tensor else []
        return " + ".join(terms)

    def described(self) -> list[str]:
        """What the partitions do, in words."""
        named = [f"{' and '.join(group)}" for group in self.groups]
        lines = [
            f"producer: {self.producer_warps} warps; consumer: {self.consumer_warps} warps",
            f"barriers per slot: {', '.join(f'ready and empty for {names}' for names in named)}",
            f"arrivals at ready: {', '.join(map(self.ready_count, range(len(self.groups))))}, after the copies",
            f"arrivals at empty: {self.consumer_warps} * {self.lanes}, after the reads",
            f"tile t: slot t % {self.buffers}, phase t // {self.buffers} & 1; the producer waits for the phase before",
        ]
        return lines
