"""Which parameters of a kernel are strides by what is done with them: numbers are multiplied with them, and added to a pointer."""

from __future__ import annotations

from collections.abc import Mapping

from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

_SAME = ("arith.extsi", "arith.extui", "arith.trunci", "tt.splat", "tt.broadcast", "tt.expand_dims")
_TESTED = ("arith.cmpi", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui")  # as the sizes of a tensor are


def strides_by_use(module: Module) -> frozenset[str]:
    """Names of the integers of the entry function that are factors of terms of addresses, and nothing else."""
    users: dict[str, list[Op]] = {}
    for op in module.entry.walk():
        for operand in op.operands:
            users.setdefault(operand, []).append(op)
    named = zip(module.entry.arguments, module.entry.argument_names)
    return frozenset(name for (value, kind), name in named if kind.kind == "int" and _is_stride(value, users))


def _is_stride(argument: str, users: Mapping[str, list[Op]]) -> bool:
    reached, addressed = [(argument, False)], False
    seen = set(reached)
    while reached:
        value, multiplied = reached.pop()
        for op in users.get(value, ()):
            if op.name not in _SAME and op.name != "arith.muli" and (not multiplied or op.name in _TESTED):
                return False
            addressed |= op.name == "tt.addptr"
            if op.name in (*_SAME, "arith.muli", "arith.addi", "arith.subi"):
                step = (op.results[0], multiplied or op.name == "arith.muli")
                reached += [step] if step not in seen else []
                seen.add(step)
    return addressed
