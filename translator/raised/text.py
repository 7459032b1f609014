"""Pieces of Python that are put together: how tightly they bind, and what they stand for."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace

from gluonize.trace.model.language import DTYPES
from gluonize.trace.model.types import Type

# How tightly an expression binds, loosest first.
ANY, COMPARISON, OR, XOR, AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(10)
OPERATORS = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), COMPARISON),
    **{"|": OR, "^": XOR, "&": AND, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM},
    **dict.fromkeys(("*", "/", "//", "%"), PRODUCT),
}
_FORMATS = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


@dataclass(frozen=True)
class Written:
    """An expression. type: of the value that stands for; shape: of what the text gives, which its use broadcasts to that of the type.

    literal: whether it is a number, which takes its type from what it stands beside. full: the text that has the type's own shape and
    layout, with `{}` for this one; "" where it has these itself.
    """

    text: str
    type: Type
    level: int = ATOM
    full: str = ""
    shape: tuple[int, ...] | None = None
    literal: bool = False

    def at(self, level: int) -> str:
        """The text where what stands around it binds like that."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def whole(self) -> Written:
        """What has the shape and the layout of the type by itself."""
        if not self.full:
            return self
        text = self.full.replace("{}", self.at(ATOM) if self.full.startswith("{}") else self.text)
        return replace(self, text=text, full="", level=ATOM, shape=None, literal=False)


def dtype(kind: Type) -> str | None:
    """The element of a type as Gluon spells it; None where it has no such type."""
    if kind.kind == "ptr":
        inner = _element(kind.element) or _pointer(kind.element)
        return f"gl.pointer_type({inner})" if inner else None
    return _element(kind.element)


def _element(element: str) -> str | None:
    return f"gl.{DTYPES[element]}" if element in DTYPES else None


def _pointer(element: str) -> str | None:
    if not element.startswith("!tt.ptr<"):
        return None
    inner = _element(element[len("!tt.ptr<") : -1])
    return f"gl.pointer_type({inner})" if inner else None


def number(spelled: str, kind: Type) -> str | None:
    """An element of a constant as Python has it; None for one that no literal gives."""
    if spelled in ("true", "false"):
        return spelled.capitalize()
    if kind.kind == "int":
        return spelled
    if spelled.startswith("0x"):
        value = _of_bits(int(spelled, 16), kind.element)
    else:
        value = float(spelled)
    if value is None:
        return None
    if math.isinf(value):
        return 'float("inf")' if value > 0 else '-float("inf")'
    if math.isnan(value):
        return 'float("nan")'
    return repr(value)


def _of_bits(bits: int, element: str) -> float | None:
    if element == "bf16":
        bits, element = bits << 16, "f32"
    if element not in _FORMATS:
        return None
    number_format, bits_format = _FORMATS[element]
    return struct.unpack(number_format, struct.pack(bits_format, bits))[0]
