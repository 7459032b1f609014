"""Printed TTIR or TTGIR -> functions, blocks and ops.

`module.str()` prints one op per line, which is all this parser relies on; no MLIR library is involved, so a module can
be read in any process. What an op's operands mean is left to the op tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Callable

from translator.validate.locations import UNKNOWN, Locations, Place, strip_locations
from translator.validate.types import Type, parse_type, split_top

VALUE = r"%[A-Za-z0-9_$.\-]+(?:#\d+)?"
VALUES = re.compile(VALUE)
RESULT = re.compile(rf"^({VALUE})(?::(\d+))?((?:, {VALUE}(?::\d+)?)*) = ")
NAME = re.compile(r'"?([A-Za-z_][A-Za-z_0-9.]*)"?')
ARGUMENT = re.compile(rf"({VALUE}): ")


class ParseError(Exception):
    """Text that is not printed Triton IR as this version knows it."""


@dataclass
class Block:
    """Ops in order; `arguments` are (value, type)."""

    label: str = ""
    arguments: list[tuple[str, Type]] = field(default_factory=list)
    ops: list["Op"] = field(default_factory=list)


@dataclass
class Region:
    """Blocks of one `{...}`; `head` is the text before the brace (`else`, `do`, `partition0(...)`)."""

    head: str = ""
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Op:
    """One op. `text` is what follows its name on the line, without location; `tail` what follows its last region."""

    name: str
    results: tuple[str, ...]
    text: str
    locate: Callable[[], Place] = lambda: UNKNOWN
    regions: list[Region] = field(default_factory=list)
    tail: str = ""
    line: int = 0
    attributes: dict = field(default_factory=dict)

    @cached_property
    def place(self) -> Place:
        return self.locate()

    @cached_property
    def has_promises(self) -> bool:
        """Whether the op carries what `multiple_of` and its like promise of its result."""
        return "tt.divisibility" in self.text or "tt.contiguity" in self.text or "tt.constancy" in self.text

    @cached_property
    def scratch(self) -> tuple[int, int] | None:
        """First byte and end of the shared memory that the op uses for itself, None without any."""
        if "allocation.size" not in self.text and "allocation.size" not in self.tail:
            return None
        begin = self.attribute("allocation.offset", 0)
        return begin, begin + self.attribute("allocation.size")

    @cached_property
    def placed_at(self) -> tuple[int, ...]:
        """First byte of each piece of shared memory that the op allocates; nothing where that is not known."""
        found = re.search(r"allocation\.offset = (?:\[([^\]]*)\]|(\d+))", self.text + self.tail)
        texts = (found.group(1) or found.group(2)).split(",") if found else []
        return tuple(int(text.split(":")[0]) for text in texts)

    @cached_property
    def body(self) -> str:
        """The text before the types."""
        return split_top(self.text, " : ")[0]

    @cached_property
    def signature(self) -> str:
        """The text of the types: behind the last top-level ` : `, of the tail for ops printed around a region."""
        text = self.tail if self.tail.startswith(" : ") or " : (" in self.tail else self.text
        parts = split_top(text, " : ")
        return parts[-1] if len(parts) > 1 else ""

    @cached_property
    def operands(self) -> tuple[str, ...]:
        return tuple(VALUES.findall(self.body))

    @cached_property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(_result_types(self))

    @property
    def type(self) -> Type:
        """The type of the first result."""
        return self.result_types[0]

    @cached_property
    def operand_types(self) -> tuple[Type, ...]:
        """Types that stand before `->`, `to` or alone, in printed order (not always one per operand)."""
        text = self.signature
        for arrow in ("->", " to "):
            parts = split_top(text, arrow)
            if len(parts) > 1:
                text = parts[0]
                break
        text = text.strip()
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1]
        return tuple(parse_type(part) for piece in split_top(text, " * ") for part in split_top(piece) if part)

    def attribute(self, name: str, default=None):
        """Integer, boolean or string attribute `name`; `default` when it is not printed."""
        if name not in self.attributes:
            self.attributes[name] = self._attribute(name)
        value = self.attributes[name]
        return default if value is None else value

    def _attribute(self, name: str):
        found = re.search(rf"(?<![\w.]){re.escape(name)} = ([^,}}>]+(?:<[^>]*>)?)", self.text + self.tail)
        if not found:
            if re.search(rf"[{{,] ?{re.escape(name)}[,}}]", self.text):
                return True
            return None
        value = found.group(1).split(" : ")[0].strip()
        if value in ("true", "false"):
            return value == "true"
        if re.fullmatch(r"-?\d+", value):
            return int(value)
        return value.strip('"')

    def integers(self, name: str) -> tuple[int, ...]:
        """Attribute `name = array<i32: 1, 0>` or `[1, 0]`."""
        found = re.search(rf"(?<![\w.]){re.escape(name)} = (?:array<i\d+: ?([^>]*)>|\[([^\]]*)\])", self.text)
        if not found:
            return ()
        return tuple(int(x) for x in (found.group(1) or found.group(2) or "").split(",") if x.strip())

    def keyword(self, name: str) -> int | None:
        """Index of the operand that follows the word `name` (`mask = %3`, `mask %3`), or None."""
        found = re.search(rf"(?<![\w.%]){name}(?: =)? ?({VALUE})", self.body)
        return len(VALUES.findall(self.body[: found.start(1)])) if found else None

    def bracket(self, which: int = 0) -> tuple[int, int]:
        """Operand indices [first, last) of the values in the `which`-th pair of square brackets."""
        position = -1
        for _ in range(which + 1):
            position = self.body.index("[", position + 1)
        end = self.body.index("]", position)
        before = len(VALUES.findall(self.body[:position]))
        return before, before + len(VALUES.findall(self.body[position:end]))

    def __str__(self) -> str:
        return f"{self.name} ({self.place})"


@dataclass
class Function:
    name: str
    arguments: list[tuple[str, Type]]
    argument_attributes: list[str]
    argument_names: list[str]
    region: Region
    place: Place = UNKNOWN


@dataclass
class Module:
    functions: dict[str, Function]
    entry: Function
    attributes: dict[str, str]
    text: str
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def warps(self) -> int:
        return int(self.attributes.get("ttg.num-warps", "1").split(" ")[0])

    @property
    def lanes(self) -> int:
        return int(self.attributes.get("ttg.threads-per-warp", "1").split(" ")[0])

    @property
    def target(self) -> str:
        """`gfx950`; "" in TTIR."""
        return self.attributes.get("ttg.target", "").rpartition(":")[2]


POINTER_RESULT = {"tt.load": 1, "tt.atomic_rmw": 0}
COMPARE = {"arith.cmpi", "arith.cmpf"}


def _result_types(op: Op):
    if not op.results:
        return
    text = op.signature
    count = len(op.results)
    if op.name == "scf.for":
        # `iter_args(...) -> (types)  : i32 {`
        found = re.search(r"-> \((.*)\)", op.text)
        yield from (parse_type(t) for t in split_top(found.group(1)))
        return
    if op.name == "scf.if":
        found = re.search(r"-> \((.*)\)", op.text)
        yield from (parse_type(t) for t in split_top(found.group(1)))
        return
    parts = split_top(text, "->")
    if len(parts) > 1:
        out = parts[-1].strip()
        out = out[1:-1] if out.startswith("(") else out
        types = [parse_type(t) for t in split_top(out)]
    else:
        parts = split_top(text, " to ")
        types = [parse_type(t) for t in split_top(parts[-1])] if text else [Type("token")]
        if op.name == "arith.select":
            types = types[-1:]
        elif op.name in COMPARE:
            types = [Type("int", "i1", types[0].shape, types[0].layout)]
        elif op.name == "tt.load":
            types = [pointee(types[0])]
        elif op.name == "tt.make_tensor_descriptor":
            types = [replace(types[-1], kind="desc")]
        elif op.name == "tt.unsplat":
            types = [Type(types[0].kind, types[0].element)]
        elif op.name == "arith.constant" and not text:
            types = [Type("int", "i1")]
    if len(types) < count:
        types = types[:1] * count
    yield from types[:count]


def pointee(pointer: Type) -> Type:
    """tensor<8x!tt.ptr<f16>> -> tensor<8xf16>."""
    scalar = parse_type(pointer.element)
    return Type(scalar.kind, scalar.element, pointer.shape, pointer.layout)


def parse_module(text: str, file: str = "") -> Module:
    """Read a printed module. `file` is the file that places should be reported in when helpers were inlined."""
    return _Reader(text, file).module()


class _Reader:
    def __init__(self, text: str, file: str):
        self.text = text
        self.locations = Locations(text)
        self.file = file
        self.lines = text.splitlines()
        self.at = 0
        self.aliases = {}
        for line in self.lines:
            if line.startswith("#") and not line.startswith("#loc"):
                name, _, value = line.partition(" = ")
                self.aliases[name] = value

    def place(self, location: str) -> Place:
        return self.locations.resolve(location, self.file) if location else UNKNOWN

    def module(self) -> Module:
        functions, entry, attributes = {}, None, {}
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line.startswith("module"):
                for key, value in re.findall(r'"?(ttg\.[\w-]+)"? = ([^,}]+)', line):
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
        return Module(functions, entry, attributes, self.text, self.aliases)

    def function(self) -> Function:
        raw = self.lines[self.at].strip()
        names = re.findall(r'(%[\w$.\-]+): [^%]*?loc\("([^"]*)"\(', raw)
        line, _ = strip_locations(raw)
        found = re.search(r"@(\"[^\"]*\"|[\w$.\-]+)\(", line)
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
                attributes.append(extra.rstrip("}"))
        named = dict(names)
        if not line.rstrip().endswith("{"):
            self.at += 1
            return Function(name, arguments, attributes, [], Region())
        self.at += 1
        region, tail = self.region("")
        place = self.place(strip_locations(tail)[1]) if tail else UNKNOWN
        if not self.file:
            self.file = place.file
        return Function(name, arguments, attributes, [named.get(a, a[1:]) for a, _ in arguments], region, place)

    def region(self, head: str) -> tuple[Region, str]:
        """Ops up to the closing brace; -> the region and the rest of the closing line."""
        region = Region(head, [Block()])
        while self.at < len(self.lines):
            raw = self.lines[self.at]
            line = raw.strip()
            self.at += 1
            if not line or line.startswith("//"):
                continue
            if line.startswith("}"):
                if region.blocks[0] == Block() and len(region.blocks) > 1:
                    region.blocks.pop(0)
                return region, line[1:]
            if line.startswith("^"):
                line, _ = strip_locations(line)
                label, _, rest = line.partition("(")
                block = Block(label.split(":")[0].strip())
                if rest:
                    inside = rest.rsplit("):", 1)[0] if "):" in rest else rest.rsplit(")", 1)[0]
                    for part in split_top(inside):
                        value, _, kind = part.partition(": ")
                        block.arguments.append((value, parse_type(kind)))
                region.blocks.append(block)
                continue
            region.blocks[-1].ops.append(self.op(line))
        raise ParseError("a region is not closed")

    def op(self, line: str) -> Op:
        number = self.at
        text, location = strip_locations(line)
        results: list[str] = []
        found = RESULT.match(text)
        if found:
            for part in text[: found.end() - 3].split(", "):
                name, _, count = part.partition(":")
                results += [f"{name}#{i}" for i in range(int(count))] if count else [name]
            text = text[found.end() :]
        name = NAME.match(text)
        if not name:
            raise ParseError(f"line {number}: {line}")
        op = Op(name.group(1), tuple(results), text[name.end() :].rstrip(), line=number)
        if op.name == "ttg.warp_specialize":
            self.partitions(op)
        elif op.text.endswith("{"):
            op.text = op.text[:-1].rstrip()
            region, rest = self.region("")
            op.regions.append(region)
            while rest.rstrip().endswith("{"):
                head = rest.rstrip()[:-1].strip()
                region, rest = self.region(head)
                op.regions.append(region)
            op.tail, location = strip_locations(rest)
        op.locate = partial(self.place, location)
        return op

    def partitions(self, op: Op) -> None:
        """`default {` and `partition0(...) num_warps(4) {` regions, each headed by a line of its own."""
        tail = ""
        while not tail.strip():
            line, _ = strip_locations(self.lines[self.at].strip())
            self.at += 1
            head = line.rstrip()[:-1].strip()
            region, tail = self.region(head)
            if head.startswith("partition"):
                inside = head[head.index("(") + 1 : head.rindex(" num_warps") - 1]
                pieces = (part.partition(": ") for part in split_top(inside) if part)
                region.blocks[0].arguments = [(value.strip(), parse_type(kind)) for value, _, kind in pieces]
            op.regions.append(region)
        op.tail, _ = strip_locations(tail)
