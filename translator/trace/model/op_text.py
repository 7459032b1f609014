"""The pieces of an operation's text: what stands between its operands, its attributes, its constant."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gluonize.trace.model.types import split_top

VALUE = r"%[A-Za-z0-9_$.\-]+(?:#\d+)?"
VALUES = re.compile(VALUE)
_WORD = re.compile(r"-?[\w.]+(?=\s|$|\{)(?!\s*=)")
_INDICES = re.compile(r"\[([-\d, ]+)\]")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\([0-9A-Fa-f]{2})")
_LEADING = re.compile(r"^\{[^}]*\} *")
_ELEMENT = re.compile(r"[^\[\],\s]+")
_ENUMERATED = re.compile(r"#\w+\.\w+<(\w+)>")
_MADE_UP = ("result", "cst", "true", "false", "outLHS", "outRHS", "token")
_CONSTANT_NAME = re.compile(r"c-?\d+_i\d+")
_NO_INDEX_NAME = re.compile(r"_\d+$|^_+$|\W|^arg\d+$")
_INTEGER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Constant:
    """What an `arith.constant` prints. elements: as they are spelled, one of a scalar and of a tensor that has no other; raw: the
    bytes of a tensor that is printed as such."""

    elements: tuple[str, ...]
    raw: bytes = b""

    @property
    def only(self) -> str:
        """The one element, "" of several."""
        return self.elements[0] if len(self.elements) == 1 else ""

    @property
    def integer(self) -> int | None:
        """The one integer that it is; true is 1."""
        if self.only in ("true", "false"):
            return int(self.only == "true")
        return int(self.only) if _INTEGER.fullmatch(self.only) else None

    @property
    def is_zero(self) -> bool:
        """Whether every element is zero, with no sign."""
        return self.only in ("0", "0.000000e+00", "false")


def read_constant(body: str) -> Constant:
    """The constant that the text before the types prints."""
    text = _LEADING.sub("", body.strip())
    if not text.startswith("dense<"):
        return Constant((text,))
    inside = text[len("dense<") : text.rindex(">")]
    if inside.startswith('"0x'):
        return Constant((), bytes.fromhex(inside[3:-1]))
    if not inside.startswith("["):
        return Constant((inside,))
    return Constant(tuple(_ELEMENT.findall(inside)))


def read_words(body: str) -> tuple[str, ...]:
    """The bare words that begin the parts between commas: `slt` of `slt, %a, %b`, `1` of `%bar, 1`."""
    found = (_WORD.match(part) for part in split_top(body))
    return tuple(word.group() for word in found if word)


def read_indices(body: str) -> tuple[int, ...]:
    """The numbers of the first brackets that hold nothing else: `%tile[0, 32]`."""
    found = _INDICES.search(body)
    return tuple(int(x) for x in found.group(1).split(",")) if found else ()


def read_string(text: str) -> str | None:
    """The first text in quotes, as it was before it was printed."""
    found = _STRING.search(text)
    if found is None:
        return None
    return _ESCAPED.sub(lambda m: chr(int(m.group(1), 16)), found.group(1)).replace('\\"', '"')


def read_attribute(name: str, text: str) -> int | bool | str | None:
    """Attribute `name`, None where it is not printed; one that is a name alone is true, of an enumeration it is the word."""
    if name not in text:
        return None
    value = r'("[^"]*"|#?[\w.]+<[^>]*>|[^\s,}>]+)'
    found = re.search(rf"(?<![\w.]){re.escape(name)} = {value}", text)
    if not found:
        return True if re.search(rf"[{{,] ?{re.escape(name)}[,}}]", text) else None
    value = found.group(1)
    if value in ("true", "false"):
        return value == "true"
    if _INTEGER.fullmatch(value):
        return int(value)
    if word := _ENUMERATED.fullmatch(value):
        return word.group(1)
    return value.strip('"')


def read_integers(name: str, text: str) -> tuple[int, ...]:
    """Attribute `name = array<i32: 1, 0>` or `[1, 0]`."""
    found = re.search(rf"(?<![\w.]){re.escape(name)} = (?:array<i\d+: ?([^>]*)>|\[([^\]]*)\])", text)
    if not found:
        return ()
    return tuple(int(x) for x in (found.group(1) or found.group(2) or "").split(",") if x.strip())


def operands_before(word: str, body: str) -> int:
    """How many values stand before a word, or all of them where it is not printed."""
    return len(VALUES.findall(body.partition(f" {word} ")[0]))


def author_name(value: str) -> str:
    """The author's name of a value, "" where the printer made one up; the printer numbers those of one name."""
    name = value.lstrip("%").partition("#")[0]
    base, _, number = name.rpartition("_")
    name = base if base and number.isdigit() else name
    made_up = name.isdigit() or name in _MADE_UP or _CONSTANT_NAME.fullmatch(name)
    return "" if made_up else name.replace(".", "_").replace("-", "_")


def index_name(value: str) -> str:
    """The author's name of a loop's index, "" where it has none."""
    return _NO_INDEX_NAME.sub("", value.lstrip("%"))
