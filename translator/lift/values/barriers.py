"""Memory barriers with arrivals, bytes and phases, as far as order is concerned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Barrier:
    """A phase ends when all `count` arrivals are there and no bytes are outstanding."""

    count: int
    pending: int = 0
    bytes: int = 0
    phase: int = 0

    def __post_init__(self):
        self.pending = self.count

    def arrive(self, number: int = 1) -> None:
        self.pending = max(0, self.pending - number)
        self._settle()

    def all_arrive(self) -> None:
        """What completes a barrier of a cluster, whose other arrivals are those of other thread blocks."""
        self.arrive(self.pending)

    def expect(self, size: int) -> None:
        """One arrival, and so many bytes to wait for."""
        self.bytes += size
        self.arrive()

    def landed(self, size: int) -> None:
        self.bytes -= size
        self._settle()

    def _settle(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.pending, self.phase = self.count, self.phase ^ 1
