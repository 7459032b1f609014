"""A module of TTIR or TTGIR: functions, blocks and operations, each a frozen value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gluonize.trace.model.attributes import Attribute, parse_attribute
from gluonize.trace.model.layouts import AttributeReader, Layout, SharedLayout
from gluonize.trace.model.locations import UNKNOWN, Place
from gluonize.trace.model.op import Op, Region
from gluonize.trace.model.op_text import VALUES
from gluonize.trace.model.shared_layouts import read_shared
from gluonize.trace.model.types import Type

_ELEMENT = re.compile(r"\b(?:\d+x)*(bf16|[fi]\d+\w*)\b")


@dataclass(frozen=True, eq=False)
class Function:
    """stays: whether it may not be written in the place of its calls."""

    name: str
    arguments: tuple[tuple[str, Type], ...]
    argument_attributes: tuple[Attribute, ...]
    argument_names: tuple[str, ...]
    region: Region
    place: Place = UNKNOWN
    stays: bool = False

    def walk(self, inner_first: bool = False) -> Iterator[Op]:
        """All operations as they are printed; `inner_first`: those of regions before the one that has the regions."""
        return self.region.walk(inner_first)


@dataclass(frozen=True, eq=False)
class Module:
    functions: Mapping[str, Function]
    entry: Function
    attributes: Mapping[str, str]
    text: str
    aliases: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str, missing: int = 1) -> int:
        """An integer attribute of the module."""
        return int(self.attributes.get(name, str(missing)).split(" ")[0])

    @property
    def warps(self) -> int:
        return self.number("ttg.num-warps")

    @property
    def lanes(self) -> int:
        return self.number("ttg.threads-per-warp")

    @property
    def target(self) -> str:
        """`gfx950`; "" in TTIR."""
        return self.attributes.get("ttg.target", "").rpartition(":")[2]

    @property
    def is_nvidia(self) -> bool:
        """Whether it is made for an NVIDIA GPU."""
        return self.attributes.get("ttg.target", "").startswith("cuda")

    @property
    def clusters(self) -> int:
        """CTAs of one program."""
        return self.number("ttg.num-ctas")

    @cached_property
    def most_partitions(self) -> int:
        """Partitions of the `ttg.warp_specialize` that has most, 1 without one."""
        return max([1, *(len(op.regions) for op in self.walk() if op.name == "ttg.warp_specialize")])

    def walk(self, inner_first: bool = False) -> Iterator[Op]:
        """All operations of all functions, as `Function.walk`."""
        for function in self.functions.values():
            yield from function.walk(inner_first)

    @cached_property
    def elements(self) -> frozenset[str]:
        """The scalar types that it names, those of pointers, tensors and descriptors too."""
        return frozenset(_ELEMENT.findall(self.text))

    @cached_property
    def mentions(self) -> Counter[str]:
        """How often each value is printed, its definition included."""
        return Counter(VALUES.findall(self.text))

    def has(self, *names: str) -> bool:
        """Whether there is an operation with one of these names."""
        return not self._names.isdisjoint(names)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(op.name for op in self.walk())

    def layout(self, kind: Type) -> Layout:
        """The layout of a tensor type."""
        return self._layouts.layout(kind.layout)

    @cached_property
    def _layouts(self) -> AttributeReader:
        return AttributeReader({k: v for k, v in self.aliases.items() if not k.startswith("#shared")})

    def shared(self, kind: Type, shape: tuple[int, ...]) -> SharedLayout | None:
        """The layout of tiles of `shape` in what a memory or tensor descriptor describes; None without a Gluon constructor."""
        return read_shared(self.attribute(kind), shape)

    def attribute(self, kind: Type) -> Attribute:
        """How the memory is laid out that a type describes: every kind of layout, those of other vendors and of tensor memory too."""
        if kind.layout not in self._attributes:
            self._attributes[kind.layout] = parse_attribute(kind.layout, self.aliases)
        return self._attributes[kind.layout]

    @cached_property
    def _attributes(self) -> dict[str, Attribute]:
        return {}
