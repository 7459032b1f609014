"""Which loads of a loop Triton keeps ahead in registers: its pipelined loop hands their results on to the next iteration.

These are loads that feed a dot, or go with one, and have no single buffer in LDS to go to: their value is used in several
ways, or not as a matrix at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from translator.frontend.anchors import Path, layout_reader, locations, locations_of, tensor_types
from translator.memory.staging import Staged
from translator.ttgir.layouts import Opaque

_LOAD = re.compile(r"(%[\w$.#]+) = (?:amdg\.buffer_load|tt\.load) ")
_LOC = re.compile(r" loc\((#loc\d*)\)$")


@dataclass
class _Block:
    """A region of the module. loop: of which operation the region is the body; loads: result -> (path, line)."""

    loop: bool
    loads: dict[str, tuple[Path, str]] = field(default_factory=dict)


def read_held(text: str) -> dict[Path, Staged]:
    """Loads that a pipelined TTGIR module printed with locations keeps in registers, by the path of the load's visit.

    A load that the author wrote ahead is handed on as well, but stands in the loop only: what the pipeliner moves is
    loaded before the loop too.
    """
    if "scf.for" not in text:
        return {}
    aliases, _ = locations_of(text)
    reader = layout_reader(aliases)
    path_of = locations(text)
    out: dict[Path, Staged] = {}
    before: set[Path] = set()
    blocks: list[_Block] = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("}") and blocks:
            before |= {path for path, _ in blocks.pop().loads.values()}
        if blocks and blocks[-1].loop and line.startswith("scf.yield"):
            for name in re.findall(r"%[\w$.#]+", line.partition(" : ")[0]):
                path, load = blocks[-1].loads.get(name, ((), ""))
                known = {p for block in blocks[:-1] for p, _ in block.loads.values()} | before
                types = tensor_types(load, reader) if path in known else []
                if types and not isinstance(types[-1].layout, Opaque):
                    out.setdefault(path, Staged(types[-1].shape, None, 1, types[-1].layout, None, "held"))
        elif blocks and (m := _LOAD.match(line)) and (loc := _LOC.search(line)) and (path := path_of(loc.group(1))):
            blocks[-1].loads[m.group(1)] = path, line[: loc.start()]
        if line.endswith("{"):
            blocks.append(_Block("scf.for " in line))
    return out


__all__ = ["read_held"]
