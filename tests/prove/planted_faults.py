"""Faults planted in modules: each is one change of one operation, of the kind that people and translators make.

Whoever proves one of them runs it on the reference machine, which says whether it changes anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
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
LOAD = re.compile(r" +%\S+ = (?:tt\.load|tt\.descriptor_load|amdg\.buffer_load|ttg\.local_load) ")
STORE = re.compile(
    r" +(?:%\S+ = )?(?:tt\.store|tt\.descriptor_store|amdg\.buffer_store|ttg\.local_store|\S*atomic_rmw\S*) "
)
DIVIDES = re.compile(r" +%\S+ = arith\.(?:div|rem)[su]i ")
REGION = re.compile(r" +(?:%\S+ = )?scf\.(?:for|if) ")
HINT = re.compile(r"tt\.divisibility = dense<\[?([\d, ]+)\]?>")
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
    """line: of the module, from 1. what: in words. lines: of the whole module without the fault; changes: what stands in the place of some of
    them. promised: it says more of a number than is known, which nobody who runs it sees."""

    line: int
    what: str
    lines: list[str]
    changes: Mapping[int, Sequence[str]]
    promised: bool = False

    @property
    def text(self) -> str:
        """The module with the fault."""
        own = ([line] if n not in self.changes else self.changes[n] for n, line in enumerate(self.lines))
        return "\n".join(line for lines in own for line in lines) + "\n"


def faults(text: str) -> Iterator[Fault]:
    """All faults of a printed module, in the order of its lines."""
    lines = text.splitlines()
    kinds = _kinds(text)

    def made(number: int, new: str | None, what: str) -> Fault:
        return Fault(number + 1, what, lines, {number: [] if new is None else [new]})

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
        yield from _moves(lines, number)
        yield from _promises(lines, number)


def _moves(lines: list[str], number: int) -> Iterator[Fault]:
    """A load over the store before it, a store over the one before it, and what traps or reads out of its loop or branch."""
    line = lines[number]
    is_load, is_store = LOAD.match(line), STORE.match(line)
    if not (is_load or is_store or DIVIDES.match(line)):
        return
    uses = set(VALUE.findall(line.partition(" = ")[2] or line)) | {x.partition("#")[0] for x in VALUE.findall(line)}
    indent = _indent(line)
    for before in reversed(range(number)):
        other = lines[before]
        if _indent(other) > indent:
            return  # a region in between
        if _indent(other) < indent:
            if (is_load or not is_store) and other.endswith("{") and REGION.match(other) and not _binds(other, uses):
                yield Fault(number + 1, "hoisted", lines, {before: [line[2:], other], number: []})
            return
        if (is_load or is_store) and STORE.match(other):
            what = f"a {'load' if is_load else 'store'} is moved over a store"
            yield Fault(number + 1, what, lines, {before: [line, other], number: []})
            is_load = is_store = None
        if _binds(other, uses):
            return


def _promises(lines: list[str], number: int) -> Iterator[Fault]:
    """A hint that says more than its like, one that was not there, and a condition that is assumed."""
    line = lines[number]
    for found in HINT.finditer(line):
        more = re.sub(r"\d+", lambda x: str(int(x.group()) << 12), found.group(1))
        new = line[: found.start(1)] + more + line[found.end(1) :]
        yield Fault(number + 1, "a hint says more", lines, {number: [new]}, True)
    if re.match(r" +%\S+ = arith\.(?:addi|muli) ", line) and "tt.divisibility" not in line:
        rank = line.partition("tensor<")[2].partition(",")[0].count("x") or 1
        told = f" {{tt.divisibility = dense<65536> : tensor<{rank}xi32>}} : "
        if " : i32" in line or "xi32" in line:
            yield Fault(number + 1, "a hint of its own", lines, {number: [line.replace(" : ", told, 1)]}, True)
    if re.match(r" +%\S+ = arith\.cmpi .* : i(?:32|64)\b", line):
        assumed = f"{line[: _indent(line)]}llvm.intr.assume {line.split()[0]} : i1"
        yield Fault(number + 1, "assumed", lines, {number: [line, assumed]})


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _binds(line: str, names: Set[str]) -> bool:
    """Whether a line makes one of the values."""
    head, _, rest = line.partition(" = ")
    bound = set(re.findall(r"(%[\w$.\-]+)(?::\d+)?", head)) if rest else set()
    if line.endswith("{"):
        bound |= set(re.findall(r"(%[\w$.\-]+) =", rest)) | set(re.findall(r"(%[\w$.\-]+):", rest))
    return not bound.isdisjoint(names)


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
