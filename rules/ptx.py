"""PTX inline assembly that has a meaning on AMD: one row per instruction.

The AMD compiler drops PTX without a message, so what is not here is refused. `gluon` has the operands as `{0}`, `{1}`,
...; `exact` is the spelling for an instruction with a rounding modifier (`mul.rn.f32`), which a compiler must not fuse
with its neighbours. Meanings: PTX ISA 9.0, "Instruction Set".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PtxRow:
    opcode: str  # without modifiers
    operands: int
    gluon: str
    numpy: Callable  # (numpy module, *operands) -> result, for the reference machine
    exact: str = ""
    libdevice: bool = False


def _amdgcn(opcode: str) -> str:
    return (
        f'gl.inline_asm_elementwise("{opcode} $0, $1, $2", "=v,v,v", [{{0}}, {{1}}], gl.float32, is_pure=True, pack=1)'
    )


ROWS: tuple[PtxRow, ...] = (
    PtxRow("ex2", 1, "gl.exp2({0})", lambda np, x: np.exp2(x)),
    PtxRow("lg2", 1, "gl.log2({0})", lambda np, x: np.log2(x)),
    PtxRow("rcp", 1, "(1.0 / {0})", lambda np, x: 1 / x),
    PtxRow("rsqrt", 1, "gl.rsqrt({0})", lambda np, x: 1 / np.sqrt(x)),
    PtxRow("sqrt", 1, "gl.sqrt({0})", lambda np, x: np.sqrt(x)),
    PtxRow("sin", 1, "gl.sin({0})", lambda np, x: np.sin(x)),
    PtxRow("cos", 1, "gl.cos({0})", lambda np, x: np.cos(x)),
    PtxRow("tanh", 1, "libdevice.tanh({0})", lambda np, x: np.tanh(x), libdevice=True),
    PtxRow("abs", 1, "gl.abs({0})", lambda np, x: np.abs(x)),
    PtxRow("neg", 1, "(-{0})", lambda np, x: -x),
    PtxRow("mov", 1, "{0}", lambda np, x: x),
    PtxRow("add", 2, "({0} + {1})", lambda np, x, y: x + y, _amdgcn("v_add_f32")),
    PtxRow("sub", 2, "({0} - {1})", lambda np, x, y: x - y, _amdgcn("v_sub_f32")),
    PtxRow("mul", 2, "({0} * {1})", lambda np, x, y: x * y, _amdgcn("v_mul_f32")),
    PtxRow("div", 2, "({0} / {1})", lambda np, x, y: x / y, "gl.div_rn({0}, {1})"),
    PtxRow("max", 2, "gl.maximum({0}, {1})", lambda np, x, y: np.fmax(x, y)),
    PtxRow("min", 2, "gl.minimum({0}, {1})", lambda np, x, y: np.fmin(x, y)),
    PtxRow(
        "fma",
        3,
        "gl.fma({0}, {1}, {2})",
        lambda np, x, y, z: (x.astype("f8") * y + z).astype("f4"),
        "gl.fma({0}, {1}, {2})",
    ),
)
BY_OPCODE = {row.opcode: row for row in ROWS}
assert len(BY_OPCODE) == len(ROWS), "two rows for one PTX instruction"

# Single conversions, by the whole opcode: what they give.
CONVERSIONS = {"cvt.rn.bf16.f32": "bfloat16", "cvt.rn.f16.f32": "float16"}
# Instructions with no operands that order grids of NVIDIA's dependent launches; a stream orders them on AMD.
NO_EFFECT = ("griddepcontrol.wait", "griddepcontrol.launch_dependents")
# Barriers of a whole program, which Gluon spells `gl.barrier()`.
BARRIERS = ("bar.sync 0", "barrier.sync 0")
_MODIFIERS = ("approx", "ftz", "rn", "full", "f32")
_INSTRUCTION = re.compile(r"([a-z][\w.]*)\s*(.*)", re.S)
# The AMDGCN instructions that rows give, for the reference machine, which runs those of translations too.
AMDGCN = {"v_add_f32": "add", "v_sub_f32": "sub", "v_mul_f32": "mul"}


@dataclass(frozen=True)
class Step:
    """`result = row(operands)`; an operand is a register's name (`$1`, `r0`) or a number."""

    row: PtxRow
    result: str
    operands: tuple[str | float, ...]
    exact: bool = False


def instructions(text: str) -> list[str]:
    """The instructions of an assembly text, without comments, scopes and register declarations."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    if text.count("{") == 1 and text.strip().startswith("{") and text.strip().endswith("}"):
        text = text.strip()[1:-1]
    found = [" ".join(part.split()) for part in text.split(";")]
    return [part for part in found if part and not part.startswith(".reg")]


def read_steps(text: str) -> list[Step] | None:
    """The steps of a straight line of 32-bit float instructions; None when one of them has no row."""
    steps: list[Step] = []
    for instruction in instructions(text):
        m = _INSTRUCTION.fullmatch(instruction)
        if m is None:
            return None
        opcode, *modifiers = m.group(1).split(".")
        row = BY_OPCODE.get(opcode) or BY_OPCODE.get(AMDGCN.get(opcode, ""))
        typed = "f32" in modifiers or (opcode == "mov" and modifiers == ["b32"]) or opcode in AMDGCN
        known = all(x in (*_MODIFIERS, "b32") for x in modifiers)
        if row is None or not typed or not known:
            return None
        operands = [_operand(part.strip()) for part in m.group(2).split(",")]
        if len(operands) != row.operands + 1 or None in operands or not isinstance(operands[0], str):
            return None
        steps.append(Step(row, operands[0], tuple(operands[1:]), "rn" in modifiers))  # type: ignore[arg-type]
    ends = bool(steps) and steps[-1].result == "$0"
    return steps if ends and all(s.result == "$0" or not s.result.startswith("$") for s in steps) else None


def _operand(text: str) -> str | float | None:
    if m := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return struct.unpack(">f", bytes.fromhex(m.group(1)))[0]
    if re.fullmatch(r"-?\d+\.\d*|-?\d+\.?\d*[eE][-+]?\d+", text):
        return float(text)
    return text if re.fullmatch(r"\$\d+|%?[A-Za-z_]\w*", text) else None


def evaluate(steps: list[Step], np: Any, operands: list) -> Any:
    """What the steps compute from `$1`, `$2`, ...: for the reference machine."""
    values: dict[str | float, Any] = {f"${i + 1}": x for i, x in enumerate(operands)}
    for step in steps:
        given = [np.float32(x) if isinstance(x, float) else values[x] for x in step.operands]
        values[step.result] = step.row.numpy(np, *given)
    return values["$0"]
