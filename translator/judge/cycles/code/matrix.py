"""Matrix instructions: how long each keeps the matrix pipe of its SIMD busy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gluonize.judge.cycles.code.assembly import Line
from gluonize.rules.targets import MatrixRow, Target

MATRIX_OPS = ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")
# Names of types in mnemonics -> Triton's. bf8 and fp8 take the same time.
_TYPES = {
    "f16": "fp16",
    "bf16": "bf16",
    "fp8": "fp8e4nv",
    "bf8": "fp8e5",
    "i8": "int8",
    "iu8": "int8",
    "xf32": "fp32",
    "f32": "fp32",
    "f64": "fp64",
}
# Formats of f8f6f4 by number, and what says which one an operand has: numbers on CDNA4, names on GFX1250.
_FORMAT_NAMES = {"FP8": 0, "BF8": 1, "FP6": 2, "BF6": 3, "FP4": 4}
_OPERANDS = (("cbsz", "matrix_a_fmt"), ("blgp", "matrix_b_fmt"))


@dataclass(frozen=True)
class MatrixTime:
    """cycles: of the pipe. exact: from the table; otherwise from the nearest row, in proportion to the work. work: operations."""

    cycles: int
    scaled: bool
    exact: bool
    work: int


def is_matrix(op: str) -> bool:
    return op.startswith(MATRIX_OPS)


def matrix_time(line: Line, target: Target) -> MatrixTime:
    """The pipe's time for one matrix instruction, from the target's rows."""
    words = line.op.split("_")
    shape = next(tuple(map(int, w.split("x"))) for w in words if w.count("x") == 2 and w.replace("x", "").isdigit())
    types = words[words.index("x".join(map(str, shape))) + 1 :]
    sparse = words[1] in ("smfmac", "swmmac")
    m, n, k = shape[0], shape[1], shape[2] // 2 if sparse else shape[2]
    work = 2 * m * n * shape[2]
    scaled = "scale" in words or "scale16" in words
    precision = "tf32" if "xf32" in types else "ieee"
    for dtype in _dtypes(types, line):
        rows = [r for r in target.matrix if dtype in r.dtypes and r.cycles and r.precision == precision]
        exact = [r for r in rows if r.shape == (m, n, k)]
        if exact:
            return MatrixTime(max(r.cycles for r in exact), scaled, True, work)
        if rows:
            return MatrixTime(_in_proportion(rows, m * n * k), scaled, False, work)
    rows = [r for r in target.matrix if r.cycles]
    return MatrixTime(_in_proportion(rows, m * n * k) if rows else 16, scaled, False, work)


def _dtypes(types: list[str], line: Line) -> tuple[str, ...]:
    """The operand type that decides: with f8f6f4 any operand of 8 bits does."""
    if types[:1] == ["f8f6f4"]:
        narrow = [max(_format(line, name) for name in pair) >= 2 for pair in _OPERANDS]
        return ("e2m1",) if all(narrow) else ("fp8e4nv",)
    # Targets of the first 8-bit formats name theirs fp8e4b8 and fp8e5b16.
    found = [_TYPES[t] for t in types if t in _TYPES]
    return tuple([*found[:1], *({"fp8e4nv": ("fp8e4b8",), "fp8e5": ("fp8e5b16",)}.get(found[0], ()) if found else ())])


def _format(line: Line, name: str) -> int:
    """The number of an operand's format, 0 (fp8) where none is written."""
    return _FORMAT_NAMES.get((line.word(name) or "").rpartition("_")[2], line.number(name) or 0)


def _in_proportion(rows: list[MatrixRow], work: int) -> int:
    nearest = min(rows, key=lambda r: (abs(math.log2(math.prod(r.shape) / work)), r.shape))
    return max(1, round(nearest.cycles * work / math.prod(nearest.shape)))
