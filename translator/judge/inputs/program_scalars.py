"""The integers that a kernel computes from the number of a program, in all programs at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gluonize.judge.machine.dtypes import HELD
from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.ops.rows import ROWS
from gluonize.judge.machine.table import TABLE
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

assert ROWS  # they fill the table
_NUMBER, _EXTENT, _AXES = "tt.get_program_id", "tt.get_num_programs", "xyz"
_OF_INTEGERS = ("arith.addi arith.subi arith.muli arith.andi arith.ori arith.xori arith.maxsi arith.minsi arith.maxui arith.minui "
                "arith.divsi arith.remsi arith.divui arith.remui arith.ceildivsi arith.floordivsi arith.shli arith.shrsi arith.shrui "
                "arith.cmpi arith.select arith.extsi arith.extui arith.trunci arith.index_cast").split()  # fmt: skip


@dataclass(frozen=True)
class _Zeros:
    """What operations ask of a machine: a division by zero is none of a program that does not get there."""

    def report(self, hazard: Hazard) -> None:
        pass


def program_scalars(
    module: Module, grid: Sequence[int], given: Mapping[str, int], first_iterations: bool = False
) -> dict[str, Any]:
    """By value, what the entry function computes from the numbers of programs, the extents of axes that `grid` has, constants and `given`
    arguments: a number, or one for each program of the grid.

    first_iterations: what loops carry is what they begin with. Else the variable of a loop is known where it begins at a number of its own in
    each program.
    """
    entry, programs = module.entry, int(np.prod(grid, dtype=int))
    numbers, along = np.arange(programs, dtype=np.int32), {}
    for axis, extent in zip(_AXES, grid):
        along[_NUMBER, axis], along[_EXTENT, axis] = numbers % extent, np.int32(extent)
        numbers = numbers // extent
    known: dict[str, Any] = {
        value: np.int64(given[name]).astype(HELD[kind.element])
        for (value, kind), name in zip(entry.arguments, entry.argument_names)
        if name in given
    }
    for op in entry.walk():
        for value, first in carried(op):
            is_own = op.name == "scf.for" and value == op.for_loop.variable and np.ndim(known.get(first))
            if first in known and (first_iterations or is_own):
                known[value] = known[first]
        if (value := _value(op, known, along)) is not None:
            known[op.results[0]] = value
    return known


def _value(op: Op, known: Mapping[str, Any], along: Mapping[tuple[str, str], Any]) -> Any:
    """The one result of an operation, None where it is not known."""
    if op.name in (_NUMBER, _EXTENT):
        return along.get((op.name, op.word))
    if len(op.results) != 1 or op.type.is_tensor:
        return None
    if op.name == "arith.constant" and op.type.element.startswith("i"):
        return TABLE[op.name](_Zeros(), op)
    if op.name not in _OF_INTEGERS or any(operand not in known for operand in op.operands):
        return None
    with np.errstate(all="ignore"):
        return TABLE[op.name](_Zeros(), op, *(known[operand] for operand in op.operands))


def carried(op: Op) -> Iterator[tuple[str, str]]:
    """What a loop begins with: (value inside of it, value before it)."""
    if op.name == "scf.for":
        yield op.for_loop.variable, op.for_loop.low
        yield from op.for_loop.bindings
    elif op.name == "scf.while":
        yield from op.bindings


__all__ = ["carried", "program_scalars"]
