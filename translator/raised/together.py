"""Kernels that were compiled for several tile sizes as one: numbers that move with a tile become constexpr parameters.

What is constexpr in the source is a number in each module. Where two modules of a kernel say the same but for numbers, those that differ
are tile sizes, or come of them: a tile less one, a part of it, a multiple.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gluonize.raised.kernel import Raised

_ARANGE = re.compile(r"(?:(\w+) = .*)?gl\.arange\(0, $")
Values = tuple[int, ...]  # what a number is in each of the kernels


@dataclass(frozen=True)
class _Token:
    text: str
    start: tuple[int, int]
    end: tuple[int, int]
    number: bool


def together(kernels: Sequence[Raised]) -> tuple[str, tuple[Raised, ...]] | None:
    """One text for kernels of one name and target, and each with its launch; None where more than numbers differs, or other numbers than tiles."""
    first = kernels[0]
    options = {repr(sorted(each.spec.options.items())) for each in kernels}
    if len(kernels) < 2 or len({(each.kernel, each.target) for each in kernels}) > 1 or len(options) > 1:
        return None
    rows = [_tokens(_body(each.text)) for each in kernels]
    if len({len(row) for row in rows}) > 1:
        return None
    moving: list[tuple[_Token, Values]] = []
    for tokens in zip(*rows):
        if len({token.text for token in tokens}) > 1:
            if not all(token.number and token.text.isdigit() for token in tokens):
                return None
            moving.append((tokens[0], tuple(int(token.text) for token in tokens)))
    if not moving:
        return None
    lines = _body(first.text).splitlines()
    parameters = _parameters(lines, moving)
    spelled = {values: _spelled(values, parameters) for _, values in moving}
    if any(text is None for text in spelled.values()) or _outside(lines, moving, first.kernel):
        return None
    for token, values in reversed(moving):
        line, at = token.start[0] - 1, token.start[1]
        before, after, text = lines[line][:at], lines[line][token.end[1] :], spelled[values] or ""
        if before.endswith(("[", "(", ", ")) and after.startswith(("]", ")", ",")):
            text = text.removeprefix("(").removesuffix(")")
        lines[line] = before + text + after
    untrue = _comments(lines, moving)
    lines = [line for at, line in enumerate(lines) if at not in untrue]
    text = _with_parameters("\n".join(lines) + "\n", first.kernel, parameters.values())
    whole = _header(first, parameters, kernels) + text
    out = []
    for number, each in enumerate(kernels):
        sizes = {name: values[number] for values, name in parameters.items()}
        signature = each.spec.signature | dict.fromkeys(sizes, "constexpr")
        id = f"{each.spec.id} {', '.join(f'{name}={size}' for name, size in sizes.items())}"
        spec = replace(each.spec, id=id, signature=signature, constexprs=each.spec.constexprs | sizes)
        out.append(replace(each, text=whole, spec=spec))
    return whole, tuple(out)


def _body(text: str) -> str:
    """The text behind the docstring of the file, which names the module."""
    return text[text.index("\nfrom triton.experimental import gluon") + 1 :]


def _header(first: Raised, parameters: dict[Values, str], kernels: Sequence[Raised]) -> str:
    sizes = [", ".join(f"{name}={values[i]}" for values, name in parameters.items()) for i in range(len(kernels))]
    head = first.text[: first.text.index("\n")].removesuffix('"""')
    return f'{head}\n\nIt holds for launches as those of the modules, with {"; ".join(sizes)}.\n"""\n\n'


def _tokens(text: str) -> list[_Token]:
    """All but comments, which show lines of the source."""
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return [_Token(t.string, t.start, t.end, t.type == tokenize.NUMBER) for t in found if t.type not in layout]


def _parameters(lines: Sequence[str], moving: Sequence[tuple[_Token, Values]]) -> dict[Values, str]:
    """The tiles: what ranges go to."""
    out: dict[Values, str] = {}
    for token, values in moving:
        found = _ARANGE.search(lines[token.start[0] - 1][: token.start[1]])
        if found and values not in out:
            suffix = re.search(r"_([a-z])(?:_\d+)?$", found[1] or "")
            base = f"BLOCK_{suffix[1].upper()}" if suffix else "BLOCK"
            name, number = base, 1
            while name in out.values():
                number += 1
                name = f"{base}_{number}" if suffix else f"{base}{number}"
            out[values] = name
    return out


def _spelled(values: Values, parameters: dict[Values, str]) -> str | None:
    """A number that moves, by the tile that it moves with; None where it moves with none."""
    for tile, name in parameters.items():
        if values == tile:
            return name
        if all(value == size - 1 for value, size in zip(values, tile)):
            return f"({name} - 1)"
    for tile, name in parameters.items():
        if all(value % size == 0 for value, size in zip(values, tile)):
            times = {value // size for value, size in zip(values, tile)}
            if len(times) == 1:
                return f"({name} * {times.pop()})"
        if all(value and size % value == 0 for value, size in zip(values, tile)):
            parts = {size // value for value, size in zip(values, tile)}
            if len(parts) == 1:
                return f"({name} // {parts.pop()})"
    return None


def _outside(lines: Sequence[str], moving: Sequence[tuple[_Token, Values]], kernel: str) -> bool:
    """Whether a number moves in a helper, which has no parameter for it."""
    start = next(i for i, line in enumerate(lines) if line.startswith(f"def {kernel}("))
    return any(token.start[0] - 1 < start for token, _ in moving)


def _comments(lines: Sequence[str], moving: Sequence[tuple[_Token, Values]]) -> set[int]:
    """The lines above definitions of layouts that say what holds for one of the kernels alone."""
    out = set()
    for token, _ in moving:
        at = token.start[0] - 1
        while at and ": gl.constexpr = " not in lines[at] and lines[at].startswith("     "):
            at -= 1
        if ": gl.constexpr = " in lines[at] and lines[at - 1].lstrip().startswith("#"):
            out.add(at - 1)
    return out


def _with_parameters(text: str, kernel: str, names) -> str:
    more = "".join(f", {name}: gl.constexpr" for name in names)
    head = re.compile(rf"^def {re.escape(kernel)}\((.*)\):$", re.MULTILINE)
    return head.sub(lambda found: f"def {kernel}({found[1]}{more}):", text, count=1)
