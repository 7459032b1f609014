"""Matrix instructions of CDNA on one block, D = A B + C, which the emulator has not for all types and shapes.

Sources: "AMD Instinct MI300 Instruction Set Architecture", chapter on matrix arithmetic, AMD's matrix instruction calculator, and for
scales and operands of several formats "AMD Instinct CDNA4 Instruction Set Architecture". Of an M x N x K product, lane l holds
A[l % M][k] and B[k][l % N] for consecutive k from l // M * (K M / 64) on; 8-bit operands of a product of several formats in two such
halves. Of the result, row 4 (l // 16) + r of a 16 x 16 tile in register r, row 8 (r // 4) + 4 (l // 32) + r % 4 of a 32 x 32 tile, always
at column l % N. A scale is for 32 consecutive k of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gluonize.judge.emulator.instructions.fields import fields
from gluonize.judge.emulator.instructions.lanes import FIRST_VECTOR, Lanes
from gluonize.judge.machine.dtypes import FP4, decode, stored
from gluonize.rules.targets import target as target_row

LANES = 64
SCALED = 32  # k of a row that have one scale
SCALE_BYTES = 8  # of a scaled instruction, before what the others have too
E8M0_BIAS, E8M0_NAN = 127, 255
# Type in the name -> IR type. FP8 and BF8 have other encodings where fp8 is that of before OCP.
TYPES = {"F16": "f16", "BF16": "bf16", "F32": "f32", "I8": "i8"}
FLOAT8 = {"FP8": "f8E4M3FN", "BF8": "f8E5M2"}
FNUZ = {"FP8": "f8E4M3FNUZ", "BF8": "f8E5M2FNUZ"}
PACKED = "fp4"  # two in a byte
FORMATS = {0: "f8E4M3FN", 1: "f8E5M2", 4: PACKED}  # of an operand of F8F6F4; 2 and 3 have six bits


@dataclass(frozen=True)
class Operand:
    """A or B. scale: an operand with the exponents of each lane and which of its bytes, None for none. halves: k in two parts."""

    register: int
    accumulators: bool
    element: str
    halves: bool = False
    scale: tuple[int, int] | None = None


@dataclass(frozen=True)
class Product:
    """One instruction. d: number of a register, c: of one or of a scalar or constant; of accumulators where `accumulators`."""

    m: int
    k: int
    whole: bool
    d: int
    c: int
    accumulators: bool
    a: Operand
    b: Operand


def executor(name: str, kind: type, data: bytes, target: str) -> Callable[[Lanes], None] | None:
    """What the instruction does to a wave, None for another one. Raises: NotImplementedError for one that nobody does right."""
    if not name.startswith("V_MFMA_"):
        return None
    product = decode_product(name, kind, data, target)
    return lambda lanes: multiply(product, lanes)


def decode_product(name: str, kind: type, data: bytes, target: str) -> Product:
    """The operands of a matrix instruction. Raises: NotImplementedError."""
    scaled = name.startswith("V_MFMA_SCALE_")
    parts = name.removeprefix("V_MFMA_").removeprefix("SCALE_").split("_")
    sizes = [int(size) for size in parts[1].split("X")]
    blocks = any(part.endswith("B") and part[:-1].isdigit() for part in parts)
    if sizes[0] not in (16, 32) or blocks or parts[0] not in ("F32", "I32"):
        raise NotImplementedError(name)
    field = fields(kind, data[: 2 * SCALE_BYTES if scaled else SCALE_BYTES])
    mixed = "F8F6F4" in parts
    if not mixed and (field("abid") or field("cbsz") or field("blgp")):
        raise NotImplementedError(f"{name} with a permutation of its operands")
    elements = (FORMATS.get(field("cbsz")), FORMATS.get(field("blgp"))) if mixed else _types(parts, target)
    if None in elements:
        raise NotImplementedError(f"{name} on six bits")
    operands = [
        Operand(
            field(f"src{i}") - FIRST_VECTOR,
            bool(field("acc") >> i & 1),
            element,
            mixed and element != PACKED,
            (field(f"scale_src{i}"), field("opsel") >> i & 1 | (field("opsel_hi") >> i & 1) << 1) if scaled else None,
        )
        for i, element in enumerate(elements)
    ]
    return Product(
        sizes[0], sizes[2], parts[0] == "I32", field("vdst"), field("src2"), bool(field("acc_cd")), *operands
    )


def _types(parts: list[str], target: str) -> tuple[str, str]:
    """IR types of A and B. Raises: NotImplementedError."""
    known = TYPES | (FNUZ if target_row(target).has_fnuz_fp8 else FLOAT8)
    given = [known[part] for part in parts[2:] if part in known]
    if not given:
        raise NotImplementedError("_".join(parts))
    return given[0], given[-1]


def multiply(product: Product, lanes: Lanes) -> None:
    """Do it to a wave, whichever lanes are on."""
    rows, column = _rows(product.m), np.arange(LANES) % product.m
    a, b = (_operand(lanes, operand, product) for operand in (product.a, product.b))
    registers = lanes.accumulators if product.accumulators else lanes.vectors
    kind = np.int32 if product.whole else np.float32
    if product.c >= FIRST_VECTOR:
        c = registers[product.c - FIRST_VECTOR :][: len(rows)].view(kind)
    else:
        c = lanes.scalars[product.c : product.c + 1].view(kind)[:, None]
    with np.errstate(all="ignore"):
        result = (a @ b.T)[rows, column] + c
    registers[product.d : product.d + len(rows)] = result.astype(kind).view(np.uint32)


def _rows(m: int) -> np.ndarray:
    """Row of the result in each register and lane."""
    lane, register = np.arange(LANES), np.arange(m * m // LANES)[:, None]
    if m == 16:
        return 4 * (lane // 16) + register
    return 8 * (register // 4) + 4 * (lane // 32) + register % 4


def _operand(lanes: Lanes, operand: Operand, product: Product) -> np.ndarray:
    """A, or B transposed: m x k, wide enough that products and sums are exact or nearly so."""
    each = product.m * product.k // LANES  # elements of a lane
    registers = lanes.accumulators if operand.accumulators else lanes.vectors
    if operand.element == PACKED:
        codes = registers[operand.register : operand.register + each // 8].T.copy().view(np.uint8)
        values = FP4[np.stack([codes & 15, codes >> 4], -1).reshape(LANES, each)].astype(np.float64)
    else:
        dtype = stored(operand.element)
        words = registers[operand.register : operand.register + each * dtype.itemsize // 4].T.copy()
        values = np.asarray(decode(words.view(dtype), operand.element), np.int32 if product.whole else np.float64)
    out = np.empty((product.m, product.k), values.dtype)
    lane, parts = np.arange(LANES)[:, None], 2 if operand.halves else 1
    size, element = each // parts, np.arange(each)
    groups = LANES // product.m
    out[lane % product.m, (element // size * groups + lane // product.m) * size + element % size] = values
    return out if operand.scale is None else out * _scales(lanes, *operand.scale, product)


def _scales(lanes: Lanes, source: int, byte: int, product: Product) -> np.ndarray:
    """Factor of each element of an operand: m x k."""
    words = lanes.vectors[source - FIRST_VECTOR] if source >= FIRST_VECTOR else np.full(LANES, lanes.scalars[source])
    exponent = (words >> np.uint32(8 * byte) & np.uint32(0xFF)).astype(np.int64)
    factor = np.where(exponent == E8M0_NAN, np.nan, np.ldexp(1.0, exponent - E8M0_BIAS))
    return np.repeat(factor.reshape(LANES // product.m, product.m).T, SCALED, axis=1)
