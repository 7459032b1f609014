"""Types of Triton IR values, read from their printed form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

SCALARS = {"index": "i64"}  # `index` is 64 bits wide on every target


@dataclass(frozen=True)
class Type:
    """One printed type.

    `kind` is int, float, ptr, memdesc, desc (tensor descriptor), token or none. `element` names the scalar type (for a
    pointer: what it points to). `shape` is None for scalars. `layout` is the printed encoding, "" without one. `memory`: of a
    memory descriptor what follows its layout, `#smem, mutable`.
    """

    kind: str
    element: str = ""
    shape: tuple[int, ...] | None = None
    layout: str = ""
    memory: str = field(default="", compare=False)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None and self.kind not in ("memdesc", "desc")

    @property
    def printed_element(self) -> str:
        """The element as MLIR prints it: `!tt.ptr<f16>` of a tensor of pointers."""
        return f"!tt.ptr<{self.element}>" if self.kind == "ptr" else self.element

    @property
    def printed(self) -> str:
        """A tensor, memory descriptor, pointer or scalar type as MLIR prints it."""
        if self.shape is None:
            return self.printed_element
        sizes = "".join(f"{n}x" for n in self.shape)
        if self.kind == "memdesc":
            return f"!ttg.memdesc<{', '.join(filter(None, (sizes + self.element, self.layout, self.memory)))}>"
        layout = f", {self.layout}" if self.layout else ""
        return f"tensor<{sizes}{self.printed_element}{layout}>"

    @property
    def short(self) -> str:
        """A memory descriptor as operations print it that take nothing else there: `<32x64xf16, ...>`."""
        return self.printed.removeprefix("!ttg.memdesc")

    def of(self, element: str) -> "Type":
        """The tensor type with the same shape and layout whose elements are `element`, as MLIR prints it."""
        scalar = parse_type(element)
        return replace(self, kind=scalar.kind, element=scalar.element)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape or ():
            count *= extent
        return count


_SPLITTERS: dict[str, re.Pattern] = {}


def split_top(text: str, separator: str = ",") -> list[str]:
    """Split at `separator` where no bracket is open; `->` closes nothing."""
    return list(_split(text, separator)) if separator in text else [text.strip()]


@lru_cache(maxsize=4096)  # few different types stand in a module
def _split(text: str, separator: str) -> tuple[str, ...]:
    splitter = _SPLITTERS.get(separator)
    if splitter is None:
        splitter = _SPLITTERS[separator] = re.compile(rf'"[^"]*"?|->|[(\[{{<]|[)\]}}>]|{re.escape(separator)}')
    parts, depth, start = [], 0, 0
    for found in splitter.finditer(text):
        token = found.group()
        if token == separator:
            if depth == 0:
                parts.append(text[start : found.start()].strip())
                start = found.end()
        elif token in "([{<":
            depth += 1
        elif token in ")]}>":
            depth -= 1
    parts.append(text[start:].strip())
    return tuple(parts)


def last_part(text: str, separator: str) -> str:
    """What follows the last `separator` where no bracket is open; "" without one."""
    _, found, part = text.rpartition(separator)
    if found and '"' not in part and all(part.count(a) == part.count(b) for a, b in ("()", "[]", "{}")):
        if part.count("<") == part.count(">") - part.count("->"):
            return part.strip()
    parts = split_top(text, separator)
    return parts[-1] if len(parts) > 1 else ""


def _dims(text: str) -> tuple[tuple[int, ...], str]:
    """`2x64xf16` -> ((2, 64), "f16")."""
    shape = []
    while True:
        head, x, rest = text.partition("x")
        if not (x and head.isdigit()):
            return tuple(shape), text
        shape.append(int(head))
        text = rest


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """The type that `text` prints; an unknown one has kind "none"."""
    text = text.strip()
    if text.startswith("tensor<"):
        inner = split_top(text[7:-1])
        shape, element = _dims(inner[0])
        scalar = parse_type(element)
        return Type(scalar.kind, scalar.element, shape, inner[1] if len(inner) > 1 else "")
    if text.startswith("!tt.ptr<"):
        return Type("ptr", split_top(text[8:-1])[0])
    if text.startswith("!ttg.memdesc<") or text.startswith("<"):
        inner = split_top(text[text.index("<") + 1 : -1])
        shape, element = _dims(inner[0])
        return Type("memdesc", element, shape, inner[1] if len(inner) > 1 else "", ", ".join(inner[2:]))
    if text.startswith(("!tt.tensordesc<", "!ttng.tensordesc_im2col<")):
        body = text[text.index("<") + 1 : -1]
        body = body[7:-1] if body.startswith("tensor<") else body
        inner = split_top(body)
        shape, element = _dims(inner[0])
        return Type("desc", element, shape, inner[1] if len(inner) > 1 else "")
    if text == "!ttg.async.token":
        return Type("token")
    text = SCALARS.get(text, text)
    if text[:1] == "i" and text[1:].isdigit():
        return Type("int", text)
    if text[:1] == "f" or text == "bf16":
        return Type("float", text)
    return Type("none", text)


def pointee(pointer: Type) -> Type:
    """tensor<8x!tt.ptr<f16>> -> tensor<8xf16>."""
    scalar = parse_type(pointer.element)
    return Type(scalar.kind, scalar.element, pointer.shape, pointer.layout)


_BRACKET = re.compile(r"->|[<>]")


@lru_cache(maxsize=4096)
def types_in(text: str, prefix: str) -> tuple[Type, ...]:
    """Every type in `text` that begins with `prefix` (`tensor<`), in order, those in brackets of others too."""
    out, at = [], 0
    while (at := text.find(prefix, at)) >= 0:
        depth, end = 0, len(text)
        for found in _BRACKET.finditer(text, at):
            depth += {"<": 1, ">": -1}.get(found.group(), 0)
            if depth == 0 and found.group() == ">":
                end = found.end()
                break
        out.append(parse_type(text[at:end]))
        at = end
    return tuple(out)
