"""Code of the output: text, in which what somebody looks into stands as a node of its own.

    acc += a_smem.index(slot).load(l) * s      ("acc += ", Read(Slot("a_smem", "slot"), "l"), " * s")

Neighbouring texts are one, and no text is empty but that of empty code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import InternalError
from gluonize.gluon.nodes import NONE, Assign, Code, Line, Name, Node

MARK = "@"  # a node in the outline of code: no space, and no comment


@dataclass(frozen=True)
class Lined:
    """Code that stands for some of a source, with the line that each of its lines came from, 0 for none."""

    code: Code
    lines: tuple[int, ...]


def code_of(*parts: Any) -> Code:
    """The code that texts, nodes, expressions and other code are one after the other."""
    out: list[str | Node] = []
    for item in _items(parts):
        if isinstance(item, str) and out and isinstance(out[-1], str):
            out[-1] += item
        elif item != "":
            out.append(item)
    return tuple(out) or ("",)


def _items(parts: Iterable[Any]) -> Iterator[str | Node]:
    for part in parts:
        if isinstance(part, (str, Node)):
            yield part
        elif isinstance(part, tuple):
            yield from _items(part)
        elif hasattr(part, "code"):
            yield from part.code
        else:
            raise InternalError(f"{part!r} is no code")


def line(*parts: Any) -> Line:
    """A statement of ours, or a comment, that no pass looks into."""
    return Line(code_of(*parts))


def as_lines(codes: Iterable[Any]) -> tuple[Line, ...]:
    return tuple(line(code) for code in codes)


def assignment(target: str, value: Any, reads: frozenset[Name] = NONE) -> Assign:
    """`target = value`."""
    return Assign(target, code_of(target, " = ", value), target, reads)


def text_of(code: Code) -> str:
    """The text of code in which nothing stands as a node. Raises: InternalError where something does."""
    if len(code) == 1 and isinstance(code[0], str):
        return code[0]
    raise InternalError(f"code with nodes is taken for text: {code}")


def joined(separator: str, codes: Iterable[Any]) -> Code:
    """Code with a text between each two parts."""
    out: list[Any] = []
    for code in codes:
        out += [separator, code]
    return code_of(*out[1:])


def outline(code: Code) -> str:
    """The text of code, with a mark for each node."""
    return "".join(part if isinstance(part, str) else MARK for part in code)


def lines_of(code: Code) -> list[Code]:
    """The lines of code; a node is in one line."""
    out: list[list[str | Node]] = [[]]
    for part in code:
        if isinstance(part, str):
            first, *others = part.split("\n")
            out[-1].append(first)
            out += [[line] for line in others]
        else:
            out[-1].append(part)
    return [code_of(*line) for line in out]


def begins(code: Code, text: str) -> bool:
    return isinstance(code[0], str) and code[0].startswith(text)


def without_prefix(code: Code, text: str) -> Code:
    """Code without a text that it begins with, if it does."""
    first = code[0]
    return code_of(first[len(text) :], *code[1:]) if isinstance(first, str) and first.startswith(text) else code


def without_suffix(code: Code, text: str) -> Code:
    """Code without a text that it ends with, if it does."""
    last = code[-1]
    return code_of(*code[:-1], last[: len(last) - len(text)]) if isinstance(last, str) and last.endswith(text) else code


def replaced(code: Code, old: str, new: str) -> Code:
    """Code with a text in the place of another one wherever that stands."""
    return code_of(*(part.replace(old, new) if isinstance(part, str) else part for part in code))


def ended(lines: Iterable[Any], indent: str = "") -> Code:
    """Lines behind an indentation, each with the end of a line."""
    return code_of(*((indent, line, "\n") for line in lines))


def indented(code: Code, indent: str) -> Code:
    """Code behind an indentation; empty lines stay empty."""
    return joined("\n", (code_of(indent, line) if outline(line).strip() else line for line in lines_of(code)))


def without_indent(code: Code, indent: str) -> Code | None:
    """Code with `indent` off all its lines but the first; None where one has less."""
    first, *others = lines_of(code)
    if not all(begins(line, indent) and outline(line).strip() or line == ("",) for line in others):
        return None
    return joined("\n", (first, *(without_prefix(line, indent) for line in others)))


def spliced(text: str, start: int, end: int, spans: Sequence[tuple[int, int, Any]]) -> Code:
    """`text[start:end]` with non-overlapping spans replaced by code; insertions at one place keep their order."""
    out: list[Any] = []
    at = start
    for a, b, new in sorted(spans, key=lambda span: span[:2]):
        assert a >= at, f"bug in gluonize: overlapping edits at {a} < {at}: {new!r}"
        out += [text[at:a], new]
        at = b
    return code_of(*out, text[at:end])


__all__ = [
    "Lined",
    "as_lines",
    "assignment",
    "begins",
    "code_of",
    "ended",
    "indented",
    "joined",
    "line",
    "lines_of",
    "outline",
    "replaced",
    "spliced",
    "text_of",
    "without_indent",
    "without_prefix",
    "without_suffix",
]
