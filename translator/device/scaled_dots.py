"""Scaled fp8 dots whose scales are 1 as plain dots.

before: `%d = tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e4m3 rhs = e4m3 {...} : A, S * B, T -> C`
after:  `%d = tt.dot %a, %b, %c : A * B -> C`
"""

from __future__ import annotations

import re

from translator.device.module_text import VALUE
from translator.ttgir.types import split_top

ONE = 127  # 2^0 as E8M0
_SCALED = re.compile(
    rf"^(\s*{VALUE}) = tt\.dot_scaled ({VALUE})(?: scale ({VALUE}))?, ({VALUE})(?: scale ({VALUE}))?, ({VALUE}) "
    r"lhs = (e4m3|e5m2) rhs = (e4m3|e5m2)[^:]*: (.*)$"
)


def plain_dots(text: str) -> str:
    """The module with those dots replaced; scaled dots with other scales stay (and are refused later)."""
    ones = set(re.findall(rf"({VALUE}) = arith\.constant dense<{ONE}> : tensor<[\dx]*xi8\b", text))
    return "\n".join(_plain(line, ones) for line in text.splitlines()) + "\n"


def _plain(line: str, ones: set[str]) -> str:
    found = _SCALED.match(line)
    if not found:
        return line
    result, a, a_scale, b, b_scale, c, _, _, kinds = found.groups()
    if any(scale and scale not in ones for scale in (a_scale, b_scale)):
        return line
    operands, out = split_top(kinds, "->")
    left, right = (split_top(side)[0] for side in split_top(operands, " * "))
    return f"{result} = tt.dot {a}, {b}, {c} : {left} * {right} -> {out}"
