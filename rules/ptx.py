"""PTX inline assembly that has a meaning on AMD: one row per instruction.

The AMD compiler drops PTX without a message, so what is not here is refused. `gluon` has the operands as `{0}`, `{1}`,
...; `exact` is the spelling for an instruction with a rounding modifier (`mul.rn.f32`), which a compiler must not fuse
with its neighbours. Registers have 32 bits: what one row gives as a float, another may take as an integer. Meanings: PTX
ISA 9.0, "Instruction Set".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gluonize.rules.architecture import Target


@dataclass(frozen=True)
class PtxRow:
    opcode: str  # without modifiers
    operands: int
    gluon: str
    numpy: Callable  # (numpy module, *operands) -> result, for the reference machine
    exact: str = ""
    libdevice: bool = False
    takes: str = "fff"  # of each operand: f a float, u 32 bits or an unsigned integer, s a signed one, a any
    gives: str = "f"
    shift: int = -1  # the operand that must be a number from 0 to 31
    word: str = ""  # for names of functions; the opcode if empty
    needs: str = ""  # a function of `FUNCTIONS`
    native: str = (
        ""  # the spelling, which needs no function, for targets with this capability (`gluonize.rules.targets`)
    )
    capability: str = ""

    def on(self, target: Target) -> PtxRow:
        """The row as it is spelled for a target."""
        has = bool(self.capability) and getattr(target, self.capability)
        return replace(self, gluon=self.native, needs="") if has else self


def _amdgcn(opcode: str) -> str:
    return (
        f'gl.inline_asm_elementwise("{opcode} $0, $1, $2", "=v,v,v", [{{0}}, {{1}}], gl.float32, is_pure=True, pack=1)'
    )


ROWS: tuple[PtxRow, ...] = (
    PtxRow("ex2", 1, "gl.exp2({0})", lambda np, x: np.exp2(x)),
    PtxRow("lg2", 1, "gl.log2({0})", lambda np, x: np.log2(x)),
    PtxRow("rcp", 1, "(1.0 / {0})", lambda np, x: 1 / x, "gl.div_rn(1.0, {0})"),
    PtxRow("rsqrt", 1, "gl.rsqrt({0})", lambda np, x: 1 / np.sqrt(x)),
    PtxRow("sqrt", 1, "gl.sqrt({0})", lambda np, x: np.sqrt(x), "gl.sqrt_rn({0})"),
    PtxRow("sin", 1, "gl.sin({0})", lambda np, x: np.sin(x)),
    PtxRow("cos", 1, "gl.cos({0})", lambda np, x: np.cos(x)),
    PtxRow(
        "tanh",
        1,
        "tanh_from_exp({0})",
        lambda np, x: np.tanh(x),
        libdevice=True,
        needs="tanh_from_exp",
        native="libdevice.tanh({0})",
        capability="native_tanh",
    ),
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


def _typed(opcode: str, takes: str, gives: str, gluon: str, numpy: Callable, **more) -> PtxRow:
    return PtxRow(opcode, len(takes), gluon, numpy, takes=takes, gives=gives, **more)


def _bits(symbol: str) -> str:
    return f"({{0}} {symbol} {{1}})"


def _to_int(np: Any, x: Any) -> Any:
    return np.where(x == x, np.clip(x, np.float32(-(2.0**31)), np.float32(2147483520.0)), 0).astype(np.int32)


def _e2m1(np: Any, x: Any) -> Any:
    size = np.abs(x)
    above = [size > 0.25, size >= 0.75, size > 1.25, size >= 1.75, size > 2.5, size >= 3.5, size > 5.0]
    code = sum(np.asarray(part).astype(np.uint32) for part in above)
    return np.where(x == x, code | (np.signbit(x).astype(np.uint32) << np.uint32(3)), np.uint32(7)).astype(np.uint32)


def _ones(np: Any, x: Any) -> Any:
    """How many bits of 32 are set."""
    x = np.asarray(x).view(np.uint32)
    return sum(((x >> np.uint32(i)) & np.uint32(1)).astype(np.int32) for i in range(32))


def _smeared(np: Any, x: Any) -> Any:
    """With every bit set that is below one that is set."""
    x = np.asarray(x).view(np.uint32)
    for shift in (1, 2, 4, 8, 16):
        x = x | (x >> np.uint32(shift))
    return x


def _half(np: Any, x: Any, shift: int) -> Any:
    return ((x >> np.uint32(shift)) & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(np.float32)


_PAIR = "({0} | ({1} << 4))"
# By the whole opcode.
TYPED_ROWS: tuple[PtxRow, ...] = (
    _typed("and.b32", "uu", "u", _bits("&"), lambda np, x, y: x & y),
    _typed("or.b32", "uu", "u", _bits("|"), lambda np, x, y: x | y),
    _typed("xor.b32", "uu", "u", _bits("^"), lambda np, x, y: x ^ y),
    _typed("not.b32", "u", "u", "(~{0})", lambda np, x: ~x),
    _typed("shl.b32", "uu", "u", _bits("<<"), lambda np, x, y: x << y, shift=1),
    _typed("shr.b32", "uu", "u", _bits(">>"), lambda np, x, y: x >> y, shift=1),
    _typed("shr.u32", "uu", "u", _bits(">>"), lambda np, x, y: x >> y, shift=1),
    _typed("shr.s32", "ss", "s", _bits(">>"), lambda np, x, y: x >> y, shift=1),
    _typed("add.u32", "uu", "u", _bits("+"), lambda np, x, y: x + y),
    _typed("add.s32", "ss", "s", _bits("+"), lambda np, x, y: x + y),
    _typed("sub.u32", "uu", "u", _bits("-"), lambda np, x, y: x - y),
    _typed("sub.s32", "ss", "s", _bits("-"), lambda np, x, y: x - y),
    _typed("mul.lo.u32", "uu", "u", _bits("*"), lambda np, x, y: x * y),
    _typed("mul.lo.s32", "ss", "s", _bits("*"), lambda np, x, y: x * y),
    _typed("max.u32", "uu", "u", "gl.maximum({0}, {1})", lambda np, x, y: np.maximum(x, y)),
    _typed("max.s32", "ss", "s", "gl.maximum({0}, {1})", lambda np, x, y: np.maximum(x, y)),
    _typed("min.u32", "uu", "u", "gl.minimum({0}, {1})", lambda np, x, y: np.minimum(x, y)),
    _typed("min.s32", "ss", "s", "gl.minimum({0}, {1})", lambda np, x, y: np.minimum(x, y)),
    _typed("mul.hi.u32", "uu", "u", "gl.umulhi({0}, {1})", lambda np, x, y: (x.astype("u8") * y) >> 32, word="mulhi"),
    _typed("mad.lo.u32", "uuu", "u", "({0} * {1} + {2})", lambda np, x, y, z: x * y + z, word="mad"),
    _typed("mad.lo.s32", "sss", "s", "({0} * {1} + {2})", lambda np, x, y, z: x * y + z, word="mad"),
    _typed("popc.b32", "s", "s", "libdevice.popc({0})", lambda np, x: _ones(np, x), libdevice=True),
    _typed("clz.b32", "s", "s", "libdevice.clz({0})", lambda np, x: 32 - _ones(np, _smeared(np, x)), libdevice=True),
    _typed("mov.b32", "a", "a", "{0}", lambda np, x: x),
    _typed("mov.u32", "a", "a", "{0}", lambda np, x: x),
    _typed("mov.s32", "a", "a", "{0}", lambda np, x: x),
    _typed("cvt.u32.u8", "u", "u", "({0} & 255)", lambda np, x: x & np.uint32(255), word="byte"),
    _typed("cvt.rpi.f32.f32", "f", "f", "gl.ceil({0})", lambda np, x: np.ceil(x), word="ceil"),
    _typed("cvt.rmi.f32.f32", "f", "f", "gl.floor({0})", lambda np, x: np.floor(x), word="floor"),
    _typed("cvt.rzi.s32.f32", "f", "s", "to_int32({0})", _to_int, word="int", needs="to_int32"),
    _typed("cvt.rn.f32.s32", "s", "f", "{0}.to(gl.float32)", lambda np, x: x.astype(np.float32), word="float"),
    _typed("cvt.rn.f32.u32", "u", "f", "{0}.to(gl.float32)", lambda np, x: x.astype(np.float32), word="float"),
    _typed(
        "cvt.rn.satfinite.e2m1x2.f32", "ff", "u", _PAIR.format("to_e2m1({1})", "to_e2m1({0})"),
        lambda np, high, low: _e2m1(np, low) | (_e2m1(np, high) << np.uint32(4)), word="e2m1x2", needs="to_e2m1",
    ),
    _typed(
        "cvt.rn.satfinite.e2m1x2.f16x2", "u", "u",
        _PAIR.format(
            "to_e2m1(({0} & 65535).to(gl.uint16).to(gl.float16, bitcast=True).to(gl.float32))",
            "to_e2m1(({0} >> 16).to(gl.uint16).to(gl.float16, bitcast=True).to(gl.float32))",
        ),
        lambda np, x: _e2m1(np, _half(np, x, 0)) | (_e2m1(np, _half(np, x, 16)) << np.uint32(4)),
        word="e2m1x2", needs="to_e2m1",
    ),
)  # fmt: skip
# Functions of the output that rows call.
FUNCTIONS = {
    "tanh_from_exp": '''@gluon.jit
def tanh_from_exp(x):
    """tanh to 17 bits: near zero, where the difference would cancel, by its series."""
    square = x * x
    near = x * (1 + square * (square * 0.13333333 - 0.33333333))
    return gl.where(square < 0.0025, near, 1 - libdevice.fast_dividef(2.0, 1 + gl.exp(2 * x)))
''',
    "to_int32": '''@gluon.jit
def to_int32(x):
    """x towards zero, the nearest there is where it does not fit, 0 for NaN."""
    return gl.where(x == x, gl.clamp(x, -2147483648.0, 2147483520.0), 0.0).to(gl.int32)
''',
    "to_e2m1": '''@gluon.jit
def to_e2m1(x):
    """The four bits of x as an E2M1 number: the nearest, ties to even, at most 6, and 6 for NaN."""
    size = gl.abs(x)
    code = (size > 0.25).to(gl.uint32) + (size >= 0.75).to(gl.uint32) + (size > 1.25).to(gl.uint32)
    code += (size >= 1.75).to(gl.uint32) + (size > 2.5).to(gl.uint32) + (size >= 3.5).to(gl.uint32)
    code += (size > 5.0).to(gl.uint32)
    sign = (x.to(gl.uint32, bitcast=True) >> 31) << 3
    return gl.where(x == x, code | sign, 7)
''',
}
BY_OPCODE = {row.opcode: row for row in (*ROWS, *TYPED_ROWS)}
assert len(BY_OPCODE) == len(ROWS) + len(TYPED_ROWS), "two rows for one PTX instruction"

# Single conversions, by the whole opcode: what they give.
CONVERSIONS = {"cvt.rn.bf16.f32": "bfloat16", "cvt.rn.f16.f32": "float16"}
_CONVERSION = re.compile(r"([\w.]+) \$0 ?, ?\$1")
# Instructions with no operands that order grids of NVIDIA's dependent launches; a stream orders them on AMD.
NO_EFFECT = ("griddepcontrol.wait", "griddepcontrol.launch_dependents")
# Barriers of a whole program, which Gluon spells `gl.barrier()`.
BARRIERS = ("bar.sync 0", "barrier.sync 0")
_MODIFIERS = ("approx", "ftz", "rn", "full", "f32")
_INSTRUCTION = re.compile(r"([a-z][\w.]*)\s*(.*)", re.S)
# The AMDGCN instructions that rows give, for the reference machine, which runs those of translations too.
AMDGCN = {"v_add_f32": "add", "v_sub_f32": "sub", "v_mul_f32": "mul"}


Operand = str | float | int


@dataclass(frozen=True)
class Step:
    """`result = row(operands)`; an operand is a register's name (`$1`, `r0`) or a number."""

    row: PtxRow
    result: str
    operands: tuple[Operand, ...]
    exact: bool = False


