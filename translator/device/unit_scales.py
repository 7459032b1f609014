"""Scaled fp8 dots whose scales are 1 as plain dots.

before: `%d = tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e4m3 rhs = e4m3 {...} : A, S * B, T -> C`
after:  `%d = tt.dot %a, %b, %c : A * B -> C`
"""

from __future__ import annotations

from translator.ttgir.module_text import indent_of, op_name
from translator.ttgir.op import Op
from translator.ttgir.parse import parse_op

ONE = 127  # 2^0 as E8M0
FORMATS = ("e4m3", "e5m2")


def plain_dots(text: str) -> str:
    """The module with those dots replaced; scaled dots with other scales stay (and are refused later)."""
    lines = text.splitlines()
    ops = {n: parse_op(line) for n, line in enumerate(lines) if op_name(line) in ("tt.dot_scaled", "arith.constant")}
    ones = {
        op.results[0]
        for op in ops.values()
        if op.name == "arith.constant" and op.type.element == "i8" and op.constant.integer == ONE
    }
    return "\n".join(_plain(line, ops.get(n), ones) for n, line in enumerate(lines)) + "\n"


def _plain(line: str, op: Op | None, ones: set[str]) -> str:
    if op is None or op.name != "tt.dot_scaled":
        return line
    scales = {op.operands[i] for i in op.keywords("scale")}
    formats = [op.attribute(side) for side in ("lhs", "rhs")]
    if not scales <= ones or any(name not in FORMATS for name in formats):
        return line
    first, second, third = (i for i in range(len(op.operands)) if i not in op.keywords("scale"))
    a, b, c = (op.operands[i] for i in (first, second, third))
    left, right = (op.operand_types[i].printed for i in (first, second))
    return f"{indent_of(line)}{op.results[0]} = tt.dot {a}, {b}, {c} : {left} * {right} -> {op.type.printed}"
