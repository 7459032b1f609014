"""Operations of TTIR or TTGIR with their regions, each a frozen value.

What the operands of an operation mean is left to its reader; types, attributes and places are read when they are asked for.
An operation is equal to itself alone, so that it may be a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from gluonize.trace.model.locations import UNKNOWN, Locations, Place
from gluonize.trace.model.op_text import (
    VALUE,
    VALUES,
    Constant,
    operands_before,
    read_attribute,
    read_constant,
    read_indices,
    read_integers,
    read_string,
    read_words,
)
from gluonize.trace.model.types import Type, last_part, parse_type, pointee, split_top, types_in

# The types of what an operation gives, from how it is printed.

COMPARE = frozenset({"arith.cmpi", "arith.cmpf"})
_REGION_TYPES = re.compile(r"-> \((.*)\)")


def result_types(name: str, count: int, text: str, signature: str) -> list[Type]:
    """The types of the `count` results of the operation `name`, whose line goes on with `text` and ends in the types `signature`."""
    if not count:
        return []
    if name in ("scf.for", "scf.if"):
        # `iter_args(...) -> (types)  : i32 {`
        return [parse_type(t) for t in split_top(_REGION_TYPES.search(text).group(1))]
    parts = split_top(signature or text, "->")  # without operands nothing but an arrow may stand before the types
    if len(parts) > 1:
        out = parts[-1].strip()
        out = out[1:-1] if out.startswith("(") else out
        types = [parse_type(t) for t in split_top(out)]
    else:
        types = _implied_types(name, signature)
    if len(types) < count:
        types = types[:1] * count
    return types[:count]


def _implied_types(name: str, text: str) -> list[Type]:
    """The result types of an operation that is printed without an arrow."""
    types = [parse_type(t) for t in split_top(split_top(text, " to ")[-1])] if text else [Type("token")]
    if name == "arith.select":
        return types[-1:]
    if name in COMPARE:
        return [Type("int", "i1", types[0].shape, types[0].layout)]
    if name == "tt.load":
        return [pointee(types[0])]
    if name == "tt.make_tensor_descriptor":
        return [replace(types[-1], kind="desc")]
    if name == "tt.unsplat":
        return [Type(types[0].kind, types[0].element)]
    if name == "arith.constant" and not text:
        return [Type("int", "i1")]
    return types


PROMISES = ("tt.divisibility", "tt.contiguity", "tt.constancy")
_FOR = re.compile(rf"(unsigned )?({VALUE}) = ({VALUE}) to ({VALUE}) step ({VALUE})(?: iter_args\((.*?)\) ->)?")
_BINDING = re.compile(rf"({VALUE}) = ({VALUE})")
_CALLEE = re.compile(r"@(\"[^\"]*\"|[\w$.\-]+)")
_BRANCH = re.compile(r"(\^\w+)(?:\(([^)]*)\))?")
_WARPS = re.compile(r"num_warps\((\d+)\)")
_PLACED = re.compile(r"allocation\.offset = (?:\[([^\]]*)\]|(\d+))")


def is_arithmetic(name: str) -> bool:
    """Whether an operation of this name computes each element from the elements at the same place."""
    return name.startswith(("arith.", "math."))


@dataclass(frozen=True, eq=False)
class Block:
    """Operations in order; `arguments` are (value, type)."""

    label: str = ""
    arguments: tuple[tuple[str, Type], ...] = ()
    ops: tuple["Op", ...] = ()


@dataclass(frozen=True, eq=False)
class Region:
    """Blocks of one `{...}`; `head` is the text before the brace (`else`, `do`, `partition0(...)`)."""

    head: str = ""
    blocks: tuple[Block, ...] = ()

    def walk(self, inner_first: bool = False) -> Iterator["Op"]:
        """All operations in it, as `Function.walk`."""
        for block in self.blocks:
            for op in block.ops:
                if not inner_first:
                    yield op
                for inner in op.regions:
                    yield from inner.walk(inner_first)
                if inner_first:
                    yield op

    @property
    def values(self) -> set[str]:
        """The values that operations in it name."""
        return {value for op in self.walk() for value in op.values}

    @property
    def runs_beside(self) -> bool:
        """Whether it is one of those that a `ttg.warp_specialize` runs side by side."""
        return self.head.startswith(("default", "partition"))

    @property
    def warps(self) -> int | None:
        """The warps of a partition, None of another region."""
        found = _WARPS.search(self.head)
        return int(found.group(1)) if found else None


@dataclass(frozen=True)
class ForLoop:
    """`scf.for %variable = %low to %high step %step iter_args(%x = %init, ...)`; bindings: (%x, %init)."""

    unsigned: bool
    variable: str
    low: str
    high: str
    step: str
    bindings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Op:
    """One operation.

    text: what follows its name on the line, without location; tail: what follows its last region; line: of the module,
    from 1; end: the line on which its last region is closed; location: the inside of its `loc(...)`; memo: for what an interpreter computes once per operation.
    """

    name: str
    results: tuple[str, ...]
    text: str
    regions: tuple[Region, ...] = ()
    tail: str = ""
    line: int = 0
    end: int = 0
    location: str = ""
    locations: Locations = field(default=Locations(), repr=False)
    memo: dict = field(default_factory=dict, repr=False)

    @cached_property
    def place(self) -> Place:
        return self.locations.resolve(self.location) if self.location else UNKNOWN

    def path(self, file: str) -> tuple[int, ...]:
        """The lines of `file` that made the operation, of the outermost call first; () where it comes from elsewhere."""
        return self.locations.path(self.location, file) if self.location else ()

    @cached_property
    def has_promises(self) -> bool:
        """Whether the operation carries what `multiple_of` and its like promise of its result."""
        return any(name in self.text for name in PROMISES)

    @cached_property
    def promises(self) -> Mapping[str, tuple[int, ...]]:
        """`{"tt.contiguity": (1, 8)}`: the number per dimension of each promise."""
        out = {}
        for name in PROMISES:
            if found := re.search(rf"{name} = dense<\[?([\d, ]+)\]?> : tensor<(\d+)xi32>", self.text):
                numbers = tuple(int(x) for x in found.group(1).split(","))
                out[name] = numbers if len(numbers) > 1 else numbers * int(found.group(2))
        return out

    @cached_property
    def scratch(self) -> tuple[int, int] | None:
        """First byte and end of the shared memory that the operation uses for itself, None without any."""
        if "allocation.size" not in self.text and "allocation.size" not in self.tail:
            return None
        begin = self.attribute("allocation.offset", 0)
        return begin, begin + self.attribute("allocation.size")

    @cached_property
    def placed_at(self) -> tuple[int, ...]:
        """First byte of each piece of shared memory that the operation allocates; nothing where that is not known."""
        found = _PLACED.search(self.text + self.tail)
        texts = (found.group(1) or found.group(2)).split(",") if found else []
        return tuple(int(text.split(":")[0]) for text in texts)

    @cached_property
    def body(self) -> str:
        """The text before the types."""
        return split_top(self.text, " : ")[0]

    @cached_property
    def signature(self) -> str:
        """The text of the types: behind the last top-level ` : `, of the tail for operations printed around a region."""
        text = self.tail.lstrip(")") if " : (" in self.tail or self.tail.startswith(" : ") else self.text
        return last_part(text, " : ")

    @cached_property
    def operands(self) -> tuple[str, ...]:
        return tuple(VALUES.findall(self.body))

    @cached_property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(result_types(self.name, len(self.results), self.text, self.signature))

    @cached_property
    def tensors(self) -> tuple[Type, ...]:
        """Every tensor type that is printed, in order: of operands, of offsets in brackets, of results."""
        return types_in(self.signature, "tensor<")

    @cached_property
    def given_tensors(self) -> tuple[Type, ...]:
        """Those before the arrow of an operation with results; of another one all: a store may have an arrow before its value's."""
        return types_in(split_top(self.signature, "->")[0], "tensor<") if self.results else self.tensors

    @cached_property
    def memdescs(self) -> tuple[Type, ...]:
        """The memory descriptors that are printed with their name."""
        return types_in(self.signature, "!ttg.memdesc<")

    @property
    def memdesc(self) -> Type | None:
        """The first of them, None without one."""
        return next(iter(self.memdescs), None)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The values that it names, without those in its regions: operands, and what a loop's header defines."""
        return tuple(VALUES.findall(self.text) + VALUES.findall(self.tail))

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

    @property
    def target(self) -> Type:
        """The type behind the arrow: of the result, or of what an operation without one writes to."""
        return self.type if self.results else parse_type(last_part(self.signature, "->"))

    @property
    def pointer(self) -> Type:
        """The type of the base of a buffer operation, which may be printed with that of its offsets: `!tt.ptr<f16>[tensor<...>]`."""
        return parse_type(self.signature.partition("[")[0])

    def listed_at(self, name: str) -> tuple[int, int] | None:
        """Operand indices [first, last) of `name = [%a, %b]`, None where it is not printed."""
        before, found, _ = self.body.partition(f"{name} = [")
        return self.bracket(before.count("[")) if found else None

    def listed(self, name: str) -> tuple[str, ...]:
        """The operands of `name = [%a, %b]`, () where it is not printed."""
        at = self.listed_at(name)
        return self.operands[slice(*at)] if at else ()

    @cached_property
    def buffer_indices(self) -> tuple[int, int, int | None, int | None]:
        """Of (base, offsets, mask, other) of a buffer operation among its operands; None where absent.

        They are printed as `%base[%offsets], %mask, %other`, or with keywords where the operation goes to LDS.
        """
        offsets, after = self.bracket()
        if self.name == "amdg.buffer_load_to_local":
            mask, other = self.keyword("mask"), self.keyword("other")
        else:
            rest = [i for i in range(after, len(self.operands)) if i != self.keyword("stride")]
            mask, other = (*rest, None, None)[:2]
        return offsets - 1, offsets, mask, other

    @property
    def buffer(self) -> tuple[str | None, ...]:
        """Base, offsets, mask and fill value of a buffer operation by name, None where it has none."""
        return tuple(None if i is None else self.operands[i] for i in self.buffer_indices)

    @cached_property
    def for_loop(self) -> ForLoop:
        """The header of an `scf.for`."""
        unsigned, *bounds, bindings = _FOR.search(self.text).groups()
        return ForLoop(bool(unsigned), *bounds, tuple(_BINDING.findall(bindings or "")))

    @cached_property
    def bindings(self) -> tuple[tuple[str, str], ...]:
        """(argument, initial value) of what an `scf.while` carries."""
        return tuple(_BINDING.findall(self.text))

    @cached_property
    def callee(self) -> str:
        """The function that a `tt.call` calls."""
        return _CALLEE.search(self.text).group(1).strip('"')

    @cached_property
    def condition(self) -> str:
        """The first value of an `scf.if` or a `cf.cond_br`."""
        return VALUES.search(self.text).group()

    @cached_property
    def captures(self) -> tuple[str, ...]:
        """The values that a `ttg.warp_specialize` hands to its partitions."""
        return tuple(VALUES.findall(self.text.split("attributes")[0]))

    @cached_property
    def branches(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Label and arguments of each block that a `cf` branch may go to."""
        return tuple((label, tuple(VALUES.findall(args or ""))) for label, args in _BRANCH.findall(self.text))

    @cached_property
    def _attributes(self) -> dict:
        return {}

    def attribute(self, name: str, default=None):
        """Integer, boolean, string or enumerated attribute `name`; `default` when it is not printed."""
        if name not in self._attributes:
            self._attributes[name] = read_attribute(name, self.text + self.tail)
        value = self._attributes[name]
        return default if value is None else value

    def integers(self, name: str) -> tuple[int, ...]:
        """Attribute `name = array<i32: 1, 0>` or `[1, 0]`."""
        return read_integers(name, self.text)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Bare words between the operands, numbers among them: `("slt",)`, `("fadd", "relaxed", "gpu")`, `("x",)`."""
        return read_words(self.body)

    @property
    def word(self) -> str:
        """The first one: what is compared, added, asked for; "" without any."""
        return self.words[0] if self.words else ""

    @cached_property
    def counted(self) -> int | None:
        """The number that stands between the operands: of arrivals, of bytes; None without one."""
        return next((int(word) for word in self.words if word.isdigit()), None)

    @cached_property
    def indices(self) -> tuple[int, ...]:
        """Where a part begins that is written in brackets: `%tile[0, 32]`; () where that is a value."""
        return read_indices(self.body)

    @cached_property
    def string(self) -> str | None:
        """The first text in quotes: assembly, a message; None without one."""
        return read_string(self.text)

    @cached_property
    def constant(self) -> Constant:
        """What an `arith.constant` is."""
        return read_constant(self.body)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """How many operands stand in each part between commas: (1, 1, 2) of `%a, %b, %d[%token]`."""
        return tuple(len(VALUES.findall(part)) for part in split_top(self.body))

    def says(self, word: str) -> bool:
        """Whether a word stands among its operands: `%a toward_zero`."""
        return word in self.body.split()

    def before(self, word: str) -> int:
        """How many operands stand before a word of their list, all of them where it is not printed."""
        return operands_before(word, self.body)

    def keywords(self, name: str) -> tuple[int, ...]:
        """Indices of the operands that follow the word `name` (`mask = %3`, `scale %3`), each time it occurs."""
        found = re.finditer(rf"(?<![\w.%]){name}(?: =)? ?({VALUE})", self.body)
        return tuple(len(VALUES.findall(self.body[: match.start(1)])) for match in found)

    def keyword(self, name: str) -> int | None:
        """Index of the operand that follows the word `name`, or None."""
        return next(iter(self.keywords(name)), None)

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
