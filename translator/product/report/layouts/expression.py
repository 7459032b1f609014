"""Gluon layouts from the text that a person typed, and where they put each element. Runs in a child: some layouts end the process.

Only constructors and literals are understood; nothing else of an expression is ever executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.report.layouts.linear_map import DistributedMap, SharedMap
from gluonize.read.text.parsed import parsed_text
from gluonize.rules.gluon import DISTRIBUTED, IDENTITY, SHARED, Layouts, class_name
from gluonize.trace.model.layouts import Bases, Ints, in_parts, part_of

_NO_MAP = {
    Layouts.AUTO: "it stands for whatever layout the compiler infers",
    Layouts.COALESCED: "it stands for the layout that the compiler finds for the accesses of a kernel",
    Layouts.BARRIER: "it is of one barrier, not of a tile",
}
EXAMPLE = "gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])"


@dataclass(frozen=True)
class Pieces:
    """A partitioned layout: along `dim` every piece has `piece.shape`; piece i is in partition i % partitions."""

    piece: SharedMap
    dim: int
    partitions: int
    shape: Ints


@dataclass(frozen=True)
class LayoutView:
    """What an expression means on a tile. placed: where each element is, of the first CTA's part where several share the tile.
    tensor, hardware: Gluon's own views of it, empty where it has none. starts: where the part of each CTA begins, none for one CTA.
    """

    spelled: str
    placed: DistributedMap | SharedMap | Pieces
    tensor: str
    hardware: str
    starts: tuple[Ints, ...] = ()


def view_layout(text: str, shape: Ints, bits: int) -> LayoutView:
    """The layout that `text` spells, on a tile of `shape` with elements of `bits`.

    Raises: TranslationError `layout-expression` for what is no layout, `layout-map` where Triton does not map it onto the shape.
    """
    layout = read_layout(text)
    name = class_name(layout)
    if name in _NO_MAP:
        raise _refused(text, f"{name} has no map of its own", _NO_MAP[name])
    try:
        placed = _placed(layout, shape, bits)
        starts = _starts(shape, _ctas(layout))
        padded = name == Layouts.PADDED or isinstance(placed, Pieces)  # Gluon has no views of these
        tensor = "" if padded else layout.format_tensor_view(list(shape))
        hardware = "" if padded else layout.format_hardware_view(list(shape))
    except (RuntimeError, ValueError, AssertionError, TypeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise TranslationError(
            Diagnostic("layout-map", f"{text} does not map onto a tile of {_by(shape)}", why=why)
        ) from None
    return LayoutView(repr(layout), placed, tensor, hardware, starts)


def read_layout(text: str) -> Any:
    """The Gluon object that `text` spells. Raises: TranslationError `layout-expression`."""
    try:
        tree = parsed_text(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise _refused(text, f"no layout: {error.msg}") from None
    return _value(tree, text)


def _value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):  # a list in several lines
        return _value(node.left, text) + _value(node.right, text)
    if not isinstance(node, ast.Call):
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise _refused(text, f"{ast.unparse(node)} is neither a layout nor a literal") from None
    words = ast.unparse(node.func).split(".")
    make = _constructor(words, text)
    arguments = [_value(argument, text) for argument in node.args]
    named = {keyword.arg: _value(keyword.value, text) for keyword in node.keywords if keyword.arg}
    try:
        return make(*arguments, **named)
    except (TypeError, ValueError, AssertionError, IndexError) as error:
        why = " ".join(str(error).split()) or "its arguments contradict each other"
        raise _refused(text, f"{words[-1]} does not take these arguments", why) from None


def _constructor(words: list[str], text: str) -> Any:
    from gluonize.triton_api.gluon_language import cdna5, gl

    name = words[-2] if words[-1] == IDENTITY and len(words) > 1 else words[-1]
    if name not in (*DISTRIBUTED, *SHARED, *_NO_MAP):
        raise _refused(
            text, f"{'.'.join(words)} is no layout of AMD targets", "known: " + ", ".join(DISTRIBUTED + SHARED)
        )
    homes = (gl, gl.amd, cdna5, cdna5.mbarrier)
    found = next(getattr(home, name) for home in homes if hasattr(home, name))
    return getattr(found, IDENTITY) if words[-1] == IDENTITY else found


def _refused(text: str, message: str, why: str = "") -> TranslationError:
    return TranslationError(Diagnostic("layout-expression", f"{text}: {message}", why=why, help=f"such as {EXAMPLE}"))


def _placed(layout: Any, shape: Ints, bits: int) -> DistributedMap | SharedMap | Pieces:
    name = class_name(layout)
    if name == Layouts.PARTITIONED:
        pieces = layout.num_partitions * layout.num_groups
        dim = layout.partition_dim
        if dim >= len(shape) or shape[dim] % pieces:
            raise ValueError(f"dimension {dim} cannot be cut into {pieces} pieces")
        part = tuple(size // pieces if d == dim else size for d, size in enumerate(shape))
        inner = _placed(layout.partition_layout, part, bits)
        if not isinstance(inner, SharedMap):
            raise ValueError("its pieces are partitioned again")
        return Pieces(inner, dim, layout.num_partitions, shape)
    own = part_of(shape, _ctas(layout))
    if name == Layouts.PADDED:
        if tuple(layout.shape) != shape:
            raise ValueError(f"it is for a tile of {_by(tuple(layout.shape))}")
        return SharedMap(_tuples(layout.offset_bases), _tuples(layout.interval_padding_pairs), own, bits)
    found = _linear(layout, shape)
    if name in SHARED:
        return SharedMap(_tuples(found.offset_bases), (), own, bits)
    return DistributedMap(_tuples(found.reg_bases), _tuples(found.lane_bases), _tuples(found.warp_bases), own)


def _ctas(layout: Any) -> Bases:
    """How the CTAs of a cluster share a tile, in units of the part of one CTA; () for one CTA."""
    name = class_name(layout)
    if name == Layouts.PARTITIONED:
        return _ctas(layout.partition_layout)
    if name == Layouts.SLICE:  # Gluon's own answer knows no linear parent
        return tuple(basis[: layout.dim] + basis[layout.dim + 1 :] for basis in _ctas(layout.parent))
    if name == Layouts.LINEAR:
        own = (*layout.reg_bases, *layout.lane_bases, *layout.warp_bases)
        return in_parts(_tuples(layout.block_bases), _tuples(own))
    if name == Layouts.SHARED_LINEAR:
        return in_parts(_tuples(layout.block_bases), _tuples(layout.offset_bases))
    return _tuples(layout.cga_layout)


def _starts(shape: Ints, ctas: Bases) -> tuple[Ints, ...]:
    """The first element of each CTA's part."""
    starts = [(0,) * len(shape)] if ctas else []
    for basis in ctas:
        step = [units * size for units, size in zip(basis, part_of(shape, ctas))]
        starts += [tuple(a + b for a, b in zip(start, step)) for start in starts]
    return tuple(starts)


def _linear(layout: Any, shape: Ints) -> Any:
    from gluonize.decide.layouts.inferred import _scratch

    builder = _scratch("gfx950", 4, 64, 1 << len(_ctas(layout))).builder  # of a map, no target has a part in it
    return builder.to_linear_layout(layout._to_ir(builder), list(shape))


def _tuples(value: Any) -> tuple:
    return tuple(_tuples(v) if isinstance(v, (list, tuple)) else v for v in value)


def _by(shape: Ints) -> str:
    return " x ".join(map(str, shape))
