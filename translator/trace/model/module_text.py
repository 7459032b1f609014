"""Printed TTGIR as text to edit, one operation per line, as `module.str()` writes it: nothing else changes what a module says.

What a line, a layout or a type says is asked of the model (`parse_module`, `parse_op`, `parse_attribute`); here one text is put in
place of another. Modules stay text because they go back to Triton, which takes nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gluonize.trace.model.attributes import Attribute, parse_attribute
from gluonize.trace.model.layouts import Bases, Linear, Wmma, layout_of, lists
from gluonize.trace.model.op import Op
from gluonize.trace.model.op_text import VALUE, VALUES
from gluonize.trace.model.parse import parse_op
from gluonize.trace.model.types import Type, parse_type, split_top, types_in

OPENING, CLOSING = "([{<", ")]}>"
_OP_NAME = re.compile(rf'(?:{VALUE}(?::\d+)?(?:, {VALUE}(?::\d+)?)* = )?"?([a-z_0-9]+\.[a-z_0-9.]+)"?')
_LAYOUT = re.compile(r"#ttg\.\w+<")
_RESULT = re.compile(rf"(\s*)({VALUE})(?::\d+)? = ")
_PARTITION = re.compile(r"\) num_warps\((\d+)\)")
_CTAS = re.compile(r"CGALayout = \[\[.*?\]\]")
_FILE = re.compile(r'^#loc = loc\("([^"]+)":', re.MULTILINE)
_DEFINITION = re.compile(r"^(#\w+) = (.*)$", re.MULTILINE)


def without_locations(text: str) -> str:
    """The module without `loc(...)` and `#loc` lines."""
    lines = [_drop_locations(line).rstrip() for line in text.splitlines() if not line.startswith("#loc")]
    return "\n".join(lines) + "\n"


def with_file(text: str, path: str) -> str:
    """The module of a function, which says that this file has it. Triton compiles equal texts once: what it kept may be of a copy."""
    found = _FILE.search(text)
    if found is None or found[1] == path or os.path.basename(found[1]) != os.path.basename(path):
        return text
    return text.replace(f'loc("{found[1]}":', f'loc("{path}":')


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


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _balanced_end(text: str, start: int) -> int:
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


# Operations.


def ops_named(text: str, *names: str) -> Iterator[Op]:
    """The operations of these names, which have no regions."""
    return (parse_op(line) for line in text.splitlines() if op_name(line) in names)


def with_ops(text: str, names: Container[str], change: Callable[[Op, str], list[str] | None]) -> str:
    """The module with other lines, without indentation, in place of operations of these names; change: of an operation and its line;
    None leaves it."""
    out = []
    for line in text.splitlines():
        made = change(parse_op(line), line.strip()) if op_name(line) in names else None
        out += [line] if made is None else [indent_of(line) + new for new in made]
    return "\n".join(out) + "\n"


def rank_of(text: str, alias: str) -> int | None:
    """The rank of the tensors, not of pointers, whose layout is `alias` itself; None without any."""
    kinds = (kind for line in text.splitlines() if f", {alias}>" in line for kind in types_in(line, "tensor<"))
    return next((len(kind.shape) for kind in kinds if kind.layout == alias and kind.kind != "ptr"), None)


# Values and lists of them.


def renamed(line: str, names: Mapping[str, str]) -> str:
    """The line with other names for values."""
    return VALUES.sub(lambda found: names.get(found.group(), found.group()), line) if names else line


def result_of(line: str) -> str:
    """The name of the results of an operation, without their number."""
    return _RESULT.match(line).group(2)  # type: ignore[union-attr]


def with_results(line: str, count: int) -> str:
    """The line of an operation with so many results."""
    return _RESULT.sub(rf"\g<1>\g<2>:{count} = ", line, count=1)


@dataclass(frozen=True)
class Listed:
    """A line with a list in brackets: what stands before its items, the items, and what follows."""

    before: str
    items: tuple[str, ...]
    after: str

    @classmethod
    def of(cls, line: str, opening: str = "(") -> Listed | None:
        """The first list that begins with `opening`, which ends in its bracket; None without one."""
        start = line.find(opening) + len(opening)
        if start < len(opening):
            return None
        end = _balanced_end(line, start - 1) - 1
        return cls(line[:start], tuple(split_top(line[start:end])), line[end:])

    def printed(self, items: Sequence[str]) -> str:
        """The line with these items."""
        return f"{self.before}{', '.join(items)}{self.after}"


def is_descriptor(kind: str) -> bool:
    """Whether a printed type is that of a tensor descriptor."""
    return parse_type(kind).kind == "desc"


def partition_warps(line: str) -> int | None:
    """The warps of the partition that a line begins, None of another line."""
    found = _PARTITION.search(line)
    return int(found.group(1)) if found else None


# Attributes.


def without_attribute(line: str, name: str) -> str:
    """The line without the attribute `name`; `name*` stands for all that begin like that."""
    pattern = re.escape(name).replace(r"\*", r"\w+")
    line = re.sub(rf',? ?"?{pattern}"? = \w+(?: : i\d+)?', "", line)
    return line.replace("{, ", "{").replace(" {}", "")


def without_attributes(line: str) -> str:
    """The line without its `attributes {...}`."""
    return re.sub(r" attributes \{[^}]*\}", "", line)


def with_number(line: str, name: str, value: int) -> str:
    """The line of a module with another value of an attribute."""
    return re.sub(rf'("{re.escape(name)}" = )\d+', rf"\g<1>{value}", line)


def with_target(line: str, target: str) -> str:
    """The line of a module that is for another target."""
    return re.sub(r'(ttg\.target = )"[^"]*"', rf'\g<1>"{target}"', line)


# Layouts.


def definitions(text: str) -> dict[str, str]:
    """`{"#mma": "#ttg.amd_mfma<...>"}` from the lines at the top of the module."""
    return {name: value for name, value in _DEFINITION.findall(text) if not name.startswith("#loc")}


def with_layouts(text: str, change: Callable[[Attribute, str], str | None]) -> str:
    """The module with other layouts, wherever one is spelled out. change: of what a layout says and its text gives the new text; None
    where it stays but for layouts in it."""
    out, at = [], 0
    for found in _LAYOUT.finditer(text):
        if found.start() < at:
            continue
        end = _balanced_end(text, found.end() - 1)
        body = text[found.start() : end]
        if (new := change(parse_attribute(body), body)) is not None:
            out += [text[at : found.start()], new]
            at = end
    return "".join(out) + text[at:]


def with_ctas(text: str, change: Callable[[Bases], Bases]) -> str:
    """The module with layouts, in the definitions at its top, that CTAs of a cluster share in another way."""
    return "".join(_shared_otherwise(line, change) for line in text.splitlines(keepends=True))


def _shared_otherwise(line: str, change: Callable[[Bases], Bases]) -> str:
    found = _CTAS.search(line) if line.startswith("#") else None
    if found is None:
        return line
    ctas = parse_attribute(f"{{{found.group()}}}").get("CGALayout")
    return f"{line[: found.start()]}CGALayout = {lists(change(ctas))}{line[found.end() :]}"


def of_layout(line: str, kind: Type, alias: str) -> str:
    """The line with tensors of another layout in place of those of type `kind`."""
    return line.replace(kind.printed, replace(kind, layout=alias).printed)


def with_lines(lines: Iterable[str], definitions: Iterable[str]) -> str:
    """The module of these lines, with further definitions of layouts in front of it."""
    lines = list(lines)
    first = next(i for i, line in enumerate(lines) if line.startswith("module"))
    return "\n".join([*lines[:first], *definitions, *lines[first:]]) + "\n"


def with_tiles_of_all(text: str, bits: int) -> str:
    """The module with layouts of one CTA, in the definitions at its top, as those that `1 << bits` of them have."""
    return "".join(_of_all(line, bits) for line in text.splitlines(keepends=True))


def _of_all(line: str, bits: int) -> str:
    if not line.startswith("#") or " = #ttg." not in line:
        return line
    layout = layout_of(parse_attribute(line.partition(" = ")[2]))
    whole = lists(((0,) * layout.rank,) * bits)
    if isinstance(layout, Linear):
        return line.replace("block = []", f"block = {whole}")
    if isinstance(layout, Wmma) and "instrShape" in line:
        return line.replace("instrShape", f"CGALayout = {whole}, instrShape")
    return line.replace("}>", f", CGALayout = {whole}}}>")


def printed(op: Op, name: str = "") -> str:
    """An operation as it is printed, without its results; name: another one of the same form."""
    return f"{name or op.name}{op.text}"


def turned(op: Op, result: str, operand: str, source: str, target: str) -> str:
    """The line of an operation on one tensor, with its attributes, for another tensor of type `source`."""
    return f"{result} = {op.name} {operand}{op.body.removeprefix(op.operands[0])} : {source} -> {target}"


def with_operand(line: str, value: str, other: str) -> str:
    """The line with another value in the first place that names `value`."""
    return re.sub(re.escape(value) + r"(?![\w#])", other, line, count=1)
