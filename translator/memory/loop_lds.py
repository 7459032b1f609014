"""How much LDS Triton's loops use beside their rings: operands on their way from registers to matrix instructions.

What a loop hands on in registers and stores to LDS is left out: a translation that has such a tile in LDS reads it there.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from translator.frontend.anchors import Path, locations

_ARGUMENTS = re.compile(r" iter_args\((.*?)\) -> ")
_DEFINITION = re.compile(r"(%[\w$.#]+) = ([\w.]+) (%[\w$.#]+)")
_LOAD = re.compile(r"(%[\w$.#]+) = (?:amdg\.buffer_load|tt\.load) ")
_COPY = re.compile(r" (?:amdg\.buffer_load_to_local|ttg\.async_copy_global_to_local) ")
_ALLOC = re.compile(r"(%[\w$.#]+) = ttg\.local_alloc (%[\w$.#]+) : .* -> !ttg\.memdesc<((?:\d+x)+)\D*(\d+)")
_LOC = re.compile(r" loc\((#loc\d*)\)$")
_NAME = re.compile(r"%[\w$.#]+")
# What a value passes through on its way to LDS without being combined with another.
_MOVES = ("ttg.convert_layout", "tt.trans", "tt.reshape", "arith.extf", "arith.truncf", "amdg.in_thread_transpose")


@dataclass
class _Loop:
    """A loop's own lines, those of branches included, of loops inside it not."""

    arguments: list[str]
    lines: list[str] = field(default_factory=list)


def read_loop_lds(text: str) -> dict[Path, int]:
    """Bytes of LDS that are used at once, beside rings, in the loop around each load, by the path of the load's visit."""
    if "scf.for" not in text:
        return {}
    path_of = locations(text)
    out: dict[Path, int] = {}
    for loop in _loops(text):
        most = _most_bytes(loop.lines, _handed_on(loop))
        for line in loop.lines:
            if (
                (_LOAD.match(line) or _COPY.search(line))
                and (loc := _LOC.search(line))
                and (path := path_of(loc.group(1)))
            ):
                out[path] = max(most, out.get(path, 0))
    return out


def _loops(text: str) -> list[_Loop]:
    found: list[_Loop] = []
    around: list[_Loop | None] = []  # the loop that the lines of each open region belong to
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("}") and around:
            around.pop()
        if around and around[-1] is not None:
            around[-1].lines.append(line)
        if not line.endswith("{"):
            continue
        if "scf.for " in line:
            arguments = _ARGUMENTS.search(line)
            found.append(_Loop(re.findall(r"(%[\w$.#]+) = ", arguments.group(1)) if arguments else []))
            around.append(found[-1])
        else:
            around.append(around[-1] if around else None)
    return found


def _handed_on(loop: _Loop) -> set[str]:
    """The loop's arguments that hold what an iteration has loaded for a later one."""
    known = {m.group(1) for line in loop.lines if (m := _LOAD.match(line))}
    yields = [line for line in loop.lines if line.startswith("scf.yield")]
    handed = list(zip(loop.arguments, _NAME.findall(yields[-1].partition(" : ")[0]))) if yields else []
    for _ in handed:  # each step is one iteration further
        known |= {argument for argument, value in handed if value in known}
    return known & set(loop.arguments)


def _most_bytes(lines: list[str], handed_on: set[str]) -> int:
    """The greatest sum of allocations with a value that are in use at the same line."""
    made = {m.group(1): (m.group(2), m.group(3)) for line in lines if (m := _DEFINITION.match(line))}
    in_use: dict[str, tuple[int, int]] = {}  # allocation -> its bytes, its last line
    most = 0
    last = {name: i for i, line in enumerate(lines) for name in _NAME.findall(line)}
    for i, line in enumerate(lines):
        if (m := _DEFINITION.match(line)) and m.group(2) == "ttg.memdesc_trans" and m.group(3) in in_use:
            bytes_, end = in_use[m.group(3)]
            in_use[m.group(3)] = bytes_, max(end, last[m.group(1)])
        if (m := _ALLOC.match(line)) and _source(m.group(2), made) not in handed_on:
            elements = math.prod(int(size) for size in m.group(3)[:-1].split("x"))
            in_use[m.group(1)] = elements * int(m.group(4)) // 8, last[m.group(1)]
            most = max(most, sum(bytes_ for bytes_, end in in_use.values() if end >= i))
    return most


def _source(name: str, made: dict[str, tuple[str, str]]) -> str:
    while name in made and made[name][0] in _MOVES:
        name = made[name][1]
    return name
