"""Loads of a pipelined loop through descriptors of the source."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class DescriptorTile:
    """Tiles of a descriptor of the source. fixed: by dimension, whether the offset is the same in every iteration."""

    owner: ast.expr
    offsets: tuple[ast.expr, ...]
    fixed: tuple[bool, ...]

    @property
    def counts_tiles(self) -> bool:
        """Whether a copy needs the loop index apart from the author's own expressions."""
        return False

    @property
    def permutation(self) -> tuple[int, ...]:
        """Dimension of the tile in LDS behind each dimension of the load."""
        return tuple(range(len(self.offsets)))
