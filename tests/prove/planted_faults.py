"""Faults planted in modules: each is one change of one operation, of the kind that people and translators make.

Whoever proves one of them runs it on the reference machine, which says whether it changes anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gluonize.trace.model.parse import parse_module

VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
INTEGER = re.compile(r"arith\.constant (?:dense<)?(-?\d+)>? : (?:tensor<[\dx]*)?i(?:8|16|32|64)\b")
CHANGES = {
    "arith.cmpi slt": ["arith.cmpi sle", "arith.cmpi ult", "arith.cmpi sgt"],
    "arith.cmpi sge": ["arith.cmpi sgt", "arith.cmpi slt"],
    "arith.cmpi sle": ["arith.cmpi slt"],
    "arith.cmpi sgt": ["arith.cmpi sge"],
    "arith.cmpi eq": ["arith.cmpi ne"],
    "arith.addi": ["arith.subi"],
    "arith.subi": ["arith.addi"],
    "arith.muli": ["arith.addi"],
    "arith.minsi": ["arith.maxsi", "arith.minui"],
    "arith.maxsi": ["arith.minsi"],
    "arith.minui": ["arith.minsi", "arith.maxui"],
    "arith.remsi": ["arith.divsi", "arith.remui"],
    "arith.divsi": ["arith.remsi", "arith.divui"],
    "arith.extsi": ["arith.extui"],
    "arith.extui": ["arith.extsi"],
    "arith.addf": ["arith.subf", "arith.mulf"],
    "arith.subf": ["arith.addf"],
    "arith.mulf": ["arith.addf"],
    "arith.divf": ["arith.mulf"],
    "arith.maxnumf": ["arith.minnumf"],
    "arith.minnumf": ["arith.maxnumf"],
    "arith.andi": ["arith.ori"],
    "arith.ori": ["arith.andi"],
    "math.exp2": ["math.exp"],
    "math.exp ": ["math.exp2 "],
    "math.sqrt": ["math.rsqrt"],
    "fadd": ["fmax"],
}
SWAPPED = (
    "arith.subf",
    "arith.subi",
    "arith.divf",
    "arith.divsi",
    "arith.remsi",
    "arith.cmpi",
    "arith.cmpf",
    "tt.dot",
    "arith.select",
)


@dataclass(frozen=True)
class Fault:
    """line: of the module, from 1. what: in words. lines: of the whole module without the fault; new: the line with it, None where it is left
    out."""

    line: int
    what: str
    lines: list[str]
    new: str | None

    @property
    def text(self) -> str:
        """The module with the fault."""
        new = [] if self.new is None else [self.new]
        return "\n".join([*self.lines[: self.line - 1], *new, *self.lines[self.line :]]) + "\n"


def faults(text: str) -> Iterator[Fault]:
    """All faults of a printed module, in the order of its lines."""
    lines = text.splitlines()
    kinds = _kinds(text)

    def made(number: int, new: str | None, what: str) -> Fault:
        return Fault(number + 1, what, lines, new)

    for number, line in enumerate(lines):
        body = line.strip()
        if " = arith.constant" in line and (found := INTEGER.search(line)):
            for by in (1, -1):
                value = str(int(found.group(1)) + by)
                yield made(
                    number,
                    line[: found.start(1)] + value + line[found.end(1) :],
                    f"constant {found.group(1)} is {value}",
                )
        for before, afters in CHANGES.items():
            if re.search(rf"(?<![\w.]){re.escape(before)}", line):
                for after in afters:
                    yield made(number, line.replace(before, after, 1), f"{before.strip()} is {after.strip()}")
        if found := re.search(r"_wait\s*(?:%\S+ )?\{num = (\d+)", line):
            more = line[: found.start(1)] + str(int(found.group(1)) + 1) + line[found.end(1) :]
            yield made(number, more, "a wait waits for one less")
            if VALUE.match(body) and lines and _unused(lines, body.split(" ")[0]):
                yield made(number, None, "a wait is left out")
        if re.match(r"(?:%\S+ = )?(?:ttg\.barrier|gpu\.barrier|ttg\.async_commit_group)", body):
            if not VALUE.match(body) or _unused(lines, body.split(" ")[0]):
                yield made(number, None, "a barrier or commit is left out")
        if re.match(r"(?:tt\.store|amdg\.buffer_store|ttg\.local_store)", body):
            yield made(number, None, "a store is left out")
        if body.startswith("%") and any(f" = {name} " in body for name in SWAPPED):
            values = list(VALUE.finditer(line.partition(" = ")[2]))[:3]
            offset = len(line.partition(" = ")[0]) + 3
            first, second = values[-2:] if " arith.select " in line else values[:2]
            same = " tt.dot " not in line or kinds.get(first.group()) == kinds.get(second.group())
            if first.group() != second.group() and same:
                a, b = offset + first.start(), offset + second.start()
                swapped = (
                    line[:a]
                    + second.group()
                    + line[offset + first.end() : b]
                    + first.group()
                    + line[offset + second.end() :]
                )
                yield made(number, swapped, "operands are swapped")
        yield from _other_operands(lines, number, line, kinds, made)
        if " mask = " in line:
            yield made(number, re.sub(r" mask = %\S+", "", line, count=1), "a mask is left out")
        if re.search(r"amdg\.buffer_(load|store) ", line) and (found := re.search(r"\](?:, (%\S+?))(?=[, ])", line)):
            yield made(number, line[: found.start(1) - 2] + line[found.end(1) :], "a mask is left out")


def _unused(lines: list[str], name: str) -> bool:
    return sum(len(re.findall(rf"{re.escape(name)}(?![\w$.\-#])", line)) for line in lines) == 1


def _kinds(text: str) -> dict[str, str]:
    """The type of what each operation gives; not of a name that two regions have, each for something else."""
    out: dict[str, str] = {}
    made = Counter(re.findall(r"(%[\w$.\-]+)(?::\d+)? = ", text))
    for op in parse_module(text).walk():
        for name, kind in zip(op.results, op.result_types):
            token = "_copy_" in op.name or "_to_local" in op.name  # what they print is the type of what they fill
            if made[name.partition("#")[0]] > 1:
                continue
            out[name] = "token" if token else repr((kind.kind, kind.element, kind.shape, kind.layout))
    return out


def _other_operands(lines: list[str], number: int, line: str, kinds: dict[str, str], made) -> Iterator[Fault]:
    """One operand is another value of its type: the last one made before it."""
    head, found, rest = line.partition(" = ")
    if not found:
        head, rest = "", line
    start = len(line) - len(rest)
    indent = len(line) - len(line.lstrip())
    for value in VALUE.finditer(rest):
        kind = kinds.get(value.group())
        if kind is None:
            continue
        least = indent
        for before in reversed(range(max(0, number - 60), number)):
            other = lines[before]
            if len(other) - len(other.lstrip()) > least:
                continue  # in a region that is closed
            if other.endswith("{"):
                continue  # around this one: what it gives is not there yet
            least = len(other) - len(other.lstrip())
            name = other.strip().split(" ")[0]
            if name != value.group() and kinds.get(name) == kind and name != head.strip():
                a, b = start + value.start(), start + value.end()
                yield made(number, line[:a] + name + line[b:], f"{value.group()} is {name}")
                break
