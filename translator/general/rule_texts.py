"""Rules by which Triton's passes choose layouts, as functions of the output, and as Python functions that are compared with the passes.

Each restates what Triton 3.9.0 does for a tile, in the words of a person: what the passes choose on every sample has to equal what the
function gives there (`translator.general.rules`), or the rule is not used. The same text is run here and written into the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna4


@dataclass(frozen=True)
class RuleText:
    """name: of the function. text: its definition, from the decorator on. about: a comment for each layout that it gives. module: of
    Gluon's for AMD GPUs, where the function is one of it and has no text."""

    name: str
    text: str
    about: str
    module: str = ""

    @property
    def function(self) -> Callable[..., Any]:
        return getattr(cdna4, self.name) if self.module else _made(self.name, self.text)

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
        if m // (2 * side) // rows >= n // side // columns and rows < m // side:
            rows *= 2
        else:
            columns *= 2
    if columns * side > n:
        rows, columns = columns, rows
"""
_MATRIX_CORES = "Matrix cores: warps over the tile as it is longer."


Depths = Mapping[int, Sequence[int]]  # elements along K of instructions, by their rows and columns


def matrix_cores(version: int, depths: Depths, transposed: bool) -> RuleText:
    """MFMA of a product."""
    text = f'''@gluon.constexpr_function
def matrix_cores(m, n, k, warps):
    """MFMA for a product of m x n x k: warps go where most tiles are left, to the rows if these are twice as many."""
{_instruction(depths)}{_SHARED_OUT}    return gl.amd.AMDMFMALayout(version={version}, instr_shape=shape, transposed={transposed}, warps_per_cta=[rows, columns])
'''
    return RuleText("matrix_cores", text, _MATRIX_CORES)


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
    return RuleText(
        "chained_cores", text, "Matrix cores: whole rows for each warp, as the product after it wants them."
    )


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
    return RuleText("matrix_cores", text, _MATRIX_CORES)


OPERAND = RuleText(
    "operand_of",
    '''@gluon.constexpr_function
def operand_of(mma, index, most):
    """Operand `index` of a product: of its elements along the K of one instruction, a lane has up to `most` next to each other."""
    side, _, depth = mma.instr_shape
    return gl.DotOperandLayout(index, mma, min(side * depth // 64, most))
''',
    "",
)


def direct_copy(lanes: int) -> RuleText:
    text = f'''@gluon.constexpr_function
def direct_copy(shared, shape, bits, warps):
    """Lanes and warps one after the other in the order of LDS, or row by row where each fills a warp: 16 bytes per lane where the tile has
    as many and LDS has them together, else 4."""
    if isinstance(shared, gl.PaddedSharedLayout):
        order = shared.offset_bases
    else:
        order = [[1 << i if d == dim else 0 for d in range(2)] for dim in shared.order for i in range(shape[dim].bit_length() - 1)]
    held = min(shape[0] * shape[1] // ({lanes} * warps), 128 // bits)
    apart = isinstance(shared, gl.SwizzledSharedLayout) and shared.max_phase > 1 and shared.vec * bits < 128
    each = 32 // bits if apart or held * bits < 128 else 128 // bits
    along = order[0].index(1)
    if each == held and shape[along] >= {lanes} * each:
        order = sorted(order, key=lambda basis: basis[1 - along])
    lane = each.bit_length() - 1
    warp = lane + {lanes.bit_length() - 1}
    rest = warp + warps.bit_length() - 1
    return gl.DistributedLinearLayout(order[:lane] + order[rest:], order[lane:warp], order[warp:rest], [], shape)
'''
    return RuleText(
        "direct_copy", text, "A copy straight to LDS: lanes in the order in which their elements lie there."
    )


WIDE_STORE = RuleText(
    "wide_store",
    '''@gluon.constexpr_function
def wide_store(mma, shape):
    """Where a product is stored from: as MFMA leave it, but for two groups of columns that lanes exchange, so that each lane has eight
    in a row instead of four."""
    side, rows, columns = mma.instr_shape[0], shape[0], shape[1]
    rows_done, columns_done = side * mma.warps_per_cta[0], side * mma.warps_per_cta[1]

    def powers(first, end):
        return [1 << i for i in range(first.bit_length() - 1, end.bit_length() - 1)]

    if side == 32:
        register, lane = [1, 2, 4, 16], [8]
    elif columns_done == 16 and columns > 16:
        register, lane, columns_done = [1, 2, 4], [16, 8], 32
    else:  # a lane's next columns are those of another warp
        return mma
    register = [[0, n] for n in register + powers(columns_done, columns)] + [[m, 0] for m in powers(rows_done, rows)]
    lane = [[m, 0] for m in powers(1, side)] + [[0, n] for n in lane]
    warp = [[0, n % columns] for n in powers(side, side * mma.warps_per_cta[1])] + [[m % rows, 0] for m in powers(side, rows_done)]
    return gl.DistributedLinearLayout(register, lane, warp, [], shape)
''',
    "Eight columns in a row per lane, where the matrix cores leave four.",
)


def spread(lanes: int) -> RuleText:
    """A blocked layout of an access."""
    text = f'''@gluon.constexpr_function
def spread(shape, most, warps, order, deep=1):
    """Up to `most` elements in a row per lane, of up to `deep` rows; lanes and then warps go along the row while it lasts, then down."""
    along, down = order
    each = max(min(most, shape[along], shape[0] * shape[1] // ({lanes} * warps)), 1)
    below = min(deep, shape[down], max(shape[0] * shape[1] // ({lanes} * warps * each), 1))
    threads = min({lanes} * warps, max(shape[along] // each, 1))
    lanes = min(threads, {lanes})
    beside = min(threads // lanes, warps)
    size, lane, warp = [below] * 2, [{lanes} // lanes] * 2, [warps // beside] * 2
    size[along], lane[along], warp[along] = each, lanes, beside
    return gl.BlockedLayout(size, lane, warp, order)
'''
    return RuleText("spread", text, "Elements in a row per lane, as many as there are and an access takes.")


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
    along, down = held.order
    beside, below = held.size_per_thread[along].bit_length() - 1, held.size_per_thread[down].bit_length() - 1
    register = linear.reg_bases
    register = register[beside : beside + below] + register[:beside] + register[beside + below :]
    return gl.DistributedLinearLayout(register, linear.lane_bases, linear.warp_bases, linear.block_bases, linear.shape)
''',
    "What was loaded, after each lane has transposed its block.",
)

ROTATED = RuleText(
    "rotated",
    '''@gluon.constexpr_function
def rotated(held, shape, vector, line, most):
    """LDS for a tile that each lane has transposed: columns one after the other, whose vectors are exchanged by XOR with the number of the
    column, counted in columns that fill a line of the banks together, and of its group of `most` such. Where lanes have one
    row of `held`, nothing was transposed, and rows are one after the other."""
    down, along = held.order
    if held.size_per_thread[along] == 1:
        return gl.SwizzledSharedLayout(1, 1, 1, held.order)
    together, phases = max(line // shape[along], 1), min(shape[along] // vector, most)
    first, bits = together.bit_length() - 1, phases.bit_length() - 1
    offsets = [[1 << i if d == along else 0 for d in range(2)] for i in range(shape[along].bit_length() - 1)]
    for i in range(shape[down].bit_length() - 1):
        offset = [1 << i, 1 << i]
        offset[along] = vector << (i - first) % bits if first <= i < first + 2 * bits else 0
        offsets.append(offset)
    return gl.SharedLinearLayout(offsets)
''',
    "LDS: vectors rotated from column to column against bank conflicts.",
)

PADDED_OPERAND = RuleText(
    "compute_efficient_padded_shared_layout", "", "LDS: padded, and rows permuted, against bank conflicts.", "cdna4"
)

SWIZZLED_OPERAND = RuleText(
    "swizzled_operand",
    '''@gluon.constexpr_function
def swizzled_operand(operand, shape, line):
    """LDS: the vectors that lanes read of an operand, exchanged between rows along K, for as many rows as 16 lanes read at once. Rows that
    fill a `line` of the banks together are exchanged alike."""
    along, each = 1 - operand.operand_index, operand.k_width
    alike = max(line // shape[along], 1)
    phases = max(min(16 // alike, shape[along] // each), 1)
    return gl.SwizzledSharedLayout(each, alike, phases, [along, 1 - along])
''',
    "LDS: vectors of an operand exchanged from row to row against bank conflicts.",
)

PADDED_ROWS = RuleText(
    "padded_rows",
    '''@gluon.constexpr_function
def padded_rows(shape, interval, padding, order):
    """LDS, padded after each `interval` elements; but rows no longer than the padding lie one after the other."""
    if shape[order[0]] <= padding:
        return gl.SwizzledSharedLayout(1, 1, 1, order)
    return gl.PaddedSharedLayout.with_identity_for([[interval, padding]], shape, order)
''',
    "LDS: padded against bank conflicts.",
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
    "direct_copy",
    "matrix_cores",
    "spread",
    "spread_pairs",
    "wave_matrices",
]
