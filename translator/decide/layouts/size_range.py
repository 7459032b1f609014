"""What sizes of a launch a kernel holds for: ranges of tile sizes and numbers of warps, all powers of two, and bounds of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gluonize.decide.layouts.formulas import Product, Sizes, sum_text


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

    def condition(self, spelled: Callable[[str], str]) -> str:
        """As Python; spelled: how a size is written."""
        if self.least == self.most:
            return f"{spelled(self.name)} == {self.least}"
        size = spelled(self.name)
        # Triton 3.8 has no comparisons of three.
        least = f"{self.least} <= {size} and " if self.least > 1 else ""
        return f"{least}{size} <= {self.most}"


@dataclass(frozen=True)
class RatioBound:
    """Sizes over others, of which there are at least `least`: `BLOCK_M >= 32 * num_warps`. exponents: 1 or -1 by size."""

    exponents: tuple[tuple[str, int], ...]
    least: int  # a power of two; 1 / least of it where it is negative

    @property
    def sizes(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.exponents)

    def holds(self, sizes: Sizes) -> bool:
        above = below = 1
        for name, exponent in self.exponents:
            above, below = (above * sizes[name], below) if exponent > 0 else (above, below * sizes[name])
        return above * self._factors[0] >= below * self._factors[1]

    @property
    def _factors(self) -> tuple[int, int]:
        return (1, self.least) if self.least > 0 else (-self.least, 1)

    def condition(self, spelled: Callable[[str], str]) -> str:
        above = [spelled(name) for name, exponent in self.exponents if exponent > 0]
        below = [spelled(name) for name, exponent in self.exponents if exponent < 0]
        sides = [[str(f)] * (f > 1) + names for f, names in zip(self._factors, (above, below))]
        left, right = (" * ".join(side) or "1" for side in sides)
        return f"{left} >= {right}" if above else f"{right} <= {left}"

    def __str__(self) -> str:
        return self.condition(str)


@dataclass(frozen=True)
class RoomBound:
    """LDS has room for `slots` of tiles that take `products` bytes each: `2 * (2 * BLOCK_K * (BLOCK_M + BLOCK_N)) <= 65536`."""

    products: tuple[Product, ...]
    slots: int
    room: int  # bytes

    @property
    def sizes(self) -> frozenset[str]:
        return frozenset(name for product in self.products for name, _ in product.exponents)

    def holds(self, sizes: Sizes) -> bool:
        return self.slots * sum(2 ** product.log(sizes) for product in self.products) <= self.room

    def condition(self, spelled: Callable[[str], str]) -> str:
        whole = sum_text(self.products, spelled)
        return f"{self.slots} * ({whole}) <= {self.room}" if self.slots > 1 else f"{whole} <= {self.room}"

    def __str__(self) -> str:
        return f"{self.condition(str)} (bytes of LDS)"


Bound = RatioBound | RoomBound


def in_words(limits: Sequence[SizeRange | Bound]) -> str:
    """Limits in words, sizes of the same range together: `BLOCK_M, BLOCK_N 16 to 256, num_warps 1 to 8`."""
    words: list[str] = []
    for limit, after in zip(limits, (*limits[1:], None)):
        same = (
            isinstance(limit, SizeRange) and isinstance(after, SizeRange) and replace(limit, name=after.name) == after
        )
        words.append(limit.name if same else str(limit))  # type: ignore[union-attr]
    return ", ".join(words)


__all__ = ["Bound", "RatioBound", "RoomBound", "SizeRange", "in_words"]
