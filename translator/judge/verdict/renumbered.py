"""Which program of a translation does the work of which program of its source, where the translation deals their numbers anew.

source          pid = tt.get_program_id x                  what comes after is computed from `pid`
translation     pid = tt.get_program_id x
                p = pid % 8 * (n // 8) + ... + pid // 8    and here from `p`

Found in the two modules and nowhere else: what each computes from the number of a program, the extent of the axis and constants alone, for
all programs at once. Of these values some are all numbers of programs once each: in the translation one more than in the source, from which
all the others follow as they follow from the number itself in the source. Else programs do the work of their own numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gluonize.judge.inputs.program_scalars import program_scalars
from gluonize.trace.model.module import Module


def same_work(source: Module, translated: Module, extent: int, count: str = "") -> np.ndarray | None:
    """By the number of a program of the source along the first axis, that of the program of the translation which does its work; None
    where it is its own. extent: of that axis. count: the parameter of a translation with the number of tiles, of which each program has one.
    """
    if not _asks_for_extent(translated) or extent < 2:
        return None
    given = {count: extent} if count else {}
    here, there = list(_permutations(source, extent, {})), list(_permutations(translated, extent, given))
    if len(there) != len(here) + 1 or len(there) < 2:
        return None
    dealt = there[1]
    if not all(np.array_equal(mine[dealt], its) for mine, its in zip(here, there[1:])):
        return None
    return np.argsort(dealt)


def _asks_for_extent(module: Module) -> bool:
    """Whether a module asks how many programs there are along the first axis."""
    return any(op.name == "tt.get_num_programs" and op.word == "x" for op in module.walk())


def fewer_programs(source: Module, translated: Module, extent: int, several: bool = False) -> list[int]:
    """Extents of the first axis of the grid at which a translation that asks for it, though its source does not, may do something else.
    several: its programs have several tiles, as two programs of any source are run."""
    if not _asks_for_extent(translated) or _asks_for_extent(source):
        return []
    return sorted({3, extent - 1, extent - 3, *([2] if several else [])} & set(range(1, extent)))


def _permutations(module: Module, programs: int, given: Mapping[str, int]) -> Iterator[np.ndarray]:
    """The values of a module that are all numbers of `programs` once each, by number; each once, in the order of the operations."""
    found: list[np.ndarray] = []
    for value in program_scalars(module, (programs,), given).values():
        if np.shape(value) != (programs,) or value.dtype == np.bool_:
            continue
        if np.array_equal(np.sort(value), np.arange(programs)) and not any(np.array_equal(value, f) for f in found):
            found.append(value)
            yield value


__all__ = ["fewer_programs", "same_work"]
