"""Layouts of AMD modules as layouts of the same modules with 32 lanes per warp.

before: `#ttg.linear<{register = R, lane = [l0 .. l5], warp = W}>`   (wave64)
after:  `#ttg.linear<{register = R, lane = [l0 .. l4], warp = [l5, *W]}>`, twice the warps

A blocked layout stays blocked where that is exactly this change, else it becomes linear. Matrix layouts become
`nvidia_mma` version 2, or blocked where the dot has to run as FMA. Padding of LDS goes: the bases stay, as
`shared_linear`. Sources: `lib/Dialect/TritonGPU/IR/{Dialect,LinearLayoutConversions}.cpp` of Triton 3.9.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from translator.device.module_text import aliases, balanced_end, bits_of, op_name
from translator.device.refusal import Refused
from translator.ttgir.layouts import AttributeReader, DotOperand
from translator.ttgir.parse import parse_op
from translator.ttgir.types import Type, types_in

ROOT = re.compile(r"#ttg\.(\w+)<")
MATRIX = ("amd_mfma", "amd_wmma")
UNCHANGED = ("swizzled_shared", "shared_linear", "slice", "dot_op")
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


def integers(text: str, name: str) -> list[int] | None:
    """`[1, 8]` of `name = [1, 8]`, None where it is not there."""
    found = re.search(rf"\b{name} = \[([\d, ]*)\]", text)
    return [int(x) for x in found.group(1).split(",") if x.strip()] if found else None


def bases(text: str, name: str) -> list[list[int]]:
    """`[[0, 1], [0, 2]]` of `name = [[0, 1], [0, 2]]`; empty where it is not there."""
    found = re.search(rf"\b{name} = \[((?:\[[\d, ]*\](?:, )?)*)\]", text)
    if not found:
        return []
    return [[int(x) for x in basis.split(",")] for basis in re.findall(r"\[([\d, ]+)\]", found.group(1))]


def shared_by(body: str) -> str:
    """`, CGALayout = [[1, 0]]` of a layout that says how the CTAs of a cluster share a tensor, "" of another one."""
    found = bases(body, "CGALayout")
    return f", CGALayout = {found}" if found else ""


def linear_text(register, lane, warp) -> str:
    return f"#ttg.linear<{{register = {register}, lane = {lane}, warp = {warp}, block = []}}>"


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


def narrow_blocked(body: str) -> str:
    """A wave64 blocked layout with 32 lanes and twice the warps: blocked if that is exact, else linear."""
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    size, threads, warps, order = (integers(body, name) for name in names)
    register, lane, warp = blocked_bases(size, threads, warps, order)
    wanted = (register, lane[:-1], [lane[-1], *warp])
    split = next(d for d in reversed(order) if threads[d] > 1)
    fewer, more = list(threads), list(warps)
    fewer[split] //= 2
    more[split] *= 2
    if blocked_bases(size, fewer, more, order) == wanted:
        return blocked_text(size, fewer, more, order)
    return linear_text(*wanted)


def narrow_linear(body: str) -> str:
    """A wave64 linear layout with 32 lanes and twice the warps."""
    lane = bases(body, "lane")
    return linear_text(bases(body, "register"), lane[:-1], [lane[-1], *bases(body, "warp")])


def unpadded_shared(body: str) -> str:
    """An LDS layout with the same offset bases and no padding: NVIDIA's cp.async takes no padded one."""
    if offset := bases(body, "offset"):
        block = bases(body, "block")
        others = f", block = {block}" if block else ""
        return f"#ttg.shared_linear<{{offset = {offset}{others}}}, alignment = 16>"
    order = integers(body, "order")
    return f"#ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = {order}{shared_by(body)}}}>"


def matrix_warps(name: str, body: str, lanes: int) -> list[int]:
    """Warps per dimension that a matrix layout spreads over, for warps of 32 lanes."""
    warps = integers(body, "warpsPerCTA")
    if warps is None:
        spread = bases(body, "warp")
        warps = [1] * (len(spread[0]) if spread else 2)
        for basis in spread:
            warps = [w * (2 if b else 1) for w, b in zip(warps, basis)]
        missing = 2 ** sum(1 for basis in spread if not any(basis))
        warps[-2] *= missing
    if lanes == 64:
        warps[-2] *= 2
    return warps


