"""How long allocations of a TTGIR module hold LDS, and which of them hold more of it at once if their reads come later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from translator.ttgir.elements import bits_of
from translator.ttgir.module import Module


@dataclass
class _Held:
    """size: in bits; first, last: operations from which and up to which it is held; used: the last one that uses what is read."""

    size: int
    first: int
    last: int
    used: int


def crowded_by_late_reads(module: Module, most_lds: Callable[[int], int]) -> set[str]:
    """The allocations which, if they were read where the values are used, would take the kernel's LDS beyond what it may be.

    most_lds: the bytes that it may have, for the bytes that it has.
    """
    held: dict[str, _Held] = {}
    owner: dict[str, str] = {}  # alias, or value that was read -> allocation
    values: set[str] = set()
    for i, op in enumerate(module.walk()):
        for name in op.operands:
            if (of := owner.get(name)) is not None:
                held[of].used = i
                held[of].last = held[of].last if name in values else i
        if op.name == "ttg.local_alloc":
            (name,) = op.results
            held[name] = _Held(op.type.size * bits_of(op.type.element), i, i, i)
            owner[name] = name
        elif op.name.startswith("ttg.memdesc_") and op.operands[0] in owner:
            owner[op.results[0]] = owner[op.operands[0]]
        elif op.name == "ttg.local_load" and op.operands[0] in owner:
            owner[op.results[0]] = owner[op.operands[0]]
            values.add(op.results[0])
    most = 8 * most_lds(max((_at_once(held, x.first) for x in held.values()), default=0) // 8)
    return {
        name
        for name, late in held.items()
        if any(_at_once(held, x.first, late) > most for x in held.values() if late.last < x.first <= late.used)
    }


def _at_once(held: dict[str, _Held], at: int, late: _Held | None = None) -> int:
    """Bits held at an operation; late: an allocation that is held longer than to its last read."""
    return sum(x.size for x in held.values() if x.first <= at <= (x.used if x is late else x.last))


__all__ = ["crowded_by_late_reads"]
