"""Tensor descriptors: a base address, bounds, strides and a block shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.machine.dtypes import stored


@dataclass(frozen=True)
class PixelBox:
    """Where pixels of an image are taken: per spatial dimension from `lower` to the last one moved by `upper`, every `step`-th."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]

    def walk(self, place: list[int], extents: tuple[int, ...], count: int) -> Iterator[list[int]]:
        """`count` pixels (image, spatial dimensions) from `place` on, row after row, image after image."""
        for _ in range(count):
            yield list(place)
            for d in reversed(range(len(extents))):
                place[d + 1] += self.steps[d]
                if place[d + 1] <= extents[d] - 1 + self.upper[d]:
                    break
                place[d + 1] = self.lower[d]
            else:
                place[0] += 1


@dataclass(frozen=True)
class Descriptor:
    """A tile accessor. `base` in bytes, `strides` in elements; index i of a dimension is inside when 0 <= i < `bounds`.

    `padding` fills what lies outside. `enabled` is false after a predicate that was false: copies then do nothing. `box`: of one whose tiles
    are pixels of images (im2col).
    """

    base: int
    bounds: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    element: str
    padding: float = 0.0
    enabled: bool = True
    box: "PixelBox | None" = None

    def pixels(self, start, offsets) -> tuple[np.ndarray, np.ndarray]:
        """Addresses and mask of `block` (pixels, channels) from the pixel and channel `start` on, each pixel moved by `offsets`."""
        assert self.box is not None, "a descriptor of tiles has no pixels"
        size = stored(self.element).itemsize
        count, width = self.block
        places = np.array(list(self.box.walk([int(x) for x in start[:-1]], self.bounds[1:-1], count)), np.int64)
        places[:, 1:] += [int(x) for x in offsets]
        channels = int(start[-1]) + np.arange(width, dtype=np.int64)
        inside = ((places >= 0) & (places < self.bounds[:-1])).all(1)[:, None]
        inside = inside & ((channels >= 0) & (channels < self.bounds[-1]))[None, :]
        address = (places * self.strides[:-1]).sum(1)[:, None] + channels[None, :] * self.strides[-1]
        return self.base + address * size, inside

    def with_block(self, block: tuple[int, ...]) -> "Descriptor":
        """The same tensor in other tiles."""
        return replace(self, block=block)

    def tile(self, offsets) -> tuple[np.ndarray, np.ndarray]:
        """Addresses and in-bounds mask of the block at `offsets`, both of the block's shape."""
        size = stored(self.element).itemsize
        rank = len(self.bounds)
        block = (1,) * (rank - len(self.block)) + tuple(self.block)
        address, inside = np.full((1,) * rank, self.base, np.int64), np.ones((1,) * rank, bool)
        for d in range(rank):
            index = int(offsets[d]) + np.arange(block[d], dtype=np.int64)
            shape = [1] * rank
            shape[d] = block[d]
            address = address + (index * self.strides[d] * size).reshape(shape)
            inside = inside & ((index >= 0) & (index < self.bounds[d])).reshape(shape)
        return address, inside

    def rows(self, rows, column: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Addresses and mask of `width` columns from `column` in each of `rows` (2-D descriptors)."""
        size = stored(self.element).itemsize
        r = rows.astype(np.int64)[:, None]
        c = column + np.arange(width, dtype=np.int64)[None, :]
        address = self.base + (r * self.strides[0] + c * self.strides[1]) * size
        inside = (r >= 0) & (r < self.bounds[0]) & (c >= 0) & (c < self.bounds[1])
        return address, inside

    def moved(self, offsets, clamp: bool) -> "Descriptor":
        """The descriptor with its tile moved by `offsets`; the bounds shrink with it only when `clamp`."""
        size = stored(self.element).itemsize
        base = self.base + size * sum(int(o) * s for o, s in zip(offsets, self.strides))
        bounds = self.bounds
        if clamp:
            bounds = tuple(max(0, b - int(o)) for b, o in zip(bounds, offsets))
        return replace(self, base=base, bounds=bounds)
