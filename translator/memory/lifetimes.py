"""How long allocations of a TTGIR module hold LDS, and which of them hold more of it at once if their reads come later."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_ALLOC = re.compile(r"(%[\w$.#]+) = ttg\.local_alloc .*!ttg\.memdesc<((?:\d+x)+)(\w+),")
_ALIAS = re.compile(r"(%[\w$.#]+) = ttg\.memdesc_\w+ (%[\w$.#]+)")
_READ = re.compile(r"(%[\w$.#]+) = ttg\.local_load (%[\w$.#]+) ")
_NAME = re.compile(r"%[\w$.#]+")
MOST_LDS = 1.05  # of Triton's LDS, which is as much as a translation may take


@dataclass
class _Held:
    """size: in bits; first, last: lines from which and up to which it is held; used: the last line that uses what is read."""

    size: int
    first: int
    last: int
    used: int


def crowded_by_late_reads(text: str) -> set[str]:
    """The allocations which, if they were read where the values are used, would take the kernel's LDS beyond what it is."""
    held: dict[str, _Held] = {}
    owner: dict[str, str] = {}  # alias, or value that was read -> allocation
    values: set[str] = set()
    for i, line in enumerate(text.splitlines()):
        operands = _NAME.findall(line.partition(" = ")[2] or line)
        for name in operands:
            if (of := owner.get(name)) is not None:
                held[of].used = i
                held[of].last = held[of].last if name in values else i
        if m := _ALLOC.search(line):
            bits = math.prod(int(d) for d in m.group(2)[:-1].split("x")) * int(re.search(r"\d+", m.group(3)).group())
            held[m.group(1)] = _Held(bits, i, i, i)
            owner[m.group(1)] = m.group(1)
        elif (m := _ALIAS.search(line)) and m.group(2) in owner:
            owner[m.group(1)] = owner[m.group(2)]
        elif (m := _READ.search(line)) and m.group(2) in owner:
            owner[m.group(1)] = owner[m.group(2)]
            values.add(m.group(1))
    most = max((_at_once(held, x.first) for x in held.values()), default=0)
    return {
        name
        for name, late in held.items()
        if any(
            _at_once(held, x.first, late) > MOST_LDS * most for x in held.values() if late.last < x.first <= late.used
        )
    }


def _at_once(held: dict[str, _Held], line: int, late: _Held | None = None) -> int:
    """Bits held at a line; late: an allocation that is held longer than to its last read."""
    return sum(x.size for x in held.values() if x.first <= line <= (x.used if x is late else x.last))


__all__ = ["MOST_LDS", "crowded_by_late_reads"]
