"""Types of Triton IR values, read from their printed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

SCALARS = {"index": "i64"}  # `index` is 64 bits wide on every target


@dataclass(frozen=True)
class Type:
    """One printed type.

    `kind` is int, float, ptr, memdesc, desc (tensor descriptor), token or none. `element` names the scalar type (for a
    pointer: what it points to). `shape` is None for scalars. `layout` is the printed encoding, "" without one.
    """

    kind: str
    element: str = ""
    shape: tuple[int, ...] | None = None
    layout: str = ""

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape or ():
            count *= extent
        return count


OPEN, CLOSE = "([{<", ")]}>"


def split_top(text: str, separator: str = ",") -> list[str]:
    """Split at `separator` where no bracket is open; `->` closes nothing."""
    parts, depth, start, i, quoted = [], 0, 0, 0, False
    while i < len(text):
        c = text[i]
        if c == '"':
            quoted = not quoted
        elif quoted:
            pass
        elif c == "-" and text[i : i + 2] == "->":
            if separator == "->" and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 2
            i += 2
            continue
        elif c in OPEN:
            depth += 1
        elif c in CLOSE:
            depth -= 1
        elif depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i].strip())
            start = i + len(separator)
            i = start
            continue
        i += 1
    parts.append(text[start:].strip())
    return parts


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
        return Type("memdesc", element, shape, inner[1] if len(inner) > 1 else "")
    if text.startswith("!tt.tensordesc<"):
        body = text[len("!tt.tensordesc<") : -1]
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


def pointee_of(pointer: Type) -> str:
    """Element that a pointer or a tensor of pointers points to."""
    return pointer.element
