"""Which values Triton puts into LDS to read them back as matrix operands, outside of its pipelined loops.

After `reduce-data-duplication` such a value is the initial content of an allocation of its own. The allocation keeps the
location of the value, so the value's source expression names it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from translator.frontend.anchors import Path, locations
from translator.layout.shared import SharedLayout, read_shared

_ALLOC = re.compile(
    r"ttg\.local_alloc %[\w$.#]+ : \(tensor<.*>\) -> !ttg\.memdesc<((?:\d+x)+)(\w+), (#\w+|#ttg\.\w+<.*?>), #smem"
)
_ALIAS = re.compile(r"^(#\w+) = (#ttg\..*)$", re.M)
_LOC = re.compile(r" loc\((#loc\d*)\)$")


@dataclass(frozen=True)
class OperandInLds:
    shape: tuple[int, ...]
    shared: SharedLayout


def read_operands(text: str) -> dict[Path, tuple[OperandInLds, ...]]:
    """Initialised allocations of a final TTGIR, by the path of visits that made the value (and its callers' paths)."""
    aliases = dict(_ALIAS.findall(text))
    path_of = locations(text)
    out: dict[Path, tuple[OperandInLds, ...]] = {}
    for line in text.splitlines():
        found, loc = _ALLOC.search(line), _LOC.search(line)
        if not found or not loc:
            continue
        shape = tuple(int(d) for d in found.group(1)[:-1].split("x"))
        shared = read_shared(aliases.get(found.group(3), found.group(3)), shape)
        path = path_of(loc.group(1))
        if shared is None or not path:
            continue
        entry = OperandInLds(shape, shared)
        for n in range(1, len(path) + 1):
            if entry not in out.get(path[:n], ()):
                out[path[:n]] = (*out.get(path[:n], ()), entry)
    return out
