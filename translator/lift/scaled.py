"""Scaled products whose scales the target of a translation cannot multiply."""

from __future__ import annotations

from rules.architecture import Target
from translator.lift.machine import NotLifted
from translator.ttgir.module import Module

SCALES = {"ttng.tc_gen5_mma_scaled": (3, 4), "tt.dot_scaled": (1, 3)}  # where they stand among the operands with types


def check_scales(module: Module, wanted: Target) -> None:
    """Raises: NotLifted at a product with scales of a type that `wanted` has no scaled product for."""
    for op in module.walk():
        for position in SCALES.get(op.name, ()):
            element = op.operand_types[position].element
            if element.startswith("f8") and element not in wanted.scales:
                raise NotLifted(f"scales of {element}: {wanted.name} multiplies scales that are powers of two", op)
