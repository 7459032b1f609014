"""What atomic operations of memory do, one lane at a time, on 32-bit words.

Source: "AMD Instinct MI300 Instruction Set Architecture", MUBUF instructions, and its RDNA counterparts, which name the same
operations otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gluonize.judge.machine.dtypes import decode, encode


@dataclass(frozen=True)
class Atomic:
    """`apply(old, given)` -> the new words. size: bytes in memory; operands: values that the instruction gives, 2 for an exchange."""

    size: int
    apply: Callable[[np.ndarray, np.ndarray], np.ndarray]
    operands: int = 1


def _of(dtype: str, combine: Callable) -> Atomic:
    """An operation on one value of a numpy type."""
    size = np.dtype(dtype).itemsize

    def apply(old: np.ndarray, given: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            new = combine(old.view(dtype), given.view(dtype))
        return np.asarray(new, dtype).view(np.uint32)

    return Atomic(size, apply)


def _exchange(size: int) -> Atomic:
    """The first value is stored where the second one is found."""
    words = size // 4

    def apply(old: np.ndarray, given: np.ndarray) -> np.ndarray:
        return given[:words] if (old == given[words:]).all() else old

    return Atomic(size, apply, 2)


def _packed_bf16(old: np.ndarray, given: np.ndarray) -> np.ndarray:
    values = decode(old.view(np.uint16), "bf16") + decode(given.view(np.uint16), "bf16")
    return np.asarray(encode(values, "bf16"), np.uint16).view(np.uint32)


def _increment(old: np.ndarray, given: np.ndarray) -> np.ndarray:
    return np.where(old >= given, 0, old + 1)


def _decrement(old: np.ndarray, given: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > given), given, old - 1)


_INTEGER = {
    "SWAP": ("u", lambda old, given: given), "ADD": ("u", np.add), "SUB": ("u", np.subtract), "SMIN": ("i", np.minimum),
    "UMIN": ("u", np.minimum), "SMAX": ("i", np.maximum), "UMAX": ("u", np.maximum), "AND": ("u", np.bitwise_and),
    "OR": ("u", np.bitwise_or), "XOR": ("u", np.bitwise_xor), "INC": ("u", _increment), "DEC": ("u", _decrement),
}  # fmt: skip
# CDNA name -> how RDNA spells it; {n} is the number of bits.
_SPELLED = {"SMIN": "MIN_I{n}", "UMIN": "MIN_U{n}", "SMAX": "MAX_I{n}", "UMAX": "MAX_U{n}", "ADD": "ADD_U{n}"}
_SPELLED |= {"SUB": "SUB_U{n}", "INC": "INC_U{n}", "DEC": "DEC_U{n}"}

ATOMICS: dict[str, Atomic] = {
    "CMPSWAP": _exchange(4), "CMPSWAP_X2": _exchange(8), "CMPSWAP_B32": _exchange(4), "CMPSWAP_B64": _exchange(8),
    "ADD_F32": _of("f4", np.add), "ADD_F64": _of("f8", np.add), "MIN_F64": _of("f8", np.fmin), "MAX_F64": _of("f8", np.fmax),
    "MIN_F32": _of("f4", np.fmin), "MAX_F32": _of("f4", np.fmax), "MIN_NUM_F32": _of("f4", np.fmin),
    "MAX_NUM_F32": _of("f4", np.fmax), "PK_ADD_F16": Atomic(4, _of("f2", np.add).apply), "PK_ADD_BF16": Atomic(4, _packed_bf16),
}  # fmt: skip
for _name, (_sign, _combine) in _INTEGER.items():
    for _bits, _suffix in ((32, ""), (64, "_X2")):
        _atomic = _of(f"{_sign}{_bits // 8}", _combine)
        ATOMICS[_name + _suffix] = _atomic
        ATOMICS[_SPELLED.get(_name, f"{_name}_B{{n}}").format(n=_bits)] = _atomic
