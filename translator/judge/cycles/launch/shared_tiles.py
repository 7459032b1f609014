"""Bytes that the L2 cache of an XCD fetches for one iteration of the hot loop: what programs on it have in common comes once.

pid_m, pid_n = pid % 8, pid // 8     programs go to eight XCDs in turn: those of one XCD have one pid_m, and as many pid_n as there are
a = load(a_ptr + pid_m * ...)        fetched once
b = load(b_ptr + pid_n * ...)        fetched for each of them

Which tile a load has is decided by the scalars that its address is made of. They are computed for all programs at once, in the first
iteration of every loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gluonize.judge.cycles.traffic import hot_loads, hot_range
from gluonize.judge.inputs.program_scalars import carried, program_scalars
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module, Op


def fetched_bytes(module: Module, spec: LaunchSpec, at_once: int, xcds: int) -> float:
    """Bytes of one iteration that the L2 cache of the busiest XCD fetches, the mean over rounds of `at_once` programs.

    0 where the launch has no grid, or leaves an integer of the kernel open. A program is taken to be in step with the others.
    """
    programs = int(np.prod(spec.grid)) if spec.grid else 0
    loads = hot_loads(module)
    if not programs or not at_once or not loads:
        return 0.0
    scalars = _Scalars(module, spec)
    if scalars.open:
        return 0.0
    tiles = [(scalars.tiles(op), size) for op, size in loads]
    rounds = [range(first, min(first + at_once, programs)) for first in range(0, programs, at_once)]
    return sum(_most(tiles, numbers, xcds) for numbers in rounds) / len(rounds)


def hot_steps(module: Module, spec: LaunchSpec) -> int | None:
    """How often the loop with most products goes round in the first program, of as many as the launch has; None where the launch does not
    decide that."""
    loop = hot_range(module)
    if loop is None or not spec.grid:
        return None
    scalars = _Scalars(module, spec)
    bounds = [scalars.known.get(x) for x in (loop.for_loop.low, loop.for_loop.high, loop.for_loop.step)]
    if scalars.open or any(x is None for x in bounds):
        return None
    low, high, step = (int(np.ravel(x)[0]) for x in bounds)
    return max(0, -(-(high - low) // step)) if step > 0 else None


def _most(tiles: Sequence[tuple[np.ndarray, int]], numbers: range, xcds: int) -> int:
    """Bytes for the XCD that has most to fetch for programs of these numbers. tiles: the tile of each program, with its bytes."""
    own = [np.arange(numbers.start + (x - numbers.start) % xcds, numbers.stop, xcds) for x in range(xcds)]
    return max(sum(size * len(np.unique(tile[programs])) for tile, size in tiles) for programs in own)


class _Scalars:
    """The integers of the entry function of a module in each program, in the first iteration of its loops. open: the launch leaves an
    argument open. made_by: what each value is made of."""

    def __init__(self, module: Module, spec: LaunchSpec):
        entry, grid = module.entry, (*spec.grid, 1, 1, 1)[:3]
        self.programs = int(np.prod(grid))
        asked = [name for (_, kind), name in zip(entry.arguments, entry.argument_names) if kind.kind == "int"]
        given = {name: spec.values[name] for name in asked if isinstance(spec.values.get(name), int)}
        self.open = len(given) < len(asked)
        self.known = program_scalars(module, grid, given, first_iterations=True)
        self.made_by: dict[str, tuple[str, ...]] = {}
        for op in entry.walk():
            self.made_by |= {value: (first,) for value, first in carried(op)}
            made_of = (*op.operands, *(x for inner in _yields(op) for x in inner.operands))
            self.made_by |= dict.fromkeys(op.results, made_of)

    def tiles(self, op: Op) -> np.ndarray:
        """A number for the tile of each program: of two programs the same where all that decides it is."""
        rows = [np.broadcast_to(self.known[value], self.programs) for value in sorted(self._deciding(op.operands))]
        if not rows:
            return np.zeros(self.programs, dtype=np.int64)
        return np.unique(np.stack(rows), axis=1, return_inverse=True)[1].reshape(-1)

    def _deciding(self, values: Sequence[str]) -> set[str]:
        """The last integers on the way to values that differ between programs."""
        found, seen, todo = set(), set(values), list(values)
        while todo:
            value = todo.pop()
            if value in self.known:
                found |= {value} if np.ndim(self.known[value]) else set()
                continue
            for other in self.made_by.get(value, ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return found


def _yields(op: Op) -> Iterator[Op]:
    """What ends the arms of a branch."""
    if op.name == "scf.if":
        yield from (x for region in op.regions for block in region.blocks for x in block.ops if x.name == "scf.yield")


__all__ = ["fetched_bytes", "hot_steps"]
