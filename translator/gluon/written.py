"""Expressions of the output: text, and what those who put one into another have to know of it.

Who writes an expression says what it is, so that nobody reads its text again to find out whether it needs parentheses, or
whether a tensor moves in it.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass

from gluonize.gluon.names import spelled_apart

_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.ListComp)
_LOOSE = (
    ast.IfExp,
    ast.Compare,
    ast.BoolOp,
    ast.NamedExpr,
    ast.Not,
    ast.BitAnd,
    ast.BitOr,
    ast.BitXor,
    ast.LShift,
    ast.RShift,
)
OPERATORS: dict[str, type[ast.AST]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
    "<<": ast.LShift,
    ">>": ast.RShift,
    "&": ast.BitAnd,
    "|": ast.BitOr,
    "^": ast.BitXor,
    "<": ast.Compare,
    ">": ast.Compare,
    "==": ast.Compare,
}


class Does(enum.Flag):
    """What evaluating an expression has warps do beside arithmetic, as far as anybody asks."""

    NOTHING = 0
    CONVERTS = enum.auto()  # a tensor moves to another layout
    FILLS = enum.auto()  # a buffer in LDS is made and filled
    READS = enum.auto()  # a tile is read where it lies


class Written(str):
    """An expression as text.

    form: the class of its syntax node, of an operation that of its operator. grouped: in parentheses of its own. open: a line
    ends in it outside of parentheses, so that it cannot stand alone.
    """

    form: type[ast.AST]
    grouped: bool
    open: bool
    does: Does

    def __new__(
        cls,
        text: str,
        form: type[ast.AST],
        *parts: str,
        grouped: bool = False,
        open: bool = False,
        does: Does = Does.NOTHING,
    ) -> Written:
        """parts: what it is made of; it does what they do."""
        made = super().__new__(cls, text)
        made.form, made.grouped, made.open = form, grouped, open
        for part in parts:
            does |= getattr(part, "does", Does.NOTHING)
        made.does = does
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """In another process it is its text."""
        return str, (str(self),)

    @property
    def is_name(self) -> bool:
        return self.form is ast.Name and not self.grouped

    @property
    def is_operand(self) -> bool:
        """Whether it can stand before `.` or `[`, and on either side of any operator."""
        return not self.open and (self.grouped or self.form in _ATOMS)

    def is_like(self, node: ast.AST) -> bool:
        """Whether it is of the form that `node` has in the source, so that it may stand in its place as it is."""
        kind = {ast.BinOp: ast.operator, ast.UnaryOp: ast.unaryop}.get(type(node), type(node))
        return not self.open and issubclass(self.form, kind)


class Operation(Written):
    """`left sign right`."""

    left: Written
    sign: str
    right: Written


class Moved(Written):
    """A tensor that is converted to a layout, both as text."""

    tensor: Written
    layout: str

    def moving(self, tensor: Written) -> Moved:
        """Another tensor in the same layout."""
        return converted(tensor, self.layout)


def converted(tensor: Written, layout: str) -> Moved:
    made = Moved(f"gl.convert_layout({tensor}, {layout})", ast.Call, tensor, does=Does.CONVERTS)
    made.tensor, made.layout = tensor, layout
    return made


@dataclass(frozen=True)
class Assigned:
    """`target = value`, or `target += value` with a sign."""

    target: str
    value: Written
    sign: str = ""

    @property
    def text(self) -> str:
        return f"{self.target} {self.sign}= {closed(self.value)}"


def name(text: str) -> Written:
    """A variable, or what stands for one already."""
    return text if isinstance(text, Written) else Written(spelled_apart(text), ast.Name)


def form_of(node: ast.AST) -> type[ast.AST]:
    """The class of a syntax node, of an operation that of its operator."""
    return type(node.op) if isinstance(node, (ast.BinOp, ast.UnaryOp)) else type(node)


def operand(value: Written) -> Written:
    """`value` fit to stand as an operand or before `.`/`[`."""
    return value if value.is_operand else grouped(value)


def grouped(value: Written) -> Written:
    """`value` in parentheses."""
    return Written(f"({value})", value.form, value, grouped=True)


def closed(value: Written) -> Written:
    """`value` fit to stand alone on the right of `=`: in parentheses if it spans lines without any of its own."""
    return grouped(value) if value.open else value


def call(function: str, *arguments: str, does: Does = Does.NOTHING) -> Written:
    return Written(f"{function}({', '.join(arguments)})", ast.Call, function, *arguments, does=does)


def keyword(parameter: str, value: str) -> Written:
    """An argument by its name."""
    return Written(f"{parameter}={value}", ast.keyword, value)


def method(owner: Written, function: str, *arguments: str, does: Does = Does.NOTHING) -> Written:
    return call(attribute(owner, function), *arguments, does=does)


def attribute(owner: Written, of: str) -> Written:
    return Written(f"{operand(owner)}.{of}", ast.Attribute, owner)


def indexed(value: Written, index: str) -> Written:
    return Written(f"{operand(value)}[{index}]", ast.Subscript, value)


def literal(value: object) -> Written:
    """A number, a string, a list of numbers."""
    negative = isinstance(value, (int, float)) and value < 0
    return Written(repr(value), ast.USub if negative else ast.List if isinstance(value, list) else ast.Constant)


def tuple_of(*items: str) -> Written:
    return Written(f"({', '.join(items)}{',' * (len(items) == 1)})", ast.Tuple, *items, grouped=True)


def listed(*items: str) -> Written:
    return Written(f"[{', '.join(items)}]", ast.List, *items)


def binary(left: Written, sign: str, right: Written) -> Operation:
    """`left sign right`, whose operands bind as they stand."""
    made = Operation(f"{left} {sign} {right}", OPERATORS[sign], left, right, open=left.open or right.open)
    made.left, made.sign, made.right = left, sign, right
    return made


def times(left: Written, right: Written) -> Written:
    """The product of two operands."""
    return binary(left, "*", right)


def addend(value: Written, sign: str) -> Written:
    """`value` fit to be added to something, or taken from it."""
    if sign != "+":
        return operand(value)
    loose = issubclass(value.form, _LOOSE) and not value.grouped
    return grouped(value) if loose else value


def negative(value: Written) -> Written:
    return Written(f"-{operand(value)}", ast.USub, value)


def total(terms: list[tuple[str, Written]]) -> Written:
    """The sum of addends with their signs, each fit to be one."""
    (sign, value), *rest = terms
    if sign == "-":
        value = Written(f"- {value}", ast.USub, value, open=value.open)
    for sign, term in rest:
        value = binary(value, sign, term)
    return value
