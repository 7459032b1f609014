"""Whether the rows of a descriptor's tile start where a lane can copy straight to LDS: at a multiple of the narrowest copy.

`desc.load([row, k - 1])` starts two bytes before a multiple of four, as any tile of `tl.make_tensor_descriptor(x_ptr + 1, ...)` does: such
a tile goes through registers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.ranges import int_type
from gluonize.facts.loops.loop_range import HINTS, is_index, loop_bounds
from gluonize.facts.made_descriptors import origin_of
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Blocked, Layout, dealt
from gluonize.write.accesses.addresses import is_bare_parameter
from gluonize.write.descriptors import descriptors
from gluonize.write.state.unit import Record

_PARAMETER = 16  # what Triton specializes an integer argument on
_START = ".start"  # of a tensor that is an argument


def wide_enough(facts: FunctionFacts, owner: ast.expr, offsets: list[ast.expr]) -> bool:
    """Whether each row of the tile at `offsets` of a descriptor is known to start at a multiple of the narrowest copy."""
    return bool(facts.kernel.target.direct_to_lds_bits) and _rests_on(facts, owner, offsets) is not None


def rest_on_multiples(facts: FunctionFacts, record: Record, call: ast.Call) -> None:
    """Write down the arguments that Triton was told are multiples of 16, without which a load's copies to LDS do not compile."""
    callee = callees.callee_of(facts, call)
    offsets = callees.bind(call, callee)["offsets"]
    write_down(record, _rests_on(facts, callee.owner, offsets.elts) or (), "copies of a descriptor's tiles to LDS")


def write_down(record: Record, rests: Iterable[str], rewrite: str) -> None:
    """Have the arguments that copies rest on checked before each launch: integers, strides, starts of tensors."""
    for name in rests:
        if name.endswith(_START):
            record.is_aligned(name.removesuffix(_START), rewrite)
        else:
            record.is_multiple(name, rewrite)


def _rests_on(facts: FunctionFacts, owner: ast.expr, offsets: list[ast.expr]) -> frozenset[str] | None:
    """What has to be a multiple of 16 for rows to start so; None where it is not known to be enough."""
    narrowest = min(facts.kernel.target.direct_to_lds_bits)
    elements = narrowest // bits_of(descriptors.block_of(facts.fact(owner)).dtype)
    if elements <= 1:
        return frozenset()
    origin = origin_of(facts, owner)
    found = multiple_by(facts, offsets[-1], elements)
    if origin is None:
        return None
    if isinstance(origin.node, ast.arg):
        return both(found, _rows_of_argument(facts, owner, origin.node.arg))
    base, strides = origin.given(0, "base"), origin.given(2, "strides")
    if base is None or strides is None or not isinstance(strides[1], (ast.List, ast.Tuple)):
        return None
    found = both(found, start_multiple_by(*base, elements))
    for stride in strides[1].elts[:-1]:
        found = both(found, multiple_by(strides[0], stride, elements))
    return found


def _rows_of_argument(facts: FunctionFacts, owner: ast.expr, argument: str) -> frozenset[str] | None:
    """What makes sure that the rows of a descriptor that is an argument start so: Triton asks its strides for multiples of 16
    elements. None where it does not find them."""
    rank = descriptors.block_of(facts.fact(owner)).rank
    strides = frozenset(f"{argument}.strides.{d}" for d in range(rank - 1))
    return strides if strides <= facts.kernel.divisible else None


