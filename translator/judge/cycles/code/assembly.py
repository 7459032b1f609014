"""AMDGCN assembly text -> typed lines: operands as registers, numbers and words, with the source line each came from."""

from __future__ import annotations

import functools
import re
from collections.abc import Set
from dataclasses import dataclass

# `.file 2 "/.../triton/language" "standard.py"`: what Triton has in Python is nobody's statement.
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]*)"\s+"([^"]*)"', re.MULTILINE)
_LIBRARY = re.compile(r"/triton/(?:language|experimental)\b")
_FILES = "vas"  # vector, accumulation and scalar registers


@dataclass(frozen=True)
class Registers:
    """`count` consecutive 32-bit registers of one file from `first` on: v[4:7] is Registers("v", 4, 4)."""

    file: str
    first: int
    count: int = 1


Operand = Registers | int | str


@dataclass(frozen=True)
class Line:
    """One line of code: a label, or an instruction.

    operands: the text after the mnemonic. arguments: the same, typed. words: what follows the last argument (`offen`,
    `offset:16`, `lgkmcnt(0)`). place: "kernel.py:12" of the outermost call, "" where the compiler gave none; statement: of the author's
    statement, which may stand in a helper. pair: the second half of a dual-issue line.
    """

    op: str = ""
    operands: str = ""
    label: str = ""
    arguments: tuple[Operand, ...] = ()
    words: tuple[str, ...] = ()
    place: str = ""
    statement: str = ""
    pair: "Line | None" = None

    @property
    def of_cluster(self) -> bool:
        """Whether a barrier is the one at which workgroups of a cluster meet: for each, one wave signals."""
        return self.operands.strip() == "-3"

    def word(self, name: str) -> str | None:
        """The value of `name:value` or `name(value)` among the words, "" for a bare `name`, None when absent."""
        for word in self.words:
            if word == name:
                return ""
            if word.startswith(name) and word[len(name)] in ":(":
                return word[len(name) + 1 :].rstrip(")")
        return None

    def number(self, name: str) -> int | None:
        """The same as an integer; None when absent or no integer."""
        found = self.word(name)
        value = _operand(found) if found else None
        return value if isinstance(value, int) else None


@dataclass(frozen=True)
class Program:
    """The code of one kernel, labels included; `position` of each label. properties: integer `.amdhsa_` settings."""

    lines: tuple[Line, ...]
    position: dict[str, int]
    properties: dict[str, int]


def read_program(text: str) -> Program:
    """The code part of an assembly text; directives, comments and padding are left out."""
    lines: list[Line] = []
    properties: dict[str, int] = {}
    place = statement = ""
    library = {name for folder, name in _FILE.findall(text) if _LIBRARY.search(folder)}
    for raw in text.splitlines():
        code, _, comment = raw.partition(";")
        code = code.strip()
        if not code:
            continue
        if code.startswith(".amdgpu_metadata"):
            break
        if code.startswith(".loc"):
            place, statement = _places(comment, library)
        elif code.startswith(".amdhsa_"):
            name, _, value = code.partition(" ")
            if value.strip().isdigit():
                properties[name.removeprefix(".amdhsa_")] = int(value)
        elif code.endswith(":") and " " not in code:
            lines.append(Line(label=code[:-1]))
        elif raw[0] in " \t" and code[0].isalpha() and (line := _instruction(code)).op != "s_code_end":
            lines.append(line if not place else _placed(line, place, statement))
    position = {line.label: n for n, line in enumerate(lines) if line.label}
    return Program(tuple(lines), position, properties)


def _placed(line: Line, place: str, statement: str) -> Line:
    return Line(line.op, line.operands, line.label, line.arguments, line.words, place, statement, line.pair)


def _places(comment: str, library: Set[str]) -> tuple[str, str]:
    """`std.py:43:13 @[ helper.py:20:5 @[ kernel.py:51:17 ] ]` -> "kernel.py:51" and "helper.py:20": the outermost call, and the innermost
    place outside of `library`; "" for line 0."""
    places = []
    for frame in comment.split("@["):
        file, _, numbers = (frame.replace("]", " ").split() or [""])[0].partition(":")
        line = numbers.partition(":")[0]
        places.append(f"{file}:{line}" if file and line not in ("", "0") else "")
    own = (place for place in places if place and place.rpartition(":")[0] not in library)
    return places[-1], next(own, places[-1])


@functools.lru_cache(maxsize=65536)
def _instruction(code: str) -> Line:
    first, separator, second = code.partition("::")
    op, _, operands = first.strip().replace("\t", " ").partition(" ")
    arguments, words = _arguments(operands)
    pair = _instruction(second.strip()) if separator else None
    return Line(op, operands.strip(), "", arguments, words, pair=pair)


def _arguments(text: str) -> tuple[tuple[Operand, ...], tuple[str, ...]]:
    """`v1, v[2:3], 0 offen offset:8` -> (v1, v[2:3], 0), ("offen", "offset:8")."""
    found: list[Operand] = []
    words: tuple[str, ...] = ()
    for part in _split(text):
        if "/*" in part:  # a register above 255 is written as the low one with its real name in a comment
            before, _, after = part.partition("/*")
            name, _, rest = after.partition("*/")
            part = f"{name} {rest}"
        pieces = part.split()
        if not pieces:
            continue
        found.append(_operand(pieces[0]))
        words += tuple(pieces[1:])
    return tuple(found), words


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    if "(" not in text and ":[" not in text:
        return text.split(",")
    parts, depth, start = [], 0, 0
    for n, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:n])
            start = n + 1
    return [*parts, text[start:]]


@functools.lru_cache(maxsize=65536)
def _operand(text: str) -> Operand:
    bare = text.lstrip("-|").rstrip("|")
    if bare and bare[0] in _FILES and bare[1:2] and (bare[1].isdigit() or bare[1] == "["):
        inside = bare[1:].strip("[]")
        first, _, last = inside.partition(":")
        if first.isdigit() and (not last or last.isdigit()):
            return Registers(bare[0], int(first), int(last or first) - int(first) + 1)
    try:
        return int(text, 0)
    except ValueError:
        return text
