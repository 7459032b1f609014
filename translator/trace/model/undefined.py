"""Values that are used where they are not defined, which no module of Triton's has: one that was edited may."""

from __future__ import annotations

from collections.abc import Collection

from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op, Region


def first_undefined(module: Module) -> tuple[Op, str] | None:
    """The first operation with an operand that is not defined before it, and the operand; None where there is none."""
    for function in module.functions.values():
        if (found := _within(function.region, {value for value, _ in function.arguments})) is not None:
            return found
    return None


def _within(region: Region, known: Collection[str]) -> tuple[Op, str] | None:
    defined = {*known}
    for block in region.blocks:
        defined |= {value for value, _ in block.arguments}
        for op in block.ops:
            own: set[str] = set()
            if op.name == "scf.for":
                own = {op.for_loop.variable, *(argument for argument, _ in op.for_loop.bindings)}
            elif op.name == "scf.while":
                own = {argument for argument, _ in op.bindings}
            used = (first for _, first in op.bindings) if op.name == "scf.while" else op.operands
            if (missing := next((x for x in used if x not in defined and x not in own), None)) is not None:
                return op, missing
            inner = defined | own
            for each in op.regions:
                if (found := _within(each, inner)) is not None:
                    return found
            defined |= {*op.results}
    return None