def instructions(text: str) -> list[str]:
    """The instructions of an assembly text, without comments, scopes and register declarations."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    if text.count("{") == 1 and text.strip().startswith("{") and text.strip().endswith("}"):
        text = text.strip()[1:-1]
    found = [" ".join(part.split()) for part in text.split(";")]
    return [part for part in found if part and not part.startswith(".reg")]


def read_steps(text: str, results: int = 1) -> list[Step] | None:
    """The steps of a straight line of 32-bit instructions that set `$0` to `$results-1`; None when one has no row."""
    outputs = {f"${i}" for i in range(results)}
    steps: list[Step] = []
    for instruction in instructions(text):
        if (step := _step(instruction)) is None:
            return None
        steps.append(step)
    written = {step.result for step in steps if step.result.startswith("$")}
    return steps if steps and written == outputs else None


def without_row(text: str) -> str:
    """The first instruction of an assembly text that has no row, in this form and alone; "" where each has one."""
    return next((x for x in instructions(text) if x not in (*NO_EFFECT, *BARRIERS) and _step(x) is None), "")


def special_registers(text: str) -> list[str]:
    """The registers that PTX reads and does not declare, such as `%smid`, in their order."""
    declared = re.findall(r"%\w+", " ".join(re.findall(r"\.reg[^;]*;", text)))
    return [
        name for name in re.findall(r"%[a-z]\w*", text) if not any(name.startswith(d.rstrip("<>")) for d in declared)
    ]


def _step(instruction: str) -> Step | None:
    m = _INSTRUCTION.fullmatch(instruction)
    if m is None or (found := _row(m.group(1))) is None:
        return None
    row, exact = found
    operands = [_operand(part.strip()) for part in m.group(2).split(",")]
    if len(operands) != row.operands + 1 or None in operands or not isinstance(operands[0], str):
        return None
    result, *given = operands
    for kind, x in zip(row.takes, given):
        if not isinstance(x, str) and isinstance(x, float) != (kind == "f"):
            return None
    if row.shift >= 0 and not (isinstance(given[row.shift], int) and 0 <= given[row.shift] < 32):  # type: ignore[operator]
        return None
    return Step(row, result, tuple(given), exact)  # type: ignore[arg-type]


def _row(opcode: str) -> tuple[PtxRow, bool] | None:
    """The row of an opcode with its modifiers, and whether they ask for rounding to nearest."""
    if opcode in BY_OPCODE and "." in opcode:
        return BY_OPCODE[opcode], False
    first, *modifiers = opcode.split(".")
    row = BY_OPCODE.get(first) or BY_OPCODE.get(AMDGCN.get(first, ""))
    known = all(x in _MODIFIERS for x in modifiers) and ("f32" in modifiers or first in AMDGCN)
    return (row, "rn" in modifiers) if row is not None and known else None


def _operand(text: str) -> Operand | None:
    if m := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return struct.unpack(">f", bytes.fromhex(m.group(1)))[0]
    if re.fullmatch(r"-?\d+\.\d*|-?\d+\.?\d*[eE][-+]?\d+", text):
        return float(text)
    if re.fullmatch(r"-?(\d+|0[xX][0-9a-fA-F]+|0[bB][01]+)U?", text):
        digits = text.rstrip("U")
        return int(digits, 0) if re.match(r"-?(0[xXbB]|[1-9]|0$)", digits) else None  # no octal
    return text if re.fullmatch(r"\$\d+|%?[A-Za-z_]\w*", text) else None


def evaluate(steps: list[Step], np: Any, operands: list, results: int = 1) -> tuple:
    """What the steps compute from the operands, `$results` and on: for the reference machine."""
    held = {"f": np.float32, "u": np.uint32, "s": np.int32, "a": np.uint32}
    values: dict[str, Any] = {f"${i + results}": np.asarray(x) for i, x in enumerate(operands)}
    for step in steps:
        given = [
            held[kind](x) if not isinstance(x, str) else values[x] if kind == "a" else values[x].view(held[kind])
            for kind, x in zip(step.row.takes, step.operands)
        ]
        found = np.asarray(step.row.numpy(np, *given))
        values[step.result] = found if step.row.gives == "a" else found.astype(held[step.row.gives], copy=False)
    return tuple(values[f"${i}"] for i in range(results))


def conversion(instruction: str) -> str:
    """The type that an instruction which does nothing but convert its one operand gives, "" of any other."""
    found = _CONVERSION.fullmatch(instruction)
    return CONVERSIONS.get(found.group(1), "") if found else ""


def is_dropped(text: str) -> bool:
    """Whether the AMD compiler leaves out assembly that does something."""
    return is_ptx(text) and any(x not in NO_EFFECT for x in instructions(text))


def is_ptx(text: str) -> bool:
    """PTX names registers `%r1`/`$0` after dotted opcodes (`mov.b32`, `cvt.rn.f16.f32`), AMDGCN has `v_`/`s_` opcodes."""
    opcodes = re.findall(r"(?:^|[;\n{])\s*(?:@!?\S+\s+)?([a-zA-Z_][\w.]*)", text)
    amd = [o for o in opcodes if re.match(r"(v|s|ds|buffer|global|flat|scratch|tensor)_", o)]
    return bool(opcodes) and not amd
