"""How often loops run: what conditions and sizes say, and the author's names of their indices."""

from __future__ import annotations

from collections.abc import Sequence

from gluonize.lift.loops.fit import Sample
from gluonize.lift.values.scalars import (
    Expr,
    Scalar,
    apply,
    atom,
    ceil_div,
    const,
    evaluate,
    floored,
    from_terms,
    substitute,
    terms,
)
from gluonize.lift.values.tensors import Node
from gluonize.trace.model.op_text import index_name


def whole_size(counts: Sequence[tuple[Scalar, Sample]], product: Node) -> Expr | None:
    """How many tiles of an operand cover an argument, where that is every count: first products of a tile may be made before its loop.

    Three different counts have to say so.
    """
    if len({count.value for count, _ in counts}) < 3:
        return None
    extents = {n for x in product.args[:2] if isinstance(x, Node) for n in x.type.shape or () if n > 1}
    sizes = [x for x in counts[0][1].values if x[0] == "arg" and ".stride" not in x[1] and "stride" not in x[1]]
    for size in sorted(sizes, key=lambda x: x[1]):
        for extent in sorted(extents):
            candidate = ceil_div(size, const(extent))
            if all(evaluate(candidate, sample.values) == count.value for count, sample in counts):
                return candidate
    return None


def loop_name(op) -> str:
    """The author's name of a loop's index, "" where it has none."""
    return index_name(op.for_loop.variable)


def without_fill(trips: Expr, variable: Expr, products: Sequence[Node]) -> Expr:
    """`n` of `max(n, 2)` where the products behind the n-th are of zeros: their tiles are outside of what is loaded."""
    found = floored(trips)
    if found is None or found[1] <= 0 or not all(any(_ends(x, found[0], variable) for x in p.args) for p in products):
        return trips
    return found[0]


def _ends(x: Node | Expr, trips: Expr, variable: Expr) -> bool:
    """Whether `x` is a tile of a descriptor whose size along one axis is that of `trips` tiles."""
    while isinstance(x, Node) and x.op in ("tt.trans", "tt.reshape"):
        x = x.args[0]
    if not isinstance(x, Node) or x.op != "descriptor_load":
        return False
    owner = x.args[0]
    assert isinstance(owner, Node)
    for axis, at in enumerate(x.args[1:]):
        slope = apply("sub", substitute(at, {variable: const(1)}), substitute(at, {variable: const(0)}))
        starts = substitute(at, {variable: const(0)}) == const(0)
        if starts and slope.is_const and slope[1] > 0 and ceil_div(_extent(owner, axis), slope) is trips:
            return True
    return False


def _extent(descriptor: Node, axis: int) -> Expr:
    """How far the tensor of a descriptor, an argument or made in the kernel, goes along an axis."""
    if descriptor.op == "make_descriptor":
        extent = descriptor.args[1 + axis]
        assert isinstance(extent, Expr)
        return extent
    return atom("arg", f"{descriptor.name}.shape.{axis}")


def counted(condition: Expr, variable: Expr) -> Expr | None:
    """How often `low + variable * step < high` holds from 0 on."""
    if condition[0] not in ("lt", "gt"):
        return None
    small, big = condition[1:] if condition[0] == "lt" else condition[:0:-1]
    found = terms(apply("sub", big, small))
    step = -found.pop((variable,), 0)
    grows = [key for key in found if variable in key]
    stride = const(step) if not grows else None
    if len(grows) == 1 and not step:
        (key,) = grows
        rest = [x for x in key if x is not variable]
        stride = apply("mul", rest[0], const(-found.pop(key))) if len(rest) == 1 else None
    if stride is None or (stride.is_const and stride[1] <= 0) or any(variable in key for key in found):
        return None
    return apply("max", ceil_div(from_terms(found), stride), const(0))
