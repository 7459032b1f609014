"""Printed TTIR or TTGIR -> functions, blocks and operations.

`module.str()` prints one operation per line, which is all this parser relies on; no MLIR library is involved, so a module can
be read in any process.
"""

from __future__ import annotations

import re
from dataclasses import replace

from gluonize.trace.model.attributes import Attribute, parse_attribute
from gluonize.trace.model.locations import UNKNOWN, Locations, strip_locations
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.op import Block, Op, Region
from gluonize.trace.model.op_text import VALUE
from gluonize.trace.model.types import parse_type, split_top

_RESULT = re.compile(rf"^({VALUE})(?::(\d+))?((?:, {VALUE}(?::\d+)?)*) = ")
_NAME = re.compile(r'"?([A-Za-z_][A-Za-z_0-9.]*)"?')
_FUNCTION = re.compile(r"@(\"[^\"]*\"|[\w$.\-]+)\(")
_ARGUMENT_NAME = re.compile(r'(%[\w$.\-]+): [^%]*?loc\("([^"]*)"\(')
_MODULE_ATTRIBUTE = re.compile(r'"?(ttg\.[\w-]+)"? = ([^,}]+)')


class ParseError(Exception):
    """Text that is not printed Triton IR as this version knows it."""


def parse_module(text: str, file: str = "") -> Module:
    """Read a printed module. `file` is the file that places should be reported in when helpers were inlined.

    Raises: ParseError.
    """
    return _Reader(text, file).module()


def parse_op(line: str) -> Op:
    """An operation without regions from its line. Raises: ParseError."""
    return _Reader(line, "").op(line.strip())


class _Reader:
    def __init__(self, text: str, file: str):
        self.text = text
        self.lines = text.splitlines()
        self.locations = Locations.of(self.lines)
        self.locations = Locations(self.locations.table, file or self._file())
        self.at = 0

    def _file(self) -> str:
        """The file of the first function that has a body: its place stands behind the closing brace."""
        closing = None
        for line in self.lines:
            if closing is None and line.lstrip().startswith("tt.func") and line.rstrip().endswith("{"):
                closing = line[: len(line) - len(line.lstrip())] + "}"
            elif closing is not None and line.startswith(closing):
                return self.locations.resolve(strip_locations(line)[1]).file
        return ""

    def module(self) -> Module:
        functions, entry, attributes = {}, None, {}
        aliases = {}
        for line in self.lines:
            if line.startswith("#") and not line.startswith("#loc"):
                name, _, value = line.partition(" = ")
                aliases[name] = value
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line.startswith("module"):
                for key, value in _MODULE_ATTRIBUTE.findall(line):
                    attributes[key] = value.strip().strip('"')
            if line.startswith("tt.func"):
                function = self.function()
                functions[function.name] = function
                if " public " in line or entry is None:
                    entry = function
                continue
            self.at += 1
        if entry is None:
            raise ParseError("no tt.func in the module")
        return Module(functions, entry, attributes, self.text, aliases)

    def function(self) -> Function:
        raw = self.lines[self.at].strip()
        named = dict(_ARGUMENT_NAME.findall(raw))
        line, _ = strip_locations(raw)
        found = _FUNCTION.search(line)
        name = found.group(1).strip('"')
        start = found.end()
        depth, end = 1, start
        while depth:
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        arguments, attributes = [], []
        for part in split_top(line[start : end - 1]):
            if part:
                value, _, rest = part.partition(": ")
                kind, _, extra = rest.partition(" {")
                arguments.append((value, parse_type(kind)))
                attributes.append(parse_attribute("{" + extra) if extra else Attribute())
        self.at += 1
        if not line.rstrip().endswith("{"):
            return Function(name, tuple(arguments), tuple(attributes), (), Region())
        region, tail = self.region("")
        place = self.locations.resolve(strip_locations(tail)[1]) if tail else UNKNOWN
        names = tuple(named.get(a, a[1:]) for a, _ in arguments)
        stays = "noinline = true" in line[end:]
        return Function(name, tuple(arguments), tuple(attributes), names, region, place, stays)

    def region(self, head: str) -> tuple[Region, str]:
        """Operations up to the closing brace; -> the region and the rest of the closing line."""
        blocks: list[Block] = []
        start, ops = Block(), []
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            self.at += 1
            if not line or line.startswith("//"):
                continue
            if line[0] == "}":
                blocks.append(replace(start, ops=tuple(ops)))
                return Region(head, tuple(blocks)), line[1:]
            if line[0] == "^":
                if start.label or ops:
                    blocks.append(replace(start, ops=tuple(ops)))
                start, ops = self.block(line), []
                continue
            ops.append(self.op(line))
        raise ParseError("a region is not closed")

    def block(self, line: str) -> Block:
        """`^bb1(%x: i32, %y: f32):`, still without operations."""
        line, _ = strip_locations(line)
        label, _, rest = line.partition("(")
        arguments = []
        if rest:
            inside = rest.rsplit("):", 1)[0] if "):" in rest else rest.rsplit(")", 1)[0]
            for part in split_top(inside):
                value, _, kind = part.partition(": ")
                arguments.append((value, parse_type(kind)))
        return Block(label.split(":")[0].strip(), tuple(arguments))

    def op(self, line: str) -> Op:
        number = self.at
        text, location = strip_locations(line)
        results: list[str] = []
        found = _RESULT.match(text)
        if found:
            for part in text[: found.end() - 3].split(", "):
                name, _, count = part.partition(":")
                results += [f"{name}#{i}" for i in range(int(count))] if count else [name]
            text = text[found.end() :]
        named = _NAME.match(text)
        if not named:
            raise ParseError(f"line {number}: {line}")
        name, text = named.group(1), text[named.end() :].rstrip()
        regions: list[Region] = []
        tail = ""
        if name == "ttg.warp_specialize":
            regions, tail = self.partitions()
            tail, _ = strip_locations(tail)
        elif text.endswith("{"):
            text = text[:-1].rstrip()
            region, rest = self.region("")
            regions.append(region)
            while rest.rstrip().endswith("{"):
                region, rest = self.region(rest.rstrip()[:-1].strip())
                regions.append(region)
            tail, location = strip_locations(rest)
        return Op(name, tuple(results), text, tuple(regions), tail, number, self.at, location, self.locations)

    def partitions(self) -> tuple[list[Region], str]:
        """`default {` and `partition0(...) num_warps(4) {` regions, each headed by a line of its own; -> and the last line's rest."""
        regions: list[Region] = []
        tail = ""
        while not tail.strip():
            line, _ = strip_locations(self.lines[self.at].strip())
            self.at += 1
            head = line.rstrip()[:-1].strip()
            region, tail = self.region(head)
            if head.startswith("partition"):
                inside = head[head.index("(") + 1 : head.rindex(" num_warps") - 1]
                pieces = (part.partition(": ") for part in split_top(inside) if part)
                arguments = tuple((value.strip(), parse_type(kind)) for value, _, kind in pieces)
                region = replace(region, blocks=(replace(region.blocks[0], arguments=arguments), *region.blocks[1:]))
            regions.append(region)
        return regions, tail
