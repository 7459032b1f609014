"""Inline assembly whose instructions have a row in `rules/ptx.py`."""

from __future__ import annotations

import re

import numpy as np

from gluonize.judge.machine.dtypes import rounded
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.table import as_type, row
from gluonize.rules import ptx

_PRIORITY = re.compile(r"s_setprio [0-3]")


@row("tt.elementwise_inline_asm")
def inline_asm(machine, op, *operands):
    """Straight-line assembly on 32-bit numbers, and single conversions of one such number."""
    text = op.string or ""
    found = ptx.instructions(text)
    if found and all(x in (*ptx.NO_EFFECT, *ptx.BARRIERS) for x in found):
        return np.zeros(op.type.shape or (), np.int32)[()]
    if any(x.dtype.itemsize != 4 for x in operands) or op.attribute("packed_element", 1) != 1:
        raise NotRunnable("tt.elementwise_inline_asm", "assembly on other than single 32-bit numbers")
    opcode = found[0].split(" ")[0] if len(found) == 1 else ""
    types = op.result_types
    with np.errstate(all="ignore"):
        if opcode in ptx.CONVERSIONS and op.type.element in ("f16", "bf16") and operands[0].dtype == np.float32:
            return as_type(rounded(np.asarray(operands[0]), op.type.element), op.type)
        steps = ptx.read_steps(text if text.rstrip().endswith((";", "}")) else text + ";", len(types))
        if steps is None or any(kind.element not in ("f32", "i32") for kind in types):
            raise NotRunnable(
                "tt.elementwise_inline_asm", f"the machine does not know this assembly: {text.strip()[:60]}"
            )
        values = ptx.evaluate(steps, np, list(operands), len(types))
        held = [value.view(np.float32 if kind.element == "f32" else np.int32) for value, kind in zip(values, types)]
        found = tuple(as_type(np.asarray(value), kind) for value, kind in zip(held, types))
        return found if len(found) > 1 else found[0]


@row("ttg.inline_asm")
def asm_of_threads(machine, op):
    """Assembly that says no more than how soon a warp's instructions are taken."""
    if op.results or not _PRIORITY.fullmatch(op.string or ""):
        raise NotRunnable(
            "ttg.inline_asm", f"the machine does not know this assembly: {(op.string or '').strip()[:60]}"
        )
