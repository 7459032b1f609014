"""Which parameters decide how often loops run: the backward slice of every loop bound."""

from __future__ import annotations

from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

LOOPS = ("scf.for", "scf.while", "cf.cond_br")


def loop_parameters(module: Module) -> list[str]:
    """Names of the entry function's parameters that loop bounds are computed from, in the order of the function."""
    made: dict[str, Op] = {}
    loops: list[Op] = []
    for op in module.entry.walk():
        made.update((value, op) for value in op.results)
        if op.name in LOOPS:
            loops.append(op)
    wanted = [value for op in loops for value in _bounds(op)]
    seen: set[str] = set()
    while wanted:
        value = wanted.pop()
        if value in seen:
            continue
        seen.add(value)
        op = made.get(value)
        if op is not None and op.name not in LOOPS and op.name != "tt.load":
            wanted += op.operands
    return [name for (value, _), name in zip(module.entry.arguments, module.entry.argument_names) if value in seen]


def _bounds(op: Op) -> tuple[str, ...]:
    """Bounds and step of a `for`; of other loops everything they are given."""
    if op.name != "scf.for":
        return op.operands
    loop = op.for_loop
    return loop.low, loop.high, loop.step
