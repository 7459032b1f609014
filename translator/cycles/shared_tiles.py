"""Bytes that the L2 cache of an XCD fetches for one iteration of the hot loop: what programs on it have in common comes once.

pid_m, pid_n = pid % 8, pid // 8     programs go to eight XCDs in turn: those of one XCD have one pid_m, and as many pid_n as there are
a = load(a_ptr + pid_m * ...)        fetched once
b = load(b_ptr + pid_n * ...)        fetched for each of them

Which tile a load has is decided by the scalars that its address is made of. They are computed for all programs at once, in the first
iteration of every loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from translator.cycles.traffic import hot_loads, hot_range
from translator.source.launch_spec import LaunchSpec
from translator.ttgir.module import Module, Op

_AXES = "xyz"
_COMPARED: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal,
    **{sign + name: compare for sign in "su" for name, compare in
       (("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal))},
}  # fmt: skip


def _quotient(a: Any, b: Any) -> Any:
    """Rounded towards zero; of a division by zero, which no program gets to, the dividend."""
    b = np.where(b == 0, 1, b)
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


_COMPUTED: dict[str, Callable[..., Any]] = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply,
    "arith.divsi": _quotient, "arith.divui": _quotient,
    "arith.remsi": lambda a, b: a - b * _quotient(a, b), "arith.remui": lambda a, b: a - b * _quotient(a, b),
    "arith.ceildivsi": lambda a, b: -_quotient(-a, b), "arith.floordivsi": lambda a, b: a // np.where(b == 0, 1, b),
    "arith.minsi": np.minimum, "arith.minui": np.minimum, "arith.maxsi": np.maximum, "arith.maxui": np.maximum,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift, "arith.shrui": np.right_shift,
    "arith.extsi": np.array, "arith.extui": np.array, "arith.trunci": np.array, "arith.index_cast": np.array,
    "arith.select": np.where,
}  # fmt: skip


def fetched_bytes(module: Module, spec: LaunchSpec, at_once: int, xcds: int) -> float:
    """Bytes of one iteration that the L2 cache of the busiest XCD fetches, the mean over rounds of `at_once` programs.

    0 where the launch has no grid, or leaves an integer of the kernel open. A program is taken to be in step with the others.
    """
    programs = int(np.prod(spec.grid)) if spec.grid else 0
    loads = hot_loads(module)
    if not programs or not at_once or not loads:
        return 0.0
    scalars = _Scalars(module, spec, programs)
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
    scalars = _Scalars(module, spec, int(np.prod(spec.grid)))
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
    """The integers of the entry function of a module in each program, in the first iteration of its loops."""

    def __init__(self, module: Module, spec: LaunchSpec, programs: int):
        self.programs = programs
        self.made_by: dict[str, tuple[str, ...]] = {}  # what a value is made of
        self.known: dict[str, Any] = {}
        self.open = False
        entry = module.entry
        for (value, kind), name in zip(entry.arguments, entry.argument_names):
            if kind.kind == "int":
                given = spec.values.get(name.removeprefix("%"))
                self.open |= not isinstance(given, int)
                self.known[value] = np.int64(given if isinstance(given, int) else 0)
        extents = [*spec.grid, 1, 1, 1][: len(_AXES)]
        numbers = np.arange(programs)
        before = [1, extents[0], extents[0] * extents[1]]
        self.of_axis = {a: numbers // b % n for a, b, n in zip(_AXES, before, extents)}
        self.extents = dict(zip(_AXES, map(np.int64, extents)))
        for op in entry.walk():
            self._add(op)

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

    def _add(self, op: Op) -> None:
        for value, first in _carried(op):
            self.made_by[value] = (first,)
            if first in self.known:
                self.known[value] = self.known[first]
        made_of = (*op.operands, *(x for inner in _yields(op) for x in inner.operands))
        for result in op.results:
            self.made_by[result] = made_of
        if len(op.results) == 1 and (value := self._value(op)) is not None:
            self.known[op.results[0]] = value

    def _value(self, op: Op) -> Any:
        if op.name in ("tt.get_program_id", "tt.get_num_programs"):
            return (self.of_axis if op.name == "tt.get_program_id" else self.extents)[op.word]
        if op.name == "arith.constant":
            number = None if op.type.is_tensor else op.constant.integer
            return None if number is None else np.int64(number)
        if any(operand not in self.known for operand in op.operands):
            return None
        given = [self.known[operand] for operand in op.operands]
        if op.name == "arith.cmpi":
            return _COMPARED[op.word](*given)
        compute = _COMPUTED.get(op.name)
        return compute(*given) if compute is not None else None


def _carried(op: Op) -> Iterator[tuple[str, str]]:
    """What a loop begins with: (value inside of it, value before it)."""
    if op.name == "scf.for":
        yield op.for_loop.variable, op.for_loop.low
        yield from op.for_loop.bindings
    elif op.name == "scf.while":
        yield from op.bindings


def _yields(op: Op) -> Iterator[Op]:
    """What ends the arms of a branch."""
    if op.name == "scf.if":
        yield from (x for region in op.regions for block in region.blocks for x in block.ops if x.name == "scf.yield")


__all__ = ["fetched_bytes", "hot_steps"]
