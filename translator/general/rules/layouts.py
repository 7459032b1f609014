"""Layouts of every launch that are given by calls of functions (`gluonize.decide.layouts.rule_texts`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gluonize.decide.layouts.constructors import Called, constructor
from gluonize.decide.layouts.formulas import MIN, Formula, Sizes, no_more_than
from gluonize.decide.layouts.gluon_values import as_gluon, linear, of_gluon
from gluonize.decide.layouts.parametric import Entry
from gluonize.decide.layouts.rule_texts import RuleText
from gluonize.trace.model.layouts import DotOperand, Layout, Mfma
from gluonize.trace.model.shared_layouts import Swizzled
from gluonize.triton_api.gluon_language import gl

_OF_BITS = {8: gl.int8, 16: gl.float16, 32: gl.float32, 64: gl.float64}
BITS = ".primitive_bitwidth"
LANES = 64  # of a warp that has MFMA


class Spelling(Protocol):
    """How the name of a size or of a function is written in device code, and that of the function of a rule."""

    def __call__(self, name: str) -> str: ...

    def rule(self, rule: RuleText) -> str: ...


class GeneralLayout(Protocol):
    """A layout of every launch: `at` gives that of one, None where there is none; `written` is what the output has."""

    @property
    def functions(self) -> frozenset[str]:
        """The functions that it calls which bound entries and list bases."""

    @property
    def rules(self) -> tuple[RuleText, ...]: ...

    @property
    def sizes(self) -> frozenset[str]: ...

    def at(self, sizes: Sizes) -> Layout | None: ...

    def written(self, spelled: Spelling) -> Layout: ...


class Argument(Protocol):
    """An argument of a call: its value for a launch, None where it has none, and its text."""

    def value(self, sizes: Sizes) -> Any: ...

    def text(self, spelled: Spelling) -> str: ...

    @property
    def sizes(self) -> frozenset[str]: ...

    @property
    def functions(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class Numbers:
    """One number, or a list of them; there is no value where one of them is less than 1."""

    formulas: tuple[Formula, ...]
    listed: bool = True

    def value(self, sizes: Sizes) -> int | list[int] | None:
        found = [formula.at(sizes) for formula in self.formulas]
        if not all(found):
            return None
        return found if self.listed else found[0]

    def text(self, spelled: Spelling) -> str:
        texts = ", ".join(formula.text(spelled) for formula in self.formulas)
        return f"[{texts}]" if self.listed else texts

    @property
    def sizes(self) -> frozenset[str]:
        return frozenset().union(*(formula.sizes for formula in self.formulas))

    @property
    def functions(self) -> frozenset[str]:
        return frozenset().union(*(formula.functions for formula in self.formulas))


@dataclass(frozen=True)
class Plain:
    """The same in every launch."""

    constant: Any

    def value(self, sizes: Sizes) -> Any:
        return list(self.constant) if isinstance(self.constant, tuple) else self.constant

    def text(self, spelled: Spelling) -> str:
        return str(self.value({}))

    sizes = functions = frozenset()


@dataclass(frozen=True)
class ElementType:
    """The type of what a pointer points to; size: the name of its bits. Rules ask a type for its bits alone."""

    size: str

    def value(self, sizes: Sizes) -> Any:
        return _OF_BITS.get(sizes[self.size])

    def text(self, spelled: Spelling) -> str:
        return self.size.removesuffix(BITS)

    sizes = functions = frozenset()


@dataclass(frozen=True)
class Other:
    """Another layout of the kernel, by its name."""

    name: str
    layout: GeneralLayout

    def value(self, sizes: Sizes) -> Any:
        found = self.layout.at(sizes)
        return None if found is None else as_gluon(found)

    def text(self, spelled: Spelling) -> str:
        return self.name

    sizes = functions = frozenset()


@dataclass(frozen=True)
class ByBases:
    """A blocked layout of the kernel, or that of a product, by its bases for a tile of a shape."""

    name: str
    layout: GeneralLayout
    shape: Numbers

    def value(self, sizes: Sizes) -> Any:
        found = self.layout.at(sizes)
        shape = self.shape.value(sizes)
        bases = None if found is None or shape is None else linear(found, tuple(shape))
        return None if bases is None else as_gluon(bases)

    def text(self, spelled: Spelling) -> str:
        return f"gl.to_linear_layout({self.name}, {self.shape.text(spelled)})"

    @property
    def sizes(self) -> frozenset[str]:
        return self.shape.sizes

    @property
    def functions(self) -> frozenset[str]:
        return self.shape.functions


@dataclass(frozen=True)
class ByRule:
    """What the function of a rule gives."""

    rule: RuleText
    arguments: tuple[Argument, ...]

    @property
    def functions(self) -> frozenset[str]:
        return frozenset().union(*(argument.functions for argument in self.arguments))

    @property
    def rules(self) -> tuple[RuleText, ...]:
        return (self.rule,)

    @property
    def sizes(self) -> frozenset[str]:
        return frozenset().union(*(argument.sizes for argument in self.arguments))

    def at(self, sizes: Sizes) -> Layout | None:
        values = [argument.value(sizes) for argument in self.arguments]
        return None if any(value is None for value in values) else of_gluon(self.rule.given(*values))

    def written(self, spelled: Spelling) -> Called:
        texts = [argument.text(spelled) for argument in self.arguments]
        for i in reversed(range(len(texts))):  # what is the same in every launch has its name, as far as it comes last
            if not isinstance(self.arguments[i], Plain):
                break
            texts[i] = f"{self.rule.parameters[i]}={texts[i]}"
        return Called(f"{spelled.rule(self.rule)}({', '.join(texts)})", self.rule.about)


@dataclass(frozen=True)
class FirstOf:
    """What a rule gives, where it gives a layout, else another one."""

    first: ByRule
    other: GeneralLayout

    @property
    def functions(self) -> frozenset[str]:
        return self.first.functions | self.other.functions

    @property
    def rules(self) -> tuple[RuleText, ...]:
        return (*self.first.rules, *self.other.rules)

    @property
    def sizes(self) -> frozenset[str]:
        return self.first.sizes | self.other.sizes

    def at(self, sizes: Sizes) -> Layout | None:
        found = self.first.at(sizes)
        return self.other.at(sizes) if found is None else found

    def written(self, spelled: Spelling) -> Called:
        parts = (self.first.written(spelled), self.other.written(spelled))
        return Called(" or ".join(map(constructor, parts)), self.first.rule.about)


@dataclass(frozen=True)
class OperandOf:
    """The operand of a product whose layout has a name. k_width: None for a product without matrix cores, whose operands have none."""

    operand_index: int
    name: str
    parent: GeneralLayout
    k_width: Formula | None
    first: int  # of the launch that it is written from

    @property
    def functions(self) -> frozenset[str]:
        return self.k_width.functions if self.k_width else frozenset()

    rules = ()

    @property
    def sizes(self) -> frozenset[str]:
        return self.k_width.sizes if self.k_width else frozenset()

    def at(self, sizes: Sizes) -> Layout | None:
        parent = self.parent.at(sizes)
        width = self.k_width.at(sizes) if self.k_width else 0
        return None if parent is None else DotOperand(self.operand_index, parent, width)

    def written(self, spelled: Spelling) -> DotOperand:
        width = Entry(self.first, self.k_width.text(spelled)) if self.k_width and self.k_width.sizes else self.first
        return DotOperand(self.operand_index, Called(self.name), width)


@dataclass(frozen=True)
class OperandOfInstruction:
    """The operand of a product whose layout has a name: a lane has its elements along the K of one instruction next to each other, or
    `most` of them."""

    operand_index: int
    name: str
    parent: GeneralLayout
    most: int | None = None

    sizes = frozenset()
    rules = ()

    @property
    def functions(self) -> frozenset[str]:
        return frozenset([MIN] * (self.most is not None))

    def at(self, sizes: Sizes) -> Layout | None:
        parent = self.parent.at(sizes)
        if not isinstance(parent, Mfma):
            return None
        side, _, depth = parent.instr_shape
        width = side * depth // LANES
        return DotOperand(self.operand_index, parent, width if self.most is None else min(width, self.most))

    def written(self, spelled: Spelling) -> Called:
        width = f"{self.name}.instr_shape[0] * {self.name}.instr_shape[2] // {LANES}"
        if self.most is not None:
            width = no_more_than(str(self.most), width, spelled)
        return Called(f"gl.DotOperandLayout({self.operand_index}, {self.name}, {width})")


@dataclass(frozen=True)
class SwizzledFor:
    """A tile in LDS, in vectors of what a lane reads at once of an operand whose layout has a name. alike: rows that are exchanged alike;
    phases: how many vectors are exchanged."""

    name: str
    operand: GeneralLayout
    alike: Formula
    phases: Formula
    order: tuple[int, ...]

    rules = ()

    @property
    def functions(self) -> frozenset[str]:
        return self.alike.functions | self.phases.functions

    @property
    def sizes(self) -> frozenset[str]:
        return self.alike.sizes | self.phases.sizes

    def at(self, sizes: Sizes) -> Layout | None:
        operand, alike, phases = self.operand.at(sizes), self.alike.at(sizes), self.phases.at(sizes)
        if not (isinstance(operand, DotOperand) and alike and phases):
            return None
        return Swizzled(operand.k_width, alike, phases, self.order)

    def written(self, spelled: Spelling) -> Called:
        parts = f"{self.name}.k_width, {self.alike.text(spelled)}, {self.phases.text(spelled)}, {list(self.order)}"
        return Called(f"gl.SwizzledSharedLayout({parts})")


__all__ = [
    "BITS",
    "ByRule",
    "ElementType",
    "FirstOf",
    "GeneralLayout",
    "Numbers",
    "OperandOf",
    "OperandOfInstruction",
    "Other",
    "Plain",
    "SwizzledFor",
]
