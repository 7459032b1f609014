"""Which loads Triton stages through LDS on the target, and how: read from its pipelined TTGIR by load visit.

Triton's pipeliner turns the load of a dot operand inside a loop into a ring of LDS buffers that is filled either by
direct-to-LDS copies or through registers. Its operations keep the location of the load, which names the traced visit.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from gluonize.decide.layouts.padding import padded_rows
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Layout, Opaque, SharedLayout
from gluonize.trace.model.module import Module
from gluonize.trace.model.types import Type
from gluonize.trace.passes.anchors import Anchors, Path, path_of

_ROWS = ("amdg.async_tdm_gather", "amdg.async_tdm_scatter")
_WAYS = {  # of a tile from global memory
    "amdg.buffer_load_to_local": "buffer",
    "ttg.async_copy_global_to_local": "global",
    "amdg.async_tdm_copy_global_to_local": "tensor",
    "amdg.buffer_load": "registers",
    "tt.load": "registers",
}


@dataclass(frozen=True)
class Staged:
    """One load that runs ahead in its loop: through LDS, or kept in registers.

    shape: of the tile. shared: None for a load kept in registers. buffers: LDS slots in Triton's ring, or tiles in
    registers. source: layout of the global read, None for the tensor data mover. stored: layout in which registers are
    written to LDS (None for direct copies). copy: `buffer` or `global` for direct copies, `tensor` for those of the
    tensor data mover, `registers`, or `held` for a load that stays there (`gluonize.decide.readback.held`). exchanged: Triton's
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


def read_rows(module: Module) -> dict[Path, Rows]:
    """Gathers and scatters of the tensor data mover, by the path of the visit."""
    out: dict[Path, Rows] = {}
    if not module.has(*_ROWS):
        return out
    for op in module.walk():
        if op.name in _ROWS and (path := path_of(op)) and op.memdesc and op.tensors:
            shared, indices = module.shared(op.memdesc, op.memdesc.shape), module.layout(op.tensors[0])
            if shared is not None and not isinstance(indices, Opaque):
                out.setdefault(path, Rows(indices, shared))
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


def read_staging(module: Module, banks: int | None = None) -> dict[Path, Staged]:
    """Staged loads of a pipelined TTGIR module, by the path of the load's visit.

    With `banks`, tiles in a rotating layout are padded instead where that is possible (`gluonize.decide.layouts.padding`).
    """
    rings: dict[Path, tuple[Type, SharedLayout]] = {}
    sources: dict[Path, tuple[Layout | None, str]] = {}
    stored: dict[Path, Layout] = {}
    reads: defaultdict[str, set[Layout]] = defaultdict(set)
    # What the lowering of a single load allocates is one tile, whose slots nothing picks.
    picked = {op.operands[0] for op in module.walk() if op.name == "ttg.memdesc_index"}
    for op in module.walk():
        if not (path := path_of(op)):
            continue
        if op.name == "ttg.local_load":
            reads[op.operand_types[0].layout].add(module.layout(op.type))
        elif op.name == "ttg.local_store":
            stored.setdefault(path, module.layout(op.tensors[0]))
        elif op.name == "ttg.local_alloc" and not op.operands and op.results[0] in picked:
            if (shared := module.shared(op.type, op.type.shape[1:])) is not None:
                rings.setdefault(path, (op.type, shared))
        elif copy := _WAYS.get(op.name):
            if copy == "tensor":
                sources.setdefault(path, (None, copy))
            elif op.tensors:
                sources.setdefault(path, (module.layout(op.tensors[-1]), copy))
    out: dict[Path, Staged] = {}
    for path, (ring, shared) in rings.items():
        source, copy = sources.get(path, (None, ""))
        into = stored.get(path) if copy == "registers" else None
        if not copy or isinstance(source, Opaque) or isinstance(into, Opaque) or (copy == "registers" and into is None):
            continue
        buffers, *shape = ring.shape
        padded = padded_rows(shared, into, reads[ring.layout], bits_of(ring.element), banks) if banks else None
        out[path] = Staged(tuple(shape), padded or shared, buffers, source, into, copy, shared if padded else None)
    return out


def read_descriptor_layouts(module: Module) -> dict[tuple[int | str, ...], SharedLayout]:
    """LDS layouts of the tiles of tensor descriptors, by the path of the visit that makes the descriptor.

    Of a descriptor that the kernel is given: by the name of the argument, `("a_desc",)`.
    """
    out: dict[tuple[int | str, ...], SharedLayout] = {}
    for name, kind in module.entry.arguments:
        if kind.kind == "desc" and kind.layout and (layout := module.shared(kind, kind.shape)) is not None:
            out[name.removeprefix("%"),] = layout
    for op in module.walk():
        if op.name == "tt.make_tensor_descriptor" and (path := path_of(op)) and op.type.layout:
            if (layout := module.shared(op.type, op.type.shape)) is not None:
                out.setdefault(path, layout)
    return out
