"""Layouts of AMD modules as layouts of the same modules with 32 lanes per warp.

before: `#ttg.linear<{register = R, lane = [l0 .. l5], warp = W}>`   (wave64)
after:  `#ttg.linear<{register = R, lane = [l0 .. l4], warp = [l5, *W]}>`, twice the warps

A blocked layout stays blocked where that is exactly this change, else it becomes linear. Matrix layouts become
`nvidia_mma` version 2, or blocked where the dot has to run as FMA. Padding of LDS goes: the bases stay, as
`shared_linear`. Sources: `lib/Dialect/TritonGPU/IR/{Dialect,LinearLayoutConversions}.cpp` of Triton 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.judge.device.refusal import Refused
from gluonize.trace.model.attributes import Attribute, parse_attribute
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import AttributeReader, DotOperand, lists
from gluonize.trace.model.module_text import definitions, ops_named, rank_of, with_layouts
from gluonize.trace.model.types import Type

MATRIX = ("ttg.amd_mfma", "ttg.amd_wmma")
UNCHANGED = ("ttg.swizzled_shared", "ttg.shared_linear", "ttg.slice", "ttg.memdesc", "ttg.async")
MMA_K_BITS = 256  # K extent of `mma.sync.m16n8` in bits of an operand's row (PTX ISA, warp-level matrix instructions)
FMA_TILE = 4  # rows and columns of the result per lane where a dot runs as FMA


@dataclass(frozen=True)
class Dot:
    """One `tt.dot`: the alias of its result layout, element types of A and C, K, and `kWidth` of both operands."""

    result: str
    operand: str
    accumulator: str
    k: int
    k_widths: tuple[int, int]


@dataclass(frozen=True)
class MatrixLayout:
    """How one AMD matrix layout is replaced. `k_width` maps the old kWidth to the new one; empty for FMA."""

    text: str
    k_width: dict[int, int]

    @property
    def is_fma(self) -> bool:
        return not self.k_width


def shared_by(layout: Attribute) -> str:
    """`, CGALayout = [[1, 0]]` of a layout that says how the CTAs of a cluster share a tensor, "" of another one."""
    found = layout.get("CGALayout", ())
    return f", CGALayout = {lists(found)}" if found else ""


def linear_text(register, lane, warp) -> str:
    bases = (lists(tuple(map(tuple, group))) for group in (register, lane, warp))
    return "#ttg.linear<{{register = {}, lane = {}, warp = {}, block = []}}>".format(*bases)


def blocked_text(size, threads, warps, order, shared: str = "") -> str:
    """shared: what `shared_by` gives."""
    return (
        f"#ttg.blocked<{{sizePerThread = {list(size)}, threadsPerWarp = {list(threads)}, "
        f"warpsPerCTA = {list(warps)}, order = {list(order)}{shared}}}>"
    )


def blocked_bases(size, threads, warps, order) -> tuple[list, list, list]:
    """Register, lane and warp bases of a blocked layout, the fastest dimension of `order` first."""
    rank, done = len(size), [1] * len(size)

    def take(extents) -> list[list[int]]:
        out = []
        for d in order:
            step = 1
            while step < extents[d]:
                out.append([done[d] * step if i == d else 0 for i in range(rank)])
                step *= 2
        for d in range(rank):
            done[d] *= extents[d]
        return out

    return take(size), take(threads), take(warps)


def narrow_blocked(layout: Attribute) -> str:
    """A wave64 blocked layout with 32 lanes and twice the warps: blocked if that is exact, else linear."""
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    size, threads, warps, order = (layout.get(name) for name in names)
    register, lane, warp = blocked_bases(size, threads, warps, order)
    wanted = (register, lane[:-1], [lane[-1], *warp])
    split = next(d for d in reversed(order) if threads[d] > 1)
    fewer, more = list(threads), list(warps)
    fewer[split] //= 2
    more[split] *= 2
    if blocked_bases(size, fewer, more, order) == wanted:
        return blocked_text(size, fewer, more, order)
    return linear_text(*wanted)


def narrow_linear(layout: Attribute) -> str:
    """A wave64 linear layout with 32 lanes and twice the warps."""
    lane = layout.get("lane")
    return linear_text(layout.get("register"), lane[:-1], [lane[-1], *layout.get("warp")])


def unpadded_shared(layout: Attribute) -> str:
    """An LDS layout with the same offset bases and no padding: NVIDIA's cp.async takes no padded one."""
    if offset := layout.get("offset"):
        block = layout.get("block", ())
        others = f", block = {lists(block)}" if block else ""
        return f"#ttg.shared_linear<{{offset = {lists(offset)}{others}}}, alignment = 16>"
    order = lists(layout.get("order"))
    return f"#ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = {order}{shared_by(layout)}}}>"


