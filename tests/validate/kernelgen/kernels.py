"""`kernel_of(seed)`: one of all kinds of kernels, sometimes with a part of it moved to a helper."""

from __future__ import annotations

from dataclasses import replace

from kernelgen import addresses, descriptors, loops, matrix_tiles, programs, tiles
from kernelgen.draw import Draw, RandomKernel
from kernelgen.outline import outlined

# How often each is made.
KINDS = {
    "loops of products": (loops.products, 7),
    "loops of vectors": (loops.vectors, 4),
    "addresses": (addresses.addresses, 5),
    "persistent": (programs.persistent, 3),
    "locks": (programs.locks, 2),
    "in place": (programs.in_place, 2),
    "modes": (programs.modes, 3),
    "descriptors": (descriptors.descriptors, 2),
    "elementwise": (tiles.elementwise, 1),
    "rows": (tiles.rows, 1),
    "scans": (tiles.scans, 1),
    "control": (tiles.control, 1),
    "products": (matrix_tiles.products, 1),
    "loops with dots": (matrix_tiles.loops_with_dots, 1),
    "attention": (matrix_tiles.attention, 1),
}
OUTLINED = 0.25  # share of kernels with a part in a helper
SPECIALIZED = 0.15  # share of kernels that are compiled once more, for the values of another launch
_ALL = [name for name, (_, weight) in KINDS.items() for _ in range(weight)]


def kernel_of(seed: int, kinds: tuple[str, ...] = ()) -> RandomKernel:
    """The kernel of this number; of one of `kinds` where any are named."""
    draw = Draw(f"{seed}")
    kind = draw.pick(*(kinds or _ALL))
    kernel = replace(KINDS[kind][0](draw), kind=kind, specialized=draw.chance(SPECIALIZED))
    return replace(kernel, text=outlined(kernel.text, draw)) if draw.chance(OUTLINED) else kernel
