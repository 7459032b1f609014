"""Scaled fp8 dots whose scales are 1 as plain dots.

before: `%d = tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e4m3 rhs = e4m3 {...} : A, S * B, T -> C`
after:  `%d = tt.dot %a, %b, %c : A * B -> C`
"""

from __future__ import annotations

from translator.ttgir.module_text import ops_named, with_ops
from translator.ttgir.op import Op

ONE = 127  # 2^0 as E8M0
FORMATS = ("e4m3", "e5m2")


def plain_dots(text: str) -> str:
    """The module with those dots replaced; scaled dots with other scales stay (and are refused later)."""
    constants = ops_named(text, "arith.constant")
    ones = {op.results[0] for op in constants if op.type.element == "i8" and op.constant.integer == ONE}
    return with_ops(text, ("tt.dot_scaled",), lambda op, line: _plain(op, ones))


def _plain(op: Op, ones: set[str]) -> list[str] | None:
    scales = {op.operands[i] for i in op.keywords("scale")}
    formats = [op.attribute(side) for side in ("lhs", "rhs")]
    if not scales <= ones or any(name not in FORMATS for name in formats):
        return None
    first, second, third = (i for i in range(len(op.operands)) if i not in op.keywords("scale"))
    a, b, c = (op.operands[i] for i in (first, second, third))
    left, right = (op.operand_types[i].printed for i in (first, second))
    return [f"{op.results[0]} = tt.dot {a}, {b}, {c} : {left} * {right} -> {op.type.printed}"]