def matrix_warps(layout: Attribute, lanes: int) -> list[int]:
    """Warps per dimension that a matrix layout spreads over, for warps of 32 lanes."""
    warps = list(layout.get("warpsPerCTA", ()))
    if not warps:
        spread = layout.get("ctaLayout", Attribute()).get("warp", ())
        warps = [1] * (len(spread[0]) if spread else 2)
        for basis in spread:
            warps = [w * (2 if b else 1) for w, b in zip(warps, basis)]
        missing = 2 ** sum(1 for basis in spread if not any(basis))
        warps[-2] *= missing
    if lanes == 64:
        warps[-2] *= 2
    return warps


def matrix_layout(layout: Attribute, lanes: int, dots: list[Dot], rank: int) -> MatrixLayout:
    """What replaces a layout, given the dots that have it as their result.

    Raises: Refused when the dots of one layout need different replacements.
    """
    warps = matrix_warps(layout, lanes)
    warps = [1] * (rank - len(warps)) + warps
    fma = [d for d in dots if d.operand in ("f32", "f64") or d.k * bits_of(d.operand) < MMA_K_BITS]
    if fma:
        size = [1] * (rank - 2) + [FMA_TILE, FMA_TILE]
        threads = [1] * (rank - 2) + [4, 8]
        return MatrixLayout(blocked_text(size, threads, warps, list(reversed(range(rank))), shared_by(layout)), {})
    widths: dict[int, int] = {}
    for dot in dots:
        wanted = 32 // bits_of(dot.operand)
        for old in dot.k_widths:
            widths[old] = max(wanted, widths.get(old, 0))
    for dot in dots:
        if len({widths[old] for old in dot.k_widths}) > 1:
            raise Refused("tt.dot", "operands of one dot would need different kWidth on the CUDA device")
    shape = [1] * (rank - 2) + [16, 8]
    sizes = f"warpsPerCTA = {warps}{shared_by(layout)}, instrShape = {shape}"
    text = f"#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, {sizes}}}>"
    return MatrixLayout(text, widths or {0: 2})


def find_dots(text: str) -> list[Dot]:
    """Every `tt.dot` of the module."""
    return [_dot(op.type, *op.operand_types) for op in ops_named(text, "tt.dot")]


def _dot(result: Type, first: Type, second: Type) -> Dot:
    operands = (AttributeReader({}).layout(kind.layout) for kind in (first, second))
    widths = tuple(layout.k_width if isinstance(layout, DotOperand) else 0 for layout in operands)
    return Dot(result.layout, first.element, result.element, first.shape[-1], widths)


def retarget_encodings(text: str, lanes: int) -> str:
    """The module with every layout replaced. `lanes` is the wave size of the AMD target.

    Raises: Refused for an encoding without a counterpart.
    """
    named, dots = definitions(text), find_dots(text)
    matrices: dict[str, MatrixLayout] = {}
    for alias, value in named.items():
        layout = parse_attribute(value)
        if layout.kind in MATRIX:
            mine = [dot for dot in dots if dot.result == alias]
            matrices[alias] = matrix_layout(layout, lanes, mine, rank_of(text, alias) or 2)
    return with_layouts(text, lambda layout, body: _replacement(layout, body, lanes, matrices, named))


def _replacement(
    layout: Attribute, body: str, lanes: int, matrices: dict[str, MatrixLayout], named: dict[str, str]
) -> str | None:
    """The text of what replaces a layout, None where at most what stands inside changes."""
    if layout.kind in MATRIX:
        alias = next((a for a, value in named.items() if value == body), None)
        if alias is None:
            raise Refused(f"#{layout.kind}", "a matrix layout that is printed without an alias")
        return matrices[alias].text
    if layout.kind == "ttg.dot_op":
        return _operand_layout(layout, matrices)
    if layout.kind == "ttg.padded_shared":
        return unpadded_shared(layout)
    if layout.kind in ("ttg.blocked", "ttg.linear"):
        narrow = narrow_blocked if layout.kind == "ttg.blocked" else narrow_linear
        return narrow(layout) if lanes == 64 else body
    if layout.kind in UNCHANGED:
        return None
    raise Refused(f"#{layout.kind}", "no counterpart of this layout is known on a CUDA device")


def _operand_layout(layout: Attribute, matrices: dict[str, MatrixLayout]) -> str | None:
    """The layout of an operand with the `kWidth` that its new parent wants; None where the parent stays."""
    index, parent = layout.get("opIdx"), f"#{layout.get('parent').kind}"
    if parent not in matrices:
        return None
    if matrices[parent].is_fma:
        return f"#ttg.dot_op<{{opIdx = {index}, parent = {parent}}}>"
    widths = matrices[parent].k_width
    width = widths.get(layout.get("kWidth", 0), max(widths.values()))
    return f"#ttg.dot_op<{{opIdx = {index}, parent = {parent}, kWidth = {width}}}>"
