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

from collections.abc import Callable
from dataclasses import dataclass, replace

from gluonize.gluon.code import assignment
from gluonize.gluon.nodes import Assign, Line, Node, Operand, Product, Variable, mapped, walk


@dataclass(frozen=True)
class DotParts:
    """operands: what is made before the instruction; after: what is left of the statement, None when it is the instruction
    alone."""

    operands: tuple[Assign, ...]
    matrix: tuple[Node, ...]
    after: Assign | None


def dot_parts(statements: tuple[Node, ...], fresh: Callable[[str], str]) -> DotParts | None:
    """The parts of a statement, which may have comments above it; None when it is not one assignment with one matrix
    instruction, or that and one of what is made of the product.

    fresh: gives a name that the function does not use.
    """
    comments, assigned = _comments(statements)
    if not 1 <= len(assigned) <= 2 or not all(isinstance(s, Assign) for s in assigned):
        return None
    statement, *rest = assigned
    if any(isinstance(n, Product) for s in rest for n in walk(s.code)):
        return None
    found = [n for n in walk(statement.code) if isinstance(n, Product)]
    if len(found) != 1:
        return None
    operands: list[Assign] = []

    def apart(node: Node) -> Node:
        if not isinstance(node, Operand) or node.is_variable:
            return mapped(node, apart)
        name = fresh(f"{node.stem}_as_operand")
        operands.append(assignment(name, node.code, node.reads))
        return Operand((name,), node.stem, frozenset({name}))

    product = apart(found[0])
    if statement.value == (found[0],):
        matrix = replace(statement, code=(*statement.code[:-1], product))
        return DotParts(tuple(operands), (*comments, matrix), rest[0] if rest else None)
    if rest:
        return None
    name = fresh(f"{statement.name}_dot")
    code = mapped(statement.code, lambda node: Variable(name) if node is found[0] else node)
    matrix = assignment(name, (product,))
    return DotParts(tuple(operands), (*comments, matrix), replace(statement, code=code))


def _comments(statements: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The comments that a statement begins with, and the rest of it."""
    first = next((i for i, s in enumerate(statements) if not isinstance(s, Line)), len(statements))
    return statements[:first], statements[first:]
