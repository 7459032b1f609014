"""The sizes that a region of one text is sought for, and which of two regions is the better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from translator.general.box import Point
from translator.general.trials import Key, Loose

# What translations do without, None for the kernel as it is without its neighbours. A kernel keeps what runs ahead of its loops.
STARTS = (None, Loose.NOTHING, Loose.PLACES, Loose.ROWS)

Rank = tuple[int, int, int]  # the points around in a region, those that are good, and less for what does without more


@dataclass(frozen=True)
class Wanted:
    """tried: the points that a region is sought among; taken: all that Triton takes, those further away too; keys: of all."""

    tried: Sequence[Point]
    taken: Sequence[Point]
    keys: Sequence[Key]

    @cached_property
    def around(self) -> frozenset[Point]:
        return frozenset(self.tried) & frozenset(self.taken)

    @property
    def perfect(self) -> Rank:
        """No region has a higher rank, and none has this one that does without anything."""
        return len(self.around), len(self.taken), 0


__all__ = ["Rank", "STARTS", "Wanted"]
