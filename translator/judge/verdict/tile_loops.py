"""Translations whose programs go from tile to tile: which tiles each program has, and with how many programs they are run.

%n = tt.get_num_programs x
scf.for %tile = %pid to %tiles step %n        in the translation alone; a program of the source has one tile
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gluonize.judge.inputs.chosen_programs import IN_ORDER, LAST_FIRST, Programs
from gluonize.judge.inputs.program_scalars import program_scalars
from gluonize.judge.machine.hazards import Finding
from gluonize.trace.model.module import Module, Op

_EACH = 3  # tiles of a program: the first, one between, the last
_TRIED = ((1, 1), (7, 3), (6, 3), (3, 8), (64, 5), (257, 256))  # tiles, programs


@dataclass(frozen=True)
class Launched:
    """What a translation is launched with: its grid, its programs in order, and how many tiles there are along the first axis."""

    grid: tuple[int, ...]
    programs: Programs
    tiles: int


def launched(grid: tuple[int, ...], chosen: Programs, alike: Programs, in_order: bool) -> Launched:
    """A translation that goes from tile to tile, as it does the work of the programs `chosen` of the source, which has `grid`.

    Where all of them run, a program has several tiles; else, or where their order can only be kept so, each has its own. alike: the programs
    that do so. in_order: what is stored depends on the order of programs.
    """
    tiles, *others = grid
    every = len(chosen.numbers) == int(np.prod(grid))
    if not every or chosen.order not in ((IN_ORDER,) if in_order else (IN_ORDER, LAST_FIRST)) or in_order and others:
        return Launched(grid, alike, tiles)
    programs = 1 if in_order else max(1, tiles // _EACH)
    count = programs * int(np.prod(others, dtype=int))
    return Launched((programs, *others), Programs(tuple(range(count)), chosen.order), tiles)


def badly_shared(module: Module, count: str) -> Finding | None:
    """The first tile that not exactly one program has, for some numbers of tiles and of programs; None also where the loop over tiles is
    not one that can be told so: what it leaves out shows in the results. count: the parameter with how many tiles there are.
    """
    loop = next(_loops(module, count), None)
    if loop is None:
        return None
    place = loop.place
    for tiles, programs in _TRIED:
        known = program_scalars(module, (programs,), {count: tiles})
        low, high, step = (np.broadcast_to(known[x], programs) for x in _bounds(loop))
        found = [t for a, b, c in zip(low, high, step) for t in range(int(a), int(b), max(int(c), 1))]
        wrong = next(
            (t for t in range(tiles) if found.count(t) != 1), next((t for t in found if t >= tiles or t < 0), None)
        )
        if wrong is not None:
            times = found.count(wrong)
            what = f"of {tiles} tiles, {programs} programs do tile {wrong} {times} times" if wrong < tiles else ""
            what = what or f"of {tiles} tiles, {programs} programs do one of number {wrong}"
            return Finding("tiles", what, loop.name, place.file, place.line, place.column)
    return None


def _bounds(loop: Op) -> tuple[str, str, str]:
    return loop.for_loop.low, loop.for_loop.high, loop.for_loop.step


def _loops(module: Module, count: str) -> Iterator[Op]:
    """The loops of the entry function over numbers that are known of each program."""
    known = program_scalars(module, (2,), {count: 3})
    for block in module.entry.region.blocks:
        for op in block.ops:
            if op.name == "scf.for" and all(x in known for x in _bounds(op)):
                if any(np.ndim(known[x]) or x == f"%{count}" for x in _bounds(op)):
                    yield op


__all__ = ["Launched", "badly_shared", "launched"]
