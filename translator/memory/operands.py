"""Which values Triton puts into LDS to read them back as matrix operands, outside of its pipelined loops.

After `reduce-data-duplication` such a value is the initial content of an allocation of its own. The allocation keeps the
location of the value, so the value's source expression names it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from translator.frontend.anchors import Path, locations, tensor_types
from translator.layout.model import AttributeReader, Layout
from translator.layout.shared import SharedLayout, read_shared

_ALLOC = re.compile(
    r"(%[\w$.#]+) = ttg\.local_alloc %[\w$.#]+ : \(tensor<.*>\) -> !ttg\.memdesc<((?:\d+x)+)(\w+), (#\w+|#ttg\.\w+<.*?>), #smem"
)
_ALIAS = re.compile(r"^(#\w+) = (#ttg\..*)$", re.M)
_LOC = re.compile(r" loc\((#loc\d*)\)$")


@dataclass(frozen=True)
class OperandInLds:
    """read: the layout it is read in, if it is once and before anything else goes to LDS: others may take its place."""

    shape: tuple[int, ...]
    shared: SharedLayout
    read: Layout | None = None


def read_operands(text: str) -> dict[Path, tuple[OperandInLds, ...]]:
    """Initialised allocations of a final TTGIR, by the path of visits that made the value (and its callers' paths)."""
    aliases = dict(_ALIAS.findall(text))
    path_of = locations(text)
    out: dict[Path, tuple[OperandInLds, ...]] = {}
    lines = text.splitlines()
    reader = AttributeReader({k: v for k, v in aliases.items() if not k.startswith("#shared")})
    for number, line in enumerate(lines):
        found, loc = _ALLOC.search(line), _LOC.search(line)
        if not found or not loc:
            continue
        shape = tuple(int(d) for d in found.group(2)[:-1].split("x"))
        shared = read_shared(aliases.get(found.group(4), found.group(4)), shape)
        path = path_of(loc.group(1))
        if shared is None or not path:
            continue
        entry = OperandInLds(shape, shared, _read_at_once(found.group(1), lines[number + 1 :], reader))
        for n in range(1, len(path) + 1):
            if entry not in out.get(path[:n], ()):
                out[path[:n]] = (*out.get(path[:n], ()), entry)
    return out


def _read_at_once(buffer: str, following: list[str], reader: AttributeReader) -> Layout | None:
    """The layout of the only use of `buffer`, a read with no allocation before it; None for anything else."""
    used = re.compile(rf"{re.escape(buffer)}(?![\w$.#])")
    uses = [line for line in following if used.search(line)]
    if len(uses) != 1 or " ttg.local_load " not in uses[0]:
        return None
    before = following[: following.index(uses[0])]
    if any(" ttg.local_alloc " in line or line.strip().startswith("}") for line in before):
        return None
    return tensor_types(uses[0], reader)[-1].layout
