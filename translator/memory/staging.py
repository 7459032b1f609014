"""Which loads Triton stages through LDS on the target, and how: read from its pipelined TTGIR by load visit.

Triton's pipeliner turns the load of a dot operand inside a loop into a ring of LDS buffers that is filled either by
direct-to-LDS copies or through registers. Its operations keep the location of the load, which names the traced visit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace

from translator.frontend.anchors import Anchors, Path, layout_reader, locations_of, tensor_types
from translator.layout.padding import padded_rows
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Layout, Opaque, SharedLayout
from translator.ttgir.shared_layouts import read_shared

_ALLOC = re.compile(
    r"ttg\.local_alloc : \(\) -> !ttg\.memdesc<((?:\d+x)+)(\w+), (#\w+|#ttg\.\w+<.*?>), #smem, mutable>"
)
_READ = re.compile(r" ttg\.local_load .*!ttg\.memdesc<(?:\d+x)+\w+, (#\w+|#ttg\.\w+<.*?>), #smem")
_DESCRIPTOR = re.compile(r" tt\.make_tensor_descriptor .*, <((?:\d+x)+)\w+, (#\w+|#ttg\.\w+<.*?>)>$")
_ARGUMENT = re.compile(r"%(\w+): !tt\.tensordesc<((?:\d+x)+)\w+, (#\w+|#ttg\.\w+<.*?>)> loc")
_ROWS = re.compile(r" amdg\.async_tdm_(?:gather|scatter) .*!ttg\.memdesc<((?:\d+x)+)\w+, (#\w+|#ttg\.\w+<.*?>), #smem")
_COPIES = {"amdg.buffer_load_to_local": "buffer", "ttg.async_copy_global_to_local": "global"}


@dataclass(frozen=True)
class Staged:
    """One load that runs ahead in its loop: through LDS, or kept in registers.

    shape: of the tile. shared: None for a load kept in registers. buffers: LDS slots in Triton's ring, or tiles in
    registers. source: layout of the global read, None for the tensor data mover. stored: layout in which registers are
    written to LDS (None for direct copies). copy: `buffer` or `global` for direct copies, `tensor` for those of the
    tensor data mover, `registers`, or `held` for a load that stays there (`translator.memory.held`). exchanged: Triton's
    layout where `shared` is padded instead of it.
    """

    shape: tuple[int, ...]
    shared: SharedLayout | None
    buffers: int
    source: Layout | None
    stored: Layout | None
    copy: str
    exchanged: SharedLayout | None = None


@dataclass(frozen=True)
class Rows:
    """A gather or scatter of the tensor data mover. indices: layout of the row numbers, the same in all lanes of a warp, as
    many in a row as one instruction takes; shared: of the tile in LDS."""

    indices: Layout
    shared: SharedLayout


def read_rows(text: str) -> dict[Path, Rows]:
    """Gathers and scatters of the tensor data mover, by the path of the visit."""
    if "amdg.async_tdm_gather" not in text and "amdg.async_tdm_scatter" not in text:
        return {}
    aliases, located = locations_of(text)
    reader = layout_reader(aliases)
    out: dict[Path, Rows] = {}
    for path, line in located:
        if (m := _ROWS.search(line)) and (types := tensor_types(line, reader)):
            shape = tuple(int(d) for d in m.group(1)[:-1].split("x"))
            shared = read_shared(aliases.get(m.group(2), m.group(2)), shape)
            if shared is not None and not isinstance(types[0].layout, Opaque):
                out.setdefault(path, Rows(types[0].layout, shared))
    return out


def with_row_numbers(anchors: Anchors, rows: dict[Path, Rows]) -> Anchors:
    """`anchors` with the layout that row numbers have in the end, which a pass after the layout passes gives them."""
    swaps = {
        ty: replace(ty, layout=found.indices)
        for path, found in rows.items()
        for op in anchors.at(path)
        if op.name in ("tt.descriptor_gather", "tt.descriptor_scatter")
        for ty in op.types
        if len(ty.shape) == 1
    }
    return anchors.with_types(swaps) if swaps else anchors


def read_staging(text: str, banks: int | None = None) -> dict[Path, Staged]:
    """Staged loads of a pipelined TTGIR module printed with locations, by the path of the load's visit.

    With `banks`, tiles in a rotating layout are padded instead where that is possible (`translator.layout.padding`).
    """
    aliases, located = locations_of(text)
    reader = layout_reader(aliases)
    shared: dict[Path, tuple[tuple[int, ...], int, SharedLayout, re.Match]] = {}
    sources: dict[Path, tuple[Layout | None, str]] = {}
    stored: dict[Path, Layout] = {}
    reads: defaultdict[str, set[Layout]] = defaultdict(set)
    for path, line in located:
        if m := _ALLOC.search(line):
            buffers, *shape = (int(d) for d in m.group(1)[:-1].split("x"))
            layout = read_shared(aliases.get(m.group(3), m.group(3)), tuple(shape))
            if layout is not None:
                shared.setdefault(path, (tuple(shape), buffers, layout, m))
            continue
        for name, kind in _COPIES.items():
            if f" {name} " in line and (types := tensor_types(line, reader)):
                sources.setdefault(path, (types[-1].layout, kind))
        if " amdg.async_tdm_copy_global_to_local " in line:
            sources.setdefault(path, (None, "tensor"))
        if (" amdg.buffer_load " in line or " tt.load " in line) and (types := tensor_types(line, reader)):
            sources.setdefault(path, (types[-1].layout, "registers"))
        if (m := _READ.search(line)) and (types := tensor_types(line, reader)):
            reads[m.group(1)].add(types[-1].layout)
        if " ttg.local_store " in line and (types := tensor_types(line, reader)):
            stored.setdefault(path, types[0].layout)
    out: dict[Path, Staged] = {}
    for path, (shape, buffers, layout, alloc) in shared.items():
        if path not in sources:
            continue
        source, copy = sources[path]
        into = stored.get(path) if copy == "registers" else None
        if isinstance(source, Opaque) or isinstance(into, Opaque) or (copy == "registers" and into is None):
            continue
        padded = padded_rows(layout, into, reads[alloc.group(3)], bits_of(alloc.group(2)), banks) if banks else None
        out[path] = Staged(shape, padded or layout, buffers, source, into, copy, layout if padded else None)
    return out


def read_descriptor_layouts(text: str) -> dict[tuple[int | str, ...], SharedLayout]:
    """LDS layouts of the tiles of tensor descriptors, by the path of the visit that makes the descriptor.

    Of a descriptor that the kernel is given: by the name of the argument, `("a_desc",)`.
    """
    if "tt.make_tensor_descriptor" not in text and "!tt.tensordesc<" not in text:
        return {}
    aliases, located = locations_of(text)
    out: dict[tuple[int | str, ...], SharedLayout] = {}
    entry = next((line for line in text.splitlines() if line.lstrip().startswith("tt.func public ")), "")
    for name, dims, shared in _ARGUMENT.findall(entry):
        shape = tuple(int(d) for d in dims[:-1].split("x"))
        if (layout := read_shared(aliases.get(shared, shared), shape)) is not None:
            out[name,] = layout
    for path, line in located:
        if m := _DESCRIPTOR.search(line):
            shape = tuple(int(d) for d in m.group(1)[:-1].split("x"))
            layout = read_shared(aliases.get(m.group(2), m.group(2)), shape)
            if layout is not None:
                out.setdefault(path, layout)
    return out
