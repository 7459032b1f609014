"""Rules by which Triton's passes choose layouts, as functions of the output, and as Python functions that are compared with the passes.

Each restates what Triton 3.9.0 does for a tile, in the words of a person: what the passes choose on every sample has to equal what the
function gives there (`gluonize.general.rules.search`), or the rule is not used. The same text is run here and written into the output.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from gluonize.rules.gluon import EFFICIENT_PADDING, operations
from gluonize.triton_api.gluon_language import cdna4, gl


@dataclass(frozen=True)
class RuleText:
    """name: of the function. text: its definition, from the decorator on; its docstring says why a layout is what it is. module: of
    Gluon's for AMD GPUs, where the function is one of it and has no text; about: then a comment for each layout that it gives.
    """

    name: str
    text: str = ""
    about: str = ""
    module: str = ""

    @property
    def function(self) -> Callable[..., Any]:
        return getattr(cdna4, self.name) if self.module else _made(self.name, self.text)

    @property
    def parameters(self) -> list[str]:
        """The names of what the function takes."""
        return list(inspect.signature(getattr(self.function, "fn", self.function)).parameters)

    def given(self, *arguments: Any) -> Any:
        """What the function gives for some arguments; lists among them may be tuples."""
        return _given(self, *(tuple(a) if isinstance(a, list) else a for a in arguments))


@lru_cache(maxsize=1 << 16)
def _given(rule: RuleText, *arguments: Any) -> Any:
    return rule.function(*(list(a) if isinstance(a, tuple) else a for a in arguments))


@lru_cache(maxsize=None)
def _made(name: str, text: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"gl": gl, "gluon": SimpleNamespace(constexpr_function=lambda function: function)}
    exec(compile(text, f"<{name}>", "exec"), names)
    return names[name]


# How warps are shared out over the two sides of a product, for both kinds of matrix cores.
_SHARED_OUT = """    rows, columns = 1, 1
    while rows * columns < warps:
        down = m // (2 * side) // rows >= n // side // columns and rows < m // side
        rows, columns = (2 * rows, columns) if down else (rows, 2 * columns)
    if columns * side > n:
        rows, columns = columns, rows
