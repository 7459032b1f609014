"""Ranges of tile sizes and numbers of warps, all powers of two."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SizeRange:
    """A size from `least` to `most`, in powers of two."""

    name: str
    least: int
    most: int

    def __contains__(self, value: int) -> bool:
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"{self.name}={self.least}" if self.least == self.most else f"{self.name} {self.least} to {self.most}"
