"""Functions of the output that access a tile of a tensor `(base, shape, strides)`, masked by its bounds: one per rank and kind."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.facts.function import FunctionFacts
from gluonize.write.state.unit import Record, Synthesized

ATOMICS = ("atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor")


@dataclass(frozen=True)
class Copies:
    """The asynchronous copies of a target: `module`.buffer_load_to_shared where there is one, else a copy by pointers."""

    module: str
    by_pointer: str  # name of the function that takes a tensor of pointers
    by_offset: str = ""  # of the one that takes a base and 32-bit offsets


def tile_function(
    facts: FunctionFacts,
    record: Record,
    kind: str,
    rank: int,
    buffer: bool,
    pad: str,
    copies: Copies | None = None,
    conditional: bool = False,
) -> Synthesized:
    module = facts.kernel.buffer_module if buffer else ""
    if module and kind != "copy":
        record.amd(module)
    name = f"{kind}_tile_{rank}d"
    if pad == "nan" and kind in ("load", "gather"):
        name += "_nan"
    if not buffer and kind in ("load", "store", "copy"):
        name += "_far"  # storage of any size
    if conditional:
        name += "_if"
    held = not facts.kernel.target.has_few_registers
    return Synthesized(name, _text(name, kind, rank, module, pad, copies, conditional, held))


def _text(
    name: str,
    kind: str,
    rank: int,
    module: str,
    pad: str,
    copies: Copies | None,
    conditional: bool,
    held: bool,
) -> str:
    """held: what lanes add to the start of a tile, which is the same for every tile of a loop, may stay in registers meanwhile."""
    dims = range(rank)
    gathers = kind in ("gather", "scatter")
    offsets = ["rows", "column"] if gathers else [f"offset{d}" for d in dims]
    blocks = [f"BLOCK{d}: gl.constexpr" for d in dims]
    value = ["value"] if kind in ("store", "scatter", *ATOMICS) else []
    slot = "slot, " if kind == "copy" else ""
    condition = ["exists"] if conditional else []
    lines = [f"def {name}({slot}desc, {', '.join([*offsets, *condition, *value, *blocks])}, layout: gl.constexpr):"]
    what = {
        "load": "Load",
        "copy": "Copy to LDS",
        "gather": "Gather rows of",
        "store": "Store",
        "scatter": "Scatter rows of",
    }
    if conditional:
        what = {k: f"{v}, if it exists," for k, v in what.items()}
    verb = what.get(kind, f"{kind.replace('_', ' ').capitalize()} to")
    lines.append(
        f'    """{verb} a tile of the tensor `desc` = (base, shape, strides); elements outside are left out."""'
    )
    lines.append("    base, shape, strides = desc")
    starts = ["", "column"] if gathers else [f"offset{d}" for d in dims]
    own = [f"lane{d}" if start and held else f"index{d}" for d, start in enumerate(starts)]
    for d, start in enumerate(starts):
        parent = "layout"
        for other in reversed(range(rank)):
            if other != d:
                parent = f"gl.SliceLayout({other}, {parent})"
        lanes = f"gl.arange(0, BLOCK{d}, layout={parent})"
        lines.append(f"    {own[d]} = {lanes if start and held else f'{start} + {lanes}' if start else 'rows'}")
    lines.append("    # As an unsigned number, a negative index is greater than any extent.")
    for d, start in enumerate(starts):
        index = f"({start} + {own[d]})" if start and held else own[d]
        lines.append(f"    inside{d} = {index}.to(gl.uint32) < gl.maximum(shape[{d}], 0).to(gl.uint32)")
    expand = ["" if rank == 1 else "[" + ", ".join(":" if o == d else "None" for o in dims) + "]" for d in dims]
    inside = " & ".join(f"inside{d}{expand[d]}" for d in dims)
    lines.append(f"    mask = {inside}{' & exists' if conditional else ''}")
    if held:
        begins = [f"{start} * gl.cast(strides[{d}], gl.int64)" for d, start in enumerate(starts) if start]
        lines.append("    # The start of a tile is one number; what lanes add to it is the same for all tiles.")
        lines.append(f"    base += {' + '.join(begins)}")
    wide = "" if module else ".to(gl.int64)"
    lines.append(f"    offsets = {' + '.join(f'({own[d]}{wide} * strides[{d}]){expand[d]}' for d in dims)}")
    lines.append("    " + _memory_statement(kind, module, pad, copies))
    return "@gluon.jit\n" + "\n".join(lines) + "\n"


def _memory_statement(kind: str, module: str, pad: str, copies: Copies | None) -> str:
    """The statement of such a function that reads or writes memory."""
    # The integer 0 cannot be cast to every type.
    other = 'float("nan")' if pad == "nan" else "gl.zeros(offsets.shape, base.dtype.element_ty, layout)"
    if copies is not None and module and copies.by_offset:
        return f"{copies.module}.{copies.by_offset}(slot, base, offsets.to(gl.int32), mask=mask)"
    if copies is not None:
        return f"{copies.module}.{copies.by_pointer}(slot, base + offsets, mask=mask, other={other})"
    if kind in ("load", "gather"):
        fill = f", other={other}" if pad == "nan" else ""
        if module:
            return f"return {module}.buffer_load(base, offsets.to(gl.int32), mask=mask{fill})"
        return f"return gl.load(base + offsets, mask=mask, other={other})"
    if kind in ("store", "scatter"):
        if module:
            return f"{module}.buffer_store(value, base, offsets.to(gl.int32), mask=mask)"
        return "gl.store(base + offsets, value, mask=mask)"
    return f"gl.{kind}(base + offsets, value, mask=mask)"
