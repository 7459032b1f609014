"""Expressions of the output: code, and what those who put one into another have to know of it.

Who writes an expression says what it is, so that nobody reads its text again to find out whether it needs parentheses, or
whether a tensor moves in it.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gluonize.gluon.code import code_of, text_of
from gluonize.gluon.names import spelled_apart
from gluonize.gluon.nodes import Code, Name, Unnamed

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


class Written:
    """An expression of the output.

    code: how it is spelled. form: the class of its syntax node, of an operation that of its operator. grouped: in parentheses of its
    own. open: a line ends in it outside of parentheses, so that it cannot stand alone.
    """

    def __init__(
        self,
        code: Code | str,
        form: type[ast.AST],
        grouped: bool = False,
        open: bool = False,
        does: Does = Does.NOTHING,
    ):
        self.code: Code = (code,) if isinstance(code, str) else code
        self.form, self.grouped, self.open, self.does = form, grouped, open, does

    def __str__(self) -> str:
        """Its text. Raises: InternalError where something stands in it that is none yet."""
        return text_of(self.code)

    @property
    def text(self) -> str:
        return str(self)

    def __format__(self, spec: str) -> str:
        return format(self.text, spec)

    def __bool__(self) -> bool:
        return self.code != ("",)

    def __repr__(self) -> str:
        return f"Written({self.code!r}, {self.form.__name__})"

    def __eq__(self, other: object) -> bool:
        """Whether both are spelled the same."""
        if isinstance(other, (str, Unnamed)):
            return self.code == (other,)
        return isinstance(other, Written) and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.code[0] if len(self.code) == 1 else self.code)

    @property
    def is_name(self) -> bool:
        return self.form is ast.Name and not self.grouped

    @property
    def as_name(self) -> Name:
        """Of an expression that is a name."""
        return self.code[0] if isinstance(self.code[0], Unnamed) else self.text

    @property
    def is_operand(self) -> bool:
        """Whether it can stand before `.` or `[`, and on either side of any operator."""
        return not self.open and (self.grouped or self.form in _ATOMS)

    def is_like(self, node: ast.AST) -> bool:
        """Whether it is of the form that `node` has in the source, so that it may stand in its place as it is."""
        kind = {ast.BinOp: ast.operator, ast.UnaryOp: ast.unaryop}.get(type(node), type(node))
        return not self.open and issubclass(self.form, kind)


Part = str | Written  # what an expression is made of


class Operation(Written):
    """`left sign right`."""

    left: Written
    sign: str
    right: Written


class Moved(Written):
    """A tensor that is converted to a layout."""

    tensor: Written
    layout: Part

    def moving(self, tensor: Written) -> Moved:
        """Another tensor in the same layout."""
        return converted(tensor, self.layout)


def made(
    form: type[ast.AST], *parts: Part, grouped: bool = False, open: bool = False, does: Does = Does.NOTHING
) -> Written:
    """The expression that the parts are one after the other; it does what they do."""
    return Written(code_of(*parts), form, grouped, open, doing(parts, does))


def doing(parts: Iterable[object], does: Does = Does.NOTHING) -> Does:
    """What evaluating all parts does."""
    for part in parts:
        does |= getattr(part, "does", Does.NOTHING)
    return does


def listing(parts: Sequence[Part]) -> list[Part]:
    """The parts with commas between them."""
    return [part for pair in ((", ", part) for part in parts) for part in pair][1:]


def converted(tensor: Written, layout: Part) -> Moved:
    code = code_of("gl.convert_layout(", tensor, ", ", layout, ")")
    made = Moved(code, ast.Call, does=tensor.does | Does.CONVERTS)
    made.tensor, made.layout = tensor, layout
    return made


@dataclass(frozen=True)
class Assigned:
    """`target = value`, or `target += value` with a sign."""

    target: Name
    value: Written
    sign: str = ""

    @property
    def code(self) -> Code:
        return code_of(self.target, f" {self.sign}= ", closed(self.value))


def name(text: Part | Name) -> Written:
    """A variable, or what stands for one already."""
    if isinstance(text, Unnamed):
        return Written((text,), ast.Name)
    return text if isinstance(text, Written) else Written(spelled_apart(text), ast.Name)


def form_of(node: ast.AST) -> type[ast.AST]:
    """The class of a syntax node, of an operation that of its operator."""
    return type(node.op) if isinstance(node, (ast.BinOp, ast.UnaryOp)) else type(node)


def operand(value: Written) -> Written:
    """`value` fit to stand as an operand or before `.`/`[`."""
    return value if value.is_operand else grouped(value)


def grouped(value: Written) -> Written:
    """`value` in parentheses."""
    return made(value.form, "(", value, ")", grouped=True)


def closed(value: Written) -> Written:
    """`value` fit to stand alone on the right of `=`: in parentheses if it spans lines without any of its own."""
    return grouped(value) if value.open else value


def call(function: Part, *arguments: Part, does: Does = Does.NOTHING) -> Written:
    return made(ast.Call, function, "(", *listing(arguments), ")", does=does)


def keyword(parameter: str, value: Part) -> Written:
    """An argument by its name."""
    return made(ast.keyword, f"{parameter}=", value)


def method(owner: Written, function: str, *arguments: Part, does: Does = Does.NOTHING) -> Written:
    return call(attribute(owner, function), *arguments, does=does)


def attribute(owner: Written, of: str) -> Written:
    return made(ast.Attribute, operand(owner), f".{of}")


def indexed(value: Written, index: Part) -> Written:
    return made(ast.Subscript, operand(value), "[", index, "]")


def literal(value: object) -> Written:
    """A number, a string, a list of numbers."""
    negative = isinstance(value, (int, float)) and value < 0
    return Written(repr(value), ast.USub if negative else ast.List if isinstance(value, list) else ast.Constant)


def tuple_of(*items: Part) -> Written:
    return made(ast.Tuple, "(", *listing(items), "," * (len(items) == 1), ")", grouped=True)


def listed(*items: Part) -> Written:
    return made(ast.List, "[", *listing(items), "]")


def binary(left: Written, sign: str, right: Written) -> Operation:
    """`left sign right`, whose operands bind as they stand."""
    code, does = code_of(left, f" {sign} ", right), left.does | right.does
    made = Operation(code, OPERATORS[sign], open=left.open or right.open, does=does)
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
    return made(ast.USub, "-", operand(value))


def total(terms: list[tuple[str, Written]]) -> Written:
    """The sum of addends with their signs, each fit to be one."""
    (sign, value), *rest = terms
    if sign == "-":
        value = made(ast.USub, "- ", value, open=value.open)
    for sign, term in rest:
        value = binary(value, sign, term)
    return value
