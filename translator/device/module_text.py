"""Printed TTGIR as plain text to edit: no locations, values, types and the pieces of a line.

The re-targeting and the planted bugs edit the printed module, one op per line, as `module.str()` writes it.
"""

from __future__ import annotations

import re

from translator.ttgir.types import split_top

VALUE = r"%[A-Za-z0-9_$.\-]+(?:#\d+)?"
OPENING, CLOSING = "([{<", ")]}>"
_OP_NAME = re.compile(rf'(?:{VALUE}(?::\d+)?(?:, {VALUE}(?::\d+)?)* = )?"?([a-z_0-9]+\.[a-z_0-9.]+)"?')


def without_locations(text: str) -> str:
    """The module without `loc(...)` and `#loc` lines."""
    lines = []
    for line in text.splitlines():
        if line.startswith("#loc"):
            continue
        lines.append(_drop_locations(line).rstrip())
    return "\n".join(lines) + "\n"


def _drop_locations(line: str) -> str:
    while (start := line.find(" loc(")) >= 0:
        depth, at, quoted = 0, start + 4, False
        while at < len(line):
            c = line[at]
            if c == '"':
                quoted = not quoted
            elif not quoted:
                depth += {"(": 1, ")": -1}.get(c, 0)
                if depth == 0:
                    break
            at += 1
        line = line[:start] + line[at + 1 :]
    return line


def op_name(line: str) -> str:
    """`tt.load` for `%3 = tt.load %2 : ...`; "" for a line that is no op (`}`, `^bb0(...)`, an alias)."""
    found = _OP_NAME.match(line.strip())
    return found.group(1) if found else ""


def balanced_end(text: str, start: int) -> int:
    """Index after the bracket that closes the one at `start`. `->` closes nothing."""
    depth, at = 0, start
    while at < len(text):
        c = text[at]
        if c in OPENING:
            depth += 1
        elif c in CLOSING and text[at - 1 : at + 1] != "->":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise ValueError(f"no closing bracket in {text[start:start + 60]!r}")


def aliases(text: str) -> dict[str, str]:
    """`{"#mma": "#ttg.amd_mfma<...>"}` from the lines at the top of the module."""
    return dict(re.findall(r"^(#\w+) = (.*)$", text, re.M))


def spelled_out(layout: str, named: dict[str, str]) -> str:
    """A layout with its aliases, and those within them, replaced by what they stand for."""
    before = ""
    while layout != before:
        before, layout = layout, re.sub(r"#\w+\b(?!\.)", lambda m: named.get(m.group(0), m.group(0)), layout)
    return layout


def tensor_parts(kind: str) -> tuple[tuple[int, ...], str, str]:
    """`tensor<128x64xf16, #mma>` -> ((128, 64), "f16", "#mma"); also for memdesc and tensordesc bodies."""
    inside = kind[kind.index("<") + 1 : balanced_end(kind, kind.index("<")) - 1]
    pieces = split_top(inside)
    dims = re.match(r"(?:\d+x)+", pieces[0])
    sizes = dims.group(0) if dims else ""
    shape = tuple(int(x) for x in sizes.split("x") if x)
    return shape, pieces[0][len(sizes) :], pieces[1] if len(pieces) > 1 else ""


def bits_of(element: str) -> int:
    """Width of a scalar type in bits; pointers are 64 wide."""
    if element.startswith("!tt.ptr"):
        return 64
    found = re.match(r"(?:bf|f|i)(\d+)", element)
    return int(found.group(1))
