"""Memory after the source against memory after the translation.

Integers must be equal. Floats may differ by what reordering a sum of `reduction` terms can change: two units in the last place
of the output's type, plus f32 rounding of a random walk over the terms, relative to the largest value of the tensor. A few
elements (1 %) may differ by one rounding step of the narrowest type that values pass through, because a last-bit
difference before a rounding can flip it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gluonize.judge.machine.dtypes import PRECISION, decode, stored
from gluonize.judge.machine.memory.guarded import Buffer, Memory

FLIPPED = 0.01  # share of elements that may be off by a rounding step of an intermediate
WALK = 8.0  # factor on sqrt(reduction) * 2^-24: a random walk stays within a few standard deviations


@dataclass(frozen=True)
class TensorComparison:
    """One tensor that either side wrote. `compared` elements were looked at, `wrong` of them differ too much.

    `racing` elements were left out: several lanes of one store of the source stored different values there. `error` is the largest absolute
    difference and `scale` the largest magnitude.
    """

    name: str
    compared: int
    equal: int
    wrong: int
    racing: int
    error: float
    scale: float
    first: int = -1
    expected: float = 0.0
    found: float = 0.0
    not_finite: int = 0

    @property
    def bitwise(self) -> bool:
        return self.equal == self.compared

    def __str__(self) -> str:
        if not self.wrong:
            how = "bitwise equal" if self.bitwise else f"within {self.error:.3g} of {self.scale:.3g}"
            return f"{self.name}: {self.compared} elements {how}"
        return (
            f"{self.name}: {self.wrong} of {self.compared} elements differ, first at element {self.first}: "
            f"{self.expected!r} expected, {self.found!r} found"
        )


def compare(
    source: Memory, translated: Memory, reduction: int, narrowest: str, slack: float = 0.0
) -> list[TensorComparison]:
    """Every tensor that either side changed. `narrowest` is the least precise float type in the source's IR; `slack` is what an
    element may be off beside rounding, relative to it and to an eighth of the largest."""
    out = []
    for a, b in zip(source.buffers, translated.buffers):
        if a.changed is None and b.changed is None:
            continue
        a.catch_up()
        b.catch_up()
        out.append(compare_buffer(a, b, reduction, narrowest, slack))
    return out


def compare_buffer(a: Buffer, b: Buffer, reduction: int, narrowest: str, slack: float = 0.0) -> TensorComparison:
    changed = a.per_element(a.changed) | b.per_element(b.changed)
    racing = a.per_element(a.torn) & changed
    chosen = np.flatnonzero(changed & ~racing)
    dtype = stored(a.element)
    count = len(a.data) // dtype.itemsize
    bits = [x.data[: count * dtype.itemsize].view(dtype)[chosen] for x in (a, b)]
    expected, found = (np.asarray(decode(x, a.element)) for x in bits)
    same = bits[0] == bits[1]
    if expected.dtype.kind != "f":
        wrong = ~same
        wide = expected.astype(np.float64), found.astype(np.float64)
        return _result(a, wide, same, wrong, int(racing.sum()), chosen)
    wide = expected.astype(np.float64), found.astype(np.float64)
    same = same | (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
    wrong = ~same & _too_far(*wide, a.element, reduction, narrowest, slack)
    return _result(a, wide, same, wrong, int(racing.sum()), chosen)


def _too_far(expected, found, element: str, reduction: int, narrowest: str, slack: float) -> np.ndarray:
    finite = np.isfinite(expected) & np.isfinite(found)
    if not finite.any():
        return np.ones(expected.shape, bool)
    size = np.abs(np.where(finite, expected, 0.0))
    scale = float(size.max())
    accumulate = 2.0 ** -(PRECISION["f64" if element == "f64" else "f32"])
    with np.errstate(all="ignore"):
        difference = np.where(finite, np.abs(expected - found), np.inf)
    allowed = 2 * 2.0 ** (1 - PRECISION[element]) * size + WALK * math.sqrt(reduction) * accumulate * scale
    allowed += slack * (size + scale / 8)
    far = difference > allowed
    step = 2.0 ** (1 - PRECISION[narrowest]) if narrowest in ("f16", "bf16") else 0.0
    if step and far.sum() <= FLIPPED * far.size:
        far = difference > allowed + step * (size + scale / 8)
    return far


def _result(buffer: Buffer, wide, same, wrong, racing: int, chosen) -> TensorComparison:
    expected, found = wide
    finite = np.isfinite(expected) & np.isfinite(found)
    error = float(np.abs(expected[finite] - found[finite]).max()) if finite.any() else 0.0
    scale = float(np.abs(expected[finite]).max()) if finite.any() else 0.0
    first = int(np.flatnonzero(wrong)[0]) if wrong.any() else -1
    element = buffer.element_at(int(chosen[first])) if first >= 0 else -1
    return TensorComparison(
        buffer.name,
        int(chosen.size),
        int(same.sum()),
        int(wrong.sum()),
        racing,
        error,
        scale,
        element,
        float(expected[first]) if first >= 0 else 0.0,
        float(found[first]) if first >= 0 else 0.0,
        int((~np.isfinite(expected)).sum()),
    )


def new_races(source: Memory, translated: Memory) -> list[tuple[str, int]]:
    """Buffers with elements on which only the translation's stores conflict, each with the first such byte."""
    out = []
    for a, b in zip(source.buffers, translated.buffers):
        if b.racing is None or not (b.racing.any() or b.torn.any()):
            continue
        a.catch_up()
        b.catch_up()
        known = a.touched(a.racing) | a.touched(a.torn)
        if (new := (b.touched(b.racing) | b.touched(b.torn)) & ~known).any():
            out.append((b.name, int(np.flatnonzero(new)[0])))
    return out
