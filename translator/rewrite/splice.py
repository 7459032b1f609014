"""Expressions as text: which stand as operands or alone, and which need parentheses for that."""

from __future__ import annotations

import ast
import functools

_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.ListComp)


@functools.lru_cache(maxsize=1 << 14)
def expression(text: str) -> ast.expr | None:
    """The tree of an expression, which is kept and not to be changed; None for lines that are one in parentheses only."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


@functools.lru_cache(maxsize=1 << 14)
def is_atom(text: str) -> bool:
    """Whether the expression needs no parentheses as an operand."""
    node = expression(text)
    if node is None:
        return False
    if isinstance(node, ast.Tuple):
        return text.strip().startswith("(")
    return isinstance(node, _ATOMS) or text.strip().startswith("(") and _closes_at_end(text.strip())


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def operand(text: str) -> str:
    """`text` fit to stand as an operand or before `.`/`[`."""
    return text if is_atom(text) else f"({text})"


def closed(text: str) -> str:
    """`text` fit to stand alone on the right of `=`: in parentheses if it spans lines without any of its own."""
    return f"({text})" if "\n" in text and expression(text) is None else text


def indented(blocks: list[str], indent: str) -> str:
    """Dedented blocks of lines, one after the other, behind `indent`; empty lines stay empty."""
    lines = "\n".join(blocks).splitlines()
    return "\n".join(indent + line if line.strip() else line for line in lines)


def without_indent(text: str, indent: str) -> str | None:
    """`text` with `indent` off all its lines but the first; None where one has less."""
    first, *others = text.split("\n")
    if not all(line.startswith(indent) and line.strip() or not line for line in others):
        return None
    return "\n".join([first, *(line.removeprefix(indent) for line in others)])


def promoted(variable: str, node: ast.BinOp, value: str) -> str:
    """`x += t` for `x = x + t`, whose right side is the text `value`, where both are the same variable."""
    sign = "-" if isinstance(node.op, ast.Sub) else "+"
    if isinstance(node.op, (ast.Add, ast.Sub)) and value.startswith(f"{variable} {sign} "):
        return f"{variable} {sign}= {closed(value.removeprefix(f'{variable} {sign} '))}"
    return f"{variable} = {closed(value)}"
