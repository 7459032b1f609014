"""Scaled products whose scales the target of a translation cannot multiply: of 4-bit numbers they are widened, others are refused.

A number of e2m1 has 2 bits and a scale of e4m3 has 4: their product is exact in half precision, whose product is that of the source.
"""

from __future__ import annotations

from collections.abc import Callable

from gluonize.lift.machine.machine import NotLifted
from gluonize.lift.text.helpers import Helper
from gluonize.lift.values.tensors import Node
from gluonize.rules.architecture import Target
from gluonize.trace.model.module import Module

SCALES = {"ttng.tc_gen5_mma_scaled": (3, 4), "tt.dot_scaled": (1, 3)}  # where they stand among the operands with types


def check_scales(module: Module, wanted: Target) -> None:
    """Raises: NotLifted at a product with scales of a type that `wanted` has no scaled product for."""
    for op in module.walk():
        for position in SCALES.get(op.name, ()):
            element = op.operand_types[position].element
            if not _is_multiplied(element, wanted) and {op.attribute("lhs"), op.attribute("rhs")} != {"e2m1"}:
                raise NotLifted(f"scales of {element}: {wanted.name} multiplies scales that are powers of two", op)


def _is_multiplied(element: str, wanted: Target) -> bool:
    return not element.startswith("f8") or element in wanted.scales


def widened_product(
    node: Node, given: list[str], acc: str, wanted: Target | None, helper: Callable[[str], Helper]
) -> str | None:
    """A product of widened operands in place of a scaled one that `wanted` has not; None: it has it, or nothing is wanted.

    node: `dot_scaled` of operands and scales, whose texts are `given`. helper: the function of the output for the text of a template, in
    which its name is NAME.
    """
    if wanted is None or node.attrs[2:4] != ("e2m1", "e2m1"):
        return None
    if all(_is_multiplied(x.type.element, wanted) for x in node.args[2:4]):  # type: ignore[union-attr]
        return None
    name = helper(_WIDENED).name
    left, right = f"{name}({given[0]}, {given[2]})", f"tl.trans({name}(tl.trans({given[1]}), {given[3]}))"
    return f"tl.dot({left}, {right}{', ' + acc if acc else ''})"


_WIDENED = '''@triton.jit
def NAME(x, scales):
    """Rows of numbers of 4 bits, two in a byte, with a scale for each 16 of them, in half precision, which holds them exactly."""
    ROWS: tl.constexpr = x.shape[0]
    GROUPS: tl.constexpr = scales.shape[1]
    bits = tl.interleave(x & 15, (x >> 4) & 15).to(tl.int32)
    exponent = (bits >> 1) & 3
    mantissa = bits & 1
    size = tl.where(exponent == 0, mantissa * 0.5, (2 + mantissa) * (1 << exponent) * 0.25)
    value = tl.where(bits >= 8, -size, size)
    scaled = tl.reshape(value, [ROWS, GROUPS, 16]) * scales.to(tl.float32)[:, :, None]
    return tl.reshape(scaled, [ROWS, GROUPS * 16]).to(tl.float16)
'''
