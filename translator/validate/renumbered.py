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
from dataclasses import dataclass
from typing import Any

import numpy as np

from translator.ttgir.module import Module
from translator.ttgir.op import Op
from translator.validate.hazards import Hazard
from translator.validate.ops import TABLE

_NUMBER, _EXTENT = "tt.get_program_id", "tt.get_num_programs"
_OF_NUMBERS = ("arith.addi arith.subi arith.muli arith.andi arith.ori arith.xori arith.maxsi arith.minsi arith.divsi arith.remsi "
               "arith.divui arith.remui arith.shli arith.shrsi arith.shrui arith.cmpi arith.select").split()  # fmt: skip


@dataclass(frozen=True)
class _Zeros:
    """What operations ask of a machine: a division by zero is none of a program that does not get there."""

    def report(self, hazard: Hazard) -> None:
        pass


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
    return any(op.name == _EXTENT and op.word == "x" for op in module.walk())


def fewer_programs(source: Module, translated: Module, extent: int, several: bool = False) -> list[int]:
    """Extents of the first axis of the grid at which a translation that asks for it, though its source does not, may do something else.
    several: its programs have several tiles, as two programs of any source are run."""
    if not _asks_for_extent(translated) or _asks_for_extent(source):
        return []
    return sorted({3, extent - 1, extent - 3, *([2] if several else [])} & set(range(1, extent)))


def _permutations(module: Module, programs: int, given: Mapping[str, int]) -> Iterator[np.ndarray]:
    """The values of a module that are all numbers of `programs` once each, by number; each once, in the order of the operations."""
    found: list[np.ndarray] = []
    for value in scalars(module, programs, given).values():
        if np.shape(value) != (programs,) or value.dtype == np.bool_:
            continue
        if np.array_equal(np.sort(value), np.arange(programs)) and not any(np.array_equal(value, f) for f in found):
            found.append(value)
            yield value


def scalars(module: Module, programs: int, given: Mapping[str, int]) -> dict[str, Any]:
    """The integers that the entry function computes from the number of a program, constants and `given` arguments, in each program: those
    of the first iteration, of a loop that begins at a number of its own in each."""
    entry = module.entry
    known: dict[str, Any] = {
        value: np.int32(given[name]) for (value, _), name in zip(entry.arguments, entry.argument_names) if name in given
    }
    for op in entry.walk():
        if op.name == "scf.for" and np.ndim(known.get(op.for_loop.low)):
            known[op.for_loop.variable] = known[op.for_loop.low]
        if len(op.results) != 1 or op.type.is_tensor:
            continue
        value = _value(op, known, programs)
        if value is not None:
            known[op.results[0]] = value
    return known


def _value(op: Op, known: dict[str, Any], programs: int) -> Any:
    if op.name in (_NUMBER, _EXTENT):
        along_first = op.word == "x"
        numbers = np.arange(programs, dtype=np.int32) if op.name == _NUMBER else np.int32(programs)
        return numbers if along_first else None
    if op.name == "arith.constant" and op.type.element.startswith("i"):
        return TABLE[op.name](_Zeros(), op)
    if op.name not in _OF_NUMBERS or any(operand not in known for operand in op.operands):
        return None
    with np.errstate(all="ignore"):
        return TABLE[op.name](_Zeros(), op, *(known[operand] for operand in op.operands))


__all__ = ["fewer_programs", "same_work", "scalars"]
