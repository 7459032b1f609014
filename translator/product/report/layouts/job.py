"""The layouts of a compiled translation with their linear maps: what the drawings need, found in a child process.

Shapes and uses are read from the translation's own TTGIR; names from its text; bases from Triton (`to_linear_layout`),
which aborts the process for some layouts.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from gluonize.decide.layouts.constructors import constructor
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.report.layouts.inlined import inlined
from gluonize.product.report.layouts.linear_map import DistributedMap, SharedMap
from gluonize.read.text.parsed import parsed_text
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Ints, Layout, Opaque, SharedLayout, Slice, part_of
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.parse import parse_module
from gluonize.trace.model.shared_layouts import Padded, SharedLinear, Swizzled
from gluonize.trace.model.types import Type

_ACCESSES = {"ttg.local_load": "read", "ttg.local_store": "write", "amdg.local_load_packed_tranposed": "read"}
# More elements than that are not drawn one by one.
MAX_ELEMENTS = 1 << 18


@dataclass(frozen=True)
class Access:
    """How a tile in LDS is read or written: from or to registers in `layout`."""

    kind: str
    layout: str
    held: DistributedMap


@dataclass(frozen=True)
class DrawnLayout:
    """One layout of a translation. name: the constant, "" for one that has none. uses: tiles it is used for, as text.

    held is set for layouts of registers, stored and accesses for tiles in LDS.
    """

    name: str
    spelled: str
    shape: Ints
    element: str
    uses: tuple[str, ...]
    held: DistributedMap | None = None
    stored: SharedMap | None = None
    accesses: tuple[Access, ...] = ()


def drawn_layouts(ttgir: str, text: str, kernel: str, target: str, num_warps: int) -> tuple[DrawnLayout, ...]:
    """The layouts of one compiled kernel: named constants first, in the order of the text. Call it in a child process."""
    module = parse_module(ttgir)
    asker = LayoutAsker(target, num_warps)
    tiles: dict[Layout, dict[tuple[Ints, str], int]] = {}
    stored: dict[tuple[SharedLayout, Ints, str], dict[tuple[str, Layout], None]] = {}
    for op in module.walk():
        for ty in _tensors(op):
            layout = module.layout(ty)
            if not isinstance(layout, (Opaque, Slice)):
                uses = tiles.setdefault(layout, {})
                uses[ty.shape, ty.printed_element] = uses.get((ty.shape, ty.printed_element), 0) + 1
        for key in _tiles_in_lds(module, op):
            stored.setdefault(key, {})
            if op.name in _ACCESSES and op.tensors:
                stored[key].setdefault((_ACCESSES[op.name], module.layout(op.tensors[-1])), None)
    names = layout_constants(text, kernel)
    out = []
    for layout, uses in tiles.items():
        (shape, element), _ = max(uses.items(), key=lambda x: (_size(x[0][0]), x[1]))
        if layout.rank != len(shape) or _size(shape) > MAX_ELEMENTS:
            continue
        texts = tuple(_use(s, e, layout) for s, e in sorted(uses, key=lambda x: (-_size(x[0]), x)))
        name = names.get(constructor_key(constructor(layout)), "")
        out.append(DrawnLayout(name, constructor(layout), shape, element, texts, held=asker.distributed(layout, shape)))
    for (shared, shape, element), accesses in stored.items():
        spelled = shared.spelled()
        found = tuple(Access(k, _name_of(y, names), asker.distributed(y, shape)) for k, y in accesses if _spellable(y))
        name = names.get(constructor_key(spelled), "")
        mapped = asker.shared(shared, shape, bits_of(element))
        out.append(DrawnLayout(name, spelled, shape, element, (_use(shape, element, shared),), None, mapped, found))
    order = list(names.values())
    return tuple(
        sorted(out, key=lambda d: (order.index(d.name) if d.name in order else len(order), d.stored is not None))
    )


def _use(shape: Ints, element: str, layout: Layout) -> str:
    """`128x64 f16`, and for a tile of several CTAs which part of it is drawn."""
    text = f"{'x'.join(map(str, shape))} {element}"
    if not layout.ctas:
        return text
    part = "x".join(map(str, part_of(shape, layout.ctas)))
    kept = 1 << sum(not any(basis) for basis in layout.ctas)
    copies = f", which {kept} of them have" if kept > 1 else ""
    return f"{text} of {1 << len(layout.ctas)} CTAs, drawn: the {part} of the first{copies}"


def _tensors(op: Op) -> tuple[Type, ...]:
    """The tensor types that an operation is printed with, once each time."""
    found = op.tensors or op.result_types  # those of a loop stand in its header
    return tuple(ty for ty in found if ty.is_tensor and ty.layout)


def _tiles_in_lds(module: Module, op: Op) -> list[tuple[SharedLayout, Ints, str]]:
    found = []
    for ty in op.memdescs:
        shape = ty.shape
        layout = module.shared(ty, shape)
        if layout is not None and (rank := _tile_rank(layout)) < len(shape):
            shape = shape[len(shape) - rank :]  # the leading dimension counts the slots of a ring
            layout = module.shared(ty, shape)
        if layout is not None and _size(shape) <= MAX_ELEMENTS and (key := (layout, shape, ty.element)) not in found:
            found.append(key)
    return found


def _tile_rank(layout: SharedLayout) -> int:
    return len(layout.offsets[0]) if isinstance(layout, Padded) and layout.offsets else layout.rank


def _spellable(layout: Layout) -> bool:
    return not isinstance(layout.root, Opaque) and not isinstance(layout, Opaque)


def _name_of(layout: Layout, names: dict[str, str]) -> str:
    return names.get(constructor_key(constructor(layout)), constructor(layout))


def layout_constants(text: str, kernel: str) -> dict[str, str]:
    """Constructor, in normal form -> name of the constant, for a kernel, its versions, and the tables that give their layouts."""
    out: dict[str, str] = {}

    def read(block: list[ast.stmt], known: dict[str, ast.expr]) -> None:
        """A block, whose names mean what they do in the blocks around it, or what it says itself."""
        values = dict(known)
        for s in block:
            target = s.target if isinstance(s, ast.AnnAssign) else s.targets[0] if isinstance(s, ast.Assign) else None
            if isinstance(target, ast.Name) and s.value is not None and "Layout" in ast.unparse(s.value):
                out.setdefault(constructor_key(ast.unparse(inlined(s.value, values))), target.id)
                values[target.id] = s.value
            for inner in (getattr(s, name, []) for name in ("body", "orelse")):
                read(inner, values)

    own = re.compile(rf"_?{re.escape(kernel.lstrip('_'))}(_\w+)?")
    for node in parsed_text(text).body:
        if isinstance(node, ast.FunctionDef) and own.fullmatch(node.name.removeprefix("_")):
            read(node.body, {})
    return out


def constructor_key(text: str) -> str:
    """A constructor with keyword arguments by position and without spaces, so that spellings compare equal."""
    return re.sub(r"\s|\b\w+=", "", text)


def _size(shape: Ints) -> int:
    n = 1
    for extent in shape:
        n *= extent
    return n


class LayoutAsker:
    """Asks Triton for the bases of layouts of one target."""

    def __init__(self, target: str, num_warps: int):
        from gluonize.decide.layouts import inferred

        row = target_row(target)
        self.shapes = inferred
        self.asked = row.name, num_warps, row.warp_size

    def distributed(self, layout: Layout, shape: Ints) -> DistributedMap:
        """The map of a tile, of the first CTA's part where several share it.

        Raises: TranslationError `layout-map` when Triton does not map this layout onto this shape.
        """
        found = self._linear(layout, shape)
        bases = (_tuples(found.reg_bases), _tuples(found.lane_bases), _tuples(found.warp_bases))
        return DistributedMap(*bases, part_of(shape, layout.ctas))

    def shared(self, layout: SharedLayout, shape: Ints, bits: int) -> SharedMap:
        """Padded layouts have no linear map in Triton: theirs is the map of their offsets, then the padding."""
        part = part_of(shape, layout.ctas)
        if isinstance(layout, Padded):
            return SharedMap(layout.offsets or _identity(part, layout.order), layout.pairs, part, bits)
        if isinstance(layout, SharedLinear):
            return SharedMap(layout.offsets, (), part, bits)
        assert isinstance(layout, Swizzled), layout
        found = self._linear(layout, shape)
        return SharedMap(_tuples(found.offset_bases), (), part, bits)

    def _linear(self, layout: Layout, shape: Ints):
        builder = self.shapes._scratch(*self.asked, 1 << len(layout.ctas)).builder
        try:
            return builder.to_linear_layout(self.shapes.to_gluon(layout)._to_ir(builder), list(shape))
        except (RuntimeError, ValueError) as error:
            raise TranslationError(
                Diagnostic("layout-map", f"no linear map of {layout} for {shape}", why=str(error))
            ) from None


def _identity(shape: Ints, order: Ints) -> tuple[Ints, ...]:
    bases = []
    for dim in order:
        extent = 1
        while extent < shape[dim]:
            bases.append(tuple(extent if d == dim else 0 for d in range(len(shape))))
            extent *= 2
    return tuple(bases)


def _tuples(value) -> tuple:
    return tuple(_tuples(v) if isinstance(v, (list, tuple)) else v for v in value)