def source_layout(facts: FunctionFacts, call: ast.Call, owner: ast.expr) -> Layout:
    """The layout in which the tile of a descriptor is copied: Triton's, where lanes have neighbours of a row in it."""
    block = descriptors.block_of(facts.fact(owner))
    layout, widths = descriptors.fetch_layout(facts, call, owner), facts.kernel.target.direct_to_lds_bits
    narrowest, widest = (width // bits_of(block.dtype) for width in (min(widths), max(widths)))
    if isinstance(layout, Blocked) and layout.order[0] == block.rank - 1 and layout.size_per_thread[-1] >= narrowest:
        return layout
    sizes = [1] * (block.rank - 1) + [max(1, min(block.shape[-1], widest))]
    lanes = dealt(facts.kernel.target.warp_size, block.shape, sizes)
    warps = dealt(facts.kernel.num_warps, block.shape, [size * lane for size, lane in zip(sizes, lanes)])
    return Blocked(tuple(sizes), tuple(lanes), tuple(warps), tuple(reversed(range(block.rank))), layout.ctas)


def multiple_by(facts: FunctionFacts, node: ast.expr, of: int) -> frozenset[str] | None:
    """The arguments that have to be multiples of 16 for an integer expression to be one of the power of two `of`; None where
    it is not known to be."""
    fact = facts.settled(node)
    if isinstance(fact, ConstFact):
        return frozenset() if isinstance(fact.value, int) and fact.value % of == 0 else None
    if isinstance(fact, TensorFact) and int_type(fact.dtype) is None:
        return None  # 4 times a half is no multiple of 4
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return both(multiple_by(facts, node.left, of), multiple_by(facts, node.right, of))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return fewest(multiple_by(facts, node.left, of), multiple_by(facts, node.right, of))
    if isinstance(node, ast.Call):
        return _called_multiple_by(facts, node, of)
    if not isinstance(node, ast.Name):
        return None
    if is_bare_parameter(facts, node):
        known = not facts.path and node.id in facts.kernel.divisible and _PARAMETER % of == 0
        return frozenset({node.id}) if known else None
    for loop in facts.for_loops:
        if is_index(facts, loop, node):
            bounds = loop_bounds(facts, loop, either_way=True)
            if bounds is None or bounds[2] is None:
                return None
            low, _, step = bounds
            return both(frozenset() if low is None else multiple_by(facts, low, of), multiple_by(facts, step, of))
    value = facts.webs.value_of(node)
    return multiple_by(facts, value, of) if value is not None else None


def start_multiple_by(facts: FunctionFacts, pointer: ast.expr, of: int) -> frozenset[str] | None:
    """What has to be a multiple of 16 for a scalar pointer to be one of `of` elements: integers, and tensors by their starts
    (`a_ptr.start`), of which Triton knows what the launch says; None where it is not known to be."""
    if isinstance(pointer, ast.BinOp) and isinstance(pointer.op, (ast.Add, ast.Sub)):
        left, right = pointer.left, pointer.right
        if not _is_pointer(facts, left):
            left, right = right, left
        return (
            both(start_multiple_by(facts, left, of), multiple_by(facts, right, of))
            if _is_pointer(facts, left)
            else None
        )
    if is_bare_parameter(facts, pointer):
        return start_of(facts, pointer)
    value = facts.webs.value_of(pointer)
    return start_multiple_by(facts, value, of) if value is not None else None


def start_of(facts: FunctionFacts, parameter: ast.Name) -> frozenset[str] | None:
    """The start of a tensor that is an argument, where the launch says that it is a multiple of 16 bytes."""
    root = facts.pointers.roots.get(parameter.id) if facts.path else parameter.id
    return frozenset({f"{root}{_START}"}) if root in facts.kernel.divisible else None


def _is_pointer(facts: FunctionFacts, node: ast.expr) -> bool:
    fact = facts.settled(node)
    return isinstance(fact, TensorFact) and fact.is_pointer


def both(a: frozenset[str] | None, b: frozenset[str] | None) -> frozenset[str] | None:
    return None if a is None or b is None else a | b


def fewest(*found: frozenset[str] | None) -> frozenset[str] | None:
    return min((names for names in found if names is not None), key=len, default=None)


def _called_multiple_by(facts: FunctionFacts, node: ast.Call, of: int) -> frozenset[str] | None:
    callee = callees.callee_of(facts, node)
    if callee is None or callee.row is None:
        return None
    given = list(callees.bind(node, callee).values())
    inner = given[0] if callee.name in HINTS and given else callees.cast_of(facts, node)
    said = callee.name == HINTS[0] and len(given) == 2
    # Of an argument Triton knows what the launch says alone.
    hinted = multiple_by(facts, given[1], of) if said and not is_bare_parameter(facts, given[0]) else None
    return fewest(hinted, multiple_by(facts, inner, of) if inner is not None else None)


__all__ = [
    "both",
    "fewest",
    "multiple_by",
    "rest_on_multiples",
    "source_layout",
    "start_of",
    "wide_enough",
    "write_down",
]
