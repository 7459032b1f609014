"""A statement with a matrix instruction in three parts, so that the matrix stage of a ping-pong loop holds nothing else.

Before:                                                     After:
    qk = cdna5.wmma(q, k, zeros) * scale                        qk_dot = cdna5.wmma(q, k, zeros)
                                                                qk = qk_dot * scale
    acc = cdna5.wmma(gl.convert_layout(p.to(...), l), v, acc)   p_as_operand = gl.convert_layout(p.to(...), l)
                                                                acc = cdna5.wmma(p_as_operand, v, acc)

One group of warps then does the vector work of a tile while the matrix cores are busy with the other group's, and the
scheduler cannot mix the two kinds of instructions, which costs bank switches and waits between dependent ones.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from translator.facts.source_text import SourceText, replace_spans
from translator.facts.syntax import loads, stores

MATRIX = ("wmma", "mfma", "wmma_scaled", "mfma_scaled")
# Functions that give a tensor in another place or layout: which argument it is.
CONVERSIONS = {"convert_layout": 0, "load_shared_relaxed": 0, "allocate_shared_memory": -1}


@dataclass(frozen=True)
class DotParts:
    """Lines without indentation. operands: (name, line) of what is made before the instruction; after: what is left of
    the statement, empty when it is the instruction alone."""

    operands: tuple[tuple[str, str], ...]
    matrix: str
    after: str


def dot_parts(text: str, fresh: Callable[[str], str]) -> DotParts | None:
    """The parts of one rewritten statement; None when it is not a plain assignment with one matrix instruction.

    fresh: gives a name that the function does not use.
    """
    text = textwrap.dedent(text)
    source, body = SourceText(text), ast.parse(text).body
    if len(body) != 1 or not isinstance(body[0], (ast.Assign, ast.AugAssign)):
        return None
    statement = body[0]
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    found = [n for n in ast.walk(statement.value) if _is_matrix(n)]
    if len(found) != 1 or not isinstance(target, ast.Name):
        return None
    call, comments = found[0], text[: source.offset(statement.lineno, 0)]
    operands: list[tuple[str, str]] = []
    pieces: list[tuple[int, int, str]] = []
    for argument in call.args[:2]:
        if isinstance(argument, ast.Call):
            name = fresh(f"{_stem(argument)}_as_operand")
            operands.append((name, f"{name} = {source.of(argument)}"))
            pieces.append((*source.span(argument), name))
    first, last = source.span(call)
    instruction = replace_spans(text, first, last, pieces)
    begin, end = source.span(statement)
    if call is statement.value and isinstance(statement, ast.Assign):
        return DotParts(tuple(operands), comments + text[begin:first] + instruction, "")
    name = fresh(f"{target.id}_dot")
    after = text[begin:first] + name + text[last:end]
    return DotParts(tuple(operands), f"{comments}{name} = {instruction}", after)


def _is_matrix(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MATRIX


def _stem(operand: ast.expr) -> str:
    """The variable that an operand is made from, as far as there is one: `p` of `gl.convert_layout(p.to(...), l)`."""
    while not isinstance(operand, ast.Name):
        if isinstance(operand, ast.Call):
            function = operand.func.attr if isinstance(operand.func, ast.Attribute) else ""
            operand = operand.args[CONVERSIONS[function]] if function in CONVERSIONS else operand.func
        elif isinstance(operand, (ast.Attribute, ast.Subscript)):
            operand = operand.value
        else:
            return "dot"
    return operand.id


def after_definitions(line: str, texts: list[str]) -> int:
    """Where in a list of statements `line` may stand at the earliest: behind the last one that assigns what it reads."""
    used = loads(ast.parse(line).body[0].value)
    for i in range(len(texts) - 1, -1, -1):
        if stores(ast.parse(textwrap.dedent(texts[i]))) & used:
            return i + 1
    return 0


def own_dtype(line: str, tiles: dict[str, str]) -> str:
    """`line` with the element types of tiles taken from their rings, so that it may stand before the tiles are read."""
    return re.sub(r"\b(\w+)\.dtype\b", lambda m: f"{tiles.get(m.group(1), m.group(1))}.dtype", line)
