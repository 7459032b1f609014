"""Statements that are too long, as black has them; the author's own lines stay as they are."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import libcst as cst
from gluonize.gluon.trees.function import LINE_LENGTH, GluonFunction, code, expression, formatted, statements
from gluonize.gluon.trees.origins import copied
from gluonize.gluon.trees.walk import mapped

_RUN = 4  # equal numbers that are written as a product
_FILLED = 104  # columns of a list of bases, behind the indentation of an argument in a branch


def bases_in_lines(definition: str) -> str:
    """A definition of a layout, in fewer lines where it is too long for one: runs of one number are products, `[1] * 10`, and long lists of
    bases are sums of lists that fill a line: black has each of these in one, not each basis."""
    if len(definition) <= LINE_LENGTH:
        return definition
    return code(mapped(mapped(statements(definition)[0], _runs), _sum)).strip()


def _runs(node: cst.CSTNode) -> cst.CSTNode | None:
    """`[4] + [1] * 9` for a list of numbers with a run that is shorter so; a basis stays as it is."""
    if not isinstance(node, cst.List):
        return None
    if not all(isinstance(e.value, cst.Integer) for e in node.elements):
        return node
    numbers = [e.value.value for e in node.elements]
    parts: list[str] = []
    for number, run in itertools.groupby(numbers):
        count = len([*run])
        if count >= _RUN:
            parts.append(f"[{number}] * {count}")
        elif parts and "*" not in parts[-1]:
            parts[-1] = f"{parts[-1][:-1]}, {', '.join([number] * count)}]"
        else:
            parts.append(f"[{', '.join([number] * count)}]")
    return expression(" + ".join(parts)) if any("*" in part for part in parts) else node


def _sum(node: cst.CSTNode) -> cst.CSTNode | None:
    if not isinstance(node, cst.List) or len(code(node)) <= _FILLED:
        return None
    lines: list[list[cst.Element]] = [[]]
    for element in node.elements:
        if sum(len(code(e.value)) + 2 for e in (*lines[-1], element)) > _FILLED:
            lines.append([])
        lines[-1].append(element.with_changes(comma=cst.MaybeSentinel.DEFAULT))
    return functools.reduce(lambda a, b: cst.BinaryOperation(a, cst.Add(), b), map(cst.List, lines))


def with_long_lines_wrapped(function: GluonFunction, original: str) -> GluonFunction:
    """`function` with black's lines for each statement that has one which is too long and none of `original`."""
    kept = set(original.splitlines())
    long = {line for line in function.text.splitlines() if len(line) > LINE_LENGTH} - kept
    if not long:
        return function

    def wrapped(block: cst.IndentedBlock, columns: int) -> cst.IndentedBlock:
        columns += len(block.indent or function.module.default_indent)
        return block.with_changes(body=[part for s in block.body for part in parts(s, columns)])

    def parts(node: cst.CSTNode, columns: int) -> Sequence[cst.CSTNode]:
        """The statement, or several where some share a line that is too long: black gives each a line of its own."""
        if not isinstance(node, cst.SimpleStatementLine):
            return [
                mapped(node, lambda inner: wrapped(inner, columns) if isinstance(inner, cst.IndentedBlock) else None)
            ]
        own = code(node.with_changes(leading_lines=()))
        if long.isdisjoint(" " * columns + line for line in own.splitlines()):
            return [node]
        first, *rest = statements(formatted(own, columns))
        return [copied(s, node) for s in (first.with_changes(leading_lines=node.leading_lines), *rest)]

    return function.with_node(function.node.with_changes(body=wrapped(function.block, 0)))
