"""Translations whose programs share the steps of tiles: with how many programs they are run, in which turns, and the memory they are given.

source          one program for each tile
translation     any number of them: what a program has summed of a tile that another one finishes goes through memory
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.inputs.chosen_programs import IN_ORDER, Programs
from gluonize.judge.inputs.inputs import Inputs, Tensor
from gluonize.judge.machine.dtypes import SIGNATURE, encode, held, stored
from gluonize.judge.machine.turns import ALTERNATING, BACKWARD, DRAWN, MOST
from gluonize.judge.verdict.tile_loops import Launched
from gluonize.read.launches.sites.persistent import Shared


@dataclass(frozen=True)
class Dealing:
    """Programs along the first axis, and the order or the turns in which they run."""

    programs: int
    order: str


def dealings(
    shared: Shared | None, grid: Sequence[int], chosen: Programs, variant: bool, in_order: bool
) -> tuple[Dealing | None, ...]:
    """The ways to deal the steps of all tiles; one, None, where there is nothing to deal or not all tiles are computed. in_order: what
    is stored depends on the order of programs.

    One program; fewer programs than tiles, so that some tiles are cut; and more than two for each tile, so that one between
    has neither its first step nor its last. They take turns in which a program is first to get to what it has to wait for.
    """
    tiles, *others = grid
    if shared is None or len(chosen.numbers) < np.prod(grid) or chosen.order != IN_ORDER or in_order:
        return (None,)
    most = max(1, MOST // int(np.prod(others, dtype=int)))
    many, fewer = min(2 * tiles + 1, most), min(max(tiles - 1, 2), most)
    if variant:
        return (Dealing(many, BACKWARD),)
    return Dealing(1, IN_ORDER), Dealing(fewer, ALTERNATING), Dealing(many, BACKWARD), Dealing(many, DRAWN)


def observed(shared: Shared | None, grid: Sequence[int], chosen: Programs, in_order: bool) -> Dealing | None:
    """The dealing by which somebody else runs the translation, one program after another: tiles are cut, and nobody has to wait."""
    ways = dealings(shared, grid, chosen, True, in_order)
    return None if ways[0] is None else replace(ways[0], order=IN_ORDER)


def shared_launch(
    shared: Shared, grid: tuple[int, ...], chosen: Programs, dealing: Dealing | None, inputs: Inputs
) -> tuple[Launched, Inputs]:
    """A translation launched to do the work of the programs `chosen` of the source, which has `grid`; and what it is given.

    Without a dealing there is a program for each tile: it has all of its steps, and leaves nothing for another one.
    """
    tiles, *others = grid
    slots = dealing.programs * int(np.prod(others, dtype=int)) if dealing is not None else 1
    numbers = tuple(range(slots)) if dealing is not None else chosen.numbers
    dealing = dealing or Dealing(tiles, chosen.order)
    element = SIGNATURE[{"int32": "i32"}.get(shared.dtype, shared.dtype)]
    unset = np.full(slots * shared.elements, np.nan if held(element).kind == "f" else -1, held(element))
    added = {
        shared.count: np.int32(tiles),
        shared.sums: _tensor(shared.sums, element, np.asarray(encode(unset, element)).astype(stored(element))),
        shared.marks: _tensor(shared.marks, "i32", np.zeros(slots, np.int32)),
    }
    launch = Launched((dealing.programs, *others), Programs(numbers, dealing.order), tiles)
    return launch, replace(inputs, arguments=inputs.arguments | added)


def _tensor(name: str, element: str, data: np.ndarray) -> Tensor:
    return Tensor(name, element, data, 0, (data.size,), (1,))


__all__ = ["Dealing", "dealings", "observed", "shared_launch"]