"""


Depths = Mapping[int, Sequence[int]]  # elements along K of instructions, by their rows and columns


def matrix_cores(version: int, depths: Depths, transposed: bool) -> RuleText:
    """MFMA of a product."""
    text = f'''@gluon.constexpr_function
def matrix_cores(m, n, k, warps):
    """MFMA for a product of m x n x k: warps go where most tiles are left, to the rows if these are twice as many."""
{_instruction(depths)}{_SHARED_OUT}    return gl.amd.AMDMFMALayout(version={version}, instr_shape=shape, transposed={transposed}, warps_per_cta=[rows, columns])
'''
    return RuleText("matrix_cores", text)


def chained_cores(version: int, depths: Depths, transposed: bool, paired: bool) -> RuleText:
    """MFMA of a product whose rows another one multiplies. paired: whether warps have tiles of 16 rows in pairs, for instructions of 32."""
    pairs = ", tiles_per_warp=[2 if side == 16 and m >= 32 * warps else 1, 1]" if paired else ""
    text = f'''@gluon.constexpr_function
def chained_cores(m, n, k, warps):
    """MFMA for a product of m x n x k that is an operand of another: each warp has whole rows."""
{_instruction(depths)}    return gl.amd.AMDMFMALayout(
        version={version}, instr_shape=shape, transposed={transposed}, warps_per_cta=[warps, 1]{pairs}
    )
'''
    return RuleText("chained_cores", text)


def second_cores(version: int, depths: Depths, transposed: bool, paired: bool) -> RuleText:
    """MFMA of a product that multiplies the rows of another one. paired: as of `chained_cores`."""
    pairs = ", tiles_per_warp=[2 if side == 16 and m >= 32 * warps else 1, 1]" if paired else ""
    text = f'''@gluon.constexpr_function
def second_cores(m, n, k, warps):
    """MFMA for a product of m x n x k with another one as operand: warps have rows while these last, then columns."""
{_instruction(depths)}    rows = min(max(m // side, 1), warps)
    return gl.amd.AMDMFMALayout(
        version={version}, instr_shape=shape, transposed={transposed}, warps_per_cta=[rows, warps // rows]{pairs}
    )
'''
    return RuleText("second_cores", text)


def _instruction(depths: Depths) -> str:
    """The shape of the instruction for a product of m x n x k: the deepest that K has room for."""
    (side, (deep, *_)), *others = sorted(depths.items(), reverse=True)
    sides, deepest = str(side), str(deep)
    if others:
        smaller, (deeper, *_) = others[0]
        sides = f"{side} if min(m, n) >= {side} else {smaller}"
        deepest = f"{deep} if side == {side} else {deeper}"
    # Instructions for scaled operands are several times as deep as others, with none between them.
    less = max((every[0] // every[1] for every in depths.values() if len(every) > 1), default=1)
    if less <= 2:
        return f"    side = {sides}\n    shape = [side, side, min(k, {deepest})]\n"
    shape = f"[side, side, deep if k >= deep else deep // {less}]"
    return f"    side = {sides}\n    deep = {deepest}\n    shape = {shape}\n"


def wave_matrices(version: int, transposed: bool) -> RuleText:
    """WMMA of a product."""
    text = f'''@gluon.constexpr_function
def matrix_cores(m, n, depth, warps):
    """WMMA for a product of m x n: warps go where most tiles are left, to the rows if these are twice as many."""
    side = 16
{_SHARED_OUT}    over_columns = [[0, 1 << i] for i in range(columns.bit_length() - 1)]
    over_rows = [[1 << i, 0] for i in range(rows.bit_length() - 1)]
    return gl.amd.AMDWMMALayout(
        version={version}, transposed={transposed}, warp_bases=over_columns + over_rows, instr_shape=[side, side, depth]
    )
'''
    return RuleText("matrix_cores", text)


def direct_copy(lanes: int) -> RuleText:
    text = f'''@gluon.constexpr_function
def direct_copy(shared, shape, dtype, warps):
    """Lanes and warps in the order of LDS, or row by row where each fills a warp: 16 bytes per lane where it has as
    many and LDS has them together, else 4."""
    bits = dtype.primitive_bitwidth
    if isinstance(shared, gl.PaddedSharedLayout):
        order, together = shared.offset_bases, 128
    else:
        sizes = [(dim, 1 << i) for dim in shared.order for i in range(shape[dim].bit_length() - 1)]
        order = [[size, 0] if dim == 0 else [0, size] for dim, size in sizes]
        together = shared.vec * bits if shared.max_phase > 1 else 128
    held = min(shape[0] * shape[1] // ({lanes} * warps), 128 // bits)
    each = (128 if min(together, held * bits) >= 128 else 32) // bits
    along = order[0].index(1)
    if each == held and shape[along] >= {lanes} * each:
        order = sorted(order, key=lambda basis: basis[1 - along])
    lane = each.bit_length() - 1
    warp = lane + {lanes.bit_length() - 1}
    rest = warp + warps.bit_length() - 1
    return gl.DistributedLinearLayout(order[:lane] + order[rest:], order[lane:warp], order[warp:rest], [], shape)
'''
    return RuleText("direct_copy", text)


def copy_in_order(lanes: int) -> RuleText:
    """A copy to a padded tile of LDS, of a size that is known."""
    text = f'''@gluon.constexpr_function
def direct_copy(shared, each, warps):
    """Of copies straight to LDS: lanes, then warps, go on in the order of `shared`, with `each` elements per lane."""
    order = shared.offset_bases
    lane = each.bit_length() - 1
    warp = lane + {lanes.bit_length() - 1}
    rest = warp + warps.bit_length() - 1
    return gl.DistributedLinearLayout(order[:lane] + order[rest:], order[lane:warp], order[warp:rest], [], shared.shape)
'''
    return RuleText("direct_copy", text)


WIDE_STORE = RuleText(
    "wide_store",
    '''@gluon.constexpr_function
def wide_store(mma, linear):
    """`mma`, which is `linear` by its bases, after lanes have exchanged columns: each has eight in a row to store, not
    four. `mma` itself where the next columns are those of another warp."""
    register, lane = list(linear.reg_bases), list(linear.lane_bases)
    other = [0, 8] if [0, 8] in register else [0, 16]
    if other not in register:
        return mma
    register[register.index(other)], lane[lane.index([0, 4])] = [0, 4], other
    return gl.DistributedLinearLayout(register, lane, linear.warp_bases, linear.block_bases, linear.shape)
''',
)


def spread_rows(lanes: int) -> RuleText:
    """A blocked layout of an access, in a kernel whose tiles all have rows of neighbours in memory."""
    text = f'''@gluon.constexpr_function
def spread(shape, most, warps, deep=1):
    """Up to `most` elements in a row per lane, of up to `deep` rows; lanes and then warps go along the row while it
    lasts, then down."""
    rows, columns = shape
    held = max(rows * columns // ({lanes} * warps), 1)
    each = min(most, columns, held)
    below = min(deep, rows, held // each)
    lanes = min(columns // each, {lanes})
    beside = min(columns // (each * lanes), warps)
    return gl.BlockedLayout([below, each], [{lanes} // lanes, lanes], [warps // beside, beside], [1, 0])
'''
    return RuleText("spread", text)


def spread(lanes: int) -> RuleText:
    """A blocked layout of an access, whichever dimension has neighbours in memory."""
    text = f'''@gluon.constexpr_function
def spread(shape, most, warps, order, deep=1):
    """Up to `most` elements in a row per lane, of up to `deep` rows; lanes and then warps go along the row while it
    lasts, then down."""
    along, down = order
    held = max(shape[0] * shape[1] // ({lanes} * warps), 1)
    each = min(most, shape[along], held)
    below = min(deep, shape[down], held // each)
    lanes = min(shape[along] // each, {lanes})
    beside = min(shape[along] // (each * lanes), warps)
    size, lane, warp = [below] * 2, [{lanes} // lanes] * 2, [warps // beside] * 2
    size[along], lane[along], warp[along] = each, lanes, beside
    return gl.BlockedLayout(size, lane, warp, order)
'''
    return RuleText("spread", text)


def spread_pairs(lanes: int) -> RuleText:
    """A blocked layout of a tile whose columns are pairs in a dimension of their own, as values are that are packed two by two."""
    text = f'''@gluon.constexpr_function
def spread_pairs(shape, most, warps):
    """Up to `most` pairs in a row per lane; lanes and then warps go along the row while it lasts, then down."""
    rows, columns = shape
    each = max(min(most, columns, rows * columns // ({lanes} * warps)), 1)
    threads = min({lanes} * warps, max(columns // each, 1))
    lanes = min(threads, {lanes})
    beside = min(threads // lanes, warps)
    return gl.BlockedLayout([1, each, 2], [{lanes} // lanes, lanes, 1], [warps // beside, beside, 1], [2, 1, 0])
'''
    return RuleText("spread_pairs", text, "Pairs in a row per lane, as many as there are and an access takes.")


TRANSPOSED = RuleText(
    "transposed_in_lanes",
    '''@gluon.constexpr_function
def transposed_in_lanes(held, linear):
    """`linear`, which is `held` by its bases, after each lane has transposed the block that it holds."""
    beside, below = (held.size_per_thread[dim].bit_length() - 1 for dim in held.order)
    register = linear.reg_bases
    register = register[beside : beside + below] + register[:beside] + register[beside + below :]
    return gl.DistributedLinearLayout(register, linear.lane_bases, linear.warp_bases, linear.block_bases, linear.shape)
''',
)

ROTATED = RuleText(
    "rotated",
    '''@gluon.constexpr_function
def rotated(held, shape, vector, line, most):
    """LDS for a tile of which lanes store columns of the blocks that they `held`: vectors exchanged by XOR with the
    number of the column, up to `most`; columns that fill a `line` of the banks together alike. Where lanes hold one row
    there is nothing to exchange."""
    down, along = held.order
    if held.size_per_thread[along] == 1:
        return gl.SwizzledSharedLayout(1, 1, 1, held.order)
    first = max(line // shape[along], 1).bit_length() - 1
    bits = min(shape[along] // vector, most).bit_length() - 1
    offsets = [[1 << i, 0] for i in range(shape[along].bit_length() - 1)]
    for i in range(shape[down].bit_length() - 1):
        offsets.append([vector << (i - first) % bits if first <= i < first + 2 * bits else 0, 1 << i])
    return gl.SharedLinearLayout(offsets if along == 0 else [offset[::-1] for offset in offsets])
''',
)

PADDED_OPERAND = RuleText(
    EFFICIENT_PADDING,
    about="LDS: padded, and rows permuted, against bank conflicts.",
    module=operations(EFFICIENT_PADDING)[0].home[0],
)

SWIZZLED_OPERAND = RuleText(
    "swizzled_operand",
    '''@gluon.constexpr_function
def swizzled_operand(operand, shape, line):
    """LDS against bank conflicts: vectors that lanes read of an operand, exchanged between as many rows along K as 16
    lanes read at once. Rows that fill a `line` of the banks together are exchanged alike."""
    along, each = 1 - operand.operand_index, operand.k_width
    alike = max(line // shape[along], 1)
    phases = max(min(16 // alike, shape[along] // each), 1)
    return gl.SwizzledSharedLayout(each, alike, phases, [along, 1 - along])
''',
)

PADDED_ROWS = RuleText(
    "padded_rows",
    '''@gluon.constexpr_function
def padded_rows(shape, interval, padding, order):
    """LDS, padded against bank conflicts after each `interval` elements; rows no longer than the padding lie one after
    the other."""
    if shape[order[0]] <= padding:
        return gl.SwizzledSharedLayout(1, 1, 1, order)
    return gl.PaddedSharedLayout.with_identity_for([[interval, padding]], shape, order)
''',
)

__all__ = [
    "PADDED_OPERAND",
    "PADDED_ROWS",
    "ROTATED",
    "RuleText",
    "SWIZZLED_OPERAND",
    "TRANSPOSED",
    "WIDE_STORE",
    "chained_cores",
    "copy_in_order",
    "direct_copy",
    "matrix_cores",
    "second_cores",
    "spread",
    "spread_pairs",
    "spread_rows",
    "wave_matrices",
]