def matrix_layout(name: str, body: str, lanes: int, dots: list[Dot], rank: int) -> MatrixLayout:
    """What replaces the layout `#ttg.{name}<{body}>`, given the dots that have it as their result.

    Raises: Refused when the dots of one layout need different replacements.
    """
    warps = matrix_warps(name, body, lanes)
    warps = [1] * (rank - len(warps)) + warps
    fma = [d for d in dots if d.operand in ("f32", "f64") or d.k * bits_of(d.operand) < MMA_K_BITS]
    if fma:
        size = [1] * (rank - 2) + [FMA_TILE, FMA_TILE]
        threads = [1] * (rank - 2) + [4, 8]
        return MatrixLayout(blocked_text(size, threads, warps, list(reversed(range(rank))), shared_by(body)), {})
    widths: dict[int, int] = {}
    for dot in dots:
        wanted = 32 // bits_of(dot.operand)
        for old in dot.k_widths:
            widths[old] = max(wanted, widths.get(old, 0))
    for dot in dots:
        if len({widths[old] for old in dot.k_widths}) > 1:
            raise Refused("tt.dot", "operands of one dot would need different kWidth on the CUDA device")
    shape = [1] * (rank - 2) + [16, 8]
    sizes = f"warpsPerCTA = {warps}{shared_by(body)}, instrShape = {shape}"
    text = f"#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, {sizes}}}>"
    return MatrixLayout(text, widths or {0: 2})


def find_dots(text: str) -> list[Dot]:
    """Every `tt.dot` of the module."""
    dots = [parse_op(line) for line in text.splitlines() if op_name(line) == "tt.dot"]
    return [_dot(op.type, *op.operand_types) for op in dots]


def _dot(result: Type, first: Type, second: Type) -> Dot:
    operands = (AttributeReader({}).layout(kind.layout) for kind in (first, second))
    widths = tuple(layout.k_width if isinstance(layout, DotOperand) else 0 for layout in operands)
    return Dot(result.layout, first.element, result.element, first.shape[-1], widths)


def retarget_encodings(text: str, lanes: int) -> str:
    """The module with every layout replaced. `lanes` is the wave size of the AMD target.

    Raises: Refused for an encoding without a counterpart.
    """
    named, dots = aliases(text), find_dots(text)
    matrices: dict[str, MatrixLayout] = {}
    for alias, value in named.items():
        found = ROOT.match(value)
        if found and found.group(1) in MATRIX:
            mine = [dot for dot in dots if dot.result == alias]
            matrices[alias] = matrix_layout(found.group(1), value, lanes, mine, _rank(text, alias))
    text = _operand_layouts(text, matrices)
    out, at = [], 0
    for found in ROOT.finditer(text):
        if found.start() < at:
            continue
        name, end = found.group(1), balanced_end(text, found.end() - 1)
        body = text[found.start() : end]
        if name in UNCHANGED:
            continue  # only what stands inside changes, and the scan goes on there
        out += [text[at : found.start()], _replacement(name, body, lanes, matrices, named)]
        at = end
    return "".join(out) + text[at:]


def _replacement(name: str, body: str, lanes: int, matrices: dict[str, MatrixLayout], named: dict[str, str]) -> str:
    if name in MATRIX:
        alias = next((a for a, value in named.items() if value == body), None)
        if alias is None:
            raise Refused(f"#ttg.{name}", "a matrix layout that is printed without an alias")
        return matrices[alias].text
    if name == "padded_shared":
        return unpadded_shared(body)
    if name == "blocked":
        return narrow_blocked(body) if lanes == 64 else body
    if name == "linear":
        return narrow_linear(body) if lanes == 64 else body
    if name in ("memdesc", "async"):
        return body
    raise Refused(f"#ttg.{name}", "no counterpart of this layout is known on a CUDA device")


def _rank(text: str, alias: str) -> int:
    """Rank of the tensors that have the layout `alias` itself; 2 where there is none."""
    kinds = (kind for line in text.splitlines() if f", {alias}>" in line for kind in types_in(line, "tensor<"))
    return next((len(kind.shape) for kind in kinds if kind.layout == alias and kind.kind != "ptr"), 2)


def _operand_layouts(text: str, matrices: dict[str, MatrixLayout]) -> str:
    """`kWidth` of dot operands as their new parent wants it."""

    def change(found: re.Match) -> str:
        index, parent, width = found.group(1), found.group(2), int(found.group(3) or 0)
        layout = matrices.get(parent)
        if layout is None:
            return found.group(0)
        if layout.is_fma:
            return f"#ttg.dot_op<{{opIdx = {index}, parent = {parent}}}>"
        new = layout.k_width.get(width, max(layout.k_width.values()))
        return f"#ttg.dot_op<{{opIdx = {index}, parent = {parent}, kWidth = {new}}}>"

    return re.sub(r"#ttg\.dot_op<\{opIdx = (\d), parent = (#\w+)(?:, kWidth = (\d+))?\}>", change, text)
