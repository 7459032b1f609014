"""Whether the rows of a descriptor's tile start where a lane can copy straight to LDS: at a multiple of the narrowest copy.

`desc.load([row, k - 1])` starts two bytes before a multiple of four: such a tile goes through registers.
"""

from __future__ import annotations

import ast

from translator.facts import callees
from translator.facts.loop_range import HINTS, is_index, loop_bounds
from translator.facts.ranges import int_type
from translator.frontend.trace import ConstFact, TensorFact
from translator.rewrite import descriptors
from translator.rewrite.addresses import is_bare_parameter
from translator.rewrite.emission import Emission
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Blocked, Layout

_PARAMETER = 16  # what Triton specializes an integer argument on


def wide_enough(rw: Emission, owner: ast.expr, offsets: list[ast.expr]) -> bool:
    """Whether each row of the tile at `offsets` of a descriptor is known to start at a multiple of the narrowest copy."""
    if not rw.facts.kernel.target.direct_to_lds_bits:
        return False
    elements = min(rw.facts.kernel.target.direct_to_lds_bits) // bits_of(
        descriptors.block_of(rw.facts.fact(owner)).dtype
    )
    made = descriptors.made_by(rw.facts, owner)
    strides = _argument(made, 2, "strides") if made is not None else None
    rows = list(strides.elts[:-1]) if isinstance(strides, (ast.List, ast.Tuple)) else []
    return elements <= 1 or (
        _rows_of_argument(rw, owner) and all(_is_multiple(rw, e, elements) for e in [*rows, offsets[-1]])
    )


def _rows_of_argument(rw: Emission, owner: ast.expr) -> bool:
    """Whether the rows of a descriptor that is an argument are known to start so: Triton asks its strides for multiples of 16 elements."""
    origin = descriptors.origin_of(rw.facts, owner)
    if not isinstance(origin, ast.arg):
        return True
    rank = descriptors.block_of(rw.facts.fact(owner)).rank
    return all(f"{origin.arg}.strides.{d}" in rw.facts.kernel.divisible for d in range(rank - 1))


def source_layout(rw: Emission, call: ast.Call, owner: ast.expr) -> Layout:
    """The layout in which the tile of a descriptor is copied: Triton's, where lanes have neighbours of a row in it."""
    block = descriptors.block_of(rw.facts.fact(owner))
    layout, widths = descriptors.fetch_layout(rw, call, owner), rw.facts.kernel.target.direct_to_lds_bits
    narrowest, widest = (width // bits_of(block.dtype) for width in (min(widths), max(widths)))
    if isinstance(layout, Blocked) and layout.order[0] == block.rank - 1 and layout.size_per_thread[-1] >= narrowest:
        return layout
    sizes = [1] * (block.rank - 1) + [max(1, min(block.shape[-1], widest))]
    lanes = _dealt(rw.facts.kernel.target.warp_size, block.shape, sizes)
    warps = _dealt(rw.facts.kernel.num_warps, block.shape, [size * lane for size, lane in zip(sizes, lanes)])
    return Blocked(tuple(sizes), tuple(lanes), tuple(warps), tuple(reversed(range(block.rank))), layout.ctas)


def _dealt(count: int, shape: tuple[int, ...], held: list[int]) -> list[int]:
    """`count` lanes or warps over what is left of `shape` where each has `held` of it, the last dimension first."""
    out = [1] * len(shape)
    for d in reversed(range(len(shape))):
        out[d] = max(1, min(count, shape[d] // held[d]))
        count //= out[d]
    out[0] *= count
    return out


def _argument(made: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(made.args) > position:
        return made.args[position]
    return next((k.value for k in made.keywords if k.arg == name), None)


def _is_multiple(rw: Emission, node: ast.expr, of: int) -> bool:
    """Whether an integer expression is known to be a multiple of the power of two `of`."""
    fact = rw.facts.settled(node)
    if isinstance(fact, ConstFact):
        return isinstance(fact.value, int) and fact.value % of == 0
    if isinstance(fact, TensorFact) and int_type(fact.dtype) is None:
        return False  # 4 times a half is no multiple of 4
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _is_multiple(rw, node.left, of) and _is_multiple(rw, node.right, of)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_multiple(rw, node.left, of) or _is_multiple(rw, node.right, of)
    if isinstance(node, ast.Call):
        return _called_multiple(rw, node, of)
    if not isinstance(node, ast.Name):
        return False
    if is_bare_parameter(rw, node):
        return not rw.facts.path and node.id in rw.facts.kernel.divisible and _PARAMETER % of == 0
    for loop in (n for n in ast.walk(rw.facts.tree) if isinstance(n, ast.For)):
        if is_index(rw.facts, loop, node):
            bounds = loop_bounds(rw.facts, loop, either_way=True)
            if bounds is None:
                return False
            low, _, step = bounds
            return (low is None or _is_multiple(rw, low, of)) and step is not None and _is_multiple(rw, step, of)
    value = rw.facts.webs.value_of(node)
    return value is not None and _is_multiple(rw, value, of)


def _called_multiple(rw: Emission, node: ast.Call, of: int) -> bool:
    callee = callees.callee_of(rw.facts, node)
    if callee is None or callee.row is None:
        return False
    given = list(callees.bind(rw.facts, node, callee).values())
    if callee.name == HINTS[0] and len(given) == 2 and _is_multiple(rw, given[1], of):
        return True
    inner = given[0] if callee.name in HINTS and given else callees.cast_of(rw.facts, node)
    return inner is not None and _is_multiple(rw, inner, of)


__all__ = ["source_layout", "wide_enough"]
