"""Which values Triton puts into LDS to read them back as matrix operands, outside of its pipelined loops.

After `reduce-data-duplication` such a value is the initial content of an allocation of its own. The allocation keeps the
location of the value, so the value's source expression names it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from translator.frontend.anchors import Path, layout_reader, locations, tensor_types
from translator.layout.padding import padded_rows
from translator.memory.lifetimes import crowded_by_late_reads
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import AttributeReader, Layout
from translator.ttgir.shared_layouts import SharedLayout, read_shared

_ALLOC = re.compile(
    r"(%[\w$.#]+) = ttg\.local_alloc (%[\w$.#]+) : \(tensor<.*>\) -> !ttg\.memdesc<((?:\d+x)+)(\w+), (#\w+|#ttg\.\w+<.*?>), #smem"
)
_TRANSPOSED = re.compile(r"(%[\w$.#]+) = ttg\.memdesc_trans (%[\w$.#]+) ")
_IN_THREAD = re.compile(r"(%[\w$.#]+) = amdg\.in_thread_transpose %[\w$.#]+ : ")
_READ = re.compile(r" = ttg\.local_load (%[\w$.#]+) ")
_ALIAS = re.compile(r"^(#\w+) = (#ttg\..*)$", re.M)
_LOC = re.compile(r" loc\((#loc\d*)\)$")


@dataclass(frozen=True)
class OperandInLds:
    """element: in MLIR's spelling; read: the operand layouts in which it is read back, and whether transposed. loaded, stored:
    where a transpose within each lane comes before the store, the layouts before and after it. at_once: whether all is read before
    the next such allocation, which would need more LDS otherwise."""

    shape: tuple[int, ...]
    element: str
    shared: SharedLayout
    read: tuple[tuple[Layout, bool], ...] = ()
    loaded: Layout | None = None
    stored: Layout | None = None
    at_once: bool = False


def read_operands(
    text: str, early: frozenset[Path] = frozenset(), banks: int | None = None
) -> dict[Path, tuple[OperandInLds, ...]]:
    """Initialised allocations of a final TTGIR, by the path of visits that made the value (and its callers' paths).

    With `banks`, tiles in a rotating layout are padded instead (`translator.layout.padding`) where addresses are
    kept: for several tiles, or in a loop.
    """
    aliases = dict(_ALIAS.findall(text))
    path_of = locations(text)
    reader = layout_reader(aliases)
    read, transposes = _reads(text, reader), _in_thread_transposes(text, reader)
    tiles = Counter(m.group(5) for m in _ALLOC.finditer(text))
    out: dict[Path, tuple[OperandInLds, ...]] = {}
    loops: list[bool] = []  # of each block around the line, whether it is the body of a loop
    for line in text.splitlines():
        if loops and line.lstrip().startswith("}"):
            loops.pop()
        if line.endswith("{"):
            loops.append(" scf.for " in line or " scf.while " in line)
        found, loc = _ALLOC.search(line), _LOC.search(line)
        if not found or not loc:
            continue
        shape = tuple(int(d) for d in found.group(3)[:-1].split("x"))
        shared = read_shared(aliases.get(found.group(5), found.group(5)), shape)
        path = path_of(loc.group(1))
        if shared is None or not path:
            continue
        loaded, stored = transposes.get(found.group(2), (None, None))
        name = found.group(1)
        shares = tiles[found.group(5)] > 1 or any(loops)
        if banks and shares and not any(transposed for _, transposed in read.get(name, ())):
            reads = {layout for layout, _ in read.get(name, ())}
            shared = padded_rows(shared, stored, reads, bits_of(found.group(4)), banks) or shared
        entry = OperandInLds(shape, found.group(4), shared, read.get(name, ()), loaded, stored, path in early)
        for n in range(1, len(path) + 1):
            if entry not in out.get(path[:n], ()):
                out[path[:n]] = (*out.get(path[:n], ()), entry)
    return out


def _in_thread_transposes(text: str, reader: AttributeReader) -> dict[str, tuple[Layout, Layout]]:
    """The layouts before and after each transpose within lanes, by the name of its result."""
    out = {}
    for line in text.splitlines():
        if (m := _IN_THREAD.search(line)) and (types := tensor_types(line, reader)):
            out[m.group(1)] = types[0].layout, types[-1].layout
    return out


def read_early(text: str) -> frozenset[Path]:
    """The values that a module without loops reads back in full before it fills other LDS, where later reads would take more
    of it: by their paths. Equal allocations must have been made one."""
    names = _read_at_once(text) & crowded_by_late_reads(text)
    if not names:
        return frozenset()
    path_of = locations(text)
    made = ((_ALLOC.search(line), _LOC.search(line)) for line in text.splitlines())
    return frozenset(path_of(loc.group(1)) for alloc, loc in made if alloc and loc and alloc.group(1) in names)


def _read_at_once(text: str) -> set[str]:
    """The allocations that are read in full before the next one, in the same block."""
    name, found, later = "", set(), set()
    transposed: dict[str, str] = {}
    for line in text.splitlines():
        if m := _ALLOC.search(line):
            name = m.group(1)
            found.add(name)
        elif m := _TRANSPOSED.search(line):
            transposed[m.group(1)] = m.group(2)
        elif m := _READ.search(line):
            read = transposed.get(m.group(1), m.group(1))
            later |= {read} - {name}
        elif line.endswith("{") or line.lstrip().startswith("}"):
            name = ""
    return found - later


def _reads(text: str, reader: AttributeReader) -> dict[str, tuple[tuple[Layout, bool], ...]]:
    """How allocations are read, by the name of the value."""
    transposed: dict[str, str] = {}
    out: dict[str, tuple[tuple[Layout, bool], ...]] = {}
    for line in text.splitlines():
        if m := _TRANSPOSED.search(line):
            transposed[m.group(1)] = m.group(2)
        elif (m := _READ.search(line)) and (types := tensor_types(line, reader)):
            name = transposed.get(m.group(1), m.group(1))
            out[name] = (*out.get(name, ()), (types[-1].layout, name != m.group(1)))
    return out
